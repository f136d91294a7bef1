"""The page of a model that is taught elsewhere."""

import copy
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import orjson
import pytest

from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.prequential import predict_learn
from stream_pegasos.evaluation.scores import PrequentialScore
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.service import Service, watch
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.streams import synthetic


def get(url, path, body=None, token="secret"):
    headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
    data = None if body is None else orjson.dumps(body)
    return orjson.loads(urlopen(Request(url + path, data, headers)).read())


def test_a_watched_model_is_shown_as_it_learns_and_cannot_be_taught():
    messages = list(synthetic(300, seed=4))
    alone, monitor = Monitor(TextClassifier()), Monitor(TextClassifier())
    url = watch(monitor, port=0, token="secret")
    assert get(url, "monitor")["n"] == 0
    for number in range(3):
        chunk = messages[100 * number : 100 * (number + 1)]
        learned = copy.deepcopy(monitor.model)
        blocks = list(predict_learn(learned, chunk))
        monitor.learned_elsewhere(learned, [block.outcomes(learned) for block in blocks], blocks[-1])
        for block in predict_learn(alone.model, chunk):
            alone.learned(list(block.examples), block)
    found, wanted = get(url, "monitor"), alone.view()
    for name in ("n", "accuracy", "roc_auc", "log_loss", "window", "classes", "curve"):
        assert found[name] == orjson.loads(orjson.dumps(wanted[name]))
    assert found["newest"][0]["text"] == messages[-1][0]
    assert get(url, "words?label=spam")["positive"]
    assert get(url, "predict", {"text": messages[-1][0]})["label"] == monitor.model.predict_one(messages[-1][0])
    with pytest.raises(HTTPError, match="422"):
        get(url, "learn", {"text": "cheap", "label": "spam"})
    with pytest.raises(HTTPError, match="401"):
        get(url, "monitor", token="another")
    assert monitor.model.n_learned == 300


def test_what_is_shown_is_read_under_the_lock():
    """As another thread may be learning; see `Monitor.lock`."""

    class Guarded:
        """Looks at the lock whenever it is asked for anything."""

        def __init__(self, value):
            self._value = value

        def __getattr__(self, name):
            assert monitor.lock.locked() or name in ("features", "parts"), name  # which never change
            return getattr(self._value, name)

    monitor = Monitor(TextClassifier())
    for block in predict_learn(monitor.model, list(synthetic(100, seed=4))):
        monitor.learned(list(block.examples), block)
    service = Service(monitor.model, monitor=monitor)
    metrics = Metrics(service)
    monitor.score, monitor._names = Guarded(monitor.score), Guarded(monitor._names)
    monitor.model = Guarded(monitor.model)
    assert b"stream_pegasos_messages_learned_total 100.0" in metrics.text()
    assert service.view()["n"] == 100 and service.classes("", 5)["n"] == 2 and service.words("spam")["positive"]
    assert service.describe()["classes"] == ["ham", "spam"]


def test_processes_that_met_labels_in_another_order_are_scored_alike():
    """And so are those that met one label alone; what is kept of the score goes on as it was."""
    messages = list(synthetic(300, seed=5))
    spam, ham = ([message for message in messages if message[1] == label] for label in ("spam", "ham"))
    model, monitor, alone = TextClassifier(), Monitor(TextClassifier()), PrequentialScore(exact=False)
    model.learn_many(*zip(ham[0], spam[0], strict=True))
    for chunk in ([*ham[:20], *spam[:20]], [*spam[20:40], *ham[20:40]], spam[40:60], ham[40:60]):
        part = TextClassifier()
        outcomes = [block.outcomes(part) for block in predict_learn(part, chunk)]
        monitor.learned_elsewhere(model, outcomes)
        for each in outcomes:
            sign = 1.0 if each.classes[1] in ("spam", None) and each.classes[0] != "spam" else -1.0
            alone.update(replace(each, classes=("ham", "spam"), margins=sign * each.margins))
    assert (monitor.score.positive, monitor.score.n) == ("spam", 120)
    found, wanted = monitor.score.get_state(), alone.get_state()
    for one, other in ((found, wanted), (found["positive"], wanted["positive"])):
        np.testing.assert_allclose(one.pop("tenths"), other.pop("tenths"), rtol=1e-12)
    assert found.pop("log_loss") == pytest.approx(wanted.pop("log_loss")) and found == wanted
    resumed = Monitor(model)
    resumed.set_state(monitor.get_state())
    for each in (monitor, resumed):
        each.learned_elsewhere(model, outcomes)
    assert resumed.get_state() == monitor.get_state()


def test_a_port_that_is_taken_is_said():
    url = watch(Monitor(TextClassifier()), port=0)
    with pytest.raises(ValueError, match="port is 70000"):
        watch(Monitor(TextClassifier()), port=70_000)
    with pytest.raises(OSError):
        watch(Monitor(TextClassifier()), port=int(url.rstrip("/").rpartition(":")[2]))
