"""How good a model is that was merged from several parts, beside one machine that learned all in turn, and beside the
largest part.

The first thousand messages are learned by one model. The parts go on from it over the rest of the first 80 % of the
stream: with every k-th message each ("equal"), with 90 % in one part and the rest shared by the others ("unequal"), or
with as many each after sorting by label ("sorted"). All predict the last 20 %. The stream is shuffled up to there
before it is dealt out, anew for each seed; figures are means, of accuracy and log loss.

With --cost, what it takes to merge that many parts of a made stream: at once, seconds and bytes for each feature that
the parts changed; and in pairs, as workers of Spark do, seconds of all merges and of the longest way through them, and
the most memory that one merge takes.

    python tests/benchmarks/merging.py [--stream FILE]... [--parts K]... [--seeds 3] [--tree] [--cost]
"""

import copy
import pickle
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from corpora import Corpus, chosen
from report import Table, arguments_of

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    TextClassifier,
    merge,
    prequential,
)
from stream_pegasos.learners.merging import drop_unchanged, merge_changes, merge_into
from stream_pegasos.streams import synthetic

FIRST, LEARNED, LARGEST = 1_000, 0.8, 0.9
SCHEMES = ("equal", "unequal", "sorted")
LEARNERS = {"ordered": OrdinalClassifier, "labels": MultiLabelClassifier}

Rows = Sequence[tuple[Any, Any]]


def main() -> None:
    arguments = arguments_of(
        __doc__, stream=[str], parts=[int], seeds=3, ordered=False, limit=int, tree=False, cost=False
    )
    n_parts = arguments.parts or ([16, 64, 256] if arguments.cost else [4, 16])
    if arguments.cost:
        print_cost(n_parts)
        return
    schemes = [(scheme, k) for scheme in SCHEMES for k in n_parts]
    table = Table("stream", "one machine", "largest part of unequal", *(f"{scheme}, {k}" for scheme, k in schemes))
    for corpus in streams(arguments):
        figures = [figures_of(corpus, schemes, seed, arguments.tree) for seed in range(arguments.seeds)]
        rows = np.mean(figures, axis=0)
        table.row(corpus.name, *(f"{accuracy:.4f}, {loss:.4f}" for accuracy, loss in rows))


def streams(arguments: Any) -> Iterator[Corpus]:
    if not arguments.stream:
        texts, labels = zip(*synthetic(20_000, seed=5), strict=True)
        yield Corpus("synthetic", list(texts), list(labels))
    yield from chosen(arguments)


def figures_of(
    corpus: Corpus, schemes: Sequence[tuple[str, int]], seed: int, in_tree: bool
) -> list[tuple[float, float]]:
    """Accuracy and log loss of one machine, of the largest part of those that are unequal, and of each scheme."""
    rows = [*zip(corpus.texts, corpus.labels, strict=True)]
    if corpus.name == "synthetic":  # whose words change half-way
        random.Random(1).shuffle(rows)
    n = int(LEARNED * len(rows))
    rows, held_out = rows[:n], rows[n:]
    random.Random(seed).shuffle(rows)
    learner = LEARNERS.get(corpus.kind)
    base = learned(TextClassifier(classifier=learner(AdaptiveClassifier()) if learner else None), rows[:FIRST])
    rest = rows[FIRST:]
    models = [learned(base, rest), learned(base, dealt(rest, "unequal", 2)[0])]
    for scheme, k in schemes:
        parts = [learned(base, some) for some in dealt(rest, scheme, k)]
        while in_tree and len(parts) > 2:
            parts = [merge(base, parts[i : i + 2]) for i in range(0, len(parts), 2)]
        models.append(merge(base, parts))
    scores: list[Any] = [prequential(held_out, model, learn=False).score for model in models]
    return [(getattr(score, "accuracy", None) or score.micro_f1, score.log_loss) for score in scores]


def learned(model: TextClassifier, rows: Rows) -> TextClassifier:
    model = copy.deepcopy(model)
    model.learn_many(*map(list, zip(*rows, strict=True)))
    return model


def dealt(rows: Rows, scheme: str, k: int) -> list[Rows]:
    """The rows of each part; the largest first."""
    if scheme == "unequal":
        n = int(LARGEST * len(rows))
        return [rows[:n], *(rows[n + i :: k - 1] for i in range(k - 1))]
    if scheme == "sorted":
        rows = sorted(rows, key=lambda row: str(row[1]))
        return [rows[len(rows) * i // k : len(rows) * (i + 1) // k] for i in range(k)]
    return [rows[i::k] for i in range(k)]


def print_cost(n_parts: Sequence[int]) -> None:
    """Each part learns 1,000 messages, half of whose words no other message has."""
    table = Table(
        "parts", "features they changed", "at once: seconds", "bytes for each", "in pairs: seconds", "longest way", "MB"
    )
    for k in n_parts:
        base = learned(TextClassifier(), [*synthetic(1_000)])
        parts = []
        for number in range(k):
            rows = [
                (f"{text} {own_words(1_000 * number + i)}", label) for i, (text, label) in enumerate(synthetic(1_000))
            ]
            parts.append(learned(base, rows))
            drop_unchanged(base, parts[-1])
        n_changed = sum(part.n_features for part in parts)
        reports = [pickle.dumps(part, pickle.HIGHEST_PROTOCOL) for part in parts]
        tracemalloc.start()
        start = perf_counter()
        merge(base, [*parts, base])
        seconds, peak = perf_counter() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        del parts
        in_all, longest, largest = cost_in_pairs(base, reports)
        row = f"{seconds:.1f}", f"{peak / n_changed:.0f}", f"{in_all:.1f}", f"{longest:.1f}", f"{largest / 1e6:.0f}"
        table.row(str(k), f"{n_changed:,}", *row)


def cost_in_pairs(base: TextClassifier, reports: list[bytes]) -> tuple[float, float, int]:
    """Seconds of all merges and of the longest way through them, one worker a pair, and the most bytes that one takes:
    of base, two parts and what they become; reports wait as files would.
    """
    in_all, longest, largest = 0.0, 0.0, 0
    while len(reports) > 1:
        slowest, is_last = 0.0, len(reports) == 2
        for i in range(len(reports) // 2):
            tracemalloc.start()
            start = perf_counter()
            made = copy.deepcopy(base)
            (merge_into if is_last else merge_changes)(made, [pickle.loads(reports[2 * i + j]) for j in range(2)])
            reports[i] = pickle.dumps(made, pickle.HIGHEST_PROTOCOL)
            seconds = perf_counter() - start
            in_all, slowest = in_all + seconds, max(slowest, seconds)
            largest = max(largest, tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        reports[len(reports) // 2 :] = reports[len(reports) - len(reports) % 2 :]
        longest += slowest
    return in_all, longest, largest


def own_words(number: int, n: int = 10) -> str:
    """Words that no other message has, in letters that no other message writes so."""
    return " ".join(chr(0x4E00 + number % 20_000) + chr(0x4E00 + number // 20_000) + chr(0x3041 + i) for i in range(n))


if __name__ == "__main__":
    main()
