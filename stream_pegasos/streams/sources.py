"""Live sources, followed from a position on, and the sinks that take the answers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from stream_pegasos.labels import Label
from stream_pegasos.streams.readers import (
    Example,
    StreamError,
    check_format,
    format_of,
    label_parser,
    line_parser,
)

LARGEST_BATCH = 512
_LARGEST_TEXT = 1 << 20  # characters of a batch, roughly

OnBad = Callable[[str, str], None]
OnEvent = Callable[[str], None]
RecordParser = Callable[[bytes, int, Any], Example | None]


class Batch(NamedTuple):
    """Some examples of a live source, as they came.

    Parameters
    ----------
    examples
        At most 512 examples; none where every record was bad.
    position
        Where to go on after these examples, as JSON; `None` where the source cannot go back.

    """

    examples: list[Example]
    position: Any


class Source(Protocol):
    """A stream that goes on while it is read. `open_source` makes one.

    Attributes
    ----------
    name
        What people call it, such as `Kafka topic mail`.

    """

    name: str

    def batches(self) -> Iterator[Batch]:
        """Wait for examples and yield them as they come, until `close` is called or the stream ends."""

    def done(self, position: Any) -> None:
        """Take note that nothing before the position is needed again. From any thread; never raises."""

    def close(self) -> None:
        """Let `batches` end, within about half a second. From any thread and from signal handlers."""


class Answer(NamedTuple):
    """What a model says about one message.

    Parameters
    ----------
    id
        The message's id, `None` where it has none.
    label
        The predicted label, `None` while nothing is learned.
    probability
        Of that label, from 0 to 1.

    """

    id: Any
    label: Label | None
    probability: float | None


class Sink(Protocol):
    """Where answers go. `open_sink` makes one."""

    def send(self, answers: list[Answer]) -> None:
        """Deliver the answers; raise OSError if they cannot be delivered."""

    def close(self) -> None:
        """Leave the server."""


def open_source(
    address: str | os.PathLike[str],
    position: Any = None,
    *,
    format: str | None = None,
    text_field: str = "text",
    label_field: str = "label",
    follow: bool = True,
    labels: bool = False,
    on_bad: OnBad | None = None,
    on_event: OnEvent | None = None,
) -> Source:
    """Open a stream to follow it.

    | address | what is followed |
    |---|---|
    | `-` | standard input, in any format that `read` knows |
    | a path | a growing file with a record a line, through its rotation |
    | `kafka://host:port,.../topic?group=NAME` | all partitions of a Kafka topic |
    | `redis://user:password@host:port/stream?group=NAME&db=0` | a Redis stream; `rediss://` over TLS |

    Parameters
    ----------
    address
        One of the above. Query parameters of Kafka with a dot in their name are settings of
        librdkafka, those of Redis that begin with `ssl_` are settings of redis-py.
    position
        The position of a batch, to go on after it. Without one a file is read from its beginning,
        a topic or stream from where its group is, and else from its beginning.
    format
        As in `read`; jsonl by default in Kafka and on standard input. Entries of Redis have fields
        instead.
    text_field, label_field
        The fields of the text and of the label.
    follow
        Whether to wait for more at the end of what is there.
    labels
        Whether the records hold no text but an id and the label of the message with this id.
    on_bad
        Called with the place (`line 3`, `offset 17 of partition 0`) and the reason for each record
        that cannot be read. Without it such a record raises.
    on_event
        Called with what an operator should know: rotation, outages, lost messages.

    Raises
    ------
    StreamError
        If the address or an option is wrong, the position is of another kind of source, or, while
        reading and without `on_bad`, a record is bad.
    OSError
        While reading, if a file is not there that is not to be followed.
    ImportError
        If the client library is not installed.

    Examples
    --------

    >>> import pathlib, tempfile
    >>> from stream_pegasos.streams import open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mail = pathlib.Path(folder, "mail.jsonl")
    ...     _ = mail.write_text('{"text": "win a prize", "label": "spam"}\\n')
    ...     [batch] = open_source(mail, follow=False).batches()
    ...     with mail.open("a") as file:
    ...         _ = file.write('{"text": "see you"}\\n')
    ...     [rest] = open_source(mail, batch.position, follow=False).batches()
    >>> [example.x for example in batch.examples], [example.x for example in rest.examples]
    (['win a prize'], ['see you'])

    """
    address = os.fspath(address)
    reporter = Reporter(on_bad, on_event)
    if address == "-":
        if labels:
            raise StreamError("labels cannot come from standard input: give a file, a Kafka topic or a Redis stream")
        from stream_pegasos.streams.stdin import StandardInput

        return StandardInput(format or "jsonl", text_field, label_field, reporter)
    if "://" not in address:
        from stream_pegasos.streams.file import FollowedFile

        parse = record_parser(format or format_of(address), text_field, label_field, labels, "a growing file")
        return FollowedFile(address, position, parse, follow, reporter)
    server = parse_address(address)
    if server.scheme == "kafka":
        from stream_pegasos.streams.kafka import KafkaSource

        parse = record_parser(format or "jsonl", text_field, label_field, labels, "a Kafka topic")
        return KafkaSource(server, position, parse, follow, reporter)
    if format is not None:
        raise StreamError(f"format {format!r} does not fit a Redis stream, whose entries have fields")
    from stream_pegasos.streams.redis import RedisSource

    return RedisSource(server, position, None if labels else text_field, label_field, follow, reporter)


def open_sink(address: str) -> Sink:
    """Open a topic or stream for answers, each a record of `id`, `label` and `probability`.

    Parameters
    ----------
    address
        `kafka://host:port,.../topic`, with settings of librdkafka as query parameters, or
        `redis://host:port/stream?maxlen=N`; with `maxlen` the oldest entries beyond about `N` go.

    Raises
    ------
    StreamError
        If the address is wrong.
    ImportError
        If the client library is not installed.

    """
    server = parse_address(address)
    if server.scheme == "kafka":
        from stream_pegasos.streams.kafka import KafkaSink

        return KafkaSink(server)
    from stream_pegasos.streams.redis import RedisSink

    return RedisSink(server)


class Address(NamedTuple):
    """A topic or stream of a server."""

    scheme: str
    server: str
    path: str
    options: dict[str, str]

    def settings(self, pattern: str, *known: str) -> dict[str, str]:
        """The options beside the `known` ones, each of which must have a name that fits the pattern."""
        others = {name: value for name, value in self.options.items() if name not in known}
        for name in others:
            if not re.fullmatch(pattern, name):
                raise StreamError(f"unknown option {name!r} in the address; known are {', '.join(known) or 'none'}")
        return others

    def integer(self, name: str, default: int, least: int = 0) -> int:
        value = self.options.get(name, str(default))
        if not (value.isascii() and value.isdigit() and least <= int(value) < 1 << 63):
            raise StreamError(f"{name} is {value!r}; it must be an integer of at least {least}")
        return int(value)


def parse_address(address: str) -> Address:
    # Messages leave out what may be a password.
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise StreamError(f"the address cannot be read ({error})") from None
    if parts.scheme not in ("kafka", "redis", "rediss"):
        raise StreamError(f"unknown address {parts.scheme}://: give kafka://host/topic or redis://host/stream")
    path = unquote(parts.path.strip("/"))
    if not parts.netloc.rpartition("@")[2] or not path or parts.fragment:
        raise StreamError(f"{parts.scheme}:// needs a host and a name: {parts.scheme}://host/name")
    try:
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError as error:
        raise StreamError(f"the options after ? cannot be read ({error})") from None
    return Address(parts.scheme, parts.netloc, path, dict(options))


class Reporter:
    """Tells of bad records and of events, each outage once."""

    def __init__(self, on_bad: OnBad | None, on_event: OnEvent | None) -> None:
        self._on_bad, self._on_event = on_bad, on_event
        self._down: set[str] = set()

    def bad(self, name: str, where: str, reason: str) -> None:
        if self._on_bad is None:
            raise StreamError(f"{name}: {where}: {reason}")
        self._on_bad(where, reason)

    def event(self, text: str) -> None:
        if self._on_event is not None:
            self._on_event(text)

    def down(self, what: str, text: str) -> None:
        if what not in self._down:
            self._down.add(what)
            self.event(text)

    def up(self, what: str, text: str) -> None:
        if what in self._down:
            self._down.discard(what)
            self.event(text)

    def is_down(self, what: str) -> bool:
        return what in self._down


def record_parser(format: str, text_field: str, label_field: str, labels: bool, what: str) -> RecordParser:
    """The parser of one record, given its line and the id that it has if it names none itself.

    It gives `None` for a blank record; a bad one raises a ValueError with the reason.
    """
    check_format(format, text_field, label_field)
    if format in ("csv", "tsv"):
        raise StreamError(f"{what} cannot be {format}, whose records need a header: {STDIN_HINT}")
    if labels and format != "jsonl":
        raise StreamError(f"labels come as jsonl, not as {format}")
    parse = label_parser(label_field) if labels else line_parser(format, text_field, label_field)

    def parse_record(record: bytes, line: int, default_id: Any) -> Example | None:
        parsed = parse(record)
        if parsed is None:
            return None
        x, y, w, id = parsed
        id = default_id if id is None else id
        if labels and id is None:
            raise ValueError("no field 'id'")
        return Example(x, y, w, line, id)

    return parse_record


STDIN_HINT = "read it through standard input, stream-pegasos run < mail.csv"


def batched(records: Iterable[Example | None], position: Callable[[], Any]) -> Iterator[Batch]:
    """The examples in batches, `None` being a bad record, each batch with the position after its last one."""
    examples: list[Example] = []
    size = n_records = 0
    for example in records:
        n_records += 1
        if example is not None:
            examples.append(example)
            size += len(example.x)
        if len(examples) == LARGEST_BATCH or size > _LARGEST_TEXT:
            yield Batch(examples, position())
            examples, size, n_records = [], 0, 0
    if n_records:
        yield Batch(examples, position())
