"""The part of the page by which people label messages."""

import pytest
from pages import (
    DESKTOP,
    MARKUP,
    TELEPHONE,
    assert_contrasts,
    assert_fits,
    assert_no_markup_ran,
    assert_quiet,
    httpx,
    learn,
    open_page,
    resize,
    served,
    shown,
    text,
    texts,
    wait,
)
from serving import learned

from stream_pegasos import MultiLabelClassifier, TextClassifier
from stream_pegasos.runtime.active_learning import ActiveLearning
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys

pytestmark = pytest.mark.heavy

NEW = [text for text, _ in synthetic(n=30, seed=8)]


def predict(url, messages):
    httpx.post(f"{url}predict", json=[{"text": text} for text in messages]).raise_for_status()


def keys(page, *pressed):
    page.switch_to.active_element.send_keys(*pressed)


def focus(page):
    page.execute_script("document.getElementById('asked').focus()")


def asked(page):
    return texts(page, "#asked .text bdi")


def current(page):
    (one,) = texts(page, "#asked [aria-current] .text bdi")
    return one


def given(page):
    parts = texts(page, "#given li > :is(.text, .labels)")  # at once, as the page goes on
    return [*zip(parts[::2], parts[1::2], strict=True)]


def of(url):
    return httpx.get(f"{url}asked").json()


def test_labels_are_given_and_taken_back_with_the_keyboard(page):
    model = learned()
    service = LiveLearner(model, active_learning=ActiveLearning(seconds=60.0))
    with served(service) as url:
        open_page(page, url)
        wait(page, lambda: shown(page, "nothing-asked"))
        predict(url, NEW)
        wait(page, lambda: len(asked(page)) == 8)
        assert asked(page) == [message["text"] for message in of(url)["messages"]]
        first, second, third, *_ = asked(page)
        focus(page)
        assert current(page) == first
        keys(page, "j", Keys.ARROW_DOWN, "k")
        assert current(page) == second
        keys(page, "2")
        wait(page, lambda: given(page) == [(second, "spam")])
        assert current(page) == third  # and no wait for the service
        keys(page, "1")
        wait(page, lambda: given(page) == [(third, "ham"), (second, "spam")])
        keys(page, "u")
        wait(page, lambda: given(page) == [(second, "spam")])
        assert current(page) == third
        keys(page, "s")
        wait(page, lambda: third not in asked(page))
        keys(page, "n")
        keys(page, "2", Keys.ENTER)  # digits are text there
        wait(page, lambda: len(given(page)) == 2)
        assert given(page)[0][1] == "2"
        wait(page, lambda: "2" in texts(page, "#asked [aria-current] .label bdi"))
        assert texts(page, "#asked [aria-current] .label bdi") == ["ham", "spam", "2"]
        assert texts(page, "#asked [aria-current] kbd") == ["1", "2", "3"]
        assert model.n_learned == 300
        page.find_element("css selector", "#given li:last-child button").click()
        wait(page, lambda: len(given(page)) == 1)

        page.find_element("css selector", "[data-first=newest]").click()
        wait(page, lambda: asked(page)[0] == NEW[-1])
        page.find_element("css selector", "#asked li:nth-child(2) .label").click()
        wait(page, lambda: len(given(page)) == 2)
        assert_quiet(page)
        for size in (DESKTOP, TELEPHONE):
            for scheme in ("light", "dark"):
                resize(page, size, scheme)
                assert_fits(page)
                assert_contrasts(page)


@pytest.mark.heavy
def test_a_message_that_others_label_or_push_out_goes(page):
    service = LiveLearner(TextClassifier(), active_learning=ActiveLearning(size=20, seconds=60.0))
    with served(service) as url:
        predict(url, NEW[:10])
        open_page(page, url)
        wait(page, lambda: len(asked(page)) == 8)
        focus(page)
        keys(page, "j")
        reading, after = current(page), asked(page)[2]
        assert reading == NEW[8]
        learn(url, {"text": reading, "label": "ham"})
        wait(page, lambda: reading not in asked(page))
        assert current(page) == after
        predict(url, NEW[10:20])  # the newest come first, as nothing is known
        wait(page, lambda: asked(page)[0] == NEW[19])
        assert current(page) == after  # which is none of the first eight any more
        predict(url, NEW[20:] + [f"more {i}" for i in range(10)])
        wait(page, lambda: after not in asked(page))
        assert current(page) in asked(page)


def test_several_labels_hold_together_and_markup_is_text(page):
    service = LiveLearner(
        TextClassifier(classifier=MultiLabelClassifier()), active_learning=ActiveLearning(seconds=60.0)
    )
    with served(service) as url:
        learn(url, [{"text": "a", "label": [MARKUP, "oil"]}, {"text": "b", "label": []}])
        predict(url, [MARKUP, *NEW[:3]])
        open_page(page, url)
        wait(page, lambda: len(asked(page)) == 4)
        page.find_element("css selector", "[data-first=oldest]").click()
        wait(page, lambda: asked(page)[0] == MARKUP)
        focus(page)
        keys(page, "1", "2", "n")
        keys(page, "gas", Keys.ENTER)
        keys(page, "2", Keys.ENTER)
        wait(page, lambda: given(page) == [(MARKUP, f"{MARKUP}, gas")])
        keys(page, Keys.ENTER)
        wait(page, lambda: len(given(page)) == 2)
        assert [each["label"] for each in of(url)["given"]] == [[], [MARKUP, "gas"]]
        assert_no_markup_ran(page)
        assert_quiet(page)


@pytest.mark.heavy
def test_a_label_that_the_model_does_not_take_is_told(page):
    service = LiveLearner(TextClassifier(), token="secret", active_learning=ActiveLearning(seconds=60.0))
    service.active_learning.add(NEW[:3])
    with served(service) as url:
        page.get(url)
        wait(page, lambda: shown(page, "token-form"))
        assert not service.refusals.of_clients  # as it asks for nothing before it has a token
        page.find_element("id", "token").send_keys("secret", Keys.ENTER)
        wait(page, lambda: len(asked(page)) == 3)
        first = current(page)
        focus(page)
        keys(page, "n")
        keys(page, "ham", Keys.TAB)
        headers = {"Authorization": "Bearer secret"}
        messages = httpx.get(f"{url}asked", headers=headers).json()["messages"]
        (number,) = [message["number"] for message in messages if message["text"] == first]
        for message in messages[:2]:
            body = {"number": message["number"], "label": None}
            httpx.post(f"{url}teach", json=body, headers=headers).raise_for_status()
        wait(page, lambda: len(asked(page)) == 2)  # the page knows, and keeps the one for which a label is typed
        assert current(page) == first
        keys(page, Keys.ENTER)
        wait(page, lambda: text(page, "labelling-error").startswith(f"message {number} does not wait"))
        wait(page, lambda: len(asked(page)) == 1)  # and someone goes on with the next one
        keys(page, "n")
        keys(page, "ham", Keys.ENTER)
        wait(page, lambda: len(given(page)) == 1 and not text(page, "labelling-error"))
        page.execute_script("sessionStorage.clear()")


def test_labels_that_are_fixed_are_the_buttons_and_no_other_can_be_given(page):
    service = LiveLearner(
        TextClassifier(), active_learning=ActiveLearning(seconds=60.0), labels=["spam", "ham", "a third one"]
    )
    with served(service) as url:
        predict(url, NEW)
        open_page(page, url)
        wait(page, lambda: len(asked(page)) == 8)
        assert texts(page, "#asked .label bdi") == ["spam", "ham", "a third one"] * 8
        assert not shown(page, "label-form") and "for another" not in text(page, "keys")
        first = asked(page)[0]
        focus(page)
        keys(page, "n", "2")
        wait(page, lambda: given(page) == [(first, "ham")])
        wait(page, lambda: len(asked(page)) == 8)
        assert texts(page, "#asked [aria-current] .label bdi") == ["spam", "ham", "a third one"]
        assert_quiet(page)


@pytest.mark.parametrize("message", ["short", "a long message, as they come by mail. " * 500, "a\n" * 5_000])
def test_where_a_file_is_labelled_the_buttons_are_in_sight(page, message):
    """Beside the message where there is room, with no need to scroll."""
    active_learning = ActiveLearning(1_000, 60.0, of_file=True)
    active_learning.add([message, *(f"{message} {i}" for i in range(8))])
    service = LiveLearner(TextClassifier(), active_learning=active_learning, labels=[f"label {i}" for i in range(6)])
    with served(service) as url:
        for size in ((1280, 800), (360, 640)):
            resize(page, size)
            open_page(page, url)
            wait(page, lambda: len(asked(page)) == 8)
            buttons_in_sight(page, size)


def buttons_in_sight(page, size):
    of_text, *of_buttons = page.execute_script(
        "return [...document.querySelectorAll('[aria-current] :is(.text, .label, .skip-message)')]"
        ".map(element => element.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
    )
    assert len(of_buttons) == 7
    for left, top, right, bottom in of_buttons:
        assert left >= 0 and top >= 0 and right <= size[0] and bottom <= size[1]
        assert left >= of_text[2] if size[0] > 1_000 else top >= of_text[3]
    assert page.execute_script("return scrollY") == 0
    assert_fits(page)
