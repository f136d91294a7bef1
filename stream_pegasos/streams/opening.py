"""Live sources and sinks by their addresses."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Unpack

from stream_pegasos.streams.example import LabelFormat, StreamError
from stream_pegasos.streams.options import ONE_LABEL, ReadKeywords, ReadOptions
from stream_pegasos.streams.readers import format_of
from stream_pegasos.streams.sources import (
    NO_LINES,
    OnBad,
    OnEvent,
    Reporter,
    Sink,
    Source,
    parse_address,
    record_parser,
    stdin_hint,
)


def open_source(
    address: str | os.PathLike[str],
    position: Any = None,
    *,
    follow: bool = True,
    labels: bool = False,
    written: LabelFormat = ONE_LABEL,
    whole_lines: bool = False,
    on_bad: OnBad | None = None,
    on_event: OnEvent | None = None,
    **options: Unpack[ReadKeywords],
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
        The position of a batch, to go on after it. Without one, a file is read from its beginning, and
        a topic or stream from where its group is, or else from its beginning. A position is valid only
        for the same server; `of_any_server(position)` also for another.
    follow
        Whether to wait for more at the end of what is there.
    labels
        Whether the records are labels, each with the id of its message.
    written
        How labels are written: `labels` of `read`.
    whole_lines
        Whether a last line without a line end is left unread, even without `follow`. A later run from the position then
        reads the whole line.
    on_bad
        Called with the place (`line 3`, `offset 17 of partition 0`) and the reason for each record
        that cannot be read. Without it such a record raises.
    on_event
        Called with what an operator should know: rotation, outages, lost messages.
    **options
        `format`, `text_field` and the other options of `read`. The format is jsonl by default for Kafka and standard
        input; entries of Redis have fields in place of a format. `on_lines_of_text` is for standard input.

    Raises
    ------
    StreamError
        If the address or an option is wrong, or if the position is of another kind of source or of
        another server (with Kafka, while reading). While reading, also if a record is bad and there is
        no `on_bad`, or if a topic, or a stream that is not to be followed, does not exist.
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
    asked = ReadOptions(labels=written, unlabelled=True, **options)
    reporter = Reporter(on_bad, on_event, asked.unreadable)
    return open_as(os.fspath(address), position, asked, reporter, follow, labels, whole_lines)


def open_as(
    address: str, position: Any, options: ReadOptions, reporter: Reporter, follow: bool, labels: bool, whole_lines: bool
) -> Source:
    """Open what `open_source` opens, with these options."""
    server = parse_address(address) if "://" in address else None
    if options.format is None:
        options = replace(options, format="jsonl" if server else format_of(address))
    elif server is not None and server.scheme != "kafka":
        raise StreamError(f"format {options.format!r} does not fit a Redis stream, whose entries have fields")
    if address == "-":
        if labels:
            raise StreamError("labels cannot come from standard input: give a file, a Kafka topic or a Redis stream")
        from stream_pegasos.streams.stdin import StandardInput

        return StandardInput(options, reporter)
    if server is None:
        from stream_pegasos.streams.file import FollowedFile

        hint = stdin_hint(address, str(options.format))
        if options.format == "mail":
            raise StreamError(f"{address} is mail, which predict and train read to its end; to go on, {hint}")
        if options.format in NO_LINES and not labels:
            raise StreamError(
                f"{address} is {options.format}, whose records are no single lines, and cannot be followed: {hint}"
            )
        if not options.decoder.has_lines:
            raise StreamError(
                f"{address} is {options.encoding}, whose lines are found only after decoding, and cannot be followed: "
                f"{hint}"
            )
        parse = record_parser(options, labels, "a growing file")
        return FollowedFile(address, position, parse, follow, reporter, whole_lines)
    if server.scheme == "kafka":
        from stream_pegasos.streams.kafka import KafkaSource

        return KafkaSource(server, position, record_parser(options, labels, "a Kafka topic"), follow, reporter)
    from stream_pegasos.streams.redis import RedisSource

    return RedisSource(server, position, options, labels, follow, reporter)


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
    if server.scheme == "kafka":
        from stream_pegasos.streams.kafka import KafkaSink

        return KafkaSink(server)
    from stream_pegasos.streams.redis import RedisSink

    return RedisSink(server)
