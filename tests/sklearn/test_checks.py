"""scikit-learn's own checks of estimators."""

import pytest

estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks", reason="scikit-learn is not installed")

from stream_pegasos import PegasosClassifier  # noqa: E402
from stream_pegasos.sklearn import OnlineClassifier, OnlineTextClassifier, TextVectorizer  # noqa: E402

ONE_STEP = (
    "an online learner takes one step on a row of weight 2, and two steps, the second from where the first led, on a "
    "row that comes twice; a row of weight 0 is as if it were not there, but shuffling then draws another order"
)
NO_WAY_TO_ONE_CLASS = (
    "on points around the origin, classes that overlap must all be predicted to be the heavy one, which needs a large "
    "intercept: Pegasos as published has none, and the adaptive classifier regularises its own, as texts want it"
)
EXPECTED_TO_FAIL = {
    "check_sample_weight_equivalence_on_dense_data": ONE_STEP,
    "check_sample_weight_equivalence_on_sparse_data": ONE_STEP,
    "check_class_weight_classifiers": NO_WAY_TO_ONE_CLASS,
}
MATRICES = [
    OnlineClassifier(),
    OnlineClassifier(PegasosClassifier(multi_class="crammer_singer")),
]


@estimator_checks.parametrize_with_checks(MATRICES, expected_failed_checks=lambda _: EXPECTED_TO_FAIL)
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
