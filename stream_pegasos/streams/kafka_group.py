"""A Kafka topic shared by several runs: each reads the partitions that the group assigns to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.example import Example, StreamError
from stream_pegasos.streams.kafka import METADATA_INTERVAL, KafkaSource, Partition
from stream_pegasos.streams.sources import HandOver, SourceSettings

__all__ = ["KafkaMember"]

# With these settings a member gives up all partitions before it gets others.
SETTINGS = {"partition.assignment.strategy": ("range", "roundrobin"), "group.protocol": ("classic",)}
LEAVE_TIMEOUT = 5.0  # seconds to wait for the end of reading
# The errors of a commit while partitions change owners; the new owner commits them.
_REBALANCING = {KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS, KafkaError.UNKNOWN_MEMBER_ID}


class KafkaMember(KafkaSource):
    """The partitions of a topic that are assigned to this member of a group.

    Before partitions are given up, and before new ones are begun, the reading thread calls `hand_over`. It returns when
    all examples read so far are in the checkpoint that the members share, with the position of that checkpoint. Reading
    of each new partition begins at this position.
    """

    def __init__(self, address: Address, settings: SourceSettings) -> None:
        super().__init__(address, settings)
        if self._group is None:
            raise StreamError(f"a topic is shared by the members of a group: give kafka://…/{self._topic}?group=NAME")
        for name, ways in SETTINGS.items():
            if (way := address.options.get(name, ways[0])) not in ways:
                raise StreamError(f"{name} must be {' or '.join(ways)} where runs share a topic, got {way!r}")
        self._partitions, self._is_resumed = {}, False
        self._hand_over: HandOver = lambda: None
        self._is_member, self._is_rejoining = False, threading.Event()
        self._n_rebalances = 0

    def join(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over

    def rejoin(self) -> None:
        self._is_rejoining.set()

    def commit(self, position: object) -> None:
        # The reading thread commits, or else `leave`: this thread must answer the requests of the group meanwhile.
        offsets = position["offsets"] if isinstance(position, dict) else {}
        self._uncommitted = {int(number): offset for number, offset in offsets.items()} or None

    def leave(self) -> None:
        self._hand_over = lambda: None  # all examples are in the checkpoint
        if self._is_over.wait(LEAVE_TIMEOUT):
            self._consumer.close()

    def next_batch(self) -> Iterator[Example | None] | None:
        if self._is_rejoining.is_set():
            self._partitions = {}
            self._consumer.unsubscribe()
            self._subscribe()
        return super().next_batch()

    def _consume(self) -> list[Message]:
        before = self._n_rebalances
        messages = super()._consume()
        if self._n_rebalances != before:  # the messages may be of lost partitions, or after a gap
            return []
        return [message for message in messages if self._is_own(message)]

    def _is_own(self, message: Message) -> bool:
        number = message.partition()
        return number is None or number < 0 or (number in self._partitions and self._partitions[number].is_read)

    def _find_partitions(self) -> None:
        """Become a member once the cluster is the right one; begin to read the assigned partitions."""
        try:
            self._find_numbers()
            new = [partition for _, partition in sorted(self._partitions.items()) if not partition.is_read]
            self._add_committed(
                {new_partition.number: new_partition for new_partition in new if new_partition.next_offset is None}
            )
        except KafkaException as error:
            self._raise_if_fatal(error.args[0])
            return
        self._begin(new)
        if not self._is_member:
            self._subscribe()
        self._next_look = time.monotonic() + METADATA_INTERVAL

    def _subscribe(self) -> None:
        self._is_member = True
        self._is_rejoining.clear()
        self._consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        offsets = (self._hand_over() or {}).get("offsets", {})
        numbers = [partition.partition for partition in partitions]
        self._partitions = {number: Partition(self._topic, number, offsets.get(str(number))) for number in numbers}
        self._n_rebalances += 1
        self._next_look = 0.0  # new partitions begin after that
        consumer.assign([])

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._hand_over()
        committed, self._uncommitted = self._uncommitted or {}, None
        offsets = [partition for partition in partitions if partition.partition in committed]
        for partition in offsets:
            partition.offset = committed[partition.partition]
        if offsets:
            with suppress(KafkaException):  # only tools need it
                consumer.commit(offsets=offsets, asynchronous=False)
        self._partitions = {}
        self._n_rebalances += 1
        self._is_rejoining.clear()
        consumer.unassign()

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        errors = [
            commit_error for commit_error in (error, *(offset.error for offset in offsets)) if commit_error is not None
        ]
        if all(commit_error.code() in _REBALANCING for commit_error in errors) and errors:
            self._is_committing = False
        else:
            super()._on_commit(error, offsets)
