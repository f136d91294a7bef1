"""`evaluate --compare`: a saved model and a new one on the same stream."""

import json
from pathlib import Path

import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import Category, MultiLabelClassifier, TextClassifier, TextFeatures, load, prequential


def test_a_saved_model_beside_a_new_one(ok, here):
    reference_of(stream[:300]).save("m")
    printed = ok("evaluate mail.jsonl --compare m --save new --plot two.png")
    ok("evaluate mail.jsonl --compare m --plot curve.csv")
    compared = prequential(stream, {"this model": TextClassifier(), "m": load("m")})
    assert printed.split("\n\n")[1:] == [*str(compared).split("\n\n")[1:-1], str(compared).split("\n\n")[-1] + "\n"]
    assert printed.startswith("mail.jsonl: 600 messages in ") and "0 bad lines" in printed
    assert load("new").n_learned == 600 and load("m").n_learned == 300
    assert (here / "two.png").stat().st_size > 1_000 and len(
        (here / "curve.csv").read_text(encoding="utf-8").splitlines()
    ) > 5


def test_what_is_no_model(fails):
    assert "must be a model" in fails("evaluate mail.jsonl --compare mail.jsonl")


def test_predictions_are_those_of_the_new_model_alone(ok, here):
    reference_of(stream[:300]).save("m")
    ok("evaluate mail.jsonl --delay 10 --output alone.jsonl")
    ok("evaluate mail.jsonl --delay 10 --output compared.jsonl --compare m")
    assert (
        (here / "compared.jsonl").read_text(encoding="utf-8")
        == (here / "alone.jsonl").read_text(encoding="utf-8")
        != ""
    )


WRITTEN = [["false", "true"], [False, True], ["0", "1"], [0, 1], ["no", "yes"]]


@pytest.mark.parametrize("known", WRITTEN[:4])
def test_labels_are_those_that_the_compared_model_knows(ok, known):
    """However the stream writes them, as for `test`."""
    numbers = {"ham": 0, "spam": 1}
    reference_of([(text, known[numbers[label]]) for text, label in stream[:300]]).save("m")
    models = {"this model": TextClassifier(), "m": load("m")}
    expected = str(prequential([(text, known[numbers[label]]) for text, label in stream[300:]], models))
    for labels in WRITTEN[:4]:
        write_jsonl("new.jsonl", [(text, labels[numbers[label]]) for text, label in stream[300:]])
        printed = ok("evaluate new.jsonl --compare m --save new").rstrip("\n")
        assert printed.split("\n\n")[1:] == expected.split("\n\n")[1:]
        assert [*map(repr, sorted(load("new").classes))] == [*map(repr, known)]


def test_models_that_write_labels_differently_are_not_compared(ok, fails):
    for i, labels in enumerate(WRITTEN):
        reference_of([("a", labels[0]), ("b", labels[1])]).save(f"m{i}")
    for i, labels in enumerate(WRITTEN[:4]):
        for j, others in enumerate(WRITTEN[:4]):
            command = f"evaluate mail.jsonl --compare m{i} --compare m4 --compare m{j}"
            if labels == others:  # True is 1
                ok(command)
            else:
                same = f"the label {labels[0]!r} of one is {others[0]!r} of the other"
                assert f"m{i} and m{j} cannot be compared: {same}" in fails(command)


KINDS = {
    "text": (lambda: TextClassifier(), ""),
    "several": (lambda: TextClassifier(classifier=MultiLabelClassifier()), "--multi-label"),
    "a": (lambda: TextClassifier(TextFeatures(on="a") + Category(on="b")), "--text-field a --fields b:category"),
    "b": (lambda: TextClassifier(TextFeatures(on="a") + TextFeatures(on="c")), "--text-field a,c"),
}


def test_a_model_that_does_not_take_the_messages_is_refused(main, fails):
    """Before the work begins, with its name and the way out."""
    records = [{"text": text, "label": label, "a": text, "b": "x", "c": "y"} for text, label in stream[:50]]
    Path("mail.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    for name, (kind, _) in KINDS.items():
        kind().save(name)
        for other, (_, options) in KINDS.items():
            command = f"evaluate mail.jsonl {options} --compare {name}"
            if other == name:
                code, out, err = main(command)
                assert code == 0 and "skipped" not in err and f"  {name}\n" in out
            else:
                err = fails(command)
                assert name in err.split() and ("--" in err or "; compare " in err) and "skipped" not in err
    assert "several takes several labels a message, and the new model one label; see --multi-label" in fails(
        "evaluate mail.jsonl --compare several"
    )
