"""Which metrics the page has of each kind of model."""

from kinds import ordered, several_labels

from stream_pegasos import TextClassifier
from stream_pegasos.operation.monitor import Monitor


def test_the_page_has_the_metrics_of_each_kind_in_their_order():
    for make, tiles, drawn in (
        (TextClassifier, "accuracy macro_f1 roc_auc log_loss calibration_error", "accuracy macro_f1 roc_auc"),
        (
            ordered,
            "accuracy mean_absolute_error quadratic_kappa calibration_error",
            "accuracy mean_absolute_error",
        ),
        (
            several_labels,
            "micro_f1 macro_f1 exact_matches hamming_loss",
            "micro_f1 macro_f1",
        ),
    ):
        seen = Monitor(make()).view()
        assert [of["name"] for of in seen["figures"] if of["is_tile"]] == tiles.split()
        assert [of["name"] for of in seen["figures"] if of["name"] in seen["curve"]] == drawn.split()
