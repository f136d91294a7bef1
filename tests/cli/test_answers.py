"""Answers in the formats of `--output-format`: joined to their messages, read back, and scored."""

import csv
import json
import os

import numpy as np
import pytest
from commands import error_line, line_of, metrics, process, stream, write_jsonl
from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier, load

csv.field_size_limit(1 << 30)
COLUMNS = ["id", "label", "probability", "probabilities", "margin", "error"]
BAD = {3: b"no JSON\n", 7: b'{"id": "seven", "text": 7}\n', 12: b'{"text": "\xff"\n'}


def rows_of(path):
    """The records of a file of answers, by the readers that its formats have."""
    if path.endswith(".jsonl"):
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))


@pytest.fixture
def mixed(main):
    """A model, and a file of 20 messages of which some cannot be read."""
    assert main("train", "mail.jsonl", "--save", "m", "--limit", 300)[0] == 0
    lines = [json.dumps({"id": i, "text": text}).encode() + b"\n" for i, (text, _) in enumerate(stream[300:320])]
    with open("mixed.jsonl", "wb") as file:
        file.writelines(BAD.get(i, line) for i, line in enumerate(lines))
        file.write(b"\n")
    return load("m")


@pytest.mark.parametrize("command", [["predict", "m", "mixed.jsonl"], ["run", "mixed.jsonl", "--load", "m"]])
def test_line_n_answers_record_n(main, mixed, command):
    live = ["--no-follow"] * (command[0] == "run")
    code, out, err = main(*command, *live)
    assert code == 0 and err.count(" skipped: ") == 3
    for i, (line, (text, _)) in enumerate(zip(out.splitlines(), stream[300:320], strict=True)):
        label, probability = mixed.predict_one(text), mixed.predict_proba_one(text)
        assert line == ("\t" if i in BAD else f"{label}\t{probability[label]:.6f}")
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        assert main(*command, *live, "--output", name)[:2] == (0, "")
        for i, (row, (text, _)) in enumerate(zip(rows_of(name), stream[300:320], strict=True)):
            assert list(row) == COLUMNS
            row = {key: None if value == "" else value for key, value in row.items()}
            if i in BAD:
                assert row["id"] == ("seven" if i == 7 else None)
                assert row["error"] and {row[key] for key in COLUMNS[1:5]} == {None}
                continue
            assert (str(row["id"]), row["label"], row["error"]) == (str(i), mixed.predict_one(text), None)
            said = row["probabilities"] if name == "a.jsonl" else json.loads(row["probabilities"])
            assert said == mixed.predict_proba_one(text)
            assert float(row["probability"]) == said[row["label"]]
            assert float(row["margin"]) == mixed.decision_function_one(text)
    out = main(*command, *live, "--output-format", "csv")[1]
    with open("a.csv", newline="") as file:
        assert out == file.read()


def test_labels_of_any_kind_come_back(main):
    """Tabs, commas, quotes, line breaks, lone surrogates; ints and bools stay what they are in JSON."""
    labels = ["a\tb", 'quo"te', "new\nline", "re\rturn", "\r\n", "a,b", "中文", "\ud800", "", " pad ", "NA", -7, True]
    model = TextClassifier()
    texts = [chr(97 + i) * 3 for i in range(len(labels))]
    model.learn_many(texts * 5, labels * 5)
    model.save("m")
    with open("t.jsonl", "w") as file:
        file.writelines(
            json.dumps({"text": x, "id": f"{label}"}) + "\n" for x, label in zip(texts, labels, strict=True)
        )
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        assert main("predict", "m", "t.jsonl", "--output", name)[0] == 0
        rows = rows_of(name)
        told = [row["label"] for row in rows]
        if name == "a.jsonl":
            assert told == labels and [type(label) for label in told] == [type(label) for label in labels]
            assert [row["id"] for row in rows] == [*map(str, labels)]
        else:
            written = [label if isinstance(label, str) else json.dumps(label) for label in labels]
            assert told == [label.replace("\ud800", "\\ud800") for label in written]
        for row, x in zip(rows, texts, strict=True):
            scores = sorted(model.decision_function_one(x).values())
            assert float(row["margin"]) == pytest.approx(scores[-1] - scores[-2], abs=1e-12)


def test_labels_that_hold_together_are_a_list(main):
    model = MultiLabelClassifier()
    text = TextClassifier(classifier=model)
    text.learn_many(["oil up", "gas, up", "tea"] * 30, [("oil, crude", "up"), ("gas", "up"), ()] * 30)
    text.save("m")
    with open("t.txt", "w") as file:
        file.write("oil up\ntea\n")
    for name in ("a.tsv", "a.jsonl"):
        assert main("predict", "m", "t.txt", "--output", name)[0] == 0
        rows = rows_of(name)
        read = json.loads if name == "a.tsv" else lambda value: value
        assert [read(row["label"]) for row in rows] == [["oil, crude", "up"], []]
        margins = text.decision_function_one("oil up")
        assert read(rows[0]["margin"]) == [margins["oil, crude"], margins["up"]]
        each = {label: p[True] for label, p in text.predict_proba_one("oil up").items()}
        assert read(rows[0]["probabilities"]) == each
        assert read(rows[0]["probability"]) == [each["oil, crude"], each["up"]]


def test_an_untaught_model_answers_without_a_label(main):
    TextClassifier().save("new")
    assert main("predict", "new", "mail.jsonl", "--limit", 2)[1] == "\t0.500000\n" * 2
    out = main("predict", "new", "mail.jsonl", "--limit", 1, "--output-format", "jsonl")[1]
    assert json.loads(out) == {**dict.fromkeys(COLUMNS), "probabilities": {}}
    open("empty.jsonl", "w").close()
    assert main("predict", "new", "empty.jsonl", "--output", "e.csv")[0] == 0
    assert rows_of("e.csv") == [] and os.path.getsize("e.csv") == len(",".join(COLUMNS)) + 1


def test_a_start_that_fails_leaves_the_old_file(main, mixed):
    with open("old.csv", "w") as file:
        file.write("old")
    for arguments in (
        ["predict", "m", "mail.jsonl", "--text-field", "body", "--output", "old.csv"],
        ["predict", "missing", "mail.jsonl", "--output", "old.csv"],
        ["predict", "m", "missing.jsonl", "--output", "old.csv"],
        ["run", "mail.xyz", "--load", "m", "--output", "old.csv"],
        ["evaluate", "mail.jsonl", "--label-field", "class", "--predictions", "old.csv"],
        ["test", "m", "mail.jsonl", "--label-field", "class", "--predictions", "old.csv"],
    ):
        assert main(*arguments)[0] == 1
        with open("old.csv") as file:
            assert file.read() == "old"
    for arguments in (["predict", "m", "mail.jsonl"], ["run", "mail.jsonl", "--load", "m"]):
        for name in ("m", "mail.jsonl"):
            code, _, err = main(*arguments, "--output", name)
            assert code == 1 and "the command reads it" in error_line(err)
    assert main("predict", "m", "mail.jsonl", "--output", "a.csv.gz")[0] == 2
    assert main("predict", "m", "mail.jsonl", "--output-format", "xml")[0] == 2
    assert main("evaluate", "mail.jsonl", "--predictions", "a.txt")[0] == 2


def test_a_run_that_goes_on_appends_its_answers(here):
    command = ["run", "mail.jsonl", "--no-follow", "--checkpoint", "live", "--output", "a.csv"]
    write_jsonl("mail.jsonl", stream[:200])
    assert process(*command).returncode == 0
    with open("a.csv", "a") as file:
        file.write('7,spam,1.0,,,since the checkpoint\n8,spam,1.0,,,"a cell of\nsome lines')  # as a kill leaves it
    with open("mail.jsonl", "ab") as file:
        file.writelines(line_of(*example) for example in stream[200:230])
    done = process(*command)
    assert (done.returncode, done.stdout) == (0, b"")
    model, rows = TextClassifier(), rows_of("a.csv")
    assert len(rows) == 230
    for row, (text, label) in zip(rows, stream[:230], strict=True):
        expected = model.predict_one(text) if None not in model.classes else None
        assert expected is None or row["label"] == expected
        model.learn_one(text, label)


def test_answers_that_are_gone_are_told_of(here, main):
    command = ["run", "mail.jsonl", "--no-follow", "--checkpoint", "live", "--output", "a.csv"]
    assert main(*command)[0] == 0
    with open("a.csv", "r+b") as file:
        n_missing = len(file.read()) - file.truncate(1_000)
    code, _, err = main(*command)
    cut = 1_000 - os.path.getsize("a.csv")
    assert code == 0 and f"a.csv is shorter than it was: {n_missing + cut:,} bytes of answers are missing" in err


def test_evaluate_writes_what_was_predicted_before_learning(main, here):
    with open("mail.jsonl", "rb") as file:
        lines = file.readlines()
    lines[100:100] = [b"no JSON\n", line_of("no label"), line_of("eggs", "eggs")]
    (here / "bad.jsonl").write_bytes(b"".join(lines))
    for more in ([], ["--delay", 7]):
        code, out, _ = main(
            *("evaluate", "bad.jsonl", "--labels", "ham,spam", "--predictions", "p.csv", *more),
        )
        assert code == 0
        rows = rows_of("p.csv")
        assert [*rows[0]] == [*COLUMNS, "truth"]
        errors = [row["error"] for row in rows[100:103]]
        assert "not JSON" in errors[0] and "no field 'label'" in errors[1] and "none of ham, spam" in errors[2]
        del rows[100:103]
        assert [row["truth"] for row in rows] == [label for _, label in stream]
        assert metrics(out)["accuracy"] == round(np.mean([row["label"] == row["truth"] for row in rows]), 4)
        # A label that was not known then counts as a half.
        of_truth = [json.loads(row["probabilities"]).get(row["truth"], 0.5) for row in rows]
        assert metrics(out)["log loss"] == round(-np.mean(np.log(of_truth)), 4)


def of_test(main, *arguments):
    code, out, _ = main("test", *arguments, "--predictions", "p.jsonl")
    assert code == 0
    rows = rows_of("p.jsonl")
    return {
        name.rstrip(): float(value)
        for line in out.splitlines()[2:]
        if line and (name := line[:-6]) and (value := line[-6:]).strip().replace(".", "").isdigit()
    }, rows


def test_a_held_out_file_with_the_figures_of_scikit_learn(main):
    assert main("train", "mail.jsonl", "--save", "m", "--limit", 100)[0] == 0
    with open("m", "rb") as file:
        before = file.read()
    write_jsonl("rest.jsonl", stream[100:])
    figures, rows = of_test(main, "m", "rest.jsonl", "--curve", "c.csv")
    model, truths = load("m"), [row["truth"] == "spam" for row in rows]
    predicted = [row["label"] == "spam" for row in rows]
    assert [row["label"] for row in rows] == model.predict_many([text for text, _ in stream[100:]]).tolist()
    assert figures["accuracy"] == round(accuracy_score(truths, predicted), 4)
    assert figures["F1 of spam"] == round(f1_score(truths, predicted), 4)
    assert figures["ROC AUC"] == round(roc_auc_score(truths, [row["margin"] for row in rows]), 4)
    spam = [row["probabilities"]["spam"] for row in rows]
    assert figures["log loss"] == round(log_loss(truths, spam), 4)
    with open("m", "rb") as file:
        assert file.read() == before


def test_held_out_classes_some_of_which_the_model_does_not_know(main):
    write_jsonl("two.jsonl", stream[:200])
    write_jsonl("three.jsonl", [*stream[200:300], *(("omelette", "eggs"),) * 20])
    assert main("train", "two.jsonl", "--save", "m")[0] == 0
    figures, rows = of_test(main, "m", "three.jsonl")
    truths, predicted = [row["truth"] for row in rows], [row["label"] for row in rows]
    assert figures["accuracy"] == round(accuracy_score(truths, predicted), 4)
    assert figures["macro F1"] == round(f1_score(truths, predicted, average="macro", zero_division=0), 4)
    assert main("train", "three.jsonl", "--save", "m3")[0] == 0
    figures, rows = of_test(main, "m3", "mail.jsonl")
    truths, predicted = [row["truth"] for row in rows], [row["label"] for row in rows]
    assert figures["accuracy"] == round(accuracy_score(truths, predicted), 4)
    p = [[row["probabilities"][label] for label in ("eggs", "ham", "spam")] for row in rows]
    assert figures["log loss"] == round(log_loss(truths, p, labels=["eggs", "ham", "spam"]), 4)


def test_held_out_stars_topics_and_features(main, here):
    rng = np.random.default_rng(3)
    stars = [(f"{'good ' * n}word{k}", n) for n, k in zip(rng.integers(1, 6, 300).tolist(), range(300), strict=True)]
    write_jsonl("stars.jsonl", stars)
    assert main("train", "stars.jsonl", "--ordered", "--no-binary", "--save", "m")[0] == 0
    figures, rows = of_test(main, "m", "stars.jsonl")
    assert figures["mean absolute error"] == round(np.mean([abs(row["label"] - row["truth"]) for row in rows]), 4)
    topics = [
        (f"word{i % 3} word{i % 5}", [f"t{i % 3}"] * (i % 3 > 0) + [f"u{i % 5}"] * (i % 5 > 2)) for i in range(300)
    ]
    write_jsonl("topics.jsonl", topics)
    assert main("train", "topics.jsonl", "--multi-label", "--save", "m")[0] == 0
    figures, rows = of_test(main, "m", "topics.jsonl")
    assert figures["exact matches"] == round(np.mean([set(row["label"]) == set(row["truth"]) for row in rows]), 4)
    assert all(type(row["truth"]) is list for row in rows)
    (here / "v.vw").write_text("".join(f"{1 if i % 3 else -1} 'tag{i} | f{i % 3} g{i % 4}\n" for i in range(100)))
    assert main("train", "v.vw", "--save", "m")[0] == 0
    figures, rows = of_test(main, "m", "v.vw")
    assert figures["accuracy"] == 1.0 and rows[4]["id"] == "tag4" and {row["truth"] for row in rows} == {-1, 1}
    assert isinstance(load("m"), AdaptiveClassifier)


def test_the_decision_is_changed_where_a_model_is_used(main):
    write_jsonl("rest.jsonl", stream[400:])
    limit = ["--pos-label", "spam", "--max-false-positive-rate", 0.5]
    assert main("train", "mail.jsonl", "--save", "m", "--limit", 400, *limit)[0] == 0
    with open("m", "rb") as file:
        before = file.read()
    model, (X, y) = load("m"), zip(*stream[400:], strict=True)
    for change in ({"threshold": 0.95}, {"max_false_positive_rate": 0.02}, {"threshold": 0.2, "pos_label": "spam"}):
        options = [it for name, value in change.items() for it in ("--" + name.replace("_", "-"), value)]
        model = load("m")
        model.set_decision(**change)
        expected = model.predict_many(X).tolist()
        told = main("predict", "m", "rest.jsonl", *options)[1].splitlines()
        assert [line.split("\t")[0] for line in told] == expected
        figures, rows = of_test(main, "m", "rest.jsonl", *options)
        assert [row["label"] for row in rows] == expected
        assert figures["accuracy"] == round(accuracy_score(y, expected), 4)
    with open("m", "rb") as file:
        assert file.read() == before
    assert main("train", "mail.jsonl", "--save", "plain")[0] == 0
    for options, reason in [
        (["--max-false-positive-rate", 1e-5, "--pos-label", "spam"], "it takes 5,000 to choose a cut"),
        (["--threshold", 0.9], "pos_label"),
        (["--threshold", 2, "--pos-label", "spam"], "threshold"),
        (["--threshold", 0.9, "--pos-label", "eggs"], "'eggs' is none of the model's classes"),
    ]:
        for command in ("predict", "test"):
            code, out, err = main(command, "plain", "rest.jsonl", *options)
            assert (code, out) == (1, "") and reason in error_line(err)


def test_a_file_on_a_full_disk(main, mixed):
    for command in (["predict", "m", "mixed.jsonl"], ["test", "m", "mail.jsonl"]):
        option = ["--output", "/dev/full"] if command[0] == "predict" else ["--predictions", "/dev/full"]
        code, _, err = main(*command, *option, "--output-format", "csv")
        assert code == 1 and "error: cannot write /dev/full: No space left on device" in err


@pytest.mark.parametrize("name", ["t.jsonl", "t.csv", "t.tsv", "t.parquet"])
def test_any_field_is_the_id(main, mixed, name):
    """Also one of an object, where records have such; all commands that answer take it."""
    columns = {"text": ["win", "lunch", "hi"], "label": ["spam", "ham", "ham"], "mail.no": ["a", "7", "a,b"]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if name.endswith(".jsonl"):
        with open(name, "w") as file:
            nested = [{**row, "mail": {"no": row["mail.no"]}} for row in rows]
            file.writelines(json.dumps({key: row[key] for key in ("text", "label", "mail")}) + "\n" for row in nested)
    elif name.endswith(".parquet"):
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        nested = [{"text": row["text"], "label": row["label"], "mail": {"no": row["mail.no"]}} for row in rows]
        parquet.write_table(pyarrow.Table.from_pylist(nested), name)
    else:
        with open(name, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, delimiter="\t" if name.endswith(".tsv") else ",")
            writer.writeheader()
            writer.writerows(rows)
    live = [["run", name, "--load", "m", "--no-follow", "--output", "a.csv"]] * name.endswith(".jsonl")
    for words in [
        ["predict", "m", name, "--output", "a.csv"],
        ["test", "m", name, "--predictions", "a.csv"],
        ["evaluate", name, "--predictions", "a.csv"],
        *live,
    ]:
        code, _, err = main(*words, "--id-field", "mail.no")
        assert (code, err) == (0, "")
        assert [row["id"] for row in rows_of("a.csv")] == columns["mail.no"]
        code, _, err = main(*words)
        assert code == 0 and err == "stream-pegasos: no message had an id; --id-field names the field that has it\n"
    code, _, err = main("predict", "m", name, "--id-field", "no", "--output", "a.csv")
    assert (code == 0) == name.endswith(".jsonl") and ("--id-field" in err or "'no'" in err)
    assert main("predict", "m", name)[2] == ""


def test_ids_of_integers_with_gaps_as_pandas_writes_them(main, mixed):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"text": ["a", "b"], "n": [{"o": 7.0}, {"o": None}]}), "t.parquet")
    assert main("predict", "m", "t.parquet", "--output", "a.jsonl", "--id-field", "n.o")[0] == 0
    assert [row["id"] for row in rows_of("a.jsonl")] == [7, None]


def test_a_column_for_each_label(main, mixed):
    assert main("predict", "m", "mixed.jsonl", "--output", "a.csv", "--output-format", "csv")[0] == 0
    for name in ("w.csv", "w.tsv"):
        assert main("predict", "m", "mixed.jsonl", "--output", name, "--wide")[0] == 0
        assert [*rows_of(name)[0]] == [
            *("id", "label", "probability", "probability of ham", "probability of spam", "margin", "error")
        ]
        for row, wide in zip(rows_of("a.csv"), rows_of(name), strict=True):
            each = {wide.pop(f"probability of {label}"): label for label in ("ham", "spam")}
            found = {label: float(p) for p, label in each.items() if p}
            assert found == json.loads(row.pop("probabilities") or "{}")
            assert row == wide
    assert main("test", "m", "mail.jsonl", "--predictions", "w.csv", "--wide")[0] == 0
    assert {"probability of ham", "truth"} <= set(rows_of("w.csv")[0])
    for words in (["--wide"], ["--wide", "--output-format", "jsonl"]):
        code, _, err = main("predict", "m", "mixed.jsonl", *words)
        assert code == 2 and "--wide" in err


def test_a_column_for_each_label_of_any_kind(main):
    model = TextClassifier()
    model.learn_many(["a", "b", "c", "d"], ['quo"te', "new\nline", -7, True])
    model.save("m")
    write_jsonl("t.jsonl", [("a", None)])
    assert main("predict", "m", "t.jsonl", "--output", "w.csv", "--wide")[0] == 0
    assert [*rows_of("w.csv")[0]][3:-2] == [f"probability of {label}" for label in ('quo"te', "new\nline", -7, "true")]
