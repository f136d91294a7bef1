"""The engine in use: compiled where it was built, pure Python elsewhere; chosen once, when the package is imported.

The environment variable `STREAM_PEGASOS_ENGINE` forces `compiled` or `pure`.

| for | `pure/` | `cython/`, included by `compiled.pyx` |
|---|---|---|
| the loop over examples | `driver` | `driver`, `guard`, `threads` |
| calibration, ageing, errors of late | `driver`, `half_life`, `mistakes` | `calibration`, `half_life`, `mistakes` |
| one example; the margins of many as probabilities | `one_by_one`, `probabilities` | `one_by_one`, `probabilities` |
| messages as hashes and values | `encoders`, `scanner`, `tokens`, `characters` | `encoders`, `scanner`, `ngrams.h` |
| hash to record | a dict | `table`; the records as NumPy types: `records.py`, beside this file |
| Pegasos | `pegasos`, `weights` | `pegasos`, `weights` |
| the adaptive rule | `adaptive` | `adaptive`, `adaptive_pair`, `adaptive_columns` |
| its state; several classes | `adaptive_state` | `reductions`, `adaptive_dense` |
| the numbers of a feature | `feature_schema`, beside this file | `records.h`, which the build writes from it |
| numbers of a table at one size | `moments` | `moments` |
| vectors of messages | `dense` | `dense.h`, `vectors` |
| models of several machines as one | `merging`, beside this file | |
| the build, which pyproject.toml names | | `building/engine_builder` |
"""

from __future__ import annotations

import copyreg
import importlib
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from stream_pegasos.common.errors import must_be
from stream_pegasos.engine import pure

__all__ = [
    "NAME",
    "Encoder",
    "Learner",
    "Lock",
    "OneByOne",
    "Rows",
    "Scanner",
    "Vocabulary",
    "find_numeric",
    "in_use",
    "learn_moments",
    "probabilities_many",
    "probabilities_one",
    "standardize",
    "target_array",
]

L = TypeVar("L", bound=pure.Learner)

NAME = os.environ.get("STREAM_PEGASOS_ENGINE", "")
if NAME not in ("", "compiled", "pure"):
    raise ImportError(must_be("STREAM_PEGASOS_ENGINE", "'compiled' or 'pure'", NAME))


# How to get a C compiler, with Python's headers if these are a separate package.
COMPILERS = {
    "darwin": "xcode-select --install",
    "win32": "the Build Tools for Visual Studio, with C++",
    "linux": "apt install build-essential python3-dev, or what other systems call these",
}


def cause_and_cure(error: ImportError) -> str:
    """The reason why there is no compiled engine, and the remedy."""
    if not isinstance(error, ModuleNotFoundError):
        return f"the compiled one cannot be loaded ({error})"
    package = Path(__file__).parents[1]
    compiler = COMPILERS.get(sys.platform, COMPILERS["linux"])
    if (package.parent / "pyproject.toml").exists():
        install = shlex.join([sys.executable, "-m", "pip", "install", "-v", "-e", str(package.parent)])
        return (
            f"Python found the package in its source folder {package.parent}, where no engine was built; with a C "
            f"compiler ({compiler}) this builds it: {install}"
        )
    return (
        f"the package was installed without a C compiler that works; get one ({compiler}), then install the package "
        "again from its folder: pip install -v --force-reinstall --no-deps --no-cache-dir ."
    )


chosen: ModuleType = pure
if TYPE_CHECKING:
    from stream_pegasos.engine.pure import (
        Encoder,
        Learner,
        Lock,
        OneByOne,
        Rows,
        Scanner,
        Vocabulary,
        find_numeric,
        learn_moments,
        probabilities_many,
        probabilities_one,
        standardize,
        target_array,
    )
else:
    if NAME != "pure":
        try:
            chosen = importlib.import_module("stream_pegasos.engine.compiled")
        except ImportError as error:
            if NAME == "compiled":
                raise ImportError(f"the compiled engine is missing: {cause_and_cure(error)}") from error
            told = (
                f"stream_pegasos runs on its pure Python engine, which is slow: {cause_and_cure(error)} "
                "(STREAM_PEGASOS_ENGINE=pure says that this is intended)"
            )
            try:
                warnings.warn(told, RuntimeWarning, stacklevel=2)
            except RuntimeWarning:  # warnings are errors here, but the pure engine is only slower
                logging.getLogger("stream_pegasos").warning(told)
    NAME = "pure" if chosen is pure else "compiled"
    for name in pure.__all__:
        globals()[name] = vars(chosen)[name]


def in_use(kind: type[L]) -> type[L]:
    """The class of a learner in the engine in use, given its class in the pure engine."""
    kind_in_use: type[L] = kind if chosen is pure else vars(chosen)[kind.__name__]
    return kind_in_use


def restore(kind: str, arguments: dict[str, Any] | tuple[Any, ...], state: dict[str, Any] | None) -> Any:
    """Rebuild an engine object, in the engine in use. The object may come from the other engine."""
    make: Callable[..., Any] = in_use(pure.Learner.kinds[kind]) if kind in pure.Learner.kinds else globals()[kind]
    restored = make(**arguments) if isinstance(arguments, dict) else make(*arguments)
    if state is not None:
        restored.set_state(state)
    return restored


for kind in map(in_use, pure.Learner.kinds.values()):
    copyreg.pickle(kind, lambda it: (restore, (type(it).__name__, it.parameters, it.get_state())))
copyreg.pickle(Lock, lambda it: (restore, ("Lock", (), None)))
copyreg.pickle(Scanner, lambda it: (restore, ("Scanner", it.arguments, None)))
copyreg.pickle(Vocabulary, lambda it: (restore, ("Vocabulary", (it.names,), None)))
