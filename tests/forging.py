"""Saved models that somebody changed."""

import numpy as np
import orjson
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save

from stream_pegasos.persistence import FORMAT, checksum


def take_apart(path):
    """The arrays and the header of a saved model."""
    with safe_open(path, framework="numpy") as file:
        assert list(file.metadata()) == [FORMAT]
        header = orjson.loads(file.metadata()[FORMAT])
        return {name: file.get_tensor(name) for name in file.keys()}, header  # noqa: SIM118


def put_together(path, arrays, header):
    text = header if isinstance(header, str) else orjson.dumps(header).decode()
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    path.write_bytes(safetensors_save(arrays, {FORMAT: text}))


def forge(path, change):
    """Change a saved model's arrays, state and header, with a checksum to fit."""
    arrays, header = take_apart(path)
    assert header["checksum"] == checksum(arrays, header["state"])
    replaced = change(arrays, header["state"], header)
    if replaced is not None:
        header["state"] = replaced
    header["checksum"] = checksum(arrays, header["state"])
    put_together(path, arrays, header)
