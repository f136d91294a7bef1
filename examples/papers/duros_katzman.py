"""Sentiment of movie review phrases by gradient descent, Pegasos and Newton's method, with two and with five labels.

Duros and Katzman, sentiment analysis of movie review phrases (tables 3 and 4), on the Rotten Tomatoes phrases (Pang and
Lee, ACL 2005; labelled by Socher et al., EMNLP 2013).

    python examples/papers/duros_katzman.py [--small] [--data FOLDER] [--figure PNG]

Accuracy in 10-fold cross-validation, on bags of words that say which words a phrase has, or how often. Two labels are
negative (0 and 1) against positive (3 and 4), without the neutral phrases. Five labels are decoded from four
classifiers, one for each two neighbouring labels. The folds are split by phrase, as in the paper, and by sentence.
"""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from common import parser, read_stream, save_figure
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupKFold, KFold

from stream_pegasos import OrdinalClassifier, PegasosClassifier
from stream_pegasos.learners.batch import newton, subgradient_descent

L2 = 1e-4
N_FOLDS = 10
N_PASSES = 5
MAX_DESCENT_STEPS = 300
# On the full set.
PUBLISHED = {2: 0.73, 5: 0.51}

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]
Solver = Callable[[csr_array, Labels], Vector]
# Learns examples and their labels, 0 and 1 or 0 to 4, and returns the labels of other examples.
Method = Callable[[csr_array, Labels, csr_array], Labels]


def guess_most_frequent(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
    return np.full(X_test.shape[0], np.bincount(y).argmax())


def learn_by_pegasos(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
    model = PegasosClassifier(L2) if y.max() == 1 else OrdinalClassifier(PegasosClassifier(L2))
    rng = np.random.default_rng(0)
    for _ in range(N_PASSES):
        order = rng.permutation(len(y))
        model.learn_many(X[order], y[order])
    return model.predict_many(X_test)


def descend(X: csr_array, signs: Labels) -> Vector:
    return subgradient_descent(X, signs, L2, max_iter=MAX_DESCENT_STEPS).x


def solve_by_newton(X: csr_array, signs: Labels) -> Vector:
    return newton(X, signs, L2, tol=1e-4).x


def with_weights_of(solver: Solver) -> Method:
    """A method of two or five labels from a solver of two."""

    def predict(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
        if y.max() == 1:
            return (X_test @ solver(X, 2 * y - 1) > 0.0).astype(np.int64)
        weights = np.column_stack([neighbour_weights(solver, X, y, lower) for lower in range(y.max())])
        return decode(X @ weights > 0.0, y, X_test @ weights > 0.0)

    return predict


def neighbour_weights(solver: Solver, X: csr_array, y: Labels, lower: int) -> Vector:
    """The weights that tell the label `lower` from the next."""
    rows = (y == lower) | (y == lower + 1)
    return solver(X[rows], np.where(y[rows] == lower, -1, 1))


def decode(signs: NDArray[np.bool_], y: Labels, test_signs: NDArray[np.bool_]) -> Labels:
    """The label that went most often with an example's signs in training; the most frequent one if none ever did."""
    powers = 1 << np.arange(signs.shape[1])
    counts = np.zeros((powers.sum() + 1, y.max() + 1), np.int64)
    np.add.at(counts, (signs @ powers, y), 1)
    counts[counts.sum(axis=1) == 0] = np.bincount(y)
    return counts.argmax(axis=1)[test_signs @ powers]


METHODS: dict[str, Method] = {
    "most frequent label": guess_most_frequent,
    "gradient descent": with_weights_of(descend),
    "Pegasos": learn_by_pegasos,
    "Newton": with_weights_of(solve_by_newton),
}


class Result(NamedTuple):
    n_labels: int
    features: str
    by_phrase: float
    by_sentence: float


def evaluate(records: list[dict], published: dict[int, float]) -> list[Result]:
    """Cross-validate every method, and print each result as soon as it is there."""
    print(f"\n{len(records):,} phrases, {N_FOLDS} folds; accuracy:")
    print("labels  features   method               published  by phrase  by sentence  seconds a fold")
    results = []
    for n_labels in (2, 5):
        chosen = [record for record in records if n_labels == 5 or record["label"] != 2]
        y = np.array([record["label"] if n_labels == 5 else int(record["label"] > 2) for record in chosen])
        phrase_folds = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(y))
        sentence_folds = list(GroupKFold(N_FOLDS).split(y, groups=[record["sentence"] for record in chosen]))
        for features in ("presence", "frequency"):
            # The vocabulary is that of all folds: a word that only test phrases have keeps the weight 0.
            vectorizer = CountVectorizer(binary=features == "presence", dtype=np.float64)
            X = csr_array(vectorizer.fit_transform(record["text"] for record in chosen))
            for name, method in METHODS.items():
                by_phrase, seconds = cross_validate(method, X, y, phrase_folds)
                by_sentence, _ = cross_validate(method, X, y, sentence_folds)
                results.append(Result(n_labels, features, by_phrase, by_sentence))
                print(
                    f"{n_labels:<7} {features:<10} {name:<20} {published.get(n_labels, ''):>9}  {by_phrase:>9.4f}"
                    f"  {by_sentence:>11.4f}  {seconds:>14.3f}",
                    flush=True,
                )
    return results


def cross_validate(
    method: Method, X: csr_array, y: Labels, folds: Iterable[tuple[Labels, Labels]]
) -> tuple[float, float]:
    """The accuracy over all folds, and the mean time that a fold took to learn and predict."""
    correct, start = 0, time.perf_counter()
    for train, test in folds:
        correct += np.count_nonzero(method(X[train], y[train], X[test]) == y[test])
    return correct / len(y), (time.perf_counter() - start) / N_FOLDS


def draw(results: list[Result], title: str) -> Figure:
    figure = Figure(figsize=(10, 4), layout="constrained")
    places = np.arange(len(METHODS))
    for axes, n_labels in zip(figure.subplots(1, 2, sharey=True), (2, 5), strict=True):
        shown = [result for result in results if (result.n_labels, result.features) == (n_labels, "presence")]
        by_phrase = axes.bar(places - 0.2, [result.by_phrase for result in shown], 0.4, color="#9cc3e6")
        by_sentence = axes.bar(places + 0.2, [result.by_sentence for result in shown], 0.4, color="#1f5fa8")
        axes.bar_label(by_phrase, fmt="%.2f")
        axes.bar_label(by_sentence, fmt="%.2f")
        published = axes.axhline(PUBLISHED[n_labels], color="#e08214", linestyle="--")
        axes.set_xticks(places, [name.replace(" ", "\n", 1) for name in METHODS])
        axes.set(title=f"{n_labels} labels, {title}", ylabel="accuracy", ylim=(0.0, 1.0))
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend([by_phrase, by_sentence, published], ["split by phrase", "split by sentence", "published, full set"])
    return figure


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    records = read_stream(options.data, "rotten_tomatoes_phrases.jsonl.gz")
    labels = np.array([record["label"] for record in records])
    print(f"{np.mean(labels == 2):.4f} of the phrases are neutral, {np.mean(labels <= 2):.4f} neutral or negative")
    chosen = np.random.default_rng(0).choice(len(records), 1_000, replace=False)
    results = evaluate([records[i] for i in chosen], published={})
    if not options.small:
        results = evaluate(records, PUBLISHED)
    save_figure(draw(results, "1,000 phrases" if options.small else f"{len(records):,} phrases"), options.figure)


if __name__ == "__main__":
    main()
