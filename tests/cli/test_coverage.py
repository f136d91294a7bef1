"""Sets of labels of the command."""

import csv
import json

import pytest

from stream_pegasos import AdaptiveClassifier, TextClassifier, load
from stream_pegasos.streams import synthetic


@pytest.fixture(autouse=True)
def stream(here):
    examples = [*synthetic(n=600, seed=1)]
    with open("mail.jsonl", "w", encoding="utf-8") as file:
        for number, (text, label) in enumerate(examples):
            file.write(json.dumps({"id": number, "text": text, "label": label}) + "\n")
    return examples


def sets_of(examples, coverage):
    model = TextClassifier(classifier=AdaptiveClassifier(coverage=coverage))
    return model, model.predict_learn_many(*map(list, zip(*examples, strict=True))).sets


def test_evaluate_and_run_write_the_sets_of_each_message(ok, stream):
    model, sets = sets_of(stream, 0.99)
    out = ok("evaluate mail.jsonl --coverage 0.99 --save m --output said.csv --plot c.csv")
    with open("said.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["set"]) for row in rows] == sets
    assert load("m").trainer.policy.conformal == model.trainer.policy.conformal
    shown = {
        line.split()[0]: line.split()[-1] for line in out.splitlines() if line.startswith(("coverage ", "set", "sets"))
    }
    held = [label in members for (_, label), members in zip(stream[1:], sets[1:], strict=True)]
    assert shown["coverage"] == f"{sum(held) / len(held):.4f}"
    assert shown["sets_of_one"] == f"{sum(len(members) == 1 for members in sets[1:]) / len(held):.4f}"
    with open("c.csv", newline="", encoding="utf-8") as file:
        assert float([*csv.DictReader(file)][-1]["coverage"]) == pytest.approx(sum(held) / len(held), abs=1e-5)
    ok("run mail.jsonl --coverage 0.99 --no-follow --output live.jsonl --save live")
    with open("live.jsonl", encoding="utf-8") as file:
        assert [json.loads(line)["set"] for line in file] == sets
    assert load("live").trainer.policy.conformal == model.trainer.policy.conformal


def test_predict_and_explain_say_the_set(ok, stream):
    ok("train mail.jsonl --coverage 0.9 --save m")
    texts = [text for text, _ in stream]
    model = load("m")
    lines = ok("predict m mail.jsonl --output-format jsonl").splitlines()
    assert [json.loads(line)["set"] for line in lines] == model.predictions(texts).sets
    model.set_decision(coverage=0.99)
    lines = ok("predict m mail.jsonl --output-format jsonl --coverage 0.99").splitlines()
    assert [json.loads(line)["set"] for line in lines] == model.predictions(texts).sets
    assert "set" not in json.loads(ok("predict m mail.jsonl --output-format jsonl --coverage 0").splitlines()[0])
    text = texts[0]
    members = ", ".join(load("m").predict_set_one(text))
    assert f"with a coverage of 0.9 it is one of {members}" in ok("explain m --text", text).splitlines()[0]


def test_a_coverage_that_cannot_be_is_refused(fails):
    assert "coverage" in fails("run - --coverage 1.5", code=2)
