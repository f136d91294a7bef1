"""What the scripts in tests/benchmarks compute, against values derived another way."""

import copy
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import accuracy
import drift
import labels
import merging
import numpy as np
import pytest
import several
import split
from peers import CHARACTERS, write_vowpal_wabbit
from sklearn.svm import LinearSVC

from stream_pegasos import (
    AdaptiveClassifier,
    TextClassifier,
    merge,
)
from stream_pegasos.evaluation import prequential
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.heavy

STREAM = list(synthetic(n=300, seed=1))


def auc(labels, scores):
    """The share of the pairs of a positive and a negative message that are in order, ties counting half."""
    positive, negative = np.array(scores)[labels], np.array(scores)[~labels]
    differences = positive[:, None] - negative
    return np.mean((differences > 0.0) + 0.5 * (differences == 0.0))


def test_calibration_error_by_hand():
    # Below 0.1 two, mean 0.05, none positive; 0.35 alone, positive; from 0.9 up three, mean 0.95, two positive.
    probabilities = np.array([0.02, 0.08, 0.35, 0.9, 0.95, 1.0])
    labels = np.array([False, False, True, True, False, True])
    expected = (2 * 0.05 + 1 * 0.65 + 3 * (0.95 - 2 / 3)) / 6
    assert accuracy.expected_calibration_error(probabilities, labels) == pytest.approx(expected)
    assert accuracy.expected_calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0.0
    assert accuracy.expected_calibration_error(np.array([0.0, 1.0]), np.array([True, False])) == 1.0


def test_vowpal_wabbit_gets_words_only(tmp_path):
    path = tmp_path / "messages.vw"
    write_vowpal_wabbit(path, ["Win a|b PRIZE:10\nnow", "", "É \ud800cole", "see"], [1, -1, 2, ""])
    assert path.read_text(encoding="utf-8") == "1 | win prize 10 now\n-1 | \n2 | cole\n | see\n"


def test_vowpal_wabbit_gets_chinese_by_its_characters(tmp_path):
    path = tmp_path / "messages.vw"
    write_vowpal_wabbit(path, ["好吃。WiFi很快,3个|a:b", "Win a prize"], [1, -1], CHARACTERS)
    assert path.read_text(encoding="utf-8") == "1 | 好 吃 wifi 很 快 3 个 a b\n-1 | win a prize\n"


@pytest.mark.parametrize("part", ["vw", "bogofilter"])
def test_peers_answer_before_they_learn(part):
    """The first message finds a model that knows nothing; what it answers does not depend on labels to come."""
    texts, labels = [text for text, _ in STREAM[:40]], np.array([label == "spam" for _, label in STREAM[:40]])
    changed = np.append(labels[:-1], ~labels[-1])
    answers = list(accuracy.PARTS[part](texts, labels))
    if not answers:
        pytest.skip(f"{part} is not installed")
    for (name, one), (_, other) in zip(answers, accuracy.PARTS[part](texts, changed), strict=True):
        assert one.margins[0] == 0.0, name
        assert len(set(one.margins)) > 10
        np.testing.assert_array_equal(one.margins, other.margins)


# --- drift ------------------------------------------------------------------------------------------------------------

RECORDS = [
    {"text": text, "label": label, "date": f"2001-01-{1 + 7 * i % 28:02}"} for i, (text, label) in enumerate(STREAM)
]
TEXTS, IS_SPAM = [text for text, _ in STREAM], np.array([label == "spam" for _, label in STREAM])


def words(texts):
    return {word for text in texts for word in re.findall(r"\w\w+", text.lower())}


def test_words_are_replaced_in_the_middle_half_each_by_one_of_its_own():
    stream = drift.replaced(RECORDS)
    assert stream.texts[:75] == TEXTS[:75]
    assert not words(stream.texts[225:]) & words(TEXTS)
    pairs = set()
    for old, new in zip(TEXTS, stream.texts, strict=True):
        assert re.sub(r"\w\w+", "", old) == re.sub(r"\w\w+", "", new)
        pairs.update(zip(re.findall(r"\w\w+", old.lower()), re.findall(r"\w\w+", new.lower()), strict=True))
    replaced = [(old, new) for old, new in pairs if old != new]
    assert len(replaced) == len({old for old, _ in replaced}) == len({new for _, new in replaced})
    begins = {}
    for i, text in enumerate(stream.texts):
        for word in words([text]) - words(TEXTS):
            begins.setdefault(word, i)
    assert len({begin // 30 for begin in begins.values()}) >= 4
    np.testing.assert_array_equal(stream.labels, IS_SPAM)


def test_recovery_by_hand(monkeypatch):
    monkeypatch.setattr(drift, "NEWEST", 4)
    monkeypatch.setattr(drift, "AS_BEFORE", 0.25)
    right = np.array([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1], bool)
    #                 before the swap: all 4 right; after it 1, 1, 2 and 3 of the newest 4, of which 3 are enough
    assert drift.newest_accuracy(right).tolist() == [0.75, 1.0, 0.75, 0.5, 0.25, 0.25, 0.25, 0.5, 0.75]
    assert drift.messages_to_recover(right, 5) == 7
    assert drift.messages_to_recover(right[:-1], 5) is None
    assert drift.figures(right, 5) == ["0.5833", "0.6667", "0.2500", "7"]
    assert drift.figures(right, None)[-1] == "-"


# --- several classes, ordered ones, labels that hold together ---------------------------------------------------------

STARS = [min(len(text) // 30, 3) for text, _ in STREAM]
TAGS = [("long",) * (len(text) > 60) + (label,) * (label == "spam") for text, label in STREAM]


def test_figures_of_classes_by_hand():
    stream = several.Stream("", [""] * 5, [5, 1, 5, 2, 5], "ordered")
    given = np.array([[0, 0], [1, 0], [0.4, 0.6], [0.8, 0.2], [1 / 4, 3 / 4]])
    answers = several.Answers([None, 5, 5, 1, 5], 2.0, [1, 5], given)
    # Right 2 of 5; F1 of 5: 2 of 3 and 2 of 3; of 1 and 2: 0. New labels: 1/2, 1/2 beside one, 1/3 beside two.
    loss = -np.log([1 / 2, 1 / 2, 0.6, 1 / 3, 3 / 4]).mean()
    # Of those predicted 0 was wrong; 0.6 and 3/4 right, 0.8 wrong.
    error = (0 + 0.4 + 1 / 4 + 0.8) / 4
    # None counts in no absolute error.
    expected = [2 / 5, (4 + 0 + 1 + 0) / 4, 2 / 3 / 3, loss, error]
    assert several.figures_of_classes(answers, stream) == pytest.approx(expected)
    assert several.figures_of_classes(answers._replace(probabilities=None), stream)[-2:] == [None, None]
    shorter = answers._replace(labels=[None, 5, 5], probabilities=given[:3])
    assert several.figures(shorter, stream)[:2] == ["0.3333", "2.0000"]


def test_figures_of_labels_by_hand():
    stream = several.Stream("", [""] * 3, [("a",), (), ("b", "a")], "labels")
    given = np.array([[0, 0], [0.6, 0], [0.9, 0.2]])
    answers = several.Answers([(), ("a",), ("a",)], 1.0, ["a", "b"], given)
    # a: one right, one too many, one missed; b: one missed.
    loss = -np.log([1 / 2, 0.4, 0.9, 0.2]).mean()
    expected = [2 / (2 + 1 + 2), (2 / 4 + 0) / 2, loss, (0.6 + 0.1) / 2]
    assert several.figures_of_labels(answers, stream) == pytest.approx(expected)


@pytest.mark.parametrize("part", several.PARTS)
@pytest.mark.parametrize("kind, truths", [("classes", STARS), ("ordered", STARS), ("labels", TAGS)])
def test_answers_do_not_depend_on_labels_to_come(part, kind, truths):
    """The last label may be another; which labels there are stays the same."""
    other = next(label for label in truths if label != truths[-1])
    stream = several.Stream("", TEXTS, truths, kind)
    answers = list(several.PARTS[part](stream))
    if not answers:
        pytest.skip(f"{part} has no model of this kind, or is not installed")
    for (name, one), (_, changed) in zip(
        answers, several.PARTS[part](stream._replace(labels=[*truths[:-1], other])), strict=True
    ):
        assert one.labels == changed.labels, name
        assert len(one.labels) == 300
        if one.probabilities is not None:
            np.testing.assert_array_equal(one.probabilities, changed.probabilities)


def test_tools_that_read_files_get_words_and_marks(tmp_path):
    split.write_lines(tmp_path, ["Win a|b (10:30)\nnow", "", "好吃。WiFi很É”快"], ["1 |", "2 |", "|"])
    split.write_tokens(tmp_path, "[:upper:]:|", "[:lower:]  ")
    said = [" ".join(line.split()) for line in (tmp_path / "tokens.txt").read_text("utf-8").splitlines()]
    assert said == ["1 | win a b ( 10 30 ) now", "2 |", "| 好 吃 。 wifi 很 É ” 快"]


@pytest.mark.parametrize("beta", [0.25, 1.0])
def test_nbsvm_is_that_of_the_paper(beta, tmp_path):
    """Two classes, dense, with tokens and pairs counted here."""

    def features(text):
        tokens = re.findall(r"\w+|[^\w\s]", text.lower())
        return {*tokens, *pairwise(tokens)}

    sets = [features(text) for text in TEXTS]
    known = sorted(set().union(*sets[:200]), key=str)
    F = np.array([[each in present for each in known] for present in sets], float)
    p, q = 1 + F[:200][IS_SPAM[:200]].sum(axis=0), 1 + F[:200][~IS_SPAM[:200]].sum(axis=0)
    r = np.log(p / np.abs(p).sum() / (q / np.abs(q).sum()))
    svm = LinearSVC(C=1.0, tol=1e-6, max_iter=10_000).fit(F[:200] * r, IS_SPAM[:200])
    w = (1 - beta) * np.abs(svm.coef_).sum() / len(known) + beta * svm.coef_[0]
    margins = (F[200:] * r) @ w + svm.intercept_
    said = np.array(split.nbsvm(beta)(TEXTS[:200], IS_SPAM[:200].tolist(), TEXTS[200:], tmp_path)())
    clear = np.abs(margins) > 0.01
    assert clear.sum() > 90
    np.testing.assert_array_equal(said[clear], margins[clear] > 0.0)


def test_merging_shares_each_batch_out(monkeypatch):
    """Two parts of the second half, each with every other message, and the bound without a merge."""
    monkeypatch.setattr(merging, "FIRST", 150)
    stream = accuracy.Stream("sms_spam", TEXTS, IS_SPAM)
    options = {"half_life": None, "pos_label": True}
    model, margins = merging.in_batches(stream, 2, 150, None)
    bound_model, bound = merging.in_batches(stream, 2, 150, None, is_bound=True)
    base = TextClassifier(classifier=AdaptiveClassifier(**options))
    expected = np.empty(300)
    expected[:150] = base.predict_learn_many(TEXTS[:150], IS_SPAM[:150]).scores
    parts = [copy.deepcopy(base), copy.deepcopy(base)]
    for i, part in enumerate(parts):
        expected[150 + i :: 2] = part.predict_learn_many(TEXTS[150 + i :: 2], IS_SPAM[150 + i :: 2]).scores
    np.testing.assert_array_equal(margins, expected)
    np.testing.assert_array_equal(bound, expected)  # one batch, so that both begin alike
    assert model.weights == merge(base, parts).weights
    base.learn_many(TEXTS[150:], IS_SPAM[150:])
    assert bound_model.weights == base.weights


# --- late and missing labels ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [0, 7, 120])
def test_late_labels_are_those_of_the_package(delay):
    margins = labels.ours(TEXTS, IS_SPAM, delay)
    expected = prequential.evaluate(TextClassifier(), zip(TEXTS, IS_SPAM.tolist(), strict=True), delay=delay)
    assert auc(IS_SPAM, margins) == pytest.approx(expected.score.roc_auc)
    assert not margins[: delay + 1].any()
    if delay == 0:
        np.testing.assert_array_equal(margins, TextClassifier().predict_learn_many(TEXTS, IS_SPAM).scores)


@pytest.mark.parametrize("answer", [labels.ours, labels.vowpal_wabbit, labels.river])
def test_late_labels_are_not_known_before(answer):
    if answer is labels.vowpal_wabbit:
        pytest.importorskip("vowpalwabbit")
    texts, truth = TEXTS[:100], IS_SPAM[:100]
    margins = answer(texts, truth, 20)
    changed = np.append(truth[:-20], ~truth[-20:])
    np.testing.assert_array_equal(margins, answer(texts, changed, 20))
    assert not margins[:21].any()
    assert margins[21:].all()
    changed[79] = not changed[79]  # learned right before the last message is predicted, not a message sooner
    late = answer(texts, changed, 19)
    np.testing.assert_array_equal(late[:99], answer(texts, truth, 19)[:99])
    assert late[99] != answer(texts, truth, 19)[99]


@pytest.mark.parametrize(
    "command, printed",
    [
        (["benchmarks/service.py", "--seconds", "0.3", "--rounds", "1", "--connections", "4"], r"p99 [\d.]+ ms\n$"),
        (["benchmarks/accuracy.py", "--split", "--limit", "150"], r"\n$"),
        (["benchmarks/active_learning.py", "--labels", "20", "--seeds", "1", "--limit", "300"], r"\n$"),
        (["benchmarks/checkpoints.py", "--features", "2000", "--rounds", "1"], r"without one\n$"),
        (["kill.py", "--kills", "2", "--messages", "1000", "--source", "file"], "equal those of an undisturbed run"),
        (["kill.py", "--kills", "20", "--messages", "1000", "--source", "service"], "has learned each message once"),
        (["endless.py", "--minutes", "0.1", "--warm-up", "0.9", "--max-features", "1000"], r"exit code 143\n$"),
    ],
)
def test_script_runs(command, printed):
    pytest.importorskip("uvicorn", reason="the extra 'service' is not installed")
    script, *options = command
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / script, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(printed, done.stdout)
