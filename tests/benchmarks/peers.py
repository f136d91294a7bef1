"""What the scripts beside it share: the streams, and how Vowpal Wabbit is given them."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

DATA = Path(os.environ.get("STREAM_PEGASOS_DATA", Path(__file__).parents[3] / "shared" / "data"))

WORDS = r"\w\w+"
WORDS_AND_MARKS = r"\w+|[^\w\s|:]"  # but for the two marks that mean something to Vowpal Wabbit


def read_records(name: str) -> list[dict[str, Any]]:
    """The records of one of the streams; none, saying so, where its file is missing."""
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        print(f"{name}: left out, {path.name} is not there")
        return []
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


def has_vowpal_wabbit() -> bool:
    """Whether it is installed; by importing it, so that no timing has to."""
    try:
        import_module("vowpalwabbit")
    except ImportError:
        print("Vowpal Wabbit: left out, it is not installed")
        return False
    return True


def write_vowpal_wabbit(path: Path, texts: Iterable[str], labels: Iterable[int | str], tokens: str = WORDS) -> None:
    """Texts lower-cased and tokenised, so that none of Vowpal Wabbit's special characters is left in them.

    A text whose label is "" is predicted and not learned.
    """
    find_tokens = re.compile(tokens).findall
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for text, label in zip(texts, labels, strict=True):
            file.write(f"{label} | {' '.join(find_tokens(text.lower()))}\n")


def run_vowpal_wabbit(path: Path, options: Iterable[str]) -> None:
    """One pass over a file, on the two threads that Vowpal Wabbit takes."""
    from vowpalwabbit import Workspace

    Workspace(arg_list=[*options, "--quiet", "--no_stdin", "-d", str(path)]).finish()


def late_vowpal_wabbit(
    texts: Sequence[str], labels: Sequence[bool] | NDArray[np.bool_], options: Iterable[str], delay: int = 0
) -> NDArray[np.float64]:
    """Its margins of all messages; the label of each is learned once `delay` more of them have been predicted."""
    lines: list[tuple[str, int | str]] = []
    for i, text in enumerate(texts):
        lines.append((text, ""))
        if i >= delay:
            lines.append((texts[i - delay], 1 if labels[i - delay] else -1))
    with tempfile.TemporaryDirectory() as folder:
        messages, raw = Path(folder) / "messages.vw", Path(folder) / "raw.txt"
        write_vowpal_wabbit(messages, *zip(*lines, strict=True))
        run_vowpal_wabbit(messages, [*options, "-r", str(raw)])
        margins = np.loadtxt(raw, ndmin=1)
    return margins[[label == "" for _, label in lines]]
