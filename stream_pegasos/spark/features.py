"""Features that workers make of texts, and a model that is given these instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from scipy import sparse

from stream_pegasos.engine import Rows
from stream_pegasos.features.base import Features
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.predictions import Predictions
from stream_pegasos.learners.text import TextClassifier

__all__ = ["COLUMNS", "FeatureModel", "featured", "rows_of", "without_columns"]

INDICES, VALUES = "_indices", "_values"
COLUMNS = f"{INDICES} array<int>, {VALUES} array<double>"


class FeatureModel:
    """A text model that is given the features of texts, as arrays of a CSR matrix. It learns what the text model would,
    bit for bit where the classifier is adaptive, else to rounding.

    Parameters
    ----------
    model
        The text model, which learns with it.
    """

    def __init__(self, model: TextClassifier) -> None:
        self._classifier = model.classifier
        # The adaptive rule has a norm of its own, and any other would only round.
        is_adaptive = isinstance(getattr(model.classifier, "classifier", model.classifier), AdaptiveClassifier)
        self.features = model.features.without_norm() if is_adaptive else model.features
        self.lock, self.capabilities = model.lock, model.capabilities
        self.check_labels = model.check_labels
        self._encoder = Rows(model.features.specification.n_features)

    @property
    def classes(self) -> Any:
        return self._classifier.classes

    @property
    def has_one_margin(self) -> bool:
        return self._classifier.has_one_margin

    def predictions(self, X: Any, threads: int = 1) -> Predictions:
        with self.lock:
            return self._classifier.predictions_of(self._classifier.meet_rows(self._encoder, X))

    def predict_learn_many(self, X: Any, y: list[Any], w: Any) -> Predictions:
        with self.lock:
            return self._classifier.predictions_of(self._classifier.learn_rows(self._encoder, X, y, w))

    def learn_many(self, X: Any, y: list[Any], w: Any) -> None:
        with self.lock:
            self._classifier.learn_rows(self._encoder, X, y, w)


def featured(batches: Iterable[pa.RecordBatch], features: Broadcast[Features], text: str) -> Iterator[pa.RecordBatch]:
    """Add the features of each message: numbers of columns and values, in the order in which a scanner finds them."""
    those: Any = features.value
    nothing: Any = "" if those.takes_text else {}
    for batch in batches:
        X = [nothing if x is None else x for x in batch[text].to_pylist()]
        if not those.takes_text:  # what cannot be read is told where it would be learned
            X = [x if reason is None else nothing for x, reason in zip(X, those.refusals(X), strict=True)]
        indptr, indices, values = those.scanner.transform_many(those.prepare_many(X))
        offsets = pa.array(indptr, pa.int32())
        for name, array, kind in ((INDICES, indices, pa.int32()), (VALUES, values, pa.float64())):
            batch = batch.append_column(name, pa.ListArray.from_arrays(offsets, pa.array(array, kind)))
        yield batch


def rows_of(table: pa.Table, n_features: int, at: list[int]) -> tuple[Any, Any, Any]:
    """The features of some rows, as a `FeatureModel` takes them."""
    indices, values = (table[name].combine_chunks() for name in (INDICES, VALUES))
    indptr = np.concatenate([[0], np.cumsum(np.asarray(indices.value_lengths(), np.int64))])
    arrays = indptr, indices.flatten().to_numpy(), values.flatten().to_numpy()
    if len(at) == table.num_rows:
        return arrays
    matrix = sparse.csr_array(arrays[::-1], (table.num_rows, n_features))[at]
    return matrix.indptr.astype(np.int64), matrix.indices, matrix.data


def without_columns(table: pa.Table) -> pa.Table:
    """What there was before features were added."""
    return table.drop_columns([INDICES, VALUES])
