import builtins
import io
import sys
import threading

import pytest

from stream_pegasos.streams import Batch, Example, StreamError, open_sink, open_source
from stream_pegasos.streams.schemes import parse_address
from stream_pegasos.streams.sources import batched


def stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))


def test_standard_input_is_answered_line_by_line_and_has_no_positions(monkeypatch):
    stdin(monkeypatch, b'{"text": "win", "label": 1}\n\n{"text": "see you"}\n')
    source = open_source("-")
    expected = [Example("win", 1, line=1), Example("see you", None, line=3)]
    assert list(source.batches()) == [Batch([example], None) for example in expected]
    source.commit(None)


def test_closing_standard_input(monkeypatch):
    stdin(monkeypatch, b'{"text": "a"}\n{"text": "b"}\n')
    source = open_source("-")
    batches = source.batches()
    assert next(batches).examples[0].x == "a"
    source.close()
    assert list(batches) == []


def test_labels_do_not_come_from_standard_input():
    with pytest.raises(StreamError, match="labels cannot come from standard input"):
        open_source("-", labels=True)


def test_an_unknown_ending():
    with pytest.raises(StreamError, match=r"mail\.log: no such file or folder, and no known format has the extension"):
        open_source("mail.log")


def test_addresses():
    address = parse_address("kafka://a:1,b:2/mail?group=x&fetch.wait.max.ms=10")
    assert address == ("kafka", "a:1,b:2", "mail", {"group": "x", "fetch.wait.max.ms": "10"}, "9092")
    assert parse_address("rediss://me:p%40ss@h/the%20mail").path == "the mail"


ADDRESSES = {
    "amqp://me:secret@host/mail": "unknown address amqp://",
    "kafka://host": "must have a host and a name",
    "redis://me:secret@host": "must have a host and a name",
    "redis:///mail": "must have a host and a name",
    "kafka://[x/y": "the address cannot be read",
    "kafka://host/mail?colour=red": "unknown option 'colour'",
    "kafka://host/mail?no.such=1": "settings of Kafka: No such configuration",
    "kafka://host/mail?group": "options after",
    "redis://host/mail?db=x": "db must be an integer of at least 0, got 'x'",
    "redis://host/mail?colour=red": "unknown option 'colour'",
    "redis://host:port/mail": "address of Redis",
    "redis://host/mail?ssl_cert_reqs=none": "unknown option 'ssl_cert_reqs'",
    "rediss://host/mail?ssl_colour=red": "address of Redis: .*ssl_colour",
    "rediss://host/mail?ssl_cert_reqs=red": "address of Redis: .*red",
    "rediss://host/mail?ssl_ca_certs=/nowhere": "ssl_ca_certs must be a file, got '/nowhere'",
}


@pytest.mark.parametrize(("address", "reason"), ADDRESSES.items(), ids=ADDRESSES)
def test_bad_addresses_tell_no_password(address, reason):
    pytest.importorskip("confluent_kafka" if address.startswith("kafka") else "redis")
    for opened in (open_source, open_sink):
        with pytest.raises(StreamError, match=reason) as caught:
            opened(address)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("scheme", "library"), [("kafka", "confluent_kafka"), ("redis", "redis")])
def test_a_library_that_is_missing(monkeypatch, scheme, library):
    monkeypatch.delitem(sys.modules, f"stream_pegasos.streams.{scheme}", raising=False)
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for opened in (open_source, open_sink):
        with pytest.raises(ImportError, match=rf"needs {library}: .* -m pip install '{library.replace('_', '-')}>="):
            opened(f"{scheme}://host/mail")


def test_batched():
    at = 0

    def records():
        nonlocal at
        for at in range(1, 1101):
            yield None if at % 100 == 0 else Example(str(at), None)

    batches = list(batched(records(), lambda: at))
    assert [len(batch.examples) for batch in batches] == [512, 512, 65]
    for batch in batches:
        assert batch.position - int(batch.examples[-1].x) in (0, 1)
    long = batched((Example("x" * 100_000, None) for _ in range(30)), lambda: at)
    assert [len(batch.examples) for batch in long] == [11, 11, 8]
    assert list(batched([], lambda: 1)) == []
    assert list(batched([None], lambda: 1)) == [Batch([], 1)]


def test_a_signal_may_close_a_source_in_any_thread(tmp_path):
    source = open_source(tmp_path / "mail.jsonl")
    reading = threading.Thread(target=list, args=[source.batches()])
    reading.start()
    source.close()
    reading.join(0.5)
    assert not reading.is_alive()
