"""Classifiers of River's, evaluated as they are asked by hand."""

import copy

import pytest
from river import dummy, linear_model, naive_bayes, neighbors, tree
from river.feature_extraction import BagOfWords

from stream_pegasos import TextClassifier, prequential
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=300, seed=4))
BOOLS = [(x, y == "spam") for x, y in STREAM]
SEVERAL = [(x, (y == "spam") + 2 * (len(x) > 60)) for x, y in STREAM]


def words(x):
    """As numbers, which distances need."""
    return {"length": float(len(x)), "words": float(x.count(" "))}


MODELS = {
    "bayes": (lambda: BagOfWords() | naive_bayes.MultinomialNB(), STREAM),
    "bayes, several": (lambda: BagOfWords() | naive_bayes.MultinomialNB(), SEVERAL),
    "tree": (lambda: BagOfWords() | tree.HoeffdingTreeClassifier(grace_period=20), STREAM),
    "logistic": (lambda: BagOfWords() | linear_model.LogisticRegression(), BOOLS),
    "the commonest": (dummy.NoChangeClassifier, STREAM),
    "neighbours": (neighbors.KNNClassifier, [(words(x), y) for x, y in SEVERAL]),
    "another bayes": (lambda: BagOfWords() | naive_bayes.ComplementNB(), STREAM),
}


def by_hand(model, stream, learn=True):
    """How many answers there are, and how many are right."""
    n_answered = n_right = 0
    for x, y in stream:
        label = model.predict_one(x)
        n_answered += label is not None
        n_right += label == y
        if learn:
            model.learn_one(x, y)
    return n_answered, n_right


def counted(score):
    return score.n_answered, round(score.accuracy * score.n_answered)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("n_before", [0, 1, 150])
@pytest.mark.parametrize("name", MODELS)
def test_every_answer_counts_whatever_the_model_learned_before(name, n_before, learn):
    make, stream = MODELS[name]
    model = make()
    for x, y in stream[:n_before]:
        model.learn_one(x, y)
    n_answered, n_right = by_hand(copy.deepcopy(model), stream[150:], learn)
    score = prequential(stream[150:], copy.deepcopy(model), learn=learn).score
    if n_answered:
        assert counted(score) == (n_answered, n_right)
    compared = prequential(stream[150:], {"a": model, "b": copy.deepcopy(model)}, learn=learn)
    assert (score.n_answered, *compared.pairs[0][2:6]) == (n_answered, 0.0, 0.0, 0, 0)


def test_answers_that_are_no_label_of_the_stream_are_wrong():
    model = BagOfWords() | naive_bayes.MultinomialNB()
    for x, y in STREAM[:100]:
        model.learn_one(x, y)
    renamed = [(x, f"{y}!") for x, y in STREAM[100:]]
    assert counted(prequential(renamed, copy.deepcopy(model), learn=False).score) == (200, 0)
    assert counted(prequential(renamed, copy.deepcopy(model)).score) == by_hand(model, renamed)
    ours = TextClassifier()
    ours.learn_many(*zip(*STREAM[:100], strict=True))
    assert counted(prequential(renamed, ours, learn=False).score) == (200, 0)
