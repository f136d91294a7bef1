"""The page of a model that is taught elsewhere."""

import copy
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson
import pytest

from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.prequential import predict_learn
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.service import watch
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
    for name in ("n", "accuracy", "roc_auc", "log_loss", "window", "confusion_matrix", "curve"):
        assert found[name] == orjson.loads(orjson.dumps(wanted[name]))
    assert found["newest"][0]["text"] == messages[-1][0]
    assert found["words"]["positive"]
    assert get(url, "predict", {"text": messages[-1][0]})["label"] == monitor.model.predict_one(messages[-1][0])
    with pytest.raises(HTTPError, match="422"):
        get(url, "learn", {"text": "cheap", "label": "spam"})
    with pytest.raises(HTTPError, match="401"):
        get(url, "monitor", token="another")
    assert monitor.model.n_learned == 300


def test_a_port_that_is_taken_is_said():
    url = watch(Monitor(TextClassifier()), port=0)
    with pytest.raises(ValueError, match="port is 70000"):
        watch(Monitor(TextClassifier()), port=70_000)
    with pytest.raises(OSError):
        watch(Monitor(TextClassifier()), port=int(url.rstrip("/").rpartition(":")[2]))
