"""Files that somebody changed, with a checksum to fit, into what no model can be."""

import numpy as np
import orjson
import pytest
from forging import forge, put_together, take_apart
from river import drift
from saved import classifier, fails_in_one_line, other, text_model

import stream_pegasos
from stream_pegasos import AdaptiveClassifier
from stream_pegasos.common.packing import pack


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


def heading(**to):
    """Change the header of the file itself."""

    def change(arrays, state, header):
        header.update(to)

    change.__name__ = f"header {to!r}"[:60]
    return change


def settings(*where, to):
    return [setting(*where, to=bad) for bad in to]


ONE_KEY = changing("keys", lambda a: np.full_like(a, a[0]))
NO_LABELS = (1.5, None, {"tuple": []}, {"list": []}, 3, True)  # 3 is another
NO_KINDS = ("", "Saveable", "Classifier", "TextClassifier", "object", "os.system", None, [], {})
# What only some models cannot be, by these. What none can be is in the contract of all estimators; what no state of a
# learner can be, with its declaration.
FORGERIES = {
    "batches": [
        ONE_KEY,
        at("n_buffered", 0, 0),  # with features in the buffer
        setting("learner", to={}),
        *settings("parameters", "l2", to=(-1.0, {"tuple": [1.0]})),
        *settings(
            "parameters", "class_weight", to=({"dict": [[bad, w]]} for bad, w in (("a", -1.0), ({"list": []}, 1)))
        ),
        *settings("parameters", "pos_label", to=(1.5, "another")),
        setting("parameters", to="l2"),
        setting("labels", to={}),
        *settings("labels", "known", to=(None, ["neg", "pos", "a third one"])),
        setting("labels", "known", 0, to="pos"),
        setting("labels", "positive", to={"tuple": []}),
        setting("names", to=[]),
        setting("names", 0, to={"tuple": []}),  # twice the same, with another one
        *settings("names", 1, to=(1.5, 7, {"list": []}, {"str": "zz"}, {"a": 1, "b": 2})),
        *(lambda arrays, state, header, to=to: to for to in ([], 5, "x", {})),
        *(heading(format_version=version) for version in (2, 0, "1", None, "one", [], 10**15)),
        *(heading(kind=kind) for kind in NO_KINDS),
    ],
    "joint ovr ordinal kernel adaptive": [ONE_KEY, setting("names", to=[])],
    "joint ovr": [
        *settings("labels", "known", 0, to=NO_LABELS),
        *settings("labels", "known", to=([2, 0, 3], [2, 0, 3, 1, 4])),
        *settings("parameters", "multi_class", to=("ovo", {"list": []})),
        setting("parameters", "class_weight", to={"dict": [[1, -1.0]]}),
    ],
    "ordinal": [
        *settings("labels", "known", 0, to=("0", 0.5, None, {"tuple": []}, 3, True)),
        setting("labels", "known", to=[2, 0, 3]),
        setting("parameters", "half_life", to=0.0),
    ],
    "kernel": [
        setting("parameters", "budget", to=19),  # of 20 support vectors
        *settings("parameters", "kernel", to=("sigmoid", {"tuple": []})),
        setting("parameters", "gamma", to=-1.0),
        setting("labels", "known", to=[0, 1, 2]),
    ],
    "f1": [
        *settings("f1", "n", to=(-1.0, 1e9, "x", None)),
        setting("f1", "counts", 0, 0, to="another"),
        setting("f1", "counts", 0, 1, to=1e3),  # more that are right than there are
        *settings("f1", "counts", 0, to=([], [2, 0.0], [2, -1.0, 2.0])),
        *settings("f1", to=({}, None)),
    ],
    "adaptive": [setting("parameters", "loss", to="squared"), setting("parameters", "half_life", to=0.0)],
    "text": [
        *settings("kind", to=("HashedBagOfWords", "TextClassifier", "Saveable", "object", None, [], {})),
        *settings("features", "n_features", to=(0, 2**40)),
        *settings("features", "ngram_range", to=({"tuple": [1]}, {"tuple": [1, 10**9]})),
        *settings("features", "stop_words", to=("german", {"set": [1]})),
        *(
            setting("features", name, to=bad)
            for name, bad in {
                **{"analyzer": "words", "token_pattern": "(", "norm": "l3", "tokenizer": "str.split", "unknown": 1},
                "preprocessor": {"dict": []},
            }.items()
        ),
        *(
            setting("features", name, to={"drift_detector": ["ADWIN", {"dict": []}]})
            for name in ("tokenizer", "preprocessor", "on")
        ),
    ],
}
MODELS = {"batches": lambda: classifier("batches"), "text": text_model}


@pytest.mark.parametrize(
    "kind, change",
    [
        pytest.param(kind, change, id=f"{kind}-{change.__name__}")
        for kinds, changes in FORGERIES.items()
        for kind in kinds.split()
        for change in changes
    ],
)
def test_what_no_model_can_be_is_refused(kind, change, path):
    model = MODELS[kind]() if kind in MODELS else other(kind)
    model.save(path)
    forge(path, change)
    fails_in_one_line(path, "version" if change.__name__.startswith("header {'format") else None)


def test_models_that_are_forged_have_what_is_forged():
    assert len(other("kernel").support_vectors) == 20
    arrays = classifier("batches").snapshot().arrays
    assert arrays["n_buffered"].tolist() == [4] and len(arrays["buffer_keys"])


def test_a_file_of_0_2_loads_unless_it_needs_what_went(path):
    model = classifier("batches")
    model.save(path)

    def of_then(arrays, state, header):
        state["parameters"] |= {"counter": "every", "initializer": None}

    forge(path, of_then)
    assert stream_pegasos.load(path).weights == model.weights
    for name, to in (("counter", "violations"), ("initializer", {"initializer": ["Normal", {"dict": []}]})):
        model.save(path)
        forge(path, setting("parameters", name, to=to))
        fails_in_one_line(path, f"cannot be used: it has the {name} of version 0.2; learn a model without it")


def test_a_file_of_ordered_pairs_names_what_to_use_instead(path):
    other("ordinal").save(path)
    forge(path, lambda arrays, state, header: header.update(kind="OrdinalPairsClassifier"))
    fails_in_one_line(path, r"cannot be used: it has the ordered pairs .*, or see examples/papers/duros_katzman\.py")
    text_model().save(path)
    forge(path, setting("kind", to="OrdinalPairsClassifier"))
    fails_in_one_line(path, r"cannot be used: it has the ordered pairs of version 0\.2; learn an OrdinalClassifier")


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
    AdaptiveClassifier(drift_detector=drift.ADWIN(clock=1)).save(path)
    assert stream_pegasos.load(path).drift_detector.clock == 1
    forge(path, setting("parameters", "drift_detector", to={"drift_detector": [name, pack(parameters)]}))
    fails_in_one_line(path)


@pytest.mark.parametrize("place", [("names", 0), ("labels", "known", 0), ("parameters", "pos_label")])
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
