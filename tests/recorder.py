"""Record what the models of stream_pegasos give on real streams, to see whether a change of the code changed a result.

    python recorder.py record OUT.json [--files DIR] [--n N]    learn, and write digests of all that comes out
    python recorder.py load DIR OUT.json [--n N]                the same of the models saved in DIR, which learn on
    python recorder.py compare A.json B.json                    say which results differ

The environment variable STREAM_PEGASOS_DATA names the folder of the streams. Only the public API is used, so that two
versions of the package, each installed for a Python of its own, can be compared.
"""

import argparse
import gzip
import hashlib
import json
import os
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from pairwise import pairwise
from river import drift

import stream_pegasos as sp

PIECE, ONE_BY_ONE, SHOWN, SHOWN_ONE = 1000, 100, 300, 20  # messages: learned at once, singly; asked about at the end


def ordinal(**options: Any) -> Any:
    return sp.OrdinalClassifier(sp.AdaptiveClassifier(**options))


def common_words(x: dict[Any, float], z: dict[Any, float]) -> float:
    return float(sum(min(value, z[name]) for name, value in x.items() if name in z))


# The cases. Of each table there is a covering set for each group of inputs.

REUTERS, STARS = "reuters21578", "rotten_tomatoes_phrases"
LABELS = {"sms_spam": ("ham", "spam"), "enron_1to3": ("ham", "spam"), "rt_polarity": ("neg", "pos")}
TEXTS, DICTS, MATRICES = ("text", "recipe", "text_4096"), ("dicts",), ("narrow", "wide", "matrix_4096")
SIZES = {"narrow": 2**10, "text_4096": 2**12, "matrix_4096": 2**12}  # columns, of those that have not 2**20
GROUPS = (TEXTS[:2], DICTS, MATRICES[:2])
BOTH = (True, False)
# What is made anew for each model, by its option.
MADE = {"drift_detector": drift.binary.HDDMW}

ANY = {"fit_intercept": BOTH, "weighted": BOTH}
STEPS = {**ANY, "l2": (1e-4, 1e-2), "project": BOTH, "intercept_scaling": (1.0, 0.5)}
TWO = {"stream": LABELS, "class_weight": (None, "dict", "balanced")}
POSITIVE = {"pos_label": (None, "positive", "negative")}

PEGASOS = TWO | POSITIVE | STEPS
PEGASOS |= {"batch_size": (1, 7), "t0": (0.0, 100.0, 1e4), "average": (False, True, 50, "weighted")}
PEGASOS |= {"max_features": (None, 2000)}

# A threshold and a limit of false positives need to know the positive label.
DECISIONS = [(None, 0.5, None), ("negative", 0.5, None), ("positive", 0.7, None), ("negative", 0.3, 0.1)]
DECISIONS += [("positive", 0.5, 0.02)]
ADAPTIVE = TWO | {"pos_label threshold max_false_positive_rate": DECISIONS} | ANY
ADAPTIVE |= {"margin": (5.0, 1.0, None), "half_life": (10_000, 500, None), "drift_detector": (None, True)}
ADAPTIVE |= {"max_features": (None, 2000), "loss": ("log", "hinge"), "naive_bayes": BOTH, "smoothing": (0.5, 0.01)}
ADAPTIVE |= {"learning_rate": (0.5, 0.1), "intercept_scaling": (0.1, 1.0)}

MULTICLASS = {"multi_class": ("crammer_singer", "ovr"), "class_weight": (None, {"earn": 2.0, "acq": 0.5}, "balanced")}
MULTICLASS |= STEPS | {"stream": (REUTERS,), "batch_size": (1, 5), "t0": (0.0, 100.0)}
ORDINAL = ANY | {"stream": (STARS,), "margin": (5.0, 1.0), "half_life": (10_000, 500), "naive_bayes": BOTH}
FUNCTION = TWO | POSITIVE | {"t0": (0.0, 10.0), "l2": (1e-2, 1e-3), "weighted": BOTH}
FUNCTION |= {"budget": (None, 50)}
KERNEL = FUNCTION | {"gamma": (0.5, 1.0), "degree": (2, 3), "coef0": (0.5, 1.0)}
KERNEL |= {"kernel": ("linear", "polynomial", "rbf")}
FUNCTION |= {"kernel": (common_words,)}

TABLES: list[tuple[str, Callable[..., Any], dict[str, Any], tuple[tuple[str, ...], ...], int]] = [
    ("pegasos", sp.PegasosClassifier, PEGASOS, GROUPS, 1_000_000),
    ("adaptive", sp.AdaptiveClassifier, ADAPTIVE, GROUPS, 1_000_000),
    ("multiclass", sp.PegasosClassifier, MULTICLASS, GROUPS, 1_000_000),
    ("ordinal", ordinal, ORDINAL, GROUPS, 1_000_000),
    ("kernel", sp.KernelPegasosClassifier, KERNEL, (TEXTS[2:], DICTS, MATRICES[2:]), 600),
    ("function", sp.KernelPegasosClassifier, FUNCTION, (DICTS,), 200),
]


@dataclass
class Case:
    """A model and what it learns: n messages and, loaded from a file, n_more."""

    name: str
    make: Callable[..., Any]
    stream: str
    inputs: str
    options: dict[str, Any]
    weighted: bool
    n: int

    def __post_init__(self) -> None:
        self.n_more = max(1, min(500, self.n // 2))
        self.saved = not callable(self.options.get("kernel"))  # no file can hold a function

    def examples(self) -> tuple[Any, list[Any]]:
        return examples(self.stream, self.inputs, self.n + self.n_more)

    def model(self) -> Any:
        classifier = self.make(**self.options | {name: MADE[name]() for name in MADE if self.options.get(name)})
        features = None if self.inputs == "recipe" else bag(self.inputs)
        return sp.TextClassifier(features, classifier) if self.inputs in TEXTS else classifier


def all_cases(n: int) -> Iterator[Case]:
    for kind, make, table, groups, most in TABLES:
        rows = [row for group in groups for row in pairwise(**{"inputs": group, **table})]
        for i, row in enumerate(rows):  # messages in numbers that leave some in the buffers of mini-batches
            options: dict[str, Any] = {}
            for names, value in row.items():
                options |= zip(names.split(), value, strict=True) if " " in names else {names: value}
            stream, inputs, weighted = (options.pop(name) for name in ("stream", "inputs", "weighted"))
            if stream in LABELS:
                negative, positive = LABELS[stream]
                meant = {"negative": negative, "positive": positive, "dict": {positive: 2.0}}
                options |= {name: meant.get(options[name], options[name]) for name in ("pos_label", "class_weight")}
            if options.get("max_features") and inputs in ("dicts", "narrow"):
                options["max_features"] = 500
            n_case = min(n, most, 398 if inputs == "dicts" else n)
            yield Case(f"{kind}-{i:03}-{stream}-{inputs}", make, stream, inputs, options, weighted, n_case)


def bag(inputs: str) -> Any:
    return sp.HashedBagOfWords(n_features=SIZES.get(inputs, 2**20))


@cache
def messages(stream: str, n: int) -> tuple[list[str], list[Any]]:
    """The first n texts that have a label, and their labels; of several topics the first."""
    with gzip.open(Path(os.environ["STREAM_PEGASOS_DATA"]) / f"{stream}.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = ({"topics": [], **json.loads(line)} for line in lines)
        pairs = ((it["text"], label) for it in records for label in [*it["topics"][:1], it.get("label")][:1])
        texts, labels = zip(*islice((pair for pair in pairs if pair[1] is not None), n), strict=True)
    return list(texts), list(labels)


@cache
def examples(stream: str, inputs: str, n: int) -> tuple[Any, list[Any]]:
    texts, labels = messages(stream, n)
    if inputs == "dicts":
        return [dict(Counter(bag(inputs).tokens(text))) for text in texts], labels
    return texts if inputs in TEXTS else bag(inputs).transform_many(texts), labels


def singly(X: Any) -> list[Any]:
    """Each example as the methods for one take it."""
    return X if isinstance(X, list) else [dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in X]


def learn(model: Any, case: Case, begin: int, end: int) -> list[Any]:
    """Learn the messages from `begin` to `end`; what decided about each before it was learned."""
    X, y = case.examples()
    w = [(0.5, 1.0, 2.0)[i % 3] if case.weighted else 1.0 for i in range(end)]
    middle = begin if case.inputs == "dicts" else max(begin, end - ONE_BY_ONE)
    pieces = [slice(start, min(start + PIECE, middle)) for start in range(begin, middle, PIECE)]
    said = [model.predict_learn_many(X[it], y[it], w[it] if case.weighted else 1.0) for it in pieces]
    given = [it.labels if "ordinal" in case.name else it.scores for it in said]
    for x, label, weight in zip(singly(X[middle:end]), y[middle:end], w[middle:end], strict=True):
        given.append(model.decision_function_one(x))
        model.learn_one(x, label, weight)
    return given


def results(model: Any, case: Case, end: int) -> dict[str, Any]:
    """All that a model tells after it has learned the messages up to `end`."""
    X = case.examples()[0][max(0, end - SHOWN) : end]
    given = {"classes": model.classes, **learned(model)}
    for name in ("predict_proba", "decision_function", "predict"):
        ask = getattr(model, f"{name}_one")
        given[f"{name}_many"] = getattr(model, f"{name}_many")(X)
        # The labels in the order in which they are given.
        given[f"{name}_one"] = [[*it.items()] if isinstance(it, dict) else it for it in map(ask, singly(X[:SHOWN_ONE]))]
    return given


def learned(model: Any) -> dict[str, Any]:
    classifier = model.classifier if isinstance(model, sp.TextClassifier) else model
    names = ["support_vectors", "dual_coef"] if hasattr(classifier, "dual_coef") else ["weights", "intercept"]
    names += ["n_iterations", *(["n_drifts"] if type(classifier) is sp.AdaptiveClassifier else [])]
    return {name: getattr(classifier, name) for name in names}


def recorded(case: Case, folder: Path | None, load: bool) -> dict[str, str]:
    """The digests of a case: of the model that learns or, loaded, of the one that was saved and learns on."""
    path, end = (folder or Path()) / f"{case.name}.safetensors", case.n + case.n_more
    model = sp.load(path) if load else case.model()
    given = {} if load else {"margins": learn(model, case, 0, case.n)}
    if folder and case.saved and not load:
        model.save(path)
    given |= results(model, case, case.n)
    if load:
        more = {"margins": learn(model, case, case.n, end), **results(model, case, end)}
        given |= {f"more_{name}": value for name, value in more.items()}
    model.flush()
    given |= {f"flushed_{name}": value for name, value in learned(model).items()}
    return {name: hashlib.sha256(b"".join(parts(value))).hexdigest() for name, value in given.items()}


def parts(value: Any) -> Iterator[bytes]:
    """A value as bytes: floats to the last bit, dicts sorted by their keys."""
    if isinstance(value, float):
        yield b"f" + struct.pack("<d", value)
    elif isinstance(value, np.ndarray):
        yield f"a{value.dtype.str}{value.shape}".encode()
        yield value.tobytes() if value.dtype.kind in "fiub" else repr(value.tolist()).encode()
    elif isinstance(value, (dict, list, tuple)):
        pairs = sorted(value.items(), key=lambda pair: repr(pair[0])) if isinstance(value, dict) else value
        yield f"{type(value).__name__}{len(value)}".encode()
        for part in pairs:
            yield from parts(part)
    else:
        yield f"{value!r};".encode()


def record(out: Path, folder: Path | None, n: int, load: bool) -> int:
    if "STREAM_PEGASOS_DATA" not in os.environ:
        sys.exit("STREAM_PEGASOS_DATA is not set; it names the folder of the streams")
    if folder and not load:
        folder.mkdir(parents=True, exist_ok=True)
    begun, cases, n_failed = time.perf_counter(), {}, 0
    for case in (it for it in all_cases(n) if it.saved or not load):
        shown = f"{case.options}, weighted={case.weighted}, {case.n} messages" if case.saved else "a function"
        try:
            digests = recorded(case, folder, load)
        except Exception as error:
            print(f"{case.name} fails: {type(error).__name__}: {error}; {shown}", file=sys.stderr)
            digests, n_failed = {"error": type(error).__name__}, n_failed + 1
        cases[case.name] = {"options": shown, "digests": digests}
    out.write_text(json.dumps({"n": n, "cases": cases}, indent=1) + "\n", encoding="utf-8")
    n_digests = sum(len(it["digests"]) for it in cases.values())
    print(f"{len(cases)} cases, {n_digests} digests, {n_failed} failed, {time.perf_counter() - begun:.0f} s")
    return int(n_failed > 0)


def compare(one: Path, other: Path) -> int:
    a, b = (json.loads(path.read_text(encoding="utf-8")) for path in (one, other))
    if a["n"] != b["n"]:
        sys.exit(f"the recordings are of {a['n']} and of {b['n']} messages")
    names, n_equal = [*dict.fromkeys([*a["cases"], *b["cases"]])], 0
    for name in names:
        left, right = (it["cases"].get(name, {}).get("digests", {}) for it in (a, b))
        wrong = [key for key in dict.fromkeys([*left, *right]) if left.get(key) != right.get(key)]
        n_equal += not wrong
        if wrong:
            print(f"{name}: {', '.join(wrong)}")
    print(f"{n_equal} of {len(names)} equal")
    return int(n_equal < len(names) or not names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "load", "compare"))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--n", type=int, default=298 if os.environ.get("STREAM_PEGASOS_ENGINE") == "pure" else 2998)
    given = parser.parse_args()
    if len(given.paths) != 1 + (given.command != "record"):
        parser.error("record takes one path, load and compare two")
    if given.command == "compare":
        return compare(*given.paths)
    folder = given.files if given.command == "record" else given.paths[0]
    return record(given.paths[-1], folder, given.n, given.command == "load")


if __name__ == "__main__":
    sys.exit(main())
