"""Which predictions are counted."""

import pytest

from stream_pegasos import MultiLabelClassifier, OrdinalClassifier, TextClassifier
from stream_pegasos.evaluation.prequential import prequential


@pytest.mark.parametrize(
    "labels", [("ham", "spam"), (1, 2, 3), (("a",), ("a", "b"), ())], ids=["two", "ordered", "sets"]
)
def test_messages_of_weight_0_are_in_no_metric(labels):
    """Whatever their labels: it is as if they were not there. Their predictions are given all the same."""
    kind, other = {
        2: (lambda: None, "new"),
        "ordered": (OrdinalClassifier, 4),
        "sets": (MultiLabelClassifier, ("c",)),
    }[2 if len(labels) == 2 else "ordered" if labels[0] == 1 else "sets"]
    plain = [(f"word{i % 3} rest{i % 7}", labels[i % len(labels)], 1.0 + i % 2) for i in range(60)]
    idle = [[(f"word{i % 3}", other, 0.0)] * (i % 3) for i in range(60)]
    mixed = [example for others, each in zip(idle, plain, strict=True) for example in (*others, each)]
    results, n_predicted = [], []
    for stream in (plain, mixed):
        models = {name: TextClassifier(classifier=kind()) for name in "ab"}
        blocks = []
        compared = prequential(stream, models, on_predicted=blocks.append)
        late = prequential([*stream, *idle[2] * 9], TextClassifier(classifier=kind()), delay=len(stream)).score
        score = compared["a"].score
        results.append(str((score.n, score.metrics(), compared.pairs, late.n, late.metrics())))
        n_predicted.append(sum(map(len, blocks)))
    assert results[0] == results[1] and n_predicted == [len(plain), len(mixed)]
