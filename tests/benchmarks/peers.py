"""What the scripts beside it share: the streams, how Vowpal Wabbit is given them, and how tables are printed."""

from __future__ import annotations

import gzip
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

DATA = Path(os.environ.get("STREAM_PEGASOS_DATA", Path(__file__).parents[3] / "shared" / "data"))

WORDLLAMA = "wordllama"  # the package whose word vectors are taken
WORDS = r"\w\w+"
WORDS_AND_MARKS = r"\w+|[^\w\s|:]"  # but for the two marks that mean something to Vowpal Wabbit
HAN = "\u3400-\u4dbf\u4e00-\u9fff"
CHARACTERS = rf"[{HAN}]|[^\W{HAN}]+"  # Chinese by its characters, and the words of other scripts between them


def read_records(name: str) -> list[dict[str, Any]]:
    """The records of one of the streams; none, saying so, where its file is missing."""
    path = DATA / f"{name}.jsonl.gz"
    if not path.exists():
        print(f"{name}: left out, {path.name} is not there")
        return []
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


def streams_of_several_classes() -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, texts and labels; of Reuters the stories with a single topic, one of the ten commonest of these."""
    for name in ("banking77", "tweets_emotion"):
        if records := read_records(name):
            yield name, [record["text"] for record in records], [record["label"] for record in records]
    if stories := [(record["text"], *record["topics"]) for record in read_records("reuters21578")]:
        stories = [story for story in stories if len(story) == 2]
        commonest = {topic for topic, _ in Counter(topic for _, topic in stories).most_common(10)}
        stories = [story for story in stories if story[1] in commonest]
        yield "reuters_10", [text for text, _ in stories], [topic for _, topic in stories]


def has_vowpal_wabbit() -> bool:
    """Whether it is installed; by importing it, so that no timing has to."""
    return is_installed("vowpalwabbit", "Vowpal Wabbit")


def is_installed(module: str, name: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        print(f"{name}: left out, it is not installed")
        return False
    return True


def has_word_vectors() -> bool:
    """Whether the package with them is installed, without importing it."""
    return find_spec(WORDLLAMA) is not None


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most of the texts have a Chinese character."""
    has_one = re.compile(f"[{HAN}]").search
    return sum(has_one(text) is not None for text in texts) > len(texts) / 2


@cache
def cutter() -> Callable[[str], list[str]]:
    """jieba, with its dictionary read."""
    jieba = import_module("jieba")
    jieba.setLogLevel(logging.WARNING)
    jieba.initialize()
    return jieba.lcut


def words_by_jieba(text: str) -> list[str]:
    """The words and marks that jieba cuts a text into."""
    return [word for word in cutter()(text.lower()) if not word.isspace()]


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


def print_row(cells: list[str], markdown: bool, width: int = 19) -> None:
    if markdown:
        print(f"| {' | '.join(cells)} |", flush=True)
    else:
        print(f"{cells[0]:66}" + "".join(f"{cell:>{width}}" for cell in cells[1:]), flush=True)


def print_head(cells: list[str], markdown: bool, width: int = 19) -> None:
    print_row(cells, markdown, width)
    if markdown:
        print("|" + "---|" * len(cells))


def expected_calibration_error(
    probabilities: NDArray[np.float64], labels: NDArray[np.bool_], n_bins: int = 10
) -> float:
    """Mean over the messages of |mean probability − share of positives| in a message's bin; bins of equal width.

    Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015.
    """
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights=probabilities - labels)).sum() / len(labels))
