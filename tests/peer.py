"""Texts and options that the bag of words is tried on beside scikit-learn."""

import re

import numpy as np
from hypothesis import strategies as st


def assert_same(ours, theirs):
    """Two CSR matrices, entry for entry, stored zeros included."""
    assert ours.shape == theirs.shape
    assert ours.indices.dtype == theirs.indices.dtype and ours.data.dtype == theirs.data.dtype
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.data, theirs.data)


NASTY = (
    "abZ09_ \t\n.,!'-éßÀÿªµ×÷İıΣσςΑ\u0301\u0307\u0300漢字かなカ한😀🏴\U0001d400\U00010400\U0001e900ⅧⒶ²½٣\u0966"
    "\x00\x1c\x1d\x1e\x1f\x7f\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff\u00ad\uffff\U0010ffff"
)
WORDS = ["the", "a", "x" * 13, "antidisestablishmentarianism", "ΟΔΟΣ", "İstanbul", " ", "  ", "\n", "漢"]
REPEATS = [1, 1, 1, 1, 2, 3, 11, 12, 13, 31, 63, 64, 65, 127, 1023, 1024, 1025, 4095, 4096, 4097]


def nasty_texts(others, most):
    """Texts in which pieces of every kind, and some others, are repeated up to so many characters."""
    pieces = st.one_of(st.text(st.sampled_from(NASTY), min_size=1, max_size=8), others, st.sampled_from(WORDS))
    return st.lists(st.tuples(pieces, st.sampled_from(REPEATS)), max_size=5).map(
        lambda parts: "".join(piece * min(n, most // len(piece)) for piece, n in parts)
    )


SAMPLES = [
    "",
    " ",
    "a",
    "To be, or not to be: that is the question",
    "to to to TO To tO",
    "naïve café — déjà vu; Ελλάδα ΟΔΟΣ Straße İstanbul ǅ ﬁ Å Å",
    "漢字 かな カタカナ 한국어 😀 👍🏽 👨‍👩‍👧 e\u0301 ٣٤ Ⅷ x²",
    "tabs\tand\nlines\r\nand\x0bpages\x0cand\x1cseparators\x1d \x85 \xa0 \u2003\u3000 end",
    "a_b __init__ 3.14 1,000 don't e-mail x@y.z http://a.b/c?d=e#f",
    "\x00nul\x00 bytes\x00",
    "supercalifragilisticexpialidocious " * 3,
    "!?... ¡¿ «» “” \u2018\u2019 — \u2013 · •",
    "w" * 64 + " " + "x" * 4096 + " " + "é" * 70,
    " ".join(f"word{i}" for i in range(2000)),
]


OPTIONS = [
    {},
    {"n_features": 1},
    {"n_features": 2**31 - 1},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 2)},
    {"ngram_range": (3, 5)},
    {"ngram_range": (1000, 1000)},
    {"analyzer": "char", "ngram_range": (1, 4)},
    {"analyzer": "char_wb", "ngram_range": (1, 4)},
    {"analyzer": "char_wb", "ngram_range": (5, 5), "norm": None},
    {"lowercase": False},
    {"strip_accents": "unicode", "lowercase": False, "ngram_range": (1, 2)},
    {"strip_accents": "ascii", "analyzer": "char_wb", "ngram_range": (2, 3)},
    {"strip_accents": lambda text: text.replace("e", "E")},
    {"stop_words": "english", "ngram_range": (1, 3)},
    {"stop_words": ["to", "be"], "ngram_range": (1, 2)},
    {"stop_words": {"the", "naïve", "漢字", "İstanbul", "x" * 4096}},
    {"stop_words": ("To",), "lowercase": False},
    {"stop_words": frozenset(["to"]), "analyzer": "char"},
    {"stop_words": []},
    {"token_pattern": r"\b\w\w+\b"},
    {"token_pattern": r"\b\w+\b"},
    {"token_pattern": r"\w+", "ngram_range": (1, 3)},
    {"token_pattern": r"(?u)\w+|[^\w\s]", "ngram_range": (1, 2), "stop_words": ["!", "to"]},
    {"token_pattern": r"\S+"},
    {"token_pattern": r"(?a)\w+"},
    {"token_pattern": r"(\w)\w*"},
    {"token_pattern": r"x(\w*)", "ngram_range": (1, 2), "stop_words": ["", "y"]},
    {"token_pattern": r".", "analyzer": "word"},
    {"token_pattern": r"\w*"},
    {"token_pattern": r"", "ngram_range": (1, 2)},
    {"token_pattern": r"[a-z]+", "stop_words": "english", "strip_accents": "unicode"},
    {"binary": True, "norm": None},
    {"binary": True, "norm": "l1", "ngram_range": (1, 2), "n_features": 50},
    {"norm": "l1"},
    {"norm": "l1", "alternate_sign": False},
    {"alternate_sign": False, "norm": None, "n_features": 7},
    {"preprocessor": str.upper},
    {"preprocessor": lambda text: text[::-1], "analyzer": "char_wb", "ngram_range": (1, 3)},
    {"preprocessor": lambda text: text, "token_pattern": r"[a-zA-Z]+"},
    {"tokenizer": str.split},
    {"tokenizer": lambda text: re.findall("[aeiou]", text), "ngram_range": (1, 3), "stop_words": ["a"]},
    {"tokenizer": lambda text: (word.upper() for word in text.split())},
    {"tokenizer": lambda text: ["İ" * 50, "", " ", "12 ab", "ΟΔΟΣ", *text[:3]], "ngram_range": (1, 2)},
    {"tokenizer": str.split, "lowercase": False, "strip_accents": "ascii"},
    {"tokenizer": str.split, "analyzer": "char", "ngram_range": (2, 2)},
]
