"""A target of the fuzzer: model files, by the loader."""

import copy
import json
import tempfile
import tracemalloc
from pathlib import Path
from random import Random

import numpy as np
import orjson
from fuzz_scanner import TEXTS
from fuzz_shared import FLOATS, INTEGERS, below, check_predicts, mutated, one_byte, state_of
from river import drift
from safetensors.numpy import save as safetensors_save

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)
from stream_pegasos.common import packing
from stream_pegasos.learners import files
from stream_pegasos.learners.loading import load_with_progress

# What loading may take: so many bytes for each byte of the file, and so many besides.
LOADING_FACTOR, LOADING_CONSTANT = 128, 1 << 18

VALUES = [None, True, False, "", "x", "nan", "\ud800", "é" * 50, [], {}, [[]], *INTEGERS, *FLOATS, 2**64 - 1]
VALUES += [{kind: content} for kind in ("tuple", "list", "set") for content in ([], [1, "a"], [[]], None, "abc")]
VALUES += [{"int": "f" * n} for n in (1, 16, 4000, 20_000)] + [
    {"int": "x"},
    {"str": "00d8"},
    {"str": "0"},
    {"dict": [[]]},
]
VALUES += [{"dict": [["x", 1]]}, {"dict": [[{"list": []}, 1]]}, {"a": 1, "b": 2}]
VALUES += [{"drift_detector": [name, {"dict": []}]} for name in ("ADWIN", "KSWIN", "DDM", "FHDDM", "os", "NoDrift")]
VALUES += [
    {"drift_detector": [name, {"dict": [[parameter, value]]}]}
    for name, parameter in (
        ("ADWIN", "clock"),
        ("ADWIN", "max_buckets"),
        ("ADWIN", "delta"),
        ("KSWIN", "window_size"),
        ("KSWIN", "window"),
        ("KSWIN", "stat_size"),
        ("PageHinkley", "mode"),
        ("PageHinkley", "alpha"),
        ("DDM", "warm_start"),
        ("FHDDM", "sliding_window_size"),
    )
    for value in (-1, 0, 1, 10**9, 2**40, "x", None, 0.5)
]
VALUES += ["PegasosClassifier", "KernelPegasosClassifier", "Saveable", "object", "os.system", "(a+)+$", "(" * 300]
FILE_TOKENS = [number.to_bytes(8, "little", signed=number < 0) for number in INTEGERS] + [b"\xff" * 8, b"\x00" * 8]
FILE_TOKENS += [np.float64(number).tobytes() for number in FLOATS] + [b'"', b"{", b"[", b"}", b"]", b",", b"[" * 2000]
FILE_TOKENS += [b'"__metadata__":', b'{"stream_pegasos":', b'"F64"', b'"BF16"', b'"shape":[', b"[0,0]", b"9" * 30]
FILE_TOKENS += [b"[]," * 1000, b"{}," * 1000, b"0," * 1000, b'{\\"a\\":1},' * 100]


def seed_models():
    """A model of each kind with various options, fresh and after some examples."""
    classifiers = [
        AdaptiveClassifier(),
        AdaptiveClassifier(
            pos_label="b", half_life=30.0, max_features=10, max_false_positive_rate=0.1, class_weight="balanced"
        ),
        AdaptiveClassifier(drift_detector=drift.ADWIN()),
        PegasosClassifier(),
        PegasosClassifier(batch_size=7, fit_intercept=True, average="weighted", class_weight={"b": 2.0}),
        PegasosClassifier(t0=20.0, average=3, max_features=10),
        PegasosClassifier(multi_class="crammer_singer", batch_size=7, fit_intercept=True),
        PegasosClassifier(multi_class="ovr", batch_size=7),
        OrdinalClassifier(AdaptiveClassifier(half_life=30.0, max_features=10)),
        MultiLabelClassifier(AdaptiveClassifier(threshold={"a": 0.3}, max_false_positive_rate={"b": 0.1})),
        AdaptiveClassifier(threshold={"a": 0.3}, max_false_positive_rate={"b": 0.1}, class_weight="balanced"),
        KernelPegasosClassifier(l2=0.1, budget=20),
        TextClassifier(),
        TextClassifier(
            HashedBagOfWords(1000, (1, 2), stop_words=["the", "\ud800"], norm=None, strip_accents="unicode"),
            PegasosClassifier(multi_class="crammer_singer"),
        ),
        TextClassifier(HashedBagOfWords(analyzer="char_wb", ngram_range=(2, 3)), PegasosClassifier(batch_size=3)),
    ]
    random = Random(0)
    names = ["a", "é", "\ud800", ("b", -3), 0, -1, 2**60, True]
    for model in classifiers:
        yield model
        learned = model.clone()
        for i in range(25):
            x = random.choice(TEXTS) if isinstance(model, TextClassifier) else {random.choice(names): i / 7}
            learned.learn_one(x, label(model, i, 2))
        yield learned
        if "several classes" in model.capabilities:
            third = learned.clone(include_attributes=True)
            third.learn_one(x, label(model, 2, 3))
            yield third


def label(model, i, n):
    """One of n labels."""
    if "ordered" in model.capabilities:
        return i % n
    return ["a", "b"][: i % 3] if "several labels" in model.capabilities else "abc"[i % n]


class LoaderTarget:
    """Model files of all kinds: changed as they are, and changed inside with a checksum to fit."""

    share, size = 3, 200

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "model"
        self._parts, self._files = [], []
        for i, model in enumerate(seed_models()):
            snapshot = model.snapshot({"monitor": [1, "é", {"a": None}], "position": 7} if i % 4 > 1 else None)
            snapshot.write(self._path)
            self._files.append(self._path.read_bytes())
            progress = None if snapshot.progress is None else orjson.dumps(packing.pack(snapshot.progress))
            arrays = {**snapshot.arrays, **packing.pack_names(snapshot.names)}
            self._parts.append((snapshot.kind, arrays, orjson.dumps(snapshot.values), progress))
            check_model_file(self._files[-1], self._path)  # imports what loading imports

    def block(self, random):
        return [self._file(random) if random.random() < 0.4 else self._forged(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        tracemalloc.start()
        try:
            for i, content in enumerate(inputs):
                at(i)
                check_model_file(content, self._path)
        finally:
            tracemalloc.stop()

    def _file(self, random):
        content = mutated(random, random.choice(self._files), self._files, FILE_TOKENS, one_byte)
        if random.random() < 0.5:
            # A header of the right length lets the rest be looked at.
            end = content.rfind(b"}", 8, 8 + int.from_bytes(content[:8], "little") + 100) + 1
            content = max(0, end - 8).to_bytes(8, "little") + content[8:]
        return content

    def _forged(self, random):
        kind, arrays, values, progress = random.choice(self._parts)
        arrays, values = dict(arrays), orjson.loads(values)
        for _ in range(1 + below(random, 2)):
            if arrays and random.random() < 0.4:
                change_array(random, arrays)
            else:
                values = changed_value(random, values)
        if progress is not None or random.random() < 0.1:
            content = progress or b"null"
            if random.random() < 0.2:
                content = mutated(random, content, [content], FILE_TOKENS, one_byte)
            arrays[files.PROGRESS] = np.frombuffer(content, np.uint8)
        if random.random() < 0.05:
            kind = random.choice([*VALUES, *stream_pegasos.__all__])
        return model_file(kind, arrays, values)


def model_file(kind, arrays, values):
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        text = orjson.dumps(values)
    except TypeError:  # a lone surrogate, which JSON cannot hold
        text = json.dumps(values).encode()
    arrays[files.STATE] = np.frombuffer(text, np.uint8)
    header = {"format_version": files.FORMAT_VERSION, "kind": kind}
    try:
        header["checksum"] = files.checksum(arrays, kind)
    except TypeError:  # the same in the name of the kind
        header["checksum"] = ""
    return safetensors_save(arrays, {files.FORMAT: json.dumps(header)})


def change_array(random, arrays):
    name = random.choice([*arrays])
    array = arrays[name].copy()
    kind = below(random, 8)
    with np.errstate(invalid="ignore", over="ignore"):
        if kind < 4 and array.size:
            number = random.choice(INTEGERS if array.dtype == np.int64 else FLOATS + INTEGERS)
            array.reshape(-1)[below(random, array.size)] = np.array(number).astype(array.dtype)
        elif kind == 4:
            array = array[: below(random, len(array) + 1)]
        elif kind == 5:
            array = np.concatenate([array, array])
        elif kind == 6:
            array = array.reshape(random.choice([(-1,), (1, -1), (-1, 1)]))
        else:
            array = array.astype(random.choice([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_]))
    if random.random() < 0.1:
        del arrays[name]
    arrays[random.choice([*arrays, name]) if random.random() < 0.1 else name] = array


def changed_value(random, value):
    """JSON with one value changed, somewhere inside."""
    if isinstance(value, (dict, list)) and value and random.random() < 0.9:
        places = [*value] if isinstance(value, dict) else range(len(value))
        place = random.choice(places)
        kind = random.random()
        if kind < 0.05:
            del value[place]
        elif kind < 0.1 and isinstance(value, list):
            value.append(copy.deepcopy(value[place]))
        else:
            value[place] = changed_value(random, value[place])
        return value
    if random.random() < 0.05:
        for _ in range(below(random, 200)):
            value = {random.choice(["tuple", "list"]): [value]}
        return value
    return copy.deepcopy(random.choice(VALUES))


executed = []  # what ran or was imported while a file was loaded
watching = False


def watch(event, arguments):
    if watching and event.startswith(
        ("exec", "compile", "import", "os.", "subprocess.", "socket.", "ctypes.", "pickle.")
    ):
        executed.append((event, arguments))


def check_model_file(content, path):
    """A file gives a model that works, or a `ValueError` in one line; loading it runs no code and takes no memory but
    in proportion to its size.
    """
    global watching
    path.write_bytes(content)
    executed.clear()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        watching = True
        model, _ = load_with_progress(path)
    except ValueError as error:
        model = None
        assert "\n" not in str(error)
    finally:
        watching = False
    peak = tracemalloc.get_traced_memory()[1] - before
    assert not executed, executed
    assert peak <= LOADING_FACTOR * len(content) + LOADING_CONSTANT, f"{peak:,} bytes for a file of {len(content):,}"
    if model is not None:
        check_loaded(model, path)


def check_loaded(model, path):
    """A model from a forged file works; its weights may be larger than any that were learned, up to infinity."""
    if isinstance(model, TextClassifier):
        texts = ["win a prize", "", "\ud800é 42"]
        examples = texts if model.features.on is None else [{model.features.on: text} for text in texts]
    else:
        examples = [{"a": 1.0, "é": -0.5}, {}, {0: 2.0, 2**60: 1.0, ("b", -3): 1e45}]
    check_predicts(model, examples)
    check_learns(model, examples)
    model.save(path)
    try:
        loaded = stream_pegasos.load(path)
    except ValueError:
        return  # from the largest state that a file may hold it grew beyond that
    assert state_of(loaded) == state_of(model)


def check_learns(model, examples):
    labels = [label for label in model.classes if label is not None] or [1]
    if "several labels" in model.capabilities:
        labels = [[], labels]
    for x in examples:
        model.learn_one(x, labels[0])
    model.learn_many(examples, [labels[-1]] * len(examples))
    model.flush()
    check_predicts(model, examples)
