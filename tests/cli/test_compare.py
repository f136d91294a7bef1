"""`evaluate --compare`: a saved model and a new one on the same stream."""

from commands import reference_of, stream

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
