"""The command `explain`."""

import pytest
from commands import error_line, stream, write_jsonl

from stream_pegasos import KernelPegasosClassifier, PegasosClassifier, TextClassifier, load


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


def test_explain_marks_what_is_cut(main):
    model = TextClassifier()
    model.learn_many(["很好吃", "太难吃了"] * 9, [1, 0] * 9)
    model.save("m")
    out = main("explain", "m", "--text", "很好吃 lunches")[1]
    shown = [line.split()[1] for line in out.splitlines() if line.startswith("  ")]
    assert {"很", "很…", "很好…", "好吃", "…吃", "很好吃"} <= set(shown)


def test_explain_where_words_collide(main):
    assert main("train", "mail.jsonl", "--save", "m", "--n-features", 8)[0] == 0
    out = main("explain", "m", "mail.jsonl")[1]
    assert len([line for line in out.splitlines() if line.startswith("  ")]) <= 8


def several_classes():
    model = TextClassifier(classifier=PegasosClassifier(multi_class="ovr", l2=0.1))
    texts, labels = ["my card is lost", "where is my cash", "a fee, why"] * 9, ["lost", "cash", "fee"] * 9
    model.learn_many(texts, labels)
    model.save("several")
    write_jsonl("bank.jsonl", zip(texts, labels, strict=True))
    return model


def test_explain_each_class_or_one(main):
    model = several_classes()
    code, out, _ = main("explain", "several", "bank.jsonl", "--top", 1)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert [line for line in lines if line[0] == "for"] == [["for", label] for label in model.classes]
    code, out, _ = main("explain", "several", "bank.jsonl", "--top", 2, "--label", "fee")
    lines = out.splitlines()
    assert code == 0 and (lines[0], lines[3]) == ("for fee", "against fee")
    weights = sorted(model.weights["fee"].values())
    shown = [float(lines[at].split()[0]) for at in (1, 2, 4, 5)]
    assert shown == pytest.approx([weights[-1], weights[-2], *weights[:2]], abs=1e-5)
    for arguments in (["--label", "gold"], ["--label", "gold", "--text", "x"]):
        code, _, err = main("explain", "several", *arguments)
        assert code == 2 and "none of the labels learned: lost, cash, fee" in " ".join(err.split())


def test_explain_a_text_by_the_first_against_the_second(main, monkeypatch):
    model, asked = several_classes(), []
    monkeypatch.setattr(
        TextClassifier, "explain_one", lambda self, text, **given: asked.append(given) or {"fee": 0.5, "a": -0.25}
    )
    code, out, _ = main("explain", "several", "--text", "a fee")
    p = model.predict_proba_one("a fee")
    second = max({**p, "fee": 0.0}, key=lambda label: p[label] * (label != "fee"))
    assert code == 0 and out.splitlines() == [
        f"fee, probability {p['fee']:.4f}; then {second}, {p[second]:.4f}",
        f"+ speaks for fee, - for {second}",
        "  +0.50000  fee",
        "  -0.25000  a",
    ]
    code, out, _ = main("explain", "several", "--text", "a fee", "--label", "cash")
    assert code == 0 and out.splitlines()[:2] == [
        f"fee, probability {p['fee']:.4f}; cash: probability {p['cash']:.4f}",
        "+ speaks for cash, - against it",
    ]
    assert asked == [{}, {"label": "cash"}]


def test_a_model_that_keeps_names_explains_itself(main):
    assert main("train", "mail.jsonl", "--save", "m", "--names")[0] == 0
    assert main("train", "mail.jsonl", "--save", "plain")[0] == 0
    code, out, err = main("explain", "m", "--top", 3)
    assert (code, err) == (0, "") and out == main("explain", "plain", "mail.jsonl", "--top", 3)[1]
    assert main("run", "mail.jsonl", "--checkpoint", "c", "--no-follow", "--names", "--output", "none")[0] == 0
    assert main("explain", "c", "--top", 3)[1] == out
