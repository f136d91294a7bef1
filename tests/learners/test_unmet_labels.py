"""Labels that options name and that never come."""

import warnings

import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
)


@pytest.mark.parametrize(
    "make, y, unmet",
    [
        (lambda: AdaptiveClassifier(class_weight={"dogs": 5.0, "ham": 2.0, "ads": 0.0}), "ham", ["dogs"]),
        (lambda: AdaptiveClassifier(threshold={"dogs": 0.9, "ham": 0.3}), "ham", ["dogs"]),
        (lambda: AdaptiveClassifier(max_false_positive_rate={"dogs": 0.1, "cats": 0.1}), "ham", ["dogs", "cats"]),
        (lambda: AdaptiveClassifier(pos_label="Spam"), "spam", ["Spam"]),
        (lambda: AdaptiveClassifier(pos_label="true"), True, []),
        (lambda: PegasosClassifier(pos_label="Spam", class_weight={"spam": 2.0}), "spam", ["Spam"]),
        (lambda: PegasosClassifier(class_weight={1: 2.0}), "1", [1]),
        (lambda: KernelPegasosClassifier(pos_label="Spam"), "spam", ["Spam"]),
        (lambda: OrdinalClassifier(AdaptiveClassifier(class_weight={3: 2.0, 9: 2.0})), 3, [9]),
        (lambda: MultiLabelClassifier(AdaptiveClassifier(threshold={"dogs": 0.9, "ham": 0.3})), ["ham"], ["dogs"]),
    ],
)
@pytest.mark.parametrize("size", [1, 300, 1_000])
def test_options_for_labels_that_never_come_are_told_of_once(make, y, unmet, size):
    """After 500 messages, however they are learned; they are then learned as fast as with no such option."""
    model, told = make(), []
    for begin in range(0, 1_200, size):
        n = min(size, 1_200 - begin)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if n == 1:
                model.learn_one({"a": 1.0}, y)
            else:
                model.learn_many([{"a": 1.0}] * n, [y] * n)
        told += [(begin + n, str(warning.message)) for warning in caught if "no message had" in str(warning.message)]
    first = -(-500 // size) * size
    assert [(at, text.partition(" of ")[0]) for at, text in told] == [
        (min(first, 1_200), f"no message had the label {label!r}") for label in unmet
    ]
