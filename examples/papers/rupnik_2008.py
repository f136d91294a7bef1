"""How close Pegasos comes to the optimum of a linear SVM: random first weights, steps needed, and batches of k.

Jan Rupnik, Stochastic subgradient approach for solving linear support vector machines: an overview, SiKDD 2008: its
text, and figures 2, 3 and 4.

    python examples/papers/rupnik_2008.py [--small] [--data FOLDER] [--figure PNG]

λ = 1e-4, batches of k = 8,000 drawn at random, on a synthetic matrix of the shape of his data (RCV2, category CCAT),
which takes some 2 GB of memory, and on a sample of RCV1 (the same category).
"""

import itertools
from time import perf_counter
from typing import NamedTuple

import numpy as np
from batch import objective
from common import parser, print_table, read_rcv1, save_figure, synthetic_rcv1
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC
from variants import DensePegasos, random_first_w

from stream_pegasos import PegasosClassifier

L2 = 1e-4
BATCH_SIZE = 8_000
# His two runs, and the steps after which he reads the test error.
STEPS_READ = (50, 200, 560)
MOST_STEPS = 2_000
GAPS = (0.003, 0.001)
SEEDS = range(5)
PUBLISHED = {
    "steps to 0.3 %": "200",
    "seconds of it": "9.2",
    "steps to 0.1 %": "560",
    "test error after 50 steps": "5.8 %",
    "test error of the optimum": "5.6 % (SVM-light)",
    "seconds for the optimum": "about 4 hours",
}
ROWS_AT_ONCE = 80_000


class Problem(NamedTuple):
    """Rows and labels of ±1 to train on and to test on, and the batch SVM's solution."""

    name: str
    X: csr_array
    y: np.ndarray
    X_test: csr_array
    y_test: np.ndarray
    least: float
    batch_error: float
    batch_seconds: float


class Point(NamedTuple):
    """A model after some steps and seconds of learning; its counter counted some of the steps.

    The gap is how far its objective is above the least one, as a share of that one.
    """

    steps: int
    seconds: float
    counted: int
    objective: float
    gap: float
    error: float


Run = list[Point]


def batch_svm(X: csr_array, y: np.ndarray, l2: float) -> np.ndarray:
    """The weights of the optimum."""
    svm = LinearSVC(
        loss="hinge", C=1.0 / (l2 * len(y)), fit_intercept=False, tol=1e-7, max_iter=1_000_000, random_state=0
    )
    return svm.fit(X, y).coef_[0]


def make_problem(name: str, X: csr_array, y: np.ndarray, X_test: csr_array, y_test: np.ndarray) -> Problem:
    began = perf_counter()
    w = batch_svm(X, y, L2)
    seconds = perf_counter() - began
    return Problem(name, X, y, X_test, y_test, objective(w, X, y, L2), error_rate(X_test @ w, y_test), seconds)


def error_rate(margins: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.where(margins > 0.0, 1, -1) != y))


def train(problem: Problem, checkpoints: list[int], order: int, model: PegasosClassifier | DensePegasos) -> Run:
    """Steps on random batches with the seed `order`, evaluated at each checkpoint."""
    rng, run, seconds = np.random.default_rng(order), [], 0.0
    for before, after in itertools.pairwise([0, *checkpoints]):
        n_left = (after - before) * model.batch_size
        began = perf_counter()
        while n_left:
            rows = rng.integers(len(problem.y), size=min(n_left, ROWS_AT_ONCE))
            model.learn_many(problem.X[rows], problem.y[rows])
            n_left -= len(rows)
        seconds += perf_counter() - began
        w = model.w if isinstance(model, DensePegasos) else dense(model.weights, problem.X.shape[1])
        value, error = objective(w, problem.X, problem.y, L2), error_rate(problem.X_test @ w, problem.y_test)
        run.append(Point(after, seconds, model.n_iterations, value, value / problem.least - 1.0, error))
    return run


def dense(weights: dict[int, float], n_columns: int) -> np.ndarray:
    w = np.zeros(n_columns)
    w[list(weights)] = list(weights.values())
    return w


def pegasos(batch_size: int) -> PegasosClassifier:
    return PegasosClassifier(l2=L2, pos_label=1, batch_size=batch_size)


def counting(problem: Problem, batch_size: int, counter: str) -> DensePegasos:
    """From w = 0, with one of the counters of the variants."""
    return DensePegasos(np.zeros(problem.X.shape[1]), L2, batch_size, counter)


def from_random_w(problem: Problem, batch_size: int, seed: int) -> DensePegasos:
    return DensePegasos(random_first_w(problem.X.shape[1], L2, seed), L2, batch_size)


def first_within(gap: float, runs: list[Run], field: str) -> float:
    """The step, or the second, of the first checkpoint within the gap, the median over the runs."""
    return float(
        np.median([next((getattr(point, field) for point in run if point.gap <= gap), np.inf) for run in runs])
    )


def reached(value: float, form: str) -> str:
    return format(value, form) if np.isfinite(value) else "not reached"


def medians(runs: list[Run], field: str) -> list[float]:
    return np.median([[getattr(point, field) for point in run] for run in runs], axis=0).tolist()


def spread(runs: list[Run], steps: int) -> float:
    """By how much the objectives of the runs differ after some steps, as a share of the least one."""
    gaps = [point.gap for run in runs for point in run if point.steps == steps]
    return max(gaps) - min(gaps)


def convergence(problem: Problem, batch_size: int, steps_read: tuple[int, ...], most: int, axes: list[Axes]) -> None:
    """Figure 2: runs that differ by their first weights alone. Figure 3: runs from w = 0 that differ by their draws."""
    curves, gaps, errors = axes
    checkpoints = sorted({*np.geomspace(1, most, 60).astype(int).tolist(), *steps_read})
    first = [point for point in checkpoints if point <= max(steps_read)]
    by_weights = [train(problem, first, 0, from_random_w(problem, batch_size, seed)) for seed in SEEDS]
    by_draws = [train(problem, checkpoints, seed, pegasos(batch_size)) for seed in SEEDS]
    for run in by_weights:
        curves.plot(first, [point.objective for point in run], linewidth=0.8)
    reference_line(curves, problem.least, "optimum")
    curves.set(yscale="log", title="2: random first weights", ylabel=f"{problem.name}\nobjective")
    gaps.plot(checkpoints, np.maximum(1e-6, medians(by_draws, "gap")))
    for gap in GAPS:
        reference_line(gaps, gap, f"{gap:.1%}")
    gaps.set(yscale="log", title="3: distance to the optimum", ylabel="share of the optimum")
    errors.plot(checkpoints, medians(by_draws, "error"))
    reference_line(errors, problem.batch_error, "optimum")
    errors.set(title="3: test error")
    errors.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))

    after = {point.steps: point for point in map(Point, *(medians(by_draws, field) for field in Point._fields))}
    measured = {
        "steps to 0.3 %": reached(first_within(GAPS[0], by_draws, "steps"), ",.0f"),
        "seconds of it": reached(first_within(GAPS[0], by_draws, "seconds"), ".2g"),
        "steps to 0.1 %": reached(first_within(GAPS[1], by_draws, "steps"), ",.0f"),
        "seconds of that": reached(first_within(GAPS[1], by_draws, "seconds"), ".2g"),
        **{f"above the optimum after {n:,} steps": f"{after[n].gap:.2%}" for n in (*steps_read, most)},
        **{f"test error after {n} steps": f"{after[n].error:.2%}" for n in steps_read},
        "test error of the optimum": f"{problem.batch_error:.2%}",
        "seconds for the optimum": f"{problem.batch_seconds:.2g}",
        **{
            f"spread over first weights (draws), step {n}": f"{spread(by_weights, n):.2g} ({spread(by_draws, n):.2g})"
            for n in (1, *steps_read)
        },
    }
    print_table(
        f"{problem.name}: {len(problem.y):,} rows, k = {batch_size:,}, optimum {problem.least:.6f}",
        ["", "published", "measured"],
        [[what, PUBLISHED.get(what, ""), value] for what, value in measured.items()],
    )


def share_counted(run: Run) -> float:
    """The share of the last steps that the counter counted."""
    before, last = run[-2:]
    return (last.counted - before.counted) / (last.steps - before.steps)


def batch_gap(problem: Problem, share: float) -> str:
    """How far above the optimum the batch SVM is whose λ is this share of the problem's.

    If steps that do not count leave w unchanged, w shrinks by λ on only that share of all steps.
    """
    if not share:
        return "no violations left"
    w = batch_svm(problem.X, problem.y, share * L2)
    return f"{objective(w, problem.X, problem.y, L2) / problem.least - 1.0:.2%}"


def batches(problem: Problem, sizes: tuple[int, ...], products: list[int], axis: Axes) -> None:
    """Figure 4: the objective by k with a fixed kT, the number of examples drawn.

    Dotted lines and lower rows are a variant that the paper names but does not run: t skips batches without violation.
    The last rows are of k = 1 alone: t counts each draw, but a draw without violation leaves w unchanged.
    """
    rows, last = [], products[-1]
    read = {k: sorted({*(product // k for product in products), last // k // 2}) for k in sizes}
    every = {k: train(problem, read[k], 0, pegasos(k)) for k in sizes}
    violations = {k: train(problem, read[k], 0, counting(problem, k, "violations")) for k in sizes}
    shares = [share_counted(run) for run in violations.values()]
    for counter, line, runs in (("every", "-", every), ("violations", ":", violations)):
        for product, color in zip(products, ("#9cc3e6", "#4a90d0", "#1f4e79"), strict=True):
            points = [point.objective for k in sizes for point in runs[k] if point.steps == product // k]
            name = f"kT = {product:,}"
            gaps = np.divide(points, problem.least) - 1.0
            axis.plot(sizes, gaps, line, marker=".", color=color, label=name if counter == "every" else None)
            rows.append([name, counter, *(f"{point:.4f}" for point in points)])
    for point in train(problem, products, 0, counting(problem, 1, "w waits")):
        rows.append([f"kT = {point.steps:,}", "every; w waits", f"{point.objective:.4f}", *[""] * (len(sizes) - 1)])
    rows.append(["share of the batches with a violation", "", *(f"{share:.1%}" for share in shares)])
    rows.append(["batch SVM at λ × that share, above the optimum", "", batch_gap(problem, shares[0])])
    rows[-1] += [""] * (len(sizes) - 1)
    axis.set(yscale="log", xlabel="k", title="4: distance to the optimum over k")
    axis.legend(frameon=False, fontsize="small")
    title = f"{problem.name}: objective by k; optimum {problem.least:.4f}"
    print_table(title, ["", "t counts", *(f"k = {k:,}" for k in sizes)], rows)


def reference_line(axis: Axes, value: float, name: str) -> None:
    axis.axhline(value, color="black", linestyle="--", linewidth=0.8)
    axis.annotate(name, (1.0, value), verticalalignment="bottom", fontsize="small")


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    if options.small:
        problems = [make_problem("synthetic", *synthetic_rcv1(2_000, 500, 1_000))]
        batch_size, steps_read, most, sizes = 80, (2, 5, 20), 60, (1, 80)
    else:
        problems = [
            make_problem("synthetic", *synthetic_rcv1(700_000, 104_414)),
            make_problem("RCV1 sample", *read_rcv1(options.data)),
        ]
        batch_size, steps_read, most, sizes = BATCH_SIZE, STEPS_READ, MOST_STEPS, (1, 10, 100, 1_000, 8_000, 80_000)
    products = [batch_size * steps for steps in steps_read]
    figure = Figure(figsize=(14, 3.4 * len(problems)), layout="constrained")
    for problem, axes in zip(problems, figure.subplots(len(problems), 4, squeeze=False), strict=True):
        for axis in axes:
            axis.set(xscale="log", xlabel="steps")
            axis.grid(color="#dddddd", linewidth=0.6)
            axis.spines[["top", "right"]].set_visible(False)
        convergence(problem, batch_size, steps_read, most, axes[:3])
        batches(problem, sizes, products, axes[3])
    save_figure(figure, options.figure)


if __name__ == "__main__":
    main()
