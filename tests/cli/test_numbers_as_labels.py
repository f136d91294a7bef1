"""Labels that look like numbers to be predicted, ids or texts are told of once; nothing is refused."""

import warnings
from pathlib import Path
from random import Random

import pytest
from commands import process
from serving import learn, serving

from stream_pegasos import (
    AdaptiveClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    load,
)
from stream_pegasos.runtime.live_learner import LiveLearner

SAID = "these look like numbers to be predicted, ids or texts"


def test_the_command_and_run_tell_once(here):
    Path("m.txt").write_text("".join(f"{i * 0.377 + 0.01:.4f}\ta{i % 7}\n" for i in range(1_000)), encoding="utf-8")
    for command in ("train m.txt --save m", "evaluate m.txt", "run m.txt --no-follow --save n --output none"):
        done = process(*command.split())  # in this one pytest makes errors of warnings
        err = done.stderr.decode()
        assert done.returncode == 0 and err.count(SAID) == 1 and "'0.0100', '0.3870'" in err and "--label-field" in err
        assert err.startswith("stream-pegasos: ") and len(err.splitlines()) == 1
    assert load("m").n_learned == load("n").n_learned == 1_000


@pytest.mark.parametrize(("name", "features"), [("m.vw", "|x a"), ("m.svmlight", "7:1")])
def test_numbers_to_be_predicted_are_refused_where_the_format_has_them(main, fails, name, features):
    """In files of Vowpal Wabbit and of libsvm they are a regression."""
    Path(name).write_text("".join(f"{i * 0.37 + 0.01:.2f} {features}\n" for i in range(9)), encoding="utf-8")
    reason = "label must be a class, as an integer or a name, got '0.01'; no numbers are predicted: name classes"
    for command in ("train {} --save m", "evaluate {}"):
        assert fails(command.format(name)).startswith(f"stream-pegasos: line 1 skipped: {reason}")
    code, out, err = main(f"run {name} --no-follow --save m --strict")
    assert (code, out.count("\n")) == (1, 9) and f"line 1 skipped: {reason}" in err and not load("m").n_learned
    code, _, err = main(f"train {name} --labels 0.01,0.38 --save m")
    assert code == 0 and load("m").classes == ("0.01", "0.38") and "line 3 skipped" in err


def test_the_service_tells_once():
    with serving(LiveLearner(TextClassifier())) as client, pytest.warns(UserWarning, match=SAID) as told:
        for begin in range(0, 500, 100):
            learn(client, [{"text": "a", "label": f"id{i}"} for i in range(begin, begin + 100)])
    assert len(told) == 1


@pytest.mark.parametrize("make", [AdaptiveClassifier, PegasosClassifier, OrdinalClassifier, MultiLabelClassifier])
def test_python_tells_once_and_learns_all(make):
    model = make()
    labels = [(i,) if make is MultiLabelClassifier else i for i in range(400)]
    with pytest.warns(UserWarning, match=SAID) as told:
        for label in labels:
            model.learn_one({"x": 1.0}, label)
    assert len(told) == 1 and model.n_learned == 400 and len(model.classes) == 400


@pytest.mark.parametrize("n_classes", [77, 251, 400])
def test_many_classes_are_no_such_thing(n_classes):
    """In any order: at first, nearly every message brings a class of its own."""
    model, random = TextClassifier(), Random(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(900):
            model.learn_one("a b", random.randrange(n_classes))
        few = TextClassifier()
        few.learn_many(["a"] * 200, list(range(200)))
