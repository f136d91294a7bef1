"""The command `explain`."""

import pytest
from commands import error_line, stream

from stream_pegasos import KernelPegasosClassifier, TextClassifier, load


def test_explain_names_the_hashed_features(main):
    options = ("--classifier", "pegasos", "--ngrams", 1, "--prefix-length", 0)
    assert main("train", "mail.jsonl", "--save", "m", *options)[0] == 0
    code, out, err = main("explain", "m", "mail.jsonl", "--top", 5)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert (lines[0], lines[6]) == ("for spam", "for ham")
    model = load("m")
    # What a word adds to the margin when it stands alone says the same, its sign included.
    margins = {word: model.decision_function_one(word) for text, _ in stream for word in model.features.tokens(text)}
    ordered = sorted(margins.values())
    for block, expected in ((lines[1:6], ordered[:-6:-1]), (lines[7:], ordered[:5])):
        shown = [line.split(maxsplit=1) for line in block]
        assert [float(weight) for weight, _ in shown] == pytest.approx(expected, abs=1e-5)
        assert all(margins[word] == pytest.approx(float(weight), abs=1e-5) for weight, word in shown)


def test_explain_says_why_a_text_is_what_it_is(main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    text, _ = stream[7]
    code, out, err = main("explain", "m", "--text", text, "--top", 4)
    assert (code, err) == (0, "")
    model = load("m")
    label, margin = model.predict_one(text), model.decision_function_one(text)
    first, legend, *lines = out.splitlines()
    assert legend == "+ speaks for spam, - for ham"
    assert first == f"{label}, probability {model.predict_proba_one(text)[label]:.4f}, margin {margin:+.5f}"
    shown = [line.split(maxsplit=1) for line in lines]
    contributions = model.explain_one(text)
    assert [float(contribution) for contribution, _ in shown[:4]] == pytest.approx(
        list(contributions.values())[:4], abs=1e-5
    )
    assert shown[4][1] == f"{len(contributions) - 4:,} others"
    assert sum(float(contribution) for contribution, _ in shown) == pytest.approx(margin, abs=1e-4)
    assert "\x1b" not in out  # colours are for terminals


def test_explain_a_text_needs_a_linear_model_of_texts(main, here):
    (here / "a.vw").write_text("1 | a\n-1 | b\n")
    assert main("train", "a.vw", "--save", "dicts")[0] == 0
    kernel = TextClassifier(classifier=KernelPegasosClassifier(budget=50))
    kernel.learn_many(["a", "b"], [True, False])
    kernel.save("kernel")
    for model, message in (("dicts", "a model of features"), ("kernel", "linear")):
        code, _, err = main("explain", model, "--text", "a")
        assert code == 1
        assert message in error_line(err)
    assert main("explain", "dicts", "a.vw", "--text", "a")[0] == 2


def test_explain_without_a_stream_shows_indices_and_a_hint(main):
    assert main("train", "mail.jsonl", "--save", "m", "--intercept")[0] == 0
    code, out, err = main("explain", "m", "--top", 4)
    assert code == 0
    model = load("m")
    shown = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert len(shown) == 8
    assert all(f"{model.weights[int(index)]:+.5f}" == weight for weight, index in shown)
    assert out.splitlines()[-1] == f"intercept {model.intercept:+.5f}"
    assert err.startswith("stream-pegasos: these are hashed features; for their names: ")


def test_explain_where_words_collide(main):
    assert main("train", "mail.jsonl", "--save", "m", "--n-features", 8)[0] == 0
    out = main("explain", "m", "mail.jsonl")[1]
    assert len([line for line in out.splitlines() if line.startswith("  ")]) <= 8
