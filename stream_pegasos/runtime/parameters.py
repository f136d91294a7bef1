"""The parameters of a model, for JSON."""

from __future__ import annotations

from typing import Any

from river import base

from stream_pegasos.common.packing import get_parameters, pack
from stream_pegasos.features.base import Features
from stream_pegasos.learners.model import Model

__all__ = ["made_with"]


def made_with(estimator: base.Base) -> dict[str, Any]:
    """The parameters of an estimator, as values for JSON. An estimator inside it becomes its kind and its parameters.

    Examples
    --------

    >>> from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier
    >>> from stream_pegasos.runtime.parameters import made_with

    >>> inside = made_with(MultiLabelClassifier(AdaptiveClassifier(half_life=500)))["classifier"]
    >>> inside["kind"], inside["half_life"]
    ('AdaptiveClassifier', 500)

    """
    parameters = estimator.described() if isinstance(estimator, Features) else get_parameters(estimator)
    return {name: _described(value) for name, value in parameters.items()}


def _described(value: object) -> Any:
    if isinstance(value, (Model, Features)):
        return {"kind": type(value).__name__, **made_with(value)}
    if isinstance(value, list) and any(isinstance(item, Features) for item in value):
        return [_described(item) for item in value]
    return pack(value)
