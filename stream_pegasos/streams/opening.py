"""Live sources and sinks by their addresses."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import replace
from typing import Any

from stream_pegasos.common.checks import must_be
from stream_pegasos.streams.addresses import Address
from stream_pegasos.streams.example import LabelFormat, StreamError
from stream_pegasos.streams.read_options import ReadOptions
from stream_pegasos.streams.readers import OnEvent, format_of
from stream_pegasos.streams.schemes import SCHEMES, examples, parse_address
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
    """Open a stream to follow it.

    | address | what is followed |
    |---|---|
    | `-` | standard input, in any format that `read` knows |
    | a path | a growing file with a record a line, or of csv or tsv, through its rotation |
    | `kafka://host:port,.../topic?group=NAME` | all partitions of a Kafka topic |
    | `redis://user:password@host:port/stream?group=NAME&db=0` | a Redis stream; `rediss://` over TLS |

    Parameters
    ----------
    address
        One of the above. Query parameters of Kafka with a dot in their name are settings of
        librdkafka, those of Redis that begin with `ssl_` are settings of redis-py.
    position
        The position of a batch, to go on after it. Without one, a file is read from its beginning, and
        a topic or stream from where its group is, or else from its beginning. A position is valid only
        for the same server; `of_any_server(position)` also for another. A partition of Kafka that it does not name is
        read from its beginning.
    options
        How it is read; the defaults if it is `None`. The format is jsonl by default for Kafka and standard input;
        entries of Redis have fields in place of a format.
    follow
        Whether to wait for more at the end of what is there.
    labels
        Whether the records are labels, each with the id of its message: `are_labels` of `ReadOptions`.
    written
        How labels are written: `labels` of `ReadOptions`.
    whole_lines
        Whether a last line without a line end is left unread, even without `follow`. A later run from the position then
        reads the whole line.
    on_bad
        Called with the place (`line 3`, `offset 17 of partition 0`) and the reason for each record
        that cannot be read. Without it such a record raises.
    on_event
        Called with what an operator should know: rotation, outages, lost messages.
    share
        Whether other runs read the same topic of Kafka as the same group, which gives each of them partitions. The
        source is then a `Member`, and the position that of the checkpoint that they share.
    **given
        Other fields of `ReadOptions` that differ from the options.

    Raises
    ------
    StreamError
        If the address or an option is wrong, or if the position is of another kind of source or of
        another server (with Kafka, while reading). While reading, also if a record is bad and there is
        no `on_bad`, if a topic, or a stream that is not to be followed, does not exist, or if others read as the group
        of a Redis stream.
    OSError
        While reading, if a file does not exist and is not to be followed.
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
    scheme = SCHEMES[server.scheme] if server is not None else None
    if options.format is None:
        options = replace(options, format=format_of(address))
    elif scheme is not None and options.format not in scheme.formats:
        expected = f"one of {', '.join(scheme.formats)}" if scheme.formats else "left out, as its entries have fields"
        raise StreamError(must_be(f"the format of {scheme.server}", expected, options.format))
    settings = SourceSettings(position, options, follow, whole_lines, on_bad, on_event, share)
    if share:
        if server is None or scheme is None or scheme.member is None:
            shared = {name: scheme for name, scheme in SCHEMES.items() if scheme.member is not None}
            raise StreamError(f"a shared stream must be one as {examples(shared)}?group=NAME")
        return scheme.member(server, settings)
    if server is not None and scheme is not None:
        return scheme.source(server, settings)
    if address == "-":
        from stream_pegasos.streams.stdin import StandardInput

        return StandardInput(settings)
    from stream_pegasos.streams.file import FollowedFile

    return FollowedFile(address, settings)


def open_sink(address: str) -> Sink:
    """Open a topic or stream for answers, each a record with the fields of an `Answer`.

    Parameters
    ----------
    address
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
        sinks = {name: scheme for name, scheme in SCHEMES.items() if scheme.sink is not None}
        raise StreamError(f"answers must go to a file, or to one as {examples(sinks)}")
    return scheme.sink(server)


def is_same_stream(address: str, other: str) -> bool:
    """Whether two addresses name one topic or stream, whatever its server is called: hosts are looked up where the rest
    is the same, and clusters of Kafka are asked for their id.
    """
    first, second = parse_address(address), parse_address(other)
    scheme, other_scheme = SCHEMES[first.scheme], SCHEMES[second.scheme]
    if scheme.server != other_scheme.server or scheme.place(first) != scheme.place(second):
        return False
    if not _named(first).isdisjoint(_named(second)) or not _found(first).isdisjoint(_found(second)):
        return True
    cluster = scheme.find_cluster(first) if scheme.find_cluster is not None else None
    return cluster is not None and scheme.find_cluster is not None and cluster == scheme.find_cluster(second)


def _named(address: Address) -> set[tuple[str, str]]:
    """The host and the port of each server; all names of this machine are localhost."""
    return {("localhost" if host in LOOPBACK else host, port) for host, port in address.servers()}


def _found(address: Address) -> set[tuple[str, str]]:
    """The same with the numbers of hosts that can be looked up; all that are those of this machine are localhost."""
    path = _named(address)
    for host, port in [*path]:
        with contextlib.suppress(OSError, UnicodeError):
            for family, kind, _, _, number in socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_DGRAM):
                path.add((str(number[0]), port))
                with contextlib.suppress(OSError), socket.socket(family, kind) as own:
                    own.bind(number)  # which only an address of its own takes
                    path.add(("localhost", port))
    return path
