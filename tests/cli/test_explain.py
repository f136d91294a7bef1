"""The command `explain`."""

import json

import pytest
from commands import stream, write_jsonl

from stream_pegasos import PegasosClassifier, TextClassifier, TextFeatures, load
from stream_pegasos.learners.explanations import phrases


def shown(out):
    """What weighs something, and how much."""
    rows = (line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  "))
    return [(float(weight), name) for weight, name in rows]


@pytest.mark.parametrize("options", [{}, {"alternate_sign": True}, {"alternate_sign": True, "binary": False}])
def test_explain_names_the_hashed_features(ok, options):
    of_words = {"ngram_range": (1, 1), "prefix_length": 0, "mask_digits": True, "letters": 0, "length": 0}
    features = TextFeatures(**of_words, **options)  # a word is one feature
    model = TextClassifier(features, PegasosClassifier())
    model.learn_many(*map(list, zip(*stream, strict=True)))
    model.save("m")
    out = ok("explain m mail.jsonl --top 5")
    assert (out.splitlines()[0], out.splitlines()[6]) == (f"for {model.classes[1]}", f"for {model.classes[0]}")
    # What a word adds to the margin when it stands alone says the same, its sign included.
    margins = {word: model.decision_function_one(word) for text, _ in stream for word in model.features.tokens(text)}
    ordered = sorted(margins.values())
    assert [weight for weight, _ in shown(out)] == pytest.approx([*ordered[:-6:-1], *ordered[:5]], abs=1e-5)
    assert all(margins[word] == pytest.approx(weight, abs=1e-5) for weight, word in shown(out))


@pytest.mark.parametrize("place", [7, next(i for i, (_, label) in enumerate(stream) if label == "ham")])
def test_explain_says_why_a_text_is_what_it_is(ok, place):
    ok("train mail.jsonl --save m")
    text, _ = stream[place]
    model = load("m")
    p, margin = model.predict_proba_one(text), model.decision_function_one(text)
    label, other = sorted(p, key=p.__getitem__, reverse=True)
    sign = 1.0 if label == "spam" else -1.0
    margin, contributions = sign * margin, {name: sign * size for name, size in model.explain_ngrams_one(text).items()}
    out = ok("explain m --top 4 --text", text)
    assert out.splitlines()[0] == f"{label}, probability {p[label]:.4f}; then {other}, {p[other]:.4f}"
    assert all(
        line[10:].lstrip().startswith(f"for {label if '+' in line[:4] else other}") for line in out.splitlines()[1:]
    )
    *first, (rest, others) = shown(out)
    expected, left = phrases(contributions.items(), 4, {"": text})
    assert [size for size, _ in first] == pytest.approx([phrase.value for phrase in expected], abs=1e-5)
    assert all(phrase.name in said for phrase, (_, said) in zip(expected, first, strict=True))
    assert others.endswith(f"{len(left):,} others")
    assert sum(size for size, _ in first) + rest == pytest.approx(margin, abs=1e-4)
    assert "\x1b" not in out  # colours are for terminals


def test_explain_without_a_stream_shows_indices_and_a_hint(main):
    assert main("train mail.jsonl --save m")[0] == 0
    code, out, err = main("explain m --top 4")
    model = load("m")
    assert code == 0 and len(shown(out)) == 8
    assert all(model.weights[int(index)] == pytest.approx(weight, abs=1e-5) for weight, index in shown(out))
    assert out.splitlines()[-1] == f"intercept {model.intercept:+.5f}"
    assert err.startswith("stream-pegasos: these are hashed features; for their names: ")


def test_explain_marks_what_is_cut_and_names_what_collides_once(ok):
    model = TextClassifier()
    model.learn_many(["很好吃", "太难吃了"] * 9, [1, 0] * 9)
    model.save("m")
    write_jsonl("meals.jsonl", [("很好吃", 1)])
    assert {"很", "很…", "很好…", "好吃", "…吃", "很好吃"} <= {name for _, name in shown(ok("explain m meals.jsonl"))}
    ok("train mail.jsonl --save m --features '{\"n_features\": 8}'")
    assert len(shown(ok("explain m mail.jsonl"))) <= 8


@pytest.fixture
def several(here):
    model = TextClassifier(classifier=PegasosClassifier(multi_class="ovr", l2=0.1))
    texts, labels = ["my card is lost", "where is my cash", "a fee, why"] * 9, ["lost", "cash", "fee"] * 9
    model.learn_many(texts, labels)
    model.save("several")
    write_jsonl("bank.jsonl", zip(texts, labels, strict=True))
    return model


def test_explain_each_class_or_one(ok, fails, several):
    out = ok("explain several bank.jsonl --top 1").splitlines()
    assert [line for line in out if line.startswith("for ")] == [f"for {label}" for label in several.classes]
    out = ok("explain several bank.jsonl --top 2 --label fee")
    assert (out.splitlines()[0], out.splitlines()[3]) == ("for fee", "against fee")
    weights = sorted(several.weights["fee"].values())
    assert [weight for weight, _ in shown(out)] == pytest.approx([weights[-1], weights[-2], *weights[:2]], abs=1e-5)
    for more in ("", "--text x"):
        message = "must be a label that was learned (lost, cash, fee)"
        assert message in fails(f"explain several --label gold {more}", code=2)


TOPICS = [("well wells", ["oil"]), ("leaf leafs", ["tea"]), ("well leaf", ["oil", "tea"]), ("none", [])] * 30
STARS = [("good " * (i % 3) + "film", i % 3 + 1) for i in range(300)]


@pytest.mark.parametrize(
    ("examples", "options", "text", "label", "sides"),
    [
        (TOPICS, "--multi-label", "well wells leaf", "", ("for oil", "against oil")),
        (TOPICS, "--multi-label", "well wells leaf", "tea", ("for tea", "against tea")),
        (STARS, "--ordered", "good film", "", ("for 3", "for 1")),
    ],
)
def test_explain_labels_that_hold_together_and_ordered_ones(ok, examples, options, text, label, sides):
    """What adds up is what is said: a label alone, how high among ordered ones."""
    write_jsonl("t.jsonl", examples)
    ok(f"train t.jsonl {options} --save m")
    out = ok(f"explain m --text '{text}' --top 3", *(["--label", label] if label else []))
    total = sum(load("m").explain_ngrams_one(text, **({"label": label} if label else {})).values())
    assert all(said.startswith(sides[size < 0]) for size, said in shown(out))
    assert sum(size for size, _ in shown(out)) == pytest.approx(total, abs=1e-4)
    ok("explain m t.jsonl")


def test_a_model_that_keeps_names_explains_itself(ok):
    ok("train mail.jsonl --save m --keep-feature-names")
    ok("train mail.jsonl --save plain")
    ok("train --save new --keep-feature-names")
    ok("run new mail.jsonl --checkpoint c --no-follow --output none")
    expected = ok("explain plain mail.jsonl --top 3")
    assert ok("explain m --top 3") == ok("explain c --top 3") == expected


def test_labels_that_read_alike_are_not_mixed_up(fails, here):
    model = TextClassifier()
    model.learn_many(["a", "b", "c"] * 3, [7, "7", "x"] * 3)
    model.save(here / "m")
    for line in ("explain m --text a --label 7", "forget-class m 7 --save n"):
        assert "'7' may be any of 7, '7'" in fails(line, code=2)


def test_the_words_of_a_stream_may_be_in_a_field_called_label(ok):
    ok("train mail.jsonl --save m")
    write_jsonl("named.jsonl", [("", text) for text, _ in stream])
    assert ok("explain m named.jsonl --text-field label") == ok("explain m mail.jsonl")


def test_the_fields_of_a_text_are_read_as_by_predict(ok, fails, here):
    """Whatever stands in them; an error says what is wrong."""
    records = [{"a": text, "size": len(text), "label": label} for text, label in stream[:50]]
    (here / "f.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    ok("train f.jsonl --text-field a --fields size:category --save m")
    for text in ('{"a": "win \\ud83d", "size": 1}', f'{{"a": "win", "size": {2**70 + 1}}}', '{"size": 7, "label": {}}'):
        (here / "one.jsonl").write_text(text, encoding="utf-8")
        label, probability = ok("predict m one.jsonl").split()
        assert ok("explain m --text", text).startswith(f"{label}, probability {float(probability):.4f}")
    for text, fault in (
        ("[1]", "it must be a JSON object, got a list"),
        ('{"b": 1}', "no field 'a' or 'size'"),
        ("{", "not JSON ("),
    ):
        assert f"a JSON object with a, size: {fault}" in fails("explain m --text", text, code=2)
