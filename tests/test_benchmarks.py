"""What the scripts in tests/benchmarks compute, against values derived another way."""

import gzip
import json
import sys

import accuracy
import numpy as np
import pytest
from peers import write_vowpal_wabbit
from river import evaluate, feature_extraction, linear_model, metrics
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier

from stream_pegasos import HashedBagOfWords, PegasosClassifier
from stream_pegasos.streams import synthetic

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
    write_vowpal_wabbit(path, ["Win a|b PRIZE:10\nnow", "", "É \ud800cole"], [1, -1, 2])
    assert path.read_text(encoding="utf-8") == "1 | win prize 10 now\n-1 | \n2 | cole\n"


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
