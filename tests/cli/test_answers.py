"""Answers in the formats of `--output-format`: joined to their messages, read back, and scored."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from commands import (
    append,
    environment,
    figures,
    labels_of,
    line_of,
    reference_of,
    run_at_terminal,
    stream,
    write_jsonl,
)
from commands import command as program
from sklearn.metrics import accuracy_score, f1_score, log_loss, mean_absolute_error, roc_auc_score

from stream_pegasos import MultiLabelClassifier, TextClassifier, load

COLUMNS = ["id", "label", "probability", "probabilities", "margin", "error"]
FILES = ("a.tsv", "a.csv", "a.jsonl")
BAD = {3: b"no JSON\n", 7: b'{"id": "seven", "text": 7}\n', 12: b'{"text": "\xff"\n'}


def rows_of(path):
    """The records of a file of answers, by the readers that its formats have; what is no text is JSON."""
    with open(path, encoding="utf-8", newline="") as file:
        if path.endswith(".jsonl"):
            return [json.loads(line) for line in file]
        rows = [{k: v or None for k, v in row.items()} for row in csv.DictReader(file, delimiter=",\t"["tsv" in path])]
    for row in rows:
        row |= {name: json.loads(row[name]) for name in COLUMNS[2:5] if row.get(name)}
    return rows


@pytest.fixture
def mixed(ok):
    """A model, and a file of 20 messages of which some cannot be read."""
    reference_of(stream[:300]).save("m")
    lines = [json.dumps({"id": i, "text": text}).encode() + b"\n" for i, (text, _) in enumerate(stream[300:320])]
    Path("mixed.jsonl").write_bytes(b"".join(BAD.get(i, line) for i, line in enumerate(lines)) + b"\n")
    return load("m")


def test_answers_are_the_same_bytes_in_any_locale(here):
    """A terminal shows what its encoding has."""
    Path("t.txt").write_text("früher Zug\n", encoding="utf-8")
    reference_of([("früher", "späm 😀")]).save("m")
    ascii = {**environment, "LC_ALL": "C", "PYTHONUTF8": "0"}
    piped, shown = run_at_terminal([*program, "predict", "m", "t.txt"], "stderr", ascii)
    assert (piped.stdout.decode().split("\t")[0], shown) == ("späm 😀", b"")
    _, shown = run_at_terminal([*program, "predict", "m", "t.txt"], "stdout", ascii)
    assert shown.startswith(rb"sp\xe4m \U0001f600")


@pytest.mark.parametrize("command", ["predict m mixed.jsonl", "run m mixed.jsonl --no-follow"])
def test_line_n_answers_record_n(main, ok, mixed, command):
    code, out, err = main(command)
    assert code == 0 and err.count(" skipped: ") == 3
    texts = [text for text, _ in stream[300:320]]
    for i, (line, text) in enumerate(zip(out.splitlines(), texts, strict=True)):
        label, probability = mixed.predict_one(text), mixed.predict_proba_one(text)
        assert line == ("\t" if i in BAD else f"{label}\t{probability[label]:.6f}")
    for name in FILES:
        assert ok(command, "--output", name) == ""
        for i, (row, text) in enumerate(zip(rows_of(name), texts, strict=True)):
            label, probabilities = mixed.predict_one(text), mixed.predict_proba_one(text)
            said = [i if name == "a.jsonl" else str(i), label, probabilities[label], probabilities]
            if i in BAD:
                assert row.pop("error")
                assert [*row.values()] == ["seven" if i == 7 else None, *[None] * 4]
            else:
                assert row == dict(zip(COLUMNS, [*said, mixed.decision_function_one(text), None], strict=True))
    assert ok(command, "--output-format", "csv") == Path("a.csv").read_text(encoding="utf-8")
    assert ok(command, "--limit", 4).count("\n") == 5  # of those that could be read


def test_labels_of_any_kind_come_back(ok):
    """Tabs, commas, quotes, line breaks, lone surrogates; ints and bools stay what they are in JSON."""
    labels = ["a\tb", 'quo"te', "new\nline", "re\rturn", "\r\n", "a,b", "中文", "\ud800", "", " pad ", "NA", -7, True]
    texts = [chr(97 + i) * 3 for i in range(len(labels))]
    model = TextClassifier()
    model.learn_many(texts * 5, labels * 5)
    model.save("m")
    write_jsonl("t.jsonl", [(text, "any") for text in texts])
    written = [label if isinstance(label, str) else json.dumps(label) for label in labels]
    written = [label.replace("\ud800", "\\ud800") or None for label in written]
    for name in FILES:
        ok("predict m t.jsonl --output", name)
        told, expected = [row["label"] for row in rows_of(name)], labels if name == "a.jsonl" else written
        assert [*zip(told, map(type, told), strict=True)] == [*zip(expected, map(type, expected), strict=True)]
        for row, text in zip(rows_of(name), texts, strict=True):
            scores = sorted(model.decision_function_one(text).values())
            assert row["margin"] == pytest.approx(scores[-1] - scores[-2], abs=1e-12)


def test_labels_that_hold_together_are_a_list(ok):
    model = TextClassifier(classifier=MultiLabelClassifier())
    model.learn_many(["oil up", "gas, up", "tea"] * 30, [("oil, crude", "up"), ("gas", "up"), ()] * 30)
    model.save("m")
    Path("t.txt").write_text("oil up\ntea\n", encoding="utf-8")
    each = {label: p[True] for label, p in model.predict_proba_one("oil up").items()}
    for name in FILES:
        ok("predict m t.txt --output", name)
        first, second = rows_of(name)
        read = (lambda value: value) if name == "a.jsonl" else json.loads
        assert [read(first["label"]), read(second["label"])] == [["oil, crude", "up"], []]
        assert first["margin"] == [model.decision_function_one("oil up")[label] for label in ("oil, crude", "up")]
        assert first["probabilities"] == each and first["probability"] == [each["oil, crude"], each["up"]]


def test_an_untaught_model_answers_without_a_label(ok):
    TextClassifier().save("new")
    assert ok("predict new mail.jsonl --limit 2") == "\t0.500000\n" * 2
    out = ok("predict new mail.jsonl --limit 1 --output-format jsonl")
    assert json.loads(out) == {**dict.fromkeys(COLUMNS), "probabilities": {}}
    Path("empty.jsonl").touch()
    ok("predict new empty.jsonl --output e.csv")
    assert Path("e.csv").read_text(encoding="utf-8") == ",".join(COLUMNS) + "\n"


def test_a_start_that_fails_leaves_the_old_file(main, mixed):
    Path("old.csv").write_text("old", encoding="utf-8")
    for command in (
        "predict m mail.jsonl --text-field body --output old.csv",
        "predict missing mail.jsonl --output old.csv",
        "predict m missing.jsonl --output old.csv",
        "run m mail.xyz --output old.csv",
        "evaluate mail.jsonl --label-field class --output old.csv",
        "test m mail.jsonl --label-field class --output old.csv",
    ):
        assert main(command)[0] == 1 and Path("old.csv").read_text(encoding="utf-8") == "old"
    for command in ("predict m mail.jsonl --output a.csv.gz", "evaluate mail.jsonl --output a.txt"):
        assert main(command)[0] == 2
    assert main("predict m mail.jsonl --output /dev/full")[2].endswith("write /dev/full: No space left on device\n")


def test_a_run_that_goes_on_appends_its_answers(here, main, ok):
    command = "run mail.jsonl --no-follow --checkpoint live --output a.csv"
    write_jsonl("mail.jsonl", stream[:200])
    ok(command)
    with open("a.csv", "a", encoding="utf-8") as file:
        file.write('7,spam,1.0,,,since the checkpoint\n8,spam,1.0,,,"a cell of\nsome lines')  # as a kill leaves it
    append("mail.jsonl", stream[200:230])
    assert ok(command) == ""
    whole = Path("a.csv").read_text(encoding="utf-8")
    write_jsonl("mail.jsonl", stream[:230])
    ok("run mail.jsonl --no-follow --output b.csv")
    assert whole == Path("b.csv").read_text(encoding="utf-8") and whole.count("\n") == 231
    os.truncate("a.csv", 1_000)
    code, _, err = main(command)
    missing = len(whole) - os.path.getsize("a.csv")
    assert code == 0 and f"a.csv is shorter than it was: {missing:,} bytes of answers are missing" in err


@pytest.mark.parametrize("delay", [0, 7])
def test_evaluate_writes_what_was_predicted_before_learning(ok, here, delay):
    lines = Path("mail.jsonl").read_bytes().splitlines(True)
    lines[100:100] = [b"no JSON\n", line_of("no label"), line_of("eggs", "eggs")]
    (here / "bad.jsonl").write_bytes(b"".join(lines))
    out = ok("evaluate bad.jsonl --labels ham,spam --output p.csv --delay", delay)
    rows = rows_of("p.csv")
    assert [*rows[0]] == [*COLUMNS, "truth"]
    errors = [row["error"] for row in rows[100:103]]
    assert "not JSON" in errors[0] and "no field 'label'" in errors[1] and "must be one of ham, spam" in errors[2]
    del rows[100:103]
    assert [row["truth"] for row in rows] == [label for _, label in stream]
    n_unanswered = sum(row["label"] is None for row in rows)
    assert n_unanswered == delay + 1 and (delay == 0 or f"; {delay + 1} came before any label" in out)
    answered = [row for row in rows if row["label"] is not None]
    assert figures(out)["accuracy"] == round(np.mean([row["label"] == row["truth"] for row in answered]), 4)
    # A label that was not known then counts as a half.
    of_truth = [row["probabilities"].get(row["truth"], 0.5) for row in answered]
    assert figures(out)["log_loss"] == round(-np.mean(np.log(of_truth)), 4)


EGGS = [("omelette", "eggs")] * 20
STARS = [(f"{'good ' * (i % 5)}word{i}", i % 5 + 1) for i in range(300)]
TOPICS = [(f"word{i % 3} word{i % 5}", [f"t{i % 3}"] * (i % 3 > 0) + [f"u{i % 5}"] * (i % 5 > 2)) for i in range(300)]


@pytest.mark.parametrize(
    ("learned", "held_out", "options", "measure", "expected"),
    [
        (stream[:100], stream[100:], "", "accuracy", accuracy_score),
        (stream[:100], stream[100:], "", "f1 of spam", lambda y, z: f1_score(y, z, pos_label="spam")),
        (stream[:200], stream[200:300] + EGGS, "", "accuracy", accuracy_score),
        (
            *(stream[:200], stream[200:300] + EGGS, "", "macro_f1"),
            lambda y, z: f1_score(y, z, average="macro", zero_division=0),
        ),
        (stream[:100] + EGGS, stream, "", "accuracy", accuracy_score),
        (STARS, STARS, """--ordered --features '{"binary": false}'""", "mean_absolute_error", mean_absolute_error),
        (TOPICS, TOPICS, "--multi-label", "exact_matches", lambda y, z: np.mean([*map(_same, y, z)])),
    ],
)
def test_a_held_out_file_with_the_figures_of_scikit_learn(ok, learned, held_out, options, measure, expected):
    write_jsonl("learned.jsonl", learned)
    write_jsonl("held.jsonl", held_out)
    ok(f"train learned.jsonl --save m {options}")
    before, model = Path("m").read_bytes(), load("m")
    out = ok("test m held.jsonl --output p.jsonl --plot c.csv")
    rows = rows_of("p.jsonl")
    truths, predicted = [row["truth"] for row in rows], [row["label"] for row in rows]
    assert truths == [label for _, label in held_out] and Path("m").read_bytes() == before
    assert [*map(_sorted, predicted)] == [*map(_sorted, model.predictions([text for text, _ in held_out]).labels)]
    assert figures(out)[measure] == round(expected(truths, predicted), 4)
    if measure != "exact_matches" and {*truths} <= {*model.classes}:
        p = [[row["probabilities"][str(label)] for label in sorted(model.classes)] for row in rows]
        assert figures(out)["log_loss"] == round(log_loss(truths, p, labels=sorted(model.classes)), 4)
    if measure == "f1 of spam":
        margins = [row["margin"] for row in rows]
        assert figures(out)["roc_auc"] == round(roc_auc_score([y == "spam" for y in truths], margins), 4)


def _sorted(label):
    return sorted(label) if isinstance(label, (list, tuple)) else label


def _same(labels, others):
    return {*labels} == {*others}


def test_the_decision_is_changed_where_a_model_is_used(ok, fails):
    write_jsonl("rest.jsonl", stream[400:])
    ok("train mail.jsonl --save m --limit 400 --pos-label spam --max-false-positive-rate 0.5")
    X = [text for text, _ in stream[400:]]
    for options, change in (
        ("--threshold 0.95", {"threshold": 0.95}),
        (
            "--decide-for macro_f1 --max-false-positive-rate 1",
            {"decide_for": "macro_f1", "max_false_positive_rate": 1.0},
        ),
        ("--max-false-positive-rate 0.02", {"max_false_positive_rate": 0.02}),
        ("--threshold 0.2 --pos-label spam", {"threshold": 0.2, "pos_label": "spam"}),
    ):
        model = load("m")
        model.set_decision(**change)
        expected = model.predict_many(X).tolist()
        assert labels_of(ok(f"predict m rest.jsonl {options}")) == expected
        ok(f"test m rest.jsonl {options} --output p.tsv")
        assert [row["label"] for row in rows_of("p.tsv")] == expected
    reference_of(stream).save("plain")
    for options, reason in (
        ("--max-false-positive-rate 1e-5 --pos-label spam", "needs 5,000 negative examples to choose a cut"),
        ("--threshold 0.9", "pos_label"),
        ("--threshold 2 --pos-label spam", "threshold"),
        (
            "--threshold 0.9 --pos-label ham --decide-for macro_f1",
            "threshold must be left out",
        ),
        ("--threshold 0.9 --pos-label eggs", "unknown label 'eggs'"),
    ):
        assert reason in fails(f"predict plain rest.jsonl {options}")


@pytest.mark.parametrize(
    "command",
    [
        "predict m t.jsonl --output a.csv",
        "test m t.jsonl --output a.csv",
        "evaluate t.jsonl --output a.csv",
        "run m t.jsonl --no-follow --append --output a.csv",
    ],
)
def test_any_field_is_the_id(main, mixed, command):
    rows = [{"text": "win", "label": "spam", "mail": {"no": id}} for id in ("a", "7", "a,b")]
    Path("t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, _, err = main(command, "--id-field", "mail.no")
    assert (code, err) == (0, "") and [row["id"] for row in rows_of("a.csv")] == ["a", "7", "a,b"]
    code, _, err = main(command)
    assert code == 0 and err == "stream-pegasos: no message had an id; --id-field names the field that has it\n"


def test_labels_that_read_alike_have_probabilities_of_their_own(ok):
    model = TextClassifier()
    model.learn_many(["win", "see you", "tea"] * 5, [True, "true", '"true"'] * 5)
    model.save("m")
    Path("t.jsonl").write_text('{"text": "win"}\n', encoding="utf-8")
    expected = {label: model.predict_proba_one("win")[label] for label in (True, "true", '"true"')}
    for name in FILES:
        ok("predict m t.jsonl --output", name)
        found = rows_of(name)[0]["probabilities"]
        assert found.pop("false", 0.0) < 0.1  # which comes with its opposite
        assert found == dict(zip(["true", '"true"', r'"\"true\""'], expected.values(), strict=True))


def test_an_unknown_format_of_answers(fails):
    reference_of(stream).save("m")
    assert "xml" in fails("predict m mail.jsonl --output-format xml", code=2)
