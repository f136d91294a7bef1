"""A topic that several runs share."""

import threading
from functools import partial

import kill
import kill_shared
import pytest
from running import wait

from stream_pegasos.streams import StreamError, open_source

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


def test_what_cannot_be_shared():
    with pytest.raises(StreamError, match=r"give kafka://…/mail\?group=NAME"):
        open_source("kafka://localhost/mail", share=True)
    with pytest.raises(StreamError, match="strategy must be range or roundrobin"):
        open_source("kafka://localhost/mail?group=g&partition.assignment.strategy=cooperative-sticky", share=True)
    for address in ("mail.jsonl", "-", "redis://localhost/mail?group=readers"):
        with pytest.raises(StreamError, match="a shared stream must be one as kafka:"):
            open_source(address, share=True)


def put_texts(topic, numbers):
    """One in each partition in turn."""
    producer = kafka.Producer({"bootstrap.servers": topic.server, "log_level": 0})
    for number in numbers:
        producer.produce("shared", b'{"text": "%d"}' % number, partition=number % topic.n_partitions)
    assert producer.flush(10) == 0


class Member:
    """A member of a group that keeps what it reads; the offsets are those of all members."""

    def __init__(self, server, offsets):
        self.source = open_source(f"kafka://{server}/shared?group=g&{kill_shared.SETTINGS}", share=True)
        self.offsets, self.texts = offsets, []
        self.source.join(self.hand_over)
        self._thread = threading.Thread(target=self.read)
        self._thread.start()

    def hand_over(self):
        return {"server": None, "offsets": {**self.offsets}}

    def read(self):
        for batch in self.source.batches():
            self.texts += [example.x for example in batch.examples]
            self.offsets |= batch.position["offsets"]

    def n_partitions(self):
        lag = self.source.lag(None)
        return len(lag.behind) if lag else 0

    def leave(self):
        self.source.close()
        self._thread.join()
        self.source.commit(self.hand_over())
        self.source.leave()


@pytest.mark.heavy
def test_partitions_go_on_with_another_member_where_the_last_one_was():
    """Where the offsets that they share say, whatever was committed."""
    with kill_shared.broker_of_client() as topic:
        put = partial(put_texts, topic)
        offsets = {}
        one = Member(topic.server, offsets)
        put(range(40))
        wait(lambda: len(one.texts) == 40)
        other = Member(topic.server, offsets)
        wait(lambda: one.n_partitions() == other.n_partitions() == 2)
        put(range(40, 80))
        wait(lambda: len(one.texts) + len(other.texts) == 80)
        assert len(other.texts) == 20
        one.leave()
        put(range(80, 120))
        wait(lambda: len(one.texts) + len(other.texts) == 120)
        other.leave()
        assert sorted(one.texts + other.texts, key=int) == [str(i) for i in range(120)]


@pytest.mark.heavy
def test_runs_that_are_killed_learn_each_message_once(tmp_path):
    assert kill_shared.disturb_shared(tmp_path, kill.records(10_000), 2, 3)
