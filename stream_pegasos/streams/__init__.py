"""Streams of labelled examples: read from files and pipes, or made on the spot."""

from stream_pegasos.streams.readers import FORMATS, Example, StreamError, format_of, label_of, read
from stream_pegasos.streams.synthetic import synthetic

__all__ = ["FORMATS", "Example", "StreamError", "format_of", "label_of", "read", "synthetic"]
