import copy
import gzip
import itertools
import pickle
import random
import re
import sys
import unicodedata
import warnings

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import checks, compose, linear_model, naive_bayes, optim, preprocessing
from scipy import sparse

from stream_pegasos import HashedBagOfWords, engine

sklearn_text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is what we compare with")
murmurhash3_32 = pytest.importorskip("sklearn.utils").murmurhash3_32

pure = engine.NAME == "pure"


def peer(**options):
    vectorizer = sklearn_text.HashingVectorizer(**options)

    def transform(texts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of stop words that it thinks inconsistent
            return vectorizer.transform(texts)

    return transform


def assert_same(ours, theirs):
    """Two CSR matrices, entry for entry, stored zeros included."""
    assert ours.shape == theirs.shape
    assert ours.indices.dtype == theirs.indices.dtype and ours.data.dtype == theirs.data.dtype
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    assert np.array_equal(ours.data, theirs.data)


def check(texts, **options):
    bag = HashedBagOfWords(**options)
    options = {name: value for name, value in options.items() if name != "n_features"} | {"n_features": bag.n_features}
    expected = peer(**options)(texts)
    assert_same(bag.transform_many(texts), expected)
    for i, text in enumerate(texts[:5]):
        row = expected[i]
        assert bag.transform_one(text) == dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


# --- options ----------------------------------------------------------------------------------------------------------

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
    {"n_features": 2},
    {"n_features": 1000},
    {"n_features": 2**18},
    {"n_features": 2**31 - 1},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 2)},
    {"ngram_range": (3, 5)},
    {"ngram_range": (1, 10)},
    {"ngram_range": (1000, 1000)},
    {"analyzer": "char"},
    {"analyzer": "char", "ngram_range": (1, 4)},
    {"analyzer": "char", "ngram_range": (3, 3), "lowercase": False},
    {"analyzer": "char_wb"},
    {"analyzer": "char_wb", "ngram_range": (1, 4)},
    {"analyzer": "char_wb", "ngram_range": (2, 9)},
    {"analyzer": "char_wb", "ngram_range": (5, 5), "norm": None},
    {"lowercase": False},
    {"strip_accents": "unicode"},
    {"strip_accents": "ascii"},
    {"strip_accents": "unicode", "lowercase": False, "ngram_range": (1, 2)},
    {"strip_accents": "ascii", "analyzer": "char_wb", "ngram_range": (2, 3)},
    {"strip_accents": lambda text: text.replace("e", "E")},
    {"stop_words": "english"},
    {"stop_words": "english", "ngram_range": (1, 3)},
    {"stop_words": ["to", "be"], "ngram_range": (1, 2)},
    {"stop_words": {"the", "naïve", "漢字", "İstanbul", "x" * 4096}},
    {"stop_words": ("To",), "lowercase": False},
    {"stop_words": frozenset(["to"]), "analyzer": "char"},
    {"stop_words": ["to"], "token_pattern": r"\S+"},
    {"stop_words": []},
    {"token_pattern": r"\b\w\w+\b"},
    {"token_pattern": r"(?u)\b\w+\b"},
    {"token_pattern": r"\b\w+\b"},
    {"token_pattern": r"(?u)\w+"},
    {"token_pattern": r"\w+"},
    {"token_pattern": r"\w+", "ngram_range": (1, 3)},
    {"token_pattern": r"\w+|[^\w\s]"},
    {"token_pattern": r"(?u)\w+|[^\w\s]", "ngram_range": (1, 2), "stop_words": ["!", "to"]},
    {"token_pattern": r"\S+"},
    {"token_pattern": r"(?u)\S+", "lowercase": False, "ngram_range": (2, 3)},
    {"token_pattern": r"[a-z]+"},
    {"token_pattern": r"(?a)\w+"},
    {"token_pattern": r"(\w)\w*"},
    {"token_pattern": r"x(\w*)", "ngram_range": (1, 2), "stop_words": ["", "y"]},
    {"token_pattern": r"(?:\w)+"},
    {"token_pattern": r".", "analyzer": "word"},
    {"token_pattern": r"\w*"},
    {"token_pattern": r"", "ngram_range": (1, 2)},
    {"token_pattern": r"[a-z]+", "stop_words": "english", "strip_accents": "unicode"},
    {"binary": True},
    {"binary": True, "norm": None},
    {"binary": True, "norm": "l1", "ngram_range": (1, 2), "n_features": 50},
    {"norm": None},
    {"norm": "l1"},
    {"norm": "l1", "alternate_sign": False},
    {"alternate_sign": False},
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


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_columns_and_values_are_those_of_scikit_learn(options):
    check(SAMPLES, **options)


# --- texts ------------------------------------------------------------------------------------------------------------

NASTY = (
    "abZ09_ \t\n.,!'-éßÀÿªµ×÷İıΣσςΑ\u0301\u0307\u0300漢字かなカ한😀🏴\U0001d400\U00010400\U0001e900ⅧⒶ²½٣\u0966"
    "\x00\x1c\x1d\x1e\x1f\x7f\x85\xa0\u1680\u2003\u2028\u3000\u200b\ufeff\u00ad\uffff\U0010ffff"
)
pieces = st.one_of(
    st.text(st.sampled_from(NASTY), min_size=1, max_size=8),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4),
    st.sampled_from(["the", "a", "x" * 13, "antidisestablishmentarianism", "ΟΔΟΣ", "İstanbul", " ", "  ", "\n", "漢"]),
)
repeats = st.sampled_from([1, 1, 1, 1, 2, 3, 11, 12, 13, 63, 64, 65, 1024, 4095, 4096, 4097])
texts = st.lists(st.tuples(pieces, repeats), max_size=5).map(
    lambda parts: "".join(piece * min(n, 8300 // len(piece)) for piece, n in parts)
)


@settings(max_examples=60 if pure else 300, deadline=None, derandomize=True)
@given(
    st.lists(texts, min_size=1, max_size=3),
    st.fixed_dictionaries(
        {},
        optional={
            "analyzer": st.sampled_from(["word", "char", "char_wb"]),
            "ngram_range": st.sampled_from([(1, 2), (2, 3), (1, 4)]),
            "n_features": st.sampled_from([1, 5, 1 << 10, (1 << 20) - 3, 1 << 24, (1 << 31) - 1]),
            "lowercase": st.booleans(),
            "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
            "stop_words": st.sampled_from([None, ["the", "a", "漢", "σ"], "english"]),
            "token_pattern": st.sampled_from(
                [r"\w+", r"(?u)\w+|[^\w\s]", r"\S+", r"(?u)\b\w\w+\b", r"[^\W\d]+", r"(\w)\w?"]
            ),
            "binary": st.booleans(),
            "norm": st.sampled_from([None, "l1", "l2"]),
            "alternate_sign": st.booleans(),
        },
    ),
)
def test_any_text_under_any_options(some, options):
    check(some, **options)


# --- what scikit-learn does not have ----------------------------------------------------------------------------------

BEYOND = [
    {"mask_digits": True},
    {"mask_digits": True, "analyzer": "char", "ngram_range": (1, 3)},
    {"mask_digits": True, "lowercase": False, "token_pattern": r"\S+"},
    {"mask_digits": True, "strip_accents": "unicode", "token_pattern": r"[0-9]+"},
    {"mask_digits": True, "stop_words": ["000", "00"], "token_pattern": r"\w+"},
    {"prefix_length": 1},
    {"prefix_length": 4, "stop_words": ["question"]},
    {"prefix_length": 3, "token_pattern": r"\w+|[^\w\s]", "ngram_range": (1, 2)},
    {"prefix_length": 1000, "token_pattern": r"\S+"},
    {"prefix_length": 2, "ngram_range": (2, 3), "tokenizer": str.split},
    {"boundaries": True},
    {"boundaries": True, "ngram_range": (1, 2)},
    {"boundaries": True, "ngram_range": (3, 3), "token_pattern": r"\w+|[^\w\s]"},
    {"boundaries": True, "ngram_range": (1, 4), "token_pattern": r"[a-z]+", "stop_words": ["be"]},
    {
        "mask_digits": True,
        "prefix_length": 4,
        "boundaries": True,
        "ngram_range": (1, 2),
        "token_pattern": r"\w+|[^\w\s]",
        "binary": True,
        "alternate_sign": False,
        "n_features": 2**30,
    },
]


def beyond_scikit_learn(options):
    """An analyzer for its vectorizer: its own n-grams of what has been folded, and then the rest."""
    names = ("mask_digits", "prefix_length", "boundaries")
    mask_digits, prefix_length, boundaries = (options.get(name, False) for name in names)
    options = {name: value for name, value in options.items() if name not in names}
    low, high = options.get("ngram_range", (1, 1))
    fold = sklearn_text.HashingVectorizer(**options).build_preprocessor()
    tokens = sklearn_text.HashingVectorizer(**options | {"ngram_range": (1, 1), "preprocessor": str}).build_analyzer()
    ngrams = sklearn_text.HashingVectorizer(**options | {"preprocessor": str}).build_analyzer()

    def analyze(text):
        text = fold(text)
        if mask_digits:
            text = "".join("0" if c.isdecimal() else c for c in text)
        found = ngrams(text)
        if not (prefix_length or boundaries):
            return found
        words = tokens(text)
        if prefix_length:
            found += [f" {word[:prefix_length]}" for word in words if word[prefix_length:]]
        if boundaries and words:
            for n in range(max(low, 2), high + 1):
                bounded = ["<s>", *words, "</s>"]
                for begin in {0, len(bounded) - n} if n <= len(bounded) else ():  # the rest are scikit-learn's
                    found.append(" ".join(bounded[begin : begin + n]))
        return found

    return analyze


@pytest.mark.parametrize("options", BEYOND, ids=repr)
def test_what_scikit_learn_does_not_have_is_what_its_words_say(options):
    analyze = beyond_scikit_learn(options)
    taken = {name: options[name] for name in ("binary", "alternate_sign", "n_features") if name in options}
    bag = HashedBagOfWords(**options)
    expected = peer(**{"n_features": 2**20} | taken, analyzer=analyze)(SAMPLES)
    assert_same(bag.transform_many(SAMPLES), expected)
    for text in SAMPLES[:11]:
        assert sorted(bag.tokens(text)) == sorted(analyze(text))


def random_text(generator, n):
    """About n characters, of words, marks and spaces of all widths."""
    words = [
        "the",
        "quick",
        "Brown",
        "fox_1",
        "x",
        "é",
        "Straße",
        "漢字",
        "😀",
        "ΣΑΣ",
        "don't",
        "verylongwordindeed",
        "...",
    ]
    parts = []
    size = 0
    while size < n:
        part = generator.choice(words) + generator.choice([" ", "  ", ", ", "\n", "\u3000"])
        parts.append(part)
        size += len(part)
    return "".join(parts)


@pytest.mark.parametrize("pattern", [r"(?u)\b\w\w+\b", r"\w+|[^\w\s]", r"\S+"])
def test_texts_of_every_length_around_a_block_and_a_segment(pattern):
    generator = random.Random(1)
    ends = [*range(130), *range(4090, 4101), *range(8189, 8195)]
    some = []
    for alphabet in ("ab ", "aé ", "a漢!", "a😀 "):
        for n in ends:
            if not pure or n < 130:
                some.append("".join(generator.choices(alphabet, weights=(8, 1, 1), k=n)))
    check(some, token_pattern=pattern)
    if not pure:
        check(some, token_pattern=pattern, ngram_range=(1, 2), stop_words=["aa", "!"])


def test_a_long_text():
    generator = random.Random(2)
    text = random_text(generator, 200_000 if pure else 3_000_000)
    check([text])
    check([text[: len(text) // 8]], ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", norm=None)
    check([text[: len(text) // 50]], analyzer="char_wb", ngram_range=(2, 3))


@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
def test_a_line_of_100_megabytes():
    line = "Some words, é, 漢字 and others " * (1 << 20)
    bag = HashedBagOfWords(norm=None)
    found = bag.transform_one(line)
    n = len(line) // len("Some words, é, 漢字 and others ")
    expected = {bag.index(word)[0]: bag.index(word)[1] for word in ("some", "words", "漢字", "and", "others")}
    assert set(found) == set(expected)
    for index, sign in expected.items():
        assert found[index] * sign == n
    line = "some words, and others " * (100_000_000 // 23)
    assert {index: abs(v) for index, v in bag.transform_one(line).items()} == {
        bag.index(word)[0]: 100_000_000 // 23 for word in ("some", "words", "and", "others")
    }
    line = "x" * 100_000_000
    assert bag.transform_one(line) == {bag.index(line)[0]: bag.index(line)[1]}


def test_a_million_distinct_tokens():
    n = 20_000 if pure else 300_000
    text = " ".join(f"w{i}" for i in range(n))
    for n_features in (2**31 - 1, 2**20, 1000):
        check([text, "short one", text[: n // 2], ""], n_features=n_features, norm=None)


def test_counts_that_cancel_stay_as_zeros():
    bag = HashedBagOfWords(n_features=1, norm="l2")
    plus = next(w for w in map(str, range(100, 999)) if bag.index(w)[1] > 0)
    minus = next(w for w in map(str, range(100, 999)) if bag.index(w)[1] < 0)
    check([f"{plus} {minus}", f"{plus} {plus} {minus}"], n_features=1)
    assert bag.transform_one(f"{plus} {minus}") == {0: 0.0}
    check([f"{plus} {minus}"], n_features=1, binary=True)


# --- every character --------------------------------------------------------------------------------------------------


def hashes(texts):
    """What scikit-learn's MurmurHash3 makes of strings: column among 2³¹ − 1, and sign."""
    known = {}
    for text in texts:
        if text not in known:
            h = int(murmurhash3_32(text.encode("utf-8", "surrogatepass"), seed=0))
            known[text] = (abs(h) % (2**31 - 1), -1.0 if h < 0 else 1.0)
    return known


def all_characters(every):
    """But only some beyond kana, and one in seven of those that mean nothing, which are most."""
    everything = [*range(0x3100), *range(0x3100, sys.maxunicode + 1, every)]
    return [c for c in everything if c % 7 == 0 or unicodedata.category(chr(c)) not in ("Cn", "Co")]


@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.heavy)])
@pytest.mark.parametrize(
    "options",
    [
        {"token_pattern": r"\w+"},
        {"token_pattern": r"\w+|[^\w\s]", "lowercase": False},
        {"token_pattern": r"(?u)\b\w\w+\b"},
        {"token_pattern": r"\S+"},
        {"analyzer": "char"},
        {"analyzer": "char_wb", "ngram_range": (3, 3), "lowercase": False},
    ],
    ids=repr,
)
def test_every_character_has_pythons_class_and_lower_case(options, every):
    """Lone surrogates too. Alone, beside ASCII, and beside itself."""
    bag = HashedBagOfWords(n_features=2**31 - 1, norm=None, **options)
    template = "a{}B {}" if options.get("analyzer") != "char_wb" else "{}"
    step = 1 << 16
    everything = all_characters(max(every, 17) if pure else every)
    for begin in range(0, len(everything), step):
        some = [template.format(chr(c), chr(c)) for c in everything[begin : begin + step]]
        expected = [expected_ngrams(text, bag) for text in some]
        known = hashes(itertools.chain.from_iterable(expected))
        matrix = bag.transform_many(some)
        indptr, indices, data = matrix.indptr.tolist(), matrix.indices.tolist(), matrix.data.tolist()
        for i, ngrams in enumerate(expected):
            counts = {}
            for ngram in ngrams:
                index, sign = known[ngram]
                counts[index] = counts.get(index, 0.0) + sign
            found = dict(zip(indices[indptr[i] : indptr[i + 1]], data[indptr[i] : indptr[i + 1]], strict=True))
            assert found == counts, hex(everything[begin + i])


def expected_ngrams(text, bag):
    if bag.lowercase:
        text = text.lower()
    if bag.analyzer == "word":
        return re.findall(bag.token_pattern, text)
    if bag.analyzer == "char":
        return list(re.sub(r"\s\s+", " ", text))
    padded = [f" {word} " for word in text.split()]
    return [word[i : i + 3] for word in padded for i in range(max(len(word) - 2, 1))]


def test_lone_surrogates_are_hashed_as_they_are():
    """In UTF-8, as 'surrogatepass' has it; scikit-learn refuses them."""
    for text in ("\ud800", "a\udfffb", "\udc80\udc80", "x \ud83d y \ude00", "\ud83d\ude00", "İ\ud800Σ"):
        for options in (
            {"analyzer": "char", "ngram_range": (1, 2)},
            {"token_pattern": r"\S+"},
            {"token_pattern": r"\w+|[^\w\s]", "ngram_range": (1, 2)},
            {"token_pattern": r"[\ud800-\udfff]"},
            {"strip_accents": "unicode", "analyzer": "char"},
            {"tokenizer": list},
        ):
            bag = HashedBagOfWords(n_features=2**31 - 1, norm=None, **options)
            tokens = bag.tokens(text)
            known = hashes(tokens)
            expected = {}
            for token in tokens:
                expected[known[token][0]] = expected.get(known[token][0], 0.0) + known[token][1]
            assert bag.transform_one(text) == expected
        ascii_only = HashedBagOfWords(strip_accents="ascii", analyzer="char", norm=None)
        stripped = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
        assert ascii_only.transform_one(text) == HashedBagOfWords(analyzer="char", norm=None).transform_one(stripped)


# --- real texts -------------------------------------------------------------------------------------------------------

FILES = ["sms_spam", "rt_polarity", "enron_1to3", "reuters21578", "rotten_tomatoes_phrases"]


def read(folder, name, limit=None):
    with gzip.open(folder / f"{name}.jsonl.gz") as file:
        return [orjson.loads(line)["text"] for line in itertools.islice(file, limit)]


@pytest.mark.parametrize("name", [FILES[0], *(pytest.param(name, marks=pytest.mark.heavy) for name in FILES[1:])])
def test_every_text_of_the_real_streams(data_folder, name):
    everything = read(data_folder, name, 1500 if pure else None)
    bag, expected = HashedBagOfWords(), peer()
    for begin in range(0, len(everything), 5000):
        some = everything[begin : begin + 5000]
        assert_same(bag.transform_many(some), expected(some))


@pytest.mark.parametrize(
    "options",
    [
        {"token_pattern": r"\w+|[^\w\s]", "ngram_range": (1, 2), "n_features": 2**24},
        {"token_pattern": r"\w+", "norm": "l1", "stop_words": "english"},
        {"token_pattern": r"\S+", "lowercase": False, "alternate_sign": False, "n_features": 1_000_003},
        {"analyzer": "char_wb", "ngram_range": (2, 4), "binary": True},
        {"analyzer": "char", "ngram_range": (3, 3), "norm": None},
        {"strip_accents": "unicode", "ngram_range": (2, 3)},
        {"token_pattern": r"[a-z]{3,}", "strip_accents": "ascii"},
    ],
    ids=repr,
)
def test_some_texts_of_the_real_streams_under_other_options(data_folder, options):
    n = 20 if pure else 400
    for name in FILES:
        check(read(data_folder, name, n), **options)


# --- the interface ----------------------------------------------------------------------------------------------------


def test_tokens_and_index_explain_the_columns():
    for options in OPTIONS:
        bag = HashedBagOfWords(**options | {"norm": None, "binary": False})
        for text in SAMPLES[:11]:
            counts = {}
            for token in bag.tokens(text):
                index, sign = bag.index(token)
                assert 0 <= index < bag.n_features and sign in (1.0, -1.0)
                counts[index] = counts.get(index, 0.0) + sign
            assert counts == bag.transform_one(text)


def test_tokens_come_in_their_order():
    assert HashedBagOfWords().tokens("To be, or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert HashedBagOfWords(ngram_range=(1, 2), stop_words=["or"]).tokens("To be or") == ["to", "be", "to be"]
    assert HashedBagOfWords(analyzer="char", ngram_range=(2, 2)).tokens("A  b") == ["a ", " b"]
    assert HashedBagOfWords(analyzer="char_wb", ngram_range=(3, 3)).tokens("ab c") == [" ab", "ab ", " c "]
    assert HashedBagOfWords(token_pattern=r"\w+|[^\w\s]").tokens("a!! b") == ["a", "!", "!", "b"]


@pytest.mark.parametrize(
    "kind", [list, tuple, iter, np.array, pd.Series, lambda x: (t for t in x), lambda x: dict.fromkeys(x)]
)
def test_any_iterable_of_texts(kind):
    some = ["one two", "three", "", "é four"]
    given = kind(some)
    if isinstance(given, dict):
        given = given.keys()
    expected = HashedBagOfWords().transform_many(some)
    assert_same(HashedBagOfWords().transform_many(given), expected)


def test_str_of_other_classes():
    class Text(str):
        pass

    some = [Text("one two"), np.str_("one two"), "one two"]
    bag = HashedBagOfWords()
    assert bag.transform_one(some[0]) == bag.transform_one(some[1]) == bag.transform_one(some[2])
    assert (bag.transform_many(some).toarray() == bag.transform_many(["one two"] * 3).toarray()).all()


def test_nothing_gives_a_matrix_of_no_rows():
    for options in ({}, {"analyzer": "char"}, {"tokenizer": str.split}):
        matrix = HashedBagOfWords(n_features=50, **options).transform_many([])
        assert sparse.isspmatrix_csr(matrix) and matrix.shape == (0, 50)
        assert HashedBagOfWords(n_features=50, **options).transform_many(["", " "]).nnz == (
            1 if options.get("analyzer") == "char" else 0
        )


def test_results_are_the_callers_own():
    """Whatever is done to them, the next ones are right."""
    bag = HashedBagOfWords(norm=None)
    text = "one two"
    first = bag.transform_one(text)
    expected = dict(first)
    first.clear()
    second = bag.transform_one(text)
    assert second == expected
    second[5] = 7.0
    assert bag.transform_one(text) == expected
    matrix = bag.transform_many([text])
    matrix.data[:] = 0.0
    assert bag.transform_one(text) == expected
    assert bag.transform_many([text]).data.tolist() != [0.0, 0.0]


@pytest.mark.parametrize(
    "bad", [None, 5, 1.5, b"text", ["text"], {"text": "x"}, ("a",), np.array("x"), float("nan")], ids=repr
)
@pytest.mark.parametrize(
    "options", [{}, {"analyzer": "char"}, {"tokenizer": str.split}, {"strip_accents": "ascii"}], ids=repr
)
def test_a_text_is_a_str(options, bad):
    bag = HashedBagOfWords(**options)
    before = pickle.dumps(bag) if "tokenizer" not in options else None
    with pytest.raises(TypeError, match="text must be a str"):
        bag.transform_one(bad)
    with pytest.raises(TypeError, match="text must be a str"):
        bag.tokens(bad)
    for some in ([bad], ["x", bad], [bad, "x"]):
        with pytest.raises(TypeError, match="text must be a str"):
            bag.transform_many(some)
    assert before is None or pickle.dumps(bag) == before
    assert bag.transform_one("one two") == HashedBagOfWords(**options).transform_one("one two")


def test_a_single_text_is_not_many():
    for single in ("text", b"text", {"text": "x"}):
        with pytest.raises(TypeError, match="sequence of texts"):
            HashedBagOfWords().transform_many(single)


def test_on_takes_one_field():
    bag, plain = HashedBagOfWords(on="body"), HashedBagOfWords()
    x = {"body": "one two", "title": "three", "n": 5}
    before = dict(x)
    assert bag.transform_one(x) == plain.transform_one("one two")
    assert bag.tokens(x) == ["one", "two"]
    assert_same(bag.transform_many([x, x]), plain.transform_many(["one two"] * 2))
    frame = pd.DataFrame([x, x | {"body": "other"}], index=[7, 8])
    assert_same(bag.transform_many(frame), plain.transform_many(["one two", "other"]))
    assert x == before
    for bad in ({"title": "x"}, {}):
        with pytest.raises(ValueError, match="'body'"):
            bag.transform_one(bad)
    assert bag.transform_one("one two") == plain.transform_one("one two")  # a text by itself is taken, too
    with pytest.raises(TypeError, match="'body'"):
        bag.transform_one(["text"])
    with pytest.raises(TypeError, match="str"):
        bag.transform_one({"body": None})
    with pytest.raises((KeyError, ValueError), match="body"):
        bag.transform_many(pd.DataFrame({"title": ["x"]}))
    series = HashedBagOfWords(on="body", analyzer="char", strip_accents="unicode")
    assert series.transform_one({"body": "é"}) == HashedBagOfWords(analyzer="char").transform_one("e")


class Failing(Exception):
    pass


def test_what_a_function_raises_comes_through():
    def fail(_):
        raise Failing

    for options in ({"tokenizer": fail}, {"preprocessor": fail}, {"strip_accents": fail}):
        for call in (HashedBagOfWords(**options).transform_one, HashedBagOfWords(**options).tokens):
            with pytest.raises(Failing):
                call("text")
        with pytest.raises(Failing):
            HashedBagOfWords(**options).transform_many(["text"])
    for options in (
        {"tokenizer": lambda text: [1, 2]},
        {"tokenizer": lambda text: None},
        {"tokenizer": lambda text: [b"x"], "ngram_range": (1, 2)},
        {"preprocessor": lambda text: None},
        {"preprocessor": lambda text: b"bytes"},
        {"preprocessor": lambda text: None, "token_pattern": "x"},
        {"strip_accents": lambda text: 5, "analyzer": "char"},
    ):
        with pytest.raises(TypeError):
            HashedBagOfWords(**options).transform_one("text")
        with pytest.raises(TypeError):
            HashedBagOfWords(**options).transform_many(["text"])


IMPOSSIBLE = [
    *({"n_features": bad} for bad in (0, -1, 2**31, 1.0, None, "10", True)),
    *(
        {"ngram_range": bad}
        for bad in ((0, 1), (2, 1), (1, 1.5), (1,), (1, 2, 3), 1, None, ("1", "2"), (1, 10**6), "12")
    ),
    *({"prefix_length": bad} for bad in (-1, 1001, 1.0, None, True)),
    *({"analyzer": "char", "prefix_length": bad} for bad in (1, 4)),
    {"analyzer": "char_wb", "boundaries": True},
    *(
        {name: bad}
        for name in ("lowercase", "binary", "alternate_sign", "mask_digits", "boundaries")
        for bad in ("no", None, 1, 0.0, [])
    ),
    *({"analyzer": bad} for bad in ("words", "", None, 1, str.split, [])),
    *({"norm": bad} for bad in ("l3", "", 2, True, [])),
    *({"strip_accents": bad} for bad in ("utf8", True, 1, [])),
    *({"stop_words": bad} for bad in ("german", "the", [1], [None], [b"the"], 5, {"a": 1, 2: 3})),
    *({"token_pattern": bad} for bad in ("(", "[", "(a)(b)", "(?P<x>a)(b)", None, 5, b"x", "*")),
    *({"preprocessor": bad} for bad in ("lower", 1, [])),
    *({"tokenizer": bad} for bad in ("split", 1, [])),
    *({"on": bad} for bad in ([], {"a": 1})),
]


@pytest.mark.parametrize("parameters", IMPOSSIBLE, ids=repr)
def test_impossible_parameters_are_refused(parameters):
    *_, name = parameters
    with pytest.raises((TypeError, ValueError), match=name.replace("stop_words", "stop.words?")):
        HashedBagOfWords(**parameters)


def test_the_constructor_changes_nothing_it_is_given():
    stop_words, ngram_range = ["to", "be"], [1, 2]
    bag = HashedBagOfWords(stop_words=stop_words, ngram_range=ngram_range)
    assert bag.stop_words is stop_words and bag.ngram_range is ngram_range
    assert stop_words == ["to", "be"] and ngram_range == [1, 2]
    stop_words.append("or")
    assert bag.tokens("to be or not") == ["or", "not", "or not"]
    assert bag.transform_one("or") != {}


COPIES = {
    "pickle": lambda bag: pickle.loads(pickle.dumps(bag)),
    "deepcopy": copy.deepcopy,
    "clone": lambda bag: bag.clone(),
    "clone with attributes": lambda bag: bag.clone(include_attributes=True),
}


@pytest.mark.parametrize("copied", COPIES)
def test_copies_do_the_same(copied):
    for options in OPTIONS:
        bag = HashedBagOfWords(**options)
        if copied == "pickle" and any(callable(value) and "<lambda>" in repr(value) for value in options.values()):
            continue
        other = COPIES[copied](bag)
        assert other.transform_one(SAMPLES[5]) == bag.transform_one(SAMPLES[5])
        assert repr(other) == repr(bag)


def test_memory_does_not_grow_with_what_went_through():
    bag = HashedBagOfWords()
    for i in range(100):
        bag.transform_one(f"some words {i}")
    before = bag._raw_memory_usage
    for i in range(10_000):
        bag.transform_one(f"other words {i}")
    assert bag._raw_memory_usage <= before + 1000


# --- River ------------------------------------------------------------------------------------------------------------


def river_texts(bag):
    """A stream for River's checks: texts, as a bag wants them, beside fields that it does not."""
    generator = random.Random(3)
    words = ["cheap", "pills", "see", "you", "at", "lunch", "noon", "buy", "now", "é", "漢字"]
    rows = []
    for _ in range(200):
        text = " ".join(generator.choices(words, k=generator.randrange(8)))
        rows.append((text if bag.on is None else {"text": text, "a": 1.0, "b": 2.0, "c": 3.0}, "cheap" in text))
    return rows


RIVER_BAGS = [
    HashedBagOfWords(),
    HashedBagOfWords(on="text"),
    HashedBagOfWords(n_features=100, ngram_range=(1, 2), analyzer="char_wb", stop_words=("you", "at"), on="text"),
]


def river_checks():
    """River has no texts of its own for its checks of transformers; these give it some."""
    for i, bag in enumerate(RIVER_BAGS):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checks, "_yield_datasets", lambda model, scale=1: [river_texts(model)])
            for one in checks.yield_checks(bag):
                yield pytest.param(bag, one, id=f"{i}-{one.__name__}")


# Fields of an example are no features here, the words are: to drop the one that holds the text is an error. Words that
# come and go are tested for the model that learns them.
FIELDS = ("check_emerging_features", "check_disappearing_features", "check_radically_disappearing_features")
# The results are a sparse matrix, as the result of a transformer of texts has to be, where this one wants a data frame.
FRAMES = ("check_transform_many_matches_transform_one",)


@pytest.mark.parametrize("bag, one_check", list(river_checks()))
def test_rivers_checks(bag, one_check):
    assert not bag._unit_test_skips()
    name = one_check.__name__
    if name in FIELDS or (
        bag.on is None and name in ("check_shuffle_features_no_impact", "check_no_state_aliasing_with_input")
    ):
        pytest.skip("the fields of an example are not the features of a text")
    if name in FRAMES or name == "check_learn_many_matches_learn_one":
        pytest.skip("it wants numbers in a data frame")
    one_check(bag.clone())


def test_many_are_one_by_one():
    for bag in RIVER_BAGS:
        rows = [x for x, _ in river_texts(bag)]
        matrix = bag.transform_many(rows)
        bag.learn_one(rows[0])
        bag.learn_many(rows)
        for i, x in enumerate(rows):
            row = matrix[i]
            assert bag.transform_one(x) == dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


def test_in_pipelines_and_unions():
    rows = [(x["text"], y) for x, y in river_texts(HashedBagOfWords(on="text"))]
    for model in (
        HashedBagOfWords() | linear_model.LogisticRegression(optim.SGD(1.0)),
        HashedBagOfWords(alternate_sign=False, norm=None) | naive_bayes.MultinomialNB(),
        (HashedBagOfWords() + HashedBagOfWords(analyzer="char_wb", ngram_range=(2, 3)))
        | linear_model.LogisticRegression(optim.SGD(1.0)),
        compose.FuncTransformer(str.strip) | HashedBagOfWords() | linear_model.LogisticRegression(optim.SGD(1.0)),
    ):
        for text, y in rows:
            model.predict_one(text)
            model.learn_one(text, y)
        hits = sum(model.predict_one(text) == y for text, y in rows)
        assert hits > 0.9 * len(rows)
    fields = (compose.Select("a") | preprocessing.StandardScaler()) + HashedBagOfWords(on="text", n_features=50)
    x = {"text": "one two", "a": 1.0}
    fields.learn_one(x)
    assert fields.transform_one(x) == {"a": 0.0, **HashedBagOfWords(n_features=50).transform_one("one two")}
