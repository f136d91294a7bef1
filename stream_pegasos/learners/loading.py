"""Model files of any class of the package."""

from __future__ import annotations

import os
from typing import Any

from stream_pegasos.learners.files import read_model
from stream_pegasos.learners.model import Model

__all__ = ["load", "load_with_progress"]


def load(path: str | os.PathLike[str], vectors: object = None) -> Model:
    """Read a model of any class of the package from a file. A drift detector in it begins anew.

    Parameters
    ----------
    path
        A file that `save` wrote.
    vectors
        The word vectors or the encoder of the model, as for `TextFeatures`. A file of a model only names them: a file,
        a folder or a server is opened if it is named here, too. `None` opens nothing but an installed package.

    Raises
    ------
    ValueError
        If the file is damaged or is no model; or if the vectors that it needs lack, are not named here, or are
        others than they were.
    OSError
        If the file, or that of `vectors`, cannot be read.
    TypeError, ImportError
        If there can be no such `vectors`, or a package for these is missing.

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
    """The model in a file, and what `snapshot` was given beside it."""
    model, progress = read_model(path, vectors)
    assert isinstance(model, Model)
    return model, progress
