import pytest
from reading import bad_lines, examples, pairs


def test_labelled_text():
    data = "ham\thi\tyou\r\n\n+1\t\nspam\t ünï\u2028x \n".encode()
    expected = [("hi\tyou", "ham"), ("", 1), (" ünï\u2028x ", "spam")]
    assert pairs(data, "labelled-text") == expected
    data = b"no label\n\tnone either\nham\tone\n"
    assert pairs(data, "labelled-text", unlabelled=True) == [
        ("no label", None),
        ("none either", None),
        ("one", "ham"),
    ]
    assert [line for line, _ in bad_lines(data, "labelled-text")] == [1, 2]
    assert bad_lines(b"ham\t\xc3\n", "labelled-text") == [(1, "not UTF-8 (byte 0xc3 at column 5)")]


def test_fasttext():
    data = b"__label__spam win now\n__label__1\t x__label__y\n __label__0\nno label\n__label__ b\n"
    found, bad = examples(data, "fasttext")
    assert [(example.x, example.y) for example in found] == [
        ("win now", "spam"),
        ("x__label__y", 1),
        ("", 0),
    ]
    assert [line for line, _ in bad] == [4, 5]
    assert pairs(data, "fasttext", unlabelled=True)[3:] == [("no label", None), ("b", None)]


@pytest.mark.parametrize("line", [b"__label__a __label__b text", b"text __label__a"])
def test_fasttext_takes_one_label_that_stands_first(line):
    ((_, reason),) = bad_lines(line, "fasttext", unlabelled=True)
    assert "label" in reason
