"""What every source promises that is read while it grows: a file, a topic of Kafka, a stream of Redis, a pipe."""

import io
import itertools
import json
import sys
from collections import Counter

import pytest
from reading import rest, texts

from stream_pegasos import cli
from stream_pegasos.streams import StreamError, open_source, sources

numbers = itertools.count()


class File:
    def __init__(self, request):
        self.address = request.getfixturevalue("tmp_path") / "mail.jsonl"
        self.address.touch()

    def add(self, **fields):
        with self.address.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fields) + "\n")


class Topic:
    """Of Kafka, with texts in two partitions in turn."""

    def __init__(self, request):
        kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
        admin = pytest.importorskip("confluent_kafka.admin")
        server, self.name = f"127.0.0.1:{request.getfixturevalue('kafka_server').port}", f"live{next(numbers)}"
        self.address, self.n = f"kafka://{server}/{self.name}?fetch.wait.max.ms=10", 0
        self.as_a_group = f"{self.address}&group=readers"
        self._producer = kafka.Producer({"bootstrap.servers": server, "log_level": 0})
        client = admin.AdminClient({"bootstrap.servers": server, "log_level": 0})
        client.create_topics([admin.NewTopic(self.name, 2, 1)])[self.name].result(10)

    def add(self, **fields):
        self._producer.produce(self.name, json.dumps(fields), partition=self.n % 2 if "text" in fields else 0)
        assert self._producer.flush(10) == 0
        self.n += 1


class Stream:
    """Of Redis."""

    def __init__(self, request):
        self._client = request.getfixturevalue("redis_client")
        self.address = f"redis://127.0.0.1:{request.getfixturevalue('redis_server').port}/mail"
        self.as_a_group = f"{self.address}?group=readers"

    def add(self, **fields):
        self._client.xadd("mail", fields)


class Pipe:
    """Standard input, which cannot be read again: each time it is opened, all comes anew."""

    address = "-"

    def __init__(self, request):
        self._data = b""
        request.getfixturevalue("monkeypatch").setattr(sys, "stdin", self)

    def add(self, **fields):
        self._data += json.dumps(fields).encode() + b"\n"

    def detach(self):
        return io.BytesIO(self._data)


@pytest.fixture(params=[File, Topic, Stream, Pipe])
def any_live(request):
    return request.param(request)


@pytest.fixture(params=[File, Topic, Stream])
def live(request):
    """A source that can go back."""
    return request.param(request)


@pytest.fixture(params=[Topic, Stream])
def live_with_groups(request):
    return request.param(request)


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_BATCH", 10)


def test_resuming_at_every_position(live, small_batches):
    for i in range(25):
        live.add(text=str(i))
    batches, bad, events = rest(live.address)
    found = texts(batches)
    assert bad == events == [] and max(len(batch.examples) for batch in batches) <= 10
    for turn in (0, 1):  # each partition in its order
        assert [text for text in found if int(text) % 2 == turn] == [str(i) for i in range(turn, 25, 2)]
    for k, batch in enumerate(batches):
        position = json.loads(json.dumps(batch.position))
        assert Counter(texts(batches[: k + 1]) + texts(rest(live.address, position)[0])) == Counter(found)


def test_positions_that_are_none(live):
    live.add(text="a")
    [batch] = rest(live.address)[0]
    bad = [3, "x", "1-1", {}, {"0": 1}]
    for name in batch.position:
        without = {other: value for other, value in batch.position.items() if other != name}
        bad += [without, *({**without, name: value} for value in (-1, 1.5, [0], {"0": -1}, {"0": "1"}))]
    for position in bad:
        with pytest.raises(StreamError, match="a position in a"):
            open_source(live.address, position)


def test_following(live, follow):
    live.add(text="a")
    following = follow(live.address)
    following.wait_for("a")
    live.add(text="b")
    following.wait_for("a", "b")
    live.add(text="c")
    following.wait_for("a", "b", "c")
    assert following.events == following.bad == []
    following.stop()  # and not only once something comes


def test_labels(live):
    for fields in ({"id": "m7", "label": "spam"}, {"label": "spam"}, {"id": "m8"}, {"id": "m9", "label": "ham"}):
        live.add(**fields)
    batches, bad, _ = rest(live.address, labels=True)
    found = [(example.x, example.y, example.id) for batch in batches for example in batch.examples]
    assert found == [("", "spam", "m7"), ("", "ham", "m9")]
    assert [reason for _, reason in bad] == ["no id in the field 'id'", "no field 'label'"]


def test_messages_of_fields(any_live):
    any_live.add(subject="a", sender="x", label="ham")
    any_live.add(sender="y", text="b")
    any_live.add(queue="z")
    batches, bad, _ = rest(any_live.address, fields=["subject", "sender"])
    found = {(*example.x.items(), example.y) for batch in batches for example in batch.examples}
    assert found == {(("subject", "a"), ("sender", "x"), "ham"), (("sender", "y"), None)}
    assert [reason.partition(";")[0] for _, reason in bad] == ["no field 'subject' or 'sender'"]


def test_what_cannot_be_read_is_reported_and_passed_over(any_live):
    """Or stands in its place; or ends the stream, where nobody takes reports."""
    for fields in ({"id": "7"}, {"text": "good"}):
        any_live.add(**fields)
    batches, [(where, reason)], _ = rest(any_live.address)
    assert texts(batches) == ["good"] and reason.startswith("no field 'text'")
    batches, bad, _ = rest(any_live.address, unreadable=True)
    found = {(each.x, each.id if each.fault else None, each.fault) for batch in batches for each in batch.examples}
    assert found == {("", "7", reason), ("good", None, None)} and bad == [(where, reason)]
    with pytest.raises(StreamError, match=f"{where}: no field 'text'"):
        list(open_source(any_live.address, follow=False).batches())


def test_groups(live_with_groups, small_batches):
    """The place of a group is that of the last message that was committed; a checkpoint knows better than the group."""
    live, address = live_with_groups, live_with_groups.as_a_group
    for i in range(25):
        live.add(text=str(i))
    source = open_source(address, follow=False)
    batches = list(source.batches())
    assert Counter(texts(rest(address)[0])) == Counter(texts(batches))  # nothing was committed yet
    source.commit(batches[1].position)
    left = Counter(texts(batches[2:]))
    assert left and Counter(texts(rest(address)[0])) == left
    source.commit(batches[-1].position)
    assert rest(address)[0] == []
    assert Counter(texts(rest(address, batches[-2].position)[0])) == Counter(texts(batches[-1:]))


@pytest.mark.parametrize("options", [[], ["--checkpoint", "model"], ["--limit", "25"]])
def test_a_run_leaves_nothing_to_be_read_again(live_with_groups, options, tmp_path, monkeypatch, capsys):
    """By a run without a checkpoint; one that goes on from its checkpoint reads what comes since."""
    monkeypatch.chdir(tmp_path)

    def run(*options):
        command = ["stream-pegasos", "run", live_with_groups.as_a_group, "--no-follow", *options]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        return capsys.readouterr()

    for i in range(25):
        live_with_groups.add(text=str(i), label=i % 2)
    assert run(*options).out.count("\n") == 25
    out, err = run()
    assert out == "" and "its group has read all that is there" in err
    live_with_groups.add(text="more")
    assert run(*options).out.count("\n") == 1
