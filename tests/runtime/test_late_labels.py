"""Labels that come later than their messages, or earlier, are learned with them, each once."""

import threading
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from running import bits, wait
from scripts import Run, Script, learned, message

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.features.encoders import EncoderAwayError, TextEncoder
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.runtime.checkpoints import Checkpoints


class InTurn(Script):
    """One of two sources whose batches come in the order of a script."""

    def __init__(self, examples, name, turns, come, **options):
        super().__init__(examples, **options)
        self.name, self.turns, self.come = name, turns, come

    def batches(self):
        for batch in super().batches():
            with self.come:
                self.come.wait_for(lambda: self.turns and self.turns[0] == self.name, 20)
            yield batch
            # The next turn begins when this batch has been put into the queue.
            with self.come:
                self.turns.pop(0)
                self.come.notify_all()


@settings(max_examples=20)
@given(st.permutations([f"{kind}{i}" for kind in "ml" for i in range(6)]), st.integers(0, 12))
def test_late_labels_are_learned_when_the_later_of_both_comes(order, cut):
    """Also where the run is resumed in between."""
    messages = [message(int(name[1:]), labelled=False) for name in order if name[0] == "m"]
    labels = [message(int(name[1:])) for name in order if name[0] == "l"]
    expected, seen = TextClassifier(), set()
    for name in order:
        i = int(name[1:])
        if i in seen:
            expected.learn_one(message(i).x, message(i).y)
        seen.add(i)
    model, progress = None, None
    for part in (order[:cut], order[cut:]):
        n_before = [(progress or {}).get(name) or 0 for name in ("position", "label_position")]
        n = [sum(name[0] == kind for name in part) for kind in "ml"]
        turns, come = [name[0] for name in part], threading.Condition()
        source, late = (
            InTurn(examples[: before + more], kind, turns, come, sizes=[1], position=before)
            for kind, examples, before, more in zip("ml", (messages, labels), n_before, n, strict=True)
        )
        run = Run(source, model, labels=late, progress=progress).run()
        assert len(run.answers) == n[0]
        snapshot = run.runner.snapshot()
        model, progress = run.model, snapshot.progress
    assert bits(model) == bits(expected)
    assert run.runner.n_learned == 6
    assert progress["position"] == progress["label_position"] == 6


def test_what_waits_too_long_is_forgotten():
    messages = [message(i, labelled=False) for i in range(10)]
    labels = [message(i) for i in range(10)]
    turns, come = ["m"] * 10 + ["l"] * 10, threading.Condition()
    source = InTurn(messages, "m", turns, come, sizes=[1])
    late = InTurn(labels, "l", turns, come, sizes=[1])
    run = Run(source, labels=late, window=4).run()
    assert bits(run.model) == bits(learned(labels[6:]))
    assert run.runner.snapshot().progress["join"]["n_expired"] == [6, 2]


def test_a_label_that_came_first_is_learned_right_after_its_message_is_answered():
    """Those before it in the batch, and itself, are answered by the model that does not know it."""
    examples, turns, come = [message(i, labelled=False) for i in range(40, 44)], ["l", "m"], threading.Condition()
    source = InTurn(examples, "m", turns, come, sizes=[4])
    run = Run(source, learned(map(message, range(40))), labels=InTurn([message(42)], "l", turns, come, sizes=[1]))
    expected = learned(map(message, range(40)))
    before = [expected.predict_proba_one(each.x) for each in examples[:3]]
    expected.learn_one(message(42).x, message(42).y)
    said = [*before, expected.predict_proba_one(examples[3].x)]
    assert [each.probability for each in run.run().answers] == [max(each.values()) for each in said]


def test_labels_wait_for_an_encoder_that_is_away(tmp_path):
    """With their messages, which stay where they are; checkpoints are written meanwhile, and the end is clean."""
    away, asked = threading.Event(), []

    def encode(texts):
        if away.is_set():
            asked.append(texts)
            raise EncoderAwayError("the server is away")
        return [[len(text), text.count("e") + 1.0] for text in texts]

    def send(answers):  # after which the server goes away, and the texts are forgotten, as if many had come
        away.set()
        encoder._newest.clear()

    encoder = TextEncoder("encoder", encode)
    made = partial(TextClassifier, TextFeatures(vectors=encoder))
    messages, labels = [message(i, labelled=False) for i in range(6)], [message(i) for i in range(6)]
    turns, come = ["m", "l"], threading.Condition()
    sources = [InTurn(each, name, turns, come, sizes=[6]) for each, name in ((messages, "m"), (labels, "l"))]
    checkpoints = Checkpoints(tmp_path / "model", seconds=0.01)
    run = Run(sources[0], made(), send, labels=sources[1], checkpoints=checkpoints)
    thread = threading.Thread(target=run.run)
    thread.start()
    wait(lambda: run.events)
    written = run.runner.snapshot().progress  # which nobody holds up
    assert (written["position"], written["label_position"], len(written["join"]["messages"])) == (6, None, 6)
    run.runner.stop()
    thread.join(60)
    assert not thread.is_alive() and run.events[0].startswith("the server is away; trying again in") and asked
    away.clear()
    model, progress = load_with_progress(tmp_path / "model", vectors=encoder)
    assert (model.n_learned, progress["label_position"]) == (0, None)
    turns += "l"
    later = [InTurn(messages, "m", turns, come, position=6), InTurn(labels, "l", turns, come, sizes=[6])]
    after = Run(later[0], model, labels=later[1], progress=progress).run()
    alone = made()
    for example in labels:
        alone.learn_one(example.x, example.y)
    assert bits(after.model) == bits(alone) and after.answers == []


def test_a_checkpoint_of_labels_alone_does_not_stand_for_one_of_messages(tmp_path):
    """An answer is sent only once its message stands in a checkpoint."""
    turns, come, seen = ["l", "m"], threading.Condition(), []
    source, late = InTurn([message(0, labelled=False)], "m", turns, come), InTurn([message(1)], "l", turns, come)

    def send(answers):
        seen.append(load_with_progress(tmp_path / "model")[1]["position"])

    run = Run(source, send=send, labels=late, checkpoints=Checkpoints(tmp_path / "model", seconds=1_000))
    take_labels = run.runner._take_labels

    def take_and_write(batch):
        is_taken = take_labels(batch)
        run.runner._checkpoints.write_now()
        return is_taken

    run.runner._take_labels = take_and_write
    run.run()
    assert seen == [1]
