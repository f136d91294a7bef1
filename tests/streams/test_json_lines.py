import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, examples, pairs

from stream_pegasos.streams import Example, LabelFormat, StreamError, chunks, json_lines, read


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
        (b'{"text": "a"}', "no field 'label'; its fields: text"),
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


def test_fields_of_objects():
    data = (
        b'{"a": {"b": {"c": "one"}, "b.c": "two"}, "id": 1}\n{"a": {"b": {"c": "one"}}}\n{"a": {"b": 1}}\n{"a": "x"}\n'
    )
    found, bad = examples(data, "jsonl", text_field="a.b.c", label_field="id", unlabelled=True)
    assert [(example.x, example.y) for example in found] == [("two", 1), ("one", None)]
    assert bad == [(3, "no field 'a.b.c'; its fields: a"), (4, "no field 'a.b.c'; its fields: a")]
    data = b'{"a.b": "literal", "a": {"b": "inner", "y": ["p", 2]}}\n{"a": {"b": null, "y": 1}}'
    found, bad = examples(data, "jsonl", text_field="a.b", label_field="a.y")
    assert [(example.x, example.y) for example in found] == [("literal", ("p", 2))]
    assert bad == [(2, "field 'a.b' is null, not a string")]


# arrays

value = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(st.sampled_from('\\"{}[], \nx\x00é')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
objects = st.lists(st.builds(lambda text, more: {"text": text, "label": 1, "more": more}, st.text(), value))


@given(
    objects, st.sampled_from([None, 0, 1]), st.booleans(), st.integers(1, 12), st.sampled_from(["", "\ufeff", "\n \n"])
)
def test_arrays_are_read_as_lines_are(records, indent, ascii, size, before):
    data = (before + json.dumps(records, indent=indent, ensure_ascii=ascii) + "\n").encode(errors="replace")
    expected = [(record["text"], 1) for record in json.loads(data.decode("utf-8-sig"))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_SIZE", size)
        found = pairs(data, "jsonl")
    assert found == expected


def test_elements_that_cannot_be_read():
    data = b"""
[
  {"text": "a", "label": 1},
  {"text": oops}, {"id": 7,
   "label": 1},
  , 3,
  {"text": "b",
   "label": 2},
]
"""
    found, bad = examples(data, "jsonl")
    assert [(example.x, example.line) for example in found] == [("a", 3), ("b", 7)]
    assert [(line, reason.partition(" (")[0]) for line, reason in bad] == [
        (4, "element 2: not JSON"),
        (4, "element 3: no field 'text'; its fields: id, label"),
        (6, "element 4: there is none"),
        (6, "element 5: not a JSON object but a number"),
        (9, "element 7: there is none"),
    ]
    assert examples(data, "jsonl", unreadable=True)[0][2].id == 7


@pytest.mark.parametrize("end", [b"", b",", b', {"text": "c', b', {"text": "c", "label": 1', b" "])
def test_an_array_that_is_never_closed(end):
    found, bad = examples(b'[{"text": "a", "label": 1},\n {"text": "b", "label": 1}' + end, "jsonl")
    assert [example.x for example in found] == ["a", "b"]
    assert bad == [(2, "the array is never closed")]


def test_what_comes_after_an_array():
    """Arrays that were put together, or lines."""
    array = b'[{"text": "a", "label": 1},\n {"text": "b", "label": 1}]\n'
    data = array + array + b"[]" + b'{"text": "c", "label": 1}\n[{"text": "d", "label": 1}]\n'
    found, bad = examples(data, "jsonl")
    assert [(example.x, example.line) for example in found] == [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("c", 5)]
    assert bad == [(6, "not a JSON object but a list")]


@pytest.mark.parametrize("line", [b"[2026-11-22] begin", b"[1]", b"[[]]", b"[", b'["a"]'])
def test_a_first_line_that_begins_no_array(line):
    found, bad = examples(line + b'\n"x"\n{"text": "a", "label": 1}\n', "jsonl")
    assert [example.x for example in found] == ["a"] and len(bad) == 2


def test_an_array_in_windows_1252_and_in_utf16():
    text = json.dumps([{"text": "£5", "label": 1}, {"text": "a", "label": 1}], ensure_ascii=False)
    told = []
    for data in (text.encode("cp1252"), text.encode("utf-16"), gzip.compress(text.encode("cp1252"))):
        assert pairs(data, "jsonl", on_windows_1252=lambda: told.append(1)) == [("£5", 1), ("a", 1)]
    assert len(told) == 2


def test_elements_that_are_too_long(monkeypatch):
    monkeypatch.setattr(json_lines, "LONGEST_LINE", 100)
    monkeypatch.setattr(chunks, "_SIZE", 30)
    data = b'[{"text": "a", "label": 1},{"text": "%s"},{"text": "b", "label": 1}]' % (b"\n" * 200)
    found, bad = examples(data, "jsonl")
    assert [(example.x, example.line) for example in found] == [("a", 1), ("b", 201)]
    assert bad == [(1, "element 2: it is longer than 256 MB")]


def test_an_endless_array_takes_no_memory():
    class Endless(io.RawIOBase):
        n = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = (b'{"text": "' + b"x" * 1000 + b'", "label": 1}, ') if self.n else b"["
            self.n += 1
            buffer[: len(piece)] = piece
            return len(piece)

    stream = read(Endless(), format="jsonl")
    next(stream)
    tracemalloc.start()
    for _ in range(20_000):
        next(stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 19


def test_many_arrays_take_no_memory():
    n = 6_000
    stream = read(io.BytesIO(b'[{"text": "a", "label": 1}]\n' * n), format="jsonl")
    next(stream)
    tracemalloc.start()
    assert sum(1 for _ in stream) == n - 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
