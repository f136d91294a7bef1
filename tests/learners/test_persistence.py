import errno
import math
import os
import pickle
import random
import stat
import subprocess
import sys
import textwrap

import numpy as np
import orjson
import pytest
from forging import as_of_old, forge, put_together, state_arrays, take_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from river import drift, optim
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    OrdinalPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.learners import persistence
from stream_pegasos.learners.persistence import load_with_progress, pack, unpack

needs_posix = pytest.mark.skipif(os.name != "posix", reason="this is about POSIX files")

NAMES = ["a", "", "é", "\ud800", "x\udfffy", "\x00", "漢字😀", (), ("b", -3), (1, ("c", ("",))), True, 0, -1]
NAMES += [2**53, -(2**53), 2**60, 2**60 + 1, -(2**60), 2**64, -(2**70), 10**50, 2**53 - 1, 1 - 2**53]


def stream(seed, n=60):
    generator = random.Random(seed)
    for _ in range(n):
        yield {name: generator.gauss(0, 1) for name in generator.sample(NAMES, 6)}, generator.choice(["neg", "pos"])


def texts(seed, n=60):
    generator = random.Random(seed)
    for _ in range(n):
        yield (
            " ".join(generator.choices(["the", "cheap", "pills", "see", "you", "at", "lunch", "é漢字", "İ"], k=5)),
            generator.choice([0, 1]),
        )


CLASSIFIERS = {
    "default": {},
    "batches": {"batch_size": 7, "t0": 0.5, "project": False, "l2": 0.01},
    "intercept": {"fit_intercept": True, "intercept_scaling": 2.5, "l2": 0.1},
    "weights": {"class_weight": {"pos": 3.0, "neg": 0.25}, "pos_label": "neg", "batch_size": 2},
    "average": {"average": 5, "l2": 0.01},
    "weighted average": {"average": "weighted", "batch_size": 7, "fit_intercept": True},
    "violations": {"counter": "violations", "l2": 0.1, "batch_size": 3},
    "first weights": {"initializer": optim.initializers.Normal(sigma=2.0, seed=3), "t0": 20.0, "average": True},
    "first weights without a seed": {"initializer": optim.initializers.Normal(), "t0": 20.0},
}
TEXT_MODELS = {
    "default": {},
    "options": {
        "features": {
            "n_features": 1000,
            "ngram_range": (1, 2),
            "stop_words": frozenset(["the", "\ud800"]),
            "norm": None,
            "binary": True,
            "strip_accents": "unicode",
            "token_pattern": r"(?u)\b\w+\b",
        },
        "classifier": {"batch_size": 4, "fit_intercept": True, "class_weight": {1: 2.0}},
    },
    "list of stop words": {"features": {"stop_words": ["the", "at"], "analyzer": "word", "lowercase": False}},
    "characters": {"features": {"analyzer": "char_wb", "ngram_range": [2, 4], "alternate_sign": False, "norm": "l1"}},
}


def classifier(which, seed=0, n=60):
    model = PegasosClassifier(**CLASSIFIERS[which])
    for x, y in stream(seed, n):
        model.learn_one(x, y)
    return model


def text_model(which, seed=0, n=60):
    parts = TEXT_MODELS[which]
    model = TextClassifier(
        HashedBagOfWords(**parts.get("features", {})), PegasosClassifier(**parts.get("classifier", {}))
    )
    for x, y in texts(seed, n):
        model.learn_one(x, y)
    return model


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def state_of(model):
    """All that a model has learned, and from what, comparable."""
    snapshot = model.snapshot()
    return {name: (array.dtype, array.tolist()) for name, array in snapshot.arrays.items()}, snapshot.values


# --- round trips ------------------------------------------------------------------------------------------------------


def test_labels_keep_their_type(path):
    for labels in ((False, True), (0, 1), ("0", "1"), (1, "one"), (2, 1), ("\ud800", "\x00"), (10**30, -1), ("ham",)):
        model = PegasosClassifier()
        for y in labels:
            model.learn_one({"x": 1.0}, y)
        model.save(path)
        loaded = stream_pegasos.load(path)
        assert loaded.classes == model.classes
        assert list(map(type, loaded.classes)) == list(map(type, model.classes))
        assert loaded.predict_proba_one({}) == model.predict_proba_one({})
        loaded.learn_many([{"x": 1.0}] * len(labels), labels)
        if len(labels) == 2:
            with pytest.raises(ValueError, match="third"):
                loaded.learn_one({"x": 1.0}, "another")


def test_one_met_first_may_still_turn_out_to_be_negative(path):
    model = PegasosClassifier(batch_size=2)
    for _ in range(3):
        model.learn_one({"x": 1.0}, 1)
    model.save(path)
    loaded = stream_pegasos.load(path)
    for made in (model, loaded):
        made.learn_one({"x": -1.0}, 2)
    assert loaded.classes == (1, 2)
    assert state_of(loaded) == state_of(model)


def test_numpy_parameters_can_be_saved(path):
    model = PegasosClassifier(
        l2=np.float64(0.5), batch_size=np.int64(3), project=np.bool_(False), class_weight={np.str_("a"): np.float32(2)}
    )
    model.save(path)
    assert stream_pegasos.load(path).batch_size == 3
    assert stream_pegasos.load(path).class_weight == {"a": 2.0}


def test_models_after_extreme_values_can_be_loaded(path):
    for options in ({"l2": 1e-30, "project": False}, {"l2": 1e30}, {"l2": 1e-30}, {"t0": 1e100}):
        for size in (1e45, 1e-200, 5e-324):
            model = PegasosClassifier(**options)
            for i in range(50):
                model.learn_one({"x": size, "y": -size}, i % 2 == 0, w=1e30 if i % 3 else 1e-300)
            model.save(path)
            assert state_of(stream_pegasos.load(path)) == state_of(model)


packable = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False), st.just("\ud800a")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(), st.text(max_size=2), st.tuples(st.integers())), inner, max_size=3),
        st.frozensets(st.one_of(st.integers(), st.text(max_size=2)), max_size=3),
    ),
    max_leaves=8,
)


def typed(value):
    if isinstance(value, (list, tuple)):
        return type(value), [typed(part) for part in value]
    if isinstance(value, frozenset):
        return type(value), sorted(map(typed, value), key=repr)
    if isinstance(value, dict):
        return type(value), [(typed(key), typed(part)) for key, part in value.items()]
    return type(value), value


@settings(max_examples=300, deadline=None, derandomize=True)
@given(packable)
def test_values_survive_json_with_their_types(value):
    if isinstance(value, float) and not math.isfinite(value):
        return
    assert typed(unpack(orjson.loads(orjson.dumps(pack(value))))) == typed(value) or "inf" in repr(value)


def test_an_int_of_any_size_can_be_a_name(path):
    model = PegasosClassifier()
    model.learn_one({10**6000: 1.0, -(10**6000): 2.0}, True)
    model.save(path)
    assert stream_pegasos.load(path).weights == model.weights


# --- what cannot be saved, and what is no model -----------------------------------------------------------------------


def test_functions_cannot_be_saved(path):
    path.write_bytes(b"old")
    for features in (
        HashedBagOfWords(tokenizer=str.split),
        HashedBagOfWords(preprocessor=lambda text: text),
        HashedBagOfWords(strip_accents=str.upper),
    ):
        with pytest.raises(ValueError, match="cannot be saved"):
            TextClassifier(features).save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        stream_pegasos.load(tmp_path / "missing")
    with pytest.raises(OSError):
        stream_pegasos.load(tmp_path)
    if os.name == "posix" and os.geteuid() != 0:
        (tmp_path / "secret").touch(mode=0)
        with pytest.raises(PermissionError):
            stream_pegasos.load(tmp_path / "secret")


def fails_in_one_line(path, match=None):
    with pytest.raises(ValueError, match=match) as error:
        stream_pegasos.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_other_files_are_no_models(path):
    fails_in_one_line_of = [b"", b"\0", b"\0" * 8, b"\0" * 100, b"{}", b"\xff" * 64, b"hello, world\n" * 20]
    fails_in_one_line_of += [pickle.dumps({"a": 1}), (1 << 62).to_bytes(8, "little") + b"{}" * 50]
    fails_in_one_line_of += [(2).to_bytes(8, "little") + b"{}", safetensors_save({"a": np.ones(3)}, {"format": "pt"})]
    fails_in_one_line_of += [safetensors_save({"a": np.ones(3)}), safetensors_save({})]
    for content in fails_in_one_line_of:
        path.write_bytes(content)
        fails_in_one_line(path)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_random_bytes_are_no_model(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "random"
    for prefix in (b"", len(content).to_bytes(8, "little")):
        path.write_bytes(prefix + content)
        fails_in_one_line(path)


def setting(*where, to):
    def change(arrays, state, header):
        place = state
        for name in where[:-1]:
            place = place[name]
        place[where[-1]] = to

    change.__name__ = f"{'.'.join(map(str, where))}={to!r}"[:60]
    return change


def changing(name, function):
    def change(arrays, state, header):
        arrays[name] = function(arrays[name])

    change.__name__ = name
    return change


def at(name, place, to):
    """Change one number of an array."""

    def change(arrays, state, header):
        arrays[name] = arrays[name].copy()
        arrays[name][place] = to

    change.__name__ = f"{name}[{place}]={to!r}"[:60]
    return change


# What only some states cannot be; what none can be is in the contract of all estimators.
FORGERIES = [
    *(at(name, 0, bad) for name in ("n_iterations", "n_buffered") for bad in (-1, -(1 << 63))),
    *(changing(name, lambda a: a + 0.5) for name in ("n_iterations", "n_buffered")),
    at("n_buffered", 0, 7),  # the batch size
    at("n_buffered", 0, 0),  # with features in the buffer
    *(at("buffer_columns", 0, bad) for bad in (1, -1, 1 << 62)),
    *(at("scale", 0, bad) for bad in (0.0, 1e-300, 1e300)),
    setting("learner", "calibration_squares", to=-1.0),
    *(setting("learner", "slope", to=bad) for bad in (1e300, 0.0, -1.0)),
    setting("learner", to={}),
    setting("parameters", "l2", to=-1.0),
    setting("parameters", "l2", to=None),
    setting("parameters", "l2", to={"tuple": [1.0]}),
    setting("parameters", "batch_size", to=0),
    setting("parameters", "class_weight", to={"dict": [["a", -1.0]]}),
    setting("parameters", "class_weight", to={"dict": [[{"list": []}, 1.0]]}),
    setting("parameters", "pos_label", to=1.5),
    setting("parameters", "pos_label", to="another"),
    setting("parameters", to="l2"),
    setting("labels", to={}),
    setting("labels", "negative", to="pos"),
    setting("labels", "positive", to={"tuple": []}),
    setting("labels", "met", to="yes"),
    setting("labels", to={"negative": None, "positive": None, "met": True}),
    setting("names", to=[]),
    setting("names", 0, to={"tuple": []}),  # twice the same, with another one
    *(
        setting("names", 1, to=bad)
        for bad in (1.5, None, 7, {"list": []}, {"str": "0"}, {"str": "zz"}, {"a": 1, "b": 2})
    ),
    changing("keys", lambda a: a.view(np.uint64)),
    changing("keys", lambda a: a.view(np.int32)),
    changing("keys", lambda a: a.astype(np.int32)),
    changing("keys", lambda a: np.full_like(a, a[0])),
    changing("keys", lambda a: np.where(a == a[0], 1 << 54, a)),
    changing("keys", lambda a: np.where(a == a[0], (1 << 60) + 10_000, a)),
    changing("keys", lambda a: np.where(a == a[0], -(1 << 63), a)),
    changing("values", lambda a: a.view(np.int64)),
    changing("buffer_keys", lambda a: a + (1 << 61)),
    changing("buffer_keys", lambda a: a.reshape(-1, 1)),
    changing("buffer_values", lambda a: a.astype(np.int8)),
    *(lambda arrays, state, header, to=to: to for to in ([], 5, "x", {})),
]


@pytest.mark.parametrize("change", FORGERIES, ids=lambda change: change.__name__)
def test_impossible_states_are_refused(change, path):
    model = classifier("batches", n=60)
    snapshot = model.snapshot()
    assert snapshot.arrays["n_buffered"].tolist() == [4] and len(snapshot.arrays["buffer_keys"])
    model.save(path)
    forge(path, change)
    fails_in_one_line(path)


@pytest.mark.parametrize(
    "which, name, bad",
    [
        *(("average", "sums_scale", bad) for bad in (1e308, math.nan)),
        *(("average", "sums_weight", bad) for bad in (-1.0, 1e308)),
        *(("violations", "n_violations", bad) for bad in (-1, 3)),
        *(("first weights", "initial_scale", bad) for bad in (1.5, "1", None)),
    ],
)
def test_impossible_states_of_the_options_are_refused(which, name, bad, path):
    classifier(which).save(path)
    forge(path, setting("learner", name, to=bad) if name == "initial_scale" else at(name, 0, bad))
    fails_in_one_line(path)


# In files of package 0.1 there were numbers where now there are arrays of one.
OF_OLD = [
    *(("batches", name, bad) for name in ("n_iterations", "n_buffered") for bad in (-1, 1.5, (1 << 64) - 1, "3", None)),
    ("batches", "n_buffered", 7),
    ("batches", "n_buffered", 0),
    *(("batches", "scale", bad) for bad in (0.0, 1e-300, 1e300, "1", None, [1.0])),
    *(("batches", "squares", bad) for bad in (1e308, "1", None, {})),
    *(("average", "sums_scale", bad) for bad in ("3", None, 1e308)),
    *(("average", "sums_weight", bad) for bad in (-1.0, None, 1e308)),
    *(("violations", "n_violations", bad) for bad in (-1, 3, 0.5, None)),
]


@pytest.mark.parametrize("which, name, bad", OF_OLD)
def test_impossible_states_of_earlier_files_are_refused(which, name, bad, path):
    model = classifier(which)
    model.save(path)
    arrays, header = as_of_old(*take_apart(path))
    put_together(path, arrays, header | {"format_version": 2})
    assert state_of(stream_pegasos.load(path)) == state_of(model)
    header["state"]["learner"][name] = bad
    put_together(path, arrays, header | {"format_version": 2})
    fails_in_one_line(path)


def test_earlier_files_of_text_models_name_their_kind(path):
    """The first ones did not, as there was one; PegasosClassifier is still what is meant."""
    model = text_model("options")
    model.save(path)
    arrays, header = as_of_old(*take_apart(path))
    assert header["kind"] == "PegasosTextClassifier" and header["state"].pop("kind") == "PegasosClassifier"
    put_together(path, arrays, header | {"format_version": 2})
    assert state_of(stream_pegasos.load(path)) == state_of(model)


# What the other kinds hold that PegasosClassifier does not.
OTHERS = {
    "joint": lambda: PegasosClassifier(multi_class="crammer_singer", batch_size=7, fit_intercept=True),
    "ovr": lambda: PegasosClassifier(multi_class="ovr", batch_size=7),
    "ordinal": lambda: OrdinalPegasosClassifier(batch_size=7),
    "kernel": lambda: KernelPegasosClassifier(l2=0.1, budget=20),
    "adaptive": lambda: AdaptiveClassifier(half_life=30.0),
}
OF_TWO_CLASSES = ("kernel", "adaptive")


def other(kind, n=60):
    model = OTHERS[kind]()
    for i, (x, _) in enumerate(stream(0, n)):
        model.learn_one(x, i % 2 if kind in OF_TWO_CLASSES else [2, 0, 3, 1][i % 4])
    return model


COLUMNS = [
    *(at("n_iterations", 1, bad) for bad in (-1, -(2**63))),
    *(at("n_buffered", 0, bad) for bad in (-1, 7, 2**62)),
    changing("n_buffered", np.zeros_like),  # with features in the buffer
    *(at("buffer_columns", 0, bad) for bad in (-1, 4, 2**62)),
    changing("buffer_columns", lambda a: a.astype(np.int32)),
    *(at("scale", 0, bad) for bad in (0.0, 1e-300, 2.0)),
    at("squares", 0, 1e308),
    changing("values", lambda a: a[:, :-1]),
    changing("values", lambda a: np.hstack([a, a])),
    changing("keys", lambda a: np.full_like(a, a[0])),
    at("keys", 0, (1 << 60) + 10_000),
    at("buffer_keys", 0, 1 << 54),
    setting("names", to=[]),
    setting("names", 0, to=1.5),
    setting("labels", to=[]),
    setting("learner", "slope", to=0.0),
    setting("learner", "calibration_squares", to=-1.0),
    setting("learner", to={}),
    setting("parameters", "l2", to=0.0),
]
OF_CLASSES = [
    *(setting("labels", 0, to=bad) for bad in (1.5, None, {"tuple": []}, {"list": []}, 3, True)),  # 3 and 1 come later
    setting("labels", to=[2, 0, 3]),
    setting("labels", to=[2, 0, 3, 1, 4]),
    setting("parameters", "multi_class", to="ovo"),
    setting("parameters", "multi_class", to={"list": []}),
    setting("parameters", "class_weight", to={"dict": [[1, -1.0]]}),
]
OF_ORDER = [
    *(setting("labels", 0, 0, to=bad) for bad in ("0", 0.5, None, 1, 9, {"tuple": []})),
    *(setting("labels", 0, 1, to=bad) for bad in (-1.0, None, "1", 1e308)),
    setting("labels", 0, to=[0]),
    setting("labels", to=[[0, 1.0], [1, 1.0], [2, 1.0]]),
    *(setting("columns", to=bad) for bad in ([0, 1], [0, 1, 1], [0, 1, 3], [0, 1, -1], [0, 1, 2, 3], None, "012", 3)),
    *(setting("columns", to=bad) for bad in ([0.0, 1.0, 2.0], [False, True, 2], ["0", "1", "2"])),
    *(setting("patterns", to=bad) for bad in (None, 5, [[]], [[[True], [1.0] * 4]], [[[True] * 3, [1.0] * 3]])),
    *(setting("patterns", 0, 0, to=bad) for bad in ([0, 1, 2], ["x", "y", "z"], None, [True] * 4, [[], [], []])),
    *(setting("patterns", 0, 1, 0, to=bad) for bad in (-1.0, None, "1", 1e308, [])),
]
OF_KERNELS = [
    *(at("indptr", 0, bad) for bad in (-1, 1)),
    *(at("indptr", 1, bad) for bad in (-1, 10**6, 2**62)),
    at("indptr", -1, 0),
    *(at("coefficients", 0, bad) for bad in (0.0, 1e300)),
    at("values", 0, 1e46),
    *(at("keys", 0, bad) for bad in (1 << 54, (1 << 60) + 10_000)),
    lambda arrays, state, header: arrays.update(keys=np.full_like(arrays["keys"], arrays["keys"][0])),
    *(setting("learner", "n_iterations", to=bad) for bad in (0, 19, -1, 1.5, 1 << 63)),
    setting("learner", "slope", to=1e300),
    setting("parameters", "budget", to=19),
    setting("parameters", "budget", to=0),
    setting("parameters", "budget_maintenance", to="projection"),
    setting("parameters", "kernel", to="sigmoid"),
    setting("parameters", "kernel", to={"tuple": []}),
    setting("parameters", "gamma", to=-1.0),
    setting("labels", "negative", to=1),
    setting("labels", "met", to=3),
    setting("names", to=[]),
]
OF_ADAPTIVE = [
    *(at(name, 0, -1.0) for name in ("gradient_squares", "positives", "negatives")),
    *(at(name, 0, 1e300) for name in ("values", "log_ratios", "positives", "negatives")),
    *(at("keys", 0, bad) for bad in (1 << 54, (1 << 60) + 10_000, -(1 << 60))),
    lambda arrays, state, header: arrays.update(keys=np.full_like(arrays["keys"], arrays["keys"][0])),
    *(setting("learner", "evidence", to=bad) for bad in (0.5, 1e200)),
    *(setting("learner", "n_iterations", to=bad) for bad in (-1, 1.5, 1 << 63)),
    *(setting("learner", name, to=bad) for name in ("n_positives", "n_negatives") for bad in (0.0, -1.0, 1e300)),
    *(setting("learner", name, to=1e300) for name in ("intercept", "intercept_log_ratio")),
    setting("learner", "intercept_squares", to=-1.0),
    setting("learner", "slope", to=0.0),
    setting("learner", "calibration_squares", to=-1.0),
    setting("learner", to={}),
    setting("parameters", "loss", to="squared"),
    setting("parameters", "half_life", to=0.0),
    setting("labels", "met", to=3),
    setting("names", to=[]),
]
OF_CLASSES_TOGETHER = [at("n_buffered", 0, 1), at("n_iterations", 1, 1)]
OTHER_FORGERIES = [
    pytest.param(kind, change, id=f"{kind}-{change.__name__}")
    for kinds, changes in (
        (("joint", "ovr", "ordinal"), COLUMNS),
        (("joint", "ovr"), OF_CLASSES),
        (("joint",), OF_CLASSES_TOGETHER),
        (("ordinal",), OF_ORDER),
        (("kernel",), OF_KERNELS),
        (("adaptive",), OF_ADAPTIVE),
    )
    for kind in kinds
    for change in changes
]


@pytest.mark.parametrize("kind, change", OTHER_FORGERIES)
def test_impossible_states_of_other_kinds_are_refused(kind, change, path):
    model = other(kind)
    if kind == "kernel":
        assert len(model.support_vectors) == 20
    elif kind != "adaptive":
        state = model.snapshot().arrays
        assert state["n_buffered"].any() and len(state["buffer_keys"]) and len(state["scale"]) in (3, 4)
    model.save(path)
    forge(path, change)
    fails_in_one_line(path)


@pytest.mark.parametrize("bad", ["HashedBagOfWords", "TextClassifier", "Saveable", "object", None, [], {}])
def test_text_models_of_no_kind_are_refused(bad, path):
    text_model("default").save(path)
    forge(path, setting("kind", to=bad))
    fails_in_one_line(path)


@pytest.mark.parametrize(
    "name, bad",
    [
        ("n_features", 0),
        ("n_features", 2**40),
        ("ngram_range", {"tuple": [1]}),
        ("ngram_range", {"tuple": [1, 10**9]}),
        ("analyzer", "words"),
        ("token_pattern", "("),
        ("norm", "l3"),
        ("stop_words", "german"),
        ("stop_words", {"set": [1]}),
        ("tokenizer", "str.split"),
        ("preprocessor", {"dict": []}),
        *((name, {"initializer": ["Zeros", {"dict": []}]}) for name in ("tokenizer", "preprocessor", "on")),
        ("unknown", 1),
    ],
)
def test_impossible_features_are_refused(name, bad, path):
    text_model("default").save(path)
    forge(path, setting("features", name, to=bad))
    fails_in_one_line(path)


def test_nests_too_deep_are_refused(path):
    classifier("default").save(path)

    def nest(arrays, state, header):
        value = "x"
        for _ in range(32):
            value = {"tuple": [value]}
        state["names"][0] = value

    forge(path, nest)
    stream_pegasos.load(path)  # as deep as it may be written
    arrays, header = take_apart(path)
    for depth in (490, 2000, 100_000):
        deep = '{"tuple":[' * depth + "]}" * depth
        state = orjson.dumps(header["state"]).decode().replace('"l2":0.0001', f'"l2":{deep}')
        put_together(path, arrays, header | {"state": state})
        fails_in_one_line(path)


@pytest.mark.parametrize("version", [4, 0, "1", None, "one", [], 10**15])
def test_other_versions_are_named(version, path):
    classifier("default").save(path)
    forge(path, lambda arrays, state, header: header.update(format_version=version))
    fails_in_one_line(path, match="version")


@pytest.mark.parametrize("kind", ["", "Saveable", "Classifier", "TextClassifier", "object", "os.system", None, [], {}])
def test_other_classes_are_refused(kind, path):
    classifier("default").save(path)
    forge(path, lambda arrays, state, header: header.update(kind=kind))
    fails_in_one_line(path)


@pytest.mark.parametrize(
    "name, parameters",
    [
        ("ADWIN", {"max_buckets": 10**9}),  # which River would reserve
        ("ADWIN", {"max_buckets": 0}),
        ("ADWIN", {"clock": 0}),
        ("ADWIN", {"clock": 1.5}),
        ("KSWIN", {"stat_size": -1}),
        ("FHDDM", {"sliding_window_size": 0}),
        ("HDDMA", {"drift_confidence": -1.0}),
        ("PageHinkley", {"alpha": "x"}),
        ("os", {}),
    ],
)
def test_drift_detectors_that_would_fail_are_refused(name, parameters, path):
    AdaptiveClassifier(drift_detector=drift.ADWIN(clock=16)).save(path)
    assert stream_pegasos.load(path).drift_detector.clock == 16
    forge(path, setting("parameters", "drift_detector", to={"drift_detector": [name, pack(parameters)]}))
    fails_in_one_line(path)


@pytest.mark.parametrize("place", [("names", 0), ("labels", "negative"), ("parameters", "pos_label")])
def test_no_object_is_made_where_none_belongs(place, path, monkeypatch):
    made = []
    monkeypatch.setattr(drift, "ADWIN", type("ADWIN", (drift.ADWIN,), {"__init__": lambda self: made.append(self)}))
    classifier("default").save(path)
    forge(path, setting(*place, to={"drift_detector": ["ADWIN", {"dict": []}]}))
    fails_in_one_line(path)
    assert not made


@pytest.mark.parametrize("missing", ["format_version", "kind", "state", "checksum"])
def test_headers_that_lack_something_are_refused(missing, path):
    classifier("default").save(path)
    arrays, header = take_apart(path)
    del header[missing]
    put_together(path, arrays, header)
    fails_in_one_line(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "null", "{}", '"x"', "\0", "nan"])
def test_headers_that_are_none_are_refused(text, path):
    put_together(path, {"keys": np.zeros(1, np.int64)}, text)
    fails_in_one_line(path)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "BOOL", "U8", "F16", "XYZ"])
def test_arrays_of_other_types_are_refused(dtype, path):
    """Types that NumPy has and types that it has not."""
    classifier("default").save(path)
    content = path.read_bytes()
    n = int.from_bytes(content[:8], "little")
    header = orjson.loads(content[8 : 8 + n])
    size = {"BF16": 2, "F16": 2}.get(dtype, 1)
    header["values"]["dtype"] = dtype
    header["values"]["shape"] = [header["values"]["shape"][0] * 8 // size]
    changed = orjson.dumps(header)
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + n :])
    fails_in_one_line(path)


def test_a_small_file_cannot_claim_much_memory(path):
    classifier("default").save(path)
    content = path.read_bytes()
    n = int.from_bytes(content[:8], "little")
    for shape, offsets in (([1 << 40], None), ([1 << 40], [0, 8 << 40]), ([1 << 62, 4], [0, 0])):
        header = orjson.loads(content[8 : 8 + n])
        header["values"]["shape"] = shape
        if offsets:
            header["values"]["data_offsets"] = offsets
        changed = orjson.dumps(header)
        path.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + n :])
        fails_in_one_line(path)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(step, path, monkeypatch):
    classifier("default").save(path)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space"):
            classifier("batches").save(path)
        with pytest.raises(OSError, match="no space"):
            classifier("batches").save(path.with_name("new"))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    classifier("batches").save(path)
    assert os.listdir(path.parent) == [path.name]
    assert stream_pegasos.load(path).batch_size == 7


@needs_posix
def test_a_disk_that_is_full_leaves_what_was_there(path):
    classifier("default").save(path)
    before = path.read_bytes()
    code = f"""
        import resource, signal
        from stream_pegasos import PegasosClassifier
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        model = PegasosClassifier()
        model.learn_one({{i: 1.0 for i in range(10_000)}}, True)
        try:
            model.save({str(path)!r})
        except OSError as error:
            print(type(error).__name__)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "OSError\n", done.stderr
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@needs_posix
def test_devices_are_written_to_and_stay_devices():
    full = "/dev/full"
    if not os.path.exists(full):
        pytest.skip(f"there is no {full}")
    before = sorted(os.listdir("/dev"))
    # As one who may not replace it, in case it is tried.
    code = f"""
        import os
        import safetensors.numpy  # now, since from a private folder it could not be read later
        from stream_pegasos import PegasosClassifier
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            PegasosClassifier().save("{full}")
        except OSError as error:
            print(error.errno)
        PegasosClassifier().save("/dev/null")
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{errno.ENOSPC}\n"
    assert stat.S_ISCHR(os.stat(full).st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir("/dev")) == before


@needs_posix
def test_permissions_are_as_for_any_file_and_stay_as_they_were_set(path):
    for mask, expected in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        old = os.umask(mask)
        try:
            classifier("default").save(path)
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == expected
        path.unlink()
    for mode in (0o600, 0o640, 0o444):
        path.touch()
        path.chmod(mode)
        classifier("default").save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()


@needs_posix
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "models").mkdir()
    target, link = tmp_path / "models" / "today", tmp_path / "newest"
    link.symlink_to(target)
    for which in ("default", "batches"):  # first with its target missing
        classifier(which).save(link)
        assert link.is_symlink() and not target.is_symlink()
        assert state_of(stream_pegasos.load(target)) == state_of(classifier(which))
    assert os.listdir(target.parent) == ["today"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError):
        classifier("default").save(loop)


def test_names_of_files(tmp_path, monkeypatch):
    model = classifier("default", n=3)
    monkeypatch.chdir(tmp_path)
    long = "x" * 250
    for name in ("plain", "with space", ".hidden", "é漢😀", "new\nline", long, "-dash", "a.b.c"):
        model.save(name)
        assert state_of(stream_pegasos.load(name)) == state_of(model)
    for place in (tmp_path / "missing" / "model", tmp_path / "plain" / "model", "x" * 300):
        with pytest.raises(OSError):
            model.save(place)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        model.save(tmp_path / "folder")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


METADATA = {'é\n"': "value\u2028 ünd \\ mehr"}
OF_SOME_KINDS = {
    "of two classes": lambda: classifier("batches"),
    "text": lambda: text_model("options"),
    **{kind: lambda kind=kind: other(kind) for kind in OTHERS},
    "new": AdaptiveClassifier,
}


@pytest.mark.parametrize("kind", OF_SOME_KINDS)
def test_files_are_those_that_safetensors_writes(kind, path):
    """Byte for byte: so other programs read them as well."""
    snapshot = OF_SOME_KINDS[kind]().snapshot()
    for arrays in (snapshot.arrays, {**snapshot.arrays, "progress": np.arange(5, dtype=np.uint8)}, {}):
        with open(path, "wb") as file:
            persistence.write_safetensors(file, arrays, METADATA)
        assert path.read_bytes() == safetensors_save(dict(arrays), METADATA)
        with safe_open(path, "numpy") as file:
            assert file.metadata() == METADATA
            assert {name: file.get_tensor(name).tobytes() for name in file.keys()} == {  # noqa: SIM118
                name: array.tobytes() for name, array in arrays.items()
            }


@pytest.mark.parametrize(
    "progress", [0, "", {"position": {"é\ud800": [1, 2.5, None, True]}, "n": 2**70}, [], {"a": ("b", 1)}]
)
def test_progress_stands_beside_the_model(progress, path):
    model = classifier("default")
    model.snapshot(progress).write(path)
    loaded, found = persistence.load_with_progress(path)
    assert found == progress
    assert type(found) is type(progress)
    assert loaded.weights == model.weights
    assert stream_pegasos.load(path).weights == model.weights
    model.save(path)
    assert persistence.load_with_progress(path)[1] is None


def test_what_is_saved_is_loaded_however_much_it_is(path):
    """Names of features, stop words and progress of more than the 100 MB that a header may have."""
    model = PegasosClassifier()
    names = [f"{i} {'long' * 30_000}" for i in range(900)]
    model.learn_one(dict.fromkeys(names, 1.0), 1)
    model.snapshot(progress=["x" * 110_000_000]).write(path)
    loaded, progress = load_with_progress(path)
    assert loaded.weights == model.weights and len(progress[0]) == 110_000_000
    text_model = TextClassifier(HashedBagOfWords(stop_words=names))
    text_model.save(path)
    assert set(stream_pegasos.load(path).features.stop_words) == set(names)


@pytest.mark.parametrize(
    "change",
    [
        lambda texts, ends: (texts, ends[:-1]),
        lambda texts, ends: (texts, ends[1:]),
        lambda texts, ends: (texts, ends[:0]),
        lambda texts, ends: (texts, ends + 1),
        lambda texts, ends: (texts, ends * -1),
        lambda texts, ends: (texts, np.where(ends == ends[1], ends[-1] + 5, ends)),
        lambda texts, ends: (texts, np.where(ends == ends[2], 0, ends)),
        lambda texts, ends: (texts, ends.astype(np.float64)),
        lambda texts, ends: (texts, ends.reshape(1, -1)),
        lambda texts, ends: (texts[:-1], ends),
        lambda texts, ends: (texts.view(np.int8), ends),
        lambda texts, ends: (np.where(texts == ord('"'), 0xFF, texts).astype(np.uint8), ends),
        lambda texts, ends: (np.where(texts == ord('"'), ord("["), texts).astype(np.uint8), ends),
        lambda texts, ends: (np.concatenate([texts, texts]), np.concatenate([ends, ends[-1] + ends[1:]])),
    ],
    ids=range(14),
)
def test_names_that_cannot_be_are_refused(change, path):
    classifier("default").save(path)
    arrays, header = take_apart(path)
    texts = state_arrays(header["state"])
    arrays["names"], arrays["name_offsets"] = change(texts["names"], texts["name_offsets"])
    put_together(path, arrays, header)
    fails_in_one_line(path)


def test_names_nested_deeper_than_files_hold_are_refused_when_they_are_learned(unchanged):
    model, name = PegasosClassifier(), "x"
    for _ in range(32):
        name = (name,)
    model.learn_one({name: 1.0}, True)
    with unchanged(model):
        for deeper in ((name,), ((("a", (name, 1)), 2),)):
            with pytest.raises(ValueError, match="nested more than 32 deep"):
                model.learn_one({deeper: 1.0}, True)
            with pytest.raises(ValueError, match="nested more than 32 deep"):
                model.learn_many([{"new": 1.0}, {deeper: 1.0}], [True, False])


def test_what_is_no_regular_file_is_no_model():
    with pytest.raises(ValueError, match=r"^/dev/null is no model: it is no regular file$"):
        stream_pegasos.load("/dev/null")
