"""Sending models to workers."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from stream_pegasos.common.cached import cached_property
from stream_pegasos.learners.loading import load

__all__ = ["ModelFile", "find_context"]


def find_context(frame: DataFrame) -> SparkContext:
    """The context of a frame; a TypeError if there is none, as with Spark Connect."""
    if not isinstance(frame.sparkSession, SparkSession):
        raise TypeError(
            "models are sent to workers by broadcast, which Spark Connect does not have: use a classic session"
        )
    return frame.sparkSession.sparkContext


class ModelFile:
    """A model file that workers can read; each process loads it once."""

    def __init__(self, path: str, vectors: object = None) -> None:
        self.path, self.vectors = path, vectors

    @cached_property
    def model(self) -> Any:
        return load(self.path, self.vectors)
