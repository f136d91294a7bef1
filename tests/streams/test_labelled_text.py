import pytest
from reading import bad_lines, examples, pairs

from stream_pegasos.streams import LabelFormat, ReadOptions, StreamError
from stream_pegasos.streams.labelled_text import fasttext_parser


def test_labelled_text():
    data = "ham\thi\tyou\r\n\n+1\t\nspam\t ünï\u2028x \n".encode()
    expected = [("hi\tyou", "ham"), ("", 1), (" ünï\u2028x ", "spam")]
    assert pairs(data, "labelled-text") == expected
    data = b"no label\n\tnone either\nham\tone\n"
    assert pairs(data, "labelled-text", unlabelled=True) == [("no label", None), ("none either", None), ("one", "ham")]
    assert [line for line, _ in bad_lines(data, "labelled-text")] == [1, 2]
    assert bad_lines(b"ham\t\xc3\n", "labelled-text", encoding_errors="strict") == [
        (1, "not UTF-8 (byte 0xc3 at column 5)")
    ]


def test_fasttext():
    data = b"__label__spam win now\n__label__1\t x__label__y\n __label__0\nno label\n__label__ b\n"
    found, bad = examples(data, "fasttext")
    assert [(example.x, example.y) for example in found] == [("win now", "spam"), ("x__label__y", 1), ("", 0)]
    assert [line for line, _ in bad] == [4, 5]
    assert pairs(data, "fasttext", unlabelled=True)[3:] == [("no label", None), ("b", None)]


def test_fasttext_has_several_labels_that_hold_together():
    data = b"__label__b __label__1 __label__b win\n__label__a now\nnone\n__label__a,c  __label__b x\n"
    expected = [("win", ("b", 1)), ("now", "a"), ("none", None), ("x", ("a,c", "b"))]
    assert pairs(data, "fasttext", unlabelled=True) == expected
    written = [(text, (y,) if isinstance(y, str) else y) for text, y in expected]
    assert pairs(data, "fasttext", unlabelled=True, labels=LabelFormat(several=True)) == written
    assert pairs(data, "fasttext", unlabelled=True, labels=LabelFormat(","))[-1] == ("x", ("a", "c", "b"))
    ((_, reason),) = bad_lines(b"text __label__a", "fasttext", unlabelled=True)
    assert reason == "a label after the text"


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
    expected = [("win\tnow", None), ("", None), (" 这个 ", None), ("1", None)]  # line n is message n
    assert pairs(data, "text", unlabelled=True) == expected
    assert pairs(b"\xef\xbb\xbf" + data, "text", unlabelled=True) == expected
    with pytest.raises(StreamError, match="lines of text have no labels"):
        pairs(data, "text")
