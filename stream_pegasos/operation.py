"""The name of `runtime` in version 0.2, for one more version."""

import sys
import warnings
from importlib import import_module

warnings.warn("stream_pegasos.operation is now stream_pegasos.runtime", DeprecationWarning, stacklevel=2)
for name in ("active_learning", "checkpoints", "journal", "live_learner", "monitor", "questions", "stream_runner"):
    sys.modules[f"{__name__}.{name}"] = import_module(f"stream_pegasos.runtime.{name}")
