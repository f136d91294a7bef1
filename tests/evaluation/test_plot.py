import math
import subprocess
import sys

import numpy as np
import pytest
from outcomes import of_two

from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.scores import OrderedScore, Outcomes, PrequentialScore, ScoreRow

pytest.importorskip("matplotlib")

from stream_pegasos.evaluation.plot import draw, save

curve = [ScoreRow(n, 0.9, 0.8, 0.7, 0.95, 0.2, 1 - 1 / n, 0.1) for n in range(50, 5_001, 50)]


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_lines_hold_the_curve():
    figure = draw(curve, title="my $stream_1$")
    assert list(lines(figure)) == ["accuracy 90.0%", "newest 1,000 100.0%", "ROC AUC 95.0%"]
    assert list(lines(figure)["newest 1,000 100.0%"].get_xdata()) == [row.n for row in curve]
    assert list(lines(figure)["newest 1,000 100.0%"].get_ydata()) == [1 - 1 / row.n for row in curve]
    assert figure.axes[0].get_title("left") == "my $stream_1$"
    low, high = figure.axes[0].get_ylim()
    assert low < 0.9
    assert high >= 1.0


def test_a_score_adds_its_reliability_diagram(tmp_path):
    score = PrequentialScore()
    score.update(of_two([True, False, True, True], [-1, -0.9, 2, 3], [0.22, 0.28, 0.9, 0.98]))
    _, diagram = draw(curve, "stream", score).axes
    drawn = diagram.get_lines()[1]
    assert drawn.get_xdata()[[2, 9]].tolist() == pytest.approx([0.25, 0.94])
    assert drawn.get_ydata()[[2, 9]].tolist() == [0.5, 1.0]
    assert diagram.get_title("left") == "calibration error 0.1550"  # (2 · 0.25 + 2 · 0.06) / 4
    for name, given in (("some.svg", score), ("none.svg", PrequentialScore())):
        save(curve, tmp_path / name, "stream", given)
        assert "calibration error" in (tmp_path / name).read_text(encoding="utf-8")


def of_classes(kind, n=26):
    labels = [f"$l_{i}$ 中 " + "x" * 40 for i in range(n)] if kind is not OrderedScore else list(range(n))
    truths = [label for i, label in enumerate(labels) for _ in range(2 + i)]
    predicted = [labels[0], *truths[:-1]]
    half = np.full(len(truths), 0.5)
    score = kind()
    score.update(Outcomes(truths, predicted, half, half))
    return score


@pytest.mark.parametrize(
    ("kind", "third"),
    [(PrequentialScore.of_several, "macro F1"), (OrderedScore, "quadratic kappa"), (LabelScore, "macro F1")],
)
def test_several_classes_add_bars_and_confused_pairs(kind, third, tmp_path):
    if kind is LabelScore:
        outcomes = LabelOutcomes.of([("a", "b"), ("c",)], [("a",), ("b",)], "abc", np.full((2, 3), 0.4))
        score, main, n = kind(), "micro F1", 3
        score.update(outcomes)
    else:
        score, main, n = of_classes(kind), "accuracy", 21
    # A curve that begins with two classes.
    figure = draw([*curve[:5], score.row(0.1)], "stream", score)
    drawn = [axis for part in figure.subfigs for axis in part.axes]
    above, diagram, classes, pairs = drawn
    names = [line.get_label().rsplit(" ", 1)[0] for line in above.get_lines()]
    assert names == [main, "newest 1,000", third, "exact matches"][: 4 if kind is LabelScore else 3]
    assert len(classes.patches) == n
    widths = [bar.get_width() for bar in classes.patches[: min(n, 20)]]
    assert widths == pytest.approx([row.f1 for row in score.of_classes(20)])
    if n == 21:
        assert classes.get_yticklabels()[-1].get_text() == "6 others"
    confused = score.confused(15)
    assert [bar.get_width() for bar in pairs.patches] == [pair.count for pair in confused]
    assert pairs.texts[0].get_text().strip().startswith(f"{confused[0].count}  ")
    assert diagram.get_title("left").startswith("calibration error")
    for name, given in (("some.png", score), ("none.png", kind())):
        save([score.row(0.1)], tmp_path / name, "stream", given)
        assert (tmp_path / name).stat().st_size > 1_000


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [ScoreRow(1, 0.0, math.nan, math.nan, math.nan, 0.7, 0.0, 0.1)],
        [ScoreRow(n, 1.0, math.nan, math.nan, math.nan, 0.0, 1.0, 0.1) for n in (50, 60)],
    ],
)
def test_curves_with_nothing_to_show(rows, tmp_path):
    save(rows, tmp_path / "curve.png", title="")
    assert (tmp_path / "curve.png").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("name", "magic"),
    [("a.png", b"\x89PNG"), ("a", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")],
)
def test_file_types(name, magic, tmp_path):
    save(curve, tmp_path / name, title="stream")
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_another_file_type_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a\.xyz ends in none of \.png, \.svg, \.pdf"):
        save(curve, tmp_path / "a.xyz", title="stream")
    assert not (tmp_path / "a.xyz").exists()


def test_without_matplotlib_the_message_tells_what_to_install():
    script = "import sys; sys.modules['matplotlib'] = None; import stream_pegasos.evaluation.plot"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert f"ImportError: drawing needs matplotlib: {sys.executable} -m pip install 'matplotlib>=" in done.stderr
