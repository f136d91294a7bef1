"""Outcomes of one label an example, and predictions, as a test makes them up."""

from collections import namedtuple

import numpy as np

from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.evaluation.scores import Outcomes
from stream_pegasos.learners.predictions import settled

Prediction = namedtuple("Prediction", "label probability margin")


def of_classes(truths, predicted, probabilities):
    """Given what is predicted of each example, and one probability for what came true and for what is predicted."""
    probabilities = np.asarray(probabilities, float)
    return Outcomes(list(truths), list(predicted), probabilities, probabilities)


def of_two(y, margins, probabilities, predicted=None, classes=(False, True)):
    """Given whether each example is positive, its margin and the probability of the positive label; by default that
    label is predicted where the margin is above 0.
    """
    y, margins, probabilities = np.asarray(y, bool), np.asarray(margins, float), np.asarray(probabilities, float)
    truths = [classes[int(positive)] for positive in y]
    said = [classes[int(positive)] for positive in margins > 0] if predicted is None else list(predicted)
    columns = [label is None or label == classes[1] for label in said]
    of_predicted = np.where(columns, probabilities, 1.0 - probabilities)
    return Outcomes(truths, said, np.where(y, probabilities, 1.0 - probabilities), of_predicted, classes, margins)


def matrix(score, *classes):
    """How often each class, a row, was predicted as each, a column."""
    found = {(truth, label): count for truth, label, count in score.tally.confused()}
    found |= {(label, label): score.tally.row(label)[2] for label in classes}
    return [[found.get((truth, label), 0) for label in classes] for truth in classes]


def predictions_of(model, X):
    """The prediction for each example."""
    return [Prediction(*said) for said in predict_block(model, X, []).each()]


def predictions(rows, classes, labels=None):
    """What a model says that gives each example these probabilities."""
    rows = np.array(rows, float)
    labels = np.array(labels if labels is not None else ["?"] * len(rows), object)
    return settled(rows, labels, (classes, rows))
