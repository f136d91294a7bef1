"""`evaluate --compare`: a saved model and a new one on the same stream."""

import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import TextClassifier, load, prequential


def test_a_saved_model_beside_a_new_one(ok, here):
    reference_of(stream[:300]).save("m")
    printed = ok("evaluate mail.jsonl --compare m --save new --plot two.png")
    ok("evaluate mail.jsonl --compare m --plot curve.csv")
    compared = prequential(stream, {"this model": TextClassifier(), "m": load("m")})
    assert printed.split("\n\n")[1:] == [*str(compared).split("\n\n")[1:-1], str(compared).split("\n\n")[-1] + "\n"]
    assert printed.startswith("mail.jsonl: 600 messages in ") and "0 bad lines" in printed
    assert load("new").n_learned == 600 and load("m").n_learned == 300
    assert (here / "two.png").stat().st_size > 1_000 and len((here / "curve.csv").read_text().splitlines()) > 5


def test_what_is_no_model(fails):
    assert "is no model" in fails("evaluate mail.jsonl --compare mail.jsonl")


def test_predictions_are_those_of_the_new_model_alone(ok, here):
    reference_of(stream[:300]).save("m")
    ok("evaluate mail.jsonl --delay 10 --predictions alone.jsonl")
    ok("evaluate mail.jsonl --delay 10 --predictions compared.jsonl --compare m")
    assert (here / "compared.jsonl").read_text() == (here / "alone.jsonl").read_text() != ""


WRITTEN = [["false", "true"], [False, True], ["0", "1"], [0, 1], ["no", "yes"]]


@pytest.mark.parametrize("known", WRITTEN[:4])
def test_labels_are_those_that_the_compared_model_knows(ok, known):
    """However the stream writes them, as for `test`."""
    numbers = {"ham": 0, "spam": 1}
    reference_of([(text, known[numbers[label]]) for text, label in stream[:300]]).save("m")
    models = {"this model": TextClassifier(), "m": load("m")}
    expected = str(prequential([(text, known[numbers[label]]) for text, label in stream[300:]], models))
    for labels in WRITTEN[:4]:
        write_jsonl("new.jsonl", [(text, labels[numbers[label]]) for text, label in stream[300:]])
        printed = ok("evaluate new.jsonl --compare m --save new").rstrip("\n")
        assert printed.split("\n\n")[1:] == expected.split("\n\n")[1:]
        assert [*map(repr, sorted(load("new").classes))] == [*map(repr, known)]


def test_models_that_write_labels_differently_are_not_compared(ok, fails):
    for i, labels in enumerate(WRITTEN):
        reference_of([("a", labels[0]), ("b", labels[1])]).save(f"m{i}")
    for i, labels in enumerate(WRITTEN[:4]):
        for j, others in enumerate(WRITTEN[:4]):
            command = f"evaluate mail.jsonl --compare m{i} --compare m4 --compare m{j}"
            if labels == others:  # True is 1
                ok(command)
            else:
                same = f"the label {labels[0]!r} of one is {others[0]!r} of the other"
                assert f"m{i} and m{j} cannot be compared: {same}" in fails(command)
