"""scikit-learn's own checks of estimators."""

import pytest

estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="scikit-learn is not installed")

from stream_pegasos import KernelPegasosClassifier, OrdinalClassifier, PegasosClassifier  # noqa: E402
from stream_pegasos.sklearn import OnlineClassifier, OnlineTextClassifier, TextVectorizer  # noqa: E402

ONE_STEP = (
    "an online learner takes one step on a row of weight 2, and two steps, the second from where the first led, on a "
    "row that comes twice; a row of weight 0 is as if it were not there, but shuffling then draws another order"
)
NO_WAY_TO_ONE_CLASS = (
    "on points around the origin, classes that overlap must all be predicted to be the heavy one, which needs a large "
    "intercept: Pegasos as published has none, and the adaptive classifier regularises its own, as texts want it"
)
NO_NEIGHBOURS = (
    "points lie so far apart that the default kernel is almost 0 between any two of them; with gamma=0.001 all are "
    "predicted to be the heavy class"
)
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": ONE_STEP,
    "check_sample_weight_equivalence_on_sparse_data": ONE_STEP,
    "check_class_weight_classifiers": NO_WAY_TO_ONE_CLASS,
}
OF_KERNELS = {**EXPECTED_TO_FAIL, "check_class_weight_classifiers": NO_NEIGHBOURS}
OF_ORDERED = {
    **EXPECTED_TO_FAIL,
    "check_class_weight_classifiers": "an ordinal classifier has thresholds, not a weight for each class",
    "check_classifiers_classes": "the labels are strings, which have no order; an ordinal classifier takes integers",
    "check_classifiers_train": (
        "the three classes stand in a triangle, not in an order; and the label predicted is the median, which need not "
        "be the most probable one"
    ),
}
MATRICES = [
    OnlineClassifier(),
    OnlineClassifier(PegasosClassifier(multi_class="crammer_singer")),
    OnlineClassifier(KernelPegasosClassifier()),
    OnlineClassifier(OrdinalClassifier()),
]


def expected_to_fail(estimator):
    of_classifiers = {KernelPegasosClassifier: OF_KERNELS, OrdinalClassifier: OF_ORDERED}
    return of_classifiers.get(type(estimator.classifier), EXPECTED_TO_FAIL)


@estimator_checks.parametrize_with_checks(MATRICES, expected_failed_checks=expected_to_fail)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")  # array API: only with SCIPY_ARRAY_API=1
def test_scikit_learns_checks_of_classifiers_over_matrices(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [OnlineTextClassifier(), TextVectorizer()], ids=lambda of: type(of).__name__)
def test_scikit_learns_checks_of_what_takes_texts(estimator):
    """It has few for estimators that take no matrices, and says so."""
    with pytest.warns(estimator_checks.SkipTestWarning, match="requires input"):
        results = estimator_checks.check_estimator(estimator, on_skip=None)
    assert results and {result["status"] for result in results} == {"passed"}
    tags = estimator.__sklearn_tags__().input_tags
    assert tags.string and not tags.two_d_array
