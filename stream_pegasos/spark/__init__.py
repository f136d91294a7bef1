"""Learning and scoring on a cluster, by Apache Spark.

| what | file |
|---|---|
| columns of frames | `columns` |
| learning of a frame: in rounds, by workers | `frame_learning`, `rounds`, `model_parts`, `shared_files` |
| predictions for a frame | `scoring` |
| an estimator of pyspark.ml | `ml` |
"""

from typing import Any

from stream_pegasos.common.extras import missing

try:
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401
except ImportError as error:
    raise missing("learning on Spark", "spark", error) from None

from stream_pegasos.spark.frame_learning import learn
from stream_pegasos.spark.ml import SparkTextClassifier, SparkTextClassifierModel
from stream_pegasos.spark.scoring import score

__all__ = ["SparkTextClassifier", "SparkTextClassifierModel", "learn", "score"]


def __getattr__(name: str) -> Any:
    if name == "learn_stream":
        raise ImportError("learn_stream of 0.2 is gone: call learn on each micro-batch, in Spark's foreachBatch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
