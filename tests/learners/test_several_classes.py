import itertools
import math

import numpy as np
import pytest
from river import multiclass
from scipy import optimize, sparse

from stream_pegasos import PegasosClassifier, engine

pure = engine.NAME == "pure"


# --- the algorithms ---------------------------------------------------------------------------------------------------


AVERAGES = [
    {"average": True},
    {"average": 20, "t0": 5.0},
    {"average": "weighted", "fit_intercept": True},
    {"average": "weighted", "project": False},
]


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("options", [{}, {"t0": 20.0, "project": False}, {"fit_intercept": True}, *AVERAGES], ids=repr)
def test_ovr_is_rivers_one_vs_rest_margin_for_margin(batch_size, options):
    parameters = {"l2": 1e-2, "batch_size": batch_size, **options}
    model = PegasosClassifier(multi_class="ovr", **parameters)
    river = multiclass.OneVsRestClassifier(PegasosClassifier(**parameters))
    for i, (x, y) in enumerate(stream(300, n_classes=6)):
        margins = model.decision_function_one(x)
        expected = {label: part.decision_function_one(x) for label, part in river.classifiers.items()}
        assert margins == pytest.approx(expected, rel=1e-9, abs=1e-9)
        model.learn_one(x, y)
        river.learn_one(x, y)
        if i % 50 == 13:
            model.flush()
            for part in river.classifiers.values():
                part.flush()
    assert len(river.classifiers) == 6
    for label, part in river.classifiers.items():
        assert model.weights[label] == pytest.approx({k: v for k, v in part.weights.items() if v != 0.0}, rel=1e-8)
        assert model.intercept[label] == pytest.approx(part.intercept, rel=1e-8)


@pytest.mark.parametrize("options", [{}, {"project": False, "t0": 10.0}, {"batch_size": 5}, {"fit_intercept": True}])
def test_many_passes_reach_the_optimum_of_the_joint_objective(options):
    generator = np.random.default_rng(0)
    n, d, k, l2 = 24, 2, 3, 0.1
    centres = np.array([[1.5, 0.0], [-1.0, 1.0], [0.0, -1.5]])
    y = np.arange(n) % k
    X = centres[y] + generator.normal(size=(n, d))
    columns = np.column_stack([X, np.ones(n)]) if options.get("fit_intercept") else X
    D = columns.shape[1]

    def objective(W):
        margins = columns @ W.T
        losses = margins + 1.0 - margins[np.arange(n), y][:, None]
        losses[np.arange(n), y] = 0.0
        return l2 / 2 * (W**2).sum() + losses.max(axis=1).mean()

    # As a quadratic programme: the hinges become slack variables, with a constraint for each wrong class.
    rows, i_of, r_of = [], [], []
    for i, r in itertools.product(range(n), range(k)):
        if r != y[i]:
            row = np.zeros(k * D + n)
            row[y[i] * D : (y[i] + 1) * D], row[r * D : (r + 1) * D] = columns[i], -columns[i]
            row[k * D + i] = 1.0
            rows.append(row)
            i_of.append(i)
            r_of.append(r)
    A = np.array(rows)
    best = optimize.minimize(
        lambda v: l2 / 2 * v[: k * D] @ v[: k * D] + v[k * D :].mean(),
        np.concatenate([np.zeros(k * D), np.ones(n)]),
        jac=lambda v: np.concatenate([l2 * v[: k * D], np.full(n, 1 / n)]),
        bounds=[(None, None)] * (k * D) + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda v: A @ v - 1.0, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert best.success
    assert objective(best.x[: k * D].reshape(k, D)) == pytest.approx(best.fun, abs=1e-6)
    model = PegasosClassifier(multi_class="crammer_singer", l2=l2, **options)
    matrix = sparse.csr_matrix(X)
    for seed in range(75 if pure else 750):
        order = np.random.default_rng(seed).permutation(n)
        model.learn_many(matrix[order], y[order])
    W = np.array(
        [
            [*(model.weights[c][j] for j in range(d)), *([model.intercept[c]] if d < D else [])]
            for c in range(k)  # labels are known by their value, whichever came first
        ]
    )
    assert best.fun <= objective(W) + 1e-6
    assert objective(W) <= best.fun * (1.1 if pure else 1.02)


# --- many at once -----------------------------------------------------------------------------------------------------


def stream(n, n_classes=4, seed=0):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(n_classes, 12))
    for i in range(n):
        number = int(generator.integers(min(n_classes, 1 + i // 10)))
        x = {j: float(round(centres[number, j] + v, 3)) for j, v in enumerate(generator.normal(size=12)) if v > -0.3}
        yield x, f"class {number}"


MODELS = {
    "default": {},
    "ovr": {"multi_class": "ovr", "l2": 0.01},
    "joint batches": {"batch_size": 7, "t0": 0.5, "project": False, "l2": 0.01},
    "ovr batches": {"multi_class": "ovr", "batch_size": 3, "fit_intercept": True, "intercept_scaling": 2.0},
    "weights": {"class_weight": {"class 1": 3.0, "class 2": 0.0}, "fit_intercept": True, "l2": 0.1},
}


# --- probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", MODELS)
def test_probabilities_are_a_softmax_of_the_margins_and_agree_with_predictions(which):
    """But for the largest, which is calibrated alone; the others have equal shares of the rest."""
    model = trained(which)
    slope, intercept, slope_of_top = model.trainer.learner.calibrated
    assert slope > 0.0 and slope != 1.0 and slope_of_top != 1.0
    for x, _ in stream(60, seed=9):
        margins, probabilities = model.decision_function_one(x), model.predict_proba_one(x)
        terms = {label: math.exp(slope * (m - max(margins.values()))) for label, m in margins.items()}
        softmax = {y: term / sum(terms.values()) for y, term in terms.items()}
        top = model.predict_one(x)
        rest = 1.0 - softmax.pop(top)
        second = max(softmax.values()) / rest
        confidence = 1.0 / (1.0 + math.exp(-intercept) * (rest / (1.0 - rest)) ** slope_of_top)
        confidence = max(confidence, second / (1.0 + second))
        expected = {y: p / rest * (1.0 - confidence) for y, p in softmax.items()}
        assert probabilities == pytest.approx({**expected, top: confidence})
        assert sum(probabilities.values()) == pytest.approx(1.0)
        assert max(probabilities, key=probabilities.get) == top
    tie = model.predict_proba_one({}) if not MODELS[which].get("fit_intercept") else None
    assert tie is None or set(tie.values()) == {0.25}


def test_calibration_improves_on_the_plain_softmax():
    model = PegasosClassifier(multi_class="crammer_singer", l2=1e-3)
    found, plain = [], []
    for x, y in stream(1500, n_classes=5, seed=3):
        margins, probabilities = model.decision_function_one(x), model.predict_proba_one(x)
        model.learn_one(x, y)
        if y in margins:
            largest = max(margins.values())
            plain.append(largest + math.log(sum(math.exp(m - largest) for m in margins.values())) - margins[y])
            found.append(-math.log(max(probabilities[y], 1e-300)))
    assert np.mean(found[300:]) < np.mean(plain[300:])
    assert np.mean(found[300:]) < math.log(5)


# --- bad input --------------------------------------------------------------------------------------------------------


def trained(which, n=60, seed=0):
    model = PegasosClassifier(**{"multi_class": "crammer_singer", **MODELS[which]})
    for x, y in stream(n, seed=seed):
        model.learn_one(x, y)
    return model


# --- River ------------------------------------------------------------------------------------------------------------


def test_rivers_one_vs_one_learns_every_pair():
    """For each pair a classifier, that has learned from the examples of its two classes alone."""
    model = multiclass.OneVsOneClassifier(PegasosClassifier(l2=1e-2))
    seen = {}
    for i, (x, y) in enumerate(stream(300, n_classes=5)):
        model.learn_one(x, y)
        seen.setdefault(y, []).append(i)
    assert len(model.classifiers) == 5 * 4 // 2
    assert {frozenset(pair) for pair in model.classifiers} == set(map(frozenset, itertools.combinations(seen, 2)))
    for (one, other), part in model.classifiers.items():
        assert part.n_iterations > 0 and set(part.classes) == {False, True}
        start = max(seen[one][0], seen[other][0])  # a pair is there from the later of the two on
        assert part.n_iterations == sum(i >= start for label in (one, other) for i in seen[label])
    X, y = zip(*stream(100, n_classes=5), strict=True)
    assert np.mean([model.predict_one(x) == label for x, label in zip(X, y, strict=True)]) > 0.6
