"""Labelled examples that are corrected or forgotten: beside a model that is taught the same steps."""

import copy
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import drift

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, TextClassifier
from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.features.message import make_message
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.durable_learning import DurableLearning, noted, surprises
from stream_pegasos.runtime.learned_ids import IdMemory
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams import synthetic
from tests.contract import bits
from tests.estimators import CASES


@pytest.mark.parametrize("case", [case for case in CASES if case.of != "features"], ids=lambda case: case.name)
def test_corrections_are_the_same_in_parts_of_any_size(case):
    """For any kind of model, also of one id several times."""
    monitor = Monitor(case.make())
    whole, one_by_one = DurableLearning(monitor.model, monitor=monitor), DurableLearning(case.make())
    stream = [(make_message(x), y) for x, y in case.stream(60)]
    labels = list(dict.fromkeys(y for _, y in stream))
    others = [(x, labels[(labels.index(y) + 1) % len(labels)]) for x, y in stream[10:30]]
    again, ids = [*others[:12], stream[40], *others[12:], stream[10]], [*range(10, 22), 40, *range(22, 30), 10]
    whole.learn(stream, [*range(60)])
    answers = whole.learn(again, ids)
    for sent, numbers in ((stream, range(60)), (again, ids)):
        for example, id in zip(sent, numbers, strict=True):
            one_by_one.learn([example], [id])
    corrected = [answer.correction is not None for answer in answers]
    assert corrected == [id != 40 for id in ids] and monitor.score.n == 60 + len(ids)
    assert bits(case, whole.model) == bits(case, one_by_one.model)
    assert whole.ids.digests() == one_by_one.ids.digests()


STREAM = list(synthetic(n=3_000, seed=3))
OTHER = {"spam": "ham", "ham": "spam"}


@pytest.mark.parametrize(
    "is_wrong, is_kept, most",
    [(False, True, 0.02), (False, False, 0.2), (True, True, 0.2)],
    ids=["right", "right, of a state of before", "wrong"],
)
@pytest.mark.parametrize("label", ["spam", "ham"])
@pytest.mark.parametrize("limit", [None, 0.01])
def test_what_is_taken_back_is_what_was_taught(limit, label, is_wrong, is_kept, most):
    """After twenty messages are learned and forgotten, as much spam and ham is flagged as before; nearly so, where what
    they taught is not known, or lessons contradict all others.
    """
    classifier = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=limit)
    model = TextClassifier(classifier=classifier)
    model.learn_many(*zip(*STREAM[:1_000], strict=True))
    taught = [(text, OTHER[y] if is_wrong else y) for text, y in STREAM[1_000:1_400] if y == label][:20]

    def flagged():
        said = model.predict_many([text for text, _ in STREAM[1_400:]]) == "spam"
        is_spam = np.array([y == "spam" for _, y in STREAM[1_400:]])
        return np.array([said[is_spam].mean(), said[~is_spam].mean()])

    learning, before = DurableLearning(model), flagged()
    learning.learn(taught, [*range(20)])
    if not is_kept:
        learning.ids.add([*range(20)], [y for _, y in taught])
    assert [learning.unlearn(text, i) for i, (text, _) in enumerate(taught)] == ["one step"] * 20
    assert learning.ids.ids() == []
    assert (np.abs(flagged() - before) <= most).all()


def test_a_lesson_is_what_the_probability_lacked():
    learning = DurableLearning(TextClassifier())
    for i, (text, label) in enumerate(STREAM[:400]):
        lacking = 1.0 - learning.model.predict_proba_one(text).get(label, 0.0)
        margin = learning.model.decision_function_one(text) if i > 20 else 0.0
        is_certain = i > 20 and (margin if label == learning.model.pair[1] else -margin) > 5.0
        learning.learn([(text, label)], [i])
        assert learning.ids.surprise(i) == (0.0 if is_certain else pytest.approx(lacking, rel=0.03, abs=1e-4)) or i < 2
    assert learning.ids.surprise("never seen") is None


@pytest.mark.parametrize("n_labels", [2, 3])
def test_a_lesson_is_0_where_a_model_would_learn_nothing(n_labels):
    labels = {text: (label, "long")[len(text) > 60] if n_labels == 3 else label for text, label in STREAM}
    model = TextClassifier()
    model.learn_many([*labels][:500], [*labels.values()][:500])
    kinds = set()
    for text, label in [*labels.items()][500:560]:
        (lesson,), taught = surprises(predict_block(model, [text], []), [label], model), copy.deepcopy(model)
        taught.learn_one(text, label)
        assert (lesson == 0.0) == (taught.weights == model.weights)
        kinds.add(lesson == 0.0)
    assert kinds == {False, True}


def test_a_message_that_is_forgotten_is_new():
    learning = DurableLearning(TextClassifier())
    examples = [("win a prize", "ham"), ("lunch", "ham"), ("cheap pills", "spam"), ("at noon", "ham")]
    learning.learn(examples, [1, 2, 3, None])
    assert learning.unlearn("lunch", 2) == "one step"
    assert learning.unlearn("lunch", 2) == learning.unlearn("never seen", 99) == "unknown"
    assert learning.ids.ids() == [1, 3]


def test_one_step_is_not_taken_where_nobody_knows_towards_what():
    learning = DurableLearning(TextClassifier())
    learning.learn([("a", "x"), ("b", "y"), ("c", "z")], [1, 2, 3])
    assert learning.unlearn("a", 1) == "unknown" and learning.model.n_learned == 3


class Places:
    """Notes of where messages were seen: the id, and the place."""

    name = "places"

    def __init__(self):
        self.seen = {}

    def id_of(self, note, known):
        return note[0]

    def apply(self, note):
        self.seen[note[0]] = note[1]

    def get_state(self):
        return self.seen

    def set_state(self, state):
        self.seen = state


def with_places(path):
    checkpoints = Checkpoints(path)
    model, progress = checkpoints.resume() or (TextClassifier(), None)
    return DurableLearning(model, checkpoints, progress, notes=Places())


@pytest.mark.parametrize("at", [0, 1, 2, 3], ids="a checkpoint after {} records".format)
def test_notes_come_back_with_the_messages(tmp_path, at):
    records = [
        [("win a prize", "spam", 1.0, ["a", 1]), ("lunch", "ham", 1.0, ["b", 1])],
        [("win a prize", "spam", 1.0, ["a", 2]), noted(["c", 2])],
        [("lunch", "spam", 1.0, ["b", 3]), ("at noon", "ham", 1.0, ["d", 3])],
    ]
    learning = with_places(tmp_path / "model")
    for number, entries in enumerate(records, 1):
        answers = [answer for part in learning.taking(entries) for answer in part]
        assert [answer.learned for answer in answers] == ([False] if number == 2 else [True, True])
        if number == at:
            learning.snapshot().write(tmp_path / "model")
            assert not learning.is_changed
    learning.journal.close()
    again = with_places(tmp_path / "model")
    for each in learning, again:
        assert each._notes.seen == {"a": 2, "b": 3, "c": 2, "d": 3}
        assert 4 <= each.model.n_learned == learning.model.n_learned <= 6
    assert again.ids.ids() == learning.ids.ids() and again.is_changed == (at < 3)
    again.journal.close()


def test_what_comes_after_a_message_that_fails_is_not_noted(tmp_path):
    learning = with_places(tmp_path / "model")
    [*learning.taking([("a", "x", 1.0, ["a", 1]), ("b", "y", 1.0, ["b", 1])])]
    with pytest.raises((TypeError, ValueError), match="must be a str"):
        [*learning.taking([("c", "x", 1.0, ["c", 2]), (7, "x", 1.0, ["d", 2]), noted(["a", 2])])]
    [*learning.taking([noted(["b", 3])])]
    learning.journal.close()
    again = with_places(tmp_path / "model")
    for each in learning, again:
        assert each._notes.seen == {"a": 1, "b": 3, "c": 2} and each.ids.ids() == ["a", "b", "c"]
    again.journal.close()


@pytest.mark.parametrize(
    ("ids", "digests"),
    [('{"a": 1}', "[1]"), ('["a", null]', "[1, 2]"), ('["a"]', '["1"]'), ('["a"]', "[1, 2]"), ("[", "[]")],
)
def test_ids_that_are_no_list_are_refused(ids, digests):
    known = IdMemory()
    known.add(["old"], ["spam"])
    assert known.are_new(["old", "other", None]) == [False, True, True]
    with pytest.raises(ValueError, match="ids must be a list"):
        known.set_state(ids, digests)
    assert known.ids() == ["old"]


def test_a_correction_that_is_refused_changes_nothing():
    learning = DurableLearning(TextClassifier())
    learning.learn([("a", "x"), ("b", "y")], [1, 2])
    for refused in (lambda: learning.learn([(7, "y")], [1]), lambda: learning.unlearn(7, 1)):
        with pytest.raises((TypeError, ValueError), match="must be a str"):
            refused()
    assert learning.model.n_learned == 2 and learning.ids.has(1, "x")


class Breaking(drift.ADWIN):
    """A detector that is interrupted in the middle of learning."""

    def __init__(self, n, error):
        super().__init__()
        self.n, self.error, self.n_told = n, error, 0

    def update(self, x):
        self.n_told += 1
        if self.n_told == self.n:
            raise self.error
        super().update(x)


@given(st.integers(0, 2**32), st.sampled_from([KeyboardInterrupt, MemoryError, RuntimeError, ValueError]))
def test_ids_are_noted_for_what_was_learned_wherever_it_ends(tmp_path_factory, seed, error):
    """Whatever weights of 0 stand between; and what the journal gives back is the same."""
    random, path = Random(seed), tmp_path_factory.mktemp("learning") / "model"
    n, at, in_detector = random.randrange(2, 40), random.randrange(1, 40), random.random() < 0.5

    def tokenizer(text):
        if not in_detector and text == f"word {at}":
            raise error
        return text.split()

    def made(detector=None):
        return TextClassifier(HashedBagOfWords(tokenizer=tokenizer), AdaptiveClassifier(drift_detector=detector))

    entries = [(f"word {i}", "ab"[i % 2], float(random.random() < 0.6), i) for i in range(n)]
    learning = DurableLearning(made(Breaking(at if in_detector else -1, error)), Checkpoints(path))
    done = []
    for begin in range(0, n, size := random.randrange(1, n + 1)):
        try:
            done += [answer for part in learning.taking(entries[begin : begin + size]) for answer in part]
        except (KeyboardInterrupt, MemoryError, RuntimeError, ValueError):
            break
    taught = [id for _, _, weight, id in entries if weight]
    assert learning.ids.ids() == taught[: learning.model.n_learned]
    assert learning.n_learned == learning.model.n_learned >= sum(weight for _, _, weight, _ in entries[: len(done)])
    learning.journal.close()
    again = DurableLearning(made(), Checkpoints(path))
    assert again.ids.ids() == learning.ids.ids() and again.model.n_learned == learning.model.n_learned
    again.journal.close()
