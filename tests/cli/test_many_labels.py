"""The command with more than two classes, ordered ones, and several labels a message."""

import csv

import pytest
from commands import figures, labels_of, stream, write_jsonl

from stream_pegasos import MultiLabelClassifier, OrdinalClassifier, TextClassifier, load
from stream_pegasos.evaluation.prequential import prequential

# Each word is of one topic; two words stand in a text.
WORDS = {"oil": "well", "gas": "pipe", "tea": "leaf", "7": "seven"}
topics = [
    (" ".join(f"{WORDS[label]} {WORDS[label]}s" for label in labels) or "nothing at all", labels)
    for i in range(300)
    for labels in [[label for j, label in enumerate(WORDS) if (i + 5) >> j & 1]]
]


def same(out, evaluation):
    expected = [round(value, 4) for value in evaluation.score.metrics().values()]
    return [*figures(out).values()] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("delay", [0, 5])
def test_evaluate_several_classes(main, delay):
    labels = ["ham", "spam", 3, "eggs"]
    examples = [(f"{text} {labels[i % 4]}", labels[i % 4]) for i, (text, _) in enumerate(stream)]
    examples = [examples[0], examples[1], *examples]
    write_jsonl("four.jsonl", examples)
    code, out, err = main(f"evaluate four.jsonl --plot c.csv --save m --delay {delay}")
    evaluation = prequential(examples, TextClassifier(), delay=delay)
    assert (code, err) == (0, "") and same(out, evaluation)
    assert "4 classes" in out and {*load("m").classes} == {*labels}
    with open("c.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]][:4] == ["n", "accuracy", "balanced_accuracy", "macro_f1"]
    assert float(rows[-1]["macro_f1"]) == pytest.approx(evaluation.score.macro_f1, abs=1e-5)
    assert labels_of(main("predict m four.jsonl")[1])[-4:] == [str(label) for _, label in examples[-4:]]


def test_ordered(main):
    examples = [("good " * (i % 3) + "film", i % 3 + 1) for i in range(300)]
    write_jsonl("stars.jsonl", examples)
    code, out, err = main("evaluate stars.jsonl --ordered")
    assert (code, err) == (0, "")
    assert same(out, prequential(examples, TextClassifier(classifier=OrdinalClassifier())))
    assert [*figures(out)][:3] == ["accuracy", "mean_absolute_error", "quadratic_kappa"]
    write_jsonl("stars.jsonl", [*examples, ("bad", "worst"), ("bad", [1])])
    code, out, err = main("train stars.jsonl --ordered --save m")
    assert code == 0 and "learned 300 messages" in out and "2 bad lines" in out
    assert "line 301 skipped" in err and "worst" in err and "line 302 skipped: its label is a list, [1]" in err


@pytest.mark.parametrize(
    ("given", "sign"), [("", ","), ("--multi-label --label-separator +", "+"), ("--label-separator ;", ";")]
)
def test_several_labels(ok, given, sign):
    if ";" in given:
        written = [(text, ";".join(labels) if len(labels) > 1 else labels) for text, labels in topics]
    else:  # one label alone need be no list
        written = [(text, labels[0] if i and len(labels) == 1 else labels) for i, (text, labels) in enumerate(topics)]
    write_jsonl("topics.jsonl", written)
    given = given.replace(";", "';'")
    out = ok(f"evaluate topics.jsonl {given}")
    examples = [(text, tuple(7 if label == "7" else label for label in labels)) for text, labels in topics]
    model = TextClassifier(classifier=MultiLabelClassifier())
    assert same(out, prequential(examples, model)) and "300 messages" in out and "4 labels" in out
    ok(f"train topics.jsonl {given} --save m")
    answers = ok(f"predict m topics.jsonl {given.removeprefix('--multi-label')}")
    said = model.predictions([text for text, _ in examples])
    assert labels_of(answers) == [sign.join(map(str, labels)) for labels in said.labels.tolist()]
    probabilities = answers.splitlines()[0].split("\t")[1]
    expected = [p for label, p in zip(said.classes, said.probabilities[0], strict=True) if label in said.labels[0]]
    assert [*map(float, filter(None, probabilities.split(sign)))] == pytest.approx(expected, abs=1e-6)


def test_run_answers_and_learns_several_labels(main, ok):
    write_jsonl("topics.jsonl", topics)
    ok("train --multi-label --save new")
    code, out, err = main("run new topics.jsonl --no-follow --labels oil,gas,tea --save c")
    assert code == 0 and out.count("\n") == 300
    assert "skipped: label must be one of oil, gas, tea, got 7" in err
    assert {*load("c").classes} == {"oil", "gas", "tea"}
    write_jsonl("more.jsonl", [("well wells leaf leafs", ["oil", "tea"]), ("pipe", [])])
    assert ok("run c more.jsonl --no-follow").startswith("oil,tea\t")


@pytest.mark.parametrize("sign", [",", ";"])
@pytest.mark.parametrize("name", ["t.vw", "t.svmlight"])
def test_labels_of_vw_and_svmlight_are_those_of_lists(main, ok, name, sign):
    """Also where none of them holds, whatever separates them."""
    ids = {}
    with open(name, "w", encoding="utf-8") as file:
        for text, labels in topics:
            words = sorted({ids.setdefault(word, len(ids)) for word in text.split()})
            features = " ".join(f"{word}:1" for word in words)
            file.write(f"{sign.join(labels)} {'|' if name == 't.vw' else ''} {features}\n")
    given = "--multi-label" if sign == "," else "--label-separator ';'"
    x = (lambda word: str(word)) if name == "t.vw" else int
    examples = [({x(ids[word]): 1.0 for word in text.split()}, (*labels,)) for text, labels in topics]
    examples = [(x, tuple(7 if label == "7" else label for label in y)) for x, y in examples]
    assert same(ok(f"evaluate {name} {given} --save m"), prequential(examples, MultiLabelClassifier()))
    if sign == ",":  # the first line shows that there are several
        code, out, err = main(f"evaluate {name}")
        assert code == 0 and "no label; --multi-label takes it as a line that has none of them" in err
        assert f"{sum(not labels for _, labels in topics)} bad lines" in out
    code, out, err = main(f"run m {name} --no-follow --save n {given.removeprefix('--multi-label')}")
    assert (code, err) == (0, "") and any(sign in label for label in labels_of(out))
    assert load("n").n_learned == load("m").n_learned + sum(bool(labels) for _, labels in topics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--ordered --multi-label", "one label a message"),
        ("--multi-label --classifier pegasos", "--classifier: pegasos learns one label a message"),
        ("--multi-label --l2 1", "--l2: pegasos learns one label a message"),
        ("--multi-label --balanced", "--balanced: it is for one label a message"),
        ("--multi-label --pos-label spam", "--pos-label: it is for one label a message"),
        ("--ordered --threshold 0.9", "threshold"),
        ("--ordered --decide-for macro_f1", "decide_for must be left out, as an OrdinalClassifier does not use it"),
        ("--decide-for f1", "decide_for must be one of 'accuracy', 'micro_f1', 'macro_f1', got 'f1'"),
        ("--decide-for macro_f1 --threshold 0.3", "threshold must be left out with decide_for='macro_f1'"),
        ("--l2 1 --decide-for macro_f1", "--decide-for: the classifier pegasos has no such option"),
        ("--ordered --classifier pegasos", "made of an AdaptiveClassifier"),
        ("--label-separator ''", "cannot separate labels"),
        ("--label-separator '\t'", "cannot separate labels"),
    ],
)
def test_options_that_do_not_go_together(fails, options, message):
    assert message in fails(f"evaluate mail.jsonl {options}", code=2)


def test_a_model_of_one_label_takes_no_separator(fails):
    TextClassifier().save("one")
    message = "one is a model of one label a message"
    assert message in fails("train one mail.jsonl --label-separator ';' --save m")
