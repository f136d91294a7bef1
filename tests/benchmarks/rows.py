"""Rows of speed.py: two pieces of work, timed in turn."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from peers import WORDS, has_vowpal_wabbit, run_vowpal_wabbit, write_vowpal_wabbit
from shares import seconds


def compare(
    title: str,
    ours: Callable[[], object],
    peer: Callable[[], object],
    runs: int,
    amount: float,
    unit: str,
    target: float | str,
    peer_overhead: Callable[[], object] | None = None,
    limited: Sequence[float] = (),
    peer_amount: float | None = None,
) -> None:
    """Print one row; `amount` of `unit` is what ours does in one timing, and the peer, too, unless it does another.

    `limited` is what its limits allow a second.
    """
    ours_speed, peer_speed = [], []
    for _ in range(runs):
        ours_speed.append(amount / seconds(ours))
        overhead = seconds(peer_overhead) if peer_overhead else 0.0
        peer_speed.append((peer_amount or amount) / (seconds(peer) - overhead))
    ratios = [a / b for a, b in zip(ours_speed, peer_speed, strict=True)]
    median_ours, median_peer = statistics.median(ours_speed), statistics.median(peer_speed)
    spread = f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
    print(
        f"{title:58} {f'{median_ours:,.0f} {unit}':>22} {f'{median_peer:,.0f} {unit}':>22} {spread:>22} {target!s:>9}"
        + "".join(f" {limit:>14,.0f}" for limit in limited),
        flush=True,
    )


def compare_with_vowpal_wabbit(
    title: str,
    learn: Callable[[list[str], list[object]], None],
    texts: list[str],
    labels: list[object],
    numbers: dict[object, int | str],
    options: list[str],
    runs: int,
    target: float,
    tokens: str = WORDS,
    limited: Sequence[float] = (),
) -> None:
    """Vowpal Wabbit gets its text lower-cased and tokenised beforehand, labels as numbers, and two threads."""
    if not has_vowpal_wabbit():
        return
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder) / "empty.vw", Path(folder) / "full.vw"
        empty.touch()
        write_vowpal_wabbit(full, texts, [numbers[label] for label in labels], tokens)
        compare(
            title,
            lambda: learn(texts, labels),
            lambda: run_vowpal_wabbit(full, options),
            runs,
            len(texts),
            "docs/s",
            target,
            peer_overhead=lambda: run_vowpal_wabbit(empty, options),
            limited=limited,
        )
