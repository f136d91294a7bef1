"""What it costs to learn in parts that are merged, as several machines do, beside one machine.

The first thousand messages are learned by one model. Then each batch is shared out among K parts, which go on from the
merged model and predict each of their messages before they learn it. As parts wait for the end of a batch, no rule of
merging can be as good as one machine. The bound is what the wait alone costs: every batch begins from the model of one
machine that has learned all batches before it.

A second table learns the first 80 % in this way and predicts the last 20 % by the model at the end. Below it stands how
much the order of messages does there: what one machine reaches that learns those of each batch in other orders.

    python tests/benchmarks/merging.py [--stream NAME]... [--parts K]... [--batch B]...
"""

from collections.abc import Sequence

import numpy as np
from accuracy import LEARNED
from corpora import Corpus, Floats, of_two_classes
from figures import ranking_error
from report import Table, arguments_of

from stream_pegasos import AdaptiveClassifier, TextClassifier, merge
from stream_pegasos.learners.merging import model_of, snapshot_of

STREAMS = ("enron_1to3", "rt_polarity", "sms_spam", "waimai_zh")
PARTS, BATCHES = (2, 4, 8, 16), (1_000, 4_000)
N_ORDERS = 20
FIRST = 1_000  # messages, which one model learns


def main() -> None:
    arguments = arguments_of(__doc__, stream=[str], parts=[int], batch=[int])
    for corpus in of_two_classes(*(arguments.stream or STREAMS)):
        shares = [(k, batch) for batch in arguments.batch or BATCHES for k in arguments.parts or PARTS]
        print_while_learning(corpus, shares)
        print_at_the_end(corpus, shares)


def print_while_learning(corpus: Corpus, shares: Sequence[tuple[int, int]]) -> None:
    print(f"\n{corpus.name}: {len(corpus.texts):,} messages, each predicted before it is learned")
    table = Table("parts", "batch", "accuracy", "bound", "100 (1 - AUC)", "bound")
    accuracy, error = cells(corpus.labels, in_batches(corpus, 1, len(corpus.texts))[1])
    table.row("1", "", accuracy, "", error, "")
    for k, batch in shares:
        merged, bound = (cells(corpus.labels, in_batches(corpus, k, batch, is_bound)[1]) for is_bound in (False, True))
        table.row(str(k), f"{batch:,}", merged[0], bound[0], merged[1], bound[1])


def print_at_the_end(corpus: Corpus, shares: Sequence[tuple[int, int]]) -> None:
    n = int(LEARNED * len(corpus.texts))
    texts, labels = corpus.texts[n:], corpus.labels[n:]
    print(f"\n{corpus.name}: the first {LEARNED:.0%} learned, the last {len(texts):,} messages predicted")
    table = Table("parts", "batch", "accuracy", "100 (1 - AUC)")
    for k, batch in [(1, n), *shares]:
        model, _ = in_batches(corpus.first(n), k, batch)
        table.row(str(k), f"{batch:,}" if k > 1 else "", *cells(labels, model.decision_function_many(texts)))
    for batch in dict.fromkeys(batch for _, batch in shares):
        found = []
        for seed in range(N_ORDERS):
            model = without_half_life()
            learned = corpus.rows(in_another_order(n, batch, seed))
            model.learn_many(learned.texts, learned.labels)
            found.append(accuracy_of(labels, model.decision_function_many(texts)))
        mean, least, most = (f"{figure:.4f}" for figure in (np.mean(found), min(found), max(found)))
        print(f"\none machine, {N_ORDERS} orders within batches of {batch:,}: accuracy {mean} ({least} to {most})")


def in_another_order(n: int, batch: int, seed: int) -> list[int]:
    """The first `n` messages, those of each batch by chance."""
    rng = np.random.default_rng(seed)
    batches = [np.arange(begin, min(begin + batch, n)) for begin in range(FIRST, n, batch)]
    return np.concatenate([np.arange(FIRST), *map(rng.permutation, batches)]).tolist()


def in_batches(corpus: Corpus, k: int, batch: int, is_bound: bool = False) -> tuple[TextClassifier, Floats]:
    """The model at the end, and the margins of all messages before they were learned; or those of the bound."""
    texts, labels = np.array(corpus.texts, object), np.array(corpus.labels)
    model = without_half_life()
    margins = np.empty(len(texts))
    margins[:FIRST] = model.predict_learn_many(texts[:FIRST], labels[:FIRST]).scores
    for begin in range(FIRST, len(texts), batch):
        of_batch = np.arange(begin, min(begin + batch, len(texts)))
        snapshot = snapshot_of(model)
        parts = [model_of(snapshot) for _ in range(min(k, len(of_batch)))]
        for number, part in enumerate(parts):
            rows = of_batch[number::k]
            margins[rows] = part.predict_learn_many(texts[rows], labels[rows]).scores
        if is_bound:
            model.learn_many(texts[of_batch], labels[of_batch])
        else:
            model = merge(model, parts)
    return model, margins


def without_half_life() -> TextClassifier:
    return TextClassifier(classifier=AdaptiveClassifier(half_life=None, pos_label=True))


def accuracy_of(labels: list[bool], margins: Sequence[float]) -> float:
    return float(np.mean((np.asarray(margins) > 0.0) == np.array(labels)))


def cells(labels: list[bool], margins: Sequence[float]) -> list[str]:
    return [f"{accuracy_of(labels, margins):.4f}", f"{ranking_error(labels, margins):.3f}"]


if __name__ == "__main__":
    main()
