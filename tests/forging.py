"""Saved models that somebody changed."""

import itertools

import numpy as np
import orjson
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save

from stream_pegasos.learners.persistence import FORMAT, NAME_OFFSETS, NAMES, STATE, checksum


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


def as_of_old(arrays, header):
    """Arrays and header as package 0.1 wrote them: those of two classes without columns, and classes by other names."""
    arrays, header = dict(arrays), orjson.loads(orjson.dumps(header))
    state = innermost(header["state"])
    kinds = header["state"].get("kind", header["kind"]), header["kind"]
    parameters = state["parameters"]
    if kinds[0] == "PegasosClassifier":
        multi_class = parameters.pop("multi_class")
        if multi_class is not None:
            for name in ("pos_label", "average", "counter", "initializer", "max_features"):
                del parameters[name]
            parameters["multi_class"] = multi_class
            kinds = "MulticlassPegasosClassifier", kinds[1]
        else:
            del arrays["buffer_columns"]
            for name in ("values", "sums"):
                if name in arrays:
                    arrays[name] = arrays[name][:, 0]
            for name in OF_COLUMNS:
                if name in arrays:
                    state["learner"][name] = arrays.pop(name).item()
    if "kind" in header["state"]:
        header["state"]["kind"] = kinds[0]
        header["kind"] = "PegasosTextClassifier"
    else:
        header["kind"] = kinds[0]
    return arrays, header


OF_COLUMNS = ("scale", "squares", "n_iterations", "n_buffered", "n_violations", "sums_scale", "sums_weight")


def put_together_as_of_old(path, arrays, header, version):
    """A file of package 0.1; in version 1 of the format the header had the state and the names of features."""
    arrays, header = as_of_old(arrays, header)
    header["format_version"] = version
    if version == 2:
        put_together(path, arrays, header)
        return
    header["checksum"] = checksum(arrays, header["state"])
    path.write_bytes(safetensors_save(dict(arrays), {FORMAT: orjson.dumps(header).decode()}))


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
