"""The page tells of the teacher, if there is one."""

import pytest
from chat_server import Chat, chat_server
from pages import MARKUP, assert_no_markup_ran, assert_quiet, httpx, open_page, served, shown, text, wait

from stream_pegasos import Teacher, TextClassifier
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.questions import Questions
from stream_pegasos.runtime.teaching import Teaching

pytest.importorskip("selenium")

pytestmark = pytest.mark.heavy


def test_the_page_tells_of_the_teacher(page):
    labels = ["ham", MARKUP]
    with chat_server(Chat(lambda text: MARKUP if "prize" in text else "ham")) as chat:
        teaching = Teaching(Teacher(chat.address, labels), Questions(0.5, 9, labels), lambda text: None)
        learner = LiveLearner(TextClassifier(), teaching=teaching)
        with served(learner) as url:
            open_page(page, url)
            assert shown(page, "teacher-asked") and text(page, "teacher-agrees") == "nothing that both labelled yet"
            messages = [{"text": "win a prize", "id": 1}, {"text": "lunch", "id": 2}]
            httpx.post(f"{url}predict", json=messages).raise_for_status()
            wait(page, lambda: text(page, "teacher-taught").startswith("2 messages, for 194 tokens"))
            httpx.post(f"{url}learn", json={"text": "win a prize", "id": 1, "label": MARKUP}).raise_for_status()
            wait(page, lambda: text(page, "teacher-agrees") == f"{MARKUP} 1.0000 of 1")
            assert text(page, "teacher-asked") == "2 messages, at most 0.5000 of all, 2 of 9 in 24 hours"
            assert text(page, "teacher-failed") == "never" and chat.address.startswith(text(page, "teacher-url"))
            assert_no_markup_ran(page)
            assert_quiet(page)


def test_without_a_teacher_the_page_tells_of_none(page):
    with served(LiveLearner(TextClassifier())) as url:
        open_page(page, url)
        assert not shown(page, "teacher-asked")
