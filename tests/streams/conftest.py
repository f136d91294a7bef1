import threading
import time
from functools import partial

import pytest
import servers


class Following:
    """A source that is read in a thread: its examples, positions and events as they come."""

    def __init__(self, open_it, **options):
        self.batches, self.bad, self.events = [], [], []
        self.failure = None
        self.source = open_it(on_bad=lambda *at: self.bad.append(at), on_event=self.events.append, **options)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        try:
            self.batches.extend(self.source.batches())
        except Exception as error:
            self.failure = error

    @property
    def texts(self):
        return [example.x for batch in list(self.batches) for example in batch.examples]

    def wait(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (self.texts[-5:], self.events, self.bad, self.failure)
            time.sleep(0.01)

    def wait_for(self, *texts):
        self.wait(lambda: len(self.texts) >= len(texts))
        assert self.texts == list(texts)

    def stop(self):
        """How many seconds the source took to end."""
        start = time.monotonic()
        self.source.close()
        self._thread.join(120)
        assert not self._thread.is_alive()
        return time.monotonic() - start


@pytest.fixture
def follow():
    """A function that follows a source in a thread, with what `open_source` takes; all end with the test."""
    from stream_pegasos.streams import open_source

    started = []

    def start(address, position=None, **options):
        started.append(Following(partial(open_source, address, position), **options))
        return started[-1]

    yield start
    for following in started:
        following.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    yield from started(servers.redis, tmp_path_factory.mktemp("redis"))


@pytest.fixture
def redis_client(redis_server):
    redis = pytest.importorskip("redis")
    client = redis.Redis(port=redis_server.port, protocol=2)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def redis_tls_server(tmp_path):
    yield from started(servers.redis_tls, tmp_path)


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory):
    yield from started(servers.kafka, tmp_path_factory.mktemp("kafka"))


@pytest.fixture
def kafka_relay(tmp_path):
    """A port that leads to a broker of its own."""
    relay = servers.Relay()
    for server in started(partial(servers.kafka, advertised=str(relay.port)), tmp_path):
        relay.target = server.port
        yield relay
        relay.close()


def started(server, folder):
    try:
        with server(folder) as running:
            yield running
    except servers.Missing as missing:
        pytest.skip(str(missing))
