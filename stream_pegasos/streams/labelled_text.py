"""Text after its label: label<TAB>text, and fastText."""

from __future__ import annotations

import re

from stream_pegasos.streams.example import Parsed, label_of


def parse_labelled_text(line: bytes) -> Parsed:
    label, tab, text = line.decode().partition("\t")
    return (text, label_of(label), 1.0, None) if tab else (label, None, 1.0, None)


_fasttext = re.compile(r"\s*__label__(\S*)(?:\s+|$)").match
_fasttext_label = re.compile(r"(?:^|\s)__label__\S").search


def parse_fasttext(line: bytes) -> Parsed:
    text = line.decode()
    label = None
    if match := _fasttext(text):
        label = label_of(match[1])
        text = text[match.end() :]
    if _fasttext_label(text):
        raise ValueError("more than one label, or a label after the text")
    return text, label, 1.0, None
