"""A message for which a user's function raises costs itself, whatever it raises, wherever messages are read."""

import pytest
from scripts import Run, Script
from serving import learn, predict, refused, send, serving

from stream_pegasos import HashedBagOfWords, KernelPegasosClassifier, TextClassifier
from stream_pegasos.blocks.blockwise import predict_labelled, predict_learn
from stream_pegasos.runtime.answers import answer
from stream_pegasos.runtime.live_learner import LiveLearner
from stream_pegasos.streams import Example

pytest.importorskip("httpx")
ERRORS = [ValueError, RuntimeError, LookupError, OSError, StopIteration, AssertionError, RecursionError]
EXAMPLES = [Example(f"word {i % 5} {'bad' * (i in (3, 40))}", "ab"[i % 2], 1.0, i, i) for i in range(60)]
GOOD = [example for example in EXAMPLES if "bad" not in example.x]


def made(error):
    def tokenizer(text):
        if "bad" in text:
            raise error("of mine")
        return text.split()

    return TextClassifier(HashedBagOfWords(tokenizer=tokenizer))


def faces(model, refuse):
    """What each face says of the examples, a list with an answer to each that is not refused."""
    yield [x for block in predict_labelled(model, EXAMPLES, refuse, 1) for x in block.examples]
    yield [each for each in answer(model, EXAMPLES, refuse) if each.error is None]
    yield [x for block in predict_learn(model, EXAMPLES, refuse) for x in block.examples]
    run = Run(Script(EXAMPLES, [512]), model).run()
    for example, reason in run.bad:
        refuse(example, reason)
    yield [each for each in run.answers if each.error is None]


@pytest.mark.parametrize("error", ERRORS)
def test_a_message_costs_itself_alone(error):
    model, alone = made(error), made(error)
    bad = []
    for answered in faces(model, lambda example, reason: bad.append((example, reason))):
        assert len(answered) == len(GOOD)
        assert [example for example, _ in bad] == [EXAMPLES[3], EXAMPLES[40]]
        assert all("of mine" in reason for _, reason in bad)
        bad.clear()
    for example in GOOD * 2:
        alone.learn_one(example.x, example.y)
    assert model.weights == alone.weights and model.n_learned == 2 * len(GOOD)


@pytest.mark.parametrize("error", ERRORS)
def test_a_request_is_refused_alone(error):
    service = LiveLearner(made(error))
    with serving(service) as client:
        for path in ("/learn", "/predict", "/explain"):
            refused(send(client, path, {"text": "bad", **({"label": "a"} if path == "/learn" else {})}), 422, "of mine")
        learn(client, {"text": "word", "label": "a"})
        assert predict(client, {"text": "word"})["label"] == "a"
    assert service.model.n_learned == 1


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_ends_the_stream(error):
    model, bad = made(error), []
    with pytest.raises(error):
        [*predict_learn(model, EXAMPLES, lambda *refused: bad.append(refused))]
    assert not bad and model.n_learned <= 3


def test_a_kernel_costs_its_message_alone():
    def kernel(x, z):
        if "bad" in x:
            raise ZeroDivisionError
        return float(len(x.keys() & z.keys()))

    model, bad = KernelPegasosClassifier(kernel=kernel), []
    rows = [Example({"bad" if i == 9 else f"word {i % 4}": 1.0}, "ab"[i % 2], 1.0, i, i) for i in range(20)]
    for _ in predict_learn(model, rows, lambda example, reason: bad.append((example.id, reason))):
        pass
    assert bad == [(9, "the kernel failed: ZeroDivisionError: ")] and model.n_learned == 19
