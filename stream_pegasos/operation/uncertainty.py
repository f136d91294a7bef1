"""How unsure a model is of messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.learners.predictions import Predictions

__all__ = ["uncertainty"]


def uncertainty(predictions: Predictions) -> NDArray[np.float64]:
    """How unsure a model is of each message, from 0 to 1: 1 minus the difference of the probabilities of the two most
    probable labels. If a message may have several labels, it is 1 minus the smallest difference between yes and no. For
    a model that knows fewer than two labels it is 1.

    Examples
    --------

    >>> from stream_pegasos import TextClassifier
    >>> from stream_pegasos.operation.uncertainty import uncertainty
    >>> uncertainty(TextClassifier().predictions(["a", "b"])).tolist()
    [1.0, 1.0]

    """
    if not len(predictions):
        return np.ones(0)
    probabilities, unsure = predictions.probabilities, np.ones(len(predictions))
    if isinstance(predictions.labels[0], tuple):
        nearest = np.abs(2.0 * probabilities - 1.0).min(axis=1, initial=1.0)
        return 1.0 - nearest if probabilities.shape[1] else unsure
    if probabilities.shape[1] < 2 or None in predictions.classes:
        return unsure
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.clip(1.0 - (two[:, 1] - two[:, 0]), 0.0, 1.0)
