"""The recipe's own features."""

import inspect
import math
import random

import pytest
from contract import through_a_file
from forging import forge
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from stream_pegasos import HashedBagOfWords, TextClassifier, TextFeatures, load
from stream_pegasos.learners.explanations import phrases

RECIPE = {
    "n_features": 2**30,
    "ngram_range": (1, 2),
    "token_pattern": r"\w+|[^\w\s]",
    "binary": True,
    "alternate_sign": False,
    "mask_digits": "both",
    "prefix_length": 4,
    "boundaries": True,
}
CHANGES = [
    {"on": "body"},
    {"n_features": 1000},
    {"ngram_range": (1, 3)},
    {"prefix_length": 0},
    {"strip_accents": "ascii"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
@given(st.text(st.characters(max_codepoint=0xFF, exclude_characters="\xad")))
def test_one_option_keeps_the_rest_of_the_recipe(change, text):
    """Where all letters have spaces between their words the pattern of the recipe says what is a word."""
    features = TextFeatures(**change, letters=0, length=0)
    tokens = features.tokens(text)
    assert sorted(tokens) == sorted(HashedBagOfWords(**RECIPE | change).tokens(text))
    columns = {features.index(token)[0] for token in tokens}
    assert features.transform_one(text) == dict.fromkeys(columns, 1.0 / math.sqrt(len(columns) or 1))


@pytest.mark.parametrize("pair", [("error 404", "error 500"), ("room 101", "room 202"), ("m4", "M5"), ("४०४", "५००")])
def test_numbers_are_told_apart_after_ten_messages_of_each(pair):
    generator, model = random.Random(1), TextClassifier()
    others = ["the", "page", "of", "our", "server", "fails", "again", "when", "I", "log", "in,", "please", "help"]

    def message(number):
        words = generator.choices(others, k=generator.randint(1, 6))
        return " ".join([*words[:2], number, *words[2:]])

    for _ in range(10):
        for number in pair:
            model.learn_one(message(number), number)
    right = [model.predict_one(message(number)) == number for number in pair for _ in range(100)]
    assert sum(right) > 180


def test_words_of_up_to_four_digits_stand_as_they_are_beside_their_masked_forms():
    words = TextFeatures(boundaries=False, ngram_range=(1, 1), prefix_length=0, letters=0, length=0)
    numbers = words.tokens("1234 12345 v2b 0 00 10:05")
    assert numbers == ["0000", "00000", "v0b", "0", "00", "00", ":", "00", "1234", "v2b", "10", "05"]
    assert TextFeatures().transform_one("1234 5") != TextFeatures().transform_one("1235 5")


def test_options_are_those_of_hashed_words():
    names = [list(inspect.signature(kind).parameters) for kind in (TextFeatures, HashedBagOfWords)]
    assert names[0] == [*names[1], "vectors", "letters", "length"]


def test_what_characters_add_can_be_explained():
    model = TextClassifier()
    for text, y in [("味道很好", 1), ("太难吃了", 0), ("送餐很快很好吃", 1), ("难吃", 0)] * 5:
        model.learn_one(text, y)
    explanation = model.explain_ngrams_one("很难吃")
    assert set(explanation) - {"(intercept)"} <= set(TextFeatures().tokens("很难吃"))
    assert explanation["难吃"] < 0.0 < explanation["很"]
    assert sum(explanation.values()) == pytest.approx(model.predict_learn_many(["很难吃"], [0]).scores[0])


words_of_letters = st.lists(st.text("abcé漢я", min_size=1, max_size=9), min_size=1, max_size=12)


@given(words_of_letters, st.integers(1, 40))
def test_letters_are_those_of_scikit_learn_and_count_as_the_length_says(words, n_blanks):
    """Its n-grams of characters within words; ours of one word alone count as much as it, and fade in longer texts."""
    text = (" " * n_blanks).join(words)
    features = TextFeatures(ngram_range=(1, 1), prefix_length=0, norm=None, token_pattern=r"\w+")
    n, fading = len(words), min(1.0, max(0.0, (300 - len(text)) / 150))
    share = max((9 / n**2 - 1) / 8, 0.0)
    expected = dict.fromkeys(words, 1.0)
    for size, weight in ((3, max(0.2, share)), (2, share), (4, share)):
        ngrams = CountVectorizer(analyzer="char_wb", ngram_range=(size, size)).fit([text]).vocabulary_
        if weight and fading:  # a word shorter than its n-grams is none of ours
            expected |= {f"  {ngram}": weight * fading for ngram in ngrams if len(ngram) == size}
    powers = (math.floor(math.log2(n_things + 1)) for n_things in (len(text), n))
    expected |= {f"    {power} {of}": 0.7 for power, of in zip(powers, ("characters", "words"), strict=True)}
    columns = {features.index(token)[0]: pytest.approx(value) for token, value in expected.items()}
    assert features.transform_one(text) == columns


def test_runs_have_no_letters_and_no_single_word_counts_beside_them():
    tokens = TextFeatures().tokens("好吃 ok 很快")
    assert {"   ok", "  ok "} < {*tokens} and not {
        token for token in tokens if token.startswith("  ") and "好" in token
    }
    assert "  ok" not in tokens  # a pair of letters, as one word alone has


@pytest.mark.parametrize("options", [{"analyzer": "char"}, {"tokenizer": str.split}])
@pytest.mark.parametrize("name", ["letters", "length"])
def test_letters_and_length_are_for_words(name, options):
    TextFeatures(**options)
    for value in (0.5, 1):
        with pytest.raises(ValueError, match=f"{name} must be 0 or None"):
            TextFeatures(**options, **{name: value})
    for value in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=f"{name} must be"):
            TextFeatures(**{name: value})


def test_letters_are_explained_as_those_of_their_words(tmp_path):
    model = TextClassifier()
    model.keep_names()
    for text, y in [("jumping cat", 1), ("sleepy dog", 0), ("running cat", 1), ("lazy dog", 0)] * 4:
        model.learn_one(text, y)
    explanation = model.explain_ngrams_one("singing")
    assert explanation["  ing"] > 0.0 and set(explanation) - {"(intercept)"} <= set(TextFeatures().tokens("singing"))
    assert sum(explanation.values()) == pytest.approx(model.decision_function_one("singing"))
    found, _ = phrases(explanation.items(), 9, {"": "singing"})
    assert {phrase.name for phrase in found} <= {"singing", "(intercept)", "7 to 14 characters", "1 to 2 words"}
    names = dict(model.names.weights(model))
    assert names["  ing"] > 0.0
    loaded = through_a_file(model, tmp_path / "m")
    assert dict(loaded.names.weights(loaded)) == names


def test_files_of_before_find_no_letters(tmp_path):
    """Those that say nothing of letters were written without."""
    model = TextClassifier(TextFeatures(letters=0, length=0))
    model.learn_many(["win a prize", "lunch at noon"], [1, 0])
    model.save(tmp_path / "m")

    def forget(arrays, state, header):
        for name in ("letters", "length"):
            del state["features"][name]

    forge(tmp_path / "m", forget)
    loaded = load(tmp_path / "m")
    assert loaded.features.letters == loaded.features.length == 0.0
    assert loaded.predict_proba_one("a prize") == model.predict_proba_one("a prize")
