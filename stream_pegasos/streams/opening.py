"""Live sources and sinks, opened by their addresses."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import replace
from typing import Any

from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.example import LabelFormat, StreamError
from stream_pegasos.streams.read_options import ReadOptions
from stream_pegasos.streams.readers import OnEvent, format_of
from stream_pegasos.streams.schemes import SCHEMES, check_format, examples, parse_address
from stream_pegasos.streams.sources import OnBad, Sink, Source, SourceSettings

LOOPBACK = ("127.0.0.1", "[::1]", "localhost")


def open_source(
    address: str | os.PathLike[str],
    position: object = None,
    options: ReadOptions | None = None,
    *,
    follow: bool = True,
    labels: bool = False,
    written: LabelFormat | None = None,
    whole_lines: bool = False,
    on_bad: OnBad | None = None,
    on_event: OnEvent | None = None,
    share: bool = False,
    **given: Any,
) -> Source:
    """Open a live source, to follow a stream.

    | address | source |
    |---|---|
    | `-` | standard input, in any format that `read` knows |
    | a path | a growing file with a record a line, or of csv or tsv, through its rotation |
    | `kafka://host:port,.../topic?group=NAME` | all partitions of a Kafka topic |
    | `redis://user:password@host:port/stream?group=NAME&db=0` | a Redis stream; `rediss://` over TLS |

    Parameters
    ----------
    address : str or os.PathLike
        One of the above. Query parameters of Kafka with a dot in their name are settings of librdkafka; query
        parameters of Redis that begin with `ssl_` are settings of redis-py.
    position : object, default None
        The position of a batch; the source continues after it. Without a position, a file is read from its beginning,
        and a topic or stream from the place of its group, or else from its beginning. A position is valid only for the
        same server; `of_any_server(position)` is valid for another server, too. A partition of Kafka that the position
        does not name is read from its beginning.
    options : ReadOptions or None, default None
        How the stream is read; `None` means the defaults. The default format of Kafka and standard input is jsonl;
        entries of Redis have fields and no format.
    follow : bool, default True
        Whether to wait for more at the end of the stream.
    labels : bool, default False
        Whether the records are labels, each with the id of its message: `are_labels` of `ReadOptions`.
    written : LabelFormat or None, default None
        The format of the labels: `labels` of `ReadOptions`.
    whole_lines : bool, default False
        Whether a last line without a line end is left unread, even if `follow` is false. A later run from the position
        then reads the whole line.
    on_bad : callable or None, default None
        Called with the place (`line 3`, `offset 17 of partition 0`) and the reason for each record that cannot be read.
        Without it, such a record raises an error.
    on_event : callable or None, default None
        Called with messages for an operator: rotation, outages, lost messages.
    share : bool, default False
        Whether other runs read the same topic of Kafka as the same group, which assigns partitions to each run. The
        source is then a `Member`, and the position is that of the checkpoint that the runs share.
    **given : dict
        Other fields of `ReadOptions`; they replace those of `options`.

    Raises
    ------
    StreamError
        If the address or an option is wrong, or if the position belongs to another kind of source or to another server
        (with Kafka, while reading). While reading, also if a record is bad and `on_bad` is `None`, if a topic, or a
        stream with `follow` false, does not exist, or if others read as the group of a Redis stream.
    OSError
        While reading, if a file does not exist and `follow` is false.
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
    options = options or ReadOptions()
    own = {"labels": written or options.labels, "are_labels": labels or options.are_labels}
    options = replace(options, **{**own, **given, "unlabelled": True})
    address = os.fspath(address)
    server = parse_address(address) if "://" in address else None
    if options.format is None:
        options = replace(options, format=format_of(address))
    elif server is not None:
        check_format(SCHEMES[server.scheme], options.format)
    settings = SourceSettings(position, options, follow, whole_lines, on_bad, on_event, share)
    if server is not None:
        scheme = SCHEMES[server.scheme]
        opened = scheme.member if share else scheme.source
        if opened is not None:
            return opened(server, settings)
    if share:
        shared = examples(scheme for scheme in SCHEMES.values() if scheme.member is not None)
        raise StreamError(f"a shared stream must be one as {shared}?group=NAME")
    if address == "-":
        from stream_pegasos.streams.stdin import StandardInput

        return StandardInput(settings)
    from stream_pegasos.streams.file import FollowedFile

    return FollowedFile(address, settings)


def open_sink(address: str) -> Sink:
    """Open a topic or stream for answers. Each answer is a record with the fields of an `Answer`.

    Parameters
    ----------
    address : str
        `kafka://host:port,.../topic`, with settings of librdkafka as query parameters, or
        `redis://host:port/stream?maxlen=N`; with `maxlen` the oldest entries beyond about `N` are dropped.

    Raises
    ------
    StreamError
        If the address is wrong.
    ImportError
        If the client library is not installed.

    """
    server = parse_address(address)
    scheme = SCHEMES[server.scheme]
    if scheme.sink is None:
        sinks = examples(scheme for scheme in SCHEMES.values() if scheme.sink is not None)
        raise StreamError(f"answers must go to a file, or to one as {sinks}")
    return scheme.sink(server)


def is_same_stream(address: str, other: str) -> bool:
    """Whether two addresses name the same topic or stream, even if the names of their servers differ: if the rest is
    equal, hosts are looked up, and clusters of Kafka are asked for their id.
    """
    first, second = parse_address(address), parse_address(other)
    scheme, other_scheme = SCHEMES[first.scheme], SCHEMES[second.scheme]
    if scheme.server != other_scheme.server or scheme.place(first) != scheme.place(second):
        return False
    if not _named(first).isdisjoint(_named(second)) or not _found(first).isdisjoint(_found(second)):
        return True
    cluster = scheme.find_cluster(first)
    return cluster is not None and cluster == scheme.find_cluster(second)


def _named(address: Address) -> set[tuple[str, str]]:
    """The host and the port of each server; all names of this machine become localhost."""
    return {("localhost" if host in LOOPBACK else host, port) for host, port in address.servers()}


def _found(address: Address) -> set[tuple[str, str]]:
    """`_named`, and the IP addresses of all hosts that can be looked up; an address of this machine adds localhost."""
    path = _named(address)
    for host, port in [*path]:
        with contextlib.suppress(OSError, UnicodeError):
            for family, kind, _, _, number in socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_DGRAM):
                path.add((str(number[0]), port))
                with contextlib.suppress(OSError), socket.socket(family, kind) as own:
                    own.bind(number)  # succeeds only for an address of this machine
                    path.add(("localhost", port))
    return path
