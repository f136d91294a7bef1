"""The adaptive rule on several columns, held against a dense transcription of its formulas in NumPy."""

import math

import numpy as np
import pytest
from engines import both_engines, compiled_engine, needs_compiled, pure_engine

from stream_pegasos.engine.pure.adaptive_columns import OF_COLUMN

N_FEATURES = 12


class Dense:
    """Every class and every feature in arrays; evidence shrinks instead of new evidence growing."""

    def __init__(self, reduction, n_classes, order=None, hinge=False, limit=5.0, smoothing=0.5, half_life=0.0):
        self.reduction, self.K, self.hinge, self.limit = reduction, n_classes, hinge, limit
        self.smoothing, self.keep = smoothing, 0.5 ** (1.0 / half_life) if half_life else 1.0
        self.rank = None if order is None else np.argsort(order)  # of each class
        n_problems = n_classes - 1 if reduction == "ordinal" else n_classes
        self.w, self.G = (np.zeros((N_FEATURES, 1 if reduction == "ordinal" else n_classes)) for _ in range(2))
        self.b, self.B, self.o, self.O = (np.zeros(n_problems) for _ in range(4))
        self.n, self.N = np.zeros((N_FEATURES, n_classes)), np.zeros(N_FEATURES)
        self.scale = np.full(N_FEATURES, 0.3 if smoothing else 1.0)
        self.class_n, self.all_n = np.zeros(n_classes), 0.0
        self.s, self.S, self.a, self.A = 1.0, 0.0, np.array([0.0, 1.0]), np.zeros(2)

    def lines(self, x):
        """The margins before offsets, and the values that the weights meet."""
        z = x * self.scale
        z = z / np.linalg.norm(z) if z.any() else z
        if self.reduction == "ordinal":
            return z @ self.w[:, 0] + self.b, z
        return z @ self.w + 0.1 * self.b - math.log(max(self.K - 1, 1)), z

    def margins(self, x):
        m, _ = self.lines(x)
        if self.reduction != "ordinal":
            return m + self.o / self.s
        above = np.minimum.accumulate(np.concatenate([[1.0], sigmoid(self.s * m + self.o), [0.0]]))
        return np.log(np.maximum(above[:-1] - above[1:], 1e-300))[self.rank]

    def learn(self, x, classes, weight):
        m, z = self.lines(x)
        is_class = np.isin(np.arange(self.K), classes)
        holds = is_class if self.reduction != "ordinal" else self.below(classes[0])
        y = np.where(holds, 1.0, -1.0)
        limits = np.where(holds | (self.reduction == "ordinal"), 1.0, 0.6) * self.limit
        slopes = (y * m < 1.0) if self.hinge else sigmoid(-y * m)
        near = y * m < limits
        g = np.where(near, -y * slopes * weight, 0.0)
        rate = 0.5 * math.sqrt(2.0 * min(max(self.s, 0.25), 4.0))
        self.calibrate(m, holds, classes)
        if near.any():
            self.step(x, z, g, is_class, weight, rate)
        for evidence in (self.G, self.B, self.n, self.N, self.class_n):
            evidence *= self.keep
        self.all_n *= self.keep

    def below(self, number):
        return np.arange(self.K - 1) < self.rank[number]

    def step(self, x, z, g, is_class, weight, rate):
        ordinal, has = self.reduction == "ordinal", x != 0.0
        self.class_n += weight * is_class
        self.all_n += weight
        gb = g if ordinal else 0.1 * g
        self.B += gb**2
        moved = gb != 0.0
        self.b[moved] -= (2.0 if ordinal else 1.0) * rate * gb[moved] / np.sqrt(self.B[moved])
        gw = np.outer(z, [g.sum()] if ordinal else g)
        self.G += gw**2
        self.w -= rate * gw / np.sqrt(self.G + 0.001)
        self.n[has] += weight * is_class
        self.N[has] += weight
        if self.smoothing:
            self.scale[has] = 0.3 + self.log_ratios()[has]

    def log_ratios(self):
        α = self.smoothing
        if self.reduction == "ordinal":
            order = np.argsort(self.rank)
            above = self.n[:, order][:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
            n_above = self.class_n[order][::-1].cumsum()[::-1][1:]
            odds = np.log((above + α) / (self.N[:, np.newaxis] - above + α))
            return np.abs(odds - np.log((n_above + α) / (self.all_n - n_above + α))).mean(axis=1)
        odds = np.log((self.n + α) / (self.N[:, np.newaxis] - self.n + α))
        ratios = odds - np.log((self.class_n + α) / (self.all_n - self.class_n + α))
        return np.maximum(np.where(self.n > 0.0, ratios, 0.0).max(axis=1), 0.0)

    def calibrate(self, m, holds, classes):
        if self.reduction == "ovr":
            p = np.exp(self.s * m + self.o - (self.s * m + self.o).max())
            p /= p.sum()
            if self.K > 1 and (p >= p.max() * (1.0 - 1e-9)).sum() == 1:
                top = min(math.log(p.max() / max(1.0 - p.max(), 1e-300)), 34.0)
                error = sigmoid(self.a @ [1.0, top]) - (p.argmax() == classes[0])
                gradient = error * np.array([1.0, top])
                self.A = 0.999 * self.A + gradient**2
                self.a = self.a - 0.3 * gradient / np.sqrt(np.maximum(self.A, 1e-300)) * (gradient != 0.0)
                self.a[1] = max(self.a[1], 0.05)
        else:
            p = sigmoid(self.s * m + self.o)
        error = p - holds
        gradient = self.s * (error @ m)
        if gradient:
            self.S = 0.999 * self.S + gradient**2
            self.s *= 1.0 - 0.5 * gradient / math.sqrt(self.S)
        rate, first = (1.0, 1.0) if self.reduction == "ordinal" else (0.1, 20.0)
        self.O = self.O + error**2
        self.o = self.o - rate * error / np.sqrt(self.O + first)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.clip(x, -34.0, 34.0)))


def taught(reduction, seed, n=150, n_classes=5):
    """Examples with the classes of each, all of which the first ones bring in turn, and weights."""
    generator = np.random.default_rng(seed)
    for i in range(n):
        x = generator.normal(size=N_FEATURES) * (generator.random(N_FEATURES) < 0.5)
        classes = [i if i < n_classes else int(generator.integers(n_classes))]
        if reduction == "multilabel" and i >= n_classes:
            classes = sorted(generator.choice(n_classes, generator.integers(3), replace=False).tolist())
        x[: len(classes)] += classes
        yield x, classes, float(generator.choice([1.0, 2.0, 0.0, 0.5]))


@both_engines
@pytest.mark.parametrize(
    "options",
    [{}, {"hinge": True}, {"limit": math.inf}, {"half_life": 20.0}, {"smoothing": 0.0}, {"half_life": 1.0}],
    ids=repr,
)
@pytest.mark.parametrize("reduction", ["ovr", "multilabel", "ordinal"])
def test_columns_are_those_of_a_dense_transcription(engine_in_test, reduction, options):
    order = np.array([3, 0, 4, 1, 2])
    learner = learner_with(engine_in_test, reduction, order, **options)
    vocabulary, dense = engine_in_test.Vocabulary(), None
    for i, (x, classes, weight) in enumerate(taught(reduction, seed=1)):
        if i == 5:  # from when on all classes are known; the transcription knows of no others to come
            dense = at_this_point(learner, reduction, order, options)
        row = {j: value for j, value in enumerate(x.tolist()) if value}
        if dense is not None:
            assert learner.margin(vocabulary, row).tolist() == pytest.approx(
                dense.margins(x).tolist(), rel=1e-5, abs=1e-5
            )
            assert learner.calibrated[0] == pytest.approx(dense.s, rel=1e-5)
            assert [*learner.calibrated[1:]] == pytest.approx(dense.a.tolist(), rel=1e-5, abs=1e-5)
            dense.learn(x, classes, weight)
        if reduction == "multilabel":
            learner.sets = np.array([0, len(classes)]), np.array(classes, np.int64)
        learner.learn(vocabulary, row, 0.0 if reduction == "multilabel" else float(classes[0]), weight)
    weights = learner.weights_of(np.arange(N_FEATURES))
    assert weights == pytest.approx(dense.w * dense.scale[:, np.newaxis], rel=1e-5, abs=1e-5)


def learner_with(engine, reduction, order, hinge=False, limit=5.0, smoothing=0.5, half_life=0.0):
    learner = engine.AdaptiveColumnsLearner(0.5, hinge, limit, smoothing, half_life, 0.1, reduction=reduction)
    learner.order = order
    return learner


def at_this_point(learner, reduction, order, options):
    """The transcription with what a learner knows already."""
    dense, state = Dense(reduction, learner.n_columns, order, **options), learner.get_state()
    evidence = state["evidence"]
    dense.b, dense.B, dense.o, dense.O = (
        state[name] / (evidence if name == "intercept_squares" else 1.0)
        for name in ("intercepts", "intercept_squares", "offsets", "offset_squares")
    )
    dense.class_n, dense.all_n = state["class_counts"] / evidence, state["n_examples"] / evidence
    at = 0
    for key, ratio, count, n in zip(
        *(state[name] for name in ("keys", "log_ratios", "counts", "n_taught")), strict=True
    ):
        dense.N[key] = count / evidence
        dense.scale[key] = 0.3 + ratio if dense.smoothing else 1.0
        for i in range(at, at + n):
            column = state["taught_columns"][i]
            dense.n[key, column] = state["taught_counts"][i] / evidence
            if column < dense.w.shape[1]:
                dense.w[key, column] = state["values"][i]
                dense.G[key, column] = state["gradient_squares"][i] / evidence
        at += n
    dense.s, dense.S = state["slope"], state["calibration_squares"]
    dense.a = np.array([state["confidence_intercept"], state["confidence_slope"]])
    dense.A = np.array([state["confidence_intercept_squares"], state["confidence_slope_squares"]])
    return dense


@both_engines
def test_only_columns_that_were_taught_are_kept(engine_in_test):
    """Of many classes with words of their own a feature keeps few."""
    learner, vocabulary = learner_with(engine_in_test, "ovr", np.zeros(0, np.int64)), engine_in_test.Vocabulary()
    for i in range(900):
        learner.learn(vocabulary, {i % 300: 1.0, 5_000 + i % 7: 1.0}, float(i % 300), 1.0)
    state = learner.get_state()
    of_own_word = dict(zip(state["keys"].tolist(), state["n_taught"].tolist(), strict=True))
    assert learner.n_columns == 300 and max(of_own_word[i] for i in range(200, 300)) < 20


@both_engines
def test_a_line_between_ordered_classes_begins_as_its_neighbour(engine_in_test):
    learner, vocabulary = learner_with(engine_in_test, "ordinal", np.array([0, 2, 1, 3])), engine_in_test.Vocabulary()
    for i in range(40):
        learner.learn(vocabulary, {"high" if i % 2 else "low": 1.0}, float(i % 2), 1.0)
    (between,) = learner.intercept
    before = learner.margin(vocabulary, {"low": 1.0})
    other = learner_with(engine_in_test, "ordinal", np.array([0, 2, 1, 3]))
    other.set_state(learner.get_state())
    other.order = np.array([0, 2, 1, 3])
    assert other.margin(vocabulary, {"low": 1.0}).tolist() == before.tolist()
    learner.learn(vocabulary, {}, 2.0, 0.0)  # which weighs nothing, but brings the class
    assert len(learner.intercept) == 2
    assert learner.intercept == pytest.approx([between, between], abs=2.0)
    assert learner.get_state()["order"].tolist() == [0, 2, 1]


@needs_compiled
@pytest.mark.parametrize("half_life", [0.0, 1.0])
@pytest.mark.parametrize("reduction", ["ovr", "multilabel", "ordinal"])
def test_engines_agree_on_features_of_few_classes_and_of_many(reduction, half_life):
    """Features begin with few columns and come to have most; classes come by and by, and once many at a time."""
    generator = np.random.default_rng(2)
    learners = [
        learner_with(engine, reduction, np.arange(60), half_life=half_life) for engine in (pure_engine, compiled_engine)
    ]
    vocabularies = [pure_engine.Vocabulary(), compiled_engine.Vocabulary()]
    for i in range(300):
        last = i // 20 if i < 200 or reduction != "multilabel" else 59
        label = int(generator.integers(last + 1))
        row = {int(name): 1.0 + label % 3 for name in (80.0 * generator.random(12) ** 4).astype(int)}
        for learner, vocabulary in zip(learners, vocabularies, strict=True):
            if reduction == "multilabel":
                learner.sets = np.array([0, 2]), np.array([0, label] if label else [0, 1], np.int64)
            learner.learn(vocabulary, row, 0.0 if reduction == "multilabel" else float(label), 1.0)
            if i in (150, 250):
                learner.forget(0.3)
    expected, state = (in_order(learner.get_state()) for learner in learners)
    for name, values in expected.items():
        assert state[name] == pytest.approx(values, rel=1e-6, abs=1e-12), name
    again = learner_with(compiled_engine, reduction, np.arange(60), half_life=half_life)
    again.set_state(learners[1].get_state())
    row = {int(name): 1.0 for name in range(80)}
    margins = [
        learner.margin(vocabulary, row).tolist() for learner, vocabulary in zip(learners, vocabularies, strict=True)
    ]
    assert margins[1] == pytest.approx(margins[0], rel=1e-6, abs=1e-9)
    assert again.margin(vocabularies[1], row).tolist() == margins[1]


def in_order(state):
    """The same with features in the order of their keys."""
    order, starts = np.argsort(state["keys"]), np.cumsum(state["n_taught"]) - state["n_taught"]
    taught = np.concatenate([np.arange(starts[i], starts[i] + state["n_taught"][i]) for i in order])
    of_features = {name: state[name][order] for name in ("keys", "log_ratios", "counts", "n_taught")}
    of_taught = {name: state[name][taught] for name in ("taught_columns", *OF_COLUMN)}
    return {**state, **of_features, **of_taught}
