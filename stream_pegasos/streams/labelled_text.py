"""Lines of text: after its label as in label<TAB>text, as in fastText, or without one."""

from __future__ import annotations

import re
from collections.abc import Callable

from stream_pegasos.streams.example import LabelFormat, Parsed, together


def parse_text(line: bytes) -> Parsed:
    return line.decode(), None, 1.0, None


def labelled_text_parser(labels: LabelFormat, labelled: bool) -> Callable[[bytes], Parsed]:
    def parse(line: bytes) -> Parsed:
        label, tab, text = line.decode().partition("\t")
        if labelled and not tab and _fasttext(label):
            raise ValueError("no label and tab before the text, but __label__; see --format fasttext")
        return (text, labels.of_text(label), 1.0, None) if tab else (label, None, 1.0, None)

    return parse


_fasttext = re.compile(r"\s*__label__(\S*)(?:\s+|$)").match
_fasttext_label = re.compile(r"(?:^|\s)__label__\S").search


def fasttext_parser(labels: LabelFormat) -> Callable[[bytes], Parsed]:
    """The labels before the text: one, or several."""

    def parse(line: bytes) -> Parsed:
        text = line.decode()
        found, begin = [], 0
        while match := _fasttext(text, begin):
            label = labels.of_text(match[1])
            if label is not None:
                found.append(label)
            begin = match.end()
        text = text[begin:]
        if _fasttext_label(text):
            raise ValueError("a label after the text")
        if len(found) < 2:
            return text, found[0] if found else None, 1.0, None
        several = (label if isinstance(label, tuple) else (label,) for label in found)
        return text, together(label for some in several for label in some), 1.0, None

    return parse
