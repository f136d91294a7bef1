import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, examples, pairs

from stream_pegasos.streams import Example, LabelFormat, StreamError, read


def test_jsonl():
    data = (
        b'{"text": "a", "label": "spam", "id": 7}\n'
        b'\n  \t\n{"label": 1, "text": "b"}\r\n'
        b'{"text": "", "label": true}\n'
        b'{"text": "c", "label": "-1"}\n'
        b'{"text": "d", "label": 2.0}'
    )
    assert examples(data, "jsonl") == (
        [
            Example("a", "spam", 1.0, 1, 7),
            Example("b", 1, 1.0, 4, None),
            Example("", True, 1.0, 5, None),
            Example("c", -1, 1.0, 6, None),
            Example("d", 2, 1.0, 7, None),
        ],
        [],
    )
    assert type(examples(data, "jsonl")[0][2].y) is bool
    assert type(examples(data, "jsonl")[0][4].y) is int


def test_jsonl_fields_are_options():
    data = b'{"text": "no", "label": 0, "body": "yes", "class": "x"}'
    assert pairs(data, "jsonl", text_field="body", label_field="class") == [("yes", "x")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b'{"text": "a", "label": 1', "not JSON"),
        (b'{"text": NaN, "label": 1}', "not JSON"),
        (b'{"text": "\\ud800", "label": 1, "x": NaN}', "not JSON"),
        (b"[" * 100_000 + b'"\\ud800"', "not JSON"),
        (b"[1]", "not a JSON object but a list"),
        (b"null", "not a JSON object but null"),
        (b'{"label": 1}', "no field 'text'"),
        (b'{"text": null, "label": 1}', "field 'text' is null, not a string"),
        (b'{"text": 5, "label": 1}', "field 'text' is a number, not a string"),
        (b'{"text": "a"}', "no label in the field 'label'"),
        (b'{"text": "a", "label": null}', "no label in the field 'label'"),
        (b'{"text": "a", "label": ""}', "no label in the field 'label'"),
        (b'{"text": "a", "label": 0.5}', "label 0.5 is not an integer"),
        (b'{"text": "a", "label": 1e300}', "label 1e\\+300 is not an integer"),
        (b'{"text": "a", "label": ["x", ""]}', "field 'label' is a list with an empty label"),
        (b'{"text": "a", "label": [null]}', "field 'label' is a list with an empty label"),
        (b'{"text": "a", "label": [["x"]]}', "field 'label' is a list, not a label"),
        (b'{"text": "a", "label": ["x", 0.5]}', "label 0.5 is not an integer"),
        (b'{"text": "a", "label": {}}', "field 'label' is an object, not a label"),
        (b'{"text": "\xff", "label": 1', "not JSON"),
    ],
)
def test_jsonl_bad_lines(line, reason):
    good = b'{"text": "good", "label": "x"}\n'
    found, bad = examples(good + line + b"\n" + good, "jsonl")
    assert [example.line for example in found] == [1, 3]
    ((number, text),) = bad
    assert number == 2
    with pytest.raises(StreamError, match=reason):
        list(read(io.BytesIO(line), format="jsonl"))
    assert "\n" not in text


def test_what_is_not_utf8():
    """As UTF-8 no surrogate is text, though JSON may escape one."""
    for line, column in ((b'{"text": "\xff", "label": 1}', 11), (b'{"text": "a\xed\xa0\x80", "label": 1}', 12)):
        ((_, reason),) = bad_lines(line, "jsonl", encoding_errors="strict")
        assert reason == f"not UTF-8 (byte 0x{line[column - 1]:02x} at column {column})"


@given(st.text(), st.one_of(st.booleans(), st.integers(-(10**15), 10**15)))
def test_jsonl_takes_every_text(text, label):
    """Lone surrogates, nulls and line separators of Unicode included."""
    for ascii in (True, False):
        line = json.dumps({"text": text, "label": label}, ensure_ascii=ascii)
        line = line.encode(errors="surrogatepass")
        if ascii or not any("\ud800" <= c <= "\udfff" for c in text):
            assert pairs(line, "jsonl") == [(text, label)]


def test_lone_surrogate():
    assert pairs(b'{"text": "a\\ud83d b", "label": 1}', "jsonl") == [("a\ud83d b", 1)]
    assert pairs(b'{"text": "a\\uDC00", "label": 1}', "jsonl") == [("a\udc00", 1)]


@pytest.mark.parametrize(
    ("id", "read_as"),
    [
        *[('"a"', "a"), ("7", 7), ("1.5", None), ("true", None), ("null", None), ("[1]", None), ("1e400", None)],
        # Neighbours would be one and the same float.
        *[(str(2**64 - 1), 2**64 - 1), (str(2**70), None), (str(2**70 + 1), None)],
    ],
)
def test_ids_are_strings_and_integers(id, read_as):
    text = "\\ud83d" if id == "1e400" else "win"  # which Python's parser reads, that takes it for infinite
    data = f'{{"id": {id}, "text": "{text}"}}\n'.encode()
    [example] = read(io.BytesIO(data), format="jsonl", unlabelled=True)
    assert example.id == read_as
    assert type(example.id) is type(read_as)


def test_a_list_is_labels_that_hold_together():
    lines = [
        b'{"text": "a", "label": ["oil", "7", 7.0, true, "oil"]}',
        b'{"text": "a", "label": []}',
        b'{"text": "a", "label": "oil"}',
    ]
    assert [y for _, y in pairs(b"\n".join(lines), "jsonl")] == [("oil", 7, True), (), "oil"]
    several = LabelFormat(several=True)
    assert [y for _, y in pairs(b"\n".join(lines), "jsonl", labels=several)] == [("oil", 7, True), (), ("oil",)]
