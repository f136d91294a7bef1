"""Feed the package with hostile input, and check what it does with it.

    python tests/fuzz.py --inputs 10_000_000
    python tests/fuzz.py --target readers --seed 3 --block 17

The second command tries one block of inputs again, as the report of a failure names it. Each target runs in a process
of its own, so that a crash and a hang are failures like others. The exit status is 1 if there was any failure.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import faulthandler
import gzip
import io
import json
import math
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
from pathlib import Path
from random import Random

import numpy as np
import orjson
from river import drift, optim
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
from stream_pegasos.engine import pure as pure_engine
from stream_pegasos.learners import persistence
from stream_pegasos.streams import FORMATS, Example, StreamError, read

SECONDS = 10  # that one input, or one block of texts, may take
MEGABYTES = 500  # of memory that the process of a target may come to hold
# What loading may take: so many bytes for each byte of the file, and so many besides.
LOADING_FACTOR, LOADING_CONSTANT = 128, 1 << 18
MOST_FAILURES = 20

# Mutation -------------------------------------------------------------------------------------------------------------


def below(random, n):
    """An int from 0 to n - 1; faster than `randrange`."""
    return int(random.random() * n)


def mutated(random, data, others, tokens, unit):
    """Bytes or a text, changed in some places; `unit` gives a random byte or character."""
    for _ in range(1 + below(random, 4)):
        i, size = below(random, len(data) + 1), 1 + below(random, 8)
        kind = below(random, 9)
        if kind < 2:
            data = data[:i] + unit(random) + data[i + 1 :]
        elif kind < 5:
            data = data[:i] + random.choice(tokens) + data[i + (size if kind == 4 else 0) :]
        elif kind == 5:
            data = data[:i] + data[i + size :]
        elif kind == 6:
            other = random.choice(others)
            data = data[:i] + other[below(random, len(other) + 1) :]
        elif kind == 7:
            data = data[:i] + data[i : i + size] * (1 << below(random, 8)) + data[i:]
        elif random.random() < 0.5:
            data = data[:i]
    return data


def one_byte(random):
    return bytes((below(random, 256),))


def one_character(random):
    return chr(below(random, 0x110000 if random.random() < 0.5 else 0x800))


INTEGERS = [0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**60, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-320, 1e-300, 1e30, 1e46, 1e300, -1e308, math.inf, -math.inf, math.nan]
NUMBERS = ["1e400", "-1e-400", "nan", "-inf", "1_000", "0x10", "\u0663", "9" * 400, "9" * 5000, "1e", ".", "-"]

# The scanner ----------------------------------------------------------------------------------------------------------

TEXTS = [
    "",
    "Win a FREE prize now!!! Call 0800-123456",
    "see you at lunch, 12:30?",
    "I'm here\tthere\r\nand everywhere\x0b\x0c\x1c\x85\u2028",
    "naïve café ﬁne Straße İstanbul ΣΊΣΥΦΟΣ ǅ ŉ",
    "漢字かな交じり文 한국어 ภาษาไทย हिन्दी",
    "👩\u200d👩\u200d👧 \U0001f1e9\U0001f1ea e\u0301\u0323 \u202eabc\u202c \ufeff\u00ad",
    "\ud800\udfff\udc00 lone \ud83d and low \ude00",
    "\x00a\x00b\x00 \x7f\x80\x9f",
    "<s> </s> <script>alert(1)</script> ' OR 1=1; -- ../../etc/passwd %s {0}",
    "_ __ a_b 3.14 ٣٤٥ \uff14\uff12 ² ½ Ⅷ",
    "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd" * 4,
]
TEXT_TOKENS = ["\ud800", "\udfff", "\U0010ffff", "\x00", "\ufeff", "\u0130", "\u03a3", "\u1e9e", "\u0345", "\ufdfa"]
TEXT_TOKENS += ["0", "\u0660", "_", " ", "\n", "\x1c", "\u3000", "\u200d", "<s>", "</s>", *NUMBERS[:10]]


def text(random):
    made = mutated(random, random.choice(TEXTS), TEXTS, TEXT_TOKENS, one_character)
    if random.random() < 0.1:
        made = "".join([one_character(random) for _ in range(below(random, 40))])
    return made * below(random, 2000) if random.random() < 0.0002 else made


def bag_of(random):
    """A `HashedBagOfWords` with random options."""
    analyzer = random.choice(["word", "word", "word", "char", "char_wb"])
    words = analyzer == "word"
    low = 1 + below(random, 3)
    return HashedBagOfWords(
        n_features=random.choice([1, 2, 10, 1000, 2**20, 2**30, 2**31 - 1]),
        ngram_range=(low, low + below(random, 3)),
        analyzer=analyzer,
        lowercase=random.random() < 0.7,
        strip_accents=random.choice([None, None, None, "unicode", "ascii"]),
        stop_words=["the", "a", "\ud800", "prize"] if words and random.random() < 0.2 else None,
        token_pattern=random.choice([r"\w+", r"\b\w\w+\b", r"\w+|[^\w\s]", r"\S+", r"\b\d+|\w"]),
        binary=random.random() < 0.5,
        norm=random.choice(["l2", "l2", "l1", None]),
        alternate_sign=random.random() < 0.5,
        mask_digits=random.random() < 0.5,
        prefix_length=random.choice([0, 1, 4, 1000]) if words else 0,
        boundaries=words and random.random() < 0.5,
    )


CLASSIFIERS = [
    lambda random: AdaptiveClassifier(max_features=random.choice([None, 1, 2, 10, 1000])),
    lambda random: AdaptiveClassifier(
        loss="hinge", half_life=random.choice([1.0, 30.0, None]), max_features=random.choice([None, 2, 100])
    ),
    lambda random: AdaptiveClassifier(
        max_false_positive_rate=0.1, drift_detector=drift.binary.DDM(), class_weight="balanced"
    ),
    lambda random: PegasosClassifier(
        l2=random.choice([1e-30, 1e-4, 1.0, 1e30]),
        batch_size=1 + below(random, 5),
        project=random.random() < 0.5,
        fit_intercept=random.random() < 0.5,
        max_features=random.choice([None, 1, 2, 10, 1000]),
    ),
    lambda random: PegasosClassifier(average=random.choice([True, "weighted"]), counter="violations"),
    lambda random: PegasosClassifier(
        multi_class=random.choice(["crammer_singer", "ovr"]),
        batch_size=1 + below(random, 3),
        average=random.choice([False, True]),
        max_features=random.choice([None, 2, 100]),
    ),
    lambda random: OrdinalPegasosClassifier(),
    lambda random: KernelPegasosClassifier(budget=10),
]


def check_bag(bag, texts, n_pure):
    """The values of texts are finite and of length 1 or 0; those of the last few are what the pure engine finds."""
    matrix = bag.transform_many(texts)
    assert matrix.shape == (len(texts), bag.n_features)
    assert np.isfinite(matrix.data).all()
    if bag.norm is not None:
        sizes = abs(matrix).sum(axis=1) if bag.norm == "l1" else matrix.multiply(matrix).sum(axis=1)
        assert np.allclose(sizes[sizes != 0], 1.0, rtol=1e-9, atol=0.0)
    scanner = pure_engine.Scanner(*bag.scanner.arguments)
    for i in range(len(texts) - n_pure, len(texts)):
        expected = scanner.transform_one(bag.prepare(texts[i]))
        row = slice(matrix.indptr[i], matrix.indptr[i + 1])
        found = dict(zip(matrix.indices[row].tolist(), matrix.data[row].tolist(), strict=True))
        assert found.keys() == expected.keys() and np.allclose([found[j] for j in expected], [*expected.values()])


def check_learning(model, twin, texts, labels, weights):
    """Learning leaves finite weights, no more than allowed, and the model predicts; `twin` learns the same one by one
    and is the same then.
    """
    model.learn_many(texts, labels, weights)
    check_works(model, texts[:20])
    if twin is not None:
        for example in zip(texts, labels, weights, strict=True):
            twin.learn_one(*example)
            check_size(twin)
        assert state_of(twin) == state_of(model)


def check_works(model, examples):
    """A model is sound, and so is what it predicts."""
    arrays = model.snapshot().arrays
    for array in arrays.values():
        assert np.isfinite(array).all()
    check_predicts(model, examples)
    probabilities = model.predict_proba_many(examples)
    assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all()
    assert not probabilities.size or np.allclose(probabilities.sum(axis=1), 1.0)


def check_predicts(model, examples):
    check_size(model)
    for label in model.predict_many(examples):
        assert label in (None, False, True, *model.classes)
    model.predict_proba_many(examples)
    for x in examples[:2]:
        model.predict_one(x)
        model.predict_proba_one(x)


def check_size(model):
    classifier = getattr(model, "classifier", model)
    limit = getattr(classifier, "max_features", None)
    assert limit is None or classifier.n_features <= limit


def state_of(model):
    snapshot = model.snapshot()
    arrays, values = snapshot.arrays, snapshot.values
    return {name: (array.dtype, array.tobytes()) for name, array in arrays.items()}, values


class ScannerTarget:
    """Texts, by the scanner into a model."""

    share, size = 60, 500

    def block(self, random):
        return [text(random) for _ in range(self.size)]

    def check(self, texts, random, at):
        at(0, SECONDS * 3)  # the texts of a block go through together
        bag, make, seed = bag_of(random), random.choice(CLASSIFIERS), random.random()
        check_bag(bag, texts, len(texts) // 50)
        labels = [below(random, 2) for _ in texts]
        weights = [random.choice([1.0, 1.0, 0.0, 1e-300, 0.3, 1e30]) for _ in texts]
        twin = TextClassifier(bag, make(Random(seed))) if random.random() < 0.1 else None
        check_learning(TextClassifier(bag, make(Random(seed))), twin, texts, labels, weights)


# The readers ----------------------------------------------------------------------------------------------------------

STREAMS = {
    "jsonl": [
        b'{"text": "win a prize", "label": "spam", "id": 7}\n{"text": "see you", "label": 0}\n',
        b'{"label": true, "text": "\\ud83d lone \\u0000"}\r\n\n{"text": "x", "label": 2.0, "more": [1, {"a": null}]}',
    ],
    "csv": [
        b'text,label,id\n"win, ""now""",spam,1\n"two\nlines",1,2\r\nplain,-1,\n',
        b"\xef\xbb\xbflabel,text\n1,caf\xc3\xa9\n0,\n",
    ],
    "tsv": [b'text\tlabel\n"a\tb"\tspam\nsee you\t1\n'],
    "labelled-text": [b"spam\twin a prize\nham\tsee\tyou\n\nno label\n", b"-1\tx\r\n1\ty\r\n"],
    "fasttext": [b"__label__spam win a prize\n__label__1 see you\n  __label__ x\n"],
    "vw": [b"1 2.5 'tag|words:2 cheap:3 pills |n:0.5 len:7\n-1 tag| see you\n| x\n", b"spam |a b:1e3 b\n"],
    "svmlight": [b"1 1:0.5 7:1e3 # note\n-1 qid:3 2:1 10:-0\n+1 3:4\n", b"3.5 0:1\n"],
}
STREAM_TOKENS = [
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\x1f\x8b",
    b'"',
]
STREAM_TOKENS += [
    b"'",
    b",",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b":",
    b"|",
    b"__label__",
    b"{",
    b"}",
    b"[",
    b"\\ud800",
    b"\\",
]
STREAM_TOKENS += [b"[" * 2000, b'{"a":' * 300, b"\x1f", b"#", b"qid:", b"null", b"true", b"\xe2\x80\xa8", b"\x0b", b" "]
STREAM_TOKENS += [str(number).encode() for number in INTEGERS + FLOATS] + [number.encode() for number in NUMBERS]
GZIP_PIECES = [gzip.compress(data[0], 1, mtime=0) for data in STREAMS.values()]


def stream(random):
    format = random.choice(FORMATS)
    corpus = STREAMS[format]
    data = mutated(random, random.choice(corpus), corpus, STREAM_TOKENS, one_byte)
    if random.random() < 0.1:
        data = gzip.compress(data, 1, mtime=0)
        if random.random() < 0.7:
            data = mutated(random, data, GZIP_PIECES, STREAM_TOKENS, one_byte)
    return data, format, random.random() < 0.3


def check_stream(data, format, unlabelled):
    """Only examples come out of a stream, and only a `StreamError` is raised; without a callback, at the first bad
    line.
    """
    bad = []
    examples, error = read_all(data, format, unlabelled, lambda line, reason: bad.append((line, reason)))
    for line, reason in bad:
        assert type(line) is int and line >= 1 and reason.isprintable()
    for example in examples:
        check_example(example, format, unlabelled)
    lines = [example.line for example in examples]
    assert lines == sorted(set(lines))
    strict_examples, strict_error = read_all(data, format, unlabelled, None)
    assert repr(strict_examples) == repr(examples[: len(strict_examples)])
    if bad:
        assert strict_error.endswith(f"line {bad[0][0]}: {bad[0][1]}")
    else:
        assert len(strict_examples) == len(examples) and strict_error == error
    assert error is None or error.isprintable()


def read_all(data, format, unlabelled, on_bad_line):
    examples = []
    try:
        examples.extend(read(io.BytesIO(data), format=format, unlabelled=unlabelled, on_bad_line=on_bad_line))
    except StreamError as error:
        return examples, str(error)
    return examples, None


def check_example(example, format, unlabelled):
    assert type(example) is Example
    if format in ("vw", "svmlight"):
        names = str if format == "vw" else int
        assert all(type(name) is names and type(value) is float for name, value in example.x.items())
        assert all(map(math.isfinite, example.x.values()))
    else:
        assert type(example.x) is str
    assert type(example.y) in (bool, int, str) or (unlabelled and example.y is None)
    assert type(example.w) is float and 0.0 <= example.w < math.inf


class ReadersTarget:
    """Files of all formats, as they are and compressed."""

    share, size = 35, 1000

    def block(self, random):
        return [stream(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        for i, one in enumerate(inputs):
            at(i)
            check_stream(*one)


# The loader -----------------------------------------------------------------------------------------------------------

VALUES = [None, True, False, "", "x", "nan", "\ud800", "é" * 50, [], {}, [[]], *INTEGERS, *FLOATS, 2**64 - 1]
VALUES += [{kind: content} for kind in ("tuple", "list", "set") for content in ([], [1, "a"], [[]], None, "abc")]
VALUES += [{"int": "f" * n} for n in (1, 16, 4000, 20_000)] + [
    {"int": "x"},
    {"str": "00d8"},
    {"str": "0"},
    {"dict": [[]]},
]
VALUES += [{"dict": [["x", 1]]}, {"dict": [[{"list": []}, 1]]}, {"a": 1, "b": 2}]
VALUES += [{"initializer": [name, {"dict": []}]} for name in ("Zeros", "Normal", "os", "Initializer", "__all__")]
VALUES += [{"initializer": ["Normal", {"dict": [["sigma", sigma]]}]} for sigma in ("x", -1.0, 1e308)]
VALUES += [{"initializer": ["Normal", {"dict": [["seed", seed]]}]} for seed in (-1, "x", 1.5, 2**40)]
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
        PegasosClassifier(initializer=optim.initializers.Normal(seed=3), t0=20.0, average=3, max_features=10),
        PegasosClassifier(counter="violations", batch_size=3, l2=0.1),
        PegasosClassifier(multi_class="crammer_singer", batch_size=7, fit_intercept=True),
        PegasosClassifier(multi_class="ovr", batch_size=7),
        OrdinalPegasosClassifier(batch_size=7),
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
            learned.learn_one(x, i % 2 if type(model) is OrdinalPegasosClassifier else "ab"[i % 2])
        yield learned


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
            progress = None if snapshot.progress is None else orjson.dumps(persistence.pack(snapshot.progress))
            arrays = {**snapshot.arrays, **persistence.pack_names(snapshot.names)}
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
            arrays[persistence.PROGRESS] = np.frombuffer(content, np.uint8)
        if random.random() < 0.05:
            kind = random.choice([*VALUES, *persistence.Saveable.kinds])
        return model_file(kind, arrays, values, first_version=random.random() < 0.2)


def model_file(kind, arrays, values, first_version):
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = {"format_version": 1 if first_version else persistence.FORMAT_VERSION, "kind": kind}
    try:
        text = orjson.dumps(values)
        header["checksum"] = persistence.checksum(arrays, values if first_version else kind)
    except TypeError:  # a lone surrogate, which JSON cannot hold
        text, header["checksum"] = json.dumps(values).encode(), ""
    if first_version:
        header["state"] = values
    else:
        arrays[persistence.STATE] = np.frombuffer(text, np.uint8)
        header["checksum"] = header["checksum"] and persistence.checksum(arrays, kind)
    return safetensors_save(arrays, {persistence.FORMAT: json.dumps(header)})


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
        model, _ = persistence.load_with_progress(path)
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
    labels = [label for label in model.classes if label is not None] or [1]
    for x in examples:
        model.learn_one(x, labels[0])
    model.learn_many(examples, [labels[-1]] * len(examples))
    model.flush()
    check_predicts(model, examples)
    model.save(path)
    try:
        loaded = stream_pegasos.load(path)
    except ValueError:
        return  # from the largest state that a file may hold it grew beyond that
    assert state_of(loaded) == state_of(model)


# The HTTP service -----------------------------------------------------------------------------------------------------

BODIES = [
    b'{"text": "win a free prize"}',
    b'{"text": "win a free prize", "label": "spam", "weight": 2.0, "id": "m1"}',
    b'[{"text": "lunch at noon?", "label": "ham"}, {"text": "cheap pills", "label": "spam", "id": 7}]',
    b'[{"text": "\\ud83d lone"}, {"text": "caf\xc3\xa9"}]',
    b'{"text": "\\ud83d", "label": "\\udc00"}',
    b"[]",
]
BODY_TOKENS = [*STREAM_TOKENS, b'"label":', b'"weight":', b'"text":', b'"id":', b'{"text":"x"},' * 20, b"a" * 2000]
BODY_TOKENS += [b"NaN", b"Infinity", b'{"text":"x","label":"ham"}', b'"\\ud800"', b"9" * 5000]
PATHS = [
    "/predict",
    "/learn",
    "/explain",
    "/model",
    "/monitor",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/",
    "/page.js",
]
PATH_TOKENS = ["/", "//", "..", "%00", "\x00", "é", "?", ";", " ", "\n"]
HEADERS = [
    (b"content-type", b"application/json"),
    (b"content-type", b"text/plain"),
    (b"content-length", b"5"),
    (b"content-length", b"-1"),
    (b"content-length", b"9" * 30),
    (b"content-length", b"9" * 5000),
    (b"content-length", b"\xb2"),
    (b"transfer-encoding", b"chunked"),
    (b"authorization", b"Bearer wrong"),
    (b"authorization", b"\xff\x00"),
    (b"host", b"evil.example:99999"),
    (b"host", b"\xff[:"),
    (b"host", b""),
    (b"cookie", b"a=b" * 100),
    (b"accept-encoding", b"gzip;q=nan"),
    (b"range", b"bytes=0-1,5-"),
]
METHODS = ["POST"] * 12 + ["GET"] * 4 + ["HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "post", "X\x00"]
TOKEN = "let me in"


def request(random):
    """Method, path, query, headers, the parts of the body, and how it ends."""
    body = random.choice(BODIES)
    if random.random() < 0.8:
        body = mutated(random, body, BODIES, BODY_TOKENS, one_byte)
    path = random.choice(PATHS[:3]) if random.random() < 0.8 else random.choice(PATHS)
    if random.random() < 0.05:
        path = "/" + mutated(random, path, PATHS, PATH_TOKENS, one_character)
    headers = [] if random.random() < 0.05 else [HEADERS[0]]
    if random.random() < 0.9:
        headers.append((b"authorization", b"Bearer " + TOKEN.encode()))
    if random.random() < 0.5:
        headers.append((b"host", b"localhost"))
    for _ in range(below(random, 3) if random.random() < 0.3 else 0):
        name, value = random.choice(HEADERS)
        if random.random() < 0.3:
            value = mutated(random, value, [value], STREAM_TOKENS, one_byte)
        headers.insert(below(random, len(headers) + 1), (name, value))
    parts = [body]
    while len(parts) < 5 and random.random() < 0.3:
        i = below(random, len(parts[-1]) + 1)
        parts[-1:] = [parts[-1][:i], parts[-1][i:]]
    end = random.choices(["whole", "disconnect", "stall"], [0.95, 0.045, 0.005])[0]
    query = mutated(random, b"a=b", [b"a=b"], STREAM_TOKENS, one_byte) if random.random() < 0.05 else b""
    return random.choice(METHODS), path, query, headers, parts, end


async def answer_to(app, one):
    """What the application answers: status, headers and body; no status where the client is gone."""
    method, path, query, headers, parts, end = one
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "surrogatepass"),
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 4321),
        "server": ("127.0.0.1", 8000),
    }
    events = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if end == "whole":
        events[-1]["more_body"] = False
    else:
        del events[-1]
    events.reverse()
    sent = []

    async def receive():
        if events:
            return events.pop()
        if end == "stall":
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    assert sent and sent[0]["type"] == "http.response.start"
    assert all(message["type"] == "http.response.body" for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


async def check_request(app, service, one):
    """The answer is a success or names the client's fault, in one line of JSON; then the model is as it was before."""
    before = state_of(service.model)
    status, headers, body = await answer_to(app, one)
    assert 200 <= status < 300 or 400 <= status < 500 or status == 503, (status, body)
    is_json = headers.get(b"content-type") == b"application/json"
    content = json.loads(body, parse_constant=refuse_constant) if is_json else None
    if status >= 400:
        assert body == b"Invalid host header" or type(content["detail"]) is str
        assert b"\n" not in body
        for secret in (b"Traceback", b'File "', os.path.dirname(stream_pegasos.__file__).encode(), TOKEN.encode()):
            assert secret not in body
    if status >= 400 or one[1] != "/learn":
        assert state_of(service.model) == before


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


class HttpTarget:
    """Requests to the service, over ASGI."""

    share, size = 2, 200

    def block(self, random):
        return [request(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        from stream_pegasos.service import Limits, Service, create_app

        limits = Limits(body=4000, text=1000, batch=20, seconds=0.01)
        model = TextClassifier(classifier=AdaptiveClassifier(max_features=200))
        service = Service(model, limits=limits, token=random.choice([None, TOKEN]))
        app = create_app(service, random.choice([("*",), ("localhost", "127.0.0.1")]))

        async def check_all():
            for i, one in enumerate(inputs):
                at(i)
                await check_request(app, service, one)

        asyncio.run(check_all())


# Running --------------------------------------------------------------------------------------------------------------

TARGETS = {"scanner": ScannerTarget, "readers": ReadersTarget, "loader": LoaderTarget, "http": HttpTarget}


def block_of(target, name, seed, number):
    """The inputs of a block, and the source of what else is random in it; the same each time."""
    random = Random(f"{name} {seed} {number}")
    return target.block(random), random


def try_blocks(target, name, seed, numbers, tell, position):
    """Try blocks of inputs, and tell of each failure: block, input, traceback."""

    def at(i, seconds=SECONDS):
        position[1] = i
        signal.setitimer(signal.ITIMER_REAL, seconds)

    for number in numbers:
        position[0] = number
        inputs, random = block_of(target, name, seed, number)
        try:
            target.check(inputs, random, at)
        except Exception:
            tell((*position, traceback.format_exc()))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def work(name, seed, begin, end, megabytes, connection, position):
    """What the process of a target does."""
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)  # then the alarm ends the process
    if megabytes:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 23, megabytes << 23))  # what is reserved may be far more
    sys.addaudithook(watch)
    try_blocks(TARGETS[name](), name, seed, range(begin, end), connection.send, position)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (10 if sys.platform == "darwin" else 0)
    connection.send(kilobytes >> 10)
    connection.close()


def fuzz(name, seed, begin, end, most_megabytes):
    """Try blocks of inputs in a process; returns the number of failures and the megabytes of memory."""
    context = multiprocessing.get_context("spawn")
    position = context.RawArray("q", 2)
    n_failures, megabytes = 0, 0
    while begin < end and n_failures < MOST_FAILURES:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(name, seed, begin, end, most_megabytes, sender, position))
        process.start()
        sender.close()
        begin = end
        try:
            while isinstance(said := receiver.recv(), tuple):
                n_failures += 1
                report(name, seed, *said)
                if n_failures == MOST_FAILURES:
                    process.terminate()
            megabytes = max(megabytes, said)
        except EOFError:
            process.join()
            if n_failures < MOST_FAILURES:
                n_failures += 1
                report(name, seed, *position, f"the process ended with exit code {process.exitcode}")
                begin = position[0] + 1
        process.join()
    if 0 < most_megabytes < megabytes:
        n_failures += 1
        print(f"FAILURE {name}: {megabytes} MB of memory, more than {most_megabytes}", flush=True)
    return n_failures, megabytes


def report(name, seed, number, i, what):
    inputs, _ = block_of(TARGETS[name](), name, seed, number)
    shown = inputs if name == "scanner" else inputs[i]
    print(f"FAILURE --target {name} --seed {seed} --block {number}, input {i}\n{what}\n{shown!r}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--block", type=int, help="only this block of the target")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="bound on memory; 0 for none")
    options = parser.parse_args()
    if options.block is not None and options.target is None:
        parser.error("--block needs --target")
    names = [*TARGETS] if options.target is None else [options.target]
    shares = sum(TARGETS[name].share for name in names)
    print(f"Seed {options.seed}, {stream_pegasos.engine.NAME} engine, at most {SECONDS} s an input")
    print(f"{'target':8} {'inputs':>10} {'inputs/s':>9} {'failures':>8} {'memory':>8} {'bound':>8}", flush=True)
    total, n_failures = 0, 0
    for name in names:
        target = TARGETS[name]
        begin, n_blocks = 0, -(-options.inputs * target.share // (shares * target.size))
        if options.block is not None:
            begin, n_blocks = options.block, 1
        start = time.perf_counter()
        failures, megabytes = fuzz(name, options.seed, begin, begin + n_blocks, options.megabytes)
        n = n_blocks * target.size
        per_second = n / (time.perf_counter() - start)
        print(f"{name:8} {n:10,} {per_second:9,.0f} {failures:8} {megabytes:5} MB {options.megabytes:5} MB", flush=True)
        total, n_failures = total + n, n_failures + failures
    print(f"{total:,} inputs, {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
