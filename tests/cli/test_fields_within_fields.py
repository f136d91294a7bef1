"""A field within a field is read the same by the command, the service, in dicts, frames and by scikit-learn."""

import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import labels_of, process
from serving import learn, predict, serving

from stream_pegasos import Category, HashedBagOfWords, MailFeatures, Number, TextClassifier, TextFeatures, Time, load
from stream_pegasos.features.message import is_nothing
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.sklearn import OnlineTextClassifier

ROWS = [({"text": "see this", "from": {"name": "ann"}}, "ham"), ({"text": "see this", "from": {"name": "bob"}}, "spam")]
NESTED, LABELS = [x for x, _ in ROWS] * 10, [label for _, label in ROWS] * 10
FLAT = [{"text": x["text"], "from.name": x["from"]["name"]} for x in NESTED]


def features():
    return TextFeatures(on="text") + Category(on="from.name")


def test_a_model_of_the_command_answers_the_same_everywhere(ok, here):
    lines = [json.dumps({**x, "label": label}) for x, label in zip(NESTED, LABELS, strict=True)]
    Path("m.jsonl").write_text("\n".join(lines), encoding="utf-8")
    ok("train m.jsonl --fields from.name:category --save m")
    model = load("m")
    expected = model.predict_proba_one(FLAT[0])
    assert expected["ham"] > 0.6
    frames = [pd.DataFrame(NESTED), pd.DataFrame(FLAT)]
    if find_spec("polars"):
        frames.append(import_module("polars").DataFrame(NESTED))
    for some in (NESTED, FLAT, *frames):
        found = model.predictions(some)
        assert found.labels.tolist() == LABELS
        assert dict(zip(found.classes, found.probabilities[0].tolist(), strict=True)) == pytest.approx(expected)
    assert model.predict_proba_one(NESTED[0]) == expected
    assert labels_of(ok("predict m m.jsonl")) == LABELS
    with serving(LiveLearner(model)) as client:
        assert [answer["label"] for answer in predict(client, NESTED[:2])] == LABELS[:2]
        assert predict(client, NESTED[:2]) == predict(client, FLAT[:2])
        learn(client, {**NESTED[0], "label": "ham"})


def test_scikit_learn_reads_it_too():
    model = OnlineTextClassifier(features=features()).fit(NESTED, LABELS)
    assert model.predict(NESTED).tolist() == model.predict(FLAT).tolist() == LABELS
    assert model.predict(pd.DataFrame(NESTED)).tolist() == LABELS


@pytest.mark.parametrize("made", [TextFeatures, HashedBagOfWords, Category, MailFeatures])
def test_every_kind_of_features(made):
    inner, outer = made(on="a.b.c"), {"a": {"b": {"c": "word one"}}}
    assert inner.transform_one(outer) == inner.transform_one({"a.b.c": "word one"}) != {}
    assert inner.transform_one({**outer, "a.b.c": "other"}) == inner.transform_one({"a.b.c": "other"})


MISSING = [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "ns"), np.float32("nan")]


@pytest.mark.parametrize("value", MISSING, ids=repr)
@pytest.mark.parametrize("kind", [TextFeatures, Category, Number, Time, MailFeatures])
def test_a_missing_value_is_the_same_in_a_dict_as_in_a_frame(kind, value):
    made = TextFeatures(on="text") + kind(on="x")
    without = made.transform_one({"text": "a b"})
    assert made.transform_one({"text": "a b", "x": value}) == without
    frame = pd.DataFrame({"text": ["a b"], "x": pd.Series([value], dtype=object)})
    assert made.transform_many(frame).nnz == made.transform_many([{"text": "a b", "x": value}]).nnz == len(without)


def test_what_is_no_missing_value():
    assert not any(map(is_nothing, ["", "nan", 0, False, [], [None], {}, np.array([np.nan, 1.0]), "NaT"]))
    assert Category(on="x").tokens({"x": ["a", float("nan"), None, pd.NA]}) == ["x=a"]


def test_a_field_that_is_nested_too_deep_is_passed_over_everywhere(main, here):
    lines = [json.dumps({"text": "a", "sender": "x", "label": "ham"}), json.dumps({"text": "b", "label": "spam"})]
    deep = [
        '{"text": "c", "label": "ham", "sender": ' + a * n + "1" + b * n + "}"
        for a, b in (('{"a": ', "}"), "[]")
        for n in (50, 51, 970, 985)
    ]
    Path("m.jsonl").write_text("\n".join([*lines, *deep, *lines]), encoding="utf-8")
    told = "values must be nested at most 50 deep"
    code, out, err = main("train m.jsonl --fields sender:category --save m")
    assert code == 0 and "learned 6 messages" in out + err and err.count(told) == 6
    for command in ("predict m m.jsonl", "test m m.jsonl", "run m m.jsonl --no-follow"):
        code, out, err = main(command)
        assert code == 0 and told in err
    model = load("m")
    with pytest.raises(ValueError, match="field 'sender': values must be nested at most 50 deep"):
        model.learn_one({"text": "c", "sender": json.loads("[" * 90 + "]" * 90)}, "ham")
    assert model.n_learned == 6


def test_a_field_that_no_message_has_is_told_once(here):
    def told_by(command):
        done = process(*command.split())  # in this one pytest makes errors of warnings
        assert done.returncode == 0
        return done.stderr.decode()

    lines = [json.dumps({**x, "label": label}) for x, label in zip(NESTED, LABELS, strict=True)]
    Path("m.jsonl").write_text("\n".join(lines * 100), encoding="utf-8")
    told = "stream-pegasos: none of 500 messages has the field from.address, which the model reads\n"
    assert told_by("train m.jsonl --fields from.address:category,from.name:category --save m").startswith(told)
    for command in ("predict m m.jsonl", "test m m.jsonl", "run m m.jsonl --no-follow --output none"):
        assert told_by(command) == told
    Path("few.csv").write_text("text,label\n" + "a,ham\nb,spam\n" * 5, encoding="utf-8")
    told = "stream-pegasos: none of 10 messages has the fields from.address, from.name, which the model reads\n"
    assert told_by("test m few.csv") == told


def as_they_are(model, messages):
    for x in messages:
        model.predict_one(x)


@pytest.mark.parametrize(
    "met",
    [
        as_they_are,
        TextClassifier.predict_many,
        lambda model, messages: model.predict_many(iter(messages)),
        lambda model, messages: model.learn_many(pd.DataFrame(messages), ["a", "b"] * 300),
        lambda model, messages: model.predict_many(pd.json_normalize(messages)),
        lambda model, messages: learn_by_service(model, messages),
    ],
    ids=["one", "many", "iterator", "frame", "flat frame", "service"],
)
def test_python_and_the_service_tell_of_it_once(met):
    model, messages = TextClassifier(features() + Category(on="from.address")), [*NESTED, *NESTED, *NESTED] * 10
    with pytest.warns(UserWarning, match=r"^none of 500 messages has the field from.address, which") as told:
        met(model, messages)
        met(model, messages)
    assert len(told) == 1
    model = TextClassifier(features())
    met(model, messages)  # no warning: that would be an error here


def learn_by_service(model, messages):
    with serving(LiveLearner(model)) as client:
        for begin in range(0, len(messages), 100):
            learn(client, [{**x, "label": "ham"} for x in messages[begin : begin + 100]])


@pytest.mark.parametrize("missing", [float("nan"), np.nan, pd.NA])
@pytest.mark.parametrize("others", [["a", "b"], [1, 2], [True, False]])
def test_a_label_that_is_missing_is_an_error_for_scikit_learn(missing, others):
    for y in ([*others, missing], (missing, *others), pd.Series([*others, missing], dtype=object)):
        with pytest.raises(ValueError, match="missing"):
            OnlineTextClassifier().fit(["a", "b", "c"], y)
        with pytest.raises(ValueError, match="missing"):
            OnlineTextClassifier().partial_fit(["a", "b"], others, classes=y)


def test_integers_that_span_more_than_63_bits():
    for low, high in ((-(2**62) - 5, 2**62), (-(2**63), 2**63 - 1)):
        model, alike = TextClassifier(), TextClassifier()
        model.learn_many(["a", "b"], np.array([low, high]))
        alike.learn_many(["a", "b"], [low, high])
        assert model.classes == alike.classes and low in model.classes and high in model.classes
