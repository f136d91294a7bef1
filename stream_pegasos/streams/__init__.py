"""Streams of examples: read from files and pipes, followed while they grow, or made on the spot.

| what | file |
|---|---|
| what is read and how | `read_options`, `readers`; an `example` |
| formats | `json_lines`, `csv_tsv`, `labelled_text`, `vw_svmlight`, `parquet`, with `record_fields` of records |
| mails | `mail`, `mail_folders`; their order, `mail_arrival`; marks of other programs, `mail_marks` |
| bytes to lines | `chunks`, `compression`, `encoding`, `lines` |
| an answer, as a line, a record or JSON | `answer` |
| live sources and sinks: a row a server | `sources`, `addresses`, `schemes`, `opening` |
| a source or sink each | `file`, `stdin`, `kafka`, `kafka_group`, `redis` |
| late labels; the stream that needs no file | `join`, `synthetic` |
"""

from stream_pegasos.learners.label_policy import label_of
from stream_pegasos.streams.answer import Answer
from stream_pegasos.streams.example import Example, LabelFormat, StreamError, Truth
from stream_pegasos.streams.join import LabelJoin
from stream_pegasos.streams.opening import open_sink, open_source
from stream_pegasos.streams.read_options import FORMATS, ReadOptions
from stream_pegasos.streams.readers import format_of, read, read_mail
from stream_pegasos.streams.sources import Batch, Lag, Sink, Source, of_any_server
from stream_pegasos.streams.synthetic import synthetic

__all__ = [
    "FORMATS",
    "Answer",
    "Batch",
    "Example",
    "LabelFormat",
    "LabelJoin",
    "Lag",
    "ReadOptions",
    "Sink",
    "Source",
    "StreamError",
    "Truth",
    "format_of",
    "label_of",
    "of_any_server",
    "open_sink",
    "open_source",
    "read",
    "read_mail",
    "synthetic",
]
