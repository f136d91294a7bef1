import math
import subprocess
import sys

import numpy as np
import pytest
from outcomes import of_classes, of_two

from stream_pegasos.evaluation.label_scores import LabelOutcomes, LabelScore
from stream_pegasos.evaluation.metric_names import ScoreRow
from stream_pegasos.evaluation.scores import OrderedScore, PrequentialScore

pytest.importorskip("matplotlib")

from stream_pegasos.evaluation.plot import draw, write


def row(n, **figures):
    return ScoreRow(*[math.nan] * len(ScoreRow._fields))._replace(n=n, **figures)


curve = [
    row(n, accuracy=0.9, macro_f1=0.7, roc_auc=0.95, window_accuracy=1 - 1 / n, seconds=0.1)
    for n in range(50, 5_001, 50)
]


def lines(figure):
    return {line.get_label(): line for line in figure.axes[0].get_lines()}


def test_lines_hold_the_curve():
    figure = draw(curve, title="my $stream_1$")
    assert list(lines(figure)) == ["accuracy 90.0%", "newest 1,000 100.0%", "macro F1 70.0%", "ROC AUC 95.0%"]
    assert list(lines(figure)["newest 1,000 100.0%"].get_xdata()) == [row.n for row in curve]
    assert list(lines(figure)["newest 1,000 100.0%"].get_ydata()) == [1 - 1 / row.n for row in curve]
    assert figure.axes[0].get_title("left") == "my $stream_1$"
    low, high = figure.axes[0].get_ylim()
    assert low < 0.9
    assert high >= 1.0


def test_a_positive_class_has_the_reliability_diagram_of_its_probability():
    score = PrequentialScore()
    score.update(of_two([True, False, True, True] * 15, [-1, -0.9, 2, 3] * 15, [0.22, 0.28, 0.9, 0.98] * 15))
    score.update(of_two([False] * 29, [0] * 29, [0.55] * 29))  # too few to be drawn
    diagram = draw(curve, "stream", score).axes[1]
    drawn = diagram.get_lines()[1]
    assert drawn.get_xdata()[[2, 9]].tolist() == pytest.approx([0.25, 0.94])
    assert drawn.get_ydata()[[2, 9]].tolist() == [0.5, 1.0]
    assert np.isfinite(drawn.get_ydata()).sum() == 2
    # (30 · 0.25 + 30 · 0.06 + 29 · 0.55) / 89
    assert diagram.get_title("left") == "calibration error 0.2837"
    assert diagram.get_ylabel() == "share of positive examples"


def of_many_classes(kind, n=26):
    labels = [f"$l_{i}$ 中 " + "x" * 40 for i in range(n)] if kind is not OrderedScore else list(range(n))
    truths = [label for i, label in enumerate(labels) for _ in range(2 + i)]
    score = kind()
    score.update(of_classes(truths, [labels[0], *truths[:-1]], [0.5] * len(truths)))
    return score


def of_labels():
    score = LabelScore()
    score.update(LabelOutcomes.of([("a", "b"), ("c",)], [("a",), ("b",)], "abc", np.full((2, 3), 0.4)))
    return score


def of_two_classes():
    score = PrequentialScore()
    score.update(of_two([True, False, False, True], [-1, 0.5, -1, 3], [0.2, 0.6, 0.2, 0.9]))
    return score


@pytest.mark.parametrize(
    ("score", "names"),
    [
        (of_two_classes(), ["accuracy", "newest 1,000", "macro F1", "ROC AUC"]),
        (of_many_classes(PrequentialScore), ["accuracy", "newest 1,000", "macro F1"]),
        (of_many_classes(OrderedScore), ["accuracy", "newest 1,000", "quadratic kappa"]),
        (of_labels(), ["micro F1", "newest 1,000", "macro F1", "exact matches"]),
    ],
)
def test_a_score_adds_its_classes_and_those_that_were_confused(score, names, tmp_path):
    figure = draw([score.row(0.1)], "stream", score)
    above, _, *below = [axis for part in figure.subfigs or [figure] for axis in part.axes]
    assert [line.get_label().rsplit(" ", 1)[0] for line in above.get_lines()] == names
    n = len(score.tally)
    if n == 2:  # whose precision and recall say no more than the curve
        assert not below
        return
    classes, pairs = below
    assert len(classes.patches) == min(n, 21)
    widths = [bar.get_width() for bar in classes.patches[: min(n, 20)]]
    assert widths == pytest.approx([row.f1 for row in score.class_rows(20)])
    if n > 20:
        assert classes.get_yticklabels()[-1].get_text() == "6 others"
    confused = score.confused(15)
    assert [bar.get_width() for bar in pairs.patches] == [pair.count for pair in confused]
    assert pairs.texts[0].get_text().strip().startswith(f"{confused[0].count}  ")
    write(draw([score.row(0.1)], "stream", type(score)()), tmp_path / "none.svg")
    assert "calibration error" in (tmp_path / "none.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row(1, accuracy=0.0, log_loss=0.7, window_accuracy=0.0)],
        [row(n, accuracy=1.0, log_loss=0.0, window_accuracy=1.0) for n in (50, 60)],
    ],
)
def test_curves_with_nothing_to_show(rows, tmp_path):
    write(draw(rows, title=""), tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("name", "magic"), [("a.png", b"\x89PNG"), ("a", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")]
)
def test_file_types(name, magic, tmp_path):
    write(draw(curve, title="stream"), tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_another_file_type_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a\.xyz must end in one of \.png, \.svg, \.pdf"):
        write(draw(curve, title="stream"), tmp_path / "a.xyz")
    assert not (tmp_path / "a.xyz").exists()


def test_without_matplotlib_the_message_tells_what_to_install():
    script = "import sys; sys.modules['matplotlib'] = None; import stream_pegasos.evaluation.plot"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        encoding="utf-8",
    )
    assert f"ImportError: drawing needs matplotlib: {sys.executable} -m pip install 'matplotlib>=" in done.stderr


@pytest.mark.filterwarnings("ignore:Glyph")
def test_what_happens_is_marked_and_names_cover_nothing():
    figure = draw(curve, "stream", of_many_classes(PrequentialScore), {2_500: "words change"})
    figure.draw_without_rendering()
    above, classes = figure.subfigs[0].axes[0], figure.subfigs[1].axes[0]
    assert above.get_lines()[-1].get_xdata()[0] == 2_500 and above.texts[0].get_text() == "words change"
    for axes in (above, classes):
        legend = axes.get_legend().get_window_extent()
        assert not legend.overlaps(axes.get_window_extent()) and not legend.overlaps(
            axes._left_title.get_window_extent()
        )
