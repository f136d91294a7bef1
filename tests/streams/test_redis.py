import sys
import time
from contextlib import ExitStack, contextmanager

import pytest
import servers
from reading import rest, texts
from running import wait

from stream_pegasos import TextClassifier, cli
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.streams import Answer, StreamError, of_any_server, open_sink, open_source, sources
from stream_pegasos.streams import redis as redis_module
from stream_pegasos.streams.answer import COLUMNS


@pytest.fixture
def address(redis_server, redis_client):
    return f"redis://127.0.0.1:{redis_server.port}/mail"


def add(client, *texts, **fields):
    return [client.xadd("mail", {"text": text, **fields}).decode() for text in texts]


def test_examples(address, redis_client):
    [first] = add(redis_client, "win", label="spam")
    [second] = add(redis_client, "see you", id="m7")
    batches, bad, events = rest(address)
    assert [tuple(example) for batch in batches for example in batch.examples] == [
        ("win", "spam", 1.0, 0, first, None, None),
        ("see you", None, 1.0, 0, "m7", None, None),
    ]
    assert batches[-1].position == {"server": f"{address.split('/')[2]}/0", "id": second}
    assert bad == events == []


def test_a_position_is_one_of_its_server(address, redis_server, redis_client):
    add(redis_client, "a", "b")
    [batch, *_] = rest(address)[0]
    position = {**batch.position, "id": add(redis_client, "c")[0]}
    add(redis_client, "d")
    assert texts(rest(address + "?db=0&group=g", position)[0]) == ["d"]
    for other in (address + "?db=5", address.replace("127.0.0.1", "localhost")):
        with pytest.raises(StreamError, match="--allow-moved") as error:
            open_source(other, position)
        server = other.split("/")[2]
        assert f"read at 127.0.0.1:{redis_server.port}/0, and Redis stream mail is at {server}/" in str(error.value)
        assert "\n" not in str(error.value)
    moved = address.replace("127.0.0.1", "localhost")
    batches, _, _ = rest(moved, of_any_server(position))
    assert texts(batches) == ["d"]
    assert batches[-1].position["server"] == f"localhost:{redis_server.port}/0"


def test_a_checkpoint_is_not_gone_on_from_at_another_server(
    address, redis_server, redis_client, tmp_path, monkeypatch, capsys
):
    """Unless the operator says so; one that names no server is, and names it from then on."""
    redis, checkpoint = pytest.importorskip("redis"), tmp_path / "model"

    def run(address, *options):
        command = ["stream-pegasos", "run", address, "--checkpoint", str(checkpoint), "--no-follow", *options]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err

    def learned():
        model, progress = load_with_progress(checkpoint)
        return model.n_iterations, progress["position"]["server"], progress["label_position"]["server"]

    late = address.replace("mail", "labels")
    entry = add(redis_client, "win", "see you", label="ham")[0]
    redis_client.xadd("labels", {"id": "m7", "label": "ham"})
    positions = {"position": {"server": None, "id": entry}, "label_position": {"server": None, "id": "1-1"}}
    of_any = {"sources": ["Redis stream mail", "Redis stream labels"], **positions}
    TextClassifier().snapshot(of_any).write(checkpoint)
    assert run(address, "--label-topic", late)[0] == 0
    here, there = (f"{address.split('/')[2]}/{db}" for db in (0, 5))
    assert learned() == (1, here, here)
    with redis.Redis(port=redis_server.port, db=5, protocol=2) as client:
        add(client, "later", label="ham")
        client.xadd("labels", {"id": "m8", "label": "ham"})
    for mail, labels, name in (("?db=5", "", "mail"), ("", "?db=5", "labels")):
        code, err = run(address + mail, "--label-topic", late + labels)
        assert code == 1
        [line] = err.splitlines()[1:]
        assert (
            f"belongs to Redis stream {name}: the position was read at {here}, and Redis stream {name} is at {there};"
            in line
        )
        assert line.endswith("--allow-moved")
        assert learned() == (1, here, here)
    assert run(address + "?db=5", "--label-topic", late + "?db=5", "--allow-moved")[0] == 0
    assert learned() == (2, there, there)
    assert run(address + "?db=5", "--label-topic", late + "?db=5")[0] == 0


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("redis://Mail.Example/mail", "mail.example:6379/0"),
        ("redis://mail.example:6379/mail?db=0&group=g", "mail.example:6379/0"),
        ("redis://someone:secret@mail.example/mail?db=3", "mail.example:6379/3"),
        ("redis://:secret@[::1]:7000/mail", "[::1]:7000/0"),
    ],
)
def test_how_a_server_is_known(address, server):
    pytest.importorskip("redis")
    open_source(address, {"server": server, "id": "1-1"})
    with pytest.raises(StreamError, match="was read at other:1/0, and Redis stream mail is at") as error:
        open_source(address, {"server": "other:1/0", "id": "1-1"})
    assert f"is at {server};" in str(error.value)
    assert "secret" not in str(error.value)


def test_bad_entries(address, redis_client):
    first = redis_client.xadd("mail", {"subject": "win"}).decode()
    second = redis_client.xadd("mail", {"text": b"\xff"}).decode()
    add(redis_client, "good")
    told = []
    assert texts(rest(address, on_windows_1252=lambda: told.append(1))[0]) == ["\xff", "good"] and told == [1]
    batches, bad, _ = rest(address, encoding_errors="strict")
    assert texts(batches) == ["good"]
    assert [where for where, _ in bad] == [f"entry {first}", f"entry {second}"]
    assert bad[0][1] == "no field 'text'; its fields: subject" and "not UTF-8" in bad[1][1]
    batches, *_ = rest(address, unreadable=True, encoding_errors="strict")
    assert [each.id for batch in batches for each in batch.examples][:2] == [first, second]


def position(address, entry):
    return {"server": f"{address.split('/')[2]}/0", "id": entry}


def test_a_group_of_a_stream_that_is_not_there_yet(address, redis_client, follow):
    following = follow(address + "?group=readers")
    following.wait(lambda: redis_client.exists("mail"))
    add(redis_client, "a")
    following.wait_for("a")
    redis_client.delete("mail")
    for _ in range(2):
        following.source.commit(position(address, "1-1"))
    assert sum("cannot be stored" in event for event in following.events) == 1


def test_a_group_that_others_read_is_refused(address, redis_client):
    """Its place stays where it is."""
    first, *_ = add(redis_client, *"abc")
    redis_client.xgroup_create("mail", "team", "0")
    redis_client.xreadgroup("team", "worker", {"mail": ">"}, count=1)
    with pytest.raises(StreamError, match=r"got team with consumers \(1\) and pending entries \(1\), .* group=NAME"):
        rest(address + "?group=team")
    redis_client.xack("mail", "team", first)
    with pytest.raises(StreamError, match=r"pending entries \(0\)"):
        rest(address + "?group=team", position(address, first))
    [(_, entries)] = redis_client.xreadgroup("team", "worker", {"mail": ">"})
    assert [fields[b"text"] for _, fields in entries] == [b"b", b"c"]


def test_a_group_that_others_begin_to_read_is_not_moved(address, redis_client, follow):
    add(redis_client, "a")
    following = follow(address + "?group=readers")
    following.wait_for("a")
    redis_client.xgroup_createconsumer("mail", "readers", "worker")
    for _ in range(2):
        following.source.commit(following.batches[-1].position)
    [(_, entries)] = redis_client.xreadgroup("readers", "worker", {"mail": ">"})
    redis_client.xack("mail", "readers", entries[0][0])
    redis_client.xgroup_delconsumer("mail", "readers", "worker")
    following.source.commit(following.batches[-1].position)
    name = "Redis stream mail: the place of group readers"
    assert following.events == [
        f"{name} is not moved, as it has consumers (1) and pending entries (0)",
        f"{name} is stored again",
    ]


def test_the_server_tells_how_far_a_group_is_behind(address, redis_client, monkeypatch):
    """What was trimmed counts as read."""

    def told():
        [group] = redis_client.xinfo_groups("mail")
        return group["entries-read"], group["lag"]

    monkeypatch.setattr(sources, "LARGEST_BATCH", 10)
    add(redis_client, *map(str, range(30)))
    redis_client.xtrim("mail", maxlen=25, approximate=False)
    source = open_source(address + "?group=readers", follow=False)
    batches = [*source.batches()]
    n = 5
    for batch in batches:
        n += len(batch.examples)
        for _ in range(2):
            source.commit(batch.position)
            assert told() == (n, 30 - n)
    assert n == 30
    before = n - len(batches[-1].examples)
    for _ in range(2):  # at first the group is at another place
        add(redis_client, "more")
        n += 1
        source = open_source(address + "?group=readers", batches[-2].position, follow=False)
        [*_, last] = source.batches()
        source.commit(batches[-2].position)
        assert told() == (before, n - before)
    source.commit(last.position)
    assert told() == (32, 0)


def test_a_stream_that_is_not_there_or_is_made_anew_is_told_once(address, redis_client, follow, monkeypatch):
    monkeypatch.setattr("stream_pegasos.streams.redis._LOOK_INTERVAL", 0.05)
    following = follow(address)
    following.wait(lambda: following.events)
    add(redis_client, "a")
    following.wait_for("a")
    with redis_client.pipeline(transaction=True) as pipeline:
        pipeline.delete("mail")
        pipeline.xadd("mail", {"text": "anew"}, id="1-1")
        pipeline.execute()
    following.wait(lambda: len(following.events) > 1)
    redis_client.xadd("mail", {"text": "another"}, id="1-2")
    time.sleep(0.7)  # two more looks
    assert ["does not exist yet" in event for event in following.events] == [True, False]
    assert "ends before entry" in following.events[1]
    assert following.events[1].endswith("another checkpoint and group begin with the first")


def test_trimming_while_down(address, redis_client):
    ids = add(redis_client, *"abcdef")
    redis_client.xtrim("mail", maxlen=2, approximate=False)
    batches, _, events = rest(address, position(address, ids[1]))
    assert texts(batches) == ["e", "f"]
    assert len(events) == 1 and "was trimmed" in events[0] and ids[4] in events[0]
    assert rest(address, position(address, ids[4]))[2] == []
    redis_client.delete("mail")
    assert "does not exist any more" in rest(address, position(address, ids[1]))[2][0]
    redis_client.xadd("mail", {"text": "anew"}, id="1-1")
    assert "before entry" in rest(address, position(address, ids[1]))[2][0]


def test_a_server_that_is_killed_and_comes_back(address, redis_server, redis_client, follow):
    add(redis_client, "a")
    following = follow(address + "?group=readers")
    following.wait_for("a")
    redis_server.kill()
    following.wait(lambda: following.events)
    following.source.commit(following.batches[-1].position)
    redis_server.start()
    add(redis_client, "b")
    following.wait_for("a", "b")
    assert [event.partition(" (")[0] for event in following.events] == [
        "Redis stream mail: the server cannot be reached",
        "Redis stream mail: the place of group readers cannot be stored",
        "Redis stream mail: the server can be reached again",
    ]


def test_closing_while_the_server_is_away(follow, redis_server, redis_client, address):
    redis_server.kill()
    following = follow(address)
    following.wait(lambda: following.events)
    following.stop()
    assert following.failure is None
    redis_server.start()


def test_what_no_waiting_can_heal(address, redis_client):
    redis_client.set("mail", "no stream")
    with pytest.raises(StreamError, match="WRONGTYPE"):
        rest(address)
    with pytest.raises(StreamError, match="WRONGTYPE"):
        rest(address + "?group=readers")
    with pytest.raises(StreamError, match=r"(?i)auth|password"):
        rest(address.replace("redis://", "redis://someone:secret@"))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--replicaof", "127.0.0.1", "1"], "read only replica. Give the address of the master"),
        (["--sentinel"], "a Sentinel has no streams: give the address of the master"),
    ],
)
def test_a_replica_and_a_sentinel_name_the_way_out(tmp_path, options, reason):
    pytest.importorskip("redis")
    with server_like(tmp_path, *options) as server:
        address = f"redis://127.0.0.1:{server.port}/mail"
        with pytest.raises(StreamError, match=reason):
            rest(f"{address}?group=readers", position(address, "1-1"))
        with pytest.raises(OSError, match=reason) as error:
            open_sink(address).send([Answer(1, 1, 0.5)])
        assert "pipeline" not in str(error.value)


@contextmanager
def server_like(folder, *options):
    try:
        with servers.redis_like(folder, *options) as server:
            yield server
    except servers.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.heavy
def test_a_cluster_is_waited_for_and_the_node_that_has_the_stream_is_named(tmp_path, follow):
    pytest.importorskip("redis")
    with ExitStack() as end:
        options = [("--cluster-enabled", "yes", "--cluster-port", str(servers.free_port())) for _ in range(2)]
        one, other = (end.enter_context(server_like(tmp_path, *each)) for each in options)
        following = follow(f"redis://127.0.0.1:{one.port}/mail")
        following.wait(lambda: following.events)
        assert "cannot be reached (Hash slot not served)" in following.events[0]
        there = end.enter_context(redis_module.redis.Redis(port=other.port))
        there.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        there.execute_command("CLUSTER", "MEET", "127.0.0.1", one.port, options[0][-1])
        following.wait(lambda: following.failure)
        address = f"redis://127.0.0.1:{other.port}/mail"
        assert str(following.failure).endswith(f"another node of the cluster has it; give {address}")
        wait(lambda: there.cluster("info")["cluster_state"] == "ok")
        there.xadd("mail", {"text": "a"})
        assert texts(rest(f"{address}?group=readers")[0]) == ["a"]


@pytest.mark.parametrize("kind", ["cluster", "sentinel"])
def test_an_address_is_of_one_server(kind):
    with pytest.raises(StreamError, match="give that of the server which has it: redis://host/stream"):
        open_source(f"redis+{kind}://host/mail")


def test_tls(redis_tls_server, tmp_path, follow):
    server = f"rediss://:secret@127.0.0.1:{redis_tls_server.port}/mail"
    trusting = f"{server}?ssl_ca_certs={tmp_path / 'cert.pem'}"
    sink = open_sink(trusting)
    sink.send([Answer("m7", "spam", 0.5)])
    sink.close()
    [batch] = rest(trusting, text_field="id")[0]
    assert [(example.x, example.y) for example in batch.examples] == [("m7", "spam")]
    stranger = follow(server)
    stranger.wait(lambda: stranger.events)
    assert "CERTIFICATE_VERIFY_FAILED" in stranger.events[0]
    assert stranger.texts == []


def test_bad_arguments():
    pytest.importorskip("redis")
    with pytest.raises(StreamError, match="have fields"):
        open_source("redis://host/mail", format="jsonl")
    with pytest.raises(StreamError, match="maxlen must be an integer of at least 1, got '0'"):
        open_sink("redis://host/mail?maxlen=0")


def test_sink(address, redis_client):
    sink = open_sink(address + "?maxlen=100")
    said = Answer(7, "spam", 0.75, {"ham": 0.25, "spam": 0.75}, 1.5)
    sink.send([said, Answer(None, None, None, error="no field 'text'"), Answer("\udc80", True, 0.5)])
    sink.send([])
    fields = [fields for _, fields in redis_client.xrange("mail")]
    probabilities = b'{"ham": 0.25, "spam": 0.75}'
    names = [name.encode() for name in COLUMNS]
    assert fields[0] == dict(zip(names, [b"7", b"spam", b"0.75", probabilities, b"1.5", b""], strict=True))
    assert fields[1] == dict(zip(names, [b"", b"", b"", b"", b"", b"no field 'text'"], strict=True))
    assert fields[2][b"id"] == b"\xed\xb2\x80"
    sink.send([Answer(k, 1, 0.5) for k in range(1000)])
    # Trimming goes by whole nodes, of 100 entries by default.
    assert redis_client.xlen("mail") < 300
    redis_client.set("other", "no stream")
    sink.close()
    with pytest.raises(OSError, match="WRONGTYPE"):
        open_sink(address.replace("mail", "other")).send([Answer(1, 1, 0.5)])


@pytest.mark.heavy
def test_sink_whose_server_is_away_for_a_moment(address, redis_server, redis_client):
    sink = open_sink(address)
    sink.send([Answer(1, "a", 0.5)])
    redis_server.kill()
    redis_server.start()
    sink.send([Answer(2, "b", 0.5)])
    assert [fields[b"id"] for _, fields in redis_client.xrange("mail")] == [b"1", b"2"]
    redis_server.kill()
    with pytest.raises(OSError, match="cannot be delivered"):
        sink.send([Answer(3, "c", 0.5)])
    redis_server.start()
    sink.close()


@pytest.mark.parametrize("group", ["", "?group=g"])
def test_a_stream_that_does_not_exist_is_an_error_where_nothing_is_followed(group, monkeypatch):
    redis = pytest.importorskip("redis")
    monkeypatch.setattr(redis.Redis, "exists", lambda self, name: 0)
    source = open_source(f"redis://localhost/absent{group}", follow=False)
    with pytest.raises(StreamError, match="Redis stream absent does not exist"):
        [*source.batches()]


def test_a_position_tells_the_entries_behind_the_end(address, redis_client, monkeypatch):
    added = add(redis_client, *map(str, range(5)))
    source = open_source(address, follow=False)
    for at, id in enumerate(added, 1):
        assert source.lag({"server": None, "id": id}) == ("messages", {"": 5 - at})
    assert source.lag(None).behind == {"": 5}
    monkeypatch.setattr(redis_module, "MOST_COUNTED", 3)
    assert str(source.lag(None)) == "3 messages behind"
    assert (
        open_source(address.replace(address.split(":")[2].split("/")[0], "1")).lag(None) is None
    )  # where nobody answers
