"""What `evaluate` prints of more than two classes."""

import math

import numpy as np
import pytest
from commands import stream, write_jsonl

from stream_pegasos import OrdinalClassifier, PegasosClassifier, TextClassifier
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.summary import summary
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.prequential import Evaluation, evaluate


def tables(evaluation):
    """The head, and the tables below it as lists of rows of cells."""
    head, *rest = summary(Input(), evaluation, ()).split("\n\n")
    return head, *([line.split("  ") for line in table.splitlines()] for table in rest)


def cells(row):
    return [cell.strip() for cell in row if cell.strip()]


def test_several_classes():
    # Labels of mixed types, 27 of them; one occurs once.
    labels = [0, "a", *(f"class {i}" for i in range(24))]
    examples = [(text, labels[len(text) % 26]) for text, _ in stream]
    examples.append(("never before", "x\n" + 60 * "y"))
    evaluation = evaluate(TextClassifier(classifier=PegasosClassifier(multi_class="ovr", t0=1e4)), examples)
    score = evaluation.score
    head, figures, classes, pairs = tables(evaluation)
    assert head.startswith("synthetic stream: 601 messages in ") and head.endswith(", 0 bad lines")
    expected = {
        "accuracy": score.accuracy,
        "balanced accuracy": score.balanced_accuracy,
        "macro F1": score.macro_f1,
        "micro F1": score.micro_f1,
        "log loss": score.log_loss,
        "calibration error": score.expected_calibration_error,
        "accuracy of newest 601": score.accuracy,
    }
    assert {name: float(value) for name, value in map(cells, figures)} == {
        name: round(value, 4) for name, value in expected.items()
    }
    assert cells(classes[0]) == ["27 classes", "precision", "recall", "F1", "count"]
    assert len(classes) == 22
    for row, (label, precision, recall, f1, count) in zip(classes[1:], score.of_classes(20), strict=False):
        said = ["-" if math.isnan(value) else f"{value:.4f}" for value in (precision, recall, f1)]
        assert cells(row) == [str(label), *said, str(count)]
    assert cells(classes[-1])[0] == "7 others"
    assert sum(int(row[-1]) for row in classes[1:]) == 601
    assert cells(pairs[0]) == ["truly", "predicted", "count"]
    assert [int(row[-1]) for row in pairs[1:]] == [pair.count for pair in score.confused(10)]
    # Columns stand below each other, also where a label is long.
    assert {len("  ".join(row)) for row in classes} == {len("  ".join(classes[0]))}


def test_a_long_label_stands_on_one_line_and_is_cut():
    score = LabelScore()
    score.update(LabelOutcomes.of([("x\n" + 60 * "y",)], [()], (), np.zeros((1, 0))))
    _, _, classes = tables(Evaluation(score))
    assert cells(classes[1]) == ["x\\n" + 46 * "y" + "…", "-", "0.0000", "0.0000", "1"]


def test_ordered_classes():
    examples = [(text, len(text) % 4) for text, _ in stream]
    evaluation = evaluate(TextClassifier(classifier=OrdinalClassifier()), examples)
    _, figures, *_ = tables(evaluation)
    score = evaluation.score
    assert [cells(row) for row in figures[:3]] == [
        ["accuracy", f"{score.accuracy:.4f}"],
        ["mean absolute error", f"{score.mean_absolute_error:.4f}"],
        ["quadratic kappa", f"{score.quadratic_kappa:.4f}"],
    ]


@pytest.mark.parametrize("n", [0, 1])
def test_several_labels(n):
    score = LabelScore()
    score.update(LabelOutcomes.of([("oil", "gas")] * n, [("gas", "tea")] * n, (), np.zeros((n, 0))))
    _, figures, classes, *pairs = tables(Evaluation(score))
    assert [cells(row)[0] for row in figures] == [
        *("micro F1", "macro F1", "exact matches", "Hamming loss", "log loss", "calibration error"),
        f"micro F1 of newest {n}",
    ]
    if n:
        assert cells(classes[0])[0] == "3 labels"
        assert [cells(row) for row in pairs[0]] == [["missed", "predicted", "count"], ["oil", "tea", "1"]]
    else:
        assert (cells(classes[0])[0], pairs) == ("0 labels", [])


def test_a_report_has_all_classes_the_worst_first(main):
    write_jsonl("many.jsonl", [(text, f"class {len(text) % 26}") for text, _ in stream])
    score = evaluate(TextClassifier(), [(text, f"class {len(text) % 26}") for text, _ in stream]).score
    for options, n_classes, n_pairs in (
        ([], 22, 11),
        (["--report"], 27, 11),
        (["--report", "--confusions"], 27, len(score.confused()) + 1),
    ):
        out = main("evaluate", "many.jsonl", *options)[1]
        _, _, classes, pairs = ([cells(line.split("  ")) for line in t.splitlines()] for t in out.split("\n\n"))
        assert (len(classes), len(pairs)) == (n_classes, n_pairs)
        if options:
            assert sorted(row[0] for row in classes[1:]) == sorted({row.label for row in score.of_classes()})
            f1 = [float(row[3]) for row in classes[1:]]
            assert f1 == sorted(f1)
    n_wrong = round(score.n * (1 - score.accuracy)) - 1  # the first message, which has no answer, is in no pair
    assert sum(int(row[-1]) for row in pairs[1:]) == n_wrong


def test_a_report_of_two_classes(main):
    assert main("train", "mail.jsonl", "--limit", 300, "--save", "m")[0] == 0
    plain = main("test", "m", "mail.jsonl")[1].split("\n\n")
    report = main("test", "m", "mail.jsonl", "--report", "--confusions")[1].split("\n\n")
    assert report[1] == plain[1] and len(report) == len(plain) + 2
    assert [row.split()[0] for row in report[3].splitlines()[1:]] in (["ham", "spam"], ["spam", "ham"])
