"""What the scripts in tests/benchmarks compute, against values derived another way."""

import copy
import gzip
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import accuracy
import drift
import labels
import memory
import merging
import numpy as np
import pytest
import several
import split
import teaching
import tuning
import vectors
from peers import CHARACTERS, is_chinese, late_vowpal_wabbit, words_by_jieba, write_vowpal_wabbit
from river import evaluate, feature_extraction, linear_model, metrics, naive_bayes
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    merge,
)
from stream_pegasos.evaluation import prequential
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.heavy

STREAM = list(synthetic(n=300, seed=1))


@pytest.fixture
def stream_file(tmp_path):
    path = tmp_path / "mail.jsonl.gz"
    lines = [json.dumps({"text": text, "label": label}) for text, label in STREAM]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def rows(monkeypatch, capsys, *options):
    """The cells that the script prints of its Markdown table, by the first one."""
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--markdown", *map(str, options)])
    accuracy.main()
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in lines}


def auc(labels, scores):
    """The share of the pairs of a positive and a negative message that are in order, ties counting half."""
    positive, negative = np.array(scores)[labels], np.array(scores)[~labels]
    differences = positive[:, None] - negative
    return np.mean((differences > 0.0) + 0.5 * (differences == 0.0))


def test_table_has_the_figures_of_plain_loops(stream_file, monkeypatch, capsys):
    table = rows(monkeypatch, capsys, "--stream", f"{stream_file}:spam", "--only", "ours,river")
    assert len(table) == 1 + len(accuracy.VARIANTS) + len(accuracy.RIVER)

    labels = np.array([label == "spam" for _, label in STREAM])
    model = HashedBagOfWords() | PegasosClassifier()
    margins, probabilities = [], []
    for (text, _), label in zip(STREAM, labels, strict=True):
        x = model["HashedBagOfWords"].transform_one(text)
        margins.append(model["PegasosClassifier"].decision_function_one(x))
        probabilities.append(model.predict_proba_one(text)[True])
        model.learn_one(text, bool(label))
    of_label = np.where(labels, probabilities, 1.0 - np.array(probabilities))
    share, error, loss, _, speed = table["ours: Pegasos as published, words"]
    assert float(share) == pytest.approx(np.mean((np.array(margins) > 0.0) == labels), abs=1e-4)
    assert float(error) == pytest.approx(100.0 * (1.0 - auc(labels, margins)), abs=1e-3)
    assert float(loss) == pytest.approx(-np.mean(np.log(np.clip(of_label, 1e-6, 1.0 - 1e-6))), abs=1e-4)
    assert int(speed.replace(",", "")) > 0

    river = evaluate.progressive_val_score(
        [(text, label == "spam") for text, label in STREAM],
        feature_extraction.BagOfWords() | linear_model.PAClassifier(),
        metrics.Accuracy(),
    )
    assert float(table["River: PAClassifier"][0]) == pytest.approx(river.get(), abs=1e-4)


def test_limit_takes_the_first_messages(stream_file, monkeypatch, capsys):
    whole = rows(monkeypatch, capsys, "--stream", stream_file, "--only", "river", "--limit", 100)
    stream_file.write_bytes(gzip.compress(b"\n".join(gzip.decompress(stream_file.read_bytes()).splitlines()[:100])))
    part = rows(monkeypatch, capsys, "--stream", stream_file, "--only", "river")
    assert [cells[:-1] for cells in whole.values()] == [cells[:-1] for cells in part.values()]


def test_positive_label_is_the_one_named(stream_file):
    labels = [label for _, label in STREAM]
    for name in ("ham", "spam"):
        stream = accuracy.read_stream(f"{stream_file}:{name}")
        assert stream.texts == [text for text, _ in STREAM]
        assert stream.labels.tolist() == [label == name for label in labels]
    met = list(dict.fromkeys(labels))
    assert accuracy.read_stream(str(stream_file)).labels.tolist() == [label == met[1] for label in labels]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{}:eggs", "mail.jsonl.gz: 300 messages of one class only"),
        ("{}.jsonl", "No such file"),
        ("{}.jsonl:spam", "No such file"),
    ],
)
def test_stream_that_cannot_be_used(stream_file, monkeypatch, given, message):
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "--stream", given.format(stream_file)])
    with pytest.raises(SystemExit, match=message):
        accuracy.main()


def test_calibration_error_by_hand():
    # Below 0.1 two, mean 0.05, none positive; 0.35 alone, positive; from 0.9 up three, mean 0.95, two positive.
    probabilities = np.array([0.02, 0.08, 0.35, 0.9, 0.95, 1.0])
    labels = np.array([False, False, True, True, False, True])
    expected = (2 * 0.05 + 1 * 0.65 + 3 * (0.95 - 2 / 3)) / 6
    assert accuracy.expected_calibration_error(probabilities, labels) == pytest.approx(expected)
    assert accuracy.expected_calibration_error(np.array([0.0, 1.0]), np.array([False, True])) == 0.0
    assert accuracy.expected_calibration_error(np.array([0.0, 1.0]), np.array([True, False])) == 1.0


def test_log_odds_tell_rounded_probabilities_apart():
    odds = accuracy.log_odds(np.array([[0.25, 0.75], [1e-40, 1.0], [1e-50, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    np.testing.assert_allclose(odds[:3], [np.log(3.0), 40 * np.log(10.0), 50 * np.log(10.0)])
    assert odds[3] == -odds[4]
    assert np.isfinite(odds).all()


def test_batches_are_predicted_before_they_are_learned():
    texts, labels = [text for text, _ in STREAM], np.array([label == "spam" for _, label in STREAM])
    answers = accuracy.in_batches(SGDClassifier(random_state=0), HashingVectorizer(), texts, labels)
    X, model = HashingVectorizer().transform(texts), SGDClassifier(random_state=0)
    model.partial_fit(X[:100], labels[:100], [False, True])
    second = model.decision_function(X[100:200])
    model.partial_fit(X[100:200], labels[100:200])
    np.testing.assert_array_equal(answers, [*[0.0] * 100, *second, *model.decision_function(X[200:])])


def test_vowpal_wabbit_gets_words_only(tmp_path):
    path = tmp_path / "messages.vw"
    write_vowpal_wabbit(path, ["Win a|b PRIZE:10\nnow", "", "É \ud800cole", "see"], [1, -1, 2, ""])
    assert path.read_text(encoding="utf-8") == "1 | win prize 10 now\n-1 | \n2 | cole\n | see\n"


def test_vowpal_wabbit_gets_chinese_by_its_characters(tmp_path):
    path = tmp_path / "messages.vw"
    write_vowpal_wabbit(path, ["好吃。WiFi很快,3个|a:b", "Win a prize"], [1, -1], CHARACTERS)
    assert path.read_text(encoding="utf-8") == "1 | 好 吃 wifi 很 快 3 个 a b\n-1 | win a prize\n"


def test_chinese_is_given_to_peers_by_jieba_too(tmp_path, monkeypatch, capsys):
    pytest.importorskip("jieba")
    begin = {"spam": "太难吃了。", "ham": "我们很喜欢。"}
    texts = [begin[label] + text for text, label in STREAM]
    assert is_chinese(texts) and not is_chinese(TEXTS)
    path = tmp_path / "stream.jsonl"
    path.write_text("\n".join(json.dumps({"text": t, "label": y}) for t, (_, y) in zip(texts, STREAM, strict=True)))

    table = rows(monkeypatch, capsys, "--stream", f"{path}:spam", "--only", "river,sklearn")
    assert len(table) == 1 + 2 * (len(accuracy.RIVER) + len(accuracy.SCIKIT_LEARN))
    assert words_by_jieba("我们很喜欢。Win a PRIZE") == ["我们", "很", "喜欢", "。", "win", "a", "prize"]
    vectorizer = HashingVectorizer(tokenizer=words_by_jieba, token_pattern=None)
    margins = accuracy.in_batches(SGDClassifier(random_state=0), vectorizer, texts, IS_SPAM)
    share = np.mean((margins > 0.0) == IS_SPAM)
    assert float(table["scikit-learn: SGDClassifier, hinge, words by jieba"][0]) == pytest.approx(share, abs=1e-4)

    table = rows(monkeypatch, capsys, "--split", "--stream", path)
    assert {*split.OF_CHINESE} < table.keys()


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


def test_labels_swap_half_way():
    stream = drift.swapped(RECORDS)
    assert stream.texts == TEXTS
    assert stream.labels.tolist() == [*IS_SPAM[:150], *~IS_SPAM[150:]]
    assert stream.swap == 150


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


def test_messages_in_order_of_date():
    stream = drift.by_date(RECORDS)
    order = sorted(range(300), key=lambda i: (7 * i % 28, i))
    assert stream.texts == [TEXTS[i] for i in order]
    assert stream.labels.tolist() == IS_SPAM[order].tolist()


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


def test_drift_prints_tables_and_draws(tmp_path, monkeypatch, capsys):
    figure = tmp_path / "drift.png"
    monkeypatch.setattr(drift, "NEWEST", 50)
    monkeypatch.setattr(drift, "read_records", lambda name: RECORDS)
    monkeypatch.setattr(sys, "argv", ["drift.py", "--markdown", "--figure", str(figure)])
    drift.main()
    assert figure.read_bytes().startswith(b"\x89PNG")
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    tables = np.array([row for row in cells if row[0] != "whole stream"]).reshape(3, -1, 5)
    assert "ours" in tables[0, :, 0]
    for table, stream in zip(tables, (drift.swapped, drift.replaced, drift.by_date), strict=True):
        _, texts, truth, _ = stream(RECORDS)
        expected = {
            "the label of the message before": np.append(False, truth[:-1]),
            "ours": TextClassifier().predict_learn_many(texts, truth).scores > 0.0,
            "River: MultinomialNB": labels.river(texts, truth, 0) > 0.0,
        }
        for name, *row in table:
            if name in expected:
                assert float(row[0]) == pytest.approx(np.mean(expected[name] == truth), abs=1e-4)

    monkeypatch.setattr(sys, "argv", ["drift.py", "--limit", "199"])
    with pytest.raises(SystemExit, match="199 messages: a quarter of the stream must hold 50"):
        drift.main()


# --- several classes, ordered ones, labels that hold together ---------------------------------------------------------

STARS = [min(len(text) // 30, 3) for text, _ in STREAM]
TAGS = [("long",) * (len(text) > 60) + (label,) * (label == "spam") for text, label in STREAM]


@pytest.fixture
def written(tmp_path):
    def write(labels):
        path = tmp_path / "stream.jsonl"
        lines = (json.dumps({"text": t, "label": y}) for (t, _), y in zip(STREAM, labels, strict=True))
        path.write_text("\n".join(lines))
        return path

    return write


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


def test_table_of_several_classes_has_the_figures_of_plain_loops(written, monkeypatch, capsys):
    table = rows(monkeypatch, capsys, "--stream", written(STARS), "--only", "ours,river,sklearn,bogofilter")
    assert len(table) == 1 + sum(map(len, (several.OURS["classes"], several.RIVER, several.SCIKIT_LEARN)))
    model, predicted = TextClassifier(), []
    for text, star in zip(TEXTS, STARS, strict=True):
        predicted.append(model.predict_one(text))
        model.learn_one(text, star)
    assert float(table["ours: TextClassifier()"][0]) == pytest.approx(np.mean(np.array(predicted) == STARS), abs=1e-4)
    river = evaluate.progressive_val_score(
        zip(TEXTS, STARS, strict=True),
        feature_extraction.BagOfWords() | naive_bayes.MultinomialNB(),
        metrics.Accuracy(),
    )
    assert float(table["River: MultinomialNB"][0]) == pytest.approx(river.get(), abs=2 / 300)  # ties
    X, peer = HashingVectorizer(n_features=2**18).transform(TEXTS), SGDClassifier(random_state=0)
    y = [list(dict.fromkeys(STARS)).index(star) for star in STARS]
    said = [0] * 100
    for begin in (100, 200):
        peer.partial_fit(X[begin - 100 : begin], y[begin - 100 : begin], [0, 1, 2, 3])
        said += peer.predict(X[begin : begin + 100]).tolist()
    share = np.mean(np.array(said) == y)
    assert float(table["scikit-learn: SGDClassifier, hinge"][0]) == pytest.approx(share, abs=1e-4)


def test_streams_of_other_kinds_are_told_by_their_labels(written, monkeypatch, capsys):
    table = rows(monkeypatch, capsys, "--stream", written(STARS), "--ordered", "--only", "ours", "--limit", 200)
    said = TextClassifier(classifier=OrdinalClassifier()).predict_learn_many(TEXTS[:200], STARS[:200]).labels.tolist()
    error = np.mean([abs(one - star) for one, star in zip(said[1:], STARS[1:200], strict=True)])
    assert float(table["ours: OrdinalClassifier()"][1]) == pytest.approx(error, abs=1e-4)
    table = rows(monkeypatch, capsys, "--stream", written(TAGS), "--only", "ours,vw,river,sklearn")
    assert 0.5 < float(table["ours: MultiLabelClassifier()"][0]) <= 1.0
    table = rows(monkeypatch, capsys, "--stream", f"{written(STARS)}:3", "--only", "river")
    assert table["accuracy"][0] == "100 (1 - AUC)"


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


def test_split_learns_the_beginning_and_predicts_the_rest(written, monkeypatch, capsys):
    table = rows(monkeypatch, capsys, "--split", "--stream", written(STARS))
    model = TextClassifier()
    model.learn_many(TEXTS[:240], STARS[:240])
    share = np.mean([model.predict_one(text) == star for text, star in zip(TEXTS[240:], STARS[240:], strict=True)])
    assert float(table[split.OURS][0]) == pytest.approx(share, abs=1e-4)
    assert table.pop("stream.jsonl") == ["messages/s"]
    assert all(0.2 < float(cells[0]) <= 1.0 and float(cells[1].replace(",", "")) > 0 for cells in table.values())
    found = {name: (float(accuracy), float(speed.replace(",", ""))) for name, (accuracy, speed) in table.items()}
    assert [line.get_xydata()[0].tolist() for line in split.draw(found, 1).axes[0].lines] == [
        [speed, accuracy] for accuracy, speed in found.values()
    ]
    assert len(table) >= len(split.MODELS) - 2  # two of them may not be installed


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


def test_memory_is_that_of_a_process_of_its_own():
    right, before, after, most = memory.in_a_process_of_its_own(TEXTS, STARS)
    said = TextClassifier().predict_learn_many(TEXTS, STARS).labels
    assert right == np.mean(said == np.array(STARS, object))
    assert 20 < before < after <= most < 300


def test_memory_is_measured_with_150_classes():
    texts, given = memory.composed()
    if not texts:
        pytest.skip("the streams are not there")
    assert (len(texts), len(given), len(set(given))) == (24_000, 24_000, 150)


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


def test_vowpal_wabbit_asked_first_says_what_it_does_while_learning():
    pytest.importorskip("vowpalwabbit")
    for name, answers in accuracy.vowpal_wabbit(TEXTS, IS_SPAM):
        margins = late_vowpal_wabbit(TEXTS, IS_SPAM, accuracy.VOWPAL_WABBIT[name.partition(": ")[2]])
        np.testing.assert_allclose(margins, answers.margins, atol=1e-5)


def test_labels_asked_for_are_those_learned():
    for name, asker in labels.askers(0.5):
        model = TextClassifier()
        margins, learned = labels.learn_asked(model, asker(model, 1), TEXTS, IS_SPAM)
        assert model.n_iterations == learned.sum()
        other = TextClassifier()
        for i, text in enumerate(TEXTS):
            assert margins[i] == other.decision_function_one(text)
            if learned[i]:
                other.learn_one(text, bool(IS_SPAM[i]))
        assert learned.all() if name == "all" else 0.02 < learned.mean() < 0.5


def test_labels_prints_tables(monkeypatch, capsys):
    monkeypatch.setattr(labels, "SETTLED", 50)
    monkeypatch.setattr(labels, "DELAYS", (0, 20))
    monkeypatch.setattr(labels, "SEEDS", range(2))
    monkeypatch.setattr(labels, "known_streams", lambda: [accuracy.Stream("sms_spam", TEXTS, IS_SPAM)])
    monkeypatch.setattr(sys, "argv", ["labels.py", "--markdown"])
    labels.main()
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    table = {name: cells for name, *cells in lines}
    margins = TextClassifier().predict_learn_many(TEXTS, IS_SPAM).scores[50:]
    share, error = map(float, table["ours"][0].split(", "))
    assert share == pytest.approx(np.mean((margins > 0.0) == IS_SPAM[50:]), abs=1e-4)
    assert error == pytest.approx(100.0 * (1.0 - auc(IS_SPAM[50:], margins)), abs=1e-3)
    same = f"{share:.4f}"
    assert table["all"] == ["100.0%", "100.0% to 100.0%", same, f"{same} to {same}", f"{error:.3f}"]


@pytest.mark.parametrize(
    "command, printed",
    [
        (["benchmarks/service.py", "--seconds", "0.3", "--rounds", "1", "--connections", "4"], r"p99 [\d.]+ ms\n$"),
        (["benchmarks/checkpoints.py", "--features", "2000", "--rounds", "1"], r"without one\n$"),
        (["kill.py", "--kills", "2", "--messages", "1000", "--source", "file"], "equal those of an undisturbed run"),
        (["kill.py", "--kills", "20", "--messages", "1000", "--source", "service"], "has learned each message once"),
        (["endless.py", "--minutes", "0.1", "--warm-up", "0.9", "--max-features", "1000"], r"exit code 143\n$"),
    ],
)
def test_script_of_operations_runs(command, printed):
    pytest.importorskip("uvicorn", reason="the extra 'service' is not installed")
    script, *options = command
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / script, *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(printed, done.stdout)


def test_tuning_compares_on_the_half_that_it_did_not_see():
    stream = several.Stream("stars", TEXTS, STARS, "classes")
    found, cost, same, gain, _ = tuning.figures(stream)
    model = TextClassifier()
    wrong = [said != star for said, star in zip(model.predict_learn_many(TEXTS, STARS).labels, STARS, strict=True)]
    half = len(STARS) // 2
    assert (found, cost, same) == ("the defaults", f"{np.mean(wrong[half:]):.4f}", cost)
    assert gain.startswith("+0.0000")


def test_word_vectors_are_compared_over_the_same_orders(tmp_path, monkeypatch, capsys, written):
    numbers = np.random.default_rng(1).normal(size=(len(words(TEXTS)), 5))
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(sorted(words(TEXTS)), numbers, strict=True)]
    (table := tmp_path / "words.vec").write_text("\n".join(lines))

    def absolute_errors(order):
        texts, stars = [TEXTS[i] for i in order], [STARS[i] for i in order]
        for features in (TextFeatures(), TextFeatures(vectors=table)):
            said = TextClassifier(features, OrdinalClassifier()).predict_learn_many(texts, stars).labels
            yield np.mean([abs(one - star) for one, star in zip(said, stars, strict=True) if one is not None])

    monkeypatch.setattr(vectors, "AFTER", (200, 1_000))
    options = ["--stream", written(STARS), "--ordered", "--vectors", table, "--orders", 3, "--markdown"]
    monkeypatch.setattr(sys, "argv", ["vectors.py", *map(str, options)])
    vectors.main()
    row = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    found = np.array([[*absolute_errors(np.random.default_rng(seed).permutation(300)[:200])] for seed in range(3)])
    differences = found[:, 1] - found[:, 0]
    error = np.sqrt(((differences - differences.mean()) ** 2).sum() / 2 / 3)
    without, with_vectors = found.mean(axis=0)
    one, other = absolute_errors(range(300))
    after = f"{without:.4f} → {with_vectors:.4f} ± {error:.4f}"
    assert row == ["stream.jsonl: absolute error", after, "-", f"{one:.4f} → {other:.4f}"]


@pytest.mark.parametrize("passes", [False, True])
def test_labels_asked_for_are_scored_on_the_rest_and_on_what_is_held_out(passes):
    stream = teaching.Stream(*map(list, zip(*STREAM, strict=True)))
    rest, held_out = teaching.taught(stream, "as they come", 0, passes, n_labels=100)
    pool = [example for i, example in enumerate(STREAM, 1) if i % 5]
    model = TextClassifier()
    for text, label in pool[:100]:  # the oldest that waits each time, all of which have come by then
        model.learn_one(text, label)
    for found, examples in ((rest, pool[100:]), (held_out, STREAM[4::5])):
        assert found == np.mean([model.predict_one(text) == label for text, label in examples])


def test_each_way_of_asking_asks_for_each_message_once(monkeypatch):
    stream = teaching.Stream(*map(list, zip(*STREAM, strict=True)))
    learned = []
    monkeypatch.setattr(teaching, "learn", lambda model, stream, message: learned.append(message))
    for strategy in teaching.STRATEGIES:
        learned.clear()
        teaching.taught(stream, strategy, 0, False, n_labels=40)
        assert len(learned) == len(set(learned)) == 40
