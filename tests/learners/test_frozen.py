"""Models that predict in a few bytes a feature, beside those that they were frozen from."""

import copy
import gzip
import json
import multiprocessing
import os
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kinds import ordered, several_classes, several_labels
from messages import messages

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    FrozenTextClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.learners import files
from stream_pegasos.learners.freezing import FEATURE_ARRAYS

DATA = Path(os.environ.get("STREAM_PEGASOS_DATA", Path(__file__).parents[3] / "shared" / "data"))
MARGIN = 1e-2  # what a margin may differ by


def two_classes(**options):
    return TextClassifier(classifier=AdaptiveClassifier(**options))


def limited():
    return two_classes(pos_label="spam", threshold=0.7, max_false_positive_rate=0.05)


MODELS = {
    "two classes": (two_classes, lambda i, label: label),
    "a limit": (limited, lambda i, label: label),
    "no scales": (lambda: two_classes(naive_bayes=False), lambda i, label: label),
    "steep": (lambda: two_classes(learning_rate=1e6, fit_intercept=False), lambda i, label: label),
    "several classes": (several_classes, lambda i, label: f"{label}{i % 3}"),
    "thresholds": (lambda: two_classes(threshold={"spam1": 0.3}), lambda i, label: f"{label}{i % 3}"),
    "ordered": (ordered, lambda i, label: i % 2 + 2 * (label == "spam")),
    "several labels": (several_labels, lambda i, label: [label, f"number {i % 3}"][i % 4 == 0 :]),
}


def learned(which, n=300):
    make, label_of = MODELS[which]
    model = make()
    X, y = zip(*messages(n), strict=True)
    model.learn_many(X, [label_of(i, label) for i, label in enumerate(y)])
    return model


def check_same(frozen, model, texts, margin=MARGIN):
    ours, theirs = frozen.predictions(texts), model.predictions(texts)
    assert frozen.classes == model.classes and ours.classes == theirs.classes
    largest = np.abs(theirs.scores).max(initial=0.0)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-3, atol=margin * max(1.0, largest / 10.0))
    np.testing.assert_allclose(ours.probabilities, theirs.probabilities, atol=margin)
    differ = [a != b for a, b in zip(ours.labels.tolist(), theirs.labels.tolist(), strict=True)]
    assert sum(differ) <= 1e-4 * len(texts)


TEXTS = [text for text, _ in messages(200, seed=1)] + ["", "never seen", "cheap \ud800"]


@pytest.mark.parametrize("which", MODELS)
def test_it_predicts_as_the_model_does(which, path):
    model = learned(which)
    model.freeze().save(path)
    for frozen in (model.freeze(), stream_pegasos.load(path), FrozenTextClassifier.load(path)):
        check_same(frozen, model, TEXTS)
        said = frozen.predictions(TEXTS)
        for text, label in zip(TEXTS, said.labels.tolist(), strict=True):
            one = frozen.predict_one(text)
            assert (tuple(of for of, holds in one.items() if holds) if isinstance(one, dict) else one) == label
        assert frozen.n_features == model.n_features and frozen.n_learned == model.n_learned
        for threads in (2, 3):
            assert (frozen.predictions(TEXTS * 20, threads).scores == frozen.predictions(TEXTS * 20).scores).all()


@given(st.lists(st.text()), st.sampled_from(sorted(MODELS)))
@example(["A/0:;<"], "steep")
def test_any_text_is_predicted_as_the_model_does(texts, which):
    model, frozen = FROZEN.setdefault(which, None) or FROZEN.update({which: pair(which)}) or FROZEN[which]
    if which == "steep":  # where large weights of either sign leave more than the margin shows
        sizes = [sum(map(abs, model.explain_one(text).values())) for text in texts]
        margins = [each.decision_function_many(texts) for each in (frozen, model)]
        # A weight, a scale and with the scales the norm are each off by up to half a unit in the last of 11 bits.
        most = (1.0 + 2.0**-11) ** 2 / (1.0 - 2.0**-11) - 1.0
        assert (np.abs(margins[0] - margins[1]) <= MARGIN + most * np.array(sizes)).all()
    else:
        check_same(frozen, model, texts)


FROZEN = {}


def pair(which):
    model = learned(which)
    return model, model.freeze()


@pytest.mark.parametrize("which", ["two classes", "several classes", "several labels", "ordered"])
def test_weights_and_explanations_are_those_of_the_model(which):
    model = learned(which)
    frozen = model.freeze()
    ours, theirs = frozen.explain_one("cheap pills at lunch"), model.explain_one("cheap pills at lunch")
    assert ours.keys() <= theirs.keys()
    for ngram, contribution in theirs.items():
        assert ours.get(ngram, 0.0) == pytest.approx(contribution, abs=2e-3)
    keys = np.sort(model.classifier.weights_of(np.arange(10)).shape)  # columns alike, whatever the keys
    assert (np.sort(frozen.classifier.weights_of(np.arange(10)).shape) == keys).all()
    weights, of_frozen = model.weights, frozen.weights
    if which == "two classes" or which == "ordered":
        weights, of_frozen = {0: weights}, {0: of_frozen}
    for column, by_key in weights.items():
        largest = max(map(abs, by_key.values()), default=0.0)
        for key, weight in by_key.items():
            assert of_frozen[column].get(key, 0.0) == pytest.approx(weight, rel=2e-3, abs=2e-3 * largest + 2e-3)


def test_two_classes_take_ten_bytes_a_feature():
    model = two_classes()
    words = ["".join(chr(97 + int(digit)) for digit in str(i * i)) for i in range(20_000)]
    model.learn_many([" ".join(words[i::500]) for i in range(500)], [i % 3 == 0 for i in range(500)])
    arrays, _, _ = model.freeze().to_state()
    assert model.n_features > 10_000
    assert sum(arrays[name].nbytes for name in FEATURE_ARRAYS) <= 10 * model.n_features


def test_what_one_message_alone_had_is_kept_once():
    model = several_classes()
    model.learn_many(["a b", "c d", "e f", " ".join(f"once{i}" for i in range(1_000))], [1, 2, 3, 1])
    arrays, _, _ = model.freeze().to_state()
    assert len(arrays["records"]) < 100


@pytest.mark.parametrize("which", ["two classes", "several classes", "ordered", "several labels"])
def test_it_refuses_to_learn(which):
    frozen = learned(which).freeze()
    before = frozen.decision_function_many(TEXTS)
    for refused in (
        lambda: frozen.learn_one("x", "ham"),
        lambda: frozen.learn_many(["x"], ["ham"]),
        lambda: frozen.learn_many([], []),
        lambda: frozen.predict_learn_many(["x"], ["new"]),
        lambda: frozen.check_labels(["ham"]),
        lambda: frozen.set_decision(0.3),
    ):
        with pytest.raises(TypeError, match=r"a frozen model (only predicts|keeps)"):
            refused()
    frozen.flush()
    assert (frozen.decision_function_many(TEXTS) == before).all()
    assert frozen.freeze() is frozen


@pytest.mark.parametrize("classifier", [PegasosClassifier(), KernelPegasosClassifier()])
def test_what_cannot_be_frozen_says_so(classifier):
    model = TextClassifier(HashedBagOfWords(), classifier)
    with pytest.raises(TypeError, match="cannot be frozen; AdaptiveClassifier can"):
        model.freeze()


def test_names_cannot_be_frozen():
    model = AdaptiveClassifier()
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(TypeError, match="only hashed features"):
        model.frozen()


def test_nothing_learned_is_frozen_too(path):
    for make, _ in MODELS.values():
        make().freeze().save(path)
        frozen = stream_pegasos.load(path)
        assert frozen.predict_one("x") == make().predict_one("x")
        assert frozen.predict_proba_one("x") == make().predict_proba_one("x")


def test_the_model_stays_as_it_is():
    model = learned("two classes")
    before = pickle.dumps(model)
    frozen = model.freeze()
    assert pickle.dumps(model) == before
    margin = frozen.decision_function_one("cheap pills")
    model.learn_many(["cheap pills"] * 50, ["ham"] * 50)
    assert frozen.decision_function_one("cheap pills") == margin


def test_copies_and_pickles_predict_the_same(path):
    learned("several classes").freeze().save(path)
    frozen = stream_pegasos.load(path)
    wanted = frozen.decision_function_many(TEXTS)
    for other in (copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen)), frozen.clone()):
        assert (other.decision_function_many(TEXTS) == wanted).all()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert (pool.submit(frozen.decision_function_many, TEXTS).result() == wanted).all()
    again = path.with_name("again")
    frozen.save(again)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_file_is_mapped(path):
    learned("two classes").freeze().save(path)
    frozen = stream_pegasos.load(path)
    lines = Path("/proc/self/maps").read_text().splitlines()
    (line,) = [line for line in lines if line.endswith(str(path))]
    assert line.split()[1].startswith("r-")  # nobody can write there
    arrays, _, _ = frozen.to_state()
    first, last = (int(end, 16) for end in line.split()[0].split("-"))
    for name in FEATURE_ARRAYS:
        assert first <= arrays[name].ctypes.data < last and not arrays[name].flags.writeable
    path.unlink()
    check_same(frozen, learned("two classes"), TEXTS)  # what is mapped stays


@pytest.mark.parametrize("which", ["two classes", "several classes", "ordered"])
def test_no_number_in_a_file_leads_out_of_it(which, path):
    """The words of features are not looked at before they are used."""
    learned(which).freeze().save(path)
    content = path.read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:size])
    generator = np.random.default_rng(0)
    for i in range(27):
        forged = bytearray(content)
        for name in FEATURE_ARRAYS:
            begin, end = (size + offset for offset in header[name]["data_offsets"])
            words = np.frombuffer(forged, np.uint32, (end - begin) // 4, begin)
            kind = (lambda n: generator.integers(0, 1 << 32, n), np.zeros, lambda n: np.full(n, 0xFFFFFFFF))[i % 3]
            made = kind(len(words)).astype(np.uint32)
            words[:] = np.where(generator.random(len(words)) < (0.1, 0.5, 1.0)[i // 3 % 3], made, words)
        path.write_bytes(forged)
        frozen = stream_pegasos.load(path)
        assert not np.isnan(frozen.predictions(TEXTS).probabilities).any()
        frozen.explain_one("cheap pills")
        frozen.classifier.weights_of(np.arange(100))


@pytest.mark.parametrize("name", ["multiplier", "longest", "unit", "n_features"])
@pytest.mark.parametrize("value", [-1, 1e308, "x", None])
def test_numbers_that_no_file_has_are_refused(name, value, path):
    frozen = learned("two classes").freeze()
    snapshot = frozen.snapshot()
    snapshot.values["classifier"]["frozen"][name] = value
    snapshot.write(path)
    with pytest.raises(ValueError, match="is damaged"):
        stream_pegasos.load(path)


@pytest.mark.parametrize("n", [0, 1, 15])
def test_a_table_without_room_is_refused(n, path):
    snapshot = learned("two classes").freeze().snapshot()
    snapshot.arrays["table"] = snapshot.arrays["table"][:n]
    snapshot.write(path)
    with pytest.raises(ValueError, match="is damaged"):
        stream_pegasos.load(path)


@pytest.mark.parametrize(
    "name, which",
    [
        ("sms_spam", "two classes"),
        ("rt_polarity", "two classes"),
        ("waimai_zh", "two classes"),
        ("banking77", "several classes"),
    ],
)
def test_on_real_streams_it_keeps_its_promise(name, which):
    file = DATA / f"{name}.jsonl.gz"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    X, half = [row["text"] for row in rows], len(rows) // 2
    model = MODELS[which][0]()
    model.learn_many(X[:half], [row["label"] for row in rows[:half]])
    frozen = model.freeze()
    np.testing.assert_allclose(
        frozen.decision_function_many(X[half:]), model.decision_function_many(X[half:]), atol=MARGIN
    )
    assert (frozen.predict_many(X[half:]) == model.predict_many(X[half:])).mean() >= 0.9999


@pytest.mark.skipif(os.name != "posix", reason="elsewhere nobody can replace a file that is open")
def test_a_file_that_is_replaced_while_it_is_read_is_read_as_it_was(path, monkeypatch):
    model, other = learned("two classes"), learned("two classes")
    for _ in range(50):
        other.learn_one("cheap pills", "ham")
    model.freeze().save(path)
    other.freeze().save(f"{path}.new")
    read_safetensors = files.read_safetensors

    def exchanged(file):
        found = read_safetensors(file)
        os.replace(f"{path}.new", path)
        return found

    monkeypatch.setattr(files, "read_safetensors", exchanged)
    loaded = stream_pegasos.load(path)
    assert loaded.predict_proba_one("cheap pills") == model.freeze().predict_proba_one("cheap pills")
    assert loaded.predict_proba_one("cheap pills") != other.freeze().predict_proba_one("cheap pills")
