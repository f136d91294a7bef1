"""Options that no model can have, told by their name."""

import math
from itertools import product

import pytest
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)

NO_WEIGHTS = (-1.0, math.nan, math.inf, None, "1", 1e31)
OF_PEGASOS = [
    *product(["l2"], (0.0, -1.0, math.nan, math.inf, 1e-31, 1e31, None, "1", b"1", [], 1j)),
    *product(["batch_size"], (0, -1, 1.0, 2.5, None, "1", True, math.nan, 1 << 40)),
    *product(["t0"], (-1.0, -1e-300, math.nan, math.inf, None, "0")),
    *product(["intercept_scaling"], (0.0, -1.0, math.nan, math.inf, None, "1")),
    *product(["project", "fit_intercept"], ("no", None, 1, math.nan, [])),
    *product(["class_weight"], ("even", [], [("a", 1.0)], 1.0, {"a"}, *({"a": bad} for bad in NO_WEIGHTS))),
    *product(["class_weight"], ({bad: 1.0} for bad in (None, 0.5, b"a", (1,)))),
    *product(["pos_label"], (0.5, math.nan, b"a", (1,), [])),
    *product(["max_features"], (0, -1, 1.5, "many", True, 1 << 54)),
    ("multi_class", "ovo"),
]
OUT_OF_RANGE = [
    *product(["learning_rate", "smoothing", "intercept_scaling"], (0.0, -1.0, math.nan, math.inf)),
    *product(["threshold", "max_false_positive_rate"], (0.0, 1.0, -0.1, 1.1, math.nan, {"a": 0.0}, {"a": 1.0})),
    *product(["margin"], (-1.0, math.nan)),
    *product(["max_features"], (0, -1, 1 << 54)),
    *[("loss", "squared"), ("half_life", 0.5), ("class_weight", {"spam": -1.0})],
]
OF_ANOTHER_TYPE = [
    *product(["learning_rate", "threshold", "max_false_positive_rate", "half_life"], ("0.5", [0.5])),
    *product(["naive_bayes", "fit_intercept"], (1, "yes")),
    *product(["max_features"], (1.5, "many", True)),
    *product(["drift_detector"], ("ADWIN", drift.ADWIN, PegasosClassifier())),
    *[("class_weight", "even"), ("class_weight", [1.0]), ("threshold", {"a": "x"})],
]
OF_KERNELS = [("l2", 0.0), ("t0", -1.0), ("kernel", "cosine"), ("gamma", math.nan), ("coef0", -1.0), ("degree", 101)]
ONE_BY_ONE = [
    *((PegasosClassifier, (TypeError, ValueError), *each) for each in OF_PEGASOS),
    *((AdaptiveClassifier, ValueError, *each) for each in OUT_OF_RANGE),
    *((AdaptiveClassifier, TypeError, *each) for each in OF_ANOTHER_TYPE),
    *((KernelPegasosClassifier, ValueError, *each) for each in (*OF_KERNELS, ("budget", 0))),
]


@pytest.mark.parametrize("kind, error, name, bad", ONE_BY_ONE, ids=repr)
def test_a_parameter_out_of_its_range_or_of_another_type(kind, error, name, bad):
    with pytest.raises(error, match="label" if name == "pos_label" else f"{name}|label"):
        kind(**{name: bad})


BY_LABEL = {"a": 0.3}
TOGETHER = [
    (lambda: AdaptiveClassifier(threshold=BY_LABEL, max_false_positive_rate=0.1), ValueError, "must be by label"),
    (lambda: AdaptiveClassifier(threshold=0.3, max_false_positive_rate=BY_LABEL), ValueError, "must be by label"),
    *(
        (lambda part=part: MultiLabelClassifier(part), TypeError, "AdaptiveClassifier")
        for part in (PegasosClassifier(), KernelPegasosClassifier(), MultiLabelClassifier(), "adaptive")
    ),
    *(
        (lambda option=option: MultiLabelClassifier(AdaptiveClassifier(**option)), ValueError, "several labels here")
        for option in ({"class_weight": "balanced"}, {"pos_label": "spam"})
    ),
    *(
        (lambda option=option: OrdinalClassifier(AdaptiveClassifier(**option)), ValueError, "does not use")
        for option in ({"threshold": 0.4}, {"max_false_positive_rate": 0.1}, {"pos_label": 1})
    ),
    (lambda: OrdinalClassifier("adaptive"), TypeError, "must be an AdaptiveClassifier"),
    (lambda: OrdinalClassifier(PegasosClassifier()), TypeError, "PegasosClassifier, are in examples/papers/duros"),
    *(
        (lambda parts=parts: TextClassifier(*parts), TypeError, "of this package|over feature dicts")
        for parts in (
            *[(PegasosClassifier(), None), (HashedBagOfWords, None), ("words", None), (None, HashedBagOfWords())],
            *[(None, PegasosClassifier), (None, {"l2": 1.0}), (PegasosClassifier(), HashedBagOfWords())],
        )
    ),
]


@pytest.mark.parametrize("make, error, match", TOGETHER, ids=range(len(TOGETHER)))
def test_what_does_not_go_together(make, error, match):
    with pytest.raises(error, match=match):
        make()
