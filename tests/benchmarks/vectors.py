"""What word vectors are worth: the recipe without and with them, while few messages are learned and over whole streams.

Each message is predicted before it is learned. The figures after 200, 500, 1,000 and 2,000 messages are means over
several orders of each stream by chance; behind ± is the standard error of the mean difference, order by order. The last
column takes the whole stream once, in its own order. It is accuracy; the mean absolute error of ordered classes; and
micro F1 where a message has several labels.

Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data, or are yours; what is missing is
left out.

    python tests/benchmarks/vectors.py [--vectors NAME_OR_PATH] [--stream FILE] [--ordered] [--orders N] [--limit N]
                                       [--markdown]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import accuracy
import numpy as np
import several
from numpy.typing import NDArray
from peers import WORDLLAMA, print_head, print_row

from stream_pegasos.streams import StreamError

AFTER = (200, 500, 1_000, 2_000)  # messages
WIDTH = 26
WHAT: dict[several.Kind, str] = {"classes": "", "ordered": "absolute error", "labels": "micro F1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--vectors", default=WORDLLAMA, help="the table: a name, a file or a folder")
    parser.add_argument("--stream", action="append", metavar="FILE", help="a stream of yours; repeatable")
    parser.add_argument("--ordered", action="store_true", help="the classes of --stream have an order")
    parser.add_argument("--orders", type=int, default=8, help="how many orders by chance")
    parser.add_argument("--limit", type=int, help="take the first so many messages of each stream")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    try:
        several.recipe("classes", arguments.vectors)
        heads = ["", *(f"after {n:,}" for n in AFTER), "whole stream"]
        print(f"\nwithout word vectors → with those of {arguments.vectors}\n")
        print_head(heads, arguments.markdown, WIDTH)
        for given in streams(arguments.stream, arguments.ordered):
            stream = given._replace(texts=given.texts[: arguments.limit], labels=given.labels[: arguments.limit])
            name = ": ".join(filter(None, [stream.name, WHAT[stream.kind]]))
            print_row([name, *figures(stream, arguments.vectors, arguments.orders)], arguments.markdown, WIDTH)
    except (ImportError, OSError, ValueError, StreamError) as error:
        sys.exit(f"{error}")


def streams(files: list[str] | None, ordered: bool) -> Iterator[several.Stream]:
    given: Iterable[accuracy.Stream | several.Stream] = chain(accuracy.known_streams(), several.known_streams())
    if files:
        given = (accuracy.read_stream(name, ordered) for name in files)
    for stream in given:
        if isinstance(stream, several.Stream):
            yield stream
        else:
            yield several.Stream(stream.name, stream.texts, stream.labels.tolist(), "classes")


def figures(stream: several.Stream, vectors: Any, n_orders: int) -> list[str]:
    """The cells of a row."""
    n = len(stream.texts)
    ends = [end for end in AFTER if end <= n]
    found = np.array(  # an order, without or with vectors, an end
        [
            [scores(shuffled(stream, seed, max(ends)), each, ends) for each in (None, vectors)]
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
    whole = [scores(stream, each, [n])[0] for each in (None, vectors)]
    return [*cells, " → ".join(f"{score:.4f}" for score in whole)]


def shuffled(stream: several.Stream, seed: int, n: int) -> several.Stream:
    """The first n messages of the stream in an order by chance."""
    order = np.random.default_rng(seed).permutation(len(stream.texts))[:n].tolist()
    return stream._replace(texts=[stream.texts[i] for i in order], labels=[stream.labels[i] for i in order])


def scores(stream: several.Stream, vectors: Any, ends: list[int]) -> NDArray[np.float64]:
    """How good the answers are to the messages up to each end, in one pass."""
    answers = several.recipe(stream.kind, vectors).predict_learn_many(stream.texts, stream.labels).labels.tolist()
    found = []
    for end in ends:
        begun = stream._replace(texts=stream.texts[:end], labels=stream.labels[:end])
        found.append(several.score(answers[:end], begun))
    return np.array(found)


if __name__ == "__main__":
    main()
