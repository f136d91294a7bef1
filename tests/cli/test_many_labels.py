"""The command with more than two classes, ordered ones, and several labels a message."""

import csv

import pytest
from commands import error_line, stream, write_jsonl

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, load
from stream_pegasos.evaluation.prequential import evaluate

# Each word is of one topic; two words stand in a text.
WORDS = {"oil": "well", "gas": "pipe", "tea": "leaf", "7": "seven"}
topics = [
    (" ".join(f"{WORDS[label]} {WORDS[label]}s" for label in labels) or "nothing at all", labels)
    for i in range(300)
    for labels in [[label for j, label in enumerate(WORDS) if (i + 5) >> j & 1]]
]


def figures(out):
    """The figures of a summary by name."""
    rows = (line.rsplit(maxsplit=1) for line in out.split("\n\n")[1].splitlines())
    return {name: float(value) for name, value in rows}


def of_score(score):
    return [round(value, 4) for value in score.figures().values()]


def test_evaluate_several_classes(main):
    labels = ["ham", "spam", 3, "eggs"]
    examples = [(f"{text} {labels[i % 4]}", labels[i % 4]) for i, (text, _) in enumerate(stream)]
    write_jsonl("four.jsonl", [examples[0], examples[1], *examples])
    code, out, err = main("evaluate", "four.jsonl", "--curve", "c.csv", "--plot", "p.png", "--save", "m")
    assert (code, err) == (0, "")
    evaluation = evaluate(stream_pegasos.TextClassifier(), [examples[0], examples[1], *examples])
    assert [*figures(out).values()] == pytest.approx(of_score(evaluation.score), abs=1e-4)
    assert "4 classes" in out and set(load("m").classes) == set(labels)
    with open("c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]][:4] == ["n", "accuracy", "balanced_accuracy", "macro_f1"]
    assert float(rows[-1]["macro_f1"]) == pytest.approx(evaluation.score.macro_f1, abs=1e-5)
    code, out, _ = main("predict", "m", "four.jsonl")
    assert code == 0 and [line.split("\t")[0] for line in out.splitlines()[-4:]] == [str(y) for _, y in examples[-4:]]


def test_a_thousand_classes_and_one_with_one_example(main):
    write_jsonl("many.jsonl", [(f"word{i % 1000} a b", f"class {i % 1000}") for i in range(2000)] + [("one", "only")])
    code, out, err = main("evaluate", "many.jsonl")
    assert (code, err) == (0, "")
    assert "1,001 classes" in out and "981 others" in out


def test_labels_that_are_fixed(main):
    write_jsonl("four.jsonl", [("a", "x"), ("b", "y"), ("c", "z"), ("d", "v"), ("e", 1), ("f", "1")])
    code, out, err = main("evaluate", "four.jsonl", "--labels", "x,y,z,1")
    assert code == 0 and "5 messages" in out
    assert err == "stream-pegasos: line 4 skipped: label v is none of x, y, z, 1\n"


def test_ordered(main):
    examples = [("good " * (i % 3) + "film", i % 3 + 1) for i in range(300)]
    write_jsonl("stars.jsonl", examples)
    code, out, err = main("evaluate", "stars.jsonl", "--ordered", "--save", "m")
    assert (code, err) == (0, "")
    score = evaluate(stream_pegasos.TextClassifier(classifier=stream_pegasos.OrdinalClassifier()), examples).score
    assert [*figures(out).values()] == pytest.approx(of_score(score), abs=1e-4)
    assert [*figures(out)][:3] == ["accuracy", "mean absolute error", "quadratic kappa"]
    assert main("predict", "m", "stars.jsonl")[0] == 0
    write_jsonl("stars.jsonl", [*examples, ("bad", "worst"), ("bad", [1])])
    code, out, err = main("train", "stars.jsonl", "--ordered", "--save", "m")
    assert code == 0 and "learned 300 messages" in out and "2 bad lines" in out
    assert "line 301 skipped" in err and "worst" in err and "line 302 skipped: its label is a list, [1]" in err


@pytest.mark.parametrize("given", [[], ["--multi-label"], ["--label-separator", ";"]])
def test_several_labels(main, given):
    if given[:1] == ["--label-separator"]:
        written = [(text, ";".join(labels) if len(labels) > 1 else labels) for text, labels in topics]
    else:  # one label alone need be no list
        written = [(text, labels[0] if i and len(labels) == 1 else labels) for i, (text, labels) in enumerate(topics)]
    write_jsonl("topics.jsonl", written)
    code, out, err = main("evaluate", "topics.jsonl", *given, "--save", "m")
    assert (code, err) == (0, "")
    examples = [(text, tuple(7 if label == "7" else label for label in labels)) for text, labels in topics]
    model = stream_pegasos.TextClassifier(classifier=stream_pegasos.MultiLabelClassifier())
    assert [*figures(out).values()] == pytest.approx(of_score(evaluate(model, examples).score), abs=1e-4)
    assert "300 messages" in out and "4 labels" in out
    assert main("train", "topics.jsonl", *given, "--save", "trained")[0] == 0
    separator = ["--label-separator", given[-1] if len(given) == 2 else "+"] if given else []
    code, out, _ = main("predict", "trained", "topics.jsonl", *separator)
    said = model.predictions([text for text, _ in examples])
    sign = separator[-1] if separator else ","
    assert [line.split("\t")[0] for line in out.splitlines()] == [sign.join(map(str, y)) for y in said.labels.tolist()]
    _, probabilities = out.splitlines()[0].split("\t")
    expected = [p for label, p in zip(said.classes, said.probabilities[0], strict=True) if label in said.labels[0]]
    assert [*map(float, filter(None, probabilities.split(sign)))] == pytest.approx(expected, abs=1e-6)


def test_run_answers_and_learns_several_labels(main):
    write_jsonl("topics.jsonl", [(text, labels) for text, labels in topics])
    arguments = ["run", "topics.jsonl", "--no-follow", "--multi-label", "--labels", "oil,gas,tea"]
    code, out, err = main(*arguments, "--save", "c")
    assert code == 0
    assert len(out.splitlines()) == 300
    assert "skipped: label 7 is none of oil, gas, tea" in err
    assert set(load("c").classes) == {"oil", "gas", "tea"}
    write_jsonl("more.jsonl", [("well wells leaf leafs", ["oil", "tea"]), ("pipe", [])])
    code, out, _ = main("run", "more.jsonl", "--no-follow", "--load", "c")
    assert code == 0 and out.splitlines()[0].startswith("oil,tea\t")


def test_csv_with_a_separator(main, here):
    rows = [(text, "; ".join(labels)) for text, labels in topics]
    with open("t.csv", "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    code, out, err = main("evaluate", "t.csv", "--label-separator", ";")
    assert code == 0 and "4 labels" in out
    n_empty = sum(not labels for _, labels in topics)
    assert f"{n_empty} bad lines" in out and "no label in the field 'label'" in err


def test_a_new_class_for_late_labels(main):
    """Three classes in turn, and each label five messages late."""
    examples = [(f"word{i % 3}", "abc"[i % 3]) for i in range(90)]
    write_jsonl("three.jsonl", examples)
    code, out, _ = main("evaluate", "three.jsonl", "--delay", 5)
    score = evaluate(stream_pegasos.TextClassifier(), examples, delay=5).score
    assert code == 0 and [*figures(out).values()] == pytest.approx(of_score(score), abs=1e-4)


def test_options_that_do_not_go_together(main):
    write_jsonl("topics.jsonl", topics)
    for arguments, message in [
        (["--ordered", "--multi-label"], "one label a message"),
        (["--multi-label", "--classifier", "pegasos"], "not an AdaptiveClassifier"),
        (["--ordered", "--threshold", 0.9], "threshold"),
        (["--label-separator", ""], "cannot separate labels"),
        (["--label-separator", "\t"], "cannot separate labels"),
    ]:
        code, _, err = main("evaluate", "topics.jsonl", *arguments)
        assert code == 2 and message in " ".join(err.split()), err
    model = stream_pegasos.TextClassifier(classifier=AdaptiveClassifier())
    model.learn_many(["a", "b"], ["x", "y"])
    model.save("one")
    code, _, err = main("train", "topics.jsonl", "--load", "one", "--label-separator", ";", "--save", "m")
    assert code == 1 and "one is a model of one label a message" in error_line(err)


def test_explain_texts(main):
    """What adds up is what is said: first against second, a label alone, how high among ordered ones."""
    labels = ["ham", "spam", 3, "eggs"] * 150
    four = [(f"{text} {label}", label) for (text, _), label in zip(stream, labels, strict=True)]
    stars = [("good " * (i % 3) + "film", i % 3 + 1) for i in range(300)]
    for examples, options, text in (
        (four, [], stream[0][0] + " eggs"),
        (topics, ["--multi-label"], "well wells leaf"),
        (stars, ["--ordered"], "good film"),
    ):
        write_jsonl("t.jsonl", examples)
        assert main("train", "t.jsonl", *options, "--save", "m")[0] == 0
        model = load("m")
        labels = [str(label) for label in model.classes]
        for asked in ([], ["--label", labels[1]]) if options != ["--ordered"] else ([],):
            code, out, err = main("explain", "m", "--text", text, "--top", 3, *asked)
            assert (code, err) == (0, "")
            head, legend, *rows = out.splitlines()
            given = {} if not asked else {"label": model.classes[1]}
            total = sum(model.explain_one(text, **given).values())
            assert sum(float(row.split()[0]) for row in rows) == pytest.approx(total, abs=1e-4)
            if asked:
                assert legend == f"+ speaks for {labels[1]}, - against it"
            elif options == ["--ordered"]:
                assert legend == "+ speaks for 3, - for 1"
            elif not options:
                first, second = sorted(model.predict_proba_one(text).items(), key=lambda item: -item[1])[:2]
                assert head == f"{first[0]}, probability {first[1]:.4f}; then {second[0]}, {second[1]:.4f}"
                assert legend == f"+ speaks for {first[0]}, - for {second[0]}"
        assert main("explain", "m", "t.jsonl")[0] == 0
