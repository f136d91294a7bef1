"""The vectors of messages: how they are made of words, and what a rule learns of them."""

import hashlib
import itertools

import numpy as np
import pytest
from engines import as_dict, both_engines, compiled_engine, full, needs_compiled, pure_engine, same_state
from hypothesis import given
from hypothesis import strategies as st
from rules import ORDER, SETS

from stream_pegasos import TextFeatures
from stream_pegasos.engine.pure.adaptive_state import declared
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.tokens import tokenize

OPTIONS = TextFeatures().scanner.arguments[:-1]
TEXTS = [
    "free prize, call NOW 42!",
    "see you at noon?",
    "",
    "free free",
    "很好吃 noon",
    "한국어 prize",
    "né 👍👍 call",
    "unknown unknown?",
]
REDUCTIONS = ("two", "ovr", "multilabel", "ordinal")


class Table:
    """A vector for every word, made of its hash."""

    n_dimensions = 9

    def __init__(self):
        self.asked = []

    def codes(self, words):
        self.asked += words
        found = [hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=10).digest() for word in words]
        numbers = np.array([list(digest) for digest in found], np.uint8).reshape(-1, 10)
        return numbers[:, :9].copy().view(np.int8), numbers[:, 9] % 8


def scanner_of(engine_in_test, table=None):
    return engine_in_test.Scanner(*OPTIONS, table or Table())


def learner_of(engine_in_test, reduction, half_life=0.0):
    learner = engine_in_test.AdaptiveLearner(0.5, False, 5.0, 0.5, half_life, 1.0, reduction=reduction)
    learner.order, learner.sets = ORDER, SETS
    return learner


def stream(reduction, n, seed=0):
    """Messages, targets and weights; classes come one after the other."""
    generator = np.random.default_rng(seed)
    words = ["free", "prize", "call", "noon", "see", "you", "吃", "!", "42", "lunch", "agenda", "né"]
    texts, y = [], []
    for i in range(n):
        number = int(generator.integers(2 if reduction == "two" else min(4, 1 + i // 3)))
        own = generator.choice(words[3 * (number % 4) :][:4], 3)
        texts.append(" ".join([*own, *generator.choice(words, int(generator.integers(4)))]))
        y.append(float(number))
    return texts, np.array(y), generator.choice([1.0, 2.0, 0.0], n, p=[0.8, 0.15, 0.05])


def expected_vector(text, table):
    """The sum of the vectors of distinct words, divided by its norm."""
    found = []
    for token in tokenize(text.lower().replace("4", "0").replace("2", "0")):
        characters = getattr(token, "characters", [])
        found += [*characters] if characters and not token.is_word else [str(token), *characters]
    codes, shifts = table.codes([*dict.fromkeys(found)])
    total = (codes.astype(float) * 2.0 ** shifts[:, np.newaxis].astype(float)).sum(axis=0)
    return total / max(np.linalg.norm(total), 1e-300)


@both_engines
def test_a_message_has_the_vector_of_its_words(engine_in_test):
    scanner, table = scanner_of(engine_in_test), Table()
    for text in TEXTS * 2:
        assert scanner.row(text, True).vector == pytest.approx(expected_vector(text, table), abs=1e-6)
    for row, text in zip(scanner.rows(TEXTS, True), TEXTS, strict=True):
        assert row.vector == pytest.approx(expected_vector(text, table), abs=1e-6)
    features = scanner.transform_one(TEXTS[0])
    numbers = [features[scanner.arguments[5] + i] for i in range(9)]
    assert numbers == pytest.approx(expected_vector(TEXTS[0], table), abs=1e-6)


@needs_compiled
@given(st.lists(st.text(max_size=40), max_size=8))
def test_texts_of_any_kind_have_the_same_vectors_in_both_engines(texts):
    compiled, pure = scanner_of(compiled_engine), scanner_of(pure_engine)
    many = list(compiled.rows(texts, True))
    for text, row in zip(texts, many, strict=True):
        assert row.vector == pytest.approx(pure.row(text, True).vector, abs=1e-6)
        assert np.array_equal(compiled.row(text, True).vector, row.vector)


def of_fields(engine, table, fields):
    """The scanner of fields, each with whether it asks for vectors."""
    first, *others = [(*OF_FIELDS[kind], (), table if asks else None) for kind, asks in fields]
    return engine.Scanner(*first[:-2], tuple((f"{i}", other) for i, other in enumerate(others)), first[-1])


OF_FIELDS = {
    "words": OPTIONS[:-1],
    "letters": TextFeatures(analyzer="char", ngram_range=(2, 3)).scanner.arguments[:-2],
    "tokens": TextFeatures(tokenizer=str.split).scanner.arguments[:-2],
}


@needs_compiled
@given(
    st.lists(st.tuples(st.sampled_from(["words", "tokens", "letters"]), st.booleans()), min_size=2, max_size=4),
    st.lists(st.lists(st.sampled_from([*TEXTS, "see " * 300, "né \ud800"]), min_size=4, max_size=4), max_size=5),
)
def test_the_vector_of_fields_is_the_same_in_any_order(fields, messages):
    fields = [(kind, asks and kind != "letters") for kind, asks in fields]
    table = Table()
    values = [[x.split() if kind == "tokens" else x for (kind, _), x in zip(fields, m, strict=False)] for m in messages]
    scanner, pure = of_fields(compiled_engine, table, fields), of_fields(pure_engine, table, fields)
    assert [as_dict(row) for row in scanner.rows(values, True)] == [as_dict(row) for row in pure.rows(values, True)]
    vectors = [row.vector.tolist() for row in scanner.rows(values, True)]
    for vector, value in zip(vectors, values, strict=True):
        assert vector == pytest.approx(pure.row(value, True).vector.tolist(), abs=1e-6)
    for order in itertools.permutations(range(len(fields))):
        other = of_fields(compiled_engine, table, [fields[i] for i in order])
        reordered = [tuple(value[i] for i in order) for value in values]
        assert [row.vector.tolist() for row in other.rows(reordered, True)] == vectors
        assert [other.row(value, True).vector.tolist() for value in reordered] == vectors


@needs_compiled
def test_a_word_is_looked_up_once_while_there_is_room():
    table = Table()
    scanner = scanner_of(compiled_engine, table)
    for _ in range(3):
        scanner.row("free prize free", True)
        list(scanner.rows(["free noon", "prize noon"], True))
    assert sorted(table.asked) == ["free", "noon", "prize"]
    strange = [" ".join(f"w{i}x{j}" for j in range(2_000)) for i in range(60)]  # more words than are kept
    strange = [text.translate(str.maketrans("0123456789", "abcdefghij")) for text in strange]
    first = [row.vector for row in scanner.rows(strange, True)]
    assert len(table.asked) > 120_000 and scanner.row("free prize free", True).vector.any()
    assert all(map(np.array_equal, first, [row.vector for row in scanner.rows(strange, True)]))


@needs_compiled
def test_what_a_table_raises_reaches_the_caller():
    class Broken(Table):
        def codes(self, words):
            if "noon" in words:
                raise OSError("no table today")
            return super().codes(words)

    scanner, learner = scanner_of(compiled_engine, Broken()), learner_of(compiled_engine, "two")
    learner.learn(scanner, "free prize", 1.0, 1.0)
    before = learner.get_state()
    for call in (
        lambda: learner.margins(scanner, "at noon"),
        lambda: learner.learn(scanner, "at noon", 1.0, 1.0),
        lambda: learner.predict_learn_many(scanner, ["at noon"], np.ones(1)),
        lambda: learner.predict_learn_many(scanner.get_threaded(2), ["at noon" + " x" * 40_000] * 3),
        lambda: scanner.transform_many(["at noon"]),
    ):
        with pytest.raises(OSError, match="no table today"):
            call()
        assert same_state(learner, before)
    learner.learn(scanner, "free", 1.0, 1.0)


def softmax(m):
    terms = np.exp(m - m.max())
    return terms / terms.sum()


@both_engines
@pytest.mark.parametrize("reduction", ["two", "ovr"])
def test_the_rule_is_that_of_its_formulas(reduction, engine_in_test):
    """Written down again over dense arrays, from the margins that the rule has without vectors."""
    texts, y, _ = stream(reduction, 150)
    plain, learner = learner_of(engine_in_test, reduction), learner_of(engine_in_test, reduction)
    without, scanner, table = engine_in_test.Scanner(*OPTIONS), scanner_of(engine_in_test), Table()
    mean, n, P, w, A = np.zeros(9), 0, np.eye(9), np.array([1.0, 1.5]), np.zeros((2, 2))
    B = np.zeros((2 if reduction == "two" else 0, 9))
    for text, target in zip(texts, y.astype(int).tolist(), strict=True):
        own = np.array(plain.margins(without, text))
        own = own / 2.0 if reduction == "two" else own
        slope = learner.calibrated[0] * (2.0 if reduction == "two" else 1.0)
        assert slope == pytest.approx(plain.calibrated[0] if reduction == "ovr" else 1.0, rel=1e-6)
        u = expected_vector(text, table)
        x = (u - mean) / max(np.linalg.norm(u - mean), 1e-300)
        joined = w[0] * own + w[1] * (B @ x)
        found = np.array(learner.margins(scanner, text)) * slope
        assert found == pytest.approx(joined * (2.0 if reduction == "two" else 1.0), rel=2e-4, abs=2e-5)
        is_new = target >= len(own)
        if is_new:
            B = np.vstack([B, np.zeros(9)])
            plain.learn(without, text, float(target), 1.0)  # which adds a margin to the others
            beside = None
        else:
            F, p = np.stack([own, B @ x], axis=1), softmax(joined)
            A = 0.999 * A + (F - p @ F).T @ np.diag(p) @ (F - p @ F)
            w = w - np.linalg.solve(A + np.diag([10.0, 1.0]), p @ F - F[target])
            w, beside = np.clip(w, 0.0, 1e3), own
            plain.learn(without, text, float(target), 1.0)
        learner.learn(scanner, text, float(target), 1.0)
        n += 1
        mean = mean + (u - mean) / (n + 1)
        if reduction == "ovr" and beside is None:
            state = learner.get_state()  # the margin that a new class begins with is the rule's
            B, P = state["vector_weights"], full(state["vector_covariance"])
            continue
        p = softmax(B @ x + (0.5 * w[0] * beside if reduction == "ovr" else 0.0))
        if 1.0 - p[target] < 0.3:
            continue
        f, h = max(len(B), 2) / 8.0, p[target] * (1.0 - p[target])
        k = f * P @ x / (1.0 + f * h * x @ P @ x)
        P = P - h * np.outer(k, P @ x)
        B = B + np.outer((np.arange(len(B)) == target) - p, k)
    state = learner.get_state()
    weights = state["vector_weights"]
    assert (weights if reduction == "ovr" else np.array([-weights, weights])) == pytest.approx(B, rel=1e-3, abs=1e-4)
    assert full(state["vector_covariance"]) == pytest.approx(P, rel=1e-3, abs=1e-5)
    assert (state["joint_weights"], state["n_vectors"]) == (pytest.approx(w, rel=1e-4), n)


@needs_compiled
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("half_life", [0.0, 30.0])
def test_both_engines_learn_the_same(reduction, half_life):
    texts, y, weights = stream(reduction, 200)
    made = [(learner_of(e, reduction, half_life), scanner_of(e)) for e in (compiled_engine, pure_engine)]
    for part in (slice(0, 90), slice(90, 200)):
        found = [each.predict_learn_many(s, texts[part], y[part], weights[part]) for each, s in made]
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-3, abs=1e-4)
        assert found[0][1] == pytest.approx(found[1][1], rel=1e-3, abs=1e-4)
        for learner, _ in made:
            learner.forget(0.25)
    states = [learner.get_state() for learner, _ in made]
    for name in ("vector_mean", "vector_weights", "joint_weights", "n_vectors", "vector_evidence"):
        assert states[0][name] == pytest.approx(states[1][name], rel=1e-2, abs=1e-3), name
    for (learner, scanner), state in zip(made, states[::-1], strict=True):  # each goes on with the other's state
        learner.set_state(state)
        learner.declaration.check(state, columns=learner.n_columns)
        expected = made[0][0].margins(made[0][1], texts[0])
        assert learner.margins(scanner, texts[0]) == pytest.approx(np.array(expected), rel=1e-3, abs=1e-4)


@both_engines
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_one_by_one_many_and_threads_are_the_same(reduction, engine_in_test):
    texts, y, weights = stream(reduction, 120)
    texts = [text + " x" * (5 if engine_in_test is pure_engine else 500) for text in texts]
    one, many, threaded = (learner_of(engine_in_test, reduction, 40.0) for _ in range(3))
    scanner = scanner_of(engine_in_test)
    expected = []
    for text, target, weight in zip(texts, y, weights, strict=True):
        expected.append(one.margins(scanner, text))
        one.learn(scanner, text, target, weight)
    margins, _ = many.predict_learn_many(scanner, texts, y, weights)
    assert all(np.array_equal(its, row[: len(its)]) for its, row in zip(expected, margins, strict=True))
    threaded.predict_learn_many(scanner_of(engine_in_test).get_threaded(3), texts, y, weights)
    assert same_state(one, many) and same_state(one, threaded)
    found, _ = threaded.predict_learn_many(scanner_of(engine_in_test).get_threaded(3), texts)
    assert np.array_equal(found, many.predict_learn_many(scanner, texts)[0])


@both_engines
def test_without_words_there_is_nothing_to_learn(engine_in_test):
    class Empty(Table):
        def codes(self, words):
            return np.zeros((len(words), 9), np.int8), np.zeros(len(words), np.uint8)

    texts, y, weights = stream("ovr", 60)
    learner, plain = learner_of(engine_in_test, "ovr"), learner_of(engine_in_test, "ovr")
    found = learner.predict_learn_many(scanner_of(engine_in_test, Empty()), texts, y, weights)[0]
    expected = plain.predict_learn_many(engine_in_test.Scanner(*OPTIONS), texts, y, weights)[0]
    decided = np.isfinite(found).sum(axis=1) > 1
    assert np.array_equal(found[decided].argmax(axis=1), expected[decided].argmax(axis=1))
    state = learner.get_state()
    assert state["n_vectors"] == 0.0 and not state["vector_weights"].any() and not state["vector_mean"].any()
    rest = {name: value for name, value in state.items() if name in plain.get_state()}
    rest |= {name: value for name, value in plain.get_state().items() if name.startswith("confidence")}
    assert same_state(plain, rest)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_state_with_a_covariance_of_no_vector_is_refused(reduction):
    """Its numbers would be written where there is no memory for them."""
    state = learner_of(pure_engine, reduction).get_state() | DenseBlock.of(reduction, 3, 2).get_state()
    n_classes = {} if reduction == "two" else {"columns": 2}
    for mean, covariance in ((0, 5), (0, 1), (3, 5), (3, 7), (2, 6)):
        weights = np.zeros(mean) if reduction in ("two", "ordinal") else np.zeros((2, mean))
        forged = state | {"vector_mean": np.zeros(mean), "vector_covariance": np.zeros(covariance)}
        with pytest.raises(ValueError, match="the covariance is none of the vectors"):
            declared(reduction).check(of_two(forged, reduction) | {"vector_weights": weights}, **n_classes)


def of_two(state, reduction):
    """The state of a learner that knows two classes."""
    made = dict(state)
    for name in state:
        if reduction != "two" and name in ("class_counts", "vector_counts"):
            made[name] = np.zeros(2)
        if reduction != "two" and name in ("intercepts", "intercept_squares", "offsets", "offset_squares"):
            made[name] = np.zeros(2 - (reduction == "ordinal"))
        if name == "order":
            made[name] = np.arange(2)
    return made
