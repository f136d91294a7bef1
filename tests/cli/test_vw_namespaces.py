"""Files of Vowpal Wabbit: the text of one namespace, and features without a name."""

from pathlib import Path

import pytest
from commands import labels_of, stream, write_jsonl
from reading import rest, texts

from stream_pegasos import load
from stream_pegasos.streams import read


def as_vw(text):
    return " ".join(word.replace(":", "").replace("|", "") for word in text.split())


@pytest.fixture
def files(here):
    plain = [(as_vw(text), label) for text, label in stream[:300]]
    write_jsonl("plain.jsonl", plain)
    Path("m.vw").write_text("".join(f"{label} |t {text} |other a:2 b\n" for text, label in plain), encoding="utf-8")


def test_a_namespace_is_a_text(files, ok):
    ok("train m.vw --text-field t --save m")
    ok("train plain.jsonl --save expected")
    assert load("m").weights == load("expected").weights
    assert ok("predict m m.vw") == ok("predict m m.vw --text-field t") == ok("predict expected plain.jsonl")
    assert ok("predict expected m.vw --text-field t") == ok("predict expected plain.jsonl")
    assert ok("predict m plain.jsonl --text-field text") == ok("predict expected plain.jsonl")
    ok("train m.vw --text-field t --features '{\"ngram_range\": [1, 1]}' --save short")
    assert load("short").features.ngram_range == (1, 1)
    ok("run m.vw --text-field t --no-follow --save n --output none")
    assert load("n").weights == load("expected").weights
    text = [x.x for x in read("m.vw", text_field="t")]
    assert text == [x.x for x in read("plain.jsonl")] == texts(rest("m.vw", text_field="t")[0])


def test_a_namespace_that_is_not_there(files, main, fails, ok):
    code, _, err = main("train m.vw --text-field nosuch --save m")
    assert code == 1 and "no namespace 'nosuch'; it has t, other" in err and "no message of m.vw was learned" in err
    ok("train m.vw --save features")
    assert "is a model of features, not of the text of t" in fails("predict features m.vw --text-field t")
    Path("m.svmlight").write_text("1 1:1\n", encoding="utf-8")
    assert "--text-field" in fails("train m.svmlight --text-field t --save m", code=2)


def test_features_without_a_name_are_numbered(here):
    """By their position among those without a name, anew in each namespace, as in VW, where 0 is the name of 0."""
    Path("m.vw").write_text("1 |x :0.5 :1.2\n2 |x:2 a :3 b:4 :5 |y :1\n1 | :0.5 c\n", encoding="utf-8")
    assert [example.x for example in read("m.vw")] == [
        {"x^0": 0.5, "x^1": 1.2},
        {"x^a": 2.0, "x^0": 6.0, "x^b": 8.0, "x^1": 10.0, "y^0": 1.0},
        {"0": 0.5, "c": 1.0},
    ]
    (first, second, _) = read("m.vw", fields=["x", "x.1"], on_bad_line=lambda *line: None, unreadable=True)
    assert dict(first.x) == {"x": "", "x.1": "1.2"} and dict(second.x) == {"x": "a b", "x.1": "5"}


def test_they_are_learned(here, ok):
    Path("m.vw").write_text("1 |x :0.5 :0\n-1 |x :0 :0.5\n" * 30, encoding="utf-8")
    ok("train m.vw --save m")
    assert labels_of(ok("predict m m.vw")) == ["1", "-1"] * 30
