"""A Kafka topic as a live source and as a sink."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from stream_pegasos.common.extras import missing
from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.answer import Answer
from stream_pegasos.streams.example import Example, Parsed, StreamError
from stream_pegasos.streams.sources import LARGEST_BATCH, Lag, LiveSource, SourceSettings, check_server, place_at_server

try:
    from confluent_kafka import (
        OFFSET_BEGINNING,
        Consumer,
        KafkaError,
        KafkaException,
        Message,
        Producer,
        TopicPartition,
    )
except ModuleNotFoundError as error:
    raise missing("a Kafka topic", "kafka", error) from error

_WAIT = 0.2  # seconds that a wait for a message may delay `close`
_REQUEST_TIMEOUT = 0.5  # seconds for other requests to the broker; each is repeated
METADATA_INTERVAL = 60.0  # seconds between two looks for new partitions
ENDS_INTERVAL = 0.5  # seconds between two requests for the ends of partitions
_COMMIT_TIMEOUT = 5.0  # seconds to store the last position, or to get the id of a cluster

_Client = TypeVar("_Client")

_FATAL = {
    KafkaError._AUTHENTICATION,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


@dataclass
class Partition:
    """A partition of the topic. Its snapshot is a number: the offset of the next message."""

    topic: str
    number: int
    next_offset: int | None = None  # `None`: the first offset that the broker has
    is_read: bool = False
    is_at_end: bool = False
    is_lost: bool = False  # whether the broker no longer has the next offset

    def at(self, offset: int | None) -> TopicPartition:
        return TopicPartition(self.topic, self.number, OFFSET_BEGINNING if offset is None else offset)

    def go_on_at(self, first: int) -> str:
        """Continue at the first offset that the broker has; return a text about the messages before it."""
        offset = first if self.next_offset is None else self.next_offset
        self.next_offset, self.is_lost = first, False
        if first > offset:
            lost = f"{first - offset} messages of partition {self.number} are gone from the broker"
        else:
            lost = f"partition {self.number} ends before offset {offset}, as if the topic had been created again"
        return f"{lost}; going on at offset {first}"


class KafkaSource(LiveSource):
    """All partitions of a topic, read by this one reader; a position is the cluster and the next offset of each."""

    def __init__(self, address: Address, settings: SourceSettings) -> None:
        super().__init__(f"Kafka topic {address.path}", settings)
        self._topic, self._group = address.path, address.options.get("group")
        self._parse = self.line_parser("a Kafka topic")
        self._is_resumed = settings.position is not None
        self._server, offsets = _checked(settings.position)
        self._partitions = {number: Partition(self._topic, number, offset) for number, offset in offsets.items()}
        self._next_look = 0.0  # when to look for new partitions
        self._ends: dict[int, int] = {}  # of partitions, if known
        self._next_note = 0.0  # when to note the ends
        self._failure: KafkaError | None = None
        self._last_error: KafkaError | None = None
        self._uncommitted: dict[int, int] | None = None
        self._is_over, self._is_committing = threading.Event(), False
        self._consumer = _made(
            Consumer,
            {
                **_settings(address, "group"),
                # The client requires a group; nothing is committed to this one.
                "group.id": self._group or "stream-pegasos",
                "enable.auto.commit": False,
                "enable.partition.eof": not settings.follow,
                # With this setting the client reports an offset that the broker no longer has, and so the loss.
                "auto.offset.reset": "error",
                "error_cb": self._on_error,
                "on_commit": self._on_commit,
            },
        )

    def next_batch(self) -> Iterator[Example | None] | None:
        try:
            if self._failure is not None:
                self._raise_if_fatal(self._failure)
            if any(partition.is_lost for partition in self._partitions.values()):
                self._find_first_offsets()
            read = self._read_partitions()
            if not self._follow and read and all(partition.is_at_end for partition in read):
                return None
            if self.is_down("broker") or time.monotonic() >= self._next_look:
                self._find_partitions()
            self._send_commit()
            messages = self._consume()
            self._note_ends()
            return self._examples(messages)
        except KafkaException as error:
            raise StreamError(f"{self.name}: {error.args[0]}") from None

    def snapshot(self) -> dict[str, Any]:
        offsets = {
            str(number): partition.next_offset
            for number, partition in sorted(self._partitions.items())
            if partition.next_offset is not None
        }
        return {"server": self._server, "offsets": offsets}

    def release(self) -> None:
        # The consumer stays open: the last position is committed after the last batch.
        self._consumer.unassign()
        self._is_over.set()

    def commit(self, position: object) -> None:
        _, offsets = _checked(position)
        if self._group is None or not offsets:
            return
        # During `batches` the reading thread commits: the client waits long for a broker that does not answer.
        self._uncommitted = offsets
        if self._closed:
            self._is_over.wait(_COMMIT_TIMEOUT)  # the thread ends soon
        elif not self._is_over.is_set():
            return
        end = time.monotonic() + _COMMIT_TIMEOUT
        self._send_commit()
        while self._is_committing and not self.is_down("broker") and time.monotonic() < end:
            self._consumer.poll(_WAIT)
            self._send_commit()
        if self._uncommitted or self._is_committing:
            self.event(f"{self.name}: the offsets of group {self._group} cannot be stored")

    def lag(self, position: object) -> Lag | None:
        """The messages after the position in each partition, as last reported to the client, which reads far ahead."""
        _, offsets = _checked(position)
        at = {
            partition.number: offsets.get(partition.number, partition.next_offset) or 0
            for partition in self._read_partitions()
        }
        ends = {**self._ends}  # a copy: the reading thread may change them
        behind = {f"partition {number}": max(0, ends[number] - n) for number, n in at.items() if number in ends}
        return Lag("messages", behind) if behind else None

    def _consume(self) -> list[Message]:
        messages: list[Message] = self._consumer.consume(1, _WAIT)
        return messages + self._consumer.consume(LARGEST_BATCH - 1, 0) if messages else messages

    def _note_ends(self) -> None:
        """Note the ends of partitions. Only the reading thread may ask: the client blocks others during a wait."""
        if time.monotonic() >= self._next_note:
            self._next_note = time.monotonic() + ENDS_INTERVAL
            for partition in self._read_partitions():
                _, end = self._consumer.get_watermark_offsets(partition.at(0), cached=True)
                if end >= 0:  # the client was told it
                    self._ends[partition.number] = end

    def _send_commit(self) -> None:
        is_possible = self._read_partitions() and not self.is_down("broker")  # and the cluster is the right one
        if self._uncommitted is None or self._is_committing or not is_possible:
            return
        uncommitted, self._uncommitted = self._uncommitted, None
        partitions = self._partitions
        offsets = [
            TopicPartition(self._topic, number, offset)
            for number, offset in uncommitted.items()
            if number in partitions
        ]
        if not offsets:
            return
        try:
            self._is_committing = True
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._on_commit(error.args[0], [])

    # Messages

    def _examples(self, messages: list[Message]) -> Iterator[Example | None]:
        for message in messages:
            error, number, offset = message.error(), cast(int, message.partition()), cast(int, message.offset())
            if error is None:
                self._partitions[number].next_offset = offset + 1
                place, value = f"offset {offset} of partition {number}", message.value()
                # A tombstone is no message: it marks the message with its key as deleted.
                yield None if value is None else self.example(value, self._parsed, place, id=_text(message.key()))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._partitions[number].is_at_end = True
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._partitions[number].is_lost = True
            else:
                self._raise_if_fatal(error)

    def _parsed(self, record: bytes) -> Parsed:
        parsed = self._parse(record)
        if parsed is None:
            raise ValueError("the message is empty")
        return parsed

    # Partitions and offsets

    def _read_partitions(self) -> list[Partition]:
        return [partition for _, partition in sorted(self._partitions.items()) if partition.is_read]

    def _find_partitions(self) -> None:
        """Begin to read new partitions; look again soon if the broker reports none."""
        try:
            numbers = self._find_numbers()
            partitions = {number: Partition(self._topic, number) for number in numbers} | self._partitions
            new = [partitions[number] for number in numbers if not partitions[number].is_read]
            self._add_committed({partition.number: partition for partition in new if partition.next_offset is None})
        except KafkaException as error:
            self._raise_if_fatal(error.args[0])
            return
        self._partitions = partitions
        self._begin(new)
        if self._read_partitions():
            self._next_look = time.monotonic() + METADATA_INTERVAL

    def _find_numbers(self) -> list[int]:
        """The numbers of the partitions of the topic, if the cluster is the right one."""
        metadata = self._consumer.list_topics(self._topic, timeout=_REQUEST_TIMEOUT)
        self._check_cluster(metadata.cluster_id)
        topic = metadata.topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return sorted(topic.partitions)

    def _begin(self, new: list[Partition]) -> None:
        """Begin to read new partitions."""
        self.up("broker", f"{self.name}: the broker can be reached again")
        self._last_error = None
        for partition in new:
            partition.is_read = True
        if new:
            self._assign()

    def _check_cluster(self, cluster: str | None) -> None:
        if cluster is not None:  # some brokers do not tell it
            server = f"cluster {cluster}"
            check_server(self.name, self._server, server)
            self._server = server

    def _add_committed(self, partitions: dict[int, Partition]) -> None:
        """Take the offsets of the group, unless there is a position: only the position tells what was learned."""
        if self._group is None or self._is_resumed or not partitions:
            return
        topic_partitions = [TopicPartition(self._topic, number) for number in partitions]
        for committed in self._consumer.committed(topic_partitions, timeout=_REQUEST_TIMEOUT):
            if committed.offset >= 0:
                partitions[committed.partition].next_offset = committed.offset

    def _assign(self) -> None:
        read = self._read_partitions()
        for partition in read:
            partition.is_at_end = False
        self._consumer.assign([partition.at(partition.next_offset) for partition in read])

    def _find_first_offsets(self) -> None:
        """Continue at the first offset of each partition whose wanted offset is gone."""
        for partition in self._read_partitions():
            if partition.is_lost:
                try:
                    first, _ = self._consumer.get_watermark_offsets(partition.at(0), timeout=_REQUEST_TIMEOUT)
                except KafkaException as error:
                    self._raise_if_fatal(error.args[0])
                    return
                self.event(f"{self.name}: {partition.go_on_at(first)}")
        self._assign()

    # Errors

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _FATAL:
            self._failure = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            reason = self._last_error or error  # the earlier error has the reason
            self.down("broker", f"{self.name}: the broker cannot be reached ({reason.str()})")
        else:
            self._last_error = error

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        self._is_committing = False
        error = next((offset.error for offset in offsets if offset.error is not None), error)
        if error is not None:
            text = f"{self.name}: the offsets of group {self._group} cannot be stored ({error.str()})"
            self.down("group", text)
        else:
            self.up("group", f"{self.name}: the offsets of group {self._group} are stored again")

    def _raise_if_fatal(self, error: KafkaError) -> None:
        is_refused = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED and self._group is not None
        if error.fatal() or error.code() in _FATAL or is_refused:
            raise StreamError(f"{self.name}: {error.str()}")


class KafkaSink:
    """Answers as JSON objects, each with the id of its message as the key."""

    def __init__(self, address: Address) -> None:
        self.name = f"Kafka topic {address.path}"
        self._topic = address.path
        self._producer = _made(Producer, {"message.timeout.ms": 30_000, **_settings(address)})

    def send(self, answers: list[Answer]) -> None:
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)

        for answer in answers:
            key = None if answer.id is None else str(answer.id).encode(errors="surrogatepass")
            value = json.dumps(answer.record()).encode()
            while True:
                try:
                    self._producer.produce(self._topic, value, key, on_delivery=delivered)
                    break
                except BufferError:
                    self._producer.poll(_WAIT)
                except KafkaException as error:
                    raise OSError(f"{self.name}: {error.args[0].str()}") from None
        # Signals are handled between short waits.
        while self._producer.flush(_WAIT):
            pass
        if failures:
            raise OSError(f"{self.name}: {len(failures)} of {len(answers)} answers not delivered ({failures[0].str()})")

    def close(self) -> None:
        self._producer.flush(_WAIT)


def find_cluster(address: Address) -> str | None:
    """The id of the cluster; `None` if no broker gives it soon."""
    client = _made(Producer, _settings(address, "group"))
    try:
        cluster: str | None = client.list_topics(address.path, timeout=_COMMIT_TIMEOUT).cluster_id
    except KafkaException:
        return None
    return cluster


def _settings(address: Address, *names: str) -> dict[str, Any]:
    settings = address.settings(r".+\..+", *names)
    # Errors come by callback; the client should not print them, too.
    return {"bootstrap.servers": address.server, "log_level": 0, **settings}


def _made(client: Callable[[dict[str, Any]], _Client], settings: dict[str, Any]) -> _Client:
    try:
        return client(settings)
    except KafkaException as error:
        raise StreamError(f"the settings of Kafka: {error.args[0].str()}") from None


def _text(key: object) -> str | None:
    try:
        return key.decode() or None if type(key) is bytes else None
    except UnicodeDecodeError:
        return None


def _checked(position: object) -> tuple[str | None, dict[int, int]]:
    """The id of the cluster, if it is in the position, and the next offset of each partition."""
    server, offsets = place_at_server(position, "Kafka topic", "offsets", _are_offsets)
    return server, {int(partition): offset for partition, offset in (offsets or {}).items()}


def _are_offsets(offsets: dict[str, Any]) -> bool:
    return all(int(number) >= 0 and type(offset) is int and offset >= 0 for number, offset in offsets.items())
