"""Lossless conversion to JSON and back: labels, names of features, parameters of estimators."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import json
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from river import base

from stream_pegasos.common.errors import must_be

has_surrogate = re.compile(r"[\ud800-\udfff]").search
# The arrays of the feature names: their JSON texts, joined, and the offsets of the texts.
NAMES, NAME_OFFSETS = "names", "name_offsets"


def pack(value: object) -> Any:
    """A label, a feature name or a parameter as JSON. `unpack` restores the same value with the same type."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else {"int": f"{value:x}"}
    if isinstance(value, str):  # JSON cannot hold lone surrogates
        return {"str": value.encode("utf-16-le", "surrogatepass").hex()} if has_surrogate(value) else value
    if isinstance(value, tuple):
        return {"tuple": [pack(part) for part in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((pack(part) for part in value), key=repr)}
    if isinstance(value, (list, deque)):
        return {"list": [pack(part) for part in value]}
    if isinstance(value, Mapping):
        return {"dict": [[pack(key), pack(part)] for key, part in value.items()]}
    if is_drift_detector(value) and type(value).__module__.startswith("river.drift."):
        return {"drift_detector": [type(value).__name__, pack(get_parameters(value))]}
    raise ValueError(f"{value!r} cannot be saved: a model file holds data, no code")


def unpack(packed: object) -> Any:
    if not isinstance(packed, dict):
        return packed
    ((kind, content),) = packed.items()
    if kind == "int":
        return int(content, 16)
    if kind == "str":
        return bytes.fromhex(content).decode("utf-16-le", "surrogatepass")
    if kind == "dict":
        return {unpack(key): unpack(part) for key, part in content}
    collection = {"tuple": tuple, "set": frozenset, "list": list}[kind]
    return collection(unpack(part) for part in content)


def is_drift_detector(value: object) -> bool:
    return isinstance(value, (base.DriftDetector, base.BinaryDriftDetector))


def drift_detector_class(name: str) -> Any:
    from river import drift  # slow to import, and rarely needed

    kinds = (base.DriftDetector, base.BinaryDriftDetector)
    classes = [value for module in (drift, drift.binary) for value in vars(module).values() if isinstance(value, type)]
    detectors = {kind.__name__: kind for kind in classes if issubclass(kind, kinds)}
    if name not in detectors:
        raise ValueError(f"drift_detector must be one of River's ({', '.join(sorted(detectors))}), got {name!r}")
    return detectors[name]


def get_parameters(estimator: object) -> dict[str, Any]:
    """The constructor parameters of an object with River's protocol."""
    kind: type = type(estimator)
    return {name: getattr(estimator, name) for name in parameter_names(kind)}


@functools.cache
def parameter_names(kind: type) -> tuple[str, ...]:
    return tuple(inspect.signature(kind).parameters)


def described(value: Any, depth: int = 0) -> str:
    """An estimator with its parameters that differ from the defaults, one on each line as in River; so are nested
    estimators. Any other value is shown by its `repr`.
    """
    end = f"\n{'  ' * depth}"
    if isinstance(value, (list, tuple)) and any(isinstance(part, base.Base) for part in value):
        return f"[{','.join(f'{end}  {described(part, depth + 1)}' for part in value)}{end}]"
    if isinstance(value, (set, frozenset)):  # their order differs from run to run
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    if not isinstance(value, base.Base):
        return f'"{value}"' if isinstance(value, str) else getattr(value, "__name__", repr(value))
    if not type(value).__module__.startswith("stream_pegasos."):
        return repr(value).replace("\n", end)
    kind = type(value)
    defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()}
    parameters = {name: part for name, part in get_parameters(value).items() if is_given(part, defaults[name])}
    if "vectors" in parameters:  # the same table, whether it was given as a path, as an object or by a model file
        parameters["vectors"] = vars(value).get("vector_source", parameters["vectors"])
    lines = [f"{end}  {name}={described(part, depth + 1)}" for name, part in parameters.items()]
    return f"{kind.__name__} ({''.join(lines)}{end if lines else ''})"


def is_given(value: object, default: object) -> bool:
    return value is not default and (type(value) is not type(default) or bool(value != default))


def parameters_in_json(kind: type) -> list[str]:
    """The parameters of features that JSON may set: no functions, and none that has its own option of the command."""
    other_names = ("on", "namespace", "vectors", "preprocessor", "tokenizer")
    return [name for name in parameter_names(kind) if name not in other_names]


def features_to_json(features: object) -> str:
    """The parameters in `parameters_in_json` that differ from the defaults, as a JSON object."""
    defaults = inspect.signature(type(features)).parameters
    parameters = get_parameters(features)
    changed = {
        name: parameters[name]
        for name in parameters_in_json(type(features))
        if parameters[name] != defaults[name].default
    }
    for name, value in changed.items():
        if callable(value):
            raise ValueError(f"{name} is a function, which has no form in JSON")
    return json.dumps(changed, default=sorted)


def pack_parameters(estimator: base.Base) -> dict[str, Any]:
    return {name: pack(value) for name, value in get_parameters(estimator).items()}


def unpack_parameters(packed: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that `pack_parameters` packed. River's drift detectors are created again."""
    parameters = {}
    for name, value in packed.items():
        if name == "drift_detector" and isinstance(value, dict):
            kind, its_parameters = value[name]
            parameters[name] = _drift_detector(kind, unpack(its_parameters))
        else:
            parameters[name] = unpack(value)
    return parameters


def _drift_detector(name: str, parameters: dict[str, Any]) -> Any:
    """A new detector with checked sizes: River checks few parameters, and a wrong size makes some detectors end the
    process.
    """
    for parameter in SIZES_OF_DETECTORS & parameters.keys():
        size = parameters[parameter]
        if not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE:
            raise ValueError(must_be(f"{parameter} of {name}", f"from 1 to {LARGEST_SIZE}", size))
    detector = drift_detector_class(name)(**parameters)
    tried = detector.clone()
    for wrong in (False, True) * 20:
        tried.update(wrong)
    return detector


SIZES_OF_DETECTORS = {"clock", "max_buckets", "sliding_window_size", "stat_size", "window_size"}
LARGEST_SIZE = 100_000


def look_up(name: str) -> None:
    """Import the module of a public class whose name is in a model file."""
    if name[:1].isupper():  # not functions: they are public, too, but import more than a model needs
        getattr(importlib.import_module("stream_pegasos"), name, None)


def pack_names(names: list[Any]) -> dict[str, NDArray[Any]]:
    """Names of features as two arrays: their JSON texts, joined, and the offsets of the texts."""
    texts = [orjson.dumps(pack(name)) for name in names]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {NAMES: np.frombuffer(b"".join(texts), np.uint8), NAME_OFFSETS: offsets}


def unpack_names(arrays: dict[str, NDArray[Any]]) -> list[Any]:
    """Remove the two arrays of `pack_names` from `arrays`, and return the names."""
    texts, offsets = arrays.pop(NAMES), arrays.pop(NAME_OFFSETS)
    content, ends = texts.tobytes(), offsets.tolist()
    has_types = texts.dtype == np.uint8 and offsets.dtype == np.int64 and offsets.ndim == 1
    if not has_types or ends[:1] != [0] or ends[-1] != len(content) or (np.diff(offsets) < 0).any():
        raise ValueError("the feature names must be as they were saved")
    return [unpack(orjson.loads(content[begin:end])) for begin, end in itertools.pairwise(ends)]
