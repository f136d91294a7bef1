"""Tables of word vectors as other packages keep them, by those packages."""

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from vectors_by_hand import check

from stream_pegasos.features.vectors import packed, unpacked, word_vectors

pytestmark = pytest.mark.heavy  # of packages that are in the extra `ci`


WORDS = ["free", "answer", "unbelievably", "好", "好吃", "!", "00", "ñandú", "🙂", "", " a  b ", "<s>", "▁", "x" * 200]


@pytest.fixture(scope="module")
def of_wordllama():
    from tokenizers import Tokenizer

    folder = Path(importlib.util.find_spec("wordllama").submodule_search_locations[0])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    (numbers,) = load_file(folder / "weights/l2_supercat_256.safetensors").values()
    numbers = numbers[:, :192].astype(float)
    whole = np.rint(numbers / np.abs(numbers).max() * 16256)
    whole[[i for token, i in tokenizer.get_vocab().items() if token.startswith("<0x")]] = 0.0
    return lambda word: whole[tokenizer.encode(word, add_special_tokens=False).ids].sum(axis=0)


def test_wordllama(of_wordllama):
    """Each word is the sum of its tokens, whether alone or among others."""
    vectors = word_vectors("wordllama")
    assert (vectors.name, vectors.size, vectors.n_dimensions) == ("wordllama", 32000, 192)
    expected = [of_wordllama(word) for word in WORDS]
    for words in (WORDS, WORDS, *([word] for word in WORDS)):
        check(vectors, words, [expected[WORDS.index(word)] for word in words], 16256.0)
    assert vectors.vector("好吃").any() and not vectors.vector("").any()
    assert vectors.digest == "1bdc44bf90eb2db555f0a69b4898db23" and pickle.loads(pickle.dumps(vectors)) == vectors


ALONE = """
import socket, sys
def refuse(*_): raise OSError("there is no network")
socket.socket.connect = refuse
from stream_pegasos.features.vectors import word_vectors
base = int(open("/proc/self/statm").read().split()[1])
vectors = word_vectors("wordllama")
vectors.codes([f"word{i}" for i in range(100_000)])
assert not {"wordllama", "requests"} & set(sys.modules)
print(vectors.digest, (int(open("/proc/self/statm").read().split()[1]) - base) * 4096 / 1e6)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux tells it")
def test_wordllama_takes_no_network_and_little_memory(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], env=environment, capture_output=True, encoding="utf-8", check=True
    )
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


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    wanted = packed(word_vectors("wordllama"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"vectors='wordllama' needs wordllama: .*'\.\[vectors\]'"):
        word_vectors("wordllama")
    with pytest.raises(ValueError, match=r"of the package wordllama: .*'\.\[vectors\]'"):
        unpacked(wanted)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"needs tokenizers: .*'\.\[vectors\]'"):
        word_vectors(folder_of(tmp_path, WORDPIECE, np.ones((9, 2))))


def test_folders_that_are_no_table(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no model\.safetensors"):
        word_vectors(tmp_path)
    for numbers, match in (
        (np.ones((8, 2)), "more tokens than the 8"),
        (np.full((9, 2), np.nan), "infinite"),
        (np.ones(9), "no vectors of tokens"),
        (np.ones((9, 0)), "got 0"),
        (np.ones((9, 2), bool), "a table of vectors"),
    ):
        with pytest.raises(ValueError, match=match):
            word_vectors(folder_of(tmp_path, WORDPIECE, numbers))
    for name in "model.safetensors", "tokenizer.json":
        folder_of(tmp_path, WORDPIECE, np.ones((9, 2)))
        (tmp_path / name).write_text("{}", encoding="utf-8")
        with pytest.raises(ValueError, match="no vectors of tokens"):
            word_vectors(tmp_path)
