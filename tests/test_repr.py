"""What a model, its predictions and its scores say of themselves at a prompt."""

import re

from contract import for_each
from estimators import CASES
from river import base, drift

from stream_pegasos import (
    AdaptiveClassifier,
    Category,
    HashedBagOfWords,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    prequential,
)
from stream_pegasos.common.packing import get_parameters
from stream_pegasos.evaluation.tuning import tune
from stream_pegasos.streams import synthetic

NESTED = """TextClassifier (
  features=FeatureUnion (
    parts=[
      TextFeatures (
        on="text"
        prefix_length=3
      ),
      Category (
        on="sender"
      )
    ]
  )
  classifier=PegasosClassifier (
    l2=0.001
  )
)"""


def test_the_options_that_were_set_are_shown_nested():
    features = TextFeatures(on="text", prefix_length=3) + Category(on="sender")
    model = TextClassifier(features, PegasosClassifier(l2=1e-3, batch_size=1))
    assert repr(model) == NESTED
    shown = repr(HashedBagOfWords(preprocessor=str.lower) | AdaptiveClassifier(drift_detector=drift.ADWIN(delta=0.1)))
    assert "preprocessor=lower" in shown and "    drift_detector=ADWIN (\n" in shown and "delta=0.1" in shown


def set_options(estimator, default):
    """The names of the options that were set, those of parts included."""
    for name, value in get_parameters(estimator).items():
        if isinstance(value, base.Base):
            yield name
            if type(value).__module__.startswith("stream_pegasos."):
                yield from set_options(value, type(value)())
        elif value != getattr(default, name):
            yield name


@for_each([case for case in CASES if "fields" not in case.name and case.name != "text in a field"])
def test_no_option_that_was_set_is_left_out_and_no_other_is_shown(case):
    model = case.make()
    names = [found[1] for line in repr(model).splitlines() if (found := re.match(r" +(\w+)=", line))]
    detector = case.option("drift_detector") or getattr(getattr(model, "classifier", None), "drift_detector", None)
    of_river = {*get_parameters(detector)} if detector else set()  # which shows all
    assert [name for name in names if name not in of_river] == [*set_options(model, type(model)())]


def test_what_is_reported_says_what_it_holds():
    stream = list(synthetic(n=300, seed=1))
    score = prequential(stream, TextClassifier()).score
    assert repr(score).startswith(f"<PrequentialScore of 300 messages: accuracy {score.accuracy:.4f}, balanced")
    tuning = tune({"words": TextClassifier(HashedBagOfWords()), "recipe": TextClassifier()}, stream)
    assert repr(tuning).startswith("<Tuning on 300 messages, accuracy of ") and "best: words>" in repr(tuning)
    assert "blocks" not in repr(tuning.candidates[0])
    model = TextClassifier()
    model.learn_many(*zip(*stream, strict=True))
    said = model.predictions([x for x, _ in stream[:3]])
    assert repr(said).startswith("<Predictions of 3 messages: labels ['")
