"""How long work takes, alone and in turn with other work, and how much memory."""

import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from report import Table


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_seconds(work: Callable[[], object], runs: int) -> float:
    return statistics.median(seconds(work) for _ in range(runs))


def in_turn(works: dict[str, Callable[[], object]], runs: int) -> dict[str, float]:
    """The median seconds of each."""
    took = [[seconds(work) for work in works.values()] for _ in range(runs)]
    return dict(zip(works, np.median(took, axis=0).tolist(), strict=True))


def percentiles(took: Sequence[float], scale: float) -> tuple[float, float]:
    """The median and the 99th percentile, in seconds / scale."""
    p50, p99 = np.quantile(took, [0.5, 0.99]) * scale
    return float(p50), float(p99)


def waits(learn: Callable[[], None], until: Callable[[], bool]) -> Iterator[float]:
    """The seconds of each step, until something is so."""
    last = time.perf_counter()
    while not until():
        learn()
        now = time.perf_counter()
        yield now - last
        last = now


class Race:
    """A table of speeds: ours, a peer's, and the ratio pair by pair, medians of so many runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.table = Table("work", "ours", "peer", "ratio [least, most]", "memory allows", "scanning alone", width=18)

    def compare(
        self,
        title: str,
        ours: Callable[[], object],
        peer: Callable[[], object],
        amount: float,
        unit: str = "docs/s",
        overhead: Callable[[], object] | None = None,
        limits: Sequence[float] = (),
        peer_amount: float | None = None,
    ) -> None:
        """Print one row; `amount` is what ours does in one timing, and the peer, too, unless it does another.

        `overhead` is what the peer does besides, `limits` what the last two columns say.
        """
        pairs = []
        for _ in range(self.runs):
            speed = amount / seconds(ours)
            besides = seconds(overhead) if overhead else 0.0
            pairs.append((speed, (peer_amount or amount) / (seconds(peer) - besides)))
        ratios = [one / other for one, other in pairs]
        medians = [f"{statistics.median(each):,.0f} {unit}" for each in zip(*pairs, strict=True)]
        spread = f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
        self.row(title, *medians, spread, *(f"{limit:,.0f}" for limit in limits))

    def row(self, title: str, *cells: str) -> None:
        self.table.row(title, *cells, *[""] * (5 - len(cells)))


def megabytes(name: str, process: int | str = "self") -> float:
    """A figure of a process, as Linux tells it."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) * 1024 / 1e6
