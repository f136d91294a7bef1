"""Outcomes of two classes, as a test makes them up."""

import numpy as np

from stream_pegasos.evaluation.scores import Outcomes


def of_two(y, margins, probabilities, predicted=None, classes=(False, True)):
    """Given whether each example is positive, its margin and the probability of the positive label; by default that
    label is predicted where the margin is above 0.
    """
    y, margins, probabilities = np.asarray(y, bool), np.asarray(margins, float), np.asarray(probabilities, float)
    truths = [classes[int(positive)] for positive in y]
    said = [classes[int(positive)] for positive in margins > 0] if predicted is None else list(predicted)
    both = np.column_stack([1.0 - probabilities, probabilities])
    outcomes = Outcomes.of(truths, said, classes, both, classes, margins)
    return outcomes._replace(of_truth=np.where(y, probabilities, 1.0 - probabilities))
