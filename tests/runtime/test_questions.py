"""Which messages a teacher is asked about, and how far it is trusted."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_pegasos import TextClassifier
from stream_pegasos.learners.predictions import settled
from stream_pegasos.runtime.questions import DAY, Agreement, Questions
from stream_pegasos.streams import synthetic


def predictions(values):
    """Predictions of two classes with these uncertainties."""
    best = 1.0 - np.asarray(values, float) / 2.0
    labels = np.array(["ham"] * len(best), object)
    return settled(2 * best - 1, labels, (("ham", "spam"), np.column_stack([best, 1.0 - best])), None, ("spam", "ham"))


def streams(seed):
    """Uncertainties that creep, leap and repeat, to mislead a threshold."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.random(rng.integers(1, 900)) ** rng.choice([0.1, 1, 20]) * rng.choice([0, 0.01, 1])
        for _ in range(rng.integers(1, 8))
    ]
    return np.concatenate(parts)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.001, 0.0109, 0.05, 0.29, 1.0]), st.sampled_from([0, 3, 17]))
def test_the_share_is_never_exceeded_over_any_1000_messages(seed, share, people):
    questions, asked = Questions(share, labels=["ham", "spam"]), []
    for i, value in enumerate(streams(seed)):
        if people and i % people == 0:
            asked.append(questions.choose_check())
        else:
            asked += questions.choose(predictions([value]))
    sums = np.concatenate([[0], np.cumsum(asked)])
    over = sums[min(1_000, len(asked)) :] - sums[: len(sums) - min(1_000, len(asked))]
    assert max(over) <= share * 1_000 + 1e-9


SHAPES = {
    "spread": lambda rng, n: rng.random(n) ** 4,
    "sure of all": lambda rng, n: 1e-9 * rng.random(n),
    "unsure of few": lambda rng, n: rng.random(n) * (rng.random(n) < 0.02),
    "all alike": lambda rng, n: np.ones(n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.2, 0.5, 1.0])
def test_the_share_is_met_where_the_stream_goes_on(shape, share):
    values = SHAPES[shape](np.random.default_rng(5), 30_000)
    asked = Questions(share).choose(predictions(values))
    assert 0.98 * share <= np.mean(asked) <= share
    assert np.all(np.convolve(asked, np.ones(5_000), "valid") >= 0.8 * 5_000 * share)


def test_the_most_uncertain_are_asked_about():
    rng = np.random.default_rng(6)
    values = rng.random(20_000)
    asked = np.array(Questions(0.05).choose(predictions(values)))
    assert np.mean(values[asked] > 0.85) > 0.8 and np.any(values[asked] < 0.8)  # and a random tenth


def test_a_day_has_no_more_questions_than_it_may():
    now = [0.0]
    questions = Questions(1.0, 10, clock=lambda: now[0])
    times = []
    for value in np.random.default_rng(3).random(3_000):
        now[0] += 100.0
        times += [now[0]] * questions.choose(predictions([value]))[0]
    assert len(times) > 25 and all(b - a >= DAY for a, b in zip(times, times[10:], strict=False))
    assert questions.n_of_day == sum(now[0] - each < DAY for each in times)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.integers(1, 700), max_size=5))
def test_questions_are_the_same_one_by_one_and_many_and_after_saving(seed, sizes):
    values = streams(seed)
    alone = Questions(0.05)
    expected = [asks for value in values for asks in alone.choose(predictions([value]))]
    questions, found, begin = Questions(0.05), [], 0
    for size in [*sizes, len(values)]:
        found += questions.choose(predictions(values[begin : begin + size])) if begin < len(values) else []
        begin += size
        state = json.loads(json.dumps(questions.get_state()))
        questions = Questions(0.05)
        questions.set_state(state)
    assert found == expected and questions.get_state() == alone.get_state()


ASKED = """
from stream_pegasos import TextClassifier
from stream_pegasos.runtime.questions import Questions
from stream_pegasos.streams import synthetic
model, questions = TextClassifier(), Questions(0.1, labels=["ham", "spam"])
for i, (text, label) in enumerate(synthetic(1500, seed=8)):
    if questions.choose(model.predictions([text]))[0]:
        print(i)
        model.learn_one(text, label)
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_questions_are_the_same_in_both_engines_and_with_threads(threads, monkeypatch):
    monkeypatch.setenv("STREAM_PEGASOS_ENGINE", "pure")
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, encoding="utf-8", check=True)
    model, questions, asked = TextClassifier(), Questions(0.1, labels=["ham", "spam"]), []
    for i, (text, label) in enumerate(synthetic(1500, seed=8)):
        if questions.choose(model.predictions([text], threads=threads))[0]:
            asked.append(i)
            model.learn_one(text, label)
    assert asked == [*map(int, done.stdout.split())] and len(asked) > 100


@pytest.mark.parametrize("kind", ["n", "n_checks", "threshold", "places", "times"])
@pytest.mark.parametrize("value", [None, "1", -1_001, float("nan"), [None]])
def test_what_is_no_state_is_refused(kind, value):
    with pytest.raises((ValueError, TypeError)):
        Questions().set_state({**Questions().get_state(), kind: value})


def test_how_good_a_teacher_is():
    """0.9 before anything is known, as if of 10 messages; then what people say, by class."""
    agreement = Agreement(["a", "b", "c", "d"])
    assert agreement.accuracy("a") == pytest.approx(0.9)
    for _ in range(30):
        agreement.add("a", "b")
    for _ in range(60):
        agreement.add("b", "b")
    mean = (60 + 9) / 100
    assert agreement.accuracy("a") == pytest.approx(10 * mean / 40)
    assert agreement.accuracy("b") == pytest.approx((60 + 10 * mean) / 70)
    assert agreement.weight("a") == 0.0
    assert agreement.weight("b") == pytest.approx((agreement.accuracy("b") - 0.25) / 0.75)
    assert agreement.weight("b", 0.4) == pytest.approx(0.2) and agreement.weight("b", 0.1) == 0.0


@pytest.mark.parametrize("given", [{"share": 0.0}, {"share": 1.1}, {"per_day": 0}, {"per_day": 1.5}])
def test_shares_and_budgets_out_of_range_are_refused(given):
    with pytest.raises((ValueError, TypeError)):
        Questions(**given)
