"""The commands `train` and `predict`, and which models they take."""

import pytest
from commands import error_line, stream, write_jsonl

from stream_pegasos import KernelPegasosClassifier, TextClassifier, load
from stream_pegasos.streams import synthetic


def test_train_then_predict(main):
    code, out, err = main("train", "mail.jsonl", "--save", "m", "--limit", 400)
    assert (code, err) == (0, "")
    assert out.startswith("learned 400 messages in ")
    code, out, err = main("predict", "m", "mail.jsonl")
    assert (code, err) == (0, "")
    model = load("m")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [label for label, _ in rows] == [model.predict_one(text) for text, _ in stream]
    for (label, probability), (text, _) in zip(rows, stream, strict=True):
        assert float(probability) == pytest.approx(model.predict_proba_one(text)[label], abs=1e-6)


def test_training_in_two_runs_is_training_in_one(main):
    write_jsonl("a.jsonl", stream[:250])
    write_jsonl("b.jsonl", stream[250:])
    assert main("train", "mail.jsonl", "--save", "whole", "--batch-size", 7)[0] == 0
    assert main("train", "a.jsonl", "--save", "m", "--batch-size", 7)[0] == 0
    assert main("train", "b.jsonl", "--load", "m", "--save", "m")[0] == 0
    assert load("m").weights == load("whole").weights
    assert load("m").n_iterations == load("whole").n_iterations


def test_any_number_of_threads_gives_the_same_files(main, here):
    write_jsonl("long.jsonl", [(text * 9, label) for text, label in stream])
    written = {}
    for threads in ((), ("--threads", 1), ("--threads", 3)):
        assert main("train", "long.jsonl", "--save", "m", *threads)[0] == 0
        answers = main("predict", "m", "long.jsonl", *threads)[1]
        assert main("test", "m", "long.jsonl", "--predictions", "tested.tsv", *threads)[0] == 0
        assert main("evaluate", "long.jsonl", "--predictions", "evaluated.tsv", *threads)[0] == 0
        written[threads] = answers, *((here / name).read_bytes() for name in ("m", "tested.tsv", "evaluated.tsv"))
    assert len(set(written.values())) == 1
    assert main("train", "long.jsonl", "--save", "m", "--threads", 0)[0] == 2


def test_thresholds_and_limits_decide_what_is_answered(main):
    for options in (["--threshold", 0.9], ["--max-false-positive-rate", 0.02]):
        assert main("train", "mail.jsonl", "--save", "m", "--pos-label", "spam", *options)[0] == 0
        model = load("m")
        X = [text for text, _ in stream]
        answers = [line.split("\t") for line in main("predict", "m", "mail.jsonl")[1].splitlines()]
        assert [label for label, _ in answers] == model.predict_many(X).tolist()
        assert [float(p) for _, p in answers] == pytest.approx(
            [model.predict_proba_one(text)[model.predict_one(text)] for text in X], abs=1e-6
        )
        assert min(float(p) for _, p in answers) < 0.5  # the less probable label, where the other may not be given


def test_a_loaded_model_takes_a_limit(main):
    """Everywhere the same, and again when it goes on from its checkpoint; the answers and explanations say it."""
    write_jsonl("again.jsonl", stream)
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    limit = ["--pos-label", "spam", "--max-false-positive-rate", 0.005]
    expected = load("m")
    expected.set_decision(max_false_positive_rate=0.005, pos_label="spam")
    run = ["run", "again.jsonl", "--load", "m", "--checkpoint", "c", "--no-follow"]
    assert main(*run, *limit, "--output", "none")[0] == 0
    expected.predict_learn_many(*zip(*stream, strict=True))
    for rate in (0.005, 0.2):
        expected.set_decision(max_false_positive_rate=rate)
        assert main(*run, *limit[:-1], rate, "--output", "none")[0] == 0
        assert load("c").to_state()[2] == expected.to_state()[2]
    assert main("train", "again.jsonl", "--load", "m", "--save", "t", *limit)[0] == 0
    assert load("t").classifier.max_false_positive_rate == 0.005
    texts = [text for text, _ in synthetic(n=1_000, seed=12)]
    withheld = load("t").predictions(texts).withheld
    for held in ([], ["spam"]):
        head = main("explain", "t", "--text", texts[withheld.index(held)])[1].splitlines()[0]
        assert ("; the limit of false positives withholds spam" in head) == bool(held)
    assert "--load" in main("train", "mail.jsonl", "--load", "m", "--save", "t", "--ngrams", 1)[2]


def test_model_and_format_must_fit(main, here):
    (here / "a.vw").write_text("1 | a\n-1 | b\n")
    assert main("train", "a.vw", "--save", "dicts")[0] == 0
    assert main("train", "mail.jsonl", "--save", "texts")[0] == 0
    for model, file in (("dicts", "mail.jsonl"), ("texts", "a.vw")):
        code, _, err = main("predict", model, file)
        assert code == 1
        assert "has format" in error_line(err)


def test_models_of_kernels(main, here):
    kernel = TextClassifier(classifier=KernelPegasosClassifier(budget=50))
    kernel.learn_many(*zip(*stream, strict=True))
    kernel.save("KernelPegasosClassifier.safetensors")
    code, out, _ = main("predict", "KernelPegasosClassifier.safetensors", "mail.jsonl")
    assert code == 0 and len(out.splitlines()) == len(stream)
    code, _, err = main("explain", "KernelPegasosClassifier.safetensors", "mail.jsonl")
    assert code and "has a kernel" in error_line(err)


def test_a_model_whose_texts_stand_in_a_field_takes_them_as_they_are(main):
    model, plain = (TextClassifier().clone({"features": {"on": on}}) for on in ("body", None))
    model.learn_many([{"body": text} for text, _ in stream[:300]], [label for _, label in stream[:300]])
    plain.learn_many(*zip(*stream[:300], strict=True))
    model.save("on")
    plain.save("off")
    for command in ("predict", "explain"):
        assert main(command, "on", "mail.jsonl") == main(command, "off", "mail.jsonl")
    for name in ("on", "off"):
        assert main("train", "mail.jsonl", "--load", name, "--save", f"{name}.new")[0] == 0
    assert load("on.new").weights == load("off.new").weights
    assert main("explain", "on", "--text", "win a prize")[0] == 0
