"""Clients that keep others waiting are the matter of the proxy, set up as the guide says."""

import re
import socket
import threading
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import servers

httpx = pytest.importorskip("httpx")
GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "service.md"
SLOW_HEADS = [(b"", b""), (b"GET /healthz HTTP/1.1\r\nx: ", b"x"), (b"GET /healthz HTTP/1.1\r\n", b"x: y\r\n")]


@contextmanager
def strangers(port, kinds, n):
    """So many clients of each kind, which send its beginning and then go on with its parts; their connections."""
    connections, over = [], threading.Event()

    def go_on():
        while not over.wait(0.02):
            for part, connection in connections:
                with suppress(OSError):
                    connection.send(part)

    thread = threading.Thread(target=go_on)
    with ExitStack() as stack:
        for beginning, part in kinds * n:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            connection.sendall(beginning)
            connections.append((part, connection))
        thread.start()
        try:
            yield [connection for _, connection in connections]
        finally:
            over.set()
            thread.join()


RUN = {
    "nginx": "nginx -c {folder}/config -g 'daemon off;'",
    "caddy": "caddy run --adapter caddyfile --config {folder}/config",
}


def proxy_of(name, folder, port):
    """nginx or Caddy as the guide has it, but with an address and times of the test."""
    config = re.search(f"```{name}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    config = re.sub(r"\b(10|30)s\b", "1s", config).replace("127.0.0.1:8000", f"127.0.0.1:{port}")
    if name == "nginx":
        config = re.sub(r"^ *(ssl_|server_name).*\n", "", config, flags=re.MULTILINE)
        config = config.replace("listen 443 ssl", "listen 127.0.0.1:PORT")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        config += "access_log off;" + "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        config = f"pid {folder}/pid; error_log {folder}/error; events {{}} http {{ {config} }}"
    else:
        config = config.replace("spam.example.org", "http://127.0.0.1:PORT").replace("{\n", "{\n    admin off\n", 1)
    (folder / "config").write_text(config, encoding="utf-8")
    return servers.running(["sh", "-c", f"sed -i s/PORT/{{port}}/ {{folder}}/config && exec {RUN[name]}"], folder)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_slow_heads_are_the_proxys(serve, name, tmp_path):
    try:
        servers.need(name)
    except servers.Missing as error:
        pytest.skip(str(error))
    served = serve()
    with proxy_of(name, tmp_path, served.port) as proxy, strangers(proxy.port, SLOW_HEADS, 20) as connections:
        answer = httpx.post(f"http://127.0.0.1:{proxy.port}/predict", json={"text": "x"})
        assert (answer.status_code, answer.json()["label"]) == (200, None)
        for connection in connections:
            connection.settimeout(20)
            with suppress(ConnectionError):
                while connection.recv(1_000):
                    pass
