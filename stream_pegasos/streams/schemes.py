"""The kinds of servers with streams, by the scheme of an address. A new kind is a new row of `SCHEMES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from stream_pegasos.common.errors import must_be
from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.example import StreamError
from stream_pegasos.streams.read_options import TABLE
from stream_pegasos.streams.sources import Sink, Source, SourceSettings


class Scheme(NamedTuple):
    """A kind of server, chosen by the scheme of an address. Its client library is imported only when it is used."""

    server: str  # the same for two schemes of one kind of server
    example: str  # of an address
    formats: tuple[str, ...]  # of its records, including jsonl; empty if records have fields
    source: Callable[[Address, SourceSettings], Source]
    sink: Callable[[Address], Sink] | None = None
    member: Callable[[Address, SourceSettings], Source] | None = None  # a source that several runs share
    port: str = ""  # the default port; empty if the address needs no server
    place: Callable[[Address], object] = lambda address: address.path  # the name of a stream at its server
    find_cluster: Callable[[Address], str | None] = lambda address: None  # an id that all servers of a cluster report


def _kafka_source(address: Address, settings: SourceSettings) -> Source:
    from stream_pegasos.streams.kafka import KafkaSource

    return KafkaSource(address, settings)


def _kafka_member(address: Address, settings: SourceSettings) -> Source:
    from stream_pegasos.streams.kafka_group import KafkaMember

    return KafkaMember(address, settings)


def _kafka_sink(address: Address) -> Sink:
    from stream_pegasos.streams.kafka import KafkaSink

    return KafkaSink(address)


def _kafka_cluster(address: Address) -> str | None:
    from stream_pegasos.streams.kafka import find_cluster

    return find_cluster(address)


def _redis_source(address: Address, settings: SourceSettings) -> Source:
    from stream_pegasos.streams.redis import RedisSource

    return RedisSource(address, settings)


def _redis_sink(address: Address) -> Sink:
    from stream_pegasos.streams.redis import RedisSink

    return RedisSink(address)


def _redis_place(address: Address) -> object:
    return address.path, address.integer("db", 0)


LINES = tuple(name for name, format in TABLE.items() if format.has_lines)
_REDIS = Scheme("Redis", "redis://host/stream", (), _redis_source, _redis_sink, port="6379", place=_redis_place)
SCHEMES = {
    "kafka": Scheme(
        "Kafka",
        "kafka://host/topic",
        LINES,
        _kafka_source,
        _kafka_sink,
        _kafka_member,
        port="9092",
        find_cluster=_kafka_cluster,
    ),
    "redis": _REDIS,
    "rediss": _REDIS,
}


def examples(schemes: Iterable[Scheme]) -> str:
    """An example of an address for each kind of server, for an error."""
    return " or ".join(dict.fromkeys(scheme.example for scheme in schemes))


def check_format(scheme: Scheme, format: str) -> None:
    """Raise a StreamError if records of this kind of server cannot have a format."""
    if format not in scheme.formats:
        expected = f"one of {', '.join(scheme.formats)}" if scheme.formats else "left out, as its entries have fields"
        raise StreamError(must_be(f"the format of {scheme.server}", expected, format))


def parse_address(address: str) -> Address:
    # Error messages leave out a possible password.
    try:
        parts = urlsplit(address)
    except ValueError:
        raise StreamError("the address cannot be read: its host, or an encoded character, is not valid") from None
    if not parts.scheme:
        raise StreamError(f"an address must begin with its server, as {examples(SCHEMES.values())}")
    if parts.scheme.startswith("redis+"):
        raise StreamError(
            f"unknown address {parts.scheme}://: give that of the server which has it: redis://host/stream"
        )
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None:
        raise StreamError(f"unknown address {parts.scheme}://: give {examples(SCHEMES.values())}")
    path = unquote(parts.path.strip("/") if scheme.port else parts.netloc + parts.path)
    if (scheme.port and not parts.netloc.rpartition("@")[2]) or not path or parts.fragment:
        raise StreamError(
            f"{parts.scheme}:// must have a host and a name, as {parts.scheme}://{scheme.example.partition('://')[2]}"
        )
    try:
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise StreamError("the options after ? must be name=value, with & between them") from None
    return Address(parts.scheme, parts.netloc, path, dict(options), scheme.port)
