"""Lines of text: with the label first (label<TAB>text, or fastText), or without a label."""

from __future__ import annotations

import re

from stream_pegasos.streams.example import Parsed, Truth
from stream_pegasos.streams.lines import Parser
from stream_pegasos.streams.read_options import ReadOptions


def text_parser(options: ReadOptions) -> Parser:
    return lambda line: (line.decode(), None, 1.0, None)


def labelled_text_parser(options: ReadOptions) -> Parser:
    def parse(line: bytes) -> Parsed:
        label, tab, text = line.decode().partition("\t")
        if not (tab or options.unlabelled) and _fasttext(label):
            raise ValueError("no label and tab before the text, but __label__; see --format fasttext")
        return (text, options.label(options.labels.of_text, label), 1.0, None) if tab else (label, None, 1.0, None)

    return parse


_fasttext = re.compile(r"\s*__label__(\S*)(?:\s+|$)").match
_fasttext_label = re.compile(r"(?:^|\s)__label__\S").search


def fasttext_parser(options: ReadOptions) -> Parser:
    """Make the parser of a fastText line: the label or labels, then the text."""

    def parse(line: bytes) -> Parsed:
        text = line.decode()
        written, begin = [], 0
        while match := _fasttext(text, begin):
            written.append(match[1])
            begin = match.end()
        text = text[begin:]
        if _fasttext_label(text):
            raise ValueError("a label after the text")
        return text, options.label(parse_labels, written), 1.0, None

    def parse_labels(written: list[str]) -> Truth | None:
        parsed_labels = [label for text in written if (label := options.labels.of_text(text)) is not None]
        if len(parsed_labels) < 2:
            return parsed_labels[0] if parsed_labels else None
        groups = (label if isinstance(label, tuple) else (label,) for label in parsed_labels)
        return tuple(dict.fromkeys(label for group in groups for label in group))

    return parse
