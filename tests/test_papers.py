"""What the scripts in examples/papers compute, against values derived another way."""

import gzip
import sys
from collections import Counter, defaultdict
from itertools import combinations

import common
import duros_katzman
import greenquist
import numpy as np
import pytest
import rcv1
import rupnik_2008
import sumukh_2019
import variants
from batch import newton, objective
from greenquist import Problem
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array, random_array
from scipy.spatial.distance import cdist

from stream_pegasos import PegasosClassifier

pytestmark = pytest.mark.heavy

# --- greenquist -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", greenquist.STATEMENTS, ids=lambda statement: statement.value.__name__)
def test_statements_hold(statement):
    assert len(greenquist.try_cases(statement, 200)) >= 200


def test_subgradients_are_gradients_where_the_objective_is_smooth():
    rng = np.random.default_rng(1)
    problem = Problem(rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20), l2=0.3)
    for w in rng.normal(size=(20, 3)):
        assert np.abs(problem.margins(w) - 1.0).min() > 1e-5
        np.testing.assert_allclose(problem.hinge_subgradient(w), approx_fprime(w, problem.hinge), atol=1e-6)
        np.testing.assert_allclose(problem.subgradient(w), approx_fprime(w, problem.objective), atol=1e-6)


def test_wrong_subgradient_is_found_out(monkeypatch):
    def perceptron(problem, w):
        return -((problem.margins(w) < 0.0) * problem.y) @ problem.X / len(problem.y)

    monkeypatch.setattr(Problem, "hinge_subgradient", perceptron)
    for statement in greenquist.STATEMENTS[:4]:
        with pytest.raises(AssertionError):
            greenquist.try_cases(statement, 300)


def test_wrong_step_is_found_out(monkeypatch):
    def gentle(l2, batch_size, project):
        return PegasosClassifier(l2, batch_size, t0=0.5, project=False)

    monkeypatch.setattr(greenquist, "PegasosClassifier", gentle)
    for statement in greenquist.STATEMENTS[3:]:
        with pytest.raises(AssertionError):
            greenquist.try_cases(statement, 100)


# --- sumukh_2019 ------------------------------------------------------------------------------------------------------


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def write_fashion(folder, n_train, n_test):
    """Images of 4 by 4 pixels, of which the one whose number is the label is white on a grey ground."""
    for part, n in (("train", n_train), ("t10k", n_test)):
        labels = np.arange(n) % 10
        images = np.full((n, 16), 51)
        images[np.arange(n), labels] = 255
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images.reshape(n, 4, 4))
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels)


def test_read_fashion(tmp_path):
    write_fashion(tmp_path, 30, 20)
    images = sumukh_2019.read_fashion(tmp_path)
    assert images.X_train.shape == (30, 16)
    assert images.X_test.shape == (20, 16)
    expected = np.full(16, 0.2)
    expected[7] = 1.0
    np.testing.assert_allclose(images.X_test.toarray()[17], expected)
    np.testing.assert_array_equal(images.y_test, np.arange(20) % 10)


def test_fashion_from_files_to_figure(tmp_path, monkeypatch, capsys):
    write_fashion(tmp_path, 200, 50)
    figure = tmp_path / "figure.png"
    command = ["sumukh_2019.py", "--small", "--fashion", tmp_path, "--figure", figure]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    sumukh_2019.main()
    printed = capsys.readouterr().out
    assert "Pegasos, 45 pairs, 5 passes" in printed
    assert "another, easier set" not in printed
    assert figure.is_file()


def test_vote_counts_the_pairs_won():
    rng = np.random.default_rng(2)
    margins = {pair: rng.normal(size=200) for pair in combinations(range(10), 2)}

    class Fixed:
        def __init__(self, pair):
            self.pair = pair

        def decision_function_many(self, X):
            return margins[self.pair]

    predicted = sumukh_2019.vote({pair: Fixed(pair) for pair in margins}, csr_array((200, 1)))
    n_ties = 0
    for i, label in enumerate(predicted):
        votes = Counter(b if margins[a, b][i] > 0.0 else a for a, b in margins)
        best = [c for c in range(10) if votes[c] == max(votes.values())]
        sums = {c: sum(margins[p][i] * (1 if p[1] == c else -1) for p in margins if c in p) for c in best}
        assert label == max(best, key=sums.get)
        n_ties += len(best) > 1
    assert n_ties > 20


# --- duros_katzman ----------------------------------------------------------------------------------------------------


def test_probabilities_are_the_shares_of_labels_seen_with_the_signs():
    rng = np.random.default_rng(3)
    y = rng.choice(5, 200, p=[0.1, 0.2, 0.4, 0.2, 0.1])
    signs = rng.random((200, 4)) < 0.5
    signs[(signs @ [1, 1, 1, 1]) == 4] = False  # all above: never seen in training
    test_signs = np.array(np.meshgrid(*[[False, True]] * 4)).reshape(4, -1).T
    seen = defaultdict(Counter)
    for pattern, label in zip(signs.tolist(), y.tolist(), strict=True):
        seen[tuple(pattern)][label] += 1
    patterns = duros_katzman.Patterns(5)
    for begin in range(0, 200, 70):
        patterns.count(signs[begin : begin + 70], y[begin : begin + 70])
    for pattern, row in zip(test_signs.tolist(), patterns.probabilities(test_signs), strict=True):
        counts = seen.get(tuple(pattern), Counter(y.tolist()))
        assert row == pytest.approx([counts[label] / counts.total() for label in range(5)])


def test_each_two_neighbours_have_a_machine_and_patterns_are_counted_before_phrases_are_learned():
    X, _ = phrases(300)
    y = np.clip(np.round(X @ np.random.default_rng(0).normal(size=30) + 2.0), 0, 4).astype(np.int64)
    model = duros_katzman.NeighbouringPairs(5)
    machines = [PegasosClassifier(pos_label=True) for _ in range(4)]
    counts = defaultdict(Counter)
    for i, label in enumerate(y.tolist()):
        signs = tuple(bool(machine.decision_function_many(X[[i]])[0] > 0.0) for machine in machines)
        counts[signs][label] += 1
        for lower in {label - 1, label} & {0, 1, 2, 3}:
            machines[lower].learn_many(X[[i]], [label == lower + 1])
        model.learn_many(X[[i]], y[[i]])
    probabilities, labels = model.predict_proba_many(X), model.predict_many(X)
    of_machines = np.column_stack([machine.decision_function_many(X) for machine in machines]) > 0.0
    for signs, row, label in zip(of_machines.tolist(), probabilities, labels.tolist(), strict=True):
        seen = counts.get(tuple(signs), Counter(y.tolist()))
        assert row == pytest.approx([seen[label] / seen.total() for label in range(5)])
        assert seen[label] == max(seen.values())
    assert len(counts) > 4


def phrases(n, seed=0):
    """Bags of words and signs that no plane separates."""
    rng = np.random.default_rng(seed)
    X = random_array((n, 30), density=0.2, format="csr", rng=rng)
    return csr_array(X), np.where(X @ rng.normal(size=30) + 0.3 * rng.normal(size=n) > 0.0, 1, -1)


def test_descent_goes_along_the_gradient():
    X, y = phrases(50)

    def squared_hinge(w):
        return np.mean(np.maximum(0.0, 1.0 - y * (X @ w)) ** 2)

    w = np.zeros(30)
    for _ in range(3):
        w -= 0.5 * approx_fprime(w, squared_hinge)
    scores = duros_katzman.descend(X, y, 0.5, 3)(csr_array(np.eye(30)))
    np.testing.assert_allclose(scores, w, atol=1e-5)


def test_steps_on_single_examples_are_those_of_the_package():
    X, y = phrases(40)
    model = PegasosClassifier(l2=0.01, pos_label=1)
    rows = np.concatenate([rng.integers(40, size=1) for rng in [np.random.default_rng(0)] for _ in range(200)])
    model.learn_many(X[rows], y[rows])
    scores = duros_katzman.learn_by_pegasos(X, y, 0.01, 1, 200)(X)
    np.testing.assert_allclose(scores, model.decision_function_many(X), rtol=1e-9)


def test_step_divides_by_the_number_of_violators():
    # Both copies of the one example violate nothing after a step, so that w only shrinks.
    X, y = csr_array([[2.0]]), np.array([1])
    for n_steps, expected in ((1, 10.0), (4, 2.5)):
        assert duros_katzman.learn_by_pegasos(X, y, 0.01, 1, n_steps)(X)[0] / 2.0 == pytest.approx(expected)
    # 100 draws of two opposite examples at w = 0 all violate, and w is their mean, not longer than 1/√λ = 10.
    X, y = csr_array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, -1])
    drawn = np.random.default_rng(0).integers(2, size=100)
    w = np.array([np.mean(drawn == 0), -np.mean(drawn == 1)]) / 0.5
    w *= min(1.0, 1.0 / (np.sqrt(0.5) * np.linalg.norm(w)))
    np.testing.assert_allclose(duros_katzman.learn_by_pegasos(X, y, 0.5, 100, 1)(csr_array(np.eye(2))), w)


def test_newton_by_halves_finds_the_optimum_of_a_machine_with_an_rbf_kernel():
    X, y = phrases(1_100)
    dense = X.toarray()
    K = np.exp(-0.1 * cdist(dense, dense, "sqeuclidean"))
    np.testing.assert_allclose(duros_katzman.rbf(X, X[:7], 0.1), K[:, :7])
    whole = newton(K, y, 2.0 / 1_100, kernel="precomputed", tol=1e-12)
    np.testing.assert_allclose(duros_katzman.learn_by_newton(X, y, 0.1, 1.0)(X), K @ whole.x, atol=1e-3)


# --- rcv1 -------------------------------------------------------------------------------------------------------------


def test_synthetic_rows_are_like_those_of_rcv1():
    problem = rcv1.Problem(*common.synthetic_rcv1(3_000, 500, 1_000, 50))
    assert problem.X.shape == (3_000, 1_000) and problem.X_test.shape == (500, 1_000)
    np.testing.assert_allclose(problem.X.power(2).sum(axis=1), 1.0)
    assert np.mean(problem.y == 1) == pytest.approx(0.474, abs=0.05) and set(problem.y_test) == {-1, 1}
    # A word of rank r is as frequent as 1 / (r + 20): half of all words come before 20 (√51 − 1).
    tokens = np.bincount(problem.X.indices, minlength=1_000)
    assert tokens[: round(20 * (51**0.5 - 1))].sum() / tokens.sum() == pytest.approx(0.5, abs=0.07)
    # The noise leaves neither chance nor certainty.
    assert 0.0 < min(point.error for point in rcv1.online(problem, 10).points) < 0.2


def test_perceptron_learns_from_its_mistakes_alone():
    X, y = phrases(200)
    w, intercept = np.zeros(30), 0.0
    for x, sign in zip(X.toarray(), y, strict=True):
        if sign * (w @ x + intercept) <= 0.0:
            w, intercept = w + sign * x, intercept + sign
    point = rcv1.perceptron(rcv1.Problem(X, y, X, y)).points[-1]
    assert point.error == np.mean(np.where(X @ w + intercept > 0.0, 1, -1) != y)


@pytest.mark.parametrize(("way", "value_of"), [("ovr", rcv1.against_all), ("crammer_singer", rcv1.jointly)])
def test_objectives_of_several_classes_by_the_margins_of_each_example(way, value_of):
    X, _ = phrases(100)
    y = np.concatenate([[0, 1, 2], np.random.default_rng(0).integers(3, size=97)])
    model = PegasosClassifier(l2=rcv1.L2, multi_class=way)
    model.learn_many(X, y)
    W = np.array([rcv1.dense(model.weights[label], 30) for label in range(3)])
    losses = []
    for row, own in zip(X.toarray(), y, strict=True):
        margins = W @ row
        rest = np.delete(margins, own)
        if way == "crammer_singer":
            losses.append(max(0.0, 1.0 + rest.max() - margins[own]))
        else:
            losses.append(max(0.0, 1.0 - margins[own]) + np.maximum(0.0, 1.0 + rest).sum())
    assert value_of(W, X, y) == pytest.approx(rcv1.L2 / 2.0 * (W**2).sum() + np.mean(losses))


def test_clock_stands_still_while_a_point_is_evaluated(monkeypatch):
    monkeypatch.setattr(rcv1, "perf_counter", iter([10.0, 12.0, 15.0, 16.0, 20.0]).__next__)
    X, y = csr_array([[1.0], [2.0]]), np.array([1, -1])
    trace = rcv1.Trace(rcv1.Problem(X, y, X, y))
    trace.add(np.array([0.5]))
    trace.add(np.array([-0.5]))
    # The margins are 0.5 and −1, then −0.5 and 1.
    expected = [(2.0, rcv1.L2 / 8 + (0.5 + 2.0) / 2, 0.5), (3.0, rcv1.L2 / 8 + 1.5 / 2, 0.5)]
    assert [tuple(point) for point in trace.points] == [pytest.approx(point) for point in expected]


# --- rupnik_2008 ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy_problem():
    """No plane separates its rows."""
    rng = np.random.default_rng(0)
    X = csr_array(0.1 * rng.normal(size=(300, 5)))
    y = np.where(X @ rng.normal(size=5) + 0.1 * rng.normal(size=300) > 0.0, 1, -1)
    return rupnik_2008.make_problem("noisy", X[:200], y[:200], X[200:], y[200:])


def test_variants_without_a_variant_are_the_package(noisy_problem):
    for k in (1, 5):
        ours, dense = (
            rupnik_2008.train(noisy_problem, [1, 7, 1_000], 0, model)
            for model in (rupnik_2008.pegasos(k), rupnik_2008.counting(noisy_problem, k, "every"))
        )
        assert [point.objective for point in dense] == pytest.approx([point.objective for point in ours])
        assert [point.counted for point in dense] == [point.counted for point in ours] == [1, 7, 1_000]


def test_the_first_w_only_decides_who_violates_first(noisy_problem):
    firsts = [variants.random_first_w(5, rupnik_2008.L2, seed) for seed in range(3)]
    assert [np.linalg.norm(w) for w in firsts] == pytest.approx([100.0] * 3) and firsts[0] @ firsts[1] < 9e3
    runs = [rupnik_2008.train(noisy_problem, [1, 1_000], 0, dense_from(w)) for w in firsts]
    assert rupnik_2008.spread(runs, 1_000) < 0.01 < rupnik_2008.spread(runs, 1)
    rows = np.random.default_rng(0).integers(200, size=5)
    X, y = noisy_problem.X.toarray()[rows], noisy_problem.y[rows]
    for w in firsts:  # nothing is left of it after the first step
        model = dense_from(w)
        model.learn_many(noisy_problem.X[rows], y)
        step = X.T @ (y * (y * (X @ w) < 1.0)) / (5 * rupnik_2008.L2)
        assert model.w == pytest.approx(step * min(1.0, 100.0 / max(1e-300, np.linalg.norm(step))))


def dense_from(w):
    return variants.DensePegasos(w, rupnik_2008.L2, 5)


def test_counting_violations_only_solves_the_problem_with_less_of_l2(noisy_problem):
    rows = np.random.default_rng(0).integers(200, size=100_000)
    X, y = noisy_problem.X[rows], noisy_problem.y[rows]
    shares, gaps = [], []
    for counter in ("every", "violations"):
        model, total = rupnik_2008.counting(noisy_problem, 1, counter), np.zeros(5)
        for i in range(len(y)):
            before = model.n_iterations
            model.step(X.indptr[i : i + 2], X.indices, X.data, y[i : i + 1])
            total += (model.n_iterations - before) * model.n_iterations * model.w  # the average weighted by t
        w = total / (model.n_iterations * (model.n_iterations + 1) / 2)
        shares.append(model.n_iterations / 100_000)
        value = objective(w, noisy_problem.X, noisy_problem.y, rupnik_2008.L2)
        gaps.append(value / noisy_problem.least - 1.0)
    assert shares[0] == 1.0
    assert rupnik_2008.batch_gap(noisy_problem, 1.0) == "0.00%"
    expected = float(rupnik_2008.batch_gap(noisy_problem, shares[1]).rstrip("%")) / 100
    assert 0.0 <= gaps[0] < 0.1 * expected
    assert gaps[1] == pytest.approx(expected, rel=0.2)


def test_w_is_left_alone_by_draws_without_violation(noisy_problem):
    X, y, rng, w = noisy_problem.X.toarray(), noisy_problem.y, np.random.default_rng(3), np.zeros(5)
    for t in range(1, 501):
        row = rng.integers(len(y))
        if y[row] * (w @ X[row]) < 1.0:
            w = (1.0 - 1.0 / t) * w + y[row] * X[row] / (rupnik_2008.L2 * t)
            w *= min(1.0, 1.0 / (rupnik_2008.L2**0.5 * np.linalg.norm(w)))
    _, last = rupnik_2008.train(noisy_problem, [10, 500], 3, rupnik_2008.counting(noisy_problem, 1, "w waits"))
    assert last.objective == pytest.approx(objective(w, noisy_problem.X, y, rupnik_2008.L2)) and last.counted == 500


def test_first_within_a_gap_is_that_of_the_middle_run():
    def run(*gaps):
        return [rupnik_2008.Point(10**i, 0.5 * i, 0, 0.0, gap, 0.0) for i, gap in enumerate(gaps)]

    runs = [run(0.5, 0.1, 0.01, 0.02), run(0.5, 0.3, 0.2, 0.1), run(0.5, 0.4, 0.05, 0.01)]
    assert rupnik_2008.first_within(0.1, runs, "steps") == 100
    assert rupnik_2008.first_within(0.1, runs, "seconds") == 1.0
    assert rupnik_2008.reached(rupnik_2008.first_within(0.001, runs, "steps"), ",.0f") == "not reached"
