"""A Redis stream as a live source and as a sink."""

from __future__ import annotations

import json
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.extras import missing
from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.answer import Answer
from stream_pegasos.streams.example import Example, Parsed, StreamError
from stream_pegasos.streams.record_fields import decode_fields, parsed_fields
from stream_pegasos.streams.sources import LARGEST_BATCH, Lag, LiveSource, SourceSettings, check_server, place_at_server

try:
    import redis
    from redis.backoff import ExponentialBackoff, NoBackoff
    from redis.exceptions import AskError, ClusterDownError, MovedError, ReadOnlyError, TryAgainError
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise missing("a Redis stream", "redis", error) from error

_BLOCK = 250  # milliseconds that a wait for an entry may delay `close`
_TIMEOUT = 5.0  # seconds after which a server that does not answer counts as down
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two attempts to reach it
_REPORT_INTERVAL = 60.0  # seconds between two reports of trimming
_LOOK_INTERVAL = 10.0  # seconds between two checks whether a silent stream was deleted and created again
_BYTES_A_READ = 1 << 22
_FIRST = "0-0"
_MOST_NUMBERS = 1 << 15  # positions whose commit may be pending
MOST_COUNTED = 10_000  # entries after the position
_COUNT_AFTER = "return #redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])"
_PASSING = (redis.ConnectionError, redis.TimeoutError, AskError, ClusterDownError, TryAgainError)
_FILES = {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile"}

_is_id = re.compile(r"[0-9]{1,20}-[0-9]{1,20}").fullmatch


class RedisSource(LiveSource):
    """The entries of a stream, each a record with fields; a position is the server and the id of the last entry."""

    def __init__(self, address: Address, settings: SourceSettings) -> None:
        super().__init__(f"Redis stream {address.path}", settings)
        server, self._id = _checked(settings.position)
        self._address, self._stream, self._group = address, address.path, address.options.get("group")
        self._count = 1  # entries per read, adapted to their size
        self._is_ready = self._is_behind = False
        self._next_report = self._next_look = 0.0
        self._pause, self._told = _FIRST_PAUSE, ""  # the last event
        self._has_joined = False  # whether this source has joined the group, which then has no other reader
        # The count of additions to the stream at the last entry, and at each position that may be committed: with them
        # the server reports how far a group is behind.
        self._number: int | None = None  # unknown
        self._numbers: deque[tuple[str, int]] = deque(maxlen=_MOST_NUMBERS)
        # The client retries without pauses: `_wait` makes them, and `close` ends it.
        self._client = _client(address, Retry(NoBackoff(), 0), "group")
        host, port = address.servers()[0]
        self._server = f"{host}:{port}/{address.integer('db', 0)}"
        check_server(self.name, server, self._server)

    def next_batch(self) -> Iterable[Example | None] | None:
        try:
            if not self._is_ready:
                self._start()
            entries = self._read()
        except redis.RedisError as error:
            if not isinstance(error, _PASSING) or isinstance(error, (redis.AuthenticationError, MovedError)):
                raise StreamError(f"{self.name}: {_reason(error, self._address)}") from None
            self._is_ready = False
            self.down("server", f"{self.name}: the server cannot be reached ({error})")
            self._wait(self._pause)
            self._pause = min(2.0 * self._pause, _LONGEST_PAUSE)
            return ()
        self._pause = _FIRST_PAUSE
        self.up("server", f"{self.name}: the server can be reached again")
        return self._examples(entries) if entries or self._follow else None

    def snapshot(self) -> dict[str, str | None]:
        self._note_number()
        return {"server": self._server, "id": self._id}

    def commit(self, position: object) -> None:
        _, entry = _checked(position)
        if self._group is None or entry is None:
            return
        try:
            group = self._find_group()
            if group is not None and (readers := _readers(group)):  # now it is the place of other readers, too
                self.down("group", f"{self.name}: the place of group {self._group} is not moved, as it has {readers}")
                return
            self._client.xgroup_setid(self._stream, self._group, entry, self._number_at(entry))
        except redis.RedisError as error:
            reason = _reason(error, self._address)
            self.down("group", f"{self.name}: the place of group {self._group} cannot be stored ({reason})")
        else:
            self.up("group", f"{self.name}: the place of group {self._group} is stored again")

    def lag(self, position: object) -> Lag | None:
        """The number of entries after the position, at most 10,000: the server is blocked while it counts."""
        id = _checked(position)[1] or self._id or _FIRST
        try:
            behind = self._client.eval(_COUNT_AFTER, 1, self._stream, id, MOST_COUNTED)
        except redis.RedisError:  # the server is down, or forbids scripts
            return None
        return Lag("messages", {"": int(behind)})

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._closed and time.monotonic() < end:
            time.sleep(0.1)

    # The group

    def _join_group(self) -> None:
        """Begin at the place of the group, unless there is a position; create the group if it does not exist."""
        group = self._find_group() if self._client.exists(self._stream) else None
        if group is None:
            self._client.xgroup_create(self._stream, self._group, self._id or _FIRST, mkstream=True)
        elif not self._has_joined and (readers := _readers(group)):
            raise StreamError(
                f"{self.name}: the group must be one that nobody else reads, got {self._group} with "
                f"{readers}, which would miss entries or get them twice; give another name: group=NAME"
            )
        else:
            place = group["last-delivered-id"].decode()
            self._id = self._id or place
            self._number = group.get("entries-read") if self._id == place else self._number
        self._has_joined = True

    def _find_group(self) -> dict[str, Any] | None:
        """The server's record of the group; `None` if the group does not exist."""
        groups = self._client.xinfo_groups(self._stream)
        return next((group for group in groups if group["name"].decode() == self._group), None)

    def _find_number(self, info: dict[str, Any]) -> None:
        """Find the number of the last entry, if the server tells it: before version 7.0 it does not count additions."""
        added, first = info.get("entries-added"), info["first-entry"]
        if added is None or self._id is None:
            return
        if _order(self._id) >= _order(info["last-generated-id"]):
            self._number = added
        elif not first or _order(self._id) < _order(first[0]):
            self._number = added - info["length"]
        elif self._number is None and not self._is_ready:  # counting takes time
            lag = self.lag(None)
            self._number = None if lag is None or lag.behind[""] >= MOST_COUNTED else added - lag.behind[""]

    def _note_number(self) -> None:
        if self._group is not None and self._id is not None and self._number is not None:
            self._numbers.append((self._id, self._number))

    def _number_at(self, entry: str) -> int | None:
        """The noted number of an entry, if any; the numbers before it are dropped."""
        while self._numbers and _order(self._numbers[0][0]) < _order(entry):
            self._numbers.popleft()
        return self._numbers[0][1] if self._numbers and self._numbers[0][0] == entry else None

    # Entries

    def _start(self) -> None:
        if self._id is None and not self._client.exists(self._stream):
            if not self._follow:
                raise StreamError(f"{self.name} does not exist")
            self._tell_once(f"{self.name} does not exist yet; waiting for it")
        if self._group is not None:
            self._join_group()
        self._id = self._id or _FIRST
        self._report_loss()
        self._note_number()
        self._next_look = time.monotonic() + _LOOK_INTERVAL
        self._is_ready = True

    def _read(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        if self._is_behind and time.monotonic() >= self._next_report:
            # Trimming may remove entries that a slow reader has not read yet.
            self._report_loss()
        elif not self._is_behind and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_INTERVAL
            self._report_loss()  # the stream may have been created again, with lower ids
        block = _BLOCK if self._follow else None
        answer = self._client.xread({self._stream: self._id}, count=self._count, block=block)
        entries: list[tuple[bytes, dict[bytes, bytes]]] = answer[0][1] if answer else []
        self._is_behind = len(entries) == self._count
        if entries:
            size = sum(len(value) for _, fields in entries for value in fields.values())
            self._count = max(1, min(LARGEST_BATCH, _BYTES_A_READ * len(entries) // max(1, size)))
        return entries

    def _report_loss(self) -> None:
        has_read = self._id not in (None, _FIRST)
        if not self._client.exists(self._stream):
            if has_read:
                self._tell_once(f"{self.name} does not exist any more; entry {self._id} was read from it")
            return
        info = self._client.xinfo_stream(self._stream)
        if self._group is not None:
            self._find_number(info)
        if not has_read or self._id is None:
            return
        last = info["last-generated-id"].decode()
        if _order(last) < _order(self._id):
            self._tell_once(
                f"{self.name} ends before entry {self._id} that was read from it, at {last} when this was seen: "
                f"entries may be lost, and none is read until one comes after {self._id}; another checkpoint and group "
                "begin with the first"
            )
        first = info["first-entry"]
        # Before version 7.0, servers do not count additions.
        if first and _order(first[0]) > _order(self._id) and info.get("entries-added", 0) > info["length"]:
            self._next_report = time.monotonic() + _REPORT_INTERVAL
            self.event(
                f"{self.name} was trimmed: it begins at entry {first[0].decode()}, and entries between "
                f"{self._id} and it may be lost"
            )

    def _tell_once(self, text: str) -> None:
        about = text.partition(", at ")[0]
        if about != self._told:
            self._told = about
            self.event(text)

    def _examples(self, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> Iterator[Example | None]:
        for name, fields in entries:
            self._id = name.decode()
            self._number = None if self._number is None else self._number + 1
            id = None if self._options.are_labels else self._id
            yield self.example(fields, self._parsed, f"entry {self._id}", id=id)

    def _parsed(self, fields: dict[bytes, bytes]) -> Parsed:
        """Read the fields like those of a JSON object; only fields that are used must be text."""
        options = self._options
        names = {options.id_field, options.label_field, *(() if options.are_labels else options.message_fields)}
        record: dict[str, Any] = {name.decode(errors="replace"): value for name, value in fields.items()}
        decode_fields(record, record.keys() & names, options)
        return parsed_fields(record, options)


class RedisSink:
    """Answers as entries with the fields of an `Answer`. `None` becomes an empty field, several labels are separated by
    commas, and a mapping of probabilities is JSON.
    """

    def __init__(self, address: Address) -> None:
        self.name = f"Redis stream {address.path}"
        self._address, self._stream = address, address.path
        self._length = address.integer("maxlen", 0, least=1) if "maxlen" in address.options else None
        self._client = _client(address, Retry(ExponentialBackoff(cap=2.0, base=0.1), 6), "maxlen")

    def send(self, answers: list[Answer]) -> None:
        try:
            with self._client.pipeline(transaction=False) as pipeline:
                for answer in answers:
                    pipeline.xadd(self._stream, _fields(answer), maxlen=self._length, approximate=True)
                pipeline.execute()
        except redis.RedisError as error:
            raise OSError(f"{self.name}: the answers cannot be delivered ({_reason(error, self._address)})") from None

    def close(self) -> None:
        self._client.close()


def _client(address: Address, retry: Retry, *names: str) -> Any:
    options = address.settings(r"ssl_.+" if address.scheme == "rediss" else r"(?!)", *names, "db")
    url = f"{address.scheme}://{address.server}/{address.integer('db', 0)}"
    for name in _FILES & options.keys():
        if not os.path.isfile(options[name]):
            raise StreamError(must_be(name, "a file", options[name]))
    try:
        client = redis.Redis.from_url(
            f"{url}?{urlencode(options)}" if options else url,
            retry=retry,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            protocol=2,
        )
        # A connection checks the options when it is made, the client only when it connects.
        client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
    except (ValueError, TypeError, redis.RedisError) as error:
        raise StreamError(f"the address of Redis: {error}") from None
    return client


def _reason(error: redis.RedisError, address: Address) -> str:
    """The reason of the error, with advice if the server cannot be used for the stream."""
    if isinstance(error, MovedError):
        host = error.host or address.servers()[0][0]
        return f"another node of the cluster has it; give {address.scheme}://{host}:{error.port}/{address.path}"
    reason = str(error).rpartition(" of pipeline caused error: ")[2].strip()  # without the command that was sent
    if isinstance(error, ReadOnlyError):
        return f"{reason} Give the address of the master"
    if reason.startswith("unknown command"):
        return f"{reason}; a Sentinel has no streams: give the address of the master that it names"
    return reason


def _readers(group: dict[str, Any]) -> str | None:
    """The traces of readers with XREADGROUP in a group, as a text; `None` if there are none. This one leaves none."""
    consumers, pending = group["consumers"], group["pending"]
    return f"consumers ({consumers}) and pending entries ({pending})" if consumers or pending else None


def _checked(position: object) -> tuple[str | None, str | None]:
    """The server, if it is in the position, and the id of the last entry."""
    return place_at_server(position, "Redis stream", "id", lambda id: _is_id(id) is not None)


def _fields(answer: Answer) -> dict[str, bytes]:
    return {name: _text(value).encode(errors="surrogatepass") for name, value in answer.record().items()}


def _text(value: object) -> str:
    """A value as the text of a field."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return json.dumps(value)
    return "" if value is None else str(value)


def _order(id: str | bytes) -> tuple[int, ...]:
    """The two numbers of an id, which define the order of ids."""
    return tuple(map(int, (id.decode() if isinstance(id, bytes) else id).split("-")))
