"""Vectors of words: values by hand and by the packages that keep them, and tables that lack."""

import copy
import importlib.util
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

from stream_pegasos.features.vectors import packed, unpacked, word_vectors

WORDLLAMA = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
WORDS = ["free", "answer", "unbelievably", "好", "好吃", "!", "00", "ñandú", "🙂", "", " a  b ", "<s>", "▁", "x" * 200]
ROWS = {"good": [1.0, -0.5, 0.003], "Rome": [0.25, 0.0, 0.125], "USA": [0.004, 0.002, -0.001]}


def by_hand(numbers, largest):
    """Codes and shift of one vector, as they are defined."""
    whole = np.rint(np.asarray(numbers, float) / largest * 127 * 2**7)
    shift = next((s for s in range(8) if np.abs(np.rint(whole / 2**s)).max() <= 127), 7)
    return np.clip(np.rint(whole / 2**shift), -127, 127), shift


def check(vectors, words, numbers, largest):
    codes, shifts = vectors.codes(words)
    assert codes.dtype == np.int8 and shifts.dtype == np.uint8 and codes.shape == (len(words), vectors.n_dimensions)
    for word, row, code, shift in zip(words, numbers, codes, shifts, strict=True):
        expected, by = by_hand(row, largest)
        assert (code.tolist(), shift) == (expected.tolist(), by), word
        assert vectors.vector(word).tolist() == (expected * 2.0**by).tolist()


def text_of(rows, header=True):
    lines = [f"{len(rows)} {len(rows['good'])}"] if header else []
    return "".join(f"{line}\n" for line in [*lines, *(f"{w} {' '.join(map(str, row))} " for w, row in rows.items())])


def test_a_mapping():
    vectors = word_vectors(ROWS)
    lacking = [0.0] * 3
    words = ["good", "Rome", "rome", "usa", "Usa", "bad", "ROME"]
    check(vectors, words, [ROWS[w] for w in ("good", "Rome", "Rome", "USA")] + [lacking] * 3, 1.0)
    assert (vectors.name, vectors.size, vectors.n_dimensions) == ("mapping", 3, 3)
    assert [part.shape for part in vectors.codes([])] == [(0, 3), (0,)]


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
        (tmp_path / name).write_text(text_of(ROWS, header))
        assert word_vectors(tmp_path / name).digest == table.digest
    others = {**rows, "good": rows["good"] * 2}, {**rows, "bad": rows["good"]}, {"goods": rows["good"], **rows}
    assert len({table.digest, *(word_vectors(other).digest for other in others)}) == 4
    assert len(table.digest) == 32 and int(table.digest, 16)


def test_the_digest_is_the_same_on_every_machine():
    assert word_vectors(ROWS).digest == "26b15073796c109229bd7c8c32e5750b"
    assert word_vectors("wordllama").digest == "1bdc44bf90eb2db555f0a69b4898db23"


def test_text_with_odd_words(tmp_path):
    """Words with spaces, twice, and in no UTF-8."""
    path = tmp_path / "x.vec"
    path.write_bytes("2 2\nnew york 1 -2 \n\u00a0 0.5 1\nnew york 9 9\n".encode() + b"\xff 1 1\n")
    vectors = word_vectors(str(path))
    check(vectors, ["new york", "\u00a0", "\ufffd"], [[1, -2], [0.5, 1], [1, 1]], 2.0)
    assert (vectors.name, vectors.size) == (str(path), 3)


@pytest.fixture(scope="module")
def of_wordllama():
    tokenizer = Tokenizer.from_file(str(WORDLLAMA / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    (numbers,) = load_file(WORDLLAMA / "weights/l2_supercat_256.safetensors").values()
    numbers = numbers[:, :192].astype(float)
    whole = np.rint(numbers / np.abs(numbers).max() * 16256)
    return lambda word: whole[tokenizer.encode(word, add_special_tokens=False).ids].sum(axis=0)


def test_wordllama(of_wordllama):
    """Each word is the sum of its tokens, whether alone or among others."""
    vectors = word_vectors("wordllama")
    assert (vectors.name, vectors.size, vectors.n_dimensions) == ("wordllama", 32000, 192)
    expected = [of_wordllama(word) for word in WORDS]
    for words in (WORDS, WORDS, *([word] for word in WORDS)):
        check(vectors, words, [expected[WORDS.index(word)] for word in words], 16256.0)
    assert vectors.vector("好吃").any() and not vectors.vector("").any()


ALONE = """
import socket, sys
def refuse(*_): raise OSError("there is no network")
socket.socket.connect = refuse
from stream_pegasos.features.vectors import word_vectors
base = int(open("/proc/self/statm").read().split()[1])
vectors = word_vectors("wordllama")
vectors.codes([f"word{i}" for i in range(100_000)])
assert not {"wordllama", "requests", "gensim"} & set(sys.modules)
print(vectors.digest, (int(open("/proc/self/statm").read().split()[1]) - base) * 4096 / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux tells it")
def test_wordllama_takes_no_network_and_little_memory(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", ALONE], env=environment, capture_output=True, text=True, check=True)
    digest, megabytes = done.stdout.split()
    assert digest == word_vectors("wordllama").digest and float(megabytes) < 100
    assert not list(tmp_path.rglob("*wordllama*"))


@given(st.lists(st.text(st.characters()) | st.text("aé好\ud800\udc00\0 <s>▁", max_size=300), max_size=6))
@settings(max_examples=100, deadline=None)
def test_no_text_fails_and_sums_are_exact(words):
    vectors = word_vectors("wordllama")
    codes, shifts = vectors.codes(words)
    alone = [vectors.codes([word]) for word in reversed(words)][::-1]
    assert all((a[0] == c).all() and a[1][0] == s for a, c, s in zip(alone, codes, shifts, strict=True))
    whole = codes.astype(np.int32) << shifts[:, np.newaxis]
    assert shifts.max(initial=0) <= 7 and np.abs(codes.astype(int)).max(initial=0) <= 127
    assert (whole.sum(axis=0) == sum((vectors.vector(w) for w in words[::-1]), np.zeros(192))).all()
    for text in words:
        assert not word_vectors({"a b c": [1.0]}).vector(text).any()


def test_long_words_cost_no_more():
    vectors = word_vectors("wordllama")
    assert (vectors.vector("好a" * 500_000) == vectors.vector("好a" * 128)).all()
    check(vectors, ["free", "x" * 10**6], [vectors.vector("free"), vectors.vector("x" * 256)], 16256.0)


WORDPIECE = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "un": 4, "##happy": 5, "好": 6, "!": 7, "e": 8},
    },
}
UNIGRAM = {
    "normalizer": None,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True},
    "model": {
        "type": "Unigram",
        "unk_id": 0,
        "vocab": [["<unk>", 0.0], ["▁", -3.0], ["▁un", -2.0], ["happy", -2.0], ["好", -3.0], ["!", -3.0], ["é", -4.0]],
        "byte_fallback": False,
    },
}
BYTES = {
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "model": {
        "type": "BPE",
        "unk_token": None,
        "vocab": {"Ġ": 0, "u": 1, "n": 2, "!": 3, "Ġu": 4, "un": 5, "Ġun": 6, "å": 7, "¥": 8, "½": 9},
        "merges": [["Ġ", "u"], ["u", "n"], ["Ġu", "n"]],
    },
}
# What each word is made of.
TOKENS = {
    "wordpiece": (WORDPIECE, {"unhappy": [4, 5], "un": [4], "zz": [], "好": [6], "好!好": [6, 7, 6], "É": [8], "": []}),
    "unigram": (UNIGRAM, {"unhappy": [2, 3], "un": [2], "zz": [1], "好": [1, 4], "好!好": [1, 4, 5, 4], "": []}),
    "bytes": (BYTES, {"un": [6], "nu": [0, 2, 1], "好": [0, 7, 8, 9], "!": [0, 3], "": []}),
}


def folder_of(path, described, numbers, **more):
    path.mkdir(parents=True, exist_ok=True)
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None}
    tokenizer |= {"decoder": None, "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst"}}
    tokenizer["truncation"]["stride"] = 0
    (path / "tokenizer.json").write_text(json.dumps(tokenizer | described), "utf-8")
    save_file({"embeddings": numbers, **more}, path / "model.safetensors")
    return path


@pytest.mark.parametrize("kind", TOKENS)
def test_a_folder_of_model2vec(kind, tmp_path):
    """Of each kind of tokenizer; unknown tokens are left out; nothing is cut off."""
    described, tokens = TOKENS[kind]
    numbers = np.random.default_rng(1).normal(size=(len(described["model"]["vocab"]), 194)).astype(np.float32)
    vectors = word_vectors(folder_of(tmp_path, described, numbers))
    assert (vectors.size, vectors.n_dimensions, vectors.name) == (len(numbers), 192, str(tmp_path))
    numbers = numbers[:, :192].astype(float)
    whole = np.rint(numbers / np.abs(numbers).max() * 16256)
    check(vectors, list(tokens), [whole[found].sum(axis=0) for found in tokens.values()], 16256.0)


def test_a_folder_whose_tokens_share_rows_and_have_weights(tmp_path):
    numbers = np.array([[1, 2], [-4, 1], [3, 3]], np.float16)
    mapping, weights = np.array([0, 0, 0, 0, 1, 2, 1, 0, 2]), np.linspace(0.5, 1.5, 9)
    vectors = word_vectors(
        folder_of(tmp_path / "0_StaticEmbedding", WORDPIECE, numbers, mapping=mapping, weights=weights)
    )
    rows = numbers[mapping].astype(float) * weights[:, np.newaxis]
    whole = np.rint(rows / np.abs(rows).max() * 16256)
    check(vectors, ["unhappy", "好"], [whole[4] + whole[5], whole[6]], 16256.0)
    assert word_vectors(tmp_path).digest == vectors.digest


def test_words_are_the_same_in_any_batch(tmp_path):
    vectors = word_vectors(folder_of(tmp_path, WORDPIECE, np.random.default_rng(1).normal(size=(9, 3))))
    words = ["un", "unhappy", "好", "!", "好!", "un!", "!!", "e", "zz", "好" * 300, ""]
    alone, choice = [vectors.vector(word).tolist() for word in words], np.random.default_rng(2)
    for _ in range(50):
        asked = choice.integers(len(words), size=choice.integers(20))
        codes, shifts = vectors.codes([words[i] for i in asked])
        assert (codes * 2.0 ** shifts[:, np.newaxis]).tolist() == [alone[i] for i in asked]


@pytest.mark.heavy
def test_the_binary_format_of_word2vec(tmp_path):
    path = tmp_path / "x.bin"
    rows = b"".join(f"{word} ".encode() + struct.pack("<3f", *row) + b"\n" for word, row in ROWS.items())
    path.write_bytes(b"3 3\n" + rows)
    vectors = word_vectors(path)
    assert vectors.digest == word_vectors({word: np.float32(row) for word, row in ROWS.items()}).digest
    path.write_bytes(b"3 3\n" + rows[:-9])
    with pytest.raises(ValueError, match="has no vectors of words in the format of word2vec or fastText"):
        word_vectors(path)


@pytest.mark.heavy
def test_the_binary_format_of_fasttext(tmp_path):
    """A word that lacks is the mean of its n-grams; one in lower case may be found with capitals first."""
    from gensim.models import FastText, fasttext

    texts = [["the", "cat", "sat"], ["Rome", "NASA", "好吃"]] * 3
    options = {"vector_size": 6, "min_count": 1, "bucket": 50, "min_n": 2, "max_n": 3, "epochs": 1, "workers": 1}
    path = str(tmp_path / "x.bin")
    fasttext.save_facebook_model(FastText(texts, seed=1, **options), path)
    kept, vectors = fasttext.load_facebook_vectors(path), word_vectors(path)
    largest = max(np.abs(kept.vectors).max(), np.abs(kept.vectors_ngrams).max())
    assert (vectors.size, vectors.n_dimensions) == (6, 6)
    words = {"cat": "cat", "rome": "Rome", "nasa": "NASA", "cats": "cats", "x": "x", "好": "好", "\ud800x": "\ufffdx"}
    for _ in range(2):
        for word, same in words.items():
            unit = 2.0 ** vectors.codes([word])[1][0]
            assert np.abs(vectors.vector(word) - kept[same] / largest * 16256).max() <= unit / 2 + 1, word
    assert not vectors.vector("").any()
    assert pickle.loads(pickle.dumps(vectors)) == vectors


def test_threads_get_the_same():
    words = [f"{a}{b}" for a in WORDS[:9] for b in range(300)]
    expected, wrong = word_vectors("wordllama").codes(words), []
    table = pickle.loads(pickle.dumps(word_vectors("wordllama")))

    def ask(seed):
        for _ in range(20):
            some = np.random.default_rng(seed).permutation(len(words))[:500]
            codes, shifts = table.codes([words[i] for i in some])
            wrong.extend(some[(codes != expected[0][some]).any(axis=1) | (shifts != expected[1][some])])

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_a_table_is_read_once_unless_it_changes(tmp_path):
    path = tmp_path / "x.vec"
    path.write_text(text_of(ROWS))
    first = word_vectors(path)
    assert word_vectors(first) is first and word_vectors(str(path)) == first
    path.write_text(text_of({**ROWS, "bad": [0, 0, 1]}))
    assert word_vectors(path).size == 4 and first.size == 3


def test_copies_and_pickles(tmp_path):
    (tmp_path / "x.vec").write_text(text_of(ROWS))
    for vectors in (word_vectors(x) for x in (ROWS, "wordllama", tmp_path / "x.vec")):
        again = pickle.loads(pickle.dumps(vectors))
        assert again == vectors == copy.deepcopy(vectors) and hash(again) == hash(vectors)
        assert (again.vector("good") == vectors.vector("good")).all()
    pickled = pickle.dumps(word_vectors(tmp_path / "x.vec"))
    assert len(pickled) < 500
    (tmp_path / "x.vec").write_text(text_of({**ROWS, "good": [1, 1, 1]}))
    with pytest.raises(ValueError, match="is another table"):
        pickle.loads(pickled)
    (tmp_path / "x.vec").unlink()
    with pytest.raises(ValueError, match="there is no file or folder"):
        pickle.loads(pickled)


def test_what_a_model_file_says_of_it(tmp_path):
    (tmp_path / "x.vec").write_text(text_of(ROWS))
    vectors = word_vectors(tmp_path / "x.vec")
    found = json.loads(json.dumps(packed(vectors)))
    assert found == {"name": str(tmp_path / "x.vec"), "size": 3, "n_dimensions": 3, "digest": vectors.digest}
    assert unpacked(found) == vectors
    (tmp_path / "x.vec").rename(tmp_path / "y.vec")
    with pytest.raises(ValueError, match=r"needs the word vectors '.*' \(3 × 3, .* give its path: there is no file"):
        unpacked(found)
    assert unpacked(found, tmp_path / "y.vec").digest == vectors.digest
    with pytest.raises(ValueError, match=r"another table \(2 × 1"):
        unpacked(found, {"a": [1], "b": [2]})
    with pytest.raises(ValueError, match="give the mapping"):
        unpacked(packed(word_vectors(ROWS)))
    assert unpacked(packed(word_vectors(ROWS)), ROWS) == word_vectors(ROWS)
    for wrong in None, {}, {**found, "size": "3"}, {**found, "name": ["x"]}:
        with pytest.raises(ValueError, match="does not say"):
            unpacked(wrong)


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    wanted = packed(word_vectors("wordllama"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"vectors='wordllama' needs wordllama: .*stream-pegasos\[vectors\]"):
        word_vectors("wordllama")
    with pytest.raises(ValueError, match=r"of the package wordllama: .*stream-pegasos\[vectors\]"):
        unpacked(wanted)
    for package, source in (
        ("gensim.models", tmp_path / "x.bin"),
        ("tokenizers", folder_of(tmp_path / "f", WORDPIECE, np.ones((9, 2)))),
    ):
        (tmp_path / "x.bin").write_bytes(b"")
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=rf"needs {package.split('.')[0]}: .*stream-pegasos\[vectors\]"):
            word_vectors(source)


@pytest.mark.parametrize(
    "source, error, match",
    [
        (None, TypeError, "of type NoneType"),
        (b"wordllama", TypeError, "of type bytes"),
        ("wordlama", FileNotFoundError, "no file or folder 'wordlama'"),
        ("a\0b", ValueError, "no name of a file"),
        ("/dev/null", FileNotFoundError, "no file or folder"),
        ({}, ValueError, "empty"),
        ({1: [1.0]}, TypeError, "1 for a word"),
        ({"a": "b"}, TypeError, "of 'a' is no array"),
        ({"a": 1.0}, ValueError, "shape"),
        ({"a": [1.0], "b": [1.0, 2.0]}, ValueError, "'b' has the shape"),
        ({"a": [float("nan"), 1.0]}, ValueError, "infinite, or none"),
        ({"a": [-float("inf")]}, ValueError, "infinite, or none"),
        ({"a": [0.0] * 513}, ValueError, "513 numbers"),
        ({"a": []}, ValueError, "0 numbers"),
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
        ("word\n", "line 1 of .* is no word"),
        ("a 1 2\nb 1\n", "line 2 of .* with 2 numbers"),
        ("1 2\na 1 x\n", "line 2"),
        ("a 1 nan\n", "infinite, or none"),
        ("a 1 1e300\n", "infinite, or none"),
        ("1 0\na\n", "line 2"),
        ("1 600\na" + " 1" * 600, "600 numbers"),
    ],
)
def test_text_that_is_no_table(text, match, tmp_path):
    (tmp_path / "x.vec").write_text(text)
    with pytest.raises(ValueError, match=match):
        word_vectors(tmp_path / "x.vec")


def test_folders_that_are_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        word_vectors(tmp_path)
    for numbers, match in (
        (np.ones((8, 2)), "more tokens than the 8"),
        (np.full((9, 2), np.nan), "infinite"),
        (np.ones(9), "no vectors of tokens"),
        (np.ones((9, 0)), "0 numbers"),
        (np.ones((9, 2), bool), "no table"),
    ):
        with pytest.raises(ValueError, match=match):
            word_vectors(folder_of(tmp_path, WORDPIECE, numbers))
    for name in "model.safetensors", "tokenizer.json":
        folder_of(tmp_path, WORDPIECE, np.ones((9, 2)))
        (tmp_path / name).write_text("{}")
        with pytest.raises(ValueError, match="no vectors of tokens"):
            word_vectors(tmp_path)
