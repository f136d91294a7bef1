"""Texts as hashed n-grams, in both engines."""

import itertools
import math
import pickle
import random

import numpy as np
import pytest
from engines import as_dict, both_engines, compiled_engine, needs_compiled, pure_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from peer import nasty_texts

from stream_pegasos.engine.pure.scanner import ANY_LANGUAGE, TOKEN_PATTERNS, word_64
from stream_pegasos.features.vectors import word_vectors

DIGITS = "0019a\u0664\uff12\u0e51\U0001d7d8\U0001d7d9\ufe0f\u20e3한ก漢,"
texts = nasty_texts(
    st.text(st.sampled_from("a\U0001d7d8\ud800\udfff"), min_size=1) | st.text(st.sampled_from(DIGITS), min_size=1),
    most=500,
)
scanner_options = st.fixed_dictionaries(
    {
        "analyzer": st.sampled_from(["word", "word", "word", "char", "char_wb"]),
        "token_pattern": st.sampled_from(TOKEN_PATTERNS),
        "lowercase": st.booleans(),
        "stop_words": st.sampled_from(
            [frozenset(), frozenset(["the", "a", "σ", "漢字", "x" * 13, "", "0", "1", "19"])]
        ),
        "ngram_range": st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 3), (1, 5), (3, 7)]),
        "n_features": st.sampled_from([1, 2, 3, 1000, 1 << 10, 1 << 20, (1 << 20) + 1, 1 << 30, (1 << 31) - 1]),
        "alternate_sign": st.booleans(),
        "binary": st.booleans(),
        "norm": st.sampled_from([None, "l1", "l2"]),
        "mask_digits": st.sampled_from([False, True, "both", "both"]),
        "prefix_length": st.sampled_from([0, 0, 1, 2, 4, 20]),
        "boundaries": st.booleans(),
        "hash_function": st.sampled_from(["murmur3", "words", "words"]),
        "letters": st.sampled_from([0.0, 0.2, 1.0]),
        "length": st.sampled_from([0.0, 0.7]),
    }
).map(lambda options: options | possible(options))


def possible(options):
    if options["token_pattern"] == ANY_LANGUAGE:
        options = options | {"hash_function": "words"}
    has_letters = options["analyzer"] == "word" and options["hash_function"] == "words"
    return options if has_letters else options | {"letters": 0.0, "length": 0.0}


@needs_compiled
@settings(max_examples=30, deadline=None, derandomize=True)
@given(scanner_options, st.lists(texts, min_size=1, max_size=2))
def test_scanners_agree(options, some):
    pure, compiled = pure_engine.Scanner(**options), compiled_engine.Scanner(**options)
    for text in some:
        one = pure.transform_one(text)
        assert compiled.transform_one(text) == one
        assert as_dict(compiled.row(text, True)) == pytest.approx({i: v for i, v in one.items() if v}, rel=1e-12)
    for indptr, indices, data, expected in by_row(pure.transform_many(some), compiled.transform_many(some)):
        assert dict(zip(indices, data, strict=True)) == expected
        assert len(indices) == indptr


ready_made = scanner_options.map(lambda options: {**options, "analyzer": "ngrams", "letters": 0.0, "length": 0.0})
field_names = st.sampled_from(["subject", "Σ", "", "\ud800"])


@needs_compiled
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.lists(st.tuples(field_names, st.one_of(scanner_options, ready_made)), min_size=2, max_size=3), st.data())
def test_scanners_of_several_fields_agree(fields, data):
    """One at a time, many at once, and many in threads."""
    (_, first), *others = fields
    of_others = tuple((name, pure_engine.Scanner(**options).arguments) for name, options in others)
    pure, compiled = (each.Scanner(**first, fields=of_others) for each in (pure_engine, compiled_engine))
    of_field = [st.lists(texts, max_size=3) if it["analyzer"] == "ngrams" else texts for _, it in fields]
    messages = data.draw(st.lists(st.tuples(*of_field), min_size=1, max_size=3))
    for message in messages:
        assert compiled.transform_one(message) == pure.transform_one(message)
    for _, indices, values, expected in by_row(pure.transform_many(messages), compiled.transform_many(messages)):
        assert dict(zip(indices, values, strict=True)) == expected
    assert pickle.loads(pickle.dumps(compiled)).arguments == pure.arguments
    with pytest.raises(ValueError, match="no messages of"):
        compiled.transform_many([messages[0], messages[0][1:]])


def by_row(expected, given):
    for array in given:
        assert array.dtype in (np.int64, np.int32, np.float64)
    indptr = given[0].tolist()
    for i, (begin, end) in enumerate(itertools.pairwise(indptr)):
        first, last = expected[0][i], expected[0][i + 1]
        row = dict(zip(expected[1][first:last].tolist(), expected[2][first:last].tolist(), strict=True))
        yield end - begin, given[1][begin:end].tolist(), given[2][begin:end].tolist(), row


def word_scanner(engine_in_test, token_pattern=r"\b\w\w+\b", **changes):
    options = {
        "analyzer": "word",
        "token_pattern": token_pattern,
        "lowercase": True,
        "stop_words": frozenset(),
        "ngram_range": (1, 1),
        "n_features": (1 << 31) - 1,
        "alternate_sign": True,
        "binary": False,
        "norm": None,
        "hash_function": "words" if token_pattern == ANY_LANGUAGE else "murmur3",
    }
    return engine_in_test.Scanner(**options | changes)


LETTERS = ["a", "é", "漢", "\U0001d400"]


@needs_compiled
@pytest.mark.parametrize("pattern", TOKEN_PATTERNS)
def test_scanners_agree_wherever_blocks_and_segments_end(pattern):
    pure, compiled = word_scanner(pure_engine, pattern), word_scanner(compiled_engine, pattern)
    for filler in ("ab ", "é. ", "漢!", "\U0001d400 "):
        for end in (*range(61, 68), 127, 128, *range(4094, 4098), 8191, 8192):
            for size in {end % 4096, end // len(filler.encode())}:  # in characters and in bytes
                for tail in ("", "!é", "漢字😀", "longer_than_twelve_bytes tail")[end % 2 :: 1 if size < 200 else 2]:
                    text = (filler * end)[:size] + tail
                    assert compiled.transform_one(text) == pure.transform_one(text), (end, filler, tail)


@needs_compiled
@pytest.mark.parametrize("pattern", TOKEN_PATTERNS)
def test_scanners_agree_on_numbers_wherever_blocks_and_segments_end(pattern):
    scanners = [word_scanner(each, pattern, mask_digits="both") for each in (pure_engine, compiled_engine)]
    numbers = "404 m5 1234 12345 0 00 7 2nd a1b2c3d4 a1b2c3d4e5 " + "w" * 5000 + "8 ", "٤٠٤ 漢字5\uff100 \U0001d7d9x "
    for number in (*numbers, "".join(numbers)):
        for size in (0, 61, *range(63, 66), *range(4093, 4098)):
            text = number + ("é 1x " * size)[:size] + number + "é1"
            assert scanners[1].transform_one(text) == scanners[0].transform_one(text), (size, number)
            ascii = text.replace("é", "e")
            assert scanners[1].transform_one(ascii) == scanners[0].transform_one(ascii), (size, number)
            text = text[: text.find("é")] + "."
            assert scanners[1].transform_one(text) == scanners[0].transform_one(text), (size, number)


@needs_compiled
@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2)])
def test_one_token_of_any_length(letter, ngram_range):
    for n in (1, 2, 3, 4, 5, 11, 12, 13, 16, 17, 63, 64, 65, 4095, 4096, 4097, 12288, 30_000):
        changes = {"ngram_range": ngram_range, "stop_words": frozenset([letter * 5, letter * 65, letter * 4096])}
        scanners = word_scanner(pure_engine, **changes), word_scanner(compiled_engine, **changes)
        text = f"{letter * n} {'x' * 37} {letter * n}."
        assert scanners[0].transform_one(text) == scanners[1].transform_one(text), n


@both_engines
def test_ready_made_ngrams_are_hashed_as_they_are(engine_in_test):
    """Whatever they contain, and whatever `lowercase` says of texts."""
    ngrams = ["Upper", "İ" * 50, "ΟΔΟΣ", "", " ", "12 ab", "\ud800", "\x00", "😀", "x" * 300, "Upper", "a\nb"]
    for lowercase in (False, True):
        scanner = word_scanner(engine_in_test, analyzer="ngrams", lowercase=lowercase)
        expected = {}
        for ngram in ngrams:
            index, sign = pure_engine.Scanner(*scanner.arguments).index(ngram)
            expected[index] = expected.get(index, 0.0) + sign
        assert scanner.transform_one(ngrams) == expected
        assert scanner.transform_one([]) == {}


@both_engines
def test_hashes_are_those_of_the_reference(engine_in_test):
    sklearn_utils = pytest.importorskip("sklearn.utils", reason="scikit-learn has the reference")
    scanner = word_scanner(engine_in_test, n_features=(1 << 31) - 1)
    for n in range(70):
        ngram = "".join(random.Random(n).choices("abcdefg é漢😀", k=n))
        h = int(sklearn_utils.murmurhash3_32(ngram.encode(), seed=0))
        assert scanner.index(ngram) == (abs(h) % ((1 << 31) - 1), -1.0 if h < 0 else 1.0)


WORDS_OF_HASHES = {
    0x80000000: "ad1u66pi",
    0x7FFFFFFF: "ab5juurv",
    0x80000001: "abxnxwpw",
    0x00000000: "acdia99h",
    0xFFFFFFFF: "aaum2erp",
    0x00000001: "aa1zbd39",
}


@both_engines
@pytest.mark.parametrize("h", WORDS_OF_HASHES)
def test_the_ends_of_the_range_of_hashes(engine_in_test, h):
    word, signed = WORDS_OF_HASHES[h], h - (1 << 32) if h >> 31 else h
    for n_features in (1, 2, 3, 1000, 1 << 20, 1 << 30, (1 << 31) - 1):
        scanner = word_scanner(engine_in_test, n_features=n_features)
        expected = abs(signed) % n_features, -1.0 if signed < 0 else 1.0
        assert scanner.index(word) == expected
        assert scanner.transform_one(f"{word} {word}") == {expected[0]: 2.0 * expected[1]}


@both_engines
def test_the_same_text_and_others_in_turn(engine_in_test):
    """A scanner remembers the text it saw last; it must not mistake another one for it."""
    scanner = word_scanner(engine_in_test)
    a, b = "one two", "three"
    rows = {text: word_scanner(engine_in_test).transform_one(text) for text in (a, b, "")}
    for text in (a, a, b, a, "", "", a, b, b, ""):
        assert scanner.transform_one(text) == rows[text]
        assert as_dict(scanner.row(text, True)) == rows[text]
    for bad in (None, 1, b"one two", ["one"]):
        with pytest.raises(TypeError, match="text must be a str"):
            scanner.transform_one(bad)
        with pytest.raises(TypeError, match="text must be a str"):
            scanner.transform_many([a, bad, b])
        assert scanner.transform_one(a) == rows[a]


SEED, OF_LENGTH, OF_WORD, OF_NEXT = 0x243F6A8885A308D3, 0x13198A2E03707345, 0xA4093822299F31D1, 0x082EFA98EC4E6C89


def hash_of_sixteen(word):
    """The formula for a word of at most 16 bytes, in one line."""
    low, high = (int.from_bytes(word.encode().ljust(16, b"\0")[i : i + 8], "little") for i in (0, 8))
    product = (low ^ OF_WORD) * (high ^ (SEED + len(word.encode()) * OF_LENGTH) % 2**64)
    return product % 2**64 ^ product // 2**64


@both_engines
@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("", "spam"), ("sixteen-letters!", "é"), ("<s>", "手机")])
def test_the_hash_of_a_pair_is_made_of_those_of_its_words(engine_in_test, one, other):
    scanner = word_scanner(engine_in_test, hash_function="words", alternate_sign=False)
    for ngram, h in [
        (one, hash_of_sixteen(one)),
        (f"{one} {other}", hash_of_sixteen(one) * OF_NEXT + hash_of_sixteen(other)),
        (
            f"{one} {other} {one}",
            (hash_of_sixteen(one) * OF_NEXT + hash_of_sixteen(other)) * OF_NEXT + hash_of_sixteen(one),
        ),
    ]:
        high = h % 2**64 >> 32
        assert scanner.index(ngram) == (min(high, 2**32 - high) % ((1 << 31) - 1), 1.0)


@both_engines
def test_words_collide_no_more_than_chance_makes_them(engine_in_test):
    """Words and pairs of all lengths, that differ in little, in a million columns."""
    scanner = word_scanner(engine_in_test, hash_function="words", n_features=1 << 20)
    stems = ("", "w", "prefix", "a long beginning")
    words = [f"{stem}{i}{end}" for stem in stems for i in range(2_000) for end in ("", "s")]
    ngrams = {*words, *(f"{a} {b}" for pair in itertools.pairwise(words) for a, b in itertools.permutations(pair))}
    n = len(ngrams)
    expected = (1 << 20) * -math.expm1(n * math.log1p(-(2.0**-20)))  # distinct columns, on average
    found = len({scanner.index(ngram)[0] for ngram in ngrams})
    assert found == pytest.approx(expected, abs=5.0 * math.sqrt(n - expected))


@needs_compiled
@pytest.mark.parametrize("prefix_length", [0, 1, 2, 4])
@pytest.mark.parametrize("ngram_range", [(1, 2), (1, 3), (2, 2)])
def test_runs_of_scripts_without_spaces(prefix_length, ngram_range):
    """Runs shorter and longer than prefixes and than words, alone and beside words, marks and joiners."""
    of = ("word", ANY_LANGUAGE, True, frozenset(), ngram_range, 1 << 30, True, False, None, True)
    runs = ["漢", "漢字", "太难吃了", "こんにちは世界", "ภาษาไทย", "한국어", "漢" * 16, "字" * 17, "コ" * 40]
    texts = [*runs, *(f"{run} ok {run}!" for run in runs), *(f"a{run}b {run}" for run in runs), " ".join(runs)]
    texts += ["👩\u200d👩 漢\u200d字 👍🏽!", "🇩🇪🇫🇷🇩", "a\u0301 漢\u0301字", "! 漢 ! 字 !"]
    for boundaries in (False, True):
        pure, compiled = (
            each.Scanner(*of, prefix_length, boundaries, "words") for each in (pure_engine, compiled_engine)
        )
        for text in texts:
            assert compiled.transform_one(text) == pure.transform_one(text), text


@needs_compiled
def test_the_vectors_of_words_that_were_met_are_kept():
    """By the hashes of the words, whichever thread met them; not those of fields without vectors."""
    table = word_vectors({"cheap": [1.0, -0.25], "lunch": [0.001, 0.002], "\ud800": [1.0, 1.0]})
    options = {"analyzer": "word", "token_pattern": ANY_LANGUAGE, "lowercase": True, "stop_words": frozenset(["at"])}
    options |= {"ngram_range": (1, 2), "n_features": 1000, "alternate_sign": False, "binary": True, "norm": "l2"}
    options["hash_function"] = "words"
    with_vectors = pure_engine.Scanner(**options, vectors=table)
    words = ["cheap", "lunch", "\ud800", "x", "0" * 99]
    messages = [("noon", f"Cheap lunch at \ud800 x {'0' * 99}")] * 2000
    for engine in pure_engine, compiled_engine:
        scanner = engine.Scanner(**options, fields=(("body", with_vectors.arguments),))
        scanner.transform_one(messages[0])
        scanner.get_threaded(2).transform_many(messages[:: 1 if engine is compiled_engine else 500])
        hashes, codes, shifts = scanner.kept_vectors()
        found = {int(h): (c.tolist(), int(s)) for h, c, s in zip(hashes.view(np.uint64), codes, shifts, strict=True)}
        assert len(found) == len(hashes)
        wanted = zip(words, *table.codes(words), strict=True)
        assert found == {word_64(w.encode("utf-8", "surrogatepass")): (c.tolist(), int(s)) for w, c, s in wanted}
