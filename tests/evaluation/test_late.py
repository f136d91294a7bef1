"""Labels that come late: what is reported is that of the loop, one message after the other."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import drift, naive_bayes
from river.feature_extraction import BagOfWords
from river.stream import simulate_qa

from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    prequential,
)
from stream_pegasos.blocks.predicted import PredictedBlock
from stream_pegasos.evaluation.prequential import wrap_river
from stream_pegasos.evaluation.scores import block_outcomes, new_score

WORDS = ["cheap", "pills", "see", "you", "lunch", "at", "noon"]


class Brittle(drift.binary.DDM):
    """Fails from its seventh message on."""

    n = 0

    def update(self, x):
        self.n += 1
        if self.n >= 7:
            raise ValueError("the detector fails")
        super().update(x)


def text(classifier=None):
    return TextClassifier(classifier=classifier)


KINDS = {
    "two": (text, ["ham", "spam"]),
    "truth values": (text, [False, True, 1]),
    "several": (text, ["a", "b", 3, "3"]),
    "thresholds": (
        lambda: text(AdaptiveClassifier(pos_label="spam", threshold=0.3, max_false_positive_rate=0.4)),
        ["ham", "spam"],
    ),
    "F1": (lambda: text(AdaptiveClassifier(decide_for="macro_f1", class_weight="balanced")), ["a", "b", "c"]),
    "detector": (lambda: text(AdaptiveClassifier(drift_detector=drift.binary.DDM(warm_start=3))), ["a", "b"]),
    "brittle": (lambda: text(AdaptiveClassifier(drift_detector=Brittle())), ["a", "b"]),
    "batches": (lambda: text(PegasosClassifier(batch_size=3, l2=0.1, average=True)), ["a", "b", "c"]),
    "no weight": (lambda: text(PegasosClassifier(class_weight={"a": 0.0, "b": 2.0})), ["a", "b", "c"]),
    "kernel": (lambda: text(KernelPegasosClassifier(l2=0.1, budget=5)), [0, 1]),
    "ordered": (lambda: text(OrdinalClassifier()), [3, 1, 2]),
    "sets": (lambda: text(MultiLabelClassifier()), [{"a"}, {"a", "b"}, set(), ["c"]]),
    "sets for F1": (lambda: text(MultiLabelClassifier(AdaptiveClassifier(decide_for="micro_f1"))), [{"a"}, {"b"}, ()]),
    "River's": (lambda: BagOfWords() | naive_bayes.MultinomialNB(), ["ham", "spam", "eggs"]),
}
BAD_LABELS = [None, 0.5, float("nan"), ("a", None), object]


def loop(model, stream, delay, moment):
    """One by one, in River's order of questions and answers."""
    model = wrap_river(model) if not hasattr(model, "predictions") else model
    score, waiting, refused, answers = new_score(model), {}, [], []
    late = delay + 1 if moment is None else delay
    for i, *_ in simulate_qa([(x, 0) for x, *_ in stream], moment, late, copy=False):
        x, y, *w = stream[i]
        if i not in waiting:
            try:
                said = model.predictions([x])
                waiting[i] = PredictedBlock(said, model.classes, [y], [stream[i]])
            except (TypeError, ValueError):
                waiting[i] = None
                refused.append(i)
        elif waiting[i] is not None:
            try:
                model.learn_one(x, y, *w)
            except (TypeError, ValueError, RuntimeError):
                refused.append(i)
                continue
            score.update(block_outcomes(waiting[i], model))
            answers += [each.line() for each in waiting[i].answers()]
    return score, refused, answers


@st.composite
def streams(draw, labels):
    n, seed = draw(st.integers(0, 60)), draw(st.integers(0, 99))
    generator = random.Random(seed)
    rows = []
    for i in range(n):
        number = generator.randrange(min(len(labels), 1 + i // 5))
        x = " ".join([WORDS[number], *generator.choices(WORDS, k=2)])
        rows.append((x, labels[number], generator.choice([1.0, 1.0, 0.5, 0.0])) if seed % 2 else (x, labels[number]))
    for place in draw(st.lists(st.integers(0, max(0, n - 1)), max_size=3)) if n else []:
        x, y, *w = rows[place]
        rows[place] = draw(st.sampled_from([(None, y, *w), *((x, bad, *w) for bad in BAD_LABELS), (x, y, -1.0)]))
    return rows


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_late_labels_are_those_of_the_loop(name, data):
    make, labels = KINDS[name]
    stream = data.draw(streams(labels))
    if name == "River's":
        stream = [(x, y) for x, y, *_ in stream]
    delay, moment = data.draw(st.sampled_from([(1, None), (2, None), (7, None), (50, None), (3, len), (7, len)]))
    if any(not isinstance(x, str) for x, *_ in stream):
        moment = None
    if moment is len:  # each word is a time at which it comes
        stream = sorted(stream, key=lambda example: len(example[0]))
    reference, model = make(), make()
    expected, refused, answers = loop(reference, stream, delay, moment)
    seen, blocks = [], []
    score = prequential(
        stream,
        model,
        delay=delay,
        moment=moment,
        batch=data.draw(st.sampled_from([1, 5, 512])),
        on_refused=lambda example, reason: seen.append(example),
        on_predicted=blocks.append,
    ).score
    assert [id(each) for each in seen] == [id(stream[i]) for i in refused]
    assert str(score.metrics()) == str(expected.metrics()) and score.n == expected.n
    assert [each.line() for block in blocks for each in block.answers()] == answers
    assert sorted(map(str, score.confused())) == sorted(map(str, expected.confused()))
    if name != "River's":
        assert model.n_learned == reference.n_learned and model.classes == reference.classes
        probe = [model.predictions(WORDS), reference.predictions(WORDS)]
        assert probe[0].scores.tolist() == probe[1].scores.tolist()
        assert probe[0].probabilities.tolist() == probe[1].probabilities.tolist()
