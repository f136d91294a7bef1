"""What `evaluate` prints of more than two classes."""

import math

import numpy as np
import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import PegasosClassifier, TextClassifier
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.summary import summary
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.prequential import Evaluation, evaluate


def tables(printed):
    """The head, and the tables below it as lists of rows of cells."""
    head, *rest = printed.split("\n\n")
    return head, *(
        [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()] for table in rest
    )


def test_several_classes():
    # Labels of mixed types, 27 of them; one occurs once.
    labels = [0, "a", *(f"class {i}" for i in range(24))]
    examples = [(text, labels[len(text) % 26]) for text, _ in stream]
    examples.append(("never before", "x\n" + 60 * "y"))
    evaluation = evaluate(TextClassifier(classifier=PegasosClassifier(multi_class="ovr", t0=1e4)), examples)
    score, printed = evaluation.score, summary(Input(), evaluation, ())
    head, figures, classes, pairs = tables(printed)
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
    assert figures == [[name, f"{value:.4f}"] for name, value in expected.items()]
    assert classes[0] == ["27 classes", "precision", "recall", "F1", "count"]
    for row, (label, *shares, count) in zip(classes[1:], score.of_classes(20), strict=False):
        assert row == [str(label), *("-" if math.isnan(value) else f"{value:.4f}" for value in shares), str(count)]
    assert len(classes) == 22 and classes[-1][0] == "7 others"
    assert sum(int(row[-1]) for row in classes[1:]) == 601
    assert pairs[0] == ["truly", "predicted", "count"]
    assert [int(row[-1]) for row in pairs[1:]] == [pair.count for pair in score.confused(10)]
    # Columns stand below each other, also where a label is long.
    assert len({len(line) for line in printed.split("\n\n")[2].splitlines()}) == 1


def test_a_long_label_stands_on_one_line_and_is_cut():
    score = LabelScore()
    score.update(LabelOutcomes.of([("x\n" + 60 * "y",)], [()], (), np.zeros((1, 0))))
    _, _, classes = tables(summary(Input(), Evaluation(score), ()))
    assert classes[1] == ["x\\n" + 46 * "y" + "…", "-", "0.0000", "0.0000", "1"]


@pytest.mark.parametrize("n", [0, 1])
def test_several_labels(n):
    score = LabelScore()
    score.update(LabelOutcomes.of([("oil", "gas")] * n, [("gas", "tea")] * n, (), np.zeros((n, 0))))
    _, figures, classes, *pairs = tables(summary(Input(), Evaluation(score), ()))
    assert [name for name, *_ in figures] == [
        *("micro F1", "macro F1", "exact matches", "Hamming loss", "log loss", "calibration error"),
        f"micro F1 of newest {n}",
    ]
    assert classes[0][0] == ("3 labels" if n else "0 labels")
    assert pairs == ([[["missed", "predicted", "count"], ["oil", "tea", "1"]]] if n else [])


def test_a_report_has_all_classes_the_worst_first(ok):
    examples = [(text, f"class {len(text) % 26}") for text, _ in stream]
    write_jsonl("many.jsonl", examples)
    score = evaluate(TextClassifier(), examples).score
    for options, n_classes, n_pairs in (
        ("", 22, 11),
        ("--report", 27, 11),
        ("--report --confusions", 27, len(score.confused()) + 1),
    ):
        _, _, classes, pairs = tables(ok(f"evaluate many.jsonl {options}"))
        assert (len(classes), len(pairs)) == (n_classes, n_pairs)
        if options:
            assert {row[0] for row in classes[1:]} == {row.label for row in score.of_classes()}
            f1 = [float(row[3]) for row in classes[1:]]
            assert f1 == sorted(f1)
    n_wrong = round(score.n * (1 - score.accuracy)) - 1  # the first message, which has no answer, is in no pair
    assert sum(int(row[-1]) for row in pairs[1:]) == n_wrong


def test_a_report_of_two_classes(ok):
    reference_of(stream[:300]).save("m")
    plain = ok("test m mail.jsonl").split("\n\n")
    report = ok("test m mail.jsonl --report --confusions").split("\n\n")
    assert report[1] == plain[1] and len(report) == len(plain) + 2
    assert {row.split()[0] for row in report[3].splitlines()[1:]} == {"ham", "spam"}
