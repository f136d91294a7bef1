"""The curves of the page, where the stream drifts."""

from functools import partial

import pytest
from pages import attributes, learn, open_page, served, text, wait

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import synthetic

pytestmark = pytest.mark.heavy

EXAMPLES = [{"text": text, "label": label} for text, label in synthetic(n=1_500, seed=1)]


def test_drift_is_marked_on_the_time_line(page):
    from river.drift.binary import HDDMW

    service = LiveLearner(TextClassifier(classifier=AdaptiveClassifier(drift_detector=HDDMW())))
    with served(service) as url:
        learn(url, EXAMPLES)
        labels = sorted({example["label"] for example in EXAMPLES})
        learn(url, [{**example, "label": labels[example["label"] == labels[0]]} for example in EXAMPLES[:500]])
        drifts = service.view()["drifts"]
        open_page(page, url)
        assert f"the last one at message {drifts[-1]:,}" in text(page, "drifts")
        for chart in ("chart-1", "chart-2", "chart-3"):
            wait(page, partial(drifts_are_marked, page, chart, drifts))


def drifts_are_marked(page, chart, drifts):
    width = page.find_element("css selector", f"#{chart} .plot").size["width"]
    # The time line of 2,000 messages lies between the labels at the left and a margin.
    places = [44 + n / 2_000 * (width - 44 - 12) for n in drifts]
    return [float(x) for x in attributes(page, f"#{chart} line.drift", "x1")] == pytest.approx(places, abs=1)
