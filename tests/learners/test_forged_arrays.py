"""Files whose arrays somebody changed, with a checksum to fit: each is refused in one line, or is a model."""

import functools

import numpy as np
import pytest
from forging import put_together, take_apart
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saved import OF_TWO_CLASSES, classifier, other, stream

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, TextClassifier, TextFeatures

VECTORS = {"cheap": [1.0, 2.0, 0.5], "pills": [-1.0, 0.5, 3.0], "lunch": [0.5, -2.0, 1.0], "see": [3.0, 1.0, -1.0]}
TEXTS = ["cheap pills", "see you at lunch", "lunch pills", "see cheap"]


def of_vectors(make, labels):
    model = TextClassifier(TextFeatures(vectors=VECTORS), make())
    for i in range(40):
        model.learn_one(TEXTS[i % 4], labels[i % len(labels)])
    return model


def several_labels():
    model = MultiLabelClassifier()
    for i, (x, _) in enumerate(stream(40)):
        model.learn_one(x, [{"a"}, set(), {"a", "b"}, {"c"}][i % 4])
    return model


def of_three():
    model = AdaptiveClassifier()
    for i, (x, _) in enumerate(stream(40)):
        model.learn_one(x, "abc"[i % 3])
    return model


KINDS = {
    "batches": lambda: classifier("batches"),
    **{kind: functools.partial(other, kind) for kind in ("joint", "ovr", "ordinal", "kernel", "adaptive")},
    "three classes": of_three,
    "several labels": several_labels,
    "vectors, two": lambda: of_vectors(AdaptiveClassifier, ["a", "b"]),
    "vectors, three": lambda: of_vectors(AdaptiveClassifier, ["a", "b", "c"]),
    "vectors, ordinal": lambda: of_vectors(OrdinalClassifier, [1, 2, 3]),
    "vectors, several": lambda: of_vectors(MultiLabelClassifier, [{"a"}, {"a", "b"}, {"c"}]),
}
NUMBERS = [0, 1, -1, 2, 255, 2**31, 2**62, -(2**63), 0.0, -0.0, 0.5, 1e-320, 1e300, -1e300, np.inf, -np.inf, np.nan]


def cast(array, dtype):
    with np.errstate(invalid="ignore"):
        return array.astype(dtype)


def one_number(array, place, number):
    changed = array.copy()
    if changed.size:
        with np.errstate(invalid="ignore", over="ignore"):
            changed.flat[place % changed.size] = np.array(number, np.float64 if array.dtype == np.float64 else object)
    return changed


CHANGES = st.one_of(
    st.tuples(st.just("length"), st.integers(0, 40)),
    st.tuples(st.just("shape"), st.sampled_from([(-1, 1), (1, -1), (0, 3), (3, 0), ()])),
    st.tuples(st.just("dtype"), st.sampled_from([np.int64, np.float64, np.uint8])),
    st.tuples(st.just("number"), st.integers(0, 10**6), st.sampled_from(NUMBERS)),
    st.tuples(st.just("all"), st.sampled_from(NUMBERS)),
    st.tuples(st.just("swap"), st.integers(0, 100)),
    st.tuples(st.just("reverse")),
    st.tuples(st.just("missing")),
)


def changed(arrays, name, change):
    kind, *rest = change
    array = arrays[name]
    if kind == "length":
        arrays[name] = np.resize(array, (rest[0], *array.shape[1:]))
    elif kind == "shape":
        arrays[name] = array.reshape(rest[0]) if array.size and -1 in rest[0] else np.zeros(rest[0], array.dtype)
    elif kind == "dtype":
        arrays[name] = cast(array, rest[0])
    elif kind == "number":
        arrays[name] = one_number(array, *rest)
    elif kind == "all":
        for place in range(array.size):
            arrays[name] = one_number(arrays[name], place, rest[0])
    elif kind == "swap":
        other_name = sorted(arrays)[rest[0] % len(arrays)]
        arrays[name], arrays[other_name] = arrays[other_name], array
    elif kind == "reverse":
        arrays[name] = array[::-1].copy()
    else:
        del arrays[name]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    made = {}
    for kind, make in KINDS.items():
        model = make()
        model.save(folder / kind, **({"vectors": True} if "vectors" in kind else {}))
        made[kind] = take_apart(folder / kind)
    return made


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_forged_file_is_refused_or_is_a_model(kind, saved, tmp_path, data):
    arrays, header = saved[kind]
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(data.draw(st.integers(1, 2))):
        try:
            changed(arrays, data.draw(st.sampled_from(sorted(arrays))), data.draw(CHANGES))
        except (OverflowError, ValueError):  # no array can hold that
            return
    path = tmp_path / "forged"
    put_together(path, arrays, header)
    try:
        model = stream_pegasos.load(path)
    except ValueError as error:
        assert "\n" not in str(error)
        return
    x = TEXTS if "vectors" in kind else [each for each, _ in stream(8)]
    y = {"three classes": ["a", "c"], "several labels": [{"a"}, {"b"}], "batches": ["neg", "pos"]}.get(kind, [0, 1])
    if "vectors" in kind:
        y = {"two": ["a", "b"], "three": ["c", "d"], "ordinal": [1, 5], "several": [{"a"}, {"d"}]}[kind.split()[1]]
    elif kind not in (*OF_TWO_CLASSES, "three classes", "several labels", "batches"):
        y = [2, 7]
    model.predict_many(x)
    model.predict_proba_one(x[0])
    model.learn_many(x, (y * len(x))[: len(x)])
    model.learn_one(x[0], y[0])
    model.save(path)
    assert stream_pegasos.load(path).classes == model.classes
