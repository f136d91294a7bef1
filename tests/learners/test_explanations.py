"""What n-grams of one phrase add together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.learners.explanations import phrases

ROUTE = ["route: from localhost", "route: from localhost (", "route: localhost", "route: from", "route:  loca"]


@pytest.mark.parametrize(
    "names, expected",
    [
        ([*ROUTE, "text: localhost"], {"route: from localhost (": 5, "text: localhost": 1}),
        (["by phobos", "phobos . labs", ". labs", "now .", ". </s>"], {"phobos . labs": 3, "now .": 1, ". </s>": 1}),
        (["cat", "a", "cats and", " cats", "a cat"], {"a cat": 3, "cats and": 2}),
        (["好吃", " 好", "很好", "吃 ", "不"], {"好吃": 4, "不": 1}),
        (["(intercept)", "intercept", "( intercept"], {"( intercept": 2, "(intercept)": 1}),
    ],
)
def test_ngrams_that_overlap_are_one_phrase(names, expected):
    found, others = phrases([(name, 1.0 - i / 1024) for i, name in enumerate(names)], 10)
    assert {name: round(value) for name, value in found} == expected and not others


@given(st.lists(st.sampled_from(["free", "prize", "now", "!", "好吃", "é", "한국어"]), min_size=1), st.integers(1, 8))
def test_phrases_and_the_others_add_up(words, limit):
    model = TextClassifier(TextFeatures())
    model.learn_many([" ".join(words), "lunch at noon", " ".join(words[::2])], ["spam", "ham", "ham"])
    explained = model.explain_one(" ".join(words))
    found, others = phrases(explained.items(), limit)
    assert sum(value for _, value in found) + sum(others) == pytest.approx(sum(explained.values()))
    assert {name for name, _ in found} <= explained.keys() and len(found) <= limit
    assert [name for name, _ in found] == [name for name, _ in sorted(found, key=lambda row: -abs(row[1]))]
