"""Thresholds, and limits of false positives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noisy import columns, noisy_stream, prequential
from outcomes import matrix

from stream_pegasos import AdaptiveClassifier, load
from stream_pegasos.evaluation.prequential import prequential as evaluated
from stream_pegasos.learners.decisions import Decision
from stream_pegasos.learners.false_positives import LARGEST_MARGIN, FalsePositiveLimit


@pytest.mark.parametrize("threshold", [0.01, 0.3, 0.5, 0.9])
def test_threshold(threshold):
    X, y = columns(noisy_stream(300))
    model = AdaptiveClassifier(pos_label="spam", threshold=threshold)
    model.learn_many(X, y)
    expected = ["spam" if model.predict_proba_one(x)["spam"] > threshold else "ham" for x in X]
    assert [model.predict_one(x) for x in X] == model.predict_many(X).tolist() == expected
    if threshold == 0.5:
        assert expected == ["spam" if margin > 0.0 else "ham" for margin in model.decision_function_many(X)]


def allowed_by_hand(margins, positive, rate):
    """Whether each margin is surely above the cut, and whether it surely is not, from all those before: the cut is the
    largest negative of which there are as many above as may be, or a little above it.
    """
    for i, margin in enumerate(margins):
        negatives = sorted(m for m, is_positive in zip(margins[:i], positive, strict=False) if not is_positive)
        n = len(negatives)
        if rate * n < 0.05:
            yield False, True
            continue
        cut = negatives[n - 1 - int(0.9 * rate * n)]
        yield margin > cut + max(abs(cut) / 100.0, 2.0**-15), margin <= cut


@given(
    rate=st.floats(0.001, 0.9),
    examples=st.lists(
        st.tuples(st.one_of(st.floats(-3e4, 3e4), st.integers(-3, 3).map(float)), st.booleans()), max_size=100
    ),
)
def test_the_cut_is_a_quantile_of_the_negatives_before(rate, examples):
    margins, positive = [margin for margin, _ in examples], [is_positive for _, is_positive in examples]
    decision, flagged = Decision(0.5, rate), []
    for margin, is_positive in examples:
        flagged.append(bool(decision.allows(margin, 1.0)))
        decision.allows(np.array([margin]), np.ones(1), np.array([not is_positive]))
    for one, (surely, surely_not) in zip(flagged, allowed_by_hand(margins, positive, rate), strict=True):
        assert one or not surely
        assert not (one and surely_not)
    at_once = Decision(0.5, rate)
    is_negative = ~np.array(positive, bool)
    assert at_once.allows(np.array(margins), np.ones(len(margins)), is_negative).tolist() == flagged
    again = Decision(0.5, rate)
    again.limit.set_state(decision.limit.get_state())
    assert again.limit.cut == decision.limit.cut == at_once.limit.cut


@given(
    rate=st.floats(1e-18, 0.9),
    examples=st.lists(
        st.tuples(
            st.one_of(st.floats(-3e4, 3e4), st.integers(-3, 3).map(float)),
            st.sampled_from([0.0, 3e-14, 1e-9, 0.1, 0.7, 1.0, 999.9, 1e3, 1e30]),
            st.sampled_from([1, 1, 60]),
        ),
        max_size=60,
    ),
)
def test_the_cut_is_that_of_the_counts_whatever_the_weights(rate, examples):
    """Moved by each negative or chosen anew, to the last bit, as a model that is loaded chooses it."""
    limit = FalsePositiveLimit(rate)
    for margin, weight, n in examples:
        for _ in range(n):
            limit.learn(margin, weight)
        again = FalsePositiveLimit(rate)
        again.set_state(limit.get_state())
        assert again.cut == limit.cut and again.get_state() == limit.get_state()
        counts = limit.negatives.counts
        above = sum(count for place, count in counts.items() if limit.negatives.edge(place) >= limit.cut)
        assert limit.cut == LARGEST_MARGIN or above <= 0.9 * rate * math.fsum(counts.values())


@pytest.mark.parametrize("rate, scale", [(0.001, 1.0), (0.01, 1e3), (0.2, 1e-3)])
def test_about_as_many_are_flagged_as_may_be(rate, scale):
    """Of margins of any scale; by chance more, but seldom half as many more. The halving of counts changes nothing."""
    n, shares = 20_000, []
    for seed in range(4):
        margins = scale * np.random.default_rng(seed).normal(-2.0, 1.0, n)
        flagged = Decision(0.5, rate).allows(margins, np.ones(n), np.ones(n, bool))
        shares.append(flagged[2_000:].mean())
    assert sum(share > 1.5 * rate for share in shares) <= 1
    assert 0.7 * rate < np.mean(shares) < 1.1 * rate


@pytest.mark.parametrize("seed", range(2))
def test_a_saved_filter_flags(seed, tmp_path):
    """Whenever learning ended, also right after a false alarm."""
    X, y = columns(noisy_stream(1_500, noise=0.005, seed=seed))
    model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01)
    said = prequential(model, X, y)
    alarm = max(i for i in range(1_500) if said[i] == "spam" != y[i])
    model = AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01)
    model.learn_many(X[: alarm + 1], y[: alarm + 1])
    model.save(tmp_path / "m")
    new, truths = columns(noisy_stream(1_000, noise=0.005, seed=9))
    spam = np.array(truths) == "spam"
    flagged = load(tmp_path / "m").predict_many(new) == "spam"
    assert flagged[spam].mean() > 0.9 > 0.02 > flagged[~spam].mean()


def test_a_rate_costs_few_positives():
    """The best constant cut in hindsight is what it is compared with."""
    X, y = columns(noisy_stream(4_000, noise=0.02))
    model = AdaptiveClassifier(max_false_positive_rate=0.05, pos_label="spam")
    margins = AdaptiveClassifier(pos_label="spam").predict_learn_many(X, y).scores
    spam = np.array(y) == "spam"
    cut = np.quantile(margins[~spam], 0.95)
    caught = np.array(prequential(model, X, y))[spam] == "spam"
    assert caught.mean() > 0.9 * (margins[spam] > cut).mean()


def test_both_rules_must_agree():
    X, y = columns(noisy_stream(1_000))
    strict = AdaptiveClassifier(pos_label="spam", threshold=0.999, max_false_positive_rate=0.5)
    strict.learn_many(X, y)
    assert "spam" not in strict.predict_many(X)
    lax = AdaptiveClassifier(pos_label="spam", threshold=0.001, max_false_positive_rate=0.5)
    lax.learn_many(X, y)
    assert "spam" in lax.predict_many(X)


@pytest.mark.parametrize("options", [{"threshold": 0.1}, {"max_false_positive_rate": 0.1}, {}])
@pytest.mark.parametrize("batch", [1, 64])
def test_evaluate_counts_what_was_predicted(options, batch):
    stream = list(noisy_stream(500))
    model, other = (AdaptiveClassifier(pos_label="spam", **options) for _ in range(2))
    predicted = prequential(other, *columns(stream))
    expected = sum(guess == y for guess, (_, y) in zip(predicted, stream, strict=True))
    assert evaluated(stream, model, batch=batch).score.tally.right.sum() == expected


@pytest.mark.parametrize("delay", [0, 3])
def test_no_answer_is_no_alarm(delay):
    stream = [({"lunch": 1}, "ham"), ({"pills": 1}, "spam")] * 20
    score = evaluated(stream, AdaptiveClassifier(pos_label="spam", max_false_positive_rate=0.01), delay=delay).score
    assert score.n == 40 and matrix(score, "ham", "spam")[0] == [20 - 1 - delay // 2, 0]


def test_a_probability_at_the_threshold_is_not_above_it():
    for threshold in (0.25, 0.5):
        assert not Decision(threshold, None).allows(np.array([1.0]), np.array([threshold]))[0]
        assert Decision(threshold, None).allows(np.array([1.0]), np.array([np.nextafter(threshold, 1.0)]))[0]
