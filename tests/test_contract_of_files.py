"""What every estimator promises of its copies and of its files."""

import copy
import math
import os
import pickle

import numpy as np
import pytest
from contract import (
    KINDS,
    bits,
    bits_of,
    calls_of,
    flat,
    for_each,
    for_each_kind,
    is_around_another,
    learn,
    many_of,
    saveable,
    through_a_file,
)
from estimators import CASES, TWO, seen
from forging import innermost, put_together, take_apart, without_spaces
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save

import stream_pegasos
from stream_pegasos.learners.files import write_model


def through_read_only_arrays(model, path):
    """A pickle as joblib reads it that maps files: arrays lie in memory that cannot be written."""
    arrays = []
    written = pickle.dumps(model, 5, buffer_callback=arrays.append)
    return pickle.loads(written, buffers=[bytes(array) for array in arrays])


COPIES = {
    "pickle": through_read_only_arrays,
    "oldest pickle": lambda model, path: pickle.loads(pickle.dumps(model, 2)),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "clone": lambda model, path: model.clone(include_attributes=True),
    "file": through_a_file,
    "file of its class": lambda model, path: type(model).load(
        str(through_a_file(model, path) and path), model.vector_source
    ),
}


def copies(case):
    """Those that differ by options are all tried by a pickle and a file, in which the others' state is."""
    for how in COPIES if case in KINDS and not is_around_another(case) else ("pickle", "file"):
        if (case.can_be_saved or "file" not in how) and (how != "clone" or case.of == "features"):
            yield how  # a text model's parts are parameters, and are cloned as such


COPIED = [pytest.param(case, how, id=f"{case.name}-{how}") for case in CASES for how in copies(case)]


@pytest.mark.parametrize("case, how", COPIED)
def test_copies_go_on_alike_and_apart(case, how, tmp_path):
    for n in (1, 40):
        model = case.trained(n)
        other = COPIES[how](model, tmp_path / "model")
        assert type(other) is type(model) and repr(other) == repr(model) and seen(other) == seen(model)
        untouched = bits(case, other)
        assert untouched == bits(case, model)
        if "file" in how and case.option("drift_detector"):
            continue  # what the detector has seen is not in the file
        for x, _ in case.stream(20, seed=1):
            assert other.predict_proba_one(x) == model.predict_proba_one(x)
        for x, y in case.stream(20, seed=1):
            model.learn_one(x, y)
        assert bits(case, other) == untouched
        for x, y in case.stream(20, seed=1):
            other.learn_one(x, y)
        for made in (model, other):
            made.flush()
        assert bits(case, other) == bits(case, model)


@for_each_kind(CASES)
def test_clones_know_nothing(case):
    model = case.trained()
    clone = model.clone()
    assert clone.n_iterations == 0 and not flat(seen(clone)[-1])
    assert bits(case, clone) == bits(case, case.make())
    for x, y in case.stream(20):
        clone.learn_one(x, y)
    assert seen(clone) == seen(case.trained(20))


@for_each(saveable)
def test_a_saved_model_is_the_same_file_each_time(case, tmp_path, unchanged):
    model, path, again = case.trained(), tmp_path / "model", tmp_path / "again"
    with unchanged(model):
        model.save(path)
    for _ in range(3):
        stream_pegasos.load(path, model.vector_source).save(again)
        assert again.read_bytes() == path.read_bytes()
    with safe_open(path, "numpy") as file:  # so other programs read it as well
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert without_spaces(path.read_bytes()) == without_spaces(safetensors_save(arrays, file.metadata()))


@for_each_kind(saveable)
def test_the_class_that_loads_is_the_class_that_was_saved(case, tmp_path):
    model = case.trained(5)
    model.save(tmp_path / "model")
    for other in {type(case.make()) for case in CASES} - {*type(model).__mro__}:
        with pytest.raises(ValueError, match=f"must be an? {other.__name__}, got an? {type(model).__name__}"):
            other.load(tmp_path / "model", model.vector_source)


@for_each_kind(saveable)
def test_a_snapshot_stands_still_while_its_model_learns(case, tmp_path):
    """In memory, and in a file that is not finished yet."""
    model = case.make()
    calls = calls_of(case)
    for n, (X, y) in enumerate(calls[:-5]):
        learn(model, X, y)
        snapshot = model.snapshot()
        before = bits_of(snapshot)

        def taken(file, n=n, checksum=snapshot.checksum):
            spooled = model.snapshot(None, file)
            for more in calls[n + 1 : n + 6]:
                learn(model, *more)
            assert spooled.checksum == checksum
            return spooled

        write_model(tmp_path / "model", taken)
        assert bits_of(snapshot) == before
        snapshot.write(tmp_path / "other")
        assert (tmp_path / "model").read_bytes() == (tmp_path / "other").read_bytes()


@for_each_kind(saveable)
def test_the_header_of_a_file_does_not_grow(case, tmp_path):
    """It may have 100 MB, beyond which a file can be written and never read."""
    model, path = case.make(), tmp_path / "model"
    sizes = []
    for i in (0, 1000):
        X = [case.example([f"word {i + j} {'long ' * 20}" for j in range(1 + i)]) for _ in range(3)]
        model.learn_many(many_of(case, X), case.labels[:3] if case.classes != TWO else [*case.labels, case.labels[0]])
        model.save(path)
        sizes.append(int.from_bytes(path.read_bytes()[:8], "little"))
    assert sizes[1] <= sizes[0] + 200 < 4_000  # the digits of sizes and places


def refuses(path, vectors):
    with pytest.raises(ValueError) as error:
        stream_pegasos.load(path, vectors)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


@for_each_kind(saveable, heavy=is_around_another)
def test_damaged_files_are_refused_or_harmless(case, tmp_path):
    """Each byte changed, one at a time, and ends cut off or added."""
    model, path = case.trained(3), tmp_path / "model"
    model.save(path)
    content, expected = path.read_bytes(), seen(model)
    with path.open("r+b", buffering=0) as file:  # in place, as new files take long
        for i in range(len(content)):
            change = (0x01, 0x04, 0x10, 0x20, 0x80, 0xFF)[i % 6]
            os.pwrite(file.fileno(), bytes([content[i] ^ change]), i)
            try:
                loaded = stream_pegasos.load(path, model.vector_source)
            except ValueError as error:
                assert "\n" not in str(error)
            else:  # padding
                assert seen(loaded) == expected, i
            os.pwrite(file.fileno(), content[i : i + 1], i)
        assert seen(stream_pegasos.load(path, model.vector_source)) == expected
        for more in (content, b"x" * 8, b" ", b"\0"):
            file.truncate(len(content))
            os.pwrite(file.fileno(), more, len(content))
            refuses(path, model.vector_source)
        for n in (len(content) - 1, *range(len(content) // 31 * 31, -1, -31)):
            file.truncate(n)
            refuses(path, model.vector_source)


def forgeries(arrays, state):
    """Changes of the arrays and of the state of a saved model, none of which any model can have."""
    for name in arrays:
        yield f"without {name}", lambda a, s, name=name: a.pop(name)
        if not arrays[name].size:
            continue
        yield f"{name} shorter", lambda a, s, name=name: a.update({name: a[name][:-1]})
        yield f"{name} folded", lambda a, s, name=name: a.update({name: a[name].reshape(1, *a[name].shape)})
        if arrays[name].dtype.kind == "f":
            for bad in (math.nan, math.inf, -math.inf):
                yield f"{bad} in {name}", lambda a, s, name=name, bad=bad: np.copyto(a[name].ravel()[:1], bad)
        else:
            yield f"{name} of 32 bits", lambda a, s, name=name: a.update({name: a[name].astype(np.float32)})
            yield f"{name} as floats", lambda a, s, name=name: a.update({name: a[name].view(np.float64)})
            yield f"huge {name}", lambda a, s, name=name: np.copyto(a[name].ravel()[:1], (1 << 62) + 5)
    for place, value in places(state):
        if "parameters" in place or "features" in place:
            bads = [{"code": "1+1"}, {"dict": 5}, {"int": "zz"}]
        elif place[-1] in ("negative", "positive", "kind"):
            bads = [1.5, {"list": []}, {"str": "zz"}]
        elif isinstance(value, (int, float)):
            bads = [None, "3x", [], {}, {"str": "00"}, *([1e308] if "learner" in place else [])]
        else:
            bads = [None, 5, *([[]] if isinstance(value, dict) else ["3x"] if value else [])]
        for bad in bads:
            yield f"{bad} at {place}", lambda a, s, place=place, bad=bad: put(s, place, bad)
    yield "an unknown parameter", lambda a, s: innermost(s)["parameters"].update(unknown=1)
    # Without which it is a PegasosClassifier, on hashed words.
    for name in {*state, *innermost(state)} - {"kind", "features_kind"}:
        yield f"without {name}", lambda a, s, name=name: (s.pop(name, None), innermost(s).pop(name, None))


def places(state, at=()):
    """What stands in the state by name, and where."""
    for name, value in state.items():
        yield (*at, name), value
        if isinstance(value, dict) and "parameters" not in at and "features" not in at:
            yield from places(value, (*at, name))


def put(state, place, value):
    *folders, name = place
    for folder in folders:
        state = state[folder]
    state[name] = value


@for_each(saveable, heavy=lambda case: is_around_another(case) or case not in KINDS)
def test_forged_files_are_refused(case, tmp_path):
    """With a checksum to fit."""
    path = tmp_path / "model"
    model = case.trained(40)
    model.save(path)
    arrays, header = take_apart(path)
    wrong = []
    for what, change in forgeries(arrays, header["state"]):
        changed, state = {name: array.copy() for name, array in arrays.items()}, copy.deepcopy(header["state"])
        change(changed, state)
        put_together(path, changed, header | {"state": state})
        try:
            refuses(path, model.vector_source)
        except BaseException as error:
            wrong.append((what, repr(error)[:100]))
    print(*wrong, sep="\n")
    assert not wrong
