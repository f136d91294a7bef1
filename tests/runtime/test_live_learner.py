import asyncio
import enum
import math

import numpy as np
import pytest
from running import bits, is_held

from stream_pegasos import Category, MultiLabelClassifier, TextClassifier, TextFeatures
from stream_pegasos.blocks.blockwise import predict_learn
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.streams import synthetic


def test_what_is_shown_is_read_under_the_lock():
    """As another thread may be learning; see `Monitor.lock`."""

    class Guarded:
        """Looks at the lock whenever it is asked for anything."""

        def __init__(self, value):
            self._value = value

        def __getattr__(self, name):
            assert is_held(monitor.lock) or name in ("features", "parts"), name  # which never change
            return getattr(self._value, name)

    service = LiveLearner(TextClassifier())
    monitor = service.monitor
    for block in predict_learn(monitor.model, list(synthetic(100, seed=4))):
        monitor.learned(list(block.examples), block)
    metrics = Metrics(service)
    monitor._score, monitor._names = Guarded(monitor.score), Guarded(monitor._names)
    monitor.model = Guarded(monitor.model)
    assert b"stream_pegasos_messages_learned_total 100.0" in metrics.text()
    assert service.view()["n"] == 100 and service.classes("", 5)["n"] == 2 and service.words("spam")["positive"]
    assert service.describe()["classes"] == ["ham", "spam"]


class Topic(enum.StrEnum):
    WHEAT = "wheat"


SEVERAL = [["a"], ("b", "a", "a"), {"b", "a"}, [], {"a": True, "c": True}, {"b": True, "never": False, 7: True}]


@pytest.mark.parametrize(
    "classifier, labels",
    [(None, ["a", np.str_("b"), Topic.WHEAT, 7, 7.0, np.int64(-(2**62)), 2**70]), (MultiLabelClassifier(), SEVERAL)],
)
def test_labels_in_any_form_come_back_from_the_journal(tmp_path, classifier, labels):
    alone = TextClassifier(classifier=classifier and classifier.clone())

    def resumed():
        checkpoints = Checkpoints(tmp_path / "model")
        model, progress = checkpoints.resume() or (alone.clone(), None)
        return LiveLearner(model, checkpoints, progress)

    service = resumed()
    examples = [(f"text {i}", y) for i, y in enumerate(labels)]
    asyncio.run(service.learn(examples, [*range(len(labels))]))
    service._journal.close()
    alone.learn_many(*map(list, zip(*examples, strict=True)))
    again = resumed()
    assert bits(again.model) == bits(service.model) == bits(alone)
    assert again.model.classes == alone.classes
    assert not any(answer.learned for answer in asyncio.run(again.learn(examples, [*range(len(labels))])))
    again._journal.close()


@pytest.mark.parametrize(
    "x, id",
    [
        *[
            ({"subject": "a", "kind": value}, None)
            for value in (math.nan, -math.inf, [math.inf], ("a",), {1: "a"}, b"a")
        ],
        *[({"subject": "a"}, id) for id in (True, 1.5, b"a", ("a",))],
    ],
)
def test_what_would_not_come_back_from_the_journal_is_refused(tmp_path, x, id):
    model = TextClassifier(TextFeatures(on="subject") + Category(on="kind"))
    service = LiveLearner(model, Checkpoints(tmp_path / "model"))
    before = bits(model)
    with pytest.raises((TypeError, ValueError)):
        asyncio.run(service.learn([({"subject": "b"}, "ham"), (x, "spam")], ["first", id]))
    assert bits(model) == before and not [*tmp_path.iterdir()] and not service.learned_ids()


@pytest.mark.parametrize("weight", [-1.0, float("nan"), 1e31, "1", None])
def test_a_weight_that_is_none_is_refused_before_anything_is_learned(weight):
    service = LiveLearner(TextClassifier())
    with pytest.raises((TypeError, ValueError), match=r"w (is|must be)"):
        asyncio.run(service.learn([("a", "spam"), ("b", "ham", weight)], [1, 2]))
    assert service.model.classes == () and service.learned_ids() == []
