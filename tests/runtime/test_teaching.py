"""A teacher beside a learner and a run: nobody waits for it, nothing is learned twice, and people are right."""

import asyncio
import json
import random
import threading

import pytest
from chat_server import Chat, chat_server
from running import bits, wait
from scripts import Run, Script

pytest.importorskip("httpx")

from stream_pegasos import Teacher, TextClassifier
from stream_pegasos.common.servers import ServerAwayError, ServerRefusedError
from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.runtime import teaching as teaching_module
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.runtime.questions import Questions
from stream_pegasos.runtime.run_teaching import RunTeaching
from stream_pegasos.runtime.teacher import NoLabelError, TeacherLabel
from stream_pegasos.runtime.teaching import Teaching
from stream_pegasos.streams import Example, synthetic

LABELS = ("ham", "spam")


class Stand:
    """A teacher without a server. `says` is a function of a message that gives its label or raises."""

    url, labels, n_tokens = "http://teacher", LABELS, 0

    def __init__(self, says=lambda text: "spam" if "prize" in text else "ham"):
        self.says, self.asked, self.free = says, [], threading.Event()
        self.free.set()

    def label_one(self, text):
        self.asked.append(text)
        assert self.free.wait(60)
        return TeacherLabel(self.says(text))


def teaching_by(teacher, share=1.0, **options):
    events = []
    teaching = Teaching(teacher, Questions(share, labels=LABELS), events.append, **options)
    teaching.events = events
    return teaching


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(teaching_module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(teaching_module, "LONGEST_PAUSE", 0.01)


def learn_until(learner, n):
    """Have a learner learn what its teacher teaches until it knows `n` messages."""

    async def learn():
        await learner.learn_taught()
        return len(learner.learned_ids()) >= n

    wait(lambda: asyncio.run(learn()))


def test_no_answer_waits_for_the_teacher_and_each_message_is_learned_once(tmp_path):
    teacher = Stand()
    teacher.free.clear()
    teaching = teaching_by(teacher)
    learner = LiveLearner(TextClassifier(), Checkpoints(tmp_path / "m"), teaching=teaching)
    learner.start()
    X = ["win a prize", "lunch at noon", "win a prize"]
    answers = asyncio.run(learner.predict(X, [1, 2, None]))
    assert [answer.label for answer in answers] == [None] * 3 and learner.model.n_learned == 0
    asyncio.run(learner.predict(X[:2], [1, 2]))  # which wait already
    teacher.free.set()
    learn_until(learner, 3)
    assert sorted(teacher.asked) == sorted(X) and learner.model.n_learned == 3
    asyncio.run(learner.predict(X, [1, 2, None]))  # which are learned
    assert teaching.view()["n_asked"] == 3
    learner._learning.journal.close()  # as a kill would
    again = LiveLearner(TextClassifier(), Checkpoints(tmp_path / "m"), teaching=teaching_by(Stand()))
    assert again.n_learned_again == 3 and bits(again.model) == bits(learner.model)
    learner.close(last=False)


@pytest.mark.parametrize("id", [7, None])
def test_a_person_is_right(id):
    """A label that comes after the teacher's corrects it; one that comes before is learned alone."""
    teacher = Stand()
    teaching = teaching_by(teacher)
    learner = LiveLearner(TextClassifier(), teaching=teaching)
    learner.start()
    asyncio.run(learner.learn([("a", "ham"), ("b", "spam")] * 20))
    wait(lambda: not teaching.is_busy)
    asyncio.run(learner.learn_taught())
    n = teaching.agreement.n
    asyncio.run(learner.predict(["the prize"], [id]))
    learn_until(learner, 1)
    (answer,) = asyncio.run(learner.learn([("the prize", "ham")], [id]))
    assert answer.correction == "taught anew" and answer.learned
    assert learner.model.predict_one("the prize") == "ham"
    assert teaching.agreement.n == n + 1 and teaching.agreement.counts["spam"] == [0, 1]
    teacher.free.clear()
    asyncio.run(learner.predict(["another prize"], [8]))
    asyncio.run(learner.learn([("another prize", "ham")], [8]))
    before = bits(learner.model)
    teacher.free.set()
    wait(lambda: not teaching.is_busy)
    asyncio.run(learner.learn_taught())
    assert bits(learner.model) == before and teaching.agreement.counts["spam"] == [0, 2]
    teaching.close()


@pytest.mark.parametrize(
    ("error", "kind", "n"),
    [
        (ServerAwayError("gone"), "away", 5),
        (NoLabelError("eggs"), "no label", 2),
        (ServerRefusedError("no", 403), "refused", 2),
    ],
)
def test_what_fails_is_counted_told_once_and_tried_later(quick, error, kind, n):
    left = [n]

    def says(text):
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return "spam"

    teaching = teaching_by(Stand(says))
    teaching.start()
    model = TextClassifier()
    teaching.ask(["win"], [1], model.predictions(["win"]))
    (lesson,) = wait(teaching.lessons)
    assert lesson[:2] == ("win", "spam") and teaching.faults == {kind: n}
    assert wait(lambda: len(teaching.events) == 2) and str(error) in teaching.events[0]
    assert teaching.events[1] == "the teacher answers again" and teaching.view()["error"] is None
    teaching.close()


def test_what_is_never_answered_with_a_label_is_given_up(quick):
    def says(text):
        raise NoLabelError("eggs")

    teaching = teaching_by(Stand(says))
    teaching.start()
    teaching.ask(["win"], [1], TextClassifier().predictions(["win"]))
    wait(lambda: teaching.n_dropped == 1)
    assert teaching.faults == {"no label": 3} and not teaching.lessons() and not teaching.is_busy
    assert len(teaching.events) == 1
    teaching.close()


def test_the_messages_that_wait_are_bounded():
    teaching = teaching_by(Stand(), size=10)
    X = [f"text {i}" for i in range(100)]
    teaching.ask(X, [None] * 100, TextClassifier().predictions(X))
    teaching.ask(["  "], [None], TextClassifier().predictions(["  "]))
    view = teaching.view()
    assert (view["n_asked"], view["n_waiting"], view["n_dropped"]) == (100, 10, 90)
    assert [x for x, *_ in teaching.get_state(keeps_messages=True)["open"]] == X[-10:]
    assert "text" not in json.dumps(teaching.get_state())


def examples(n, labelled=lambda i: False):
    return [Example(text, label if labelled(i) else None, 1.0, i, i) for i, (text, label) in enumerate(ROWS[:n])]


ROWS = [*synthetic(6_000, seed=4)]
TRUTH = dict(ROWS)


def run_with(teacher, source, model=None, waits=True, share=1.0, **options):
    model = TextClassifier() if model is None else model
    events = []
    teaching = RunTeaching(teaching_by(teacher, share), model, waits, events.append)
    return Run(source, model, teaching=teaching, **options)


def test_a_run_learns_what_the_teacher_says_and_goes_on_where_it_ended():
    teacher = Stand(TRUTH.get)
    whole = run_with(teacher, Script(examples(300), sizes=[10]), share=0.2).run()
    assert whole.runner.n_learned == len(teacher.asked) == len({*teacher.asked}) > 50
    model, progress = None, None
    for n in (110, 300):
        source = Script(examples(n), sizes=[10], position=(progress or {}).get("position"))
        part = run_with(Stand(TRUTH.get), source, model, share=0.2, progress=progress).run()
        snapshot = part.runner.snapshot()
        model, progress = part.model, json.loads(json.dumps(snapshot.progress))
    assert bits(model) == bits(whole.model) and progress["n_learned"] == whole.runner.n_learned


def test_a_live_run_does_not_wait_and_keeps_what_is_not_answered():
    teacher = Stand(TRUTH.get)
    teacher.free.clear()
    first = run_with(teacher, Script(examples(30)), waits=False).run()
    assert len(first.answers) == 30 and first.runner.n_learned == 0
    progress = json.loads(json.dumps(first.runner.snapshot().progress))
    n = len(progress["teaching"]["open"])
    assert n > 20
    second = run_with(Stand(TRUTH.get), Script(examples(30), position=30, endless=True), first.model, progress=progress)
    thread = threading.Thread(target=second.run)
    thread.start()
    wait(lambda: second.runner.n_learned == n)
    second.runner.stop()
    thread.join()
    teacher.free.set()


def test_late_labels_of_people_correct_the_teacher():
    rows = [(f"prize number {i}", "ham") for i in range(8)] + [(f"lunch {i}", "spam") for i in range(8)]
    messages = [Example(x, None, 1.0, i, i) for i, (x, _) in enumerate(rows)]
    teacher = Stand()  # which is wrong at each
    run = run_with(teacher, Script(messages, sizes=[4])).run()
    assert run.model.predict_one("prize number 3") == "spam"
    teaching, learned = run.runner.teaching, run.runner.n_learned
    for example, (_, y) in zip(messages, rows, strict=True):
        assert teaching.is_taught(example)
        teaching.correct(example._replace(y=y))
        teaching.correct(example._replace(y=y))  # and nothing happens
    assert [run.model.predict_one(x) for x, _ in rows] == [y for _, y in rows]
    assert teaching.teaching.agreement.counts == {"ham": [0, 8], "spam": [0, 8]} and learned == 16
    assert not teaching.is_taught(Example("new", "ham", 1.0, 99, 99))


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_teacher_that_lies_about_everything_costs_little_where_people_label_one_in_ten(share):
    other = {"ham": "spam", "spam": "ham"}
    rng = random.Random(1)
    labelled = [rng.random() < 0.1 for _ in range(6_000)]
    stream = examples(6_000, labelled.__getitem__)
    truth = [label for _, label in ROWS]

    def accuracy(run):
        run.run()
        said = [answer.label for answer in run.answers]
        asked = [i for i in range(1_000, 6_000) if not labelled[i]]
        return sum(said[i] == truth[i] for i in asked) / len(asked)

    alone = accuracy(Run(Script(stream, sizes=[20])))
    liar = run_with(Stand(lambda text: other[TRUTH[text]]), Script(stream, sizes=[20]), share=share)
    assert accuracy(liar) > alone - 0.05
    agreement = liar.runner.teaching.teaching.agreement
    assert agreement.n >= 30 and max(map(agreement.weight, LABELS)) == 0.0


def test_a_server_teaches():
    with chat_server(Chat(lambda text: TRUTH[text])) as chat:
        run = run_with(Teacher(chat.address, LABELS), Script(examples(200), sizes=[20]), share=0.2).run()
        assert run.runner.n_learned == len(chat.asked) and run.model.predict_one("FREE entry, win a prize") == "spam"
        assert run.runner.teaching.teaching.view()["n_tokens"] == 97 * len(chat.asked)


def test_a_label_in_the_stream_itself_corrects_the_teacher():
    rows = [(f"prize number {i}", "ham") for i in range(8)] + [(f"lunch {i}", "spam") for i in range(8)]
    messages = [Example(x, None, 1.0, i, i) for i, (x, _) in enumerate(rows)]
    labelled = [each._replace(y=y) for each, (_, y) in zip(messages, rows, strict=True)]
    run = run_with(Stand(), Script([*messages, *labelled], sizes=[16, 16])).run()  # the teacher is wrong at each
    assert [run.model.predict_one(x) for x, _ in rows] == [y for _, y in rows]
    assert run.runner.teaching.teaching.agreement.counts == {"ham": [0, 8], "spam": [0, 8]}
    assert [answer.id for answer in run.answers] == [*range(16)] * 2


def test_questions_are_the_same_one_by_one_and_many_where_messages_come_again():
    X = [f"text {i % 7}" for i in range(60)]
    said = TextClassifier().predictions(X)
    alone, many = teaching_by(Stand(), 0.01), teaching_by(Stand(), 0.01)
    for row, x in enumerate(X):
        alone.ask([x], [None], said.rows([row]))
    many.ask(X, [None] * len(X), said)
    assert many.get_state(keeps_messages=True) == alone.get_state(keeps_messages=True)


def test_lessons_wait_while_the_encoder_is_away(monkeypatch):
    teaching = teaching_by(Stand())
    learner = LiveLearner(TextClassifier(), teaching=teaching)
    learner.start()
    asyncio.run(learner.predict(["win a prize", "lunch"], [1, 2]))
    wait(lambda: not teaching.is_busy)

    async def away(X):
        raise EncoderAwayError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(learner, "_encode", away)
        asyncio.run(learner.learn_taught())
    assert learner.model.n_learned == teaching.n_taught == 0
    asyncio.run(learner.learn_taught())
    assert learner.model.n_learned == teaching.n_taught == 2
    learner.close()


def test_few_messages_that_people_label_are_asked_about_while_no_answer_comes():
    teaching = teaching_by(Stand())
    teaching.compare(*zip(*((f"text {i}", i, "ham") for i in range(900)), strict=True))
    assert teaching.n_asked == 900  # as all are, where the share is 1
    teaching = teaching_by(Stand(), 0.1)
    teaching.compare(*zip(*((f"text {i}", i, "ham") for i in range(900)), strict=True))
    assert 30 <= teaching.n_asked < 130
