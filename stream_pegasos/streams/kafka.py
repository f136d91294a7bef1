"""A Kafka topic as a live source and as a sink."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from stream_pegasos.common.extras import missing
from stream_pegasos.streams.example import Example, StreamError, unreadable
from stream_pegasos.streams.sources import (
    LARGEST_BATCH,
    Address,
    Answer,
    Batch,
    RecordParser,
    Reporter,
    batched,
    check_server,
)

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

_WAIT = 0.2  # seconds that the wait for a message may hold up `close`
_REQUEST_TIMEOUT = 0.5  # seconds for the few other questions to the broker; each is asked again
METADATA_INTERVAL = 60.0  # seconds between two looks for new partitions
_COMMIT_TIMEOUT = 5.0  # seconds to store the last position, or to be told of a cluster

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


class KafkaSource:
    """All partitions of a topic, read by this one reader; a position is the cluster and the next offset of each."""

    def __init__(self, address: Address, position: Any, parse: RecordParser, follow: bool, reporter: Reporter) -> None:
        self.name = f"Kafka topic {address.path}"
        self._group = address.options.get("group")
        self._topic, self._parse, self._follow, self._reporter = address.path, parse, follow, reporter
        self._server, self._offsets = _checked(position)
        self._partitions: set[int] = set()
        self._ended: set[int] = set()
        self._out_of_range: set[int] = set()
        self._failure: KafkaError | None = None
        self._last_error: KafkaError | None = None
        self._uncommitted: dict[int, int] | None = None
        self._closed = self._is_over = self._is_committing = False
        self._consumer: Any = _made(
            Consumer,
            {
                **_settings(address, "group"),
                # The client insists on a group; nothing is committed to this one.
                "group.id": self._group or "stream-pegasos",
                "enable.auto.commit": False,
                "enable.partition.eof": not follow,
                # The client then reports an offset that the broker no longer has, and with it the loss.
                "auto.offset.reset": "error",
                "error_cb": self._on_error,
                "on_commit": self._on_commit,
            },
        )

    def batches(self) -> Iterator[Batch]:
        next_look = 0.0
        try:
            while not self._closed:
                if (self._reporter.is_down("broker") or time.monotonic() >= next_look) and self._find_partitions():
                    next_look = time.monotonic() + METADATA_INTERVAL
                self._send_commit()
                messages = self._consumer.consume(1, _WAIT)
                if messages:
                    messages += self._consumer.consume(LARGEST_BATCH - 1, 0)
                for batch in batched(self._examples(messages), self._position):
                    yield batch
                    if self._closed:
                        return
                if self._failure is not None:
                    self._raise_if_fatal(self._failure)
                if self._out_of_range:
                    self._find_first_offsets()
                if not self._follow and self._partitions and self._ended >= self._partitions:
                    return
        except KafkaException as error:
            raise StreamError(f"{self.name}: {error.args[0]}") from None
        finally:
            # The consumer stays open: the last position is committed after the last batch.
            self._is_over = True
            self._consumer.unassign()

    def commit(self, position: Any) -> None:
        _, offsets = _checked(position)
        if self._group is None or not offsets:
            return
        # During `batches` the reading thread commits, as the client waits long for a broker that cannot be reached.
        self._uncommitted = offsets
        if not self._is_over:
            return
        end = time.monotonic() + _COMMIT_TIMEOUT
        self._send_commit()
        while self._is_committing and not self._reporter.is_down("broker") and time.monotonic() < end:
            self._consumer.poll(_WAIT)
            self._send_commit()
        if self._uncommitted or self._is_committing:
            self._reporter.event(f"{self.name}: the offsets of group {self._group} cannot be stored")

    def _send_commit(self) -> None:
        if self._uncommitted is None or self._is_committing or self._reporter.is_down("broker"):
            return
        wanted, self._uncommitted = self._uncommitted, None
        offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in wanted.items()]
        try:
            self._is_committing = True
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._on_commit(error.args[0], [])

    def close(self) -> None:
        self._closed = True

    def _position(self) -> dict[str, Any]:
        offsets = {str(partition): offset for partition, offset in sorted(self._offsets.items())}
        return {"server": self._server, "offsets": offsets}

    # Messages

    def _examples(self, messages: list[Message]) -> Iterator[Example | None]:
        for message in messages:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is None:
                assert partition is not None and offset is not None
                self._offsets[partition] = offset + 1
                yield self._example(message, f"offset {offset} of partition {partition}")
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(partition)  # type: ignore[arg-type]
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._out_of_range.add(partition)  # type: ignore[arg-type]
            else:
                self._raise_if_fatal(error)

    def _example(self, message: Message, where: str) -> Example | None:
        try:
            example = self._parse(_bytes(message.value()), 0, _text(message.key()))
            if example is None:
                raise ValueError("the message is empty")
        except ValueError as error:
            return self._reporter.bad_record(self.name, where, unreadable(error, id=_text(message.key())))
        return example

    # Partitions and offsets

    def _find_partitions(self) -> bool:
        """Begin to read new partitions; return whether any partition is known."""
        try:
            metadata = self._consumer.list_topics(self._topic, timeout=_REQUEST_TIMEOUT)
            self._check_cluster(metadata.cluster_id)
            topic = metadata.topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            new = set(topic.partitions) - self._partitions
            if new:
                self._add_committed(new - set(self._offsets))
        except KafkaException as error:
            self._raise_if_fatal(error.args[0])
            return False
        self._reporter.up("broker", f"{self.name}: the broker can be reached again")
        self._last_error = None
        if new:
            self._partitions |= new
            self._assign()
        return bool(self._partitions)

    def _check_cluster(self, cluster: str | None) -> None:
        if cluster is not None:  # some brokers do not tell
            server = f"cluster {cluster}"
            check_server(self.name, self._server, server)
            self._server = server

    def _add_committed(self, partitions: set[int]) -> None:
        if self._group is None or not partitions:
            return
        wanted = [TopicPartition(self._topic, partition) for partition in sorted(partitions)]
        for committed in self._consumer.committed(wanted, timeout=_REQUEST_TIMEOUT):
            if committed.offset >= 0:
                self._offsets[committed.partition] = committed.offset

    def _assign(self) -> None:
        self._ended.clear()
        self._consumer.assign(
            [
                TopicPartition(self._topic, partition, self._offsets.get(partition, OFFSET_BEGINNING))
                for partition in sorted(self._partitions)
            ]
        )

    def _find_first_offsets(self) -> None:
        """Go on at the first offset of each partition in which the wanted offset is gone."""
        for partition in sorted(self._out_of_range):
            try:
                first, _ = self._consumer.get_watermark_offsets(
                    TopicPartition(self._topic, partition), timeout=_REQUEST_TIMEOUT
                )
            except KafkaException as error:
                self._raise_if_fatal(error.args[0])
                return
            wanted = self._offsets.get(partition, first)
            if first > wanted:
                lost = f"{first - wanted} messages of partition {partition} are gone from the broker"
            else:
                lost = f"partition {partition} ends before offset {wanted}, as if the topic were made anew"
            self._reporter.event(f"{self.name}: {lost}; going on at offset {first}")
            self._offsets[partition] = first
        self._out_of_range.clear()
        self._assign()

    # Errors

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _FATAL:
            self._failure = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            reason = self._last_error or error  # the error before says why
            self._reporter.down("broker", f"{self.name}: the broker cannot be reached ({reason.str()})")
        else:
            self._last_error = error

    def _on_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        self._is_committing = False
        error = next((offset.error for offset in offsets if offset.error is not None), error)
        if error is not None:
            text = f"{self.name}: the offsets of group {self._group} cannot be stored ({error.str()})"
            self._reporter.down("group", text)
        else:
            self._reporter.up("group", f"{self.name}: the offsets of group {self._group} are stored again")

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
            value = json.dumps(answer.for_json()._asdict()).encode()
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


def cluster_of(address: Address) -> str | None:
    """The id of the cluster; `None` if no broker tells it soon."""
    client = _made(Producer, _settings(address, "group"))
    try:
        return client.list_topics(address.path, timeout=_COMMIT_TIMEOUT).cluster_id  # type: ignore[no-any-return]
    except KafkaException:
        return None


def _settings(address: Address, *known: str) -> dict[str, Any]:
    settings = address.settings(r".+\..+", *known)
    # Errors come by callback; the client need not print them too.
    return {"bootstrap.servers": address.server, "log_level": 0, **settings}


def _made(client: Any, settings: dict[str, Any]) -> Any:
    try:
        return client(settings)
    except KafkaException as error:
        raise StreamError(f"the settings of Kafka: {error.args[0].str()}") from None


def _bytes(value: Any) -> bytes:
    return value if type(value) is bytes else b""


def _text(key: Any) -> str | None:
    try:
        return _bytes(key).decode() or None
    except UnicodeDecodeError:
        return None


def _checked(position: Any) -> tuple[str | None, dict[int, int]]:
    """The id of the cluster, if the position names it, and the next offset of each partition."""
    if position is None:
        return None, {}
    try:
        server = position["server"]
        offsets = {int(partition): offset for partition, offset in position["offsets"].items()}
        is_valid = all(type(offset) is int and offset >= 0 for offset in offsets.values())
    except (AttributeError, LookupError, TypeError, ValueError):
        is_valid = False
    if not is_valid or not (server is None or isinstance(server, str)):
        raise StreamError(f"{position!r} is no position in a Kafka topic")
    return server, offsets
