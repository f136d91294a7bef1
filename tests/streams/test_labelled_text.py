import pytest
from reading import pairs

from stream_pegasos.streams import LabelFormat, ReadOptions, StreamError
from stream_pegasos.streams.labelled_text import fasttext_parser


def test_many_labels_are_not_copied_for_each_of_them():
    copied = []

    class Text(str):
        def __getitem__(self, part):
            copied.append(len(super().__getitem__(part)))
            return Text(super().__getitem__(part))

    class Line(bytes):
        def decode(self):
            return Text(super().decode())

    x, y, _, _ = fasttext_parser(ReadOptions())(Line(b"__label__a __label__b " * 500 + b"win now"))
    assert (x, y) == ("win now", ("a", "b"))
    assert sum(copied) < 100


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("labelled-text", b"oil; 7;oil\tx\n ; \ty\n"),
        ("csv", b"text,label\nx,oil; 7;oil\ny, ; \n"),
        ("tsv", b"label\ttext\noil; 7;oil\tx\n;\ty\n"),
        ("jsonl", b'{"text": "x", "label": "oil; 7;oil"}\n{"text": "y", "label": ";"}\n'),
    ],
)
def test_a_separator_makes_several_labels(format, data):
    assert pairs(data, format, unlabelled=True, labels=LabelFormat(";")) == [("x", ("oil", 7)), ("y", None)]


def test_lines_of_text():
    data = "win\tnow\r\n\n 这个 \n1".encode()
    texts = ["win\tnow", "", " 这个 ", "1"]  # line n is message n
    assert pairs(b"\xef\xbb\xbf" + data, "text", unlabelled=True) == [(text, None) for text in texts]
    with pytest.raises(StreamError, match="lines of text have no labels"):
        pairs(data, "text")
