"""Sending models to workers."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.loading import load

__all__ = ["ModelFile", "context_of", "packed", "unpacked"]


def context_of(frame: DataFrame) -> SparkContext:
    """The context that a frame belongs to.

    Raises
    ------
    TypeError
        If there is none, as with Spark Connect.
    """
    if not isinstance(frame.sparkSession, SparkSession):
        raise TypeError(
            "models are sent to workers by broadcast, which Spark Connect does not have: use a classic session"
        )
    return frame.sparkSession.sparkContext


class ModelFile:
    """A model file that workers can read; each process loads it once."""

    def __init__(self, path: str) -> None:
        self.path = path

    @functools.cached_property
    def model(self) -> Any:
        return load(self.path)


def packed(snapshot: Snapshot) -> bytes:
    """A snapshot as bytes, with arrays in single precision if that loses nothing."""
    arrays = {}
    for name, array in snapshot.arrays.items():
        single = array.astype(np.float32) if array.dtype == np.float64 else array
        arrays[name] = single if np.array_equal(single, array) else array
    content = snapshot.kind, arrays, snapshot.names, snapshot.values, snapshot.vectors
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def unpacked(content: bytes) -> Snapshot:
    """What `packed` packed."""
    kind, arrays, names, values, vectors = pickle.loads(content)
    whole = {name: array.astype(float) if array.dtype == np.float32 else array for name, array in arrays.items()}
    return Snapshot(kind, whole, names, values, None, vectors=vectors)
