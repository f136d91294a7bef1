"""Loading of model files of any class of the package."""

from __future__ import annotations

import os
from typing import Any

from stream_pegasos.learners.files import read_model
from stream_pegasos.learners.model import Model

__all__ = ["load", "load_with_progress"]


def load(path: str | os.PathLike[str], vectors: object = None) -> Model:
    """Read a model of any class of the package from a file. A drift detector in it starts again.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote.
    vectors : str, path, mapping, encoder, callable or None, default None
        The word vectors or the encoder of the model, as for `TextFeatures`. A model file only has their name: a file, a
        folder or a server is opened only if it is named here, too. `None` opens nothing but an installed package.

    Raises
    ------
    ValueError
        If the file is damaged or is no model; or if the vectors that it needs are missing, not named here, or changed.
    OSError
        If the file, or the file of `vectors`, cannot be read.
    TypeError, ImportError
        If `vectors` has a wrong type, or a package for them is missing.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import stream_pegasos
    >>> model = stream_pegasos.TextClassifier()
    >>> model.learn_one("cheap pills", "spam")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.safetensors"
    ...     model.save(path)
    ...     stream_pegasos.load(path).predict_one("pills")
    'spam'
    """
    return load_with_progress(path, vectors)[0]


def load_with_progress(path: str | os.PathLike[str], vectors: object = None) -> tuple[Model, Any]:
    """The model in a file, and the progress beside it."""
    model, progress = read_model(path, vectors)
    assert isinstance(model, Model)
    return model, progress
