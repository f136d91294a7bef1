"""How close Pegasos comes to the optimum of a linear SVM: initial vectors, steps needed, and batches of k.

Jan Rupnik, Stochastic subgradient approach for solving linear support vector machines, SiKDD 2008, figures 2, 3 and 4.

    python examples/papers/rupnik_2008.py [--small] [--data FOLDER] [--figure PNG]

Measured on a sample of RCV1 (category CCAT) and on Reuters-21578 (category acq, ModApte split).
"""

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import parser, print_table, read_rcv1, read_stream, save_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from river.optim.initializers import Normal
from scipy.sparse import csr_array, random_array
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from stream_pegasos import HashedBagOfWords, PegasosClassifier
from stream_pegasos.learners.batch import objective

L2 = 1e-3
SEEDS = range(5)
GAPS = (0.003, 0.001)
BATCH_SIZES = (1, 3, 10, 30, 100, 300, 1_000)
KINDS = {"t0 = 0": {}, "t0 = 0, counter='violations'": {"counter": "violations"}, "t0 = 1/λ": {"t0": 1.0 / L2}}


class Problem(NamedTuple):
    """Rows and labels of ±1 to train on and to test on; the least objective and the batch SVM's test error."""

    name: str
    X: csr_array
    y: np.ndarray
    X_test: csr_array
    y_test: np.ndarray
    least: float
    batch_error: float


class Point(NamedTuple):
    """A model after some steps, of which its counter counted some.

    The gap is how far its objective is above the least one, as a share of that one.
    """

    steps: int
    counted: int
    objective: float
    gap: float
    error: float


Run = list[Point]


def batch_svm(X: csr_array, y: np.ndarray, l2: float) -> np.ndarray:
    """The weights of the optimum."""
    svm = LinearSVC(
        loss="hinge", C=1.0 / (l2 * len(y)), fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0
    )
    return svm.fit(X, y).coef_[0]


def make_problem(name: str, X: csr_array, y: np.ndarray, X_test: csr_array, y_test: np.ndarray) -> Problem:
    w = batch_svm(X, y, L2)
    return Problem(name, X, y, X_test, y_test, objective(w, X, y, L2), error_rate(X_test @ w, y_test))


def error_rate(margins: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.where(margins > 0.0, 1, -1) != y))


def read_reuters(folder: Path, category: str) -> Problem:
    records = [record for record in read_stream(folder, "reuters21578.jsonl.gz") if record["has_topics"] == "YES"]
    parts = []
    for split in ("TRAIN", "TEST"):
        chosen = [record for record in records if record["lewissplit"] == split]
        parts.append(HashedBagOfWords(n_features=2**18).transform_many([record["text"] for record in chosen]))
        parts.append(np.where([category in record["topics"] for record in chosen], 1, -1))
    return make_problem(f"Reuters-21578, {category}", *parts)


def synthetic(n_rows: int, n_columns: int) -> Problem:
    rng = np.random.default_rng(0)
    X = normalize(random_array((n_rows, n_columns), density=0.05, format="csr", rng=rng))
    y = np.where(X @ rng.normal(size=n_columns) + 0.3 * rng.normal(size=n_rows) > 0.0, 1, -1)
    half = n_rows // 2
    return make_problem("synthetic", X[:half], y[:half], X[half:], y[half:])


def train(problem: Problem, checkpoints: list[int], order: int, **options) -> Run:
    """Steps on examples drawn at random with the seed `order`, looked at after as many as each checkpoint says."""
    model = PegasosClassifier(l2=L2, pos_label=1, **options)
    rng, run = np.random.default_rng(order), []
    for before, after in itertools.pairwise([0, *checkpoints]):
        rows = rng.integers(len(problem.y), size=(after - before) * model.batch_size)
        model.learn_many(problem.X[rows], problem.y[rows])
        value = objective(model, problem.X, problem.y)
        error = error_rate(model.decision_function_many(problem.X_test), problem.y_test)
        run.append(Point(after, model.n_iterations, value, value / problem.least - 1.0, error))
    return run


def from_random_vector(problem: Problem, checkpoints: list[int], seed: int, order: int, kind: str) -> Run:
    return train(problem, checkpoints, order, initializer=Normal(sigma=1.0, seed=seed), **KINDS[kind])


def spread(problem: Problem, steps: int, kind: str) -> float:
    """How much of the objective is due to the initial vector: what it differs by when the order is the same."""
    values = [from_random_vector(problem, [steps], seed, 0, kind)[-1].objective for seed in SEEDS]
    return max(values) - min(values)


def steps_to(gap: float, runs: list[Run]) -> str:
    """The first checkpoint within the gap, the median over the runs."""
    firsts = [next((point.steps for point in run if point.gap <= gap), np.inf) for run in runs]
    return f"{np.median(firsts):,.0f}" if np.isfinite(np.median(firsts)) else "not reached"


def share_counted(run: Run) -> float:
    """The share of the last steps that the counter counted."""
    before, last = run[-2:]
    return (last.counted - before.counted) / (last.steps - before.steps)


def batch_gap(problem: Problem, share: float) -> str:
    """How far above the optimum the batch SVM is whose λ is this share of the problem's.

    Where steps that do not count leave w as it is, w shrinks by λ on that share of all steps only.
    """
    if not share:
        return "no violations left"
    w = batch_svm(problem.X, problem.y, share * L2)
    return f"{objective(w, problem.X, problem.y, L2) / problem.least - 1.0:.2%}"


def medians(runs: list[Run], field: str) -> list[float]:
    return np.median([[getattr(point, field) for point in run] for run in runs], axis=0).tolist()


def figures_2_and_3(problem: Problem, n_steps: int, axes: list[Axes]) -> None:
    checkpoints = np.unique(np.geomspace(1, n_steps, 46).astype(int)).tolist()
    runs = {kind: [from_random_vector(problem, checkpoints, seed, seed, kind) for seed in SEEDS] for kind in KINDS}
    from_0, from_1_over_l2, gaps, errors = axes
    for kind, axis in (("t0 = 0", from_0), ("t0 = 1/λ", from_1_over_l2)):
        for run in runs[kind]:
            axis.plot(checkpoints, [point.objective for point in run], linewidth=0.8)
        reference_line(axis, problem.least, "optimum")
        axis.set(yscale="log", title=f"2: initial vectors, {kind}", ylabel="objective")
    for kind in KINDS:
        gaps.plot(checkpoints, np.abs(medians(runs[kind], "gap")), label=kind)
        errors.plot(checkpoints, medians(runs[kind], "error"))
    for gap in GAPS:
        reference_line(gaps, gap, f"{gap:.1%}")
    gaps.set(yscale="log", title="3: distance to the optimum", ylabel="share of the optimum")
    gaps.legend(frameon=False)
    reference_line(errors, problem.batch_error, "batch SVM")
    errors.set(title="3: test error")
    errors.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    for axis in axes:
        axis.set_xlabel("steps")

    shares = [float(np.median([share_counted(run) for run in runs[kind]])) for kind in KINDS]
    rows = [
        [f"2: spread over initial vectors, step {n:,}", *(f"{spread(problem, n, kind):.2g}" for kind in KINDS)]
        for n in (1, 100, n_steps)
    ]
    rows += [[f"3: steps to {gap:.1%}", *(steps_to(gap, runs[kind]) for kind in KINDS)] for gap in GAPS]
    rows += [
        ["3: distance at the end", *(f"{medians(runs[kind], 'gap')[-1]:.2%}" for kind in KINDS)],
        ["share of the last steps that count", *(f"{share:.1%}" for share in shares)],
        ["distance of the batch SVM at λ × that share", *(batch_gap(problem, share) for share in shares)],
        [
            f"3: test error; batch SVM {problem.batch_error:.2%}",
            *(f"{medians(runs[kind], 'error')[-1]:.2%}" for kind in KINDS),
        ],
    ]
    show(f"{problem.name}: figures 2 and 3, optimum {problem.least:.4f}", list(KINDS), rows)


def figure_4(problem: Problem, n_steps: int, axis: Axes) -> None:
    """The objective over k where kT, the number of examples drawn, stays the same."""
    rows = []
    for product in (n_steps // 100, n_steps // 10, n_steps):
        sizes = [k for k in BATCH_SIZES if k * 10 <= product]
        runs = [[train(problem, [product // k], seed, batch_size=k)[-1] for k in sizes] for seed in SEEDS]
        values = medians(runs, "objective")
        axis.plot(sizes, values, marker=".", label=f"kT = {product:,}")
        empty = [""] * (len(BATCH_SIZES) - len(sizes))
        rows.append([f"4: objective at kT = {product:,}", *(f"{value:.4f}" for value in values), *empty])
    reference_line(axis, problem.least, "optimum")
    axis.set(yscale="log", xlabel="k", title="4: objective over k")
    axis.legend(frameon=False)
    show(f"{problem.name}: figure 4", [f"k = {k:,}" for k in BATCH_SIZES], rows)


def show(title: str, names: list[str], rows: list[list[str]]) -> None:
    def published(what: str) -> str:
        return "curve only" if what[0].isdigit() else ""

    print_table(title, ["", "published", *names], [[what, published(what), *cells] for what, *cells in rows])


def reference_line(axis: Axes, value: float, name: str) -> None:
    axis.axhline(value, color="black", linestyle=":", linewidth=1.0)
    axis.annotate(name, (1.0, value), verticalalignment="bottom", fontsize="small")


def main() -> None:
    options = parser(__file__, __doc__).parse_args()
    if options.small:
        problems, n_steps = [synthetic(400, 200)], 5_000
    else:
        problems = [
            make_problem("RCV1 sample, CCAT", *read_rcv1(options.data)),
            read_reuters(options.data, "acq"),
        ]
        n_steps = 1_000_000
    figure = Figure(figsize=(16, 3.2 * len(problems)), layout="constrained")
    for problem, axes in zip(problems, figure.subplots(len(problems), 5, squeeze=False), strict=True):
        figures_2_and_3(problem, n_steps, axes[:4])
        figure_4(problem, n_steps, axes[4])
        axes[0].set_ylabel(f"{problem.name}\nobjective")
        for axis in axes:
            axis.set_xscale("log")
            axis.grid(color="#dddddd", linewidth=0.6)
            axis.spines[["top", "right"]].set_visible(False)
    save_figure(figure, options.figure)


if __name__ == "__main__":
    main()
