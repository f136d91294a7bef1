"""The recipe's own features."""

import inspect
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import HashedBagOfWords, TextClassifier, TextFeatures

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
    features = TextFeatures(**change)
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
    numbers = TextFeatures(boundaries=False, ngram_range=(1, 1), prefix_length=0).tokens("1234 12345 v2b 0 00 10:05")
    assert numbers == ["0000", "00000", "v0b", "0", "00", "00", ":", "00", "1234", "v2b", "10", "05"]
    assert TextFeatures().transform_one("1234 5") != TextFeatures().transform_one("1235 5")


def test_options_are_those_of_hashed_words():
    names = [list(inspect.signature(kind).parameters) for kind in (TextFeatures, HashedBagOfWords)]
    assert names[0] == [*names[1], "vectors"]


def test_what_characters_add_can_be_explained():
    model = TextClassifier()
    for text, y in [("味道很好", 1), ("太难吃了", 0), ("送餐很快很好吃", 1), ("难吃", 0)] * 5:
        model.learn_one(text, y)
    explanation = model.explain_one("很难吃")
    assert set(explanation) - {"(intercept)"} <= set(TextFeatures().tokens("很难吃"))
    assert explanation["难吃"] < 0.0 < explanation["很"]
    assert sum(explanation.values()) == pytest.approx(model.predict_learn_many(["很难吃"], [0]).scores[0])
