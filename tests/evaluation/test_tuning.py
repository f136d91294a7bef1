"""Tuning: who is dropped when, who wins, and that features made once are those that each would make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)
from stream_pegasos.evaluation.plot import draw_tuning
from stream_pegasos.evaluation.prequential import ExampleError
from stream_pegasos.evaluation.tuning import Candidate, Tuning, tune
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=1_200, seed=3))


def models(n):
    return {str(i): TextClassifier(classifier=AdaptiveClassifier(learning_rate=0.1 + 0.1 * i)) for i in range(n)}


@pytest.mark.parametrize(
    ("make", "y"),
    [
        (AdaptiveClassifier, lambda label, i: label),
        (lambda: PegasosClassifier(t0=100), lambda label, i: label),
        (OrdinalClassifier, lambda label, i: i % 3),
        (MultiLabelClassifier, lambda label, i: ("a", label)[i % 2 :]),
    ],
)
def test_costs_are_those_of_each_model_alone(make, y):
    """With features that the second and the third share; the first learns from texts."""
    stream = [(text, y(label, i), 1.0 + i % 2) for i, (text, label) in enumerate(STREAM[:700])]
    tuning = tune({name: TextClassifier(classifier=make()) for name in "abc"}, stream, first_rung=10_000)
    alone, cost = TextClassifier(classifier=make()), []
    for text, truth, w in stream:
        said = alone.predict_one(text)
        if isinstance(truth, tuple):
            cost.append(len({label for label, holds in said.items() if holds} ^ set(truth)))
        elif isinstance(truth, int):
            cost.append(1 if said is None or said is False else abs(said - truth))
        else:
            cost.append(said != truth)
        alone.learn_one(text, truth, w)
    for each in tuning.candidates:
        got = np.concatenate(each.costs)
        assert len(got) == 700 and each.n == 700
        # Before the second label there are several ways to know nothing.
        np.testing.assert_array_equal(got[10:], np.array(cost, float)[10:])
        assert each.model.n_learned == 700
        found = [model.predictions(["free prize", "lunch"]).probabilities for model in (each.model, alone)]
        np.testing.assert_allclose(*found, atol=1e-9)


def test_the_worse_half_is_dropped_whenever_messages_have_doubled():
    left = {}

    def note(tuning):
        left[tuning.n] = sum(not each.is_dropped for each in tuning.candidates)

    tuning = tune(models(9), STREAM, first_rung=100, on_chunk=note)
    assert sorted(each.n for each in tuning.candidates) == [100] * 4 + [200] * 2 + [400] + [1_200] * 2
    assert tuning.candidates[0].n == 1_200 and not tuning.candidates[0].is_dropped
    assert all(each.model.n_learned == each.n for each in tuning.candidates)
    assert [each.n for each in tuning.ranking] == sorted((each.n for each in tuning.candidates), reverse=True)
    assert left[1_200] == 2


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=4, max_size=60))
def test_the_first_stays_unless_another_is_better_by_three_standard_errors(costs):
    first, other = (np.array(column, float) for column in zip(*costs, strict=True))
    tuning = Tuning([Candidate("first", None, [first]), Candidate("other", None, [other[:3], other[3:]])])
    newer = slice(len(costs) // 2, None)
    saved = first[newer] - other[newer]
    is_better = saved.mean() > 3 * np.std(saved, ddof=1) / len(saved) ** 0.5
    assert tuning.best.name == ("other" if is_better else "first")


def test_what_is_much_better_wins():
    tuning = tune(
        {"poor": TextClassifier(HashedBagOfWords(n_features=2)), **models(3)},
        STREAM,
        first_rung=100,
    )
    assert tuning.best.name in "012"
    assert tuning.best.model.predict_one(STREAM[0][0]) == STREAM[0][1]
    (line,) = [line for line in draw_tuning(tuning, "stream").axes[0].lines if line.get_label() == tuning.best.name]
    saved = np.concatenate(tuning.candidates[0].costs) - np.concatenate(tuning.best.costs)
    assert line.get_ydata()[-1] == saved.sum() > 0


def test_what_the_first_model_refuses_no_other_learns():
    refused = []
    stream = [*STREAM[:150], ("text", ["a", "list"]), *STREAM[150:300]]
    tuning = tune(models(4), stream, first_rung=100, on_refused=lambda example, reason: refused.append(example))
    assert [example[1] for example in refused] == [["a", "list"]]
    assert tuning.n == 300
    assert {each.model.n_learned for each in tuning.candidates} == {100, 200, 300}
    with pytest.raises(ExampleError):
        tune(models(2), stream)


def test_ctrl_c_ends_it_with_what_is_found_by_then():
    def interrupted():
        yield from STREAM[:150]
        raise KeyboardInterrupt

    tuning = tune(models(2), interrupted())
    assert [each.model.n_learned for each in tuning.candidates] == [tuning.n] * 2 == [150] * 2
    assert tuning.interrupted


def test_a_chunk_that_only_some_have_learned_does_not_count(monkeypatch):
    last = TextClassifier()
    learn = last.predict_learn_many

    def interrupted(X, y, w):
        if last.n_learned:
            raise KeyboardInterrupt
        return learn(X, y, w)

    monkeypatch.setattr(last, "predict_learn_many", interrupted)
    tuning = tune({"first": TextClassifier(HashedBagOfWords()), "last": last}, STREAM)
    assert tuning.interrupted
    assert {each.n for each in tuning.candidates} == {tuning.n} == {512}


def test_features_with_other_functions_are_others():
    """Two closures of one factory, whose names are the same."""

    def made(is_empty):
        return lambda text: "" if is_empty else text.lower()

    features = [HashedBagOfWords(preprocessor=made(is_empty)) for is_empty in (True, False, False)]
    tuning = tune({str(i): TextClassifier(each) for i, each in enumerate([TextFeatures(), *features])}, STREAM)
    accuracy = [1.0 - np.mean(np.concatenate(each.costs)) for each in tuning.candidates]
    assert accuracy[1] < 0.8 < 0.9 < accuracy[2] == accuracy[3]


def test_a_model_that_refuses_what_the_first_has_learned_is_named():
    with pytest.raises(ValueError, match="stars refuses what texts has learned"):
        tune({"texts": TextClassifier(), "stars": TextClassifier(classifier=OrdinalClassifier())}, STREAM)


@pytest.mark.parametrize(("models", "first_rung", "word"), [({}, 10, "no model"), (models(1), 1, "first_rung")])
def test_bad_parameters(models, first_rung, word):
    with pytest.raises(ValueError, match=word):
        tune(models, STREAM, first_rung=first_rung)
