import httpx
import pytest

from stream_pegasos.common.host_addresses import HostAddress, is_loopback, key_for

KEYS = "SOME"


def key(monkeypatch, address, owner, value="secret"):
    for name, given in ("KEY", value), ("HOST", owner):
        monkeypatch.setenv(f"{KEYS}_{name}", given)
    return key_for(HostAddress.read(address, "url", KEYS), KEYS)


@pytest.mark.parametrize(
    ("address", "owner", "is_for"),
    [
        ("https://a.org/x", "a.org", True),
        ("https://A.org:8443/x", "a.ORG", True),
        ("https://a.org:8443/x", "a.org:8443", True),
        ("https://a.org/x", "a.org:443", True),
        ("https://a.org:8443/x", "a.org:443", False),
        ("https://b.org/x", "a.org", False),
        ("https://a.org.b.org/x", "a.org", False),
        ("https://b.a.org/x", "a.org", False),
        ("https://b.org/a.org", "a.org", False),
        ("https://b.org#a.org", "a.org", False),
        ("http://b.org/x", "a.org", False),
        ("http://127.0.0.1:80/x", "127.0.0.1", True),
        ("http://[::1]:80/x", "[::1]", True),
        ("http://localhost/x", "localhost:80", True),
    ],
)
def test_a_key_is_for_its_host(monkeypatch, address, owner, is_for):
    assert key(monkeypatch, address, owner) == ("secret" if is_for else None)
    assert key(monkeypatch, address, owner, value="") is None
    assert HostAddress.read(address, "url", KEYS).host == httpx.URL(address).raw_host.decode().join(
        ("[", "]") if "[" in address else ("", "")
    )


@pytest.mark.parametrize(
    ("address", "owner", "match"),
    [
        ("https://a.org/x", "", "SOME_KEY is set, .* set SOME_HOST, as 'a.org'"),
        ("https://a.org/x", "https://a.org", "SOME_HOST must be a host"),
        ("http://a.org/x", "a.org", "over plain http"),
        ("http://127.0.0.1.a.org/x", "127.0.0.1.a.org", "over plain http"),
        ("http://10.0.0.1/x", "10.0.0.1", "over plain http"),
    ],
)
def test_a_key_that_would_be_lost_is_an_error(monkeypatch, address, owner, match):
    with pytest.raises(ValueError, match=match):
        key(monkeypatch, address, owner)


WRONG = ["", "#", "#m", "/x", "a:x/", "a:0/", "a:99999/", "a b/", "a\n/", "a,b/", "[::1/", r"a\.b/"]


@pytest.mark.parametrize("rest", [*WRONG, "me@a/", "me:secret@a/", "@a", r"a\@b/"])
def test_an_address_that_may_be_read_in_two_ways_is_refused(rest):
    with pytest.raises(ValueError):
        HostAddress.read(f"http://{rest}", "url", KEYS)


def test_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "10.0.0.1", "localhost.a.org", "127.0.0.1.a.org", "2130706433", "")))
