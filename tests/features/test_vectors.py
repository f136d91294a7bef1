"""Vectors of words: values by hand, and tables that lack."""

import copy
import json
import pickle

import numpy as np
import pytest
from vectors_by_hand import ROWS, check, text_of

from stream_pegasos.features.vectors import packed, unpacked, word_vectors


def test_a_mapping():
    vectors = word_vectors(ROWS)
    lacking = [0.0] * 3
    words = ["good", "Rome", "rome", "usa", "Usa", "bad", "ROME"]
    check(vectors, words, [ROWS[w] for w in ("good", "Rome", "Rome", "USA")] + [lacking] * 3, 1.0)
    assert (vectors.name, vectors.size, vectors.n_dimensions) == ("mapping", 3, 3)
    assert [part.shape for part in vectors.codes([])] == [(0, 3), (0,)]
    assert word_vectors({"most": [1.0] * 1024}).n_dimensions == 1024


@pytest.mark.parametrize(
    "numbers", [[127.5], [127.49], [126.5], [16256.0], [16255.0, 1.0], [0.0], [-16192.0], [8128.5]]
)
def test_numbers_at_the_edges_of_codes(numbers):
    check(word_vectors({"a": numbers, "b": [16256.0] * len(numbers)}), ["a"], [numbers], 16256.0)


@pytest.mark.parametrize("largest", [5e-324, 1e-310, 1e308, 0.0])
def test_numbers_as_small_and_as_large_as_there_are(largest):
    expected = 16256.0 if largest else 0.0
    assert word_vectors({"a": [largest, 0.0]}).vector("a").tolist() == [expected, 0.0]


def test_the_digest_is_of_words_and_numbers_alone(tmp_path):
    rows = {word: np.float32(row) for word, row in ROWS.items()}
    table = word_vectors(rows)
    assert word_vectors(dict(reversed(rows.items()))) == table
    for name, header in ("a.vec", True), ("b.txt", False):
        (tmp_path / name).write_text(text_of(ROWS, header), encoding="utf-8")
        assert word_vectors(tmp_path / name).digest == table.digest
    others = {**rows, "good": rows["good"] * 2}, {**rows, "bad": rows["good"]}, {"goods": rows["good"], **rows}
    assert len({table.digest, *(word_vectors(other).digest for other in others)}) == 4
    assert len(table.digest) == 32 and int(table.digest, 16)


def test_the_digest_is_the_same_on_every_machine():
    assert word_vectors(ROWS).digest == "26b15073796c109229bd7c8c32e5750b"


def test_text_with_odd_words(tmp_path):
    """Words with spaces, twice, and in no UTF-8."""
    path = tmp_path / "x.vec"
    path.write_bytes("2 2\nnew york 1 -2 \n\u00a0 0.5 1\nnew york 9 9\n".encode() + b"\xff 1 1\n")
    vectors = word_vectors(str(path))
    check(vectors, ["new york", "\u00a0", "\ufffd"], [[1, -2], [0.5, 1], [1, 1]], 2.0)
    assert (vectors.name, vectors.size) == (str(path), 3)


def test_a_table_is_read_once_unless_it_changes(tmp_path):
    path = tmp_path / "x.vec"
    path.write_text(text_of(ROWS), encoding="utf-8")
    first = word_vectors(path)
    assert word_vectors(first) is first and word_vectors(str(path)) == first
    path.write_text(text_of({**ROWS, "bad": [0, 0, 1]}), encoding="utf-8")
    assert word_vectors(path).size == 4 and first.size == 3


def test_copies_and_pickles(tmp_path):
    (tmp_path / "x.vec").write_text(text_of(ROWS), encoding="utf-8")
    for vectors in (word_vectors(x) for x in (ROWS, tmp_path / "x.vec")):
        again = pickle.loads(pickle.dumps(vectors))
        assert again == vectors == copy.deepcopy(vectors) and hash(again) == hash(vectors)
        assert (again.vector("good") == vectors.vector("good")).all()
    pickled = pickle.dumps(word_vectors(tmp_path / "x.vec"))
    assert len(pickled) < 500
    (tmp_path / "x.vec").write_text(text_of({**ROWS, "good": [1, 1, 1]}), encoding="utf-8")
    with pytest.raises(ValueError, match="is another table"):
        pickle.loads(pickled)
    (tmp_path / "x.vec").unlink()
    with pytest.raises(FileNotFoundError, match="file or folder that exists"):
        pickle.loads(pickled)


def test_what_a_model_file_says_of_it(tmp_path):
    (tmp_path / "x.vec").write_text(text_of(ROWS), encoding="utf-8")
    vectors = word_vectors(tmp_path / "x.vec")
    found = json.loads(json.dumps(packed(vectors)))
    assert found == {"name": str(tmp_path / "x.vec"), "size": 3, "n_dimensions": 3, "digest": vectors.digest}
    with pytest.raises(ValueError, match=r"needs the word vectors '.*' \(3 × 3, .* name it to allow it"):
        unpacked(found)
    assert unpacked(found, tmp_path / "x.vec") == vectors
    (tmp_path / "x.vec").rename(tmp_path / "y.vec")
    assert unpacked(found, tmp_path / "y.vec").digest == vectors.digest
    with pytest.raises(ValueError, match=r"another table \(2 × 1"):
        unpacked(found, {"a": [1], "b": [2]})
    with pytest.raises(ValueError, match="give the mapping"):
        unpacked(packed(word_vectors(ROWS)))
    with pytest.raises(ValueError, match=r"'x\.bin' is a binary file"):
        unpacked({**found, "name": "x.bin"}, "x.bin")
    assert unpacked({**found, "name": "x.bin"}, tmp_path / "y.vec").digest == vectors.digest
    assert unpacked(packed(word_vectors(ROWS)), ROWS) == word_vectors(ROWS)
    for wrong in None, {}, {**found, "size": "3"}, {**found, "name": ["x"]}:
        with pytest.raises(ValueError, match="does not say"):
            unpacked(wrong)


@pytest.mark.parametrize(
    "source, error, match",
    [
        (None, TypeError, "got a NoneType"),
        (b"wordllama", TypeError, "got a bytes"),
        ("wordlama", FileNotFoundError, "file or folder that exists, got 'wordlama'"),
        ("a\0b", ValueError, "must be the name of a file"),
        ("x.bin", ValueError, r"'x\.bin' is a binary file of word2vec .*: write its vectors as text, \.vec, as"),
        ("/dev/null", FileNotFoundError, "file or folder that exists"),
        ({}, ValueError, "empty"),
        ({1: [1.0]}, TypeError, "a word of vectors must be a str, got 1"),
        ({"a": "b"}, TypeError, "of 'a' must be an array"),
        ({"a": [10**400]}, TypeError, "of 'a' must be an array"),
        ({"a": 1.0}, ValueError, "shape"),
        ({"a": [1.0], "b": [1.0, 2.0]}, ValueError, "'b' has the shape"),
        ({"a": [float("nan"), 1.0]}, ValueError, "infinite ones or NaN"),
        ({"a": [-float("inf")]}, ValueError, "infinite ones or NaN"),
        ({"a": [0.0] * 1025}, ValueError, "got 1025"),
        ({"a": []}, ValueError, "got 0"),
    ],
)
def test_what_is_no_table(source, error, match):
    with pytest.raises(error, match=match):
        word_vectors(source)


@pytest.mark.parametrize(
    "text, match",
    [
        ("", "no vectors of words"),
        ("3 2\n", "no vectors of words"),
        ("word\n", "line 1 of .* must be a word"),
        ("a 1 2\nb 1\n", "line 2 of .* with 2 numbers"),
        ("1 2\na 1 x\n", "line 2"),
        ("a 1 nan\n", "infinite ones or NaN"),
        ("a 1 1e300\n", "infinite ones or NaN"),
        ("1 0\na\n", "line 2"),
        ("1 1\na \0\0\0?\n", "line 2 of .* if the file is binary, write its vectors as text"),
        ("1 1100\na" + " 1" * 1100, "got 1100"),
    ],
)
def test_text_that_is_no_table(text, match, tmp_path):
    (tmp_path / "x.vec").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=match):
        word_vectors(tmp_path / "x.vec")
