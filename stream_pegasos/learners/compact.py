"""States as few bytes, where there are a great many of them that differ little from one."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.learners.files import Arrays

__all__ = ["Packer"]

# How many bytes say how long the JSON text is.
LENGTH = 4


@dataclass(frozen=True)
class Packer:
    """Turns one-dimensional arrays of int64 and float64, and a JSON value, into bytes and back.

    Parameters
    ----------
    arrays
        What arrays of these names and lengths often hold; others are often 0.
    text
        What the JSON text often has in it.
    """

    arrays: Arrays
    text: bytes

    def packed(self, arrays: Arrays, values: Any) -> bytes:
        """Each array is written in the smallest type that holds its numbers exactly, without those that are as usual,
        where these are many.
        """
        parts: list[bytes] = []
        written = []
        for name, array in arrays.items():
            differs = array != self._usual(name, array.dtype.str, len(array))
            is_sparse = 8 * np.count_nonzero(differs) < 7 * len(differs)
            if is_sparse:
                parts.append(np.packbits(differs).tobytes())
            numbers = smallest(array[differs] if is_sparse else array)
            parts.append(numbers.tobytes())
            written.append([name, array.dtype.str, numbers.dtype.str, len(array), len(numbers)])
        deflate = zlib.compressobj(1, zdict=self.text)
        text = deflate.compress(orjson.dumps([written, values])) + deflate.flush()
        return b"".join([len(text).to_bytes(LENGTH, "little"), text, *parts])

    def unpacked(self, content: bytes) -> tuple[dict[str, NDArray[Any]], Any]:
        """What `packed` gave."""
        done = LENGTH + int.from_bytes(content[:LENGTH], "little")
        written, values = orjson.loads(zlib.decompressobj(zdict=self.text).decompress(content[LENGTH:done]))
        arrays = {}
        for name, dtype, smaller, length, n in written:
            differs: Any = slice(None)
            if n < length:
                n_bytes = -(-length // 8)
                differs = np.unpackbits(np.frombuffer(content, np.uint8, n_bytes, done), count=length).astype(bool)
                done += n_bytes
            numbers = np.frombuffer(content, smaller, n, done)
            done += numbers.nbytes
            arrays[name] = self._usual(name, dtype, length).copy()
            arrays[name][differs] = numbers
        return arrays, values

    def _usual(self, name: str, dtype: str, length: int) -> NDArray[Any]:
        usual = self.arrays.get(name)
        return usual if usual is not None and len(usual) == length else np.zeros(length, dtype)


def smallest(numbers: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in the smallest type that holds them."""
    if not len(numbers):
        return numbers.astype(np.int8)
    if numbers.dtype.kind == "i":
        smaller = numbers.astype(np.min_scalar_type(max(numbers.max(), -numbers.min() - 1)))
    else:
        with np.errstate(over="ignore"):
            smaller = numbers.astype(np.float32)
    return smaller if (smaller == numbers).all() else numbers
