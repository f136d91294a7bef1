"""Batch and online solvers on RCV1, and three classes of Reuters: training time, objective and test error at λ = 1e-4.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 12 and its slides on SVMs; their table goes back to
Bottou, Stochastic gradient descent examples on toy problems, 2007, https://leon.bottou.org/projects/sgd.

    python examples/papers/rcv1.py [--small] [--data FOLDER] [--figure PNG]

Measured on a synthetic matrix of RCV1's shape, which takes some 2 GB of memory, and on a sample of RCV1 itself. The
slides also teach the perceptron, which is River's here, and two ways to several classes: one against all, and one
machine for all. These are tried on the three largest topics of Reuters-21578.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from batch import newton, objective, subgradient_descent
from common import RCV1_COLUMNS, parser, print_table, read_rcv1, read_stream, save_figure, synthetic_rcv1
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from river.linear_model import Perceptron
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

from stream_pegasos import HashedBagOfWords, PegasosClassifier

L2 = 1e-4
N_TRAIN, N_TEST = 781_265, 23_149
TOPICS = ("earn", "acq", "money-fx")


class Problem(NamedTuple):
    """Rows and labels, to train on and to test on."""

    X: csr_array
    y: np.ndarray
    X_test: csr_array
    y_test: np.ndarray


class Point(NamedTuple):
    """The point of a solver after some seconds of training."""

    seconds: float
    objective: float
    error: float


PUBLISHED = {
    "SVM-light": Point(23_642.0, 0.2275, 0.0602),
    "SVM-perf": Point(66.0, 0.2278, 0.0603),
    "SGD-SVM": Point(1.4, 0.2275, 0.0602),
}


class Trace:
    """The points of a solver during training; the clock stops while one is evaluated."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.points = problem, []
        self.began = perf_counter()

    @contextmanager
    def paused(self) -> Iterator[float]:
        """The seconds so far; the clock stops within."""
        stopped = perf_counter()
        yield stopped - self.began
        self.began += perf_counter() - stopped

    def add(self, w: np.ndarray) -> None:
        with self.paused() as seconds:
            self.points.append(Point(seconds, self.objective(w), self.error(w)))

    def objective(self, w: np.ndarray) -> float:
        return objective(w, self.problem.X, self.problem.y, L2)

    def error(self, w: np.ndarray, intercept: float = 0.0) -> float:
        predicted = np.where(self.problem.X_test @ w + intercept > 0.0, 1, -1)
        return float(np.mean(predicted != self.problem.y_test))


def liblinear(problem: Problem) -> Trace:
    """Trained from scratch for each tolerance, since it shows no progress."""
    trace = Trace(problem)
    for tol in (1.0, 0.1, 0.01, 1e-3):
        trace.began = perf_counter()
        svm = LinearSVC(
            loss="hinge", C=1.0 / (L2 * len(problem.y)), fit_intercept=False, tol=tol, max_iter=100_000, random_state=0
        )
        trace.add(svm.fit(problem.X, problem.y).coef_[0])
    return trace


def primal_newton(problem: Problem) -> Trace:
    trace = Trace(problem)
    newton(problem.X, problem.y, L2, tol=1e-6, callback=lambda intermediate_result: trace.add(intermediate_result.x))
    return trace


def batch_pegasos(problem: Problem) -> Trace:
    trace, steps = Trace(problem), itertools.count(1)
    powers_of_two = {2**i for i in range(8)}

    def add(intermediate_result) -> None:
        if next(steps) in powers_of_two:
            trace.add(intermediate_result.x)

    subgradient_descent(problem.X, problem.y, L2, max_iter=max(powers_of_two), callback=add)
    return trace


def online(problem: Problem, n_passes: int, **options) -> Trace:
    """One row at a time, in their order; evaluated along the first pass and after each pass."""
    model, n = PegasosClassifier(l2=L2, **options), len(problem.y)
    first_pass = [0, *(int(n * share) for share in (0.01, 0.03, 0.1, 0.3)), n]
    parts = [(problem.X[begin:end], problem.y[begin:end]) for begin, end in itertools.pairwise(first_pass)]
    trace = Trace(problem)
    for X, y in parts + [(problem.X, problem.y)] * (n_passes - 1):
        model.learn_many(X, y)
        with trace.paused():
            w = dense(model.weights, problem.X.shape[1])
        trace.add(w)
    return trace


def perceptron(problem: Problem) -> Trace:
    """River's, one pass, which does not minimise the objective; no time passes while rows become dicts."""
    model, trace, n = Perceptron(), Trace(problem), len(problem.y)
    for begin in range(0, n, 10_000):
        with trace.paused():
            rows = as_dicts(problem.X[begin : begin + 10_000])
            labels = (problem.y[begin : begin + 10_000] > 0).tolist()
        for row, label in zip(rows, labels, strict=True):
            model.learn_one(row, label)
    with trace.paused() as seconds:
        w = dense(model.weights, problem.X.shape[1])
        trace.points.append(Point(seconds, np.nan, trace.error(w, model.intercept)))
    return trace


def as_dicts(X: csr_array) -> list[dict[int, float]]:
    rows = itertools.pairwise(X.indptr)
    return [dict(zip(X.indices[i:j].tolist(), X.data[i:j].tolist(), strict=True)) for i, j in rows]


def dense(weights: dict[int, float], size: int) -> np.ndarray:
    w = np.zeros(size)
    w[list(weights)] = list(weights.values())
    return w


class Row(NamedTuple):
    """A measured solver beside the published one that it stands for."""

    published: str
    measured: str
    trace: Trace


def compare(problem: Problem, n_passes: int) -> list[Row]:
    return [
        Row("SVM-light", "LinearSVC, hinge (liblinear)", liblinear(problem)),
        Row("SVM-perf", "batch.newton, squared hinge", primal_newton(problem)),
        Row("", "batch.subgradient_descent", batch_pegasos(problem)),
        Row("SGD-SVM", "PegasosClassifier, 1 pass", online(problem, 1)),
        Row("", "1 pass, weighted average", online(problem, 1, average="weighted")),
        Row("", f"PegasosClassifier, {n_passes} passes", online(problem, n_passes)),
        Row("", f"{n_passes} passes, weighted average", online(problem, n_passes, average="weighted")),
        Row("", "River's Perceptron", perceptron(problem)),
    ]


def show(title: str, rows: list[Row]) -> None:
    header = ["published", "seconds", "objective", "error", "measured", "seconds", "objective", "error"]
    cells = [
        [row.published, *figures(PUBLISHED.get(row.published)), row.measured, *figures(row.trace.points[-1])]
        for row in rows
    ]
    print_table(title, header, cells)


def figures(point: Point | None) -> list[str]:
    if point is None:
        return ["", "", ""]
    seconds = f"{point.seconds:,.0f}" if point.seconds >= 100.0 else f"{point.seconds:.2g}"
    value = "none" if np.isnan(point.objective) else f"{point.objective:.4f}"
    return [seconds, value, f"{point.error:.2%}"]


def draw(rows: list[Row]) -> Figure:
    """The objective above the least one found, and the test error, against the seconds of training."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    gaps, errors = figure.subplots(1, 2)
    least = np.nanmin([point.objective for row in rows for point in row.trace.points])
    for row in rows:
        if "1 pass" in row.measured:  # the first stretch of the longer runs
            continue
        seconds, objectives, test_errors = zip(*row.trace.points, strict=True)
        gaps.plot(seconds, np.maximum(1e-6, np.subtract(objectives, least)), marker=".", label=row.measured)
        errors.plot(seconds, test_errors, marker=".", label=row.measured)
    gaps.set(yscale="log", ylabel="objective above the least one found")
    errors.set(ylabel="test error", ylim=(0.0, 0.2))
    errors.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in (gaps, errors):
        axes.set(xscale="log", xlabel="seconds of training")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    errors.legend(frameon=False, loc="upper left", fontsize="small")
    return figure


def read_topics(folder: Path) -> Problem:
    """Reuters-21578, ModApte: the texts with exactly one of the three topics, as hashed words; labels are 0 to 2."""
    records = read_stream(folder, "reuters21578.jsonl.gz")
    parts = []
    for split in ("TRAIN", "TEST"):
        chosen = [
            (record["text"], labels[0])
            for record in records
            if record["lewissplit"] == split
            and record["has_topics"] == "YES"
            and len(labels := [label for label, topic in enumerate(TOPICS) if topic in record["topics"]]) == 1
        ]
        texts, labels = zip(*chosen, strict=True)
        parts += [HashedBagOfWords(n_features=2**18).transform_many(texts), np.array(labels)]
    return Problem(*parts)


def against_all(W: np.ndarray, X: csr_array, y: np.ndarray) -> float:
    """The sum of the objectives of the machines, one a row of W, each of one class against the others."""
    return sum(objective(w, X, np.where(y == label, 1, -1), L2) for label, w in enumerate(W))


def jointly(W: np.ndarray, X: csr_array, y: np.ndarray) -> float:
    """λ/2 Σ ‖w_c‖² + mean of max(0, 1 + the best wrong class's score − the right one's)."""
    scores, rows = X @ W.T, np.arange(len(y))
    right = scores[rows, y]
    scores[rows, y] = -np.inf
    return L2 / 2.0 * np.sum(W**2) + np.mean(np.maximum(0.0, 1.0 + scores.max(axis=1) - right))


def several_classes(problem: Problem, n_passes: int) -> list[list[str]]:
    """Rows of a table: one against all and one machine for all, each by liblinear and by Pegasos."""
    X, y, X_test, y_test = problem
    ways: list[tuple[str, str, Callable[..., float]]] = [
        ("one against all", "ovr", against_all),
        ("one machine for all", "crammer_singer", jointly),
    ]
    rows = []
    for name, way, value_of in ways:
        began = perf_counter()
        svm = LinearSVC(
            loss="hinge", C=1.0 / (L2 * len(y)), fit_intercept=False, multi_class=way, max_iter=100_000, random_state=0
        )
        svm.fit(X, y)
        point = Point(perf_counter() - began, value_of(svm.coef_, X, y), float(np.mean(svm.predict(X_test) != y_test)))
        rows.append([name, "LinearSVC (liblinear)", *figures(point)])
        for n in (1, n_passes):
            began = perf_counter()
            model, rng = PegasosClassifier(l2=L2, multi_class=way), np.random.default_rng(0)
            for _ in range(n):
                order = rng.permutation(len(y))
                model.learn_many(X[order], y[order])
            seconds = perf_counter() - began
            W = np.array([dense(model.weights[label], X.shape[1]) for label in range(len(model.classes))])
            point = Point(seconds, value_of(W, X, y), float(np.mean(model.predict_many(X_test) != y_test)))
            rows.append([name, f"PegasosClassifier, {n} pass{'es' * (n > 1)}", *figures(point)])
    return rows


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    shape = (1_500, 500, 1_000) if options.small else (N_TRAIN, N_TEST, RCV1_COLUMNS)
    rows = compare(Problem(*synthetic_rcv1(*shape)), n_passes=5)
    show(f"synthetic, {shape[0]:,} rows of {shape[2]:,} columns", rows)
    save_figure(draw(rows), options.figure)
    if not options.small:
        show("RCV1, sample of 1,000 rows", compare(Problem(*read_rcv1(options.data)), n_passes=100))
    topics = read_topics(options.data)
    title = (
        f"Reuters-21578, {', '.join(TOPICS)}: {len(topics.y):,} texts to train on, {len(topics.y_test):,} to test on"
    )
    rows = several_classes(topics, n_passes=2 if options.small else 100)
    print_table(title, ["classes", "solver", "seconds", "objective", "error"], rows)


if __name__ == "__main__":
    main()
