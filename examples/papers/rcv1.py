"""Batch and online solvers on RCV1: training time, objective and test error at λ = 1e-4.

Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, chapter 12 and its slides on SVMs; their table goes back to
Bottou, Stochastic gradient descent examples on toy problems, 2007, https://leon.bottou.org/projects/sgd.

    python examples/papers/rcv1.py [--small] [--data FOLDER] [--figure PNG]

Measured on a synthetic matrix of RCV1's shape, which takes some 2 GB of memory, and on a sample of RCV1 itself.
"""

import itertools
from time import perf_counter
from typing import NamedTuple

import numpy as np
from common import parser, print_table, read_rcv1, save_figure
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

from stream_pegasos import PegasosClassifier
from stream_pegasos.learners.batch import newton, objective, subgradient_descent

L2 = 1e-4
N_TRAIN, N_TEST, N_COLUMNS, N_WORDS = 781_265, 23_149, 47_236, 78


class Problem(NamedTuple):
    """Rows and labels of ±1, to train on and to test on."""

    X: csr_array
    y: np.ndarray
    X_test: csr_array
    y_test: np.ndarray


class Point(NamedTuple):
    """Where a solver is after so many seconds of training."""

    seconds: float
    objective: float
    error: float


PUBLISHED = {
    "SVM-light": Point(23_642.0, 0.2275, 0.0602),
    "SVM-perf": Point(66.0, 0.2278, 0.0603),
    "SGD-SVM": Point(1.4, 0.2275, 0.0602),
}


class Trace:
    """The points of a solver on its way; the clock stands still while one is evaluated."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.points = problem, []
        self.began = perf_counter()

    def add(self, w: np.ndarray) -> None:
        stopped = perf_counter()
        X, y, X_test, y_test = self.problem
        error = np.mean(np.where(X_test @ w > 0.0, 1, -1) != y_test)
        self.points.append(Point(stopped - self.began, objective(w, X, y, L2), float(error)))
        self.began += perf_counter() - stopped


def synthetic(n_train: int, n_test: int, n_columns: int, n_words: int, seed: int = 0) -> Problem:
    """Rows like those of RCV1: words as frequent as Zipf's, tf-idf, cosine-normalised; of two sides, half of them each.

    A hidden vector says which tenth of the words speaks for either side. Words that speak against the side of their row
    are mostly replaced by others, which may again do so: of RCV1's shape, the SVM at λ = 1e-4 errs on some 6 %.
    """
    rng = np.random.default_rng(seed)
    n = n_train + n_test

    def words(n: int) -> np.ndarray:
        """Columns with a frequency like 1 / (rank + 20)."""
        ranks = 20.0 * (1.0 + n_columns / 20.0) ** rng.random(n, np.float32) - 20.0
        return np.minimum(ranks.astype(np.int32), n_columns - 1)

    y = rng.choice([-1, 1], n)
    hidden = rng.choice([-1, 0, 1], n_columns, p=[0.1, 0.8, 0.1])
    columns = words(n * n_words)
    against = hidden[columns] == -np.repeat(y, n_words)
    against &= rng.random(len(columns), np.float32) < 0.77
    columns[against] = words(np.count_nonzero(against))
    X = csr_array((np.ones(len(columns)), columns, np.arange(n + 1, dtype=np.int32) * n_words), (n, n_columns))
    X.sum_duplicates()
    idf = np.log(n / np.maximum(1, np.bincount(X.indices, minlength=n_columns)))
    X.data = (1.0 + np.log(X.data)) * idf[X.indices]
    X.data /= np.repeat(np.sqrt(X.power(2).sum(axis=1)), np.diff(X.indptr))
    return Problem(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def liblinear(problem: Problem) -> Trace:
    """Trained from scratch for each tolerance, as it tells nothing on its way."""
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
    """One row at a time, in their order; looked at along the first pass and after each one."""
    model, n, n_columns = PegasosClassifier(l2=L2, **options), len(problem.y), problem.X.shape[1]
    first_pass = [0, *(int(n * share) for share in (0.01, 0.03, 0.1, 0.3)), n]
    parts = [(problem.X[begin:end], problem.y[begin:end]) for begin, end in itertools.pairwise(first_pass)]
    trace = Trace(problem)
    for X, y in parts + [(problem.X, problem.y)] * (n_passes - 1):
        model.learn_many(X, y)
        stopped = perf_counter()
        w = np.zeros(n_columns)
        w[list(model.weights)] = list(model.weights.values())
        trace.began += perf_counter() - stopped
        trace.add(w)
    return trace


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
    return [seconds, f"{point.objective:.4f}", f"{point.error:.2%}"]


def draw(rows: list[Row]) -> Figure:
    """The objective above the least one found, and the test error, against the seconds of training."""
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    gaps, errors = figure.subplots(1, 2)
    least = min(point.objective for row in rows for point in row.trace.points)
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
    gaps.legend(frameon=False, loc="lower left", fontsize="small")
    return figure


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    shape = (4_000, 1_000, 2_000, N_WORDS) if options.small else (N_TRAIN, N_TEST, N_COLUMNS, N_WORDS)
    rows = compare(synthetic(*shape), n_passes=5)
    show(f"synthetic, {shape[0]:,} rows of {shape[2]:,} columns", rows)
    save_figure(draw(rows), options.figure)
    if not options.small:
        show("RCV1, sample of 1,000 rows", compare(Problem(*read_rcv1(options.data)), n_passes=100))


if __name__ == "__main__":
    main()
