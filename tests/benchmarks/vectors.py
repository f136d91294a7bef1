"""What word vectors are worth: the recipe without and with them, while few messages are learned and over whole streams.

Each message is predicted before it is learned. The figures after 200, 500, 1,000 and 2,000 messages are means over
several orders of each stream by chance; behind ± is the standard error of the mean difference, order by order. The last
column takes the whole stream once, in its own order. It is accuracy; the mean absolute error of ordered classes; and
micro F1 where a message has several labels.

    python tests/benchmarks/vectors.py [--vectors NAME_OR_PATH] [--stream FILE] [--ordered] [--orders N] [--limit N]
"""

import sys
from typing import Any

import corpora
import numpy as np
from accuracy import recipe
from corpora import Corpus, Floats, Kind
from figures import score
from peers import WORDLLAMA
from report import Table, arguments_of

from stream_pegasos.streams import StreamError

AFTER = (200, 500, 1_000, 2_000)  # messages
WHAT: dict[Kind, str] = {"ordered": ": absolute error", "labels": ": micro F1"}


def main() -> None:
    arguments = arguments_of(__doc__, vectors=WORDLLAMA, orders=8, **corpora.OPTIONS)
    try:
        recipe("classes", arguments.vectors)
        print(f"\nwithout word vectors → with those of {arguments.vectors}")
        table = Table("", *(f"after {n:,}" for n in AFTER), "whole stream")
        for corpus in corpora.chosen(arguments):
            name = corpus.name + WHAT.get(corpus.kind, "")
            table.row(name, *cells(corpus, arguments.vectors, arguments.orders))
    except (ImportError, OSError, ValueError, StreamError) as error:
        sys.exit(f"{error}")


def cells(corpus: Corpus, vectors: Any, n_orders: int) -> list[str]:
    n = len(corpus.texts)
    ends = [end for end in AFTER if end <= n]
    found = np.array(  # an order, without or with vectors, an end
        [
            [scores(shuffled(corpus, seed, max(ends)), each, ends) for each in (None, vectors)]
            for seed in range(n_orders if ends else 0)
        ]
    )
    cells = []
    for place, _ in enumerate(ends):
        without, with_vectors = found[:, :, place].T
        cell = f"{without.mean():.4f} → {with_vectors.mean():.4f}"
        if n_orders > 1:
            cell += f" ± {(with_vectors - without).std(ddof=1) / np.sqrt(n_orders):.4f}"
        cells.append(cell)
    cells += ["-"] * (len(AFTER) - len(ends))
    whole = [scores(corpus, each, [n])[0] for each in (None, vectors)]
    return [*cells, " → ".join(f"{score:.4f}" for score in whole)]


def shuffled(corpus: Corpus, seed: int, n: int) -> Corpus:
    """The first n messages of the stream in an order by chance."""
    return corpus.rows(np.random.default_rng(seed).permutation(len(corpus.texts))[:n].tolist())


def scores(corpus: Corpus, vectors: Any, ends: list[int]) -> Floats:
    """How good the answers are to the messages up to each end, in one pass."""
    answers = recipe(corpus.kind, vectors).predict_learn_many(corpus.texts, corpus.labels).labels.tolist()
    return np.array([score(answers[:end], corpus.first(end)) for end in ends])


if __name__ == "__main__":
    main()
