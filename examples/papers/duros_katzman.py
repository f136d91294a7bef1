"""Sentiment of movie review phrases by gradient descent, Pegasos and Newton's method, with two and with five labels.

Vasileios Duros and Jonathan Katzman, Comparison of SVM optimization techniques in the primal (tables 2, 3 and 4), on
the Rotten Tomatoes phrases (Pang and Lee, ACL 2005; labelled by Socher et al., EMNLP 2013).

    python examples/papers/duros_katzman.py [--small] [--data FOLDER] [--figure PNG]

Accuracy in ten rounds that each hold out 10 %, on bags of words: the presence of words, or their counts. Two
labels are positive (3 and 4) against the rest (0, 1 and the neutral 2). Five labels are decoded from four machines, one
for each two neighbouring labels. A round holds out phrases, as in the paper, or whole sentences. Newton's method has
an RBF kernel; its last run, on 16,000 phrases, takes some 8 GB of memory.
"""

import itertools
import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from batch import newton
from common import parser, print_table, read_stream, save_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

from stream_pegasos import PegasosClassifier

Vector = NDArray[np.float64]
Labels = NDArray[np.int64]
Split = tuple[Labels, Labels]
# Tells how positive other examples are.
Scorer = Callable[[csr_array], Vector]
# Learns examples whose labels are -1 and 1.
Solver = Callable[[csr_array, Labels], Scorer]
# Learns examples and their labels, 0 and 1 or 0 to 4, and returns the labels of other examples.
Method = Callable[[csr_array, Labels, csr_array], Labels]


class Grid(NamedTuple):
    """The grids: rates and λ are the paper's; the others, which it does not give, are ours."""

    rates: tuple[float, ...] = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
    l2s: tuple[float, ...] = (0.001, 0.01, 0.1, 1.0, 10.0)
    sample_sizes: tuple[int, ...] = (1, 10, 100, 1_000)
    steps: tuple[int, ...] = (10, 100, 1_000)
    gammas: tuple[float, ...] = (0.01, 0.1, 1.0)
    ridges: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    descents: tuple[int, ...] = (30, 300)
    n_rounds: int = 10
    newton_sizes: tuple[int, ...] = (1_000, 2_000, 4_000, 8_000, 16_000)


SMALL = Grid((0.1, 1.0), (0.01, 1.0), (1, 100), (10, 100), (0.1,), (1.0,), (30,), 2, (100, 200))

# Accuracy and seconds, by labels, features and method.
PUBLISHED_FULL = {
    (2, "presence", "gradient descent"): (0.7328, 184),
    (5, "presence", "gradient descent"): (0.5119, 300),
    (2, "presence", "Pegasos"): (0.7319, 140),
    (2, "count", "Pegasos"): (0.7312, 67),
    (5, "presence", "Pegasos"): (0.5142, 120),
    (5, "count", "Pegasos"): (0.5141, 122),
}
PUBLISHED_1000 = {
    (2, "presence", "gradient descent"): (0.8343, 1),
    (2, "count", "gradient descent"): (0.8404, None),
    (5, "presence", "gradient descent"): (0.6979, None),
    (5, "count", "gradient descent"): (0.6929, None),
    (2, "presence", "Pegasos"): (0.8485, None),
    (2, "count", "Pegasos"): (0.8485, None),
    (5, "presence", "Pegasos"): (0.7061, None),
    (5, "count", "Pegasos"): (0.7172, None),
    (2, "presence", "Newton"): (0.7959, 470),
    (5, "presence", "Newton"): (0.6828, 537),
}
PUBLISHED_NEWTON_SECONDS = {1_000: 24, 2_000: 107, 4_000: 410, 8_000: 1_665, 16_000: 6_805}

# --- the three optimisers ---------------------------------------------------------------------------------------------


def descend(X: csr_array, y: Labels, rate: float, n_steps: int) -> Scorer:
    """Gradient descent on the mean squared hinge loss, from w = 0."""
    w, by_column = np.zeros(X.shape[1]), X.T.tocsr()
    for _ in range(n_steps):
        slack = np.maximum(0.0, 1.0 - y * (X @ w))
        w += rate * 2.0 / len(y) * (by_column @ (slack * y))
    return lambda others: others @ w


def learn_by_pegasos(X: csr_array, y: Labels, l2: float, sample_size: int, n_steps: int) -> Scorer:
    """Pegasos whose step divides by the number of violators, as in the paper, rather than by the sample's size."""
    w, rng = np.zeros(X.shape[1]), np.random.default_rng(0)
    for t in range(1, n_steps + 1):
        rows = rng.integers(len(y), size=sample_size)
        sample, signs = X[rows], y[rows]
        violating = signs * (sample @ w) < 1.0
        w *= 1.0 - 1.0 / t
        w += sample.T @ (signs * violating) / (l2 * t * max(1, violating.sum()))
        w *= min(1.0, 1.0 / (np.sqrt(l2) * max(1e-300, np.linalg.norm(w))))
    return lambda others: others @ w


def learn_by_newton(X: csr_array, y: Labels, gamma: float, ridge: float) -> Scorer:
    def kernel(A: csr_array, B: csr_array) -> Vector:
        return rbf(A, B, gamma)

    coefficients = newton_by_halves(X, y, kernel, ridge)
    return lambda others: kernel(others, X) @ coefficients


def newton_by_halves(X: csr_array, y: Labels, kernel: Callable[[csr_array, csr_array], Vector], ridge: float) -> Vector:
    """Chapelle's recursion: Newton's method, at most 5 steps of it, begins with the solution of half the examples."""
    start = np.zeros(len(y))
    if len(y) > 1_000:
        half = len(y) // 2
        start[:half] = newton_by_halves(X[:half], y[:half], kernel, ridge)
    # Each step solves (K + ridge I) β = y over the violators.
    return newton(X, y, 2.0 * ridge / len(y), kernel, max_iter=5, x0=start).x


def rbf(A: csr_array, B: csr_array, gamma: float) -> Vector:
    """exp(−γ ‖a − b‖²) for each row a of A and b of B."""
    K = (A @ B.T).toarray()
    K *= -2.0
    K += A.power(2).sum(axis=1)[:, np.newaxis]
    K += B.power(2).sum(axis=1)
    K *= -gamma
    return np.exp(K, out=K)


# --- labels -----------------------------------------------------------------------------------------------------------


def guess_commonest(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
    return np.full(X_test.shape[0], np.bincount(y).argmax())


def learn_by_ours(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
    """The package's own classifiers with λ = 1e-4, five passes in random order, each in a hundred parts."""
    model = PegasosClassifier() if y.max() == 1 else NeighbouringPairs(y.max() + 1)
    rng = np.random.default_rng(0)
    for _ in range(5):
        for rows in np.array_split(rng.permutation(len(y)), 100):
            model.learn_many(X[rows], y[rows])
    return model.predict_many(X_test)


class NeighbouringPairs:
    """Ordered labels from 0 on: an SVM for each two neighbours, and the pattern S of the signs of all their margins.

    P(label given S) is counted with the patterns that the phrases of a call have before they are learned.
    """

    def __init__(self, n_labels: int) -> None:
        self.machines = [PegasosClassifier(pos_label=True) for _ in range(n_labels - 1)]
        self.patterns = Patterns(n_labels)

    def signs(self, X: csr_array) -> NDArray[np.bool_]:
        return np.column_stack([machine.decision_function_many(X) for machine in self.machines]) > 0.0

    def learn_many(self, X: csr_array, y: Labels) -> None:
        self.patterns.count(self.signs(X), y)
        for lower, machine in enumerate(self.machines):
            rows = (y == lower) | (y == lower + 1)
            machine.learn_many(X[rows], y[rows] > lower)

    def predict_proba_many(self, X: csr_array) -> Vector:
        return self.patterns.probabilities(self.signs(X))

    def predict_many(self, X: csr_array) -> Labels:
        return self.predict_proba_many(X).argmax(axis=1)


class Patterns:
    """P(label given S), for the pattern S of the signs of machines, of which there is one fewer than labels."""

    def __init__(self, n_labels: int) -> None:
        self.powers = 1 << np.arange(n_labels - 1)
        self.counts = np.zeros((1 << (n_labels - 1), n_labels), np.int64)

    def count(self, signs: NDArray[np.bool_], y: Labels) -> None:
        np.add.at(self.counts, (signs @ self.powers, y), 1)

    def probabilities(self, signs: NDArray[np.bool_]) -> Vector:
        """A row for each row of signs; the shares of the labels themselves if there never was such a pattern."""
        seen = np.where(self.counts.any(axis=1, keepdims=True), self.counts, self.counts.sum(axis=0))
        return (seen / seen.sum(axis=1, keepdims=True))[signs @ self.powers]


def method_of(solver: Solver) -> Method:
    """A method of two or five labels from a solver of two."""

    def predict(X: csr_array, y: Labels, X_test: csr_array) -> Labels:
        if y.max() == 1:
            return (solver(X, 2 * y - 1)(X_test) > 0.0).astype(np.int64)
        machines = [neighbours(solver, X, y, lower) for lower in range(y.max())]
        signs, test_signs = (np.column_stack([score(A) for score in machines]) > 0.0 for A in (X, X_test))
        patterns = Patterns(y.max() + 1)
        patterns.count(signs, y)
        return patterns.probabilities(test_signs).argmax(axis=1)

    return predict


def neighbours(solver: Solver, X: csr_array, y: Labels, lower: int) -> Scorer:
    """A machine that tells the label `lower` from the next."""
    rows = (y == lower) | (y == lower + 1)
    return solver(X[rows], np.where(y[rows] == lower, -1, 1))


# --- tuning -----------------------------------------------------------------------------------------------------------


class Tuned(NamedTuple):
    """A method of the table and the settings that were chosen for it."""

    name: str
    settings: str
    method: Method


def tune(X: csr_array, y: Labels, rows: Labels, grid: Grid, with_newton: bool) -> list[Tuned]:
    """Every method with the settings that are best on a third of some rows, after learning the others.

    With few rows that is done with each third, since one says little.
    """
    thirds = np.array_split(rows, 3)
    splits = [(np.concatenate([thirds[i - 2], thirds[i - 1]]), thirds[i]) for i in range(3 if len(rows) < 2_000 else 1)]

    def best(solver: Callable[..., Scorer], *choices: Iterable[float]) -> tuple[float, ...]:
        def score(settings: tuple[float, ...]) -> float:
            return accuracy(method_with(solver, settings), X, y, splits)

        return max(itertools.product(*choices), key=score)

    methods = [Tuned("commonest label", "", guess_commonest)]
    for n_steps in grid.descents:
        chosen = best(descend, grid.rates, [n_steps])
        methods.append(Tuned("gradient descent", "{1} steps, rate {0:g}".format(*chosen), method_with(descend, chosen)))
    # One parameter after the other, like the paper. Its start is unknown; here it is samples of 1 and most steps.
    most = max(grid.steps)
    l2, *_ = best(learn_by_pegasos, grid.l2s, [1], [most])
    _, size, _ = best(learn_by_pegasos, [l2], grid.sample_sizes, [most])
    in_order = best(learn_by_pegasos, [l2], [size], grid.steps)
    everywhere = best(learn_by_pegasos, grid.l2s, grid.sample_sizes, grid.steps)
    for how, chosen in (("in order", in_order), ("whole grid", everywhere)):
        settings = "{}: λ = {:g}, k = {:,}, T = {:,}".format(how, *chosen)
        methods.append(Tuned("Pegasos", settings, method_with(learn_by_pegasos, chosen)))
    if with_newton:
        chosen = best(learn_by_newton, grid.gammas, grid.ridges)
        settings = "γ = {:g}, ridge {:g}".format(*chosen)
        methods.append(Tuned("Newton", settings, method_with(learn_by_newton, chosen)))
    return [*methods, Tuned("ours", "λ = 1e-4, k = 1, 5 passes", learn_by_ours)]


def method_with(solver: Callable[..., Scorer], settings: tuple[float, ...]) -> Method:
    return method_of(lambda X, y: solver(X, y, *settings))


def accuracy(method: Method, X: csr_array, y: Labels, splits: Iterable[Split]) -> float:
    return float(np.mean([np.mean(method(X[train], y[train], X[test]) == y[test]) for train, test in splits]))


# --- tables and figure ------------------------------------------------------------------------------------------------


class Result(NamedTuple):
    n_labels: int
    features: str
    tuned: Tuned
    by_phrase: float
    by_sentence: float
    seconds: float


def evaluate(title: str, records: list[dict], published: dict, grid: Grid, with_newton: bool) -> list[Result]:
    """Ten rounds of each method with two and five labels, and with both features."""
    # Phrases of punctuation alone have nothing to learn.
    records = [record for record in records if re.search(r"\w", record["text"])]
    five = np.array([record["label"] for record in records])
    options = {"n_splits": grid.n_rounds, "test_size": 0.1, "random_state": 0}
    phrases = list(ShuffleSplit(**options).split(five))
    sentences = list(GroupShuffleSplit(**options).split(five, groups=[record["sentence"] for record in records]))
    results = []
    for n_labels, features in itertools.product((2, 5), ("presence", "count")):
        y = five if n_labels == 5 else (five > 2).astype(np.int64)
        # The vocabulary is that of all rounds: a word that only test phrases have keeps the weight 0.
        vectorizer = CountVectorizer(binary=features == "presence", token_pattern=r"\w+", dtype=np.float64)
        X = csr_array(vectorizer.fit_transform(record["text"] for record in records))
        for tuned in tune(X, y, phrases[0][0], grid, with_newton):
            began = time.perf_counter()
            by_phrase = accuracy(tuned.method, X, y, phrases)
            seconds = time.perf_counter() - began
            by_sentence = accuracy(tuned.method, X, y, sentences)
            results.append(Result(n_labels, features, tuned, by_phrase, by_sentence, seconds))
    show(f"{title}: {len(records):,} with a word", results, published)
    return results


def show(title: str, results: list[Result], published: dict) -> None:
    header = ["labels", "words by", "method", "settings", "published", "by phrase", "by sentence", "s published", "s"]
    rows = []
    for n_labels, features, tuned, by_phrase, by_sentence, seconds in results:
        theirs, their_seconds = published.get((n_labels, features, tuned.name), (None, None))
        rows.append(
            [
                str(n_labels),
                features,
                tuned.name,
                tuned.settings,
                "" if theirs is None else f"{theirs:.4f}",
                f"{by_phrase:.4f}",
                f"{by_sentence:.4f}",
                "" if their_seconds is None else str(their_seconds),
                f"{seconds:.2g}",
            ]
        )
    print_table(title, header, rows)


def time_newton(records: list[dict], sizes: tuple[int, ...]) -> dict[int, float]:
    """The seconds of Newton's recursion on that number of random phrases, with two labels."""
    drawn = [records[i] for i in np.random.default_rng(0).permutation(len(records))[: max(sizes)]]
    X = csr_array(CountVectorizer(binary=True, dtype=np.float64).fit_transform(record["text"] for record in drawn))
    y, seconds = np.array([1 if record["label"] > 2 else -1 for record in drawn]), {}
    for size in sizes:
        began = time.perf_counter()
        learn_by_newton(X[:size], y[:size], gamma=0.1, ridge=1.0)
        seconds[size] = time.perf_counter() - began
    rows = [[f"{n:,}", str(PUBLISHED_NEWTON_SECONDS.get(n, "")), f"{taken:.2g}"] for n, taken in seconds.items()]
    print_table("Newton's recursion", ["phrases", "seconds published", "seconds"], rows)
    return seconds


def draw(results: list[Result], published: dict, title: str, newton_seconds: dict[int, float]) -> Figure:
    figure = Figure(figsize=(16, 4.4), layout="constrained")
    *bars, times = figure.subplots(1, 3)
    for axes, n_labels in zip(bars, (2, 5), strict=True):
        shown = [result for result in results if (result.n_labels, result.features) == (n_labels, "presence")]
        draw_bars(axes, shown, published)
        axes.set(title=f"{n_labels} labels, {title}", ylabel="accuracy", ylim=(0.0, 1.0))
    bars[0].legend(frameon=False, loc="upper left", ncols=3)
    times.plot(list(PUBLISHED_NEWTON_SECONDS), list(PUBLISHED_NEWTON_SECONDS.values()), "o--", color="#e08214")
    times.plot(list(newton_seconds), list(newton_seconds.values()), "o-", color="#1f5fa8")
    times.set(xscale="log", yscale="log", xlabel="phrases", ylabel="seconds", title="Newton's recursion")
    times.legend(["published", "ours"], frameon=False)
    for axes in (*bars, times):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_bars(axes: Axes, results: list[Result], published: dict) -> None:
    places = np.arange(len(results))
    for offset, color, field in ((-0.2, "#9cc3e6", "by_phrase"), (0.2, "#1f5fa8", "by_sentence")):
        values = [getattr(result, field) for result in results]
        drawn = axes.bar(places + offset, values, 0.4, color=color, label=f"split {field.replace('_', ' ')}")
        axes.bar_label(drawn, fmt="%.2f", fontsize="x-small", padding=3)
    for place, result in enumerate(results):
        theirs, _ = published.get((result.n_labels, result.features, result.tuned.name), (None, None))
        if theirs is not None:
            axes.plot([place - 0.45, place + 0.45], [theirs, theirs], color="#e08214", linewidth=2.0)
    axes.plot([], [], color="#e08214", linewidth=2.0, label="published")
    names = [f"{result.tuned.name}\n{re.split('[:,] ', result.tuned.settings)[0]}" for result in results]
    names = [
        name.replace("gradient descent", "descent").replace("commonest label", "commonest\nlabel") for name in names
    ]
    axes.set_xticks(places, names, fontsize="x-small")


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    grid = SMALL if options.small else Grid()
    records = read_stream(options.data, "rotten_tomatoes_phrases.jsonl.gz")
    labels = np.array([record["label"] for record in records])
    shares = [np.mean(labels[begin : begin + 1_000] <= 2) for begin in range(0, len(labels) - 999, 1_000)]
    print(f"{np.mean(labels <= 2):.4f} of the phrases are not positive, {np.mean(labels == 2):.4f} neutral;")
    print(
        f"from {min(shares):.3f} to {max(shares):.3f} of 1,000 in a row are not positive, {shares[0]:.3f} of the first"
    )
    few = 300 if options.small else 1_000
    drawn = [records[i] for i in np.random.default_rng(0).choice(len(records), few, replace=False)]
    published, title = PUBLISHED_1000, f"{few:,} phrases"
    results = evaluate(f"{few:,} phrases drawn at random", drawn, published, grid, with_newton=True)
    if not options.small:
        evaluate("The first 1,000 phrases", records[:1_000], published, grid, with_newton=True)
        published, title = PUBLISHED_FULL, f"{len(records):,} phrases"
        results = evaluate("All phrases", records, published, grid, with_newton=False)
    newton_seconds = time_newton(records, grid.newton_sizes)
    save_figure(draw(results, published, title, newton_seconds), options.figure)


if __name__ == "__main__":
    main()
