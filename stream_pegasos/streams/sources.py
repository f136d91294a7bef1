"""Live sources, which are followed from a position, and sinks, which take the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from stream_pegasos.common.errors import must_be
from stream_pegasos.features.message import grouped, message_size
from stream_pegasos.streams.answer import Answer
from stream_pegasos.streams.example import Example, Id, StreamError, unreadable
from stream_pegasos.streams.lines import Parser, make_example
from stream_pegasos.streams.read_options import TABLE, ReadOptions
from stream_pegasos.streams.readers import OnEvent, line_parser

LARGEST_BATCH = 512
_LARGEST_TEXT = 1 << 20  # characters of a batch, roughly

OnBad = Callable[[str, str], None]


class Batch(NamedTuple):
    """Some examples of a live source, in order."""

    examples: list[Example]  # at most 512; empty if all records were bad and are not yielded
    position: object  # the position after these examples, as JSON; `None` if the source cannot go back


def of_any_server(position: object) -> object:
    """The position without its server, for a stream that has moved to another server."""
    return {**position, "server": None} if isinstance(position, dict) and "server" in position else position


def check_server(name: str, before: str | None, now: str | None) -> None:
    """Raise a StreamError if the servers differ; `None` is an unknown server."""
    if before is not None and now is not None and before != now:
        raise StreamError(
            f"the position was read at {before}, and {name} is at {now}; if it has moved there, add --allow-moved"
        )


class Lag(NamedTuple):
    """The distance of a reader from the end of a stream."""

    unit: str  # "messages" or "bytes"
    behind: dict[str, int]  # by part of the stream, such as a partition; the key is "" without parts

    def __str__(self) -> str:
        parts = [f"{name}: {n:,}" if name else f"{n:,}" for name, n in self.behind.items()]
        return f"{', '.join(parts)} {self.unit} behind"


class Source(Protocol):
    """A stream that may grow while it is read. `open_source` makes one."""

    name: str  # its name in messages, such as "Kafka topic mail"

    def batches(self) -> Iterator[Batch]:
        """Wait for examples and yield them in order, until `close` is called or the stream ends."""

    def commit(self, position: object) -> None:
        """Record that the examples before the position are no longer needed, and store it as the place of the group, if
        there is one. May be called from any thread; never raises.
        """

    def lag(self, position: object) -> Lag | None:
        """The distance of a position from the end; `None` if unknown. May be called from any thread; never raises."""

    def close(self) -> None:
        """End `batches` within about half a second. May be called from any thread and from signal handlers."""


HandOver = Callable[[], dict[str, Any] | None]  # returns the position of the checkpoint that runs share


class Member(Source, Protocol):
    """A source that several runs share: each reads some parts of the stream, and its parts may change."""

    def join(self, hand_over: HandOver) -> None:
        """Set the function that the reading thread calls before parts are given up and before new parts are begun. The
        function returns when all examples read so far are in the checkpoint that the runs share, with the position
        there.
        """

    def rejoin(self) -> None:
        """Give up all parts and request parts again. May be called from any thread."""

    def leave(self) -> None:
        """Give the parts to the other runs, after the last commit."""


class Sink(Protocol):
    """A destination of answers. `open_sink` makes one."""

    def send(self, answers: list[Answer]) -> None:
        """Deliver the answers; raise OSError if they cannot be delivered."""

    def close(self) -> None:
        """Close the connection."""


class SourceSettings(NamedTuple):
    """The arguments of `open_source` except the address, with the options in one; its docstring describes them."""

    position: object
    options: ReadOptions
    follow: bool
    whole_lines: bool
    on_bad: OnBad | None
    on_event: OnEvent | None
    share: bool = False


class LiveSource(Source, ABC):
    """The base class of live sources. A subclass defines the next records, and the position after them."""

    def __init__(self, name: str, settings: SourceSettings) -> None:
        self.name = name
        self._options, self._follow = settings.options, settings.follow
        self._on_bad, self._on_event = settings.on_bad, settings.on_event
        self._down: set[str] = set()
        self._closed = False

    @abstractmethod
    def next_batch(self) -> Iterable[Example | None] | None:
        """The next records, possibly none; `None` at the end. A record without an example is `None`."""

    @abstractmethod
    def snapshot(self) -> object:
        """The position after the records taken so far, as JSON."""

    def release(self) -> None:
        """End reading; called once after the last batch."""
        return

    def batches(self) -> Iterator[Batch]:
        try:
            while not self._closed and (records := self.next_batch()) is not None:
                for batch in batched(records, self.snapshot):
                    if not self._closed:
                        yield batch
                    if self._closed:
                        return
        finally:
            self.release()

    def commit(self, position: object) -> None:
        """By default do nothing: only a server stores the position."""
        return

    def lag(self, position: object) -> Lag | None:
        """By default the lag is unknown."""
        return None

    def close(self) -> None:
        self._closed = True

    # Records

    def line_parser(self, subject: str) -> Parser:
        """The parser of single records; a StreamError if the format has records of several lines."""
        format = str(self._options.format)
        if self._options.are_labels and format != "jsonl":
            raise StreamError(f"labels come as jsonl, not as {format}")
        if not TABLE[format].has_lines:
            raise StreamError(f"{subject} cannot be {format}, whose records take several lines")
        return line_parser(self._options, self._options.decoder)

    def example(self, record: object, parse: Parser, place: str, line: int = 0, id: Id | None = None) -> Example | None:
        """The example in a record; see `checked`."""
        return self.checked(make_example(record, parse, line, id), place, line)

    def checked(self, example: Example | None, place: str, line: int = 0) -> Example | None:
        """The example. A bad one is reported; it is then `None`, unless the options ask for unreadable records."""
        if example is not None and example.fault is None and self._options.are_labels and example.id is None:
            example = unreadable(ValueError(f"no id in the field {self._options.id_field!r}"), line)
        if example is None or example.fault is None:
            return example
        self.bad(place, example.fault)
        return example if self._options.unreadable else None

    # Reports: an outage is reported at its beginning and at its end.

    def bad(self, place: str, reason: str) -> None:
        if self._on_bad is None:
            raise StreamError(f"{self.name}: {place}: {reason}")
        self._on_bad(place, reason)

    def event(self, text: str) -> None:
        if self._on_event is not None:
            self._on_event(text)

    def down(self, part: str, text: str) -> None:
        if part not in self._down:
            self._down.add(part)
            self.event(text)

    def up(self, part: str, text: str) -> None:
        if part in self._down:
            self._down.discard(part)
            self.event(text)

    def is_down(self, part: str) -> bool:
        return part in self._down


def check_position(position: object, subject: str, is_valid: Callable[[Any], bool]) -> dict[str, Any]:
    """The position; a StreamError if it is not valid. `is_valid` may raise an error for a position of another form."""
    try:
        is_good = is_valid(position)
    except (AttributeError, LookupError, TypeError, ValueError):
        is_good = False
    if not isinstance(position, dict) or not is_good:
        raise StreamError(must_be(f"a position in a {subject}", "as its source tells it", position))
    return position


def place_at_server(
    position: object, subject: str, name: str, is_valid: Callable[[Any], bool]
) -> tuple[str | None, Any]:
    """The server in a position, and the place there, under the key `name`; both are `None` if there is no position."""

    def is_both(position: dict[str, Any]) -> bool:
        is_server = position["server"] is None or isinstance(position["server"], str)
        return is_server and position.keys() == {"server", name} and is_valid(position[name])

    if position is None:
        return None, None
    place = check_position(position, subject, is_both)
    return place["server"], place[name]


def batched(records: Iterable[Example | None], position: Callable[[], object]) -> Iterator[Batch]:
    """Yield examples in batches, each with the position after it; `None` is a record without an example."""
    groups = grouped(
        records, lambda record: 0 if record is None else message_size(record.x), _LARGEST_TEXT, LARGEST_BATCH
    )
    for group in groups:
        yield Batch([example for example in group if example is not None], position())
