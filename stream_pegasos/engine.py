"""The engine in use: compiled where it was built, pure Python elsewhere; chosen once, when the package is imported.

The environment variable `STREAM_PEGASOS_ENGINE` forces `compiled` or `pure`.
"""

from __future__ import annotations

import copyreg
import os
import warnings
from typing import TYPE_CHECKING, Any

__all__ = ["NAME", "Encoder", "Learner", "Rows", "Scanner", "Vocabulary", "WeightDict", "signs_of"]

NAME = os.environ.get("STREAM_PEGASOS_ENGINE", "")
if NAME not in ("", "compiled", "pure"):
    raise ImportError(f"STREAM_PEGASOS_ENGINE is {NAME!r}; it may be 'compiled' or 'pure'")

if TYPE_CHECKING or NAME == "pure":
    from stream_pegasos._pure import Encoder, Learner, Rows, Scanner, Vocabulary, WeightDict, signs_of
else:
    try:
        from stream_pegasos._compiled import (
            Encoder,
            Learner,
            Rows,
            Scanner,
            Vocabulary,
            WeightDict,
            signs_of,
        )

        NAME = "compiled"
    except ImportError as error:
        if NAME == "compiled":
            raise ImportError(
                "the compiled engine is missing: install a C compiler, then stream_pegasos again"
            ) from error
        from stream_pegasos._pure import Encoder, Learner, Rows, Scanner, Vocabulary, WeightDict, signs_of

        NAME = "pure"
        warnings.warn(
            "stream_pegasos runs on its pure Python engine, which is slow: no compiled engine was built "
            "(with a C compiler, reinstalling builds it; STREAM_PEGASOS_ENGINE=pure says that this is intended)",
            RuntimeWarning,
            stacklevel=2,
        )


def restore(kind: str, arguments: tuple[Any, ...], state: dict[str, Any] | None) -> Any:
    """Make an engine object anew, on the engine in use, whichever it was pickled on."""
    made = globals()[kind](*arguments)
    if state is not None:
        made.set_state(state)
    return made


copyreg.pickle(Learner, lambda it: (restore, ("Learner", it.arguments, it.get_state())))
copyreg.pickle(Scanner, lambda it: (restore, ("Scanner", it.arguments, None)))
copyreg.pickle(Vocabulary, lambda it: (restore, ("Vocabulary", (it.names,), None)))
copyreg.pickle(WeightDict, lambda it: (restore, ("WeightDict", (), it.get_state())))
