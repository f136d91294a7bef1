"""The build backend: setuptools. Its warnings about its own parts fail no build, even with PYTHONWARNINGS=error."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def suppress_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def __getattr__(name: str) -> Callable[..., Any]:
    """A hook of PEP 517, such as `build_wheel`."""
    with suppress_warnings():
        hook = getattr(importlib.import_module("setuptools.build_meta"), name)

    def call(*arguments: Any, **parameters: Any) -> Any:
        with suppress_warnings():
            return hook(*arguments, **parameters)

    return call
