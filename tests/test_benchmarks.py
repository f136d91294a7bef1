"""What the scripts in tests/benchmarks compute, against values derived another way."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import accuracy
import batch_peers
import coverage
import drift
import figures
import labels
import numpy as np
import page_pictures
import peers
import pictures
import pytest
import teacher
from corpora import Corpus
from sklearn.svm import LinearSVC

from stream_pegasos import TextClassifier
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.heavy

STREAM = list(synthetic(n=300, seed=1))
TEXTS, IS_SPAM = [text for text, _ in STREAM], [label == "spam" for _, label in STREAM]
CORPUS = Corpus("sms_spam", TEXTS, IS_SPAM)
STARS = [min(len(text) // 30, 3) for text in TEXTS]
TAGS = [("long",) * (len(text) > 60) + (label,) * (label == "spam") for text, label in STREAM]
LABELS = {"two classes": IS_SPAM, "classes": STARS, "ordered": STARS, "labels": TAGS}


def test_calibration_error_by_hand():
    # Below 0.1 two, mean 0.05, none positive; 0.35 alone, positive; from 0.9 up three, mean 0.95, two positive.
    found = figures.expected_calibration_error(np.array([0.02, 0.08, 0.35, 0.9, 0.95, 1.0]), [0, 0, 1, 1, 0, 1])
    assert found == pytest.approx((2 * 0.05 + 1 * 0.65 + 3 * (0.95 - 2 / 3)) / 6)


def test_figures_of_classes_by_hand():
    corpus = Corpus("", [""] * 5, [5, 1, 5, 2, 5], "ordered")
    given = np.array([[0, 0, 0], [1, 0, 0], [0.6, 0.4, 0], [0.2, 0.8, 0], [3 / 4, 1 / 4, 0]])
    # Right 2 of 5; F1 of 5: 2 of 3 and 2 of 3; of 1 and 2: 0. New labels: 1/2, 1/2 beside one, 1/3 beside two.
    loss = -np.log([1 / 2, 1 / 2, 0.6, 1 / 3, 3 / 4]).mean()
    # Of those predicted 1 was wrong; 0.6 and 3/4 right, 0.8 wrong.
    error = (1 + 0.4 + 1 / 4 + 0.8) / 4
    expected = [2 / 5, (4 + 0 + 1 + 0) / 4, 2 / 3 / 3, loss, error]  # None counts in no absolute error
    assert figures.figures_of(corpus, [None, 5, 5, 1, 5], given, None) == pytest.approx(expected)


def test_the_least_coverage_and_exchanged_labels_by_hand():
    assert coverage.least(np.arange(1_000) >= 100) == pytest.approx(0.8)
    corpus = coverage.swapped(Corpus("three", [""] * 6, ["a", "b", "c", "a", "b", "c"], "classes"))
    assert corpus.labels == ["a", "b", "c", "b", "c", "a"]
    right, held, sizes = coverage.seen(Corpus("mails", TEXTS, LABELS["labels"], "labels"), 0.9)
    assert (held >= right).mean() > 0.9 and abs(held.mean() - 0.9) < 0.1 and len(sizes) == len(TEXTS)


def test_whom_a_teacher_teaches():
    stream = [(text, str(label)) for text, label in synthetic(400, seed=2)]
    whole = teacher.taught(stream, 1.0, 0.0, 1, teacher.always)
    model, said = TextClassifier(), []
    for text, label in stream:
        said.append(model.predict_one(text) == label)
        model.learn_one(text, label)
    assert whole == np.mean(said[200:])
    for way in teacher.WAYS.values():
        assert 0.4 < teacher.taught(stream, 0.2, 0.1, 1, way) <= 1.0
    assert teacher.taught(stream, 0.2, 1.0, 1) < 0.5  # as it lies
    assert teacher.beside_people(stream, 0.2, 1.0, 1) > 0.5


def test_figures_of_labels_by_hand():
    corpus = Corpus("", [""] * 3, [("a",), (), ("b", "a")], "labels")
    given = np.array([[0, 0], [0.6, 0], [0.9, 0.2]])
    # a: one right, one too many, one missed; b: one missed.
    loss = -np.log([1 / 2, 0.4, 0.9, 0.2]).mean()
    expected = [2 / (2 + 1 + 2), (2 / 4 + 0) / 2, loss, (0.6 + 0.1) / 2]
    assert figures.figures_of(corpus, [(), ("a",), ("a",)], given, None) == pytest.approx(expected)


def test_tools_that_read_files_get_words_only_or_marks_too_and_chinese_by_its_characters(tmp_path):
    path = tmp_path / "messages.vw"
    peers.write_vowpal_wabbit(path, ["Win a|b PRIZE:10\nnow", "", "É \ud800cole", "see"], [1, -1, 2, ""])
    assert path.read_text(encoding="utf-8") == "1 | win prize 10 now\n-1 | \n2 | cole\n | see\n"
    peers.write_vowpal_wabbit(path, ["好吃。WiFi很快,3个|a:b", "Win a prize"], [1, -1], peers.CHARACTERS)
    assert path.read_text(encoding="utf-8") == "1 | 好 吃 wifi 很 快 3 个 a b\n-1 | win a prize\n"
    batch_peers.write_lines(tmp_path, ["Win a|b (10:30)\nnow", "", "好吃。WiFi很É”快"], ["1 |", "2 |", "|"])
    batch_peers.write_tokens(tmp_path, "[:upper:]:|", "[:lower:]  ")
    said = [" ".join(line.split()) for line in (tmp_path / "tokens.txt").read_text("utf-8").splitlines()]
    assert said == ["1 | win a b ( 10 30 ) now", "2 |", "| 好 吃 。 wifi 很 É ” 快"]


@pytest.mark.parametrize("part", accuracy.PARTS)
@pytest.mark.parametrize("kind", LABELS)
def test_answers_do_not_depend_on_labels_to_come(part, kind):
    """The last label may be another; which labels there are stays the same."""
    corpus = Corpus("", TEXTS, LABELS[kind], kind).first(40 if part == "bogofilter" else None)
    other = next(label for label in corpus.labels if label != corpus.labels[-1])
    changed = corpus._replace(labels=[*corpus.labels[:-1], other])
    answers = list(accuracy.PARTS[part](corpus))
    for (name, one), (_, late) in zip(answers, accuracy.PARTS[part](changed), strict=True):
        assert one.labels == late.labels and len(one.labels) == len(corpus.labels), name
        for array, same in ((one.probabilities, late.probabilities), (one.margins, late.margins)):
            np.testing.assert_array_equal(array, same)
        assert kind != "two classes" or one.margins[0] == 0.0, name


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_nbsvm_is_that_of_the_paper(beta, tmp_path):
    """Two classes, dense, with tokens and pairs counted here."""
    tokens = [re.findall(r"\w+|[^\w\s]", text.lower()) for text in TEXTS]
    sets, is_spam = [{*each, *pairwise(each)} for each in tokens], np.array(IS_SPAM[:200])
    known = sorted(set().union(*sets[:200]), key=str)
    F = np.array([[each in present for each in known] for present in sets], float)
    p, q = 1 + F[:200][is_spam].sum(axis=0), 1 + F[:200][~is_spam].sum(axis=0)
    r = np.log(p / np.abs(p).sum() / (q / np.abs(q).sum()))
    svm = LinearSVC(C=1.0, tol=1e-6, max_iter=10_000).fit(F[:200] * r, is_spam)
    w = (1 - beta) * np.abs(svm.coef_).sum() / len(known) + beta * svm.coef_[0]
    margins = (F[200:] * r) @ w + svm.intercept_
    said = np.array(batch_peers.nbsvm(beta)(TEXTS[:200], IS_SPAM[:200], TEXTS[200:], tmp_path)())
    clear = np.abs(margins) > 0.01
    np.testing.assert_array_equal(said[clear], margins[clear] > 0.0)


def test_words_are_replaced_in_the_middle_half_each_by_one_of_its_own():
    texts = drift.replaced([{"text": text, "label": label} for text, label in STREAM]).corpus.texts
    assert texts[:75] == TEXTS[:75]
    find = re.compile(r"\w\w+").findall
    old, new = (find(" ".join(each).lower()) for each in (TEXTS, texts))
    replaced = {pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]}
    assert len(replaced) == len({old for old, _ in replaced}) == len({new for _, new in replaced})
    assert not {*find(" ".join(texts[225:]))} & {*old}


def test_recovery_by_hand(monkeypatch):
    monkeypatch.setattr(drift, "NEWEST", 4)
    monkeypatch.setattr(drift, "AS_BEFORE", 0.25)
    right = np.array([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1], bool)
    # Before the swap all 4 right; after it 1, 1, 2 and 3 of the newest 4, of which 3 are enough.
    assert drift.messages_to_recover(right[:-1], 5) is None
    assert drift.figures(right, 5) == ["0.5833", "0.6667", "7"]
    assert drift.figures(right, None)[-1] == "-"


@pytest.mark.parametrize("answer", [labels.ours, peers.late_vowpal_wabbit, labels.river])
def test_late_labels_are_not_known_before(answer):
    if answer is peers.late_vowpal_wabbit:
        pytest.importorskip("vowpalwabbit")
    corpus = CORPUS.first(100)
    changed = corpus._replace(labels=[*corpus.labels[:79], not corpus.labels[79], *corpus.labels[80:]])
    margins = answer(corpus, 20)
    assert not margins[:21].any() and margins[21:].all()
    # With labels 19 late that of message 79 is learned right before the last message is predicted, not sooner.
    np.testing.assert_array_equal(margins, answer(changed, 20))
    one, other = answer(corpus, 19), answer(changed, 19)
    np.testing.assert_array_equal(one[:99], other[:99])
    assert one[99] != other[99]


@pytest.mark.parametrize(
    "command", ["service.py --seconds 0.3 --rounds 1", "accuracy.py --split --limit 60", "scale.py --messages 10000"]
)
def test_script_runs(command):
    pytest.importorskip("uvicorn", reason="the extra 'service' is not installed")
    script, *options = command.split()
    subprocess.run([sys.executable, Path(__file__).parent / "benchmarks" / script, *options], check=True)


def points_of(seed):
    """Ten models, some of them close together."""
    if seed is None:
        (_, *streams, _), *rows = pictures.table_under("The first 80 % learned, the rest predicted")
        assert len(streams) == 9 and len(rows) == 12
        drawn = [(name, [*map(pictures.number, cells)]) for name, *cells in rows if all(cells)]
        return {name: (np.mean(accuracies), rate) for name, (*accuracies, rate) in drawn}
    rng = np.random.default_rng(seed)
    return {f"a tool with a name {'x' * i}": (rng.uniform(0.7, 0.9), 10 ** rng.uniform(2, 5)) for i in range(8)}


@pytest.mark.parametrize("seed", [None, *range(8)])
def test_no_name_is_nearer_to_another_dot_than_to_its_own(seed):
    points = points_of(seed)
    figure = pictures.draw_speed(points, 9)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    dots = axes.transData.transform([(rate, accuracy) for accuracy, rate in points.values()])
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == [*points]
    for i, box in enumerate(boxes):
        distances = [np.hypot(*(dot - np.clip(dot, box.min, box.max))) for dot in dots]
        assert sorted(distances)[1] > distances[i] == min(distances)
        assert not box.count_overlaps(boxes[:i]) and axes.bbox.containsx(box.x0) and axes.bbox.containsx(box.x1)


def test_every_picture_is_made_by_the_script():
    made = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (pictures, page_pictures))
    examples = sorted(path.name for path in pictures.EXAMPLES.glob("*.png"))
    assert len(examples) >= 8 and [name for name in examples if f'"{name}"' not in made] == []
