"""What vectors and names of labels are worth: the recipe without and with them, while few messages are learned and over
whole streams.

Each message is predicted before it is learned. The figures after 200, 500, 1,000 and 2,000 messages are means over
several orders of each stream by chance; behind ± is the standard error of the mean difference, order by order. The last
column takes the whole stream once, in its own order. It is accuracy; the mean absolute error of ordered classes; and
micro F1 where a message has several labels. With --names the last figure of a cell is that with vectors and the names
of labels described before the first message.

With --held-out so many messages by chance are learned, and others predicted, beside models on the vectors of an encoder
alone: scikit-learn's LogisticRegression with the better of two C, the same with tf-idf beside the vectors, and
SGDClassifier.partial_fit, which like ours takes one pass.

    python tests/benchmarks/vectors.py [--vectors NAME_OR_PATH] [--names] [--held-out] [--stream FILE] [--ordered]
                                       [--orders N] [--limit N]
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import corpora
import numpy as np
from accuracy import recipe
from batch_peers import TOKENS
from corpora import Corpus, Floats, Kind
from figures import score, share_right
from peers import WORDLLAMA
from report import Table, arguments_of
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier

from stream_pegasos.features.encoders import TextEncoder, is_encoder, text_encoder
from stream_pegasos.streams import StreamError

AFTER = (200, 500, 1_000, 2_000)  # messages
WHAT: dict[Kind, str] = {"ordered": ": absolute error", "labels": ": micro F1"}
LEARNED: tuple[int | float, ...] = (200, 500, 2_000, 0.8)  # messages, or their share
DRAWS, MOST_PREDICTED = 3, 5_000


def main() -> None:
    arguments = arguments_of(__doc__, vectors=WORDLLAMA, names=False, held_out=False, orders=8, **corpora.OPTIONS)
    try:
        recipe("classes", arguments.vectors)
        if arguments.held_out:
            print_held_out([*corpora.chosen(arguments)], text_encoder(arguments.vectors))
            return
        vectors = remembering(arguments.vectors) if is_encoder(arguments.vectors) else arguments.vectors
        print(f"\nwithout vectors → with those of {arguments.vectors}{' → and names' * arguments.names}")
        table = Table("", *(f"after {n:,}" for n in AFTER), "whole stream")
        for corpus in corpora.chosen(arguments):
            name = corpus.name + WHAT.get(corpus.kind, "")
            table.row(name, *cells(corpus, vectors, arguments.names, arguments.orders))
    except (ImportError, OSError, ValueError, StreamError) as error:
        sys.exit(f"{error}")


def remembering(name: str) -> Callable[[list[str]], Floats]:
    """An encoder that encodes a text once, however many other ones come between."""
    encoder, known = text_encoder(name), dict[str, Floats]()

    def encode(texts: list[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encoder.vectors(new), strict=True))
        return np.stack([known[text] for text in texts])

    return encode


def cells(corpus: Corpus, vectors: Any, names: bool, n_orders: int) -> list[str]:
    n = len(corpus.texts)
    ways = [(None, False), (vectors, False), *([(vectors, True)] if names else [])]
    ends = [end for end in AFTER if end <= n]
    found = np.array(  # an order, a way, an end
        [
            [scores(shuffled(corpus, seed, max(ends)), *way, ends) for way in ways]
            for seed in range(n_orders if ends else 0)
        ]
    )
    cells = []
    for place, _ in enumerate(ends):
        of_ways = found[:, :, place].T
        cell = " → ".join(f"{each.mean():.4f}" for each in of_ways)
        if n_orders > 1:
            cell += f" ± {(of_ways[-1] - of_ways[0]).std(ddof=1) / np.sqrt(n_orders):.4f}"
        cells.append(cell)
    cells += ["-"] * (len(AFTER) - len(ends))
    whole = [scores(corpus, *way, [n])[0] for way in ways]
    return [*cells, " → ".join(f"{score:.4f}" for score in whole)]


def shuffled(corpus: Corpus, seed: int, n: int) -> Corpus:
    """The first n messages of the stream in an order by chance."""
    return corpus.rows(np.random.default_rng(seed).permutation(len(corpus.texts))[:n].tolist())


def scores(corpus: Corpus, vectors: Any, names: bool, ends: list[int]) -> Floats:
    """How good the answers are to the messages up to each end, in one pass."""
    model = recipe(corpus.kind, vectors, corpus.met if names else ())
    answers = model.predict_learn_many(corpus.texts, corpus.labels).labels.tolist()
    return np.array([score(answers[:end], corpus.first(end)) for end in ends])


# --- some messages learned, others predicted --------------------------------------------------------------------------


def print_held_out(streams: list[Corpus], encoder: TextEncoder) -> None:
    """Accuracy, a row a model for each stream, a column for each number of messages learned."""
    table = Table("", *(f"{n:,} learned" if isinstance(n, int) else f"{n:.0%} learned" for n in LEARNED))
    for corpus in streams:
        if corpus.kind not in ("classes", "two classes"):
            continue
        vectors, labels = encoder.vectors(corpus.texts), np.array([str(label) for label in corpus.labels])
        found: dict[str, list[str]] = {}
        for n in LEARNED:
            draws: dict[str, list[float]] = {}
            for seed in range(DRAWS):
                order = np.random.default_rng(seed).permutation(len(labels))
                n_learned = n if isinstance(n, int) else int(n * len(order))
                learned, later = order[:n_learned], order[n_learned:][:MOST_PREDICTED]
                for name, answers in all_answers(corpus.texts, labels, vectors, encoder, learned, later).items():
                    draws.setdefault(name, []).append(share_right(answers, labels[later]))
            for name, shares in draws.items():
                found.setdefault(name, []).append(f"{np.mean(shares):.4f}")
        for name, row in found.items():
            table.row(f"{corpus.name}: {name}", *row)


def all_answers(
    texts: Sequence[str], labels: Any, vectors: Any, encoder: TextEncoder, learned: Any, later: Any
) -> dict[str, Any]:
    """What each model answers to the later texts."""
    X, Z = [texts[i] for i in learned], [texts[i] for i in later]
    model = recipe("classes", encoder)
    model.learn_many(X, labels[learned].tolist())
    answers = {"ours, one pass": model.predict_many(Z)}
    tfidf = TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKENS).fit(X)
    both = [
        sparse.hstack([part, tfidf.transform(rows)]).tocsr()
        for part, rows in ((vectors[learned], X), (vectors[later], Z))
    ]
    for C in 1.0, 10.0:
        regression = LogisticRegression(C=C, max_iter=300)
        answers[f"LogisticRegression, C={C:g}"] = regression.fit(vectors[learned], labels[learned]).predict(
            vectors[later]
        )
        answers[f"LogisticRegression with tf-idf, C={C:g}"] = regression.fit(both[0], labels[learned]).predict(both[1])
    online = SGDClassifier(loss="log_loss").partial_fit(vectors[learned], labels[learned], classes=np.unique(labels))
    return {**answers, "SGDClassifier, one pass": online.predict(vectors[later])}


if __name__ == "__main__":
    main()
