"""Which metrics the page has of each kind of model."""

import pytest
from kinds import ordered, several_labels

from stream_pegasos import TextClassifier
from stream_pegasos.blocks.blockwise import predict_learn
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.streams import synthetic


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


def test_the_page_has_what_is_seen_of_sets_where_a_coverage_is_asked_for():
    model = TextClassifier()
    model.set_decision(coverage=0.9)
    monitor, sets, held = Monitor(model, window=100), [], []
    for begin in range(0, 300, 50):
        examples = list(synthetic(n=300, seed=2))[begin : begin + 50]
        sets += model.clone(include_attributes=True).predict_learn_many(*zip(*examples, strict=True)).sets
        for block in predict_learn(model, examples):
            monitor.learned(list(block.examples), block)
    held = [label in members for (_, label), members in zip(synthetic(n=300, seed=2), sets, strict=True)][1:]
    for seen in (monitor, Monitor(model, window=100)):
        if seen is not monitor:
            seen.set_state(monitor.get_state())
        view = seen.view()
        assert view["coverage"] == pytest.approx(sum(held) / 299)
        assert view["window"]["coverage"] == pytest.approx(sum(held[-100:]) / 100)
        assert view["sets_of_one"] == pytest.approx(sum(len(members) == 1 for members in sets[1:]) / 299)
        assert view["set_size"] == pytest.approx(sum(map(len, sets)) / 299)
        assert [of["name"] for of in view["figures"]][-2:] == ["coverage", "sets_of_one"]
