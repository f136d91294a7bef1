from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.chunks import predict_learn
from stream_pegasos.operation.live_learner import LiveLearner
from stream_pegasos.service.metrics import Metrics
from stream_pegasos.streams import synthetic


def test_what_is_shown_is_read_under_the_lock():
    """As another thread may be learning; see `Monitor.lock`."""

    class Guarded:
        """Looks at the lock whenever it is asked for anything."""

        def __init__(self, value):
            self._value = value

        def __getattr__(self, name):
            assert monitor.lock.locked() or name in ("features", "parts"), name  # which never change
            return getattr(self._value, name)

    service = LiveLearner(TextClassifier())
    monitor = service.monitor
    for block in predict_learn(monitor.model, list(synthetic(100, seed=4))):
        monitor.learned(list(block.examples), block)
    metrics = Metrics(service)
    monitor.score, monitor._names = Guarded(monitor.score), Guarded(monitor._names)
    monitor.model = Guarded(monitor.model)
    assert b"stream_pegasos_messages_learned_total 100.0" in metrics.text()
    assert service.view()["n"] == 100 and service.classes("", 5)["n"] == 2 and service.words("spam")["positive"]
    assert service.describe()["classes"] == ["ham", "spam"]
