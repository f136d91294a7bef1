"""Classifiers of River's, evaluated as they are asked by hand."""

import copy
import math

import pytest
from river import active, dummy, ensemble, evaluate, linear_model, metrics, multiclass, naive_bayes, neighbors, tree
from river.feature_extraction import BagOfWords

from stream_pegasos import TextClassifier, prequential
from stream_pegasos.streams import synthetic

STREAM = list(synthetic(n=200, seed=4))
BOOLS = [(x, y == "spam") for x, y in STREAM]
SEVERAL = [(x, (y == "spam") + 2 * (len(x) > 60)) for x, y in STREAM]


WITHOUT_PROBABILITIES = {"pairs", "codes", "votes", "soft votes"}


def words(x):
    """As numbers, which distances need."""
    return {"length": float(len(x)), "words": float(x.count(" "))}


MODELS = {
    "bayes": (lambda: bayes(), STREAM),
    "bayes, several": (lambda: bayes(), SEVERAL),
    "tree": (lambda: BagOfWords() | tree.HoeffdingTreeClassifier(grace_period=20), STREAM),
    "logistic": (lambda: BagOfWords() | linear_model.LogisticRegression(), BOOLS),
    "the commonest": (dummy.NoChangeClassifier, STREAM),
    "neighbours": (neighbors.KNNClassifier, [(words(x), y) for x, y in SEVERAL]),
    "pairs": (lambda: BagOfWords() | multiclass.OneVsOneClassifier(naive_bayes.MultinomialNB()), SEVERAL),
    "codes": (lambda: BagOfWords() | multiclass.OutputCodeClassifier(naive_bayes.MultinomialNB(), 5, seed=1), SEVERAL),
    "votes": (lambda: ensemble.VotingClassifier([bayes(), TextClassifier()], use_probabilities=False), STREAM),
    "soft votes": (lambda: ensemble.VotingClassifier([bayes(), TextClassifier()]), STREAM),
    "active": (lambda: active.EntropySampler(BagOfWords() | linear_model.LogisticRegression(), seed=3), BOOLS),
    "active step": (lambda: BagOfWords() | active.EntropySampler(linear_model.LogisticRegression(), seed=3), BOOLS),
}


def bayes():
    return BagOfWords() | naive_bayes.MultinomialNB()


def by_hand(model, stream, learn=True, delay=0):
    """How many answers there are, and how many are right."""
    n_answered = n_right = 0
    waiting = []
    for x, y in stream:
        said = model.predict_one(x)
        label, is_asked = said if isinstance(said, tuple) else (said, True)
        label = None if label == {} else label  # as River's active learners say that they do not know
        n_answered += label is not None
        n_right += label == y
        waiting.append((x, y, is_asked))
        if learn and len(waiting) > delay:
            x, y, is_asked = waiting.pop(0)
            if is_asked:
                model.learn_one(x, y)
    return n_answered, n_right


def counted(score):
    return score.n_answered, round(score.accuracy * score.n_answered)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("n_before", [0, 1, 100])
@pytest.mark.parametrize("name", MODELS)
def test_every_answer_counts_whatever_the_model_learned_before(name, n_before, learn):
    make, stream = MODELS[name]
    model = make()
    for x, y in stream[:n_before]:
        model.learn_one(x, y)
    n_answered, n_right = by_hand(copy.deepcopy(model), stream[100:], learn)
    score = prequential(stream[100:], copy.deepcopy(model), learn=learn).score
    if n_answered:
        assert counted(score) == (n_answered, n_right)
        assert math.isnan(score.log_loss) == math.isnan(score.calibration_error) == (name in WITHOUT_PROBABILITIES)
        assert name not in WITHOUT_PROBABILITIES or "nan" in str(prequential(stream[100:], model.clone()))
    if n_answered and learn:
        late = by_hand(copy.deepcopy(model), stream[100:], delay=3)
        assert counted(prequential(stream[100:], copy.deepcopy(model), delay=3, batch=20).score) == late
    compared = prequential(stream[100:], {"a": model, "b": copy.deepcopy(model)}, learn=learn)
    assert (score.n_answered, *compared.pairs[0][2:6]) == (n_answered, 0.0, 0.0, 0, 0)


@pytest.mark.parametrize("delay", [0, 5])
def test_an_active_learner_learns_what_it_asks_for_as_in_rivers_loop(delay):
    make, stream = MODELS["active"]
    seen = []

    def counting(model):
        learn_one = model.classifier.learn_one
        model.classifier.learn_one = lambda x, y: (seen.append(x), learn_one(x, y))
        return model

    score = prequential(stream, counting(make()), delay=delay).score
    ours, seen = seen, []
    metric = evaluate.progressive_val_score(stream, counting(make()), metrics.Accuracy(), delay=delay + bool(delay))
    assert ours == seen and 0 < len(seen) < len(stream)
    assert score.accuracy == pytest.approx(metric.get())


def test_weights_that_a_model_does_not_take_are_named():
    weighted = [(x, y, 2.0 if i == 7 else 0.0 if i == 3 else 1.0) for i, (x, y) in enumerate(STREAM[:20])]
    refused = []
    for delay in (0, 2):
        prequential(weighted, bayes(), delay=delay, on_refused=lambda *each: refused.append(each))
    assert [example for example, _ in refused] == [weighted[7]] * 2
    assert all("got 2.0: MultinomialNB takes no weights" in reason for _, reason in refused)
    logistic = BagOfWords() | linear_model.LogisticRegression()
    reference = logistic.clone()
    prequential([(x, y == "spam", w) for x, y, w in weighted], logistic)
    for x, y, w in weighted:
        if w:
            reference.learn_one(x, y == "spam", w=w)
    assert logistic["LogisticRegression"].weights == reference["LogisticRegression"].weights


def test_answers_that_are_no_label_of_the_stream_are_wrong():
    model = BagOfWords() | naive_bayes.MultinomialNB()
    for x, y in STREAM[:100]:
        model.learn_one(x, y)
    renamed = [(x, f"{y}!") for x, y in STREAM[100:]]
    assert counted(prequential(renamed, copy.deepcopy(model), learn=False).score) == (100, 0)
    assert counted(prequential(renamed, copy.deepcopy(model)).score) == by_hand(model, renamed)
    ours = TextClassifier()
    ours.learn_many(*zip(*STREAM[:100], strict=True))
    assert counted(prequential(renamed, ours, learn=False).score) == (100, 0)
