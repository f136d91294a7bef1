import decimal
import itertools
import math
import pickle
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairwise import pairwise
from river import datasets, evaluate, metrics, multiclass, preprocessing
from scipy import optimize, sparse

from stream_pegasos import (
    PegasosClassifier,
    TextClassifier,
    engine,
)

pure = engine.NAME == "pure"
NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60, ""]
LABELS = ["red", 7, "blue", -2, "green", "", 2**70]


# --- the algorithms ---------------------------------------------------------------------------------------------------


class DenseJoint:
    """Crammer and Singer's objective by Pegasos, on one dense matrix with a row a class."""

    def __init__(self, dimension, l2, batch_size, t0, project, average, counter):
        self.l2, self.batch_size, self.t0, self.project = l2, batch_size, t0, project
        self.average, self.counter = average, counter
        self.W = np.zeros((0, dimension))
        self.iterates = []  # of each class, with their weights in its average
        self.t, self.largest = 0, 0.0
        self.n_buffered, self.violations = 0, []  # (right class, best wrong class, c·x)

    @property
    def predicting(self):
        """The weights that predict."""
        totals = [sum(c for c, _ in iterates) for iterates in self.iterates]
        pairs = zip(self.W, self.iterates, totals, strict=True)
        rows = [sum(c * w for c, w in iterates) / total if total else w for w, iterates, total in pairs]
        return np.array(rows).reshape(self.W.shape)

    def margins(self, x):
        return self.W @ x

    def is_close_call(self, x, number):
        """Whether rounding alone may decide which wrong class is the best or if the margin is violated."""
        margins = np.append(self.margins(x), 0.0) if number == len(self.W) else self.margins(x)
        error = 1e-9 * (1.0 + self.largest * np.abs(x).sum())
        rivals = sorted(np.delete(margins, number))[::-1]
        tied = len(rivals) > 1 and rivals[0] - rivals[1] <= error and not rivals[0] == rivals[1] == 0.0
        return bool(tied or (rivals and abs(margins[number] - rivals[0] - 1.0) <= error))

    def learn(self, x, number, c):
        if number == len(self.W):
            self.W = np.vstack([self.W, np.zeros(len(x))])
            self.iterates.append([])
        margins = self.margins(x)
        rivals = [r for r in range(len(self.W)) if r != number]
        if rivals:
            rival = rivals[int(np.argmax(margins[rivals]))]
            if margins[number] - margins[rival] < 1.0:
                self.violations.append((number, rival, c * x))
        self.n_buffered += 1
        if self.n_buffered == self.batch_size:
            self.flush()

    def flush(self):
        if not self.n_buffered:
            return
        if self.counter == "violations" and not self.violations:
            self.n_buffered = 0
            return
        self.t += 1
        n = self.t + self.t0
        self.W = (1.0 - 1.0 / n) * self.W
        for number, rival, x in self.violations:
            self.W[number] += x / (self.l2 * n * self.n_buffered)
            self.W[rival] -= x / (self.l2 * n * self.n_buffered)
        self.largest = max(self.largest, np.abs(self.W).max(initial=0.0))
        if self.project and np.linalg.norm(self.W) > 0.0:
            self.W = min(1.0, 1.0 / (np.sqrt(self.l2) * np.linalg.norm(self.W))) * self.W
        self.n_buffered, self.violations = 0, []
        if self.average == "weighted" or (self.average and self.t >= self.average):
            for iterates, w in zip(self.iterates, self.W, strict=True):
                iterates.append((self.t if self.average == "weighted" else 1.0, w))


class DenseSeparate:
    """A binary machine a class, which begins with the first example of its class."""

    def __init__(self, make):
        self.make, self.machines = make, []

    @property
    def t(self):
        return max((machine.t for machine in self.machines), default=0)

    @property
    def predicting(self):
        return np.array([machine.predicting for machine in self.machines])

    @property
    def largest(self):
        return max((machine.largest for machine in self.machines), default=0.0)

    def is_close_call(self, x, number):
        return any(machine.is_close_call(x) for machine in self.machines)

    def learn(self, x, number, c):
        if number == len(self.machines):
            self.machines.append(self.make())
        for i, machine in enumerate(self.machines):
            machine.learn(x, 1.0 if i == number else -1.0, c)

    def flush(self):
        for machine in self.machines:
            machine.flush()


CHOICES = {
    "batch_size": (1, 3),
    "t0": (0.0, 0.5, 10.0),
    "project": (True, False),
    "intercept": (None, 0.3),
    "class_weight": (None, {"red": 4.0, 7: 0.0}),
    "multi_class": ("crammer_singer", "ovr"),
    "average": (False, 7, "weighted"),
    "counter": ("every", "violations"),
}


def options_of(intercept, **options):
    return {**options, "fit_intercept": intercept is not None, "intercept_scaling": intercept or 1.0}


def against_dense(dense_pegasos, l2, options, examples):
    """Compare a classifier with the dense transcription at each step of a stream of (x, y, w, flush)."""
    model = PegasosClassifier(l2=l2, **options)
    scaling = options["intercept_scaling"] if options["fit_intercept"] else 0.0
    arguments = (len(NAMES) + 1, l2, options["batch_size"], options["t0"], options["project"])
    arguments = (*arguments, options["average"], options["counter"])
    separate = options["multi_class"] == "ovr"
    dense = DenseSeparate(lambda: dense_pegasos(*arguments)) if separate else DenseJoint(*arguments)
    classes, learned = [], 0
    for x, y, w, flush in examples:
        vector = np.array([*(x.get(name, 0.0) for name in NAMES), scaling])
        number = classes.index(y) if y in classes else len(classes)
        if dense.is_close_call(vector, number):
            continue
        error = 1e-10 * dense.largest + 1e-300
        margins_there = dense.predicting @ vector if classes else np.zeros(0)
        expected = pytest.approx(margins_there, rel=1e-9, abs=error * (1e-300 + np.abs(vector).sum()))
        margins = model.decision_function_one(x)
        assert list(margins) == classes == list(model.classes)
        assert np.array(list(margins.values())) == expected
        assert model.decision_function_many([x])[0] == expected
        if classes:
            assert margins[model.predict_one(x)] == max(margins.values())
        else:
            assert model.predict_one(x) is None
        if number == len(classes):
            classes.append(y)
        learned += 1
        model.learn_one(x, y, w=w)
        dense.learn(vector, number, w * (options["class_weight"] or {}).get(y, 1.0))
        if flush:
            model.flush()
            dense.flush()
        assert model.n_iterations == dense.t
        error = 1e-10 * dense.largest + 1e-300
        for label, row in zip(classes, dense.predicting, strict=True):
            assert model.intercept[label] == pytest.approx(row[-1] * scaling, rel=1e-9, abs=error)
            named = model.weights[label]
            assert set(named) <= set(NAMES)
            assert np.array([named.get(name, 0.0) for name in NAMES]) == pytest.approx(row[:-1], rel=1e-9, abs=error)
    return learned


@pytest.mark.parametrize("chosen", pairwise(**CHOICES), ids=str)
def test_any_two_options_together_are_the_dense_algorithm(dense_pegasos, chosen):
    generator = np.random.default_rng(0)
    for l2 in (1e-3, 0.5):
        examples = []
        for i in range(50):
            x = {name: float(generator.normal()) for name in NAMES if generator.random() < 0.5}
            w = float(generator.choice([1.0, 1.0, 0.0, 4.0]))
            y = LABELS[int(generator.integers(min(len(LABELS), 1 + i // 6)))]  # classes come late
            examples.append((x, y, w, generator.random() < 0.15))
        assert against_dense(dense_pegasos, l2, options_of(**chosen), examples) > 25


numbers = st.one_of(st.integers(-3, 3), st.floats(-100, 100, allow_subnormal=False), st.booleans())
examples_of_any_kind = st.tuples(
    st.dictionaries(st.sampled_from(NAMES), numbers, max_size=5),
    st.sampled_from(LABELS),
    st.sampled_from([1.0, 1.0, 0.0, 0.25, 30.0]),
    st.sampled_from([False, False, False, True]),
)


@given(
    l2=st.sampled_from([1e-4, 0.01, 1.0, 50.0]),
    chosen=st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}),
    examples=st.lists(examples_of_any_kind, max_size=20),
)
def test_any_stream_is_learned_as_the_dense_algorithm_does(dense_pegasos, l2, chosen, examples):
    against_dense(dense_pegasos, l2, options_of(**chosen), examples)


AVERAGES = [
    {"average": True},
    {"average": 20, "t0": 5.0},
    {"counter": "violations"},
    {"average": "weighted", "counter": "violations", "fit_intercept": True},
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
    n, d, k, l2 = 60, 2, 3, 0.1
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
    for seed in range(30 if pure else 300):
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


def test_labels_keep_their_type():
    for labels in ((False, True), (0, 1, 2), ("0", 0, "zero"), (10**30, -1, 5), ("\ud800", "\x00", ""), (True, "a")):
        model = PegasosClassifier(multi_class="crammer_singer", l2=0.1)
        for _ in range(20):
            for i, y in enumerate(labels):
                model.learn_one({i: 1.0}, y)
        assert model.classes == labels and list(map(type, model.classes)) == list(map(type, labels))
        found = [model.predict_one({i: 1.0}) for i in range(len(labels))]
        at_once = model.predict_many([{i: 1.0} for i in range(len(labels))]).tolist()
        assert found == at_once == list(labels)
        assert list(map(type, found)) == list(map(type, at_once)) == list(map(type, labels))
    model = PegasosClassifier(multi_class="crammer_singer")
    for given_label in (np.int64(1), 1.0, np.float32(1), 1, True):
        model.learn_one({"x": 1.0}, given_label)
    assert model.classes == (1,) and type(model.classes[0]) is int


def test_before_anything_is_learned():
    for multi_class in ("crammer_singer", "ovr"):
        model = PegasosClassifier(multi_class=multi_class)
        x = {"a": 1.0}
        assert model.predict_one(x) is None
        assert model.predict_proba_one(x) == model.decision_function_one(x) == {}
        assert model.predict_many([x, {}]).tolist() == [None, None]
        assert model.predict_proba_many([x, {}]).shape == (2, 0)
        assert (model.classes, model.weights, model.intercept, model.n_iterations) == ((), {}, {}, 0)
        frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
        assert model.predict_many(frame).to_dict() == {"p": None, "q": None}
        assert model.predict_proba_many(frame).shape == (2, 0)
        model.learn_one(x, "only")
        assert model.predict_one({}) == "only" and model.predict_proba_one(x) == {"only": 2 / 3, None: 1 - 2 / 3}


# --- probabilities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", MODELS)
def test_probabilities_are_a_softmax_of_the_margins_and_agree_with_predictions(which):
    """But for the largest, which is calibrated alone; the others have equal shares of the rest."""
    model = trained(which)
    slope, intercept, slope_of_top = model._learner.calibrated
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


def test_weights_that_are_numbers_of_other_kinds():
    for w in (np.float32(1), np.int64(1), True, 1, decimal.Decimal(1)):
        model, expected = trained("default"), trained("default")
        for y in ("class 1", "class new"):
            model.learn_one({3: 1.0}, y, w)
            expected.learn_one({3: 1.0}, y)
        assert pickle.dumps(model) == pickle.dumps(expected)


@pytest.mark.parametrize(
    "parameters",
    [
        {"multi_class": "ovo"},
        {"l2": 0.0},
        {"l2": math.nan},
        {"batch_size": 0},
        {"t0": -1.0},
        {"intercept_scaling": 0.0},
        {"class_weight": {"a": -1.0}},
    ],
    ids=repr,
)
def test_impossible_parameters_are_refused_by_name(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        PegasosClassifier(**{"multi_class": "crammer_singer", **parameters})


# --- copies and files -------------------------------------------------------------------------------------------------


# --- texts ------------------------------------------------------------------------------------------------------------

TOPICS = {"sport": "goal match team", "money": "bank share market", "weather": "rain sun cloud", "food": "soup bread"}


def texts(n, seed=0):
    generator = np.random.default_rng(seed)
    for i in range(n):
        topic = list(TOPICS)[int(generator.integers(min(4, 1 + i // 5)))]
        words = [*generator.choice(TOPICS[topic].split(), 2), *generator.choice(["the", "a", "of", "é", "now"], 3)]
        yield " ".join(map(str, words)), topic


# --- River ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_in_a_pipeline_it_learns(multi_class):
    model = preprocessing.StandardScaler() | PegasosClassifier(multi_class=multi_class, l2=1e-2, fit_intercept=True)
    assert model._multiclass
    score = evaluate.progressive_val_score(datasets.ImageSegments().take(800), model, metrics.Accuracy())
    assert score.get() > 0.7


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


def test_rivers_one_vs_one_takes_the_text_model():
    model = multiclass.OneVsOneClassifier(TextClassifier())
    for text, y in texts(150):
        model.learn_one(text, y)
    assert len(model.classifiers) == 6
    assert np.mean([model.predict_one(text) == y for text, y in texts(50, seed=5)]) > 0.7


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_topics_are_told_apart(multi_class):
    model = TextClassifier(classifier=PegasosClassifier(multi_class=multi_class, l2=1e-3, t0=1e3))
    model.learn_many(*zip(*texts(200), strict=True))
    X, y = zip(*texts(100, seed=5), strict=True)
    assert np.mean(model.predict_many(X) == np.array(y)) > 0.95


# --- threads ----------------------------------------------------------------------------------------------------------


def in_threads(learn, *readers):
    """Run `learn` in one thread, and until it has done its work each of the readers in one of its own."""
    done, failures = threading.Event(), []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    def again(work):
        while not done.is_set():
            work()

    threads = [threading.Thread(target=guarded, args=[lambda work=work: again(work)]) for work in readers]
    learner = threading.Thread(target=guarded, args=[learn])
    for thread in (learner, *threads):
        thread.start()
    learner.join(120)
    done.set()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in (learner, *threads))
    assert not failures, failures


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_a_reader_sees_whole_steps(multi_class):
    """Two features that always come together have the same weight after each whole step."""
    model = PegasosClassifier(multi_class=multi_class, l2=1e-3, fit_intercept=True)
    n = 3_000
    generator = np.random.default_rng(0)
    data = np.repeat(generator.normal(size=(n, 1)), 2, axis=1)
    indices = np.tile([5, 100_000], n)
    matrix = sparse.csr_matrix((data.ravel(), indices, np.arange(0, 2 * n + 1, 2)), (n, 100_001))
    y = generator.integers(0, 5, n)
    model.learn_many(matrix[:50], y[:50])
    assert len(model.classes) == 5
    seen = []

    def learn():
        for _ in range(20):
            model.learn_many(matrix, y)
            for i in range(50):
                model.learn_one({5: float(i), 100_000: float(i)}, int(y[i]))

    def look():
        weights = model.weights
        for named in weights.values():
            assert named.get(5) == named.get(100_000)
        seen.append(model.n_iterations)

    def predict():
        margins = model.decision_function_many([{5: 1.0}, {100_000: 1.0}])
        assert margins[0].tolist() == margins[1].tolist()
        assert model.predict_one({5: 1.0}) in model.classes
        assert sum(model.predict_proba_one({5: 1.0}).values()) == pytest.approx(1.0)

    in_threads(learn, look, predict, lambda: pickle.loads(pickle.dumps(model)).predict_one({5: 1.0}))
    assert model.n_iterations == 50 + 20 * (n + 50)
    assert seen and seen == sorted(seen)


@pytest.mark.parametrize("multi_class", ["crammer_singer", "ovr"])
def test_classes_that_come_while_others_predict(multi_class):
    model = PegasosClassifier(multi_class=multi_class)

    def learn():
        for i in range(400):
            model.learn_one({i % 7: 1.0}, i)

    def predict():
        x = {3: 1.0}
        model.predict_one(x), model.predict_proba_one(x), model.decision_function_one(x)
        model.predict_proba_many([x]), model.predict_many([x]), model.weights, model.intercept

    in_threads(learn, predict, predict)
    assert model.classes == tuple(range(400))
