"""The derivation of Pegasos' step from subgradients, each statement tried on random cases.

Nick Greenquist, SVM Math, 2020, https://nickgreenquist.github.io/blog/datascience/2020/08/30/SVM_Math.html; the step
itself: Shalev-Shwartz, Singer and Srebro, ICML 2007.

    python examples/papers/greenquist.py [--small] [--figure PNG]
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import parser, print_table, save_figure
from hypothesis import HealthCheck, assume, configuration, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray
from scipy.sparse import csr_array

from stream_pegasos import PegasosClassifier

Vector = NDArray[np.float64]

# Rounding errors, relative to the largest of the numbers that they come from.
TOLERANCE = 1e-10


class Problem(NamedTuple):
    """Examples, their labels of ±1 and λ: f(w) = λ/2 ‖w‖² + h(w), with h the mean of max(0, 1 − y⟨w, x⟩)."""

    X: Vector
    y: Vector
    l2: float

    def margins(self, w: Vector) -> Vector:
        return self.y * (self.X @ w)

    def hinge(self, w: Vector) -> float:
        return np.maximum(0.0, 1.0 - self.margins(w)).mean()

    def hinge_subgradient(self, w: Vector) -> Vector:
        """The mean of −yx over the examples below the margin, and 0 for the others."""
        return -((self.margins(w) < 1.0) * self.y) @ self.X / len(self.y)

    def objective(self, w: Vector) -> float:
        return self.l2 / 2.0 * (w @ w) + self.hinge(w)

    def subgradient(self, w: Vector) -> Vector:
        return self.l2 * w + self.hinge_subgradient(w)


# Each statement returns a slack, at least 0 if the statement holds, or a relative difference, which is then 0.


def hinge_slack(problem: Problem, u: Vector, v: Vector) -> float:
    return slack(problem.hinge(v), problem.hinge(u), problem.hinge_subgradient(u) @ (v - u))


def objective_slack(problem: Problem, u: Vector, v: Vector) -> float:
    return slack(problem.objective(v), problem.objective(u), problem.subgradient(u) @ (v - u))


def strong_convexity_slack(problem: Problem, u: Vector, v: Vector) -> float:
    curvature = problem.l2 / 2.0 * ((v - u) @ (v - u))
    return slack(problem.objective(v), problem.objective(u), problem.subgradient(u) @ (v - u), curvature)


def slack(value: float, *bound: float) -> float:
    """How far `value` is above the sum of `bound`, relative to the largest of these numbers."""
    return (value - sum(bound)) / max(1.0, abs(value), *map(abs, bound))


def step_difference(problem: Problem, batch_size: int) -> float:
    step = last_step(problem, batch_size, project=False)
    assume(step.is_clear)
    return difference(step, step.plain)


def projected_step_difference(problem: Problem, batch_size: int) -> float:
    step = last_step(problem, batch_size, project=True)
    assume(step.is_clear)
    return difference(step, step.plain / max(1.0, np.sqrt(problem.l2) * np.linalg.norm(step.plain)))


def ball_slack(problem: Problem, batch_size: int) -> float:
    step = last_step(problem, batch_size, project=True)
    return slack(1.0, np.sqrt(problem.l2) * np.linalg.norm(step.learned))


class Step(NamedTuple):
    """The weights before a step of the model, after w − ∇f(w) / (λt) from there, and as the model has them."""

    before: Vector
    plain: Vector
    learned: Vector
    is_clear: bool


def last_step(problem: Problem, batch_size: int, project: bool) -> Step:
    """Learn all of the problem, and return the step on its last `batch_size` examples."""
    X, y, l2 = problem
    model = PegasosClassifier(l2, batch_size, project=project)
    model.learn_many(csr_array(X[:-batch_size]), y[:-batch_size])
    w = dense_weights(model, X.shape[1])
    model.learn_many(csr_array(X[-batch_size:]), y[-batch_size:])

    batch = Problem(X[-batch_size:], y[-batch_size:], l2)
    plain = w - batch.subgradient(w) / (l2 * model.n_iterations)
    # At a margin of 1, up to rounding, −yx and 0 are both subgradients, and two programs may choose differently.
    is_clear = np.all(np.abs(batch.margins(w) - 1.0) > TOLERANCE * (1.0 + np.abs(batch.X) @ np.abs(w)))
    return Step(w, plain, dense_weights(model, X.shape[1]), bool(is_clear))


def dense_weights(model: PegasosClassifier, n_features: int) -> Vector:
    weights = model.weights
    return np.array([weights.get(j, 0.0) for j in range(n_features)])


def difference(step: Step, expected: Vector) -> float:
    size = max(1.0, np.linalg.norm(step.before), np.linalg.norm(step.plain))
    return float(np.linalg.norm(step.learned - expected) / size)


# The random cases.


@st.composite
def problems(draw: st.DrawFn, n_examples: st.SearchStrategy[int]) -> Problem:
    n, n_features = draw(n_examples), draw(st.integers(1, 4))
    # Integers often put an example exactly on the margin, where the hinge has many subgradients.
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-100.0, 100.0))
    y = arrays(np.float64, n, elements=st.sampled_from([-1.0, 1.0]))
    return Problem(draw(arrays(np.float64, (n, n_features), elements=values)), draw(y), draw(st.floats(1e-3, 10.0)))


@st.composite
def two_points(draw: st.DrawFn) -> tuple[Problem, Vector, Vector]:
    problem = draw(problems(st.integers(1, 5)))
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-100.0, 100.0))
    w = arrays(np.float64, problem.X.shape[1], elements=values)
    return problem, draw(w), draw(w)


@st.composite
def last_steps(draw: st.DrawFn) -> tuple[Problem, int]:
    batch_size, n_steps = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    return draw(problems(st.just(batch_size * n_steps))), batch_size


class Statement(NamedTuple):
    formula: str
    value: Callable[..., float]
    cases: Callable[[], st.SearchStrategy]
    is_slack: bool


STATEMENTS = [
    Statement("hinge: h(v) ≥ h(u) + ⟨g(u), v − u⟩", hinge_slack, two_points, True),
    Statement("objective: f(v) ≥ f(u) + ⟨∇f(u), v − u⟩", objective_slack, two_points, True),
    Statement("the same + λ/2 ‖v − u‖²: strongly convex", strong_convexity_slack, two_points, True),
    Statement("step: w − ∇f(w) / (λt), f of the batch", step_difference, last_steps, False),
    Statement("projected step: the nearest point of the ball", projected_step_difference, last_steps, False),
    Statement("projected step: √λ ‖w‖ ≤ 1", ball_slack, last_steps, True),
]


def try_cases(statement: Statement, n_cases: int) -> list[float]:
    """The slack or difference in each of `n_cases` random cases, the same ones every time.

    Raises
    ------
    AssertionError
        If the statement fails; hypothesis then adds the simplest case that it found.
    """
    values = []

    @settings(max_examples=n_cases, derandomize=True, database=None, deadline=None, suppress_health_check=HealthCheck)
    @given(statement.cases())
    def check(case: tuple) -> None:
        value = statement.value(*case)
        values.append(value)
        assert value >= -TOLERANCE if statement.is_slack else value <= TOLERANCE

    check()
    return values


# The figure.


def draw_hinge(axes: Axes) -> None:
    margin = np.array([-1.5, 3.0])
    for touching, slope in [(-0.5, -1.0), (1.0, -0.75), (1.0, -0.5), (1.0, -0.25), (2.0, 0.0)]:
        line = max(0.0, 1.0 - touching) + slope * (margin - touching)
        axes.plot(margin, line, color="#e08214", linewidth=1, label="supporting lines" if slope == 0.0 else None)
    axes.plot([-1.5, 1.0, 3.0], [2.5, 0.0, 0.0], color="#1f5fa8", linewidth=2.5, label="hinge")
    axes.plot(1.0, 0.0, "o", color="#1f5fa8")
    axes.set(xlabel="margin y⟨w, x⟩", ylabel="loss", ylim=(-1.2, 2.6), title="Every supporting line lies below")
    axes.legend(frameon=False)


def draw_steps(axes: Axes, n_steps: int = 8) -> None:
    """The path of the model: from w along −∇f of the next example, then along the radius back into the ball."""
    rng = np.random.default_rng(7)
    y = rng.choice([-1.0, 1.0], 40)
    problem = Problem(rng.normal(size=(40, 2)) + np.outer(y, [1.0, 0.5]), y, l2=0.25)
    steps = [last_step(Problem(problem.X[:t], y[:t], problem.l2), 1, project=True) for t in range(1, n_steps + 1)]
    for before, plain, learned, _ in steps:
        axes.plot(*zip(before, plain, strict=True), color="#e08214", linewidth=1.5)
        axes.plot(*zip(plain, learned, strict=True), ":k", linewidth=1.5)
    axes.plot([], [], color="#e08214", label="step")
    axes.plot([], [], ":k", label="projection")
    axes.plot(*np.transpose([step.learned for step in steps]), "o", color="#1f5fa8", markersize=4, label="weights")
    grid = np.linspace(-3.6, 3.6, 60)
    values = [[problem.objective(np.array([a, b])) for a in grid] for b in grid]
    axes.contour(grid, grid, values, levels=12, colors="#cccccc", linewidths=0.7)
    axes.add_patch(Circle((0.0, 0.0), 1.0 / np.sqrt(problem.l2), fill=False, color="#4d9a52", label="ball of 1/√λ"))
    axes.set(xlabel="first weight", ylabel="second weight", aspect="equal", ylim=(-2.5, 3.6))
    axes.set_title("One example a step, over the whole objective")
    axes.legend(frameon=False, loc="lower right")


def main() -> None:
    configuration.set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "hypothesis")  # not in the current folder
    options = parser(__file__, __doc__).parse_args()
    rows = []
    for statement in STATEMENTS:
        values = try_cases(statement, 20 if options.small else 5_000)
        worst = f"slack ≥ {min(values):.1e}" if statement.is_slack else f"difference ≤ {max(values):.1e}"
        rows.append([statement.formula, "holds", f"{len(values):,}", worst])
    print_table("Subgradients and the step", ["statement", "published", "random cases", "measured, relative"], rows)

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw_hinge(left)
    draw_steps(right)
    save_figure(figure, options.figure)


if __name__ == "__main__":
    main()
