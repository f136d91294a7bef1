import itertools
import json

import pytest
from reading import rest, texts

from stream_pegasos.streams import Answer, StreamError, of_any_server, open_sink, open_source
from stream_pegasos.streams.answer import COLUMNS
from stream_pegasos.streams.opening import is_same_stream

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin = pytest.importorskip("confluent_kafka.admin")

numbers = itertools.count()


class Topic:
    """A topic of its own for each test."""

    def __init__(self, server, n_partitions, name=None):
        self.server, self.name = server, name or f"mail{next(numbers)}"
        self.address = f"kafka://{server}/{self.name}?fetch.wait.max.ms=10"
        self._producer = kafka.Producer({"bootstrap.servers": server, "log_level": 0})
        self.admin = admin.AdminClient({"bootstrap.servers": server, "log_level": 0})
        if n_partitions is None:
            # The broker makes the topic when it is asked about it.
            self._producer.list_topics(self.name, timeout=60)
        else:
            self.admin.create_topics([admin.NewTopic(self.name, n_partitions, 1)])[self.name].result(10)

    def put(self, *values, partition=0, key=None):
        for value in values:
            self._producer.produce(self.name, value, key, partition)
        assert self._producer.flush(10) == 0

    def add(self, *texts, partition=0, **fields):
        self.put(*(json.dumps({"text": text, **fields}) for text in texts), partition=partition)

    def committed(self, group):
        request = [kafka.ConsumerGroupTopicPartitions(group)]
        found = self.admin.list_consumer_group_offsets(request)[group].result(10).topic_partitions
        return {entry.partition: entry.offset for entry in found if entry.topic == self.name}


@pytest.fixture
def topic(kafka_server):
    return Topic(f"127.0.0.1:{kafka_server.port}", 2)


@pytest.fixture(scope="module")
def forgetful_server():
    """A broker inside the client library, which keeps only the newest 5 MB of each partition."""
    client = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    [broker] = client.list_topics(timeout=60).brokers.values()
    yield f"{broker.host}:{broker.port}"
    del client


def at(offsets):
    """A position in any cluster."""
    return {"server": None, "offsets": offsets}


def test_examples(topic):
    topic.put(b'{"text": "win", "label": "spam", "id": 7}', key=b"key")
    topic.put(b'{"text": "see you"}', key=b"m8")
    topic.put(b'{"text": "later"}', key=b"\xff")
    batches, bad, events = rest(topic.address)
    assert [tuple(example) for batch in batches for example in batch.examples] == [
        ("win", "spam", 1.0, 0, 7, None, None),
        ("see you", None, 1.0, 0, "m8", None, None),
        ("later", None, 1.0, 0, None, None, None),
    ]
    assert batches[-1].position == {"server": "cluster test", "offsets": {"0": 3}}
    assert bad == events == []


def test_a_position_is_one_of_its_cluster(topic, forgetful_server):
    """Which the brokers tell: nothing is taken before."""
    topic.add("a", "b", "c")
    [*_, last] = rest(topic.address)[0]
    position = {**last.position, "offsets": {"0": 2, "1": 0}}
    assert texts(rest(topic.address, position)[0]) == ["c"]
    there = Topic(forgetful_server, None, topic.name)
    there.add("d", "e", "f")
    source = open_source(there.address, position, follow=False)
    with pytest.raises(StreamError, match="--allow-moved") as error:
        next(source.batches())
    cluster = there.admin.list_topics(timeout=60).cluster_id
    assert f"read at cluster test, and Kafka topic {topic.name} is at cluster {cluster};" in str(error.value)
    batches, _, _ = rest(there.address, of_any_server(position))
    assert texts(batches) == ["f"]
    assert batches[-1].position["server"] == f"cluster {cluster}"


def test_formats(topic):
    topic.put(b"spam\twin")
    assert texts(rest(topic.address, format="labelled-text")[0]) == ["win"]
    for format in ("csv", "tsv"):
        with pytest.raises(StreamError, match=f"the format of Kafka must be one of .*, got '{format}'"):
            open_source(topic.address, format=format)


def test_encodings(topic):
    """Each message is a whole, so that it may be UTF-16, too."""
    told = []
    topic.put('{"text": "£5"}'.encode("latin-1"))
    batches, *_ = rest(topic.address, on_windows_1252=lambda: told.append(1))
    assert texts(batches) == ["£5"] and told == [1]
    topic.put('{"text": "啊"}'.encode("utf-16"))
    batches, *_ = rest(topic.address, encoding="utf-16")
    assert texts(batches)[-1] == "啊"


def test_bad_messages(topic):
    topic.put(b"{", b"\xff", b"")
    topic.add("good")
    batches, bad, _ = rest(topic.address)
    assert texts(batches) == ["good"]
    assert [where for where, _ in bad] == [f"offset {offset} of partition 0" for offset in range(3)]
    assert bad[2][1] == "the message is empty"


@pytest.mark.parametrize("options", [{}, {"unreadable": True}, {"labels": True}, {"format": "labelled-text"}])
def test_tombstones_are_passed_over(topic, options):
    """Those of a compacted topic, also where bad messages stand in their place."""
    topic.put(None, None, key=b"m7")
    batches, bad, events = rest(topic.address, **options)
    assert texts(batches) == bad == events == []
    assert batches[-1].position["offsets"] == {"0": 2}


def test_a_position_knows_better_than_the_group(topic):
    """Also of a partition that it does not name, of which nothing was read."""
    topic.add("a", "b", "c")
    topic.add("d", partition=1)
    source = open_source(topic.address + "&group=readers", follow=False)
    assert sorted(texts(source.batches())) == ["a", "b", "c", "d"]
    source.commit({"server": "cluster test", "offsets": {"0": 2}})
    assert topic.committed("readers")[0] == 2
    assert sorted(texts(rest(topic.address + "&group=readers", at({"0": 1, "1": 1}))[0])) == ["b", "c"]
    assert sorted(texts(rest(topic.address + "&group=readers", at({"1": 1}))[0])) == ["a", "b", "c"]


def test_what_is_committed_while_a_source_closes_is_stored(topic, follow):
    topic.add("a")
    following = follow(topic.address + "&group=closing")
    following.wait_for("a")
    following.source.close()  # the thread that reads still waits for messages
    following.source.commit(following.batches[-1].position)
    assert topic.committed("closing") == {0: 1} and following.events == []


def test_a_run_notices_new_partitions_and_that_the_cluster_is_another(topic, follow, monkeypatch):
    from stream_pegasos.streams import kafka as module

    monkeypatch.setattr(module, "METADATA_INTERVAL", 0.1)
    topic.add("a")
    topic.add("b", partition=1)

    class Young(kafka.Consumer):
        """Knows of one partition at first."""

        n_partitions, cluster = 1, "test"

        def list_topics(self, *args, **kwargs):
            metadata = super().list_topics(*args, **kwargs)
            partitions = metadata.topics[topic.name].partitions
            metadata.topics[topic.name].partitions = dict(sorted(partitions.items())[: self.n_partitions])
            metadata.cluster_id = self.cluster
            return metadata

    monkeypatch.setattr(module, "Consumer", Young)
    following = follow(topic.address)
    following.wait_for("a")
    Young.n_partitions = 2
    following.wait_for("a", "b")
    Young.cluster = "another"
    following.wait(lambda: following.failure)
    assert "read at cluster test" in str(following.failure)


def test_messages_gone_by_retention(forgetful_server):
    topic = Topic(forgetful_server, None)
    topic.add(*(str(k) + "x" * 100_000 for k in range(80)))
    topic.add("short", partition=1)
    batches, _, events = rest(topic.address, at({"0": 3, "1": 0}))
    first = 80 - sum("x" in text for text in texts(batches))
    assert first > 3
    assert texts(batches).count("short") == 1
    assert len(events) == 1
    assert f"{first - 3} messages of partition 0 are gone" in events[0] and f"at offset {first}" in events[0]
    assert batches[-1].position["offsets"] == {"0": 80, "1": 1}


def test_a_topic_made_anew(forgetful_server):
    topic = Topic(forgetful_server, None)
    topic.add("a", "b")
    batches, _, events = rest(topic.address, at({"0": 10}))
    assert texts(batches) == ["a", "b"]
    assert len(events) == 1 and "ends before offset 10" in events[0]


def test_a_broker_that_is_away(kafka_relay, follow):
    topic = Topic(f"127.0.0.1:{kafka_relay.port}", 2)
    topic.add("a")
    following = follow(topic.address + "&group=readers&reconnect.backoff.max.ms=100")
    following.wait_for("a")
    kafka_relay.close()
    following.wait(lambda: following.events)
    following.source.commit(at({"0": 1}))  # returns at once
    kafka_relay.open()
    following.wait(lambda: len(following.events) == 2)
    again = Topic(topic.server, None, topic.name)  # whose connections are new
    again.add("b", partition=1)
    following.wait_for("a", "b")
    following.wait(lambda: again.committed("readers").get(0) == 1)
    assert [event.partition(" (")[0] for event in following.events] == [
        f"Kafka topic {topic.name}: the broker cannot be reached",
        f"Kafka topic {topic.name}: the broker can be reached again",
    ]


def test_closing_while_the_broker_is_away(follow, monkeypatch):
    from stream_pegasos.streams import kafka as module

    waits = []

    class Timed(kafka.Consumer):
        """Notes how long each call may wait."""

        def list_topics(self, topic, timeout):
            waits.append(timeout)
            return super().list_topics(topic, timeout=timeout)

        def consume(self, n, timeout):
            waits.append(timeout)
            return super().consume(n, timeout)

    monkeypatch.setattr(module, "Consumer", Timed)
    following = follow("kafka://127.0.0.1:1/mail?group=readers")
    following.wait(lambda: following.events)
    assert "cannot be reached" in following.events[0] and "Connection refused" in following.events[0]
    following.source.close()
    running = len(waits) - 1
    following.stop()
    assert sum(waits[running:]) < 1.0
    assert following.failure is None
    following.source.commit(at({"0": 1}))
    assert "offsets of group readers cannot be stored" in following.events[-1]


def test_an_unknown_topic(topic):
    with pytest.raises(StreamError, match=r"(?i)unknown topic"):
        rest(topic.address.replace("?", "x?"))


def test_sink(topic):
    sink = open_sink(topic.address)
    said = Answer(7, "spam", 0.75, {"ham": 0.25, "spam": 0.75}, 1.5)
    sink.send([said, Answer(None, None, None, error="no field 'text'"), Answer("\udc80", True, 0.5)])
    sink.send([])
    sink.close()
    consumer = kafka.Consumer({"bootstrap.servers": topic.server, "group.id": "test", "log_level": 0})
    consumer.assign([kafka.TopicPartition(topic.name, partition, 0) for partition in (0, 1)])
    messages = []
    while len(messages) < 3:
        messages += consumer.consume(3, 1)
    consumer.close()
    found = {message.key(): json.loads(message.value()) for message in messages}
    nothing = dict.fromkeys(COLUMNS)
    assert found == {
        b"7": dict(zip(COLUMNS, said, strict=False)),
        None: {**nothing, "error": "no field 'text'"},
        b"\xed\xb2\x80": {**nothing, "id": "\udc80", "label": True, "probability": 0.5},
    }


def test_a_sink_that_cannot_deliver():
    sink = open_sink("kafka://127.0.0.1:1/mail?message.timeout.ms=300")
    with pytest.raises(OSError, match="2 of 2 answers not delivered"):
        sink.send([Answer(1, 1, 0.5), Answer(2, 1, 0.5)])
    sink.close()


def test_a_topic_of_one_cluster_is_the_same_at_all_its_brokers(monkeypatch):
    client = kafka.Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "none", "log_level": 0})
    one, other = (f"{each.host}:{each.port}" for each in client.list_topics(timeout=60).brokers.values())
    assert is_same_stream(f"kafka://{one}/m", f"kafka://{other}/m")
    monkeypatch.setattr("stream_pegasos.streams.kafka._COMMIT_TIMEOUT", 0.2)
    assert not is_same_stream(f"kafka://{one}/m", "kafka://127.0.0.1:1/m")


def test_a_position_tells_the_messages_behind_the_end_of_each_partition(topic, follow, monkeypatch):
    monkeypatch.setattr("stream_pegasos.streams.kafka.ENDS_INTERVAL", 0.0)
    topic.add("a", "b", "c")
    topic.add("d", partition=1)
    source = (following := follow(topic.address)).source
    following.wait(lambda: source.lag(at({"0": 1, "1": 1})) == ("messages", {"partition 0": 2, "partition 1": 0}))
    topic.add("e", "f", partition=1)
    following.wait(lambda: str(source.lag(at({"0": 3}))) == "partition 0: 0, partition 1: 0 messages behind")
    following.wait(lambda: source.lag(at({"0": 0, "1": 1})).behind == {"partition 0": 3, "partition 1": 2})
