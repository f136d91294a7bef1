"""How unsure a model is of messages, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import predictions

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, TextClassifier
from stream_pegasos.learners.predictions import settled, uncertainty


@given(st.lists(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3), min_size=1, max_size=5))
def test_uncertainty_is_what_the_best_two_leave(rows):
    rows = [[value / sum(row) for value in row] for row in rows]
    expected = [1.0 - (sorted(row)[-1] - sorted(row)[-2]) for row in rows]
    assert uncertainty(predictions(rows, ("a", "b", "c"))).tolist() == pytest.approx(expected)


def test_uncertainty_of_labels_that_hold_together_is_that_of_the_least_sure():
    said = predictions([[0.9, 0.45], [0.01, 0.98]], ("a", "b"), labels=[0, 0])
    labels = np.empty(2, object)
    labels[:] = [("a",), ("b",)]
    said = settled(said.scores, labels, (said.classes, said.probabilities))
    assert uncertainty(said).tolist() == pytest.approx([0.9, 0.04])


@pytest.mark.parametrize("classifier", [None, OrdinalClassifier(AdaptiveClassifier()), MultiLabelClassifier()])
def test_who_knows_nothing_is_unsure_of_everything(classifier):
    assert uncertainty(TextClassifier(classifier=classifier).predictions(["a", "b"])).tolist() == [1.0, 1.0]
