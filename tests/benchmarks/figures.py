"""How good answers are."""

from typing import Any

import numpy as np
from corpora import Bools, Corpus, Floats
from sklearn.metrics import f1_score, log_loss, roc_auc_score

HEADS = {
    "two classes": ["accuracy", "100 (1 - AUC)", "log loss", "calibration error"],
    "classes": ["accuracy", "macro F1", "log loss", "calibration error"],
    "ordered": ["accuracy", "absolute error", "macro F1", "log loss", "calibration error"],
    "labels": ["micro F1", "macro F1", "log loss", "calibration error"],
}


def share_right(predicted: Any, truths: Any) -> float:
    return float(np.mean([label == truth for label, truth in zip(predicted, truths, strict=True)]))


def ranking_error(truths: Any, scores: Any) -> float:
    """100 (1 - AUC): of a hundred pairs of a positive and a negative message, those in the wrong order."""
    return 100.0 * (1.0 - float(roc_auc_score(truths, scores)))


def loss_of(truths: Any, probabilities: Floats) -> float:
    return float(log_loss(truths, np.clip(probabilities, 1e-6, 1.0 - 1e-6)))


def expected_calibration_error(probabilities: Floats, labels: Any, n_bins: int = 10) -> float:
    """Mean over the messages of |mean probability - share of positives| in a message's bin; bins of equal width.

    Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015.
    """
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    return float(np.abs(np.bincount(bins, weights=probabilities - labels)).sum() / len(labels))


def absolute_error(predicted: list[Any], truths: list[Any]) -> float:
    """Of the messages that had an answer."""
    known = [(label, truth) for label, truth in zip(predicted, truths, strict=True) if label is not None]
    return float(np.mean([abs(label - truth) for label, truth in known]))


def held(labels: list[Any], of: list[Any]) -> Bools:
    """Which labels hold, a column for each."""
    places = {label: place for place, label in enumerate(of)}
    holds = np.zeros((len(labels), len(of)), bool)
    for row, each in enumerate(labels):
        holds[row, [places[label] for label in each]] = True
    return holds


def score(predicted: list[Any], corpus: Corpus) -> float:
    """The one figure that says most of labels of this kind."""
    if corpus.kind == "ordered":
        return absolute_error(predicted, corpus.labels)
    if corpus.kind == "labels":
        of = corpus.met
        return float(f1_score(held(corpus.labels, of), held(predicted, of), average="micro", zero_division=0.0))
    return share_right(predicted, corpus.labels)


def figures_of(
    corpus: Corpus, predicted: list[Any], given: Floats | None, margins: Floats | None
) -> list[float | None]:
    """Those that `HEADS` names; `given` are the probabilities, a column for each label that the corpus has."""
    if corpus.kind == "two classes":
        truths = np.array(corpus.labels)
        found = [share_right(predicted, corpus.labels), ranking_error(truths, margins)]
        if given is None:
            return [*found, None, None]
        return [*found, loss_of(truths, given[:, 1]), expected_calibration_error(given[:, 1], truths)]
    return (figures_of_labels if corpus.kind == "labels" else figures_of_classes)(corpus, predicted, given)


def figures_of_classes(corpus: Corpus, labels: list[Any], given: Floats | None) -> list[float | None]:
    """Log loss and the calibration of the label predicted are about what a model could know: a label that no message
    had before has the probability 1/(K + 1) beside K that were met, and the first one 1/2.
    """
    numbers = {label: number for number, label in enumerate(corpus.met)}
    truths = np.array([numbers[label] for label in corpus.labels])
    predicted = np.array([numbers.get(label, -1) for label in labels])
    right = truths == predicted
    found: list[float | None] = [float(right.mean())]
    if corpus.kind == "ordered":
        found.append(absolute_error(labels, corpus.labels))
    found.append(f1_score(truths, predicted, labels=list(range(len(numbers))), average="macro", zero_division=0.0))
    if given is None:
        return [*found, None, None]
    rows = np.arange(len(truths))
    n_met = np.maximum.accumulate(truths) + 1  # since they are numbered as they come
    is_new = np.append(True, truths[1:] >= n_met[:-1])
    of_truth = np.where(is_new, 1.0 / np.maximum(n_met, 2), given[rows, truths])
    said = predicted >= 0
    found.append(-float(np.log(np.clip(of_truth, 1e-6, 1.0)).mean()))
    return [*found, expected_calibration_error(given[rows, predicted][said], right[said])]


def figures_of_labels(corpus: Corpus, labels: list[Any], given: Floats | None) -> list[float | None]:
    """Log loss is about each label that was known, and 1/2 for one that was not and holds; the calibration about those
    that were predicted to hold.
    """
    truths, predicted = held(corpus.labels, corpus.met), held(labels, corpus.met)
    found: list[float | None] = [
        f1_score(truths, predicted, average=average, zero_division=0.0) for average in ("micro", "macro")
    ]
    if given is None:
        return [*found, None, None]
    of_truth = np.where(truths, np.where(given > 0.0, given, 0.5), 1.0 - given)
    counted = truths | (given > 0.0)
    found.append(-float(np.log(np.clip(of_truth[counted], 1e-6, 1.0)).mean()))
    return [*found, expected_calibration_error(given[predicted], truths[predicted])]
