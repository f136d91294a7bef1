"""What labels mean: each text is learned twice, as a message would be."""

import pickle

import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    Category,
    MailFeatures,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    load,
)

DESCRIPTIONS = {"lost_card": None, "refund": ["money back", "Refund, please"], 3: "three"}
TEXTS = [("lost card", "lost_card"), ("money back", "refund"), ("Refund, please", "refund"), ("three", 3)]


def state(model):
    return pickle.dumps(model.to_state())


@pytest.mark.parametrize("make", [TextClassifier, lambda: TextClassifier(classifier=PegasosClassifier(batch_size=3))])
def test_each_text_is_learned_twice(make):
    described, taught = make(), make()
    described.describe(DESCRIPTIONS)
    for text, label in TEXTS * 2:
        taught.learn_one(text, label)
    assert state(described) == state(taught)
    assert set(described.classes) == {"lost_card", "refund", 3}


def test_of_several_labels_a_text_has_one_and_counts_little():
    described, taught = (TextClassifier(classifier=MultiLabelClassifier()) for _ in range(2))
    described.describe(DESCRIPTIONS)
    taught.learn_many(*zip(*[(text, [label]) for text, label in TEXTS], strict=True), w=0.1)
    assert state(described) == state(taught)


def test_of_ordered_classes():
    model = TextClassifier(classifier=OrdinalClassifier())
    model.describe({1: "very bad", 3: "fair", 5: "excellent"})
    assert [model.predict_one(text) for text in ("very bad", "excellent")] == [1, 5]
    with pytest.raises(TypeError, match="an ordered label must be an integer"):
        model.describe({"good": None})
    assert model.n_learned == 6


@pytest.mark.parametrize(
    "features, message",
    [
        (TextFeatures(on="body"), {"body": "money back"}),
        (Category(on="sender") + TextFeatures(on="body") + TextFeatures(on="subject"), {"body": "money back"}),
        (MailFeatures(), "Content-Type: text/plain; charset=utf-8\n\nmoney back"),
        (
            Category(on="sender") + MailFeatures(on="mail"),
            {"mail": "Content-Type: text/plain; charset=utf-8\n\nmoney back"},
        ),
    ],
)
def test_a_text_stands_for_the_first_field_of_text(features, message):
    described, taught = (TextClassifier(features) for _ in range(2))
    described.describe({"refund": "money back", "card": "é"})
    taught.learn_many([message, features.make_message("é")] * 2, ["refund", "card"] * 2)
    assert state(described) == state(taught)


def test_names_that_say_nothing_are_left_out():
    model, names = TextClassifier(), dict.fromkeys([0, "7", "class_1", "Class-22", "-", "lost", True])
    with pytest.warns(UserWarning, match="left out: 0, 7, class_1, Class-22, -, True$"):
        model.describe(names)
    model.describe({"found": "I found it"})
    assert set(model.classes) == {"lost", "found"}


def test_it_is_saved_and_forgotten_as_lessons_are(tmp_path):
    model = TextClassifier(classifier=AdaptiveClassifier(half_life=10))
    model.describe(DESCRIPTIONS)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict_one("money back") == "refund"
    before = model.predict_proba_one("money back")["refund"]
    model.learn_many(["money back", "noon"] * 60, ["lost_card", "refund"] * 60)
    assert model.predict_proba_one("money back")["refund"] < before


@pytest.mark.parametrize(
    "descriptions, error, match",
    [
        ("refund", TypeError, "a mapping of labels"),
        ({"refund": 3}, TypeError, "'refund' must be a text, got 3"),
        ({"refund": ["x", b"y"]}, TypeError, "b'y'"),
        ({"refund": " "}, ValueError, "'refund' is blank"),
        ({"refund": []}, ValueError, "'refund' is blank"),
        ({"good": "x", None: "y"}, TypeError, "label"),
        ({"good": "x", 0.5: "y"}, ValueError, "got 0.5"),
    ],
)
def test_what_is_no_description(descriptions, error, match):
    model = TextClassifier()
    with pytest.raises(error, match=match):
        model.describe(descriptions)
    assert state(model) == state(TextClassifier())
    with pytest.raises(TypeError, match="messages have no text"):
        TextClassifier(Category(on="a") + Category(on="b")).describe({"good": "x"})
