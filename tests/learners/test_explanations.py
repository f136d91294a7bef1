"""What n-grams of one phrase add together."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import AdaptiveClassifier, Category, MailFeatures, OrdinalClassifier, TextClassifier, TextFeatures
from stream_pegasos.learners.explanations import phrases, pieces
from stream_pegasos.runtime.explaining import explained

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
    fields = {name.partition(": ")[0]: "" for name in names if ": " in name} or {"": ""}
    found, others = phrases([(name, 1.0 - i / 1024) for i, name in enumerate(names)], 10, fields)
    assert {phrase.name: round(phrase.value) for phrase in found} == expected and not others


@given(st.lists(st.sampled_from(["free", "prize", "now", "!", "好吃", "é", "한국어"]), min_size=1), st.integers(1, 8))
def test_phrases_and_the_others_add_up(words, limit):
    model = TextClassifier(TextFeatures())
    model.learn_many([" ".join(words), "lunch at noon", " ".join(words[::2])], ["spam", "ham", "ham"])
    explained = model.explain_ngrams_one(" ".join(words))
    text = " ".join(words).upper()
    found, others = phrases(explained.items(), limit, {"": text})
    assert sum(phrase.value for phrase in found) + sum(others) == pytest.approx(sum(explained.values()))
    assert [*map(abs, (phrase.value for phrase in found))] == sorted(
        (abs(phrase.value) for phrase in found), reverse=True
    )
    for phrase in found:
        is_length = phrase.name.endswith((" characters", " words"))
        assert phrase.name in text or phrase.name == "(intercept)" or is_length
        assert sum(share for _, share in phrase.words) == pytest.approx(phrase.value)
    ((_, parts),) = pieces(explained.items(), {"": text}).items()
    assert "".join(part for part, _ in parts) == text


@pytest.mark.parametrize(
    "features",
    [
        *(TextFeatures(analyzer=analyzer, ngram_range=(1, 4)) for analyzer in ("word", "char", "char_wb")),
        TextFeatures(on="subject")
        + TextFeatures(on="body", analyzer="char_wb", ngram_range=(2, 3))
        + Category(on="to"),
        MailFeatures(),
    ],
    ids=["word", "char", "char_wb", "fields", "mail"],
)
def test_whatever_is_read_is_explained_with_colons_in_it(features):
    def message(subject, body):
        of_fields = {"subject": subject, "body": body, "to": "a: b"}
        mail = f"Message-ID: <1: 2@x>\nSubject: {subject}\n\n{body}\n".encode()
        is_of_fields = not (features.takes_text or isinstance(features, MailFeatures))
        return (
            of_fields if is_of_fields else mail if isinstance(features, MailFeatures) else f"subject: {subject} {body}"
        )

    model = TextClassifier(features)
    model.learn_many([message("win : now", "a: b : c"), message("lunch", "at: noon: 1")] * 3, ["spam", "ham"] * 3)
    for asked in (message("win : now", ": : b"), message(": ", "lunch: a:")):
        for limit in (3, 1_000):
            found = explained(model, asked, limit=limit)
            total = math.fsum(model.explain_ngrams_one(asked, found["explained"]).values())
            assert sum(value for _, value in found["contributions"]) + found["others"] == pytest.approx(total)
            assert len(found["contributions"]) <= limit and (found["n_others"] == 0 or limit == 3)


@pytest.mark.parametrize("labels", [("ham", "spam"), ("ham", "spam", "work")])
def test_one_label_is_explained_against_another(labels):
    """The parts add up to the difference of both margins; two labels have one margin."""
    model, text = TextClassifier(), "cheap pills at lunch"
    model.learn_many(["lunch at noon", "cheap pills now", "agenda of the meeting"] * 5, [*labels, labels[-1]][:3] * 5)
    for label, against in itertools.permutations(labels, 2):
        score = model.decision_function_one(text)
        expected = score[label] - score[against] if len(labels) > 2 else score * (1 if label == "spam" else -1)
        for explain in (model.explain_one, model.explain_ngrams_one):
            assert math.fsum(explain(text, label, against=against).values()) == pytest.approx(expected)
    with pytest.raises(ValueError, match="against must be None without a label"):
        model.explain_one(text, against="spam")
    with pytest.raises(ValueError, match="against must be one of the classes"):
        model.explain_one(text, "ham", against="nobody")
    with pytest.raises(ValueError, match="against must be another label"):
        model.explain_one(text, "ham", against="ham")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        model.explain_one(text, ["ham"])


def test_an_ngram_that_has_a_colon_is_of_its_field():
    added = [("subject: : now", 1.0), ("subject: now", 0.5), ("to=a: b", 0.25), ("subject: sale", 0.125)]
    found, _ = phrases(added, 9, {"subject": "sale : now"})
    assert [(phrase.name, phrase.value) for phrase in found] == [
        ("subject: now", 1.5), ("to=a: b", 0.25), ("subject: sale", 0.125)
    ]  # fmt: skip


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


@pytest.mark.parametrize("options", [{}, {"threshold": 0.9, "pos_label": "spam"}, {"pos_label": "ham"}])
@pytest.mark.parametrize("forgotten", ["ham", "spam", "none of them"])
def test_what_explains_a_decision_adds_up_to_it_also_where_a_class_was_forgotten(options, forgotten):
    model = TextClassifier(classifier=AdaptiveClassifier(**options))
    model.learn_many(["win a prize", "lunch at noon"] * 5, ["spam", "ham"] * 5)
    if forgotten in model.classes:
        model.forget_class(forgotten)
    for text in ("win a prize", "lunch", ""):
        assert math.fsum(model.explain_ngrams_one(text).values()) == pytest.approx(model.decision_function_one(text))


@pytest.mark.parametrize("labels", [["ham", "spam"], ["a", "b", "c"], [1, 2, 3]])
@given(data=st.data())
def test_an_explanation_names_the_words_that_the_page_colours(labels, data):
    """Each word once, as the text has it, with what the page and the command say that it adds."""
    known = ["Free", "prize", "now", "!", "lunch", "800", "ein", "Käse", "好", "don't", "cats", "cat"]
    texts = data.draw(st.lists(st.lists(st.sampled_from(known), min_size=1, unique=True).map(" ".join), min_size=3))
    model = TextClassifier(classifier=OrdinalClassifier() if labels[0] == 1 else None)
    model.learn_many(texts, [labels[i % len(labels)] for i in range(len(texts))])
    text = texts[0]
    found = explained(model, text)
    label = found["explained"] if len(labels) == 2 else None  # of two the page explains the predicted one
    words = model.explain_one(text, label)
    ((_, parts),) = found["pieces"]
    of_page = {piece: value for piece, value in parts if value}
    own = {word: value for word, value in words.items() if word != "(intercept)" and not word[0].isdigit()}
    assert own == pytest.approx({piece: value for piece, value in of_page.items() if not piece[0].isdigit()})
    assert set(own) <= {*text.split(), *text.replace("'", " ").split(), *text}
    assert [*map(abs, words.values())] == sorted(map(abs, words.values()), reverse=True)
    assert math.fsum(words.values()) == pytest.approx(found["margin"])
    assert [*model.explain_one(text, label, limit=2)] == [*words][:2]


def test_an_explanation_of_fields_names_the_field_before_each_word():
    model = TextClassifier(TextFeatures(on="subject") + TextFeatures(on="body") + Category(on="sender"))
    for i in range(9):
        model.learn_one({"subject": "free", "body": "See (sentence)", "sender": "shop"}, ["spam", "ham"][i % 3 == 0])
        model.learn_one({"subject": "lunch", "body": "see you", "sender": "ann"}, ["ham", "spam"][i % 3 == 0])
    words = model.explain_one({"subject": "Free", "body": "See you", "sender": "shop"})
    assert {"subject: Free", "body: See", "body: you", "sender=shop"} <= set(words)
    assert not any("<s>" in word or "…" in word or word.endswith(" ") for word in words)
    for wrong in (0, -1, "two"):
        with pytest.raises((TypeError, ValueError), match=r"limit (is|must be)"):
            model.explain_one({"subject": "free"}, limit=wrong)


def test_the_vector_of_a_sentence_is_no_word():
    model = TextClassifier(TextFeatures(vectors=lambda texts: [[text.count("?"), len(text) / 9] for text in texts]))
    model.learn_many(["when?", "now!", "where?"] * 3, ["question", "order", "question"] * 3)
    names = {"(sentence)", "?"}
    assert names <= set(model.explain_one("why?")) and "sentence" not in model.explain_one("why?")
    assert "(sentence)" in {name for name, _ in explained(model, "why?")["contributions"]}
