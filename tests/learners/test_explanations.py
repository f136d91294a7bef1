"""What n-grams of one phrase add together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.learners.explanations import phrases, pieces

ROUTE = ["route: from localhost", "route: from localhost (", "route: localhost", "route: from", "route:  loca"]


@pytest.mark.parametrize(
    "names, expected",
    [
        ([*ROUTE, "text: localhost"], {"route: from localhost": 5, "text: localhost": 1}),
        (["by phobos", "phobos . labs", ". labs", "now .", ". </s>"], {"phobos labs": 3, "now": 1, ".": 1}),
        (["cat", "a", "cats and", " cats", "a cat"], {"a cat": 3, "cats and": 2}),
        (["好吃", " 好", "很好", "吃 ", "不"], {"好吃": 4, "不": 1}),
        (["(intercept)", "intercept", "( intercept"], {"intercept": 2, "(intercept)": 1}),
        (["000 </s>", "call 000", "000", " 000", "<s> call"], {"call 000": 5}),
        (["! </s>", "<s> free"], {"!": 1, "free": 1}),
    ],
)
def test_ngrams_that_overlap_are_one_phrase(names, expected):
    found, others = phrases([(name, 1.0 - i / 1024) for i, name in enumerate(names)], 10)
    assert {phrase.name: round(phrase.value) for phrase in found} == expected and not others


@given(st.lists(st.sampled_from(["free", "prize", "now", "!", "好吃", "é", "한국어"]), min_size=1), st.integers(1, 8))
def test_phrases_and_the_others_add_up(words, limit):
    model = TextClassifier(TextFeatures())
    model.learn_many([" ".join(words), "lunch at noon", " ".join(words[::2])], ["spam", "ham", "ham"])
    explained = model.explain_one(" ".join(words))
    text = " ".join(words).upper()
    found, others = phrases(explained.items(), limit, {"": text})
    assert sum(phrase.value for phrase in found) + sum(others) == pytest.approx(sum(explained.values()))
    assert [*map(abs, (phrase.value for phrase in found))] == sorted(
        (abs(phrase.value) for phrase in found), reverse=True
    )
    for phrase in found:
        assert phrase.name in text or phrase.name == "(intercept)"
        assert sum(share for _, share in phrase.words) == pytest.approx(phrase.value)
    ((_, parts),) = pieces(explained.items(), {"": text}).items()
    assert "".join(part for part, _ in parts) == text


@pytest.mark.parametrize(
    ("added", "text", "expected"),
    [
        ({"000 </s>": 2.0, "call 000": 1.0}, "Call 911", {"Call": 0.5, "911": 2.5}),
        ({"<s> free": 1.0, "free !": 0.5, "! </s>": -1.0}, "FREE!", {"FREE": 1.5, "!": -1.0}),
        ({" urge": 1.0, "urgent": 1.0}, "Urgent", {"Urgent": 2.0}),
        ({"好吃": 1.0, " 好": 0.5}, "很好吃", {"好": 1.0, "吃": 0.5}),
        ({"İ": 1.0, "00": 1.0, "24": 1.0}, "x 24 y", {"24": 2.0}),
    ],
)
def test_ngrams_are_shared_out_to_words(added, text, expected):
    parts = pieces(added.items(), {"": text})[""]
    assert {part: value for part, value in parts if value} == expected and "".join(part for part, _ in parts) == text


@pytest.mark.parametrize(
    "known, text, word",
    [([" priz", "prize"], "A prize!", "prize"), ([" priz"], "PRIZES, 12", "PRIZES"), ([" 0000"], "1234567", "1234567")],
)
def test_what_a_word_begins_with_is_that_word_s(known, text, word):
    added = [(name, 1.0) for name in known]
    assert phrases(added, 1, {"": text})[0] == [(word, len(known), [(word, len(known))])]
    assert (word, len(known)) in pieces(added, {"": text})[""]
