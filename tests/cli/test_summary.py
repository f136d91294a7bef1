"""What `evaluate` prints."""

import math

import numpy as np
import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import TextClassifier
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.options import StreamOptions
from stream_pegasos.cli.stream import Stream
from stream_pegasos.cli.summary import summary
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.prequential import Evaluation, evaluate


def source():
    return Input(Stream(None, StreamOptions()), TextClassifier())


def tables(printed):
    """The head, and the tables below it as lists of rows of cells."""
    head, *rest = printed.split("\n\n")
    return head, *(
        [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()] for table in rest
    )


def of_many_classes():
    """Labels of mixed types, 27 of them; one occurs once."""
    labels = [0, "a", *(f"class {i}" for i in range(24))]
    return [*((text, labels[len(text) % 26]) for text, _ in stream), ("never before", "x\n" + 60 * "y")]


@pytest.mark.parametrize("examples", [[*stream, stream[0]], of_many_classes()], ids=["two", "many"])
def test_classes(examples):
    evaluation = evaluate(TextClassifier(), examples)
    score, printed = evaluation.score, summary(source(), evaluation)
    head, figures, classes, pairs = tables(printed)
    assert head.startswith("synthetic stream: 601 messages in ") and head.endswith(", 0 bad lines")
    n_classes = len(score.of_classes())
    expected = {
        "accuracy": score.accuracy,
        "balanced accuracy": score.balanced_accuracy,
        "macro F1": score.macro_f1,
        "micro F1": score.micro_f1,
        **({"F1 of spam": score.f1, "ROC AUC": score.roc_auc} if n_classes == 2 else {}),
        "log loss": score.log_loss,
        "calibration error": score.calibration_error,
        "accuracy of newest 600": score.accuracy,
        **({"ROC AUC of newest 600": score.roc_auc} if n_classes == 2 else {}),
    }
    assert figures == [[name, f"{value:.4f}"] for name, value in expected.items()]
    assert classes[0] == [f"{n_classes} classes", "precision", "recall", "F1", "count"]
    for row, (label, *shares, count) in zip(classes[1:], score.of_classes(20), strict=False):
        assert row == [str(label), *("-" if math.isnan(value) else f"{value:.4f}" for value in shares), str(count)]
    assert (len(classes), classes[-1][0]) == ((3, "spam") if n_classes == 2 else (22, "7 others"))
    assert sum(int(row[-1]) for row in classes[1:]) == 600
    assert pairs[0] == ["truly", "predicted", "count"]
    assert pairs[1:] == [[str(truth), str(label), str(n)] for truth, label, n in score.confused(10)]
    # Columns stand below each other, also where a label is long.
    assert len({len(line) for line in printed.split("\n\n")[2].splitlines()}) == 1


def test_a_long_label_stands_on_one_line_and_is_cut():
    score = LabelScore()
    score.update(LabelOutcomes.of([("x\n" + 60 * "y",)], [()], (), np.zeros((1, 0))))
    _, _, classes = tables(summary(source(), Evaluation(score)))
    assert classes[1] == ["x\\n" + 46 * "y" + "…", "-", "0.0000", "0.0000", "1"]


@pytest.mark.parametrize("n", [0, 1])
def test_several_labels(n):
    score = LabelScore()
    score.update(LabelOutcomes.of([("oil", "gas")] * n, [("gas", "tea")] * n, (), np.zeros((n, 0))))
    _, figures, classes, *pairs = tables(summary(source(), Evaluation(score)))
    assert [name for name, *_ in figures] == [
        *("micro F1", "macro F1", "exact matches", "Hamming loss", "log loss", "calibration error"),
        f"micro F1 of newest {n}",
    ]
    assert classes[0][0] == ("3 labels" if n else "0 labels")
    assert pairs == ([[["missed", "predicted", "count"], ["oil", "tea", "1"]]] if n else [])


@pytest.mark.parametrize(("n", "fewer"), [(2, 2), (26, 21)])
def test_a_report_has_all_classes_the_worst_first(ok, n, fewer):
    examples = [(text, f"class {len(text) % n}") for text, _ in stream]
    write_jsonl("many.jsonl", examples)
    score = evaluate(TextClassifier(), examples).score
    n_pairs = len(score.confused())
    for options, n_classes, n_shown in (("", fewer, min(10, n_pairs)), ("--report", n, n_pairs)):
        _, _, classes, pairs = tables(ok(f"evaluate many.jsonl {options}"))
        assert (len(classes), len(pairs)) == (n_classes + 1, n_shown + 1)
        if options:
            assert {row[0] for row in classes[1:]} == {row.label for row in score.of_classes()}
            f1 = [float(row[3]) for row in classes[1:]]
            assert f1 == sorted(f1)
    n_wrong = round((score.n - 1) * (1 - score.accuracy))  # the first message has no answer
    assert sum(int(row[-1]) for row in pairs[1:]) == n_wrong


def test_a_test_has_a_report_too(ok):
    reference_of(stream[:300]).save("m")
    plain, report = (ok(f"test m mail.jsonl {options}").split("\n\n") for options in ("", "--report"))
    assert report[1] == plain[1] and len(report) == len(plain) == 4
    assert {row.split()[0] for row in report[2].splitlines()[1:]} == {"ham", "spam"}
