"""Lessons that are taken back: beside a model that never had them."""

import random

import pytest

from stream_pegasos import TextClassifier
from stream_pegasos.features.message import message_of
from stream_pegasos.operation.learning import Learning
from stream_pegasos.operation.monitor import Monitor
from tests.contract import bits
from tests.estimators import CASES


def learning_of(model, **options):
    return Learning(Monitor(model), **options)


@pytest.mark.parametrize("case", [case for case in CASES if case.of != "features"], ids=lambda case: case.name)
def test_a_lesson_among_the_newest_is_taken_back_exactly(case):
    """Whatever came before and after it, in parts of any size, for any kind of model."""
    random_, learning, kept = random.Random(1), learning_of(case.make(), n_lessons=25), []
    stream = [(message_of(x), y) for x, y in case.stream(80)]
    while stream:
        n = random_.randint(1, 5)
        part, stream = stream[:n], stream[n:]
        ids = [len(stream) + i for i in range(len(part))]
        learning.learn(part, ids)
        kept += zip(ids, part, strict=True)
        if len(kept) > 30 and random_.random() < 0.3:
            id, (x, _) = kept.pop(random_.randrange(len(kept) - 20, len(kept)))
            assert learning.unlearn(x, id) == "taken back"
    alone = case.make()
    for _, example in kept:
        alone.learn_one(*example)
    assert bits(case, learning.model) == bits(case, alone)


def test_an_older_lesson_is_taken_back_by_one_step():
    learning, alone = learning_of(TextClassifier(), n_lessons=2), TextClassifier()
    lessons = [("win a prize", "ham"), ("lunch", "ham"), ("cheap pills", "spam"), ("at noon", "ham"), ("dinner", "ham")]
    learning.learn(lessons, [1, 2, 3, 4, None])
    alone.learn_many(*zip(*lessons, strict=True))
    (answer,) = learning.learn([("win a prize", "spam")], [1])
    assert answer["correction"] == "taught anew"
    assert learning.unlearn("lunch", 2) == "one step"
    alone.learn_many(["win a prize", "win a prize", "lunch"], ["spam", "spam", "spam"])
    assert learning.model.snapshot().values == alone.snapshot().values
    assert learning.unlearn("lunch", 2) == learning.unlearn("never seen", 99) == "unknown"
    assert learning.ids.ids() == [1, 3, 4]


def test_large_messages_are_kept_only_so_far():
    learning, alone = learning_of(TextClassifier()), TextClassifier()
    lessons = [(f"message {i} " * 1_000_000, "ham" if i % 2 else "spam") for i in range(5)]  # of 10 million characters
    learning.learn(lessons, [*range(5)])
    assert [learning.message(id) is not None for id in range(5)] == [False, False, True, True, True]
    assert learning.unlearn(lessons[3][0], 3) == "taken back"
    for x, y in (*lessons[:3], lessons[4]):
        alone.learn_one(x, y)
    assert learning.model.snapshot().values == alone.snapshot().values


def test_one_step_is_not_taken_where_nobody_knows_towards_what():
    learning = learning_of(TextClassifier(), n_lessons=0)
    learning.learn([("a", "x"), ("b", "y"), ("c", "z")], [1, 2, 3])
    assert learning.unlearn("a", 1) == "unknown" and learning.model.n_learned == 3


def test_a_correction_that_is_refused_changes_nothing():
    learning = learning_of(TextClassifier())
    learning.learn([("a", "x"), ("b", "y")], [1, 2])
    for refused in (lambda: learning.learn([(7, "y")], [1]), lambda: learning.unlearn(7, 1)):
        with pytest.raises((TypeError, ValueError), match="must be a str"):
            refused()
    assert learning.model.n_learned == 2 and learning.message(1) == "a"


def test_many_corrections_are_taken_back_at_once():
    """As if each had been by itself, also of one id several times; each run of them relearns once."""
    learning, one_by_one = learning_of(TextClassifier()), learning_of(TextClassifier())
    lessons = [(f"message {i % 7} of {i}", "ham" if i % 3 else "spam") for i in range(40)]
    corrections = [(x, "spam" if y == "ham" else "ham") for x, y in lessons[5:30]]
    again, ids = [*corrections, lessons[7], lessons[8]], [*range(5, 30), 7, 8]
    for each in (learning, one_by_one):
        each.learn(lessons, [*range(40)])
    made = []
    learning._lessons.without, without = lambda ids: made.append(ids) or without(ids), learning._lessons.without
    answers = learning.learn(again, ids)
    assert [answer["correction"] for answer in answers] == ["taken back"] * 27
    assert made == [[*range(5, 30)], [7, 8]]
    for example, id in zip(again, ids, strict=True):
        one_by_one.learn([example], [id])
    assert learning.model.snapshot().values == one_by_one.model.snapshot().values
