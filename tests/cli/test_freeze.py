"""The command `freeze`, and what the others do with a frozen model."""

import pytest
from commands import error_line

from stream_pegasos import FrozenTextClassifier, load


@pytest.fixture
def frozen(main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    code, out, err = main("freeze", "m", "f")
    n = load("m").n_features
    assert (code, err) == (0, "") and out.startswith(f"froze {n:,} features, ") and out.endswith("; saved f\n")
    assert isinstance(load("f"), FrozenTextClassifier)
    return "f"


def test_a_frozen_model_predicts_and_is_tested(main, frozen):
    for command in ("predict", "test"):
        of_model, of_frozen = (main(command, model, "mail.jsonl") for model in ("m", frozen))
        assert of_model[0] == of_frozen[0] == 0
        if command == "predict":
            labels = [[line.split("\t")[0] for line in out.splitlines()] for _, out, _ in (of_model, of_frozen)]
            assert labels[0] == labels[1]
    assert main("explain", frozen, "--text", "win a prize")[0] == 0
    assert main("freeze", frozen, "again")[0] == 0


@pytest.mark.parametrize(
    "command",
    [("train", "mail.jsonl", "--load", "f", "--save", "g"), ("run", "mail.jsonl", "--load", "f")],
    ids=lambda command: command[0],
)
def test_a_frozen_model_does_not_learn(main, frozen, command):
    code, _, err = main(*command)
    assert code != 0 and "f is a frozen model, which only predicts" in error_line(err)


def test_what_cannot_be_frozen_is_said(main):
    assert main("train", "mail.jsonl", "--save", "m", "--classifier", "pegasos")[0] == 0
    code, _, err = main("freeze", "m", "f")
    assert code == 1 and "PegasosClassifier cannot be frozen" in error_line(err)
