"""Evaluations as text, as tables of HTML and as frames."""

import math
import re
import sys

import numpy as np
import pytest
from commands import stream

from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.prequential import Evaluation, prequential


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
    evaluation = prequential(examples, TextClassifier(), name="my stream")
    score, printed = evaluation.score, str(evaluation)
    head, figures, classes, pairs = tables(printed)
    assert head.startswith("my stream: 601 messages in ") and head.endswith("docs/s")
    assert evaluation.report(notes=["0 bad lines"]).split("\n")[0] == f"{head}, 0 bad lines"
    n_classes = len(score.class_rows())
    expected = {
        "accuracy": score.accuracy,
        "balanced_accuracy": score.balanced_accuracy,
        "macro_f1": score.macro_f1,
        "micro_f1": score.micro_f1,
        **({"f1 of spam": score.f1, "roc_auc": score.roc_auc} if n_classes == 2 else {}),
        "log_loss": score.log_loss,
        "calibration_error": score.calibration_error,
        "accuracy of newest 600": score.accuracy,
        **({"roc_auc of newest 600": score.roc_auc} if n_classes == 2 else {}),
    }
    assert figures == [[name, f"{value:.4f}"] for name, value in expected.items()]
    assert classes[0] == [f"{n_classes} classes", "precision", "recall", "F1", "count"]
    for row, (label, *shares, count) in zip(classes[1:], score.class_rows(20), strict=False):
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
    _, _, classes = tables(str(Evaluation(score)))
    assert classes[1] == ["x\\n" + 46 * "y" + "…", "-", "0.0000", "0.0000", "1"]


@pytest.mark.parametrize("n", [0, 1])
def test_several_labels(n):
    score = LabelScore()
    score.update(LabelOutcomes.of([("oil", "gas")] * n, [("gas", "tea")] * n, (), np.zeros((n, 0))))
    _, figures, classes, *pairs = tables(str(Evaluation(score)))
    assert [name for name, *_ in figures] == [
        *("micro_f1", "macro_f1", "exact_matches", "hamming_loss", "log_loss", "calibration_error"),
        f"micro_f1 of newest {n}",
    ]
    assert classes[0][0] == ("3 labels" if n else "0 labels")
    assert pairs == ([[["missed", "predicted", "count"], ["oil", "tea", "1"]]] if n else [])


def test_the_same_as_tables_of_html():
    evaluation = prequential([(text, f"<{label}>") for text, label in stream], TextClassifier())
    (head, *text), html = str(evaluation).split("\n"), evaluation._repr_html_()
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", html)
    assert [cell.replace("&lt;", "<").replace("&gt;", ">") for cell in cells] == re.split(
        r"  +|\n+", "\n".join(text).strip()
    )
    assert f"<p>{head}</p>" in html
    assert repr(evaluation) == f"<Evaluation of stream: 600 messages, accuracy {evaluation.score.accuracy:.4f}>"


def test_rows_as_a_frame(monkeypatch):
    evaluation = prequential(stream, TextClassifier())
    for package in ("pandas", "polars"):
        found = pytest.importorskip(package)
        frame = evaluation.to_frame()
        assert isinstance(frame, found.DataFrame) and list(frame.columns) == list(evaluation.curve[0]._fields)
        assert list(frame["accuracy"]) == [row.accuracy for row in evaluation.curve]
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pandas or polars"):
        evaluation.to_frame()


def test_a_label_longer_than_python_writes_is_reported(tmp_path):
    evaluation = prequential([("cheap pills", 10**5_000), ("at noon", 1)] * 20, TextClassifier())
    start = f"{10**5_000:#x}"[:20]
    assert start in str(evaluation) and start in evaluation._repr_html_()
    evaluation.plot(tmp_path / "curve.svg")
