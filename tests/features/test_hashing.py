import gzip
import itertools
import random
import re
import sys
import unicodedata
import warnings

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peer import OPTIONS, SAMPLES, assert_same, nasty_texts

from stream_pegasos import HashedBagOfWords, engine
from stream_pegasos.features import hashing

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


def check(texts, **options):
    bag = HashedBagOfWords(**options)
    options = {name: value for name, value in options.items() if name != "n_features"} | {"n_features": bag.n_features}
    expected = peer(**options)(texts)
    assert_same(bag.transform_many(texts), expected)
    for i, text in enumerate(texts[:5]):
        row = expected[i]
        assert bag.transform_one(text) == dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_columns_and_values_are_those_of_scikit_learn(options):
    check(SAMPLES, **options)


# --- texts ------------------------------------------------------------------------------------------------------------


texts = nasty_texts(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4), most=8300)


@settings(max_examples=50, deadline=None, derandomize=True)
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
    {"mask_digits": "both"},
    {"mask_digits": "both", "analyzer": "char_wb", "ngram_range": (1, 3)},
    {"mask_digits": "both", "ngram_range": (2, 2), "token_pattern": r"\S+", "lowercase": False},
    {"mask_digits": "both", "strip_accents": "unicode", "token_pattern": r"\w+", "stop_words": ["word7", "00"]},
    {"mask_digits": "both", "tokenizer": str.split, "ngram_range": (1, 2)},
    {"mask_digits": "both", "token_pattern": r"[1-9a-z]+"},
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
        as_it_stands = text = fold(text)
        if mask_digits:
            text = "".join("0" if c.isdecimal() else c for c in text)
        found = ngrams(text)
        if mask_digits == "both" and options.get("analyzer", "word") == "word":
            digits = ((word, [c for c in word if c.isdecimal()]) for word in tokens(as_it_stands))
            found += [word for word, of_word in digits if set(of_word) - {"0"} and len(of_word) <= 4]
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
    words = ["the", "Brown", "fox_1", "x", "é", "Straße", "漢字", "😀", "ΣΑΣ", "don't", "verylongwordindeed", "..."]
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
    text = random_text(generator, 200_000 if pure else 600_000)
    check([text])
    check([text[: len(text) // 8]], ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]", norm=None)
    check([text[: len(text) // 50]], analyzer="char_wb", ngram_range=(2, 3))


@pytest.mark.skipif(pure, reason="the pure engine takes a minute for it")
@pytest.mark.parametrize("megabytes", [10, pytest.param(100, marks=pytest.mark.heavy)])
def test_a_word_of_many_megabytes(megabytes):
    line = "Some words, é, 漢字 and others " * (1 << 16)
    bag = HashedBagOfWords(norm=None)
    found = bag.transform_one(line)
    n = len(line) // len("Some words, é, 漢字 and others ")
    expected = {bag.index(word)[0]: bag.index(word)[1] for word in ("some", "words", "漢字", "and", "others")}
    assert set(found) == set(expected)
    for index, sign in expected.items():
        assert found[index] * sign == n
    line = "x" * (megabytes * 1_000_000)
    assert bag.transform_one(line) == {bag.index(line)[0]: bag.index(line)[1]}


def test_many_distinct_tokens():
    n = 20_000 if pure else 100_000
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


@given(st.text(st.sampled_from("ae\u0301\u0323\u0f73\u0f75\u0344é각\uff9e ﷺΣ") | st.characters()))
def test_accents_are_stripped_as_others_do(text):
    stripped = [hashing.strip_accents(text, how) for how in ("unicode", "ascii")]
    assert stripped == [sklearn_text.strip_accents_unicode(text), sklearn_text.strip_accents_ascii(text)]


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
    n = 20 if pure else 100
    for name in FILES:
        check(read(data_folder, name, n), **options)
