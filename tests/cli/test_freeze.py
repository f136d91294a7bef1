"""The command `freeze`, and what the others do with a frozen model."""

from commands import labels_of, reference_of, stream

from stream_pegasos import FrozenTextClassifier, load


def test_a_frozen_model_predicts_and_does_not_learn(ok, fails):
    reference_of(stream).save("m")
    out = ok("freeze m f")
    assert out.startswith(f"froze {load('m').n_features:,} features, ") and out.endswith("; saved f\n")
    assert isinstance(load("f"), FrozenTextClassifier)
    assert labels_of(ok("predict m mail.jsonl")) == labels_of(ok("predict f mail.jsonl"))
    for command in ("test f mail.jsonl", "explain f --text 'win a prize'", "freeze f again"):
        ok(command)
    for command in (
        "train mail.jsonl --load f --save g",
        "run mail.jsonl --no-follow --load f",
        "run mail.jsonl --no-follow --checkpoint f",
    ):
        assert "f is a frozen model, which only predicts" in fails(command)
    ok("train mail.jsonl --save m --classifier pegasos")
    assert "PegasosClassifier cannot be frozen" in fails("freeze m f")
