"""CSV that is followed as it grows, against what the csv module wrote."""

import csv
import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import rest, texts

from stream_pegasos.streams import StreamError, file, open_source

words = st.text(st.sampled_from('ab ,"\n\ré'), max_size=8)


def written(rows, header=("label", "text")):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([header, *rows] if header else rows)
    return out.getvalue().encode()


def rows_of(batches):
    return [(example.y, example.x) for batch in batches for example in batch.examples]


@pytest.fixture
def mail(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_GRACE", 0.1)
    monkeypatch.setattr(file, "_INTERVAL", 0.01)
    return tmp_path / "mail.csv"


@given(st.lists(words, min_size=1), st.lists(st.integers(0, 400), max_size=4), st.booleans())
def test_records_are_taken_when_they_are_complete_and_once(values, cuts, resumes):
    """Wherever the writer is, within a field or a character, and whether one run goes on or each begins anew."""
    rows = [(f"l{i}", value) for i, value in enumerate(values)]
    data, found, position = written(rows), [], None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mail.csv")
        for end in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
            path.write_bytes(data[:end])
            batches, bad, _ = rest(path, position if resumes else None, whole_lines=True)
            found = [*found, *rows_of(batches)] if resumes else rows_of(batches)
            position = batches[-1].position if batches else position
            assert found == rows[: len(found)] and bad == []
    assert found == rows


def test_it_is_followed(mail, follow):
    rows = [("a", "one\n\nmore"), ("b", 'two "quoted"\r\n')]
    data = written(rows)
    mail.write_bytes(data[:20])
    following = follow(mail)
    following.wait(lambda: following.source._offset > 0)
    with mail.open("ab", buffering=0) as out:
        for i in range(20, len(data)):
            out.write(data[i : i + 1])
    following.wait_for(*(text for _, text in rows))
    assert rows_of(following.batches) == rows and following.bad == []
    with mail.open("ab", buffering=0) as out:
        out.write(b'"c","' + b"x" * 100 + b"\n")
        following.wait(lambda: following.source._offset == len(data))
        out.write(b'y"\n')
    following.wait_for(*(text for _, text in rows), "x" * 100 + "\ny")


@pytest.mark.parametrize("header", [("label", "text"), ("text", "more", "label"), None])
def test_a_rotated_file_has_a_header_of_its_own_or_none(mail, header):
    mail.write_bytes(written([("a", "one")]))
    [batch], *_ = rest(mail)
    mail.rename(f"{mail}.1")
    os.utime(f"{mail}.1", (1, 1))
    row = ("two", "", "b") if header is not None and len(header) == 3 else ("b", "two")
    mail.write_bytes(written([row], header))
    batches, bad, _ = rest(mail, batch.position)
    assert rows_of(batches) == [("b", "two")] and bad == []
    mail.write_bytes(mail.read_bytes() + written([row], None))
    assert rows_of(rest(mail, batches[-1].position)[0]) == [("b", "two")]


def test_a_quote_that_is_never_closed_waits_and_costs_its_line_at_the_end(mail, follow, monkeypatch):
    monkeypatch.setattr(file, "_LONG_RECORD", 50)
    data = b'label,text\n1,a\n2,"open\n' + b"3,b\n" * 20
    mail.write_bytes(data)
    following = follow(mail)
    following.wait(lambda: following.events)
    assert following.texts == ["a"] and "line 3 of" in following.events[0] and "never closed" in following.events[0]
    batches, bad, _ = rest(mail)
    assert texts(batches) == ["a", *["b"] * 20] and bad == [("line 3", "not CSV (the quote is never closed)")]
    assert batches[-1].position["offset"] == len(data) and batches[-1].position["line"] == 23


def test_columns_without_a_header_and_tsv(mail, tmp_path):
    mail.write_bytes(b"1;a\n2;b\n")
    options = {"delimiter": ";", "columns": ["label", "text"]}
    [batch], *_ = rest(mail, **options)
    assert rows_of([batch]) == [(1, "a"), (2, "b")] and rest(mail, batch.position, **options)[0] == []
    (tmp_path / "a.tsv").write_bytes(b"label\ttext\n1\ta\n")
    assert rows_of(rest(tmp_path / "a.tsv")[0]) == [(1, "a")]


def test_what_cannot_be_followed(mail):
    mail.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(StreamError, match="the header has no field 'text'"):
        rest(mail)
    with pytest.raises(StreamError, match="labels come as jsonl, not as csv"):
        open_source(mail, labels=True)
    mail.write_bytes(written([("a", "b")]))
    [batch], *_ = rest(mail)
    with pytest.raises(StreamError, match="a position in a file must"):
        open_source(mail, {**batch.position, "columns": [1]})
