import gzip
import io
import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reading import bad_lines, examples, pairs

from stream_pegasos.streams import Example, chunks, json_lines, read


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


@pytest.mark.parametrize(
    ("id", "read_as"),
    [
        *[('"a"', "a"), ("7", 7), ("1.5", None), ("true", None), ("null", None), ("[1]", None), ("1e400", None)],
        # As pandas writes an integer where others are missing.
        *[("17.0", 17), ("-0.0", 0), (f"{2**53 - 1}.0", 2**53 - 1), (f"{2**53 + 1}.0", None), ('"17.0"', "17.0")],
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


numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3)
nested = st.recursive(numbers, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


@given(nested)
@example(2**70 + 1)
@example(-(2**64) - 1)
@example([0.5, {"y": [1e300, 2**64]}])
def test_fields_have_the_numbers_that_were_written(value):
    """Integers of any size, too, as over HTTP."""
    line = json.dumps({"x": value, "id": 1, "label": "a"}).encode()
    for data in (line, b"[" + line + b"]"):
        [found], _ = examples(data, "jsonl", fields=["x"])
        assert repr(found) == repr(Example({"x": value}, "a", 1.0, 1, 1))


def test_a_number_beside_what_python_may_be_unable_to_read_is_not_lost():
    line = f'{{"x": {2**70}, "other": {"[" * 1_000 + "]" * 1_000}, "label": 1}}'
    assert pairs(line.encode(), "jsonl", fields=["x"]) == [({"x": 2**70}, 1)]  # rounded or not


@given(
    st.recursive(st.floats() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
@example({"NaN": ["Infinity", float("nan")]})
def test_numbers_that_are_none_cost_no_line(value):
    """As Python writes them: in a field that nobody reads, as a label, in a field of the message."""
    record = {"text": "a", "label": "b", "more": value}
    for array in (False, True):
        data = json.dumps([record] if array else record).encode()
        assert pairs(data, "jsonl") == [("a", "b")]
    for number in ("NaN", "Infinity", "-Infinity"):
        data = f'{{"text": "a", "label": {number}, "id": {number}}}'.encode()
        [found], _ = examples(data, "jsonl", unlabelled=True)
        assert found == Example("a", None, 1.0, 1)
        assert bad_lines(data, "jsonl") == [(1, "no label in the field 'label'")]
        assert pairs(data, "jsonl", fields=["text", "id"], unlabelled=True) == [({"text": "a", "id": None}, None)]


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


@pytest.mark.parametrize("end", [b"", b",", b', {"text": "c', b', {"text": "c", "label": 1', b" "])
def test_an_array_that_is_never_closed(end):
    found, bad = examples(b'[{"text": "a", "label": 1},\n {"text": "b", "label": 1}' + end, "jsonl")
    assert [example.x for example in found] == ["a", "b"]
    assert bad == [(2, "the array is never closed")]


@pytest.mark.parametrize("broken", ['{"text": "b, "label": 1}', '{"text": "b", "label": "1}', '{"text": "b", "x": {}'])
@pytest.mark.parametrize("at", [0, 3, 6])
def test_an_element_that_is_broken_costs_its_line_alone(broken, at):
    """Where each stands in a line of its own."""
    rows = [f'{{"text": "a{i}", "label": 1}}' for i in range(6)]
    data = "[" + ",\n".join([*rows[:at], broken, *rows[at:]]) + "]\n"
    found, bad = examples(data.encode(), "jsonl")
    assert [(example.x, example.line) for example in found] == [(f"a{i}", i + 1 + (i >= at)) for i in range(6)]
    assert bad and len(bad) <= 3


def test_what_comes_after_an_array():
    """Arrays that were put together, or lines."""
    array = b'[{"text": "a", "label": 1},\n {"text": "b", "label": 1}]\n'
    data = array + array + b"[]" + b'{"text": "c", "label": 1}\n[{"text": "d", "label": 1}]\n'
    found, bad = examples(data, "jsonl")
    assert [(example.x, example.line) for example in found] == [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("c", 5)]
    assert bad == [(6, "it must be a JSON object, got a list")]


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
    for _ in range(3_000):
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
