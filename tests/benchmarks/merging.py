"""What it costs to learn in parts that are merged, as several machines do, beside one machine.

The first thousand messages are learned by one model. Then each batch is shared out among K parts, which go on from the
merged model and predict each of their messages before they learn it. As parts wait for the end of a batch, no rule of
merging can be as good as one machine. The bound is what the wait alone costs: every batch begins from the model of one
machine that has learned all batches before it.

A second table learns the first 80 % in this way and predicts the last 20 % by the model at the end. Below it stands how
much the order of messages does there: what one machine reaches that learns those of each batch in other orders.

The streams are in the folder that STREAM_PEGASOS_DATA names, or in ../shared/data.

    python tests/benchmarks/merging.py [--stream NAME]... [--parts K]... [--batch B]... [--half-life N]
        [--figures accuracy|split] [--markdown]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from accuracy import Bools, Floats, Stream, labelled
from peers import print_head, print_row
from sklearn.metrics import roc_auc_score
from split import LEARNED

from stream_pegasos import AdaptiveClassifier, TextClassifier, merge
from stream_pegasos.learners.merging import model_of, snapshot_of

STREAMS = {"enron_1to3": "spam", "rt_polarity": "pos", "sms_spam": "spam", "waimai_zh": "pos"}
PARTS, BATCHES = (2, 4, 8, 16), (1_000, 4_000)
N_ORDERS = 20
FIRST = 1_000  # messages, which one model learns


class Figures(NamedTuple):
    accuracy: float
    error: float  # 100 (1 - AUC)

    def cells(self) -> list[str]:
        return [f"{self.accuracy:.4f}", f"{self.error:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stream", action="append", choices=STREAMS, help="only this stream")
    parser.add_argument("--parts", action="append", type=int, help="so many parts")
    parser.add_argument("--batch", action="append", type=int, help="batches of so many messages")
    parser.add_argument("--half-life", type=float, help="of evidence, in messages; without, all count the same")
    parser.add_argument("--figures", choices=["accuracy", "split"], help="only these")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    for stream in labelled({name: STREAMS[name] for name in arguments.stream or STREAMS}):
        shares = [(k, batch) for batch in arguments.batch or BATCHES for k in arguments.parts or PARTS]
        if arguments.figures != "split":
            print_while_learning(stream, shares, arguments.half_life, arguments.markdown)
        if arguments.figures != "accuracy":
            print_at_the_end(stream, shares, arguments.half_life, arguments.markdown)


def print_while_learning(
    stream: Stream, shares: Iterable[tuple[int, int]], half_life: float | None, markdown: bool
) -> None:
    print(f"\n{stream.name}: {len(stream.texts):,} messages, each predicted before it is learned\n")
    print_head(["parts", "batch", "accuracy", "bound", "100 (1 - AUC)", "bound"], markdown)
    alone = figures(stream.labels, in_batches(stream, 1, len(stream.texts), half_life)[1])
    print_row(["1", "", alone.cells()[0], "", alone.cells()[1], ""], markdown)
    for k, batch in shares:
        merged, bound = (
            figures(stream.labels, in_batches(stream, k, batch, half_life, is_bound)[1]).cells()
            for is_bound in (False, True)
        )
        print_row([str(k), f"{batch:,}", merged[0], bound[0], merged[1], bound[1]], markdown)


def print_at_the_end(
    stream: Stream, shares: Sequence[tuple[int, int]], half_life: float | None, markdown: bool
) -> None:
    n = int(LEARNED * len(stream.texts))
    print(f"\n{stream.name}: the first {LEARNED:.0%} learned, the last {len(stream.texts) - n:,} messages predicted\n")
    print_head(["parts", "batch", "accuracy", "100 (1 - AUC)"], markdown)
    learned = Stream(stream.name, stream.texts[:n], stream.labels[:n])
    for k, batch in [(1, n), *shares]:
        model, _ = in_batches(learned, k, batch, half_life)
        margins = model.decision_function_many(stream.texts[n:])
        print_row([str(k), f"{batch:,}" if k > 1 else "", *figures(stream.labels[n:], margins).cells()], markdown)
    for batch in dict.fromkeys(batch for _, batch in shares):
        found = [in_another_order(stream, n, batch, half_life, seed).accuracy for seed in range(N_ORDERS)]
        mean, least, most = (f"{figure:.4f}" for figure in (np.mean(found), min(found), max(found)))
        print(f"\none machine, {N_ORDERS} orders within batches of {batch:,}: accuracy {mean} ({least} to {most})")


def in_another_order(stream: Stream, n: int, batch: int, half_life: float | None, seed: int) -> Figures:
    """Those of one machine which learns the first `n`, the messages of each batch in a random order."""
    rng, texts = np.random.default_rng(seed), np.array(stream.texts, object)
    batches = [np.arange(begin, min(begin + batch, n)) for begin in range(FIRST, n, batch)]
    order = np.concatenate([np.arange(FIRST), *map(rng.permutation, batches)])
    model = TextClassifier(classifier=AdaptiveClassifier(half_life=half_life, pos_label=True))
    model.learn_many(texts[order], stream.labels[order])
    return figures(stream.labels[n:], np.asarray(model.decision_function_many(stream.texts[n:])))


def in_batches(
    stream: Stream, k: int, batch: int, half_life: float | None, is_bound: bool = False
) -> tuple[TextClassifier, Floats]:
    """The model at the end, and the margins of all messages before they were learned; or those of the bound."""
    texts, labels = np.array(stream.texts, object), stream.labels
    model = TextClassifier(classifier=AdaptiveClassifier(half_life=half_life, pos_label=True))
    margins = np.empty(len(texts))
    margins[:FIRST] = learned(model, texts[:FIRST], labels[:FIRST])
    for begin in range(FIRST, len(texts), batch):
        of_batch = np.arange(begin, min(begin + batch, len(texts)))
        parts = copies(model, min(k, len(of_batch)))
        for number, part in enumerate(parts):
            rows = of_batch[number::k]
            margins[rows] = learned(part, texts[rows], labels[rows])
        if is_bound:
            model.learn_many(texts[of_batch], labels[of_batch])
        else:
            model = merge(model, parts)
    return model, margins


def copies(model: TextClassifier, n: int) -> list[TextClassifier]:
    snapshot = snapshot_of(model)
    return [model_of(snapshot) for _ in range(n)]


def learned(model: TextClassifier, texts: Sequence[str], labels: Bools) -> Floats:
    """Predict each message, then learn it; the margins of the predictions."""
    return np.asarray(model.predict_learn_many(texts, labels).scores)


def figures(labels: Bools, margins: Floats) -> Figures:
    return Figures(float(np.mean((margins > 0.0) == labels)), 100.0 * (1.0 - float(roc_auc_score(labels, margins))))


if __name__ == "__main__":
    main()
