"""Saved models that somebody changed."""

import itertools

import numpy as np
import orjson
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save

from stream_pegasos.common.packing import NAME_OFFSETS, NAMES
from stream_pegasos.learners.files import FORMAT, STATE, checksum


def take_apart(path):
    """The arrays and the header of a saved model; in the header also the state, and in that the names of features."""
    with safe_open(path, framework="numpy") as file:
        assert list(file.metadata()) == [FORMAT]
        header = orjson.loads(file.metadata()[FORMAT])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert header["checksum"] == checksum(arrays, header["kind"])
    texts, ends = arrays.pop(NAMES).tobytes(), arrays.pop(NAME_OFFSETS).tolist()
    header["state"] = orjson.loads(arrays.pop(STATE).tobytes())
    innermost(header["state"])["names"] = [orjson.loads(texts[i:j]) for i, j in itertools.pairwise(ends)]
    return arrays, header


def innermost(state):
    """The state of the classifier, in that of a text model, too."""
    return state.get("classifier", state)


def put_together(path, arrays, header):
    """A file of these, with a checksum to fit if there is any; the state may be a text."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    if isinstance(header, dict):
        header = dict(header)
        if "state" in header:
            arrays = {**state_arrays(header.pop("state")), **arrays}
        if "checksum" in header:
            header["checksum"] = checksum(arrays, header.get("kind"))
        header = orjson.dumps(header).decode()
    path.write_bytes(safetensors_save(arrays, {FORMAT: header}))


def state_arrays(state):
    names = []
    if isinstance(state, dict) and isinstance(innermost(state), dict):
        state = orjson.loads(orjson.dumps(state))
        names = innermost(state).pop("names", None)
    arrays = {STATE: array_of(state.encode() if isinstance(state, str) else orjson.dumps(state))}
    if isinstance(names, list):
        texts = [orjson.dumps(name) for name in names]
        arrays[NAMES], arrays[NAME_OFFSETS] = array_of(b"".join(texts)), np.cumsum([0, *map(len, texts)])
    return arrays


def array_of(text):
    return np.frombuffer(text, np.uint8)


def forge(path, change):
    """Change a saved model's arrays, state and header, with a checksum to fit."""
    arrays, header = take_apart(path)
    replaced = change(arrays, header["state"], header)
    if replaced is not None:
        header["state"] = replaced
    put_together(path, arrays, header)


def without_spaces(content):
    """A safetensors file without those that fill its header."""
    end = 8 + int.from_bytes(content[:8], "little")
    return content[8:end].rstrip(b" "), content[end:]
