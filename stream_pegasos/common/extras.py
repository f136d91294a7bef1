"""Optional dependencies, and how to install them."""

from __future__ import annotations

import shlex
import sys

__all__ = ["missing"]


def missing(purpose: str, extra: str, error: ImportError) -> ImportError:
    """An error that names the missing package, with the command that installs it for this Python."""
    from importlib.metadata import PackageNotFoundError, requires

    marker, name = f'extra == "{extra}"', (error.name or "").partition(".")[0]
    try:
        packages = [line.partition(";")[0].strip() for line in requires("stream-pegasos") or () if marker in line]
    except PackageNotFoundError:  # the package runs from its source folder
        packages = [name.replace("_", "-")]
    command = shlex.join([sys.executable, "-m", "pip", "install", *packages])
    return ImportError(
        f"{purpose} needs {name}: {command} (or, in the folder of stream-pegasos, pip install '.[{extra}]')", name=name
    )
