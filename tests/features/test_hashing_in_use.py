"""The interface of the bag of words, and its place in River."""

import copy
import pickle
import random

import numpy as np
import pandas as pd
import pytest
from peer import OPTIONS, SAMPLES, assert_same
from river import checks, compose, linear_model, naive_bayes, optim, preprocessing
from scipy import sparse

from stream_pegasos import HashedBagOfWords

# --- the interface ----------------------------------------------------------------------------------------------------


def test_tokens_and_index_explain_the_columns():
    for options in OPTIONS:
        bag = HashedBagOfWords(**options | {"norm": None, "binary": False})
        for text in SAMPLES[:11]:
            counts = {}
            for token in bag.tokens(text):
                index, sign = bag.index(token)
                assert 0 <= index < bag.n_features and sign in (1.0, -1.0)
                counts[index] = counts.get(index, 0.0) + sign
            assert counts == bag.transform_one(text)


def test_tokens_come_in_their_order():
    assert HashedBagOfWords().tokens("To be, or not to be") == ["to", "be", "or", "not", "to", "be"]
    assert HashedBagOfWords(ngram_range=(1, 2), stop_words=["or"]).tokens("To be or") == ["to", "be", "to be"]
    assert HashedBagOfWords(analyzer="char", ngram_range=(2, 2)).tokens("A  b") == ["a ", " b"]
    assert HashedBagOfWords(analyzer="char_wb", ngram_range=(3, 3)).tokens("ab c") == [" ab", "ab ", " c "]
    assert HashedBagOfWords(token_pattern=r"\w+|[^\w\s]").tokens("a!! b") == ["a", "!", "!", "b"]


@pytest.mark.parametrize(
    "kind", [list, tuple, iter, np.array, pd.Series, lambda x: (t for t in x), lambda x: dict.fromkeys(x)]
)
def test_any_iterable_of_texts(kind):
    some = ["one two", "three", "", "é four"]
    given = kind(some)
    if isinstance(given, dict):
        given = given.keys()
    expected = HashedBagOfWords().transform_many(some)
    assert_same(HashedBagOfWords().transform_many(given), expected)


def test_nothing_gives_a_matrix_of_no_rows():
    for options in ({}, {"analyzer": "char"}, {"tokenizer": str.split}):
        matrix = HashedBagOfWords(n_features=50, **options).transform_many([])
        assert sparse.isspmatrix_csr(matrix) and matrix.shape == (0, 50)
        assert HashedBagOfWords(n_features=50, **options).transform_many(["", " "]).nnz == (
            1 if options.get("analyzer") == "char" else 0
        )


def test_results_are_the_callers_own():
    """Whatever is done to them, the next ones are right."""
    bag = HashedBagOfWords(norm=None)
    text = "one two"
    first = bag.transform_one(text)
    expected = dict(first)
    first.clear()
    second = bag.transform_one(text)
    assert second == expected
    second[5] = 7.0
    assert bag.transform_one(text) == expected
    matrix = bag.transform_many([text])
    matrix.data[:] = 0.0
    assert bag.transform_one(text) == expected
    assert bag.transform_many([text]).data.tolist() != [0.0, 0.0]


@pytest.mark.parametrize(
    "bad", [None, 5, 1.5, b"text", ["text"], {"text": "x"}, ("a",), np.array("x"), float("nan")], ids=repr
)
@pytest.mark.parametrize(
    "options", [{}, {"analyzer": "char"}, {"tokenizer": str.split}, {"strip_accents": "ascii"}], ids=repr
)
def test_a_text_is_a_str(options, bad):
    bag = HashedBagOfWords(**options)
    before = pickle.dumps(bag) if "tokenizer" not in options else None
    with pytest.raises(TypeError, match="text must be a str"):
        bag.transform_one(bad)
    with pytest.raises(TypeError, match="text must be a str"):
        bag.tokens(bad)
    for some in ([bad], ["x", bad], [bad, "x"]):
        with pytest.raises(TypeError, match="text must be a str"):
            bag.transform_many(some)
    assert before is None or pickle.dumps(bag) == before
    assert bag.transform_one("one two") == HashedBagOfWords(**options).transform_one("one two")


def test_a_single_text_is_not_many():
    for single in ("text", b"text", {"text": "x"}):
        with pytest.raises(TypeError, match="sequence of texts"):
            HashedBagOfWords().transform_many(single)


def test_on_takes_one_field():
    bag, plain = HashedBagOfWords(on="body"), HashedBagOfWords()
    x = {"body": "one two", "title": "three", "n": 5}
    before = dict(x)
    assert bag.transform_one(x) == plain.transform_one("one two")
    assert bag.tokens(x) == ["one", "two"]
    assert_same(bag.transform_many([x, x]), plain.transform_many(["one two"] * 2))
    frame = pd.DataFrame([x, x | {"body": "other"}], index=[7, 8])
    assert_same(bag.transform_many(frame), plain.transform_many(["one two", "other"]))
    assert x == before
    for bad in ({"title": "x"}, {}):
        with pytest.raises(ValueError, match="'body'"):
            bag.transform_one(bad)
    assert bag.transform_one("one two") == plain.transform_one("one two")  # a text by itself is taken, too
    with pytest.raises(TypeError, match="'body'"):
        bag.transform_one(["text"])
    with pytest.raises(TypeError, match="str"):
        bag.transform_one({"body": None})
    with pytest.raises((KeyError, ValueError), match="body"):
        bag.transform_many(pd.DataFrame({"title": ["x"]}))
    series = HashedBagOfWords(on="body", analyzer="char", strip_accents="unicode")
    assert series.transform_one({"body": "é"}) == HashedBagOfWords(analyzer="char").transform_one("e")


class Failing(Exception):
    pass


@pytest.mark.parametrize("name", ["tokenizer", "preprocessor", "strip_accents"])
@pytest.mark.parametrize(
    "error", [Failing, OSError, StopIteration, TypeError, LookupError, UnicodeError, RecursionError]
)
def test_what_a_function_raises_refuses_the_text(name, error):
    """As a ValueError that names both, or as it is if it is one."""

    def fail(_):
        raise error("of mine")

    features = HashedBagOfWords(**{name: fail})
    for call, x in ((features.transform_one, "text"), (features.tokens, "text"), (features.transform_many, ["text"])):
        with pytest.raises((TypeError, ValueError), match="of mine") as raised:
            call(x)
        if not issubclass(error, (TypeError, ValueError)):
            assert str(raised.value).startswith(f"{'the ' * (name[0] != 's')}{name} failed: {error.__name__}")
            assert type(raised.value.__cause__) is error
            assert isinstance(raised.value, error) or issubclass(error, (OSError, StopIteration))


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_comes_through_a_function(error):
    def fail(_):
        raise error

    with pytest.raises(error):
        HashedBagOfWords(tokenizer=fail).transform_one("text")


def test_what_a_function_gives_is_checked():
    for options in (
        {"tokenizer": lambda text: [1, 2]},
        {"tokenizer": lambda text: None},
        {"tokenizer": lambda text: [b"x"], "ngram_range": (1, 2)},
        {"preprocessor": lambda text: None},
        {"preprocessor": lambda text: b"bytes"},
        {"preprocessor": lambda text: None, "token_pattern": "x"},
        {"strip_accents": lambda text: 5, "analyzer": "char"},
    ):
        with pytest.raises(TypeError):
            HashedBagOfWords(**options).transform_one("text")
        with pytest.raises(TypeError):
            HashedBagOfWords(**options).transform_many(["text"])


IMPOSSIBLE = [
    *({"n_features": bad} for bad in (0, 2**31, 1.0, "10", True)),
    *({"ngram_range": bad} for bad in ((0, 1), (2, 1), (1, 1.5), (1,), None, ("1", "2"), (1, 10**6))),
    *({"prefix_length": bad} for bad in (-1, 1001, 1.0, True)),
    *({"analyzer": "char", "prefix_length": bad} for bad in (1, 4)),
    {"analyzer": "char_wb", "boundaries": True},
    *(
        {name: bad}
        for name in ("lowercase", "binary", "alternate_sign", "mask_digits", "boundaries")
        for bad in ("no", 1, 0.0)
    ),
    *({"analyzer": bad} for bad in ("words", None, str.split)),
    *({"norm": bad} for bad in ("l3", 2, [])),
    *({"strip_accents": bad} for bad in ("utf8", True)),
    *({"stop_words": bad} for bad in ("german", [1], [b"the"], 5, {"a": 1, 2: 3})),
    *({"token_pattern": bad} for bad in ("(", "(a)(b)", "(?P<x>a)(b)", None, b"x")),
    *({"preprocessor": bad} for bad in ("lower", 1, [])),
    *({"tokenizer": bad} for bad in ("split", 1, [])),
    *({"on": bad} for bad in ([], {"a": 1})),
]


@pytest.mark.parametrize("parameters", IMPOSSIBLE, ids=repr)
def test_impossible_parameters_are_refused(parameters):
    *_, name = parameters
    with pytest.raises((TypeError, ValueError), match=name.replace("stop_words", "stop.words?")):
        HashedBagOfWords(**parameters)


def test_the_constructor_changes_nothing_it_is_given():
    stop_words, ngram_range = ["to", "be"], [1, 2]
    bag = HashedBagOfWords(stop_words=stop_words, ngram_range=ngram_range)
    assert bag.stop_words is stop_words and bag.ngram_range is ngram_range
    assert stop_words == ["to", "be"] and ngram_range == [1, 2]
    stop_words.append("or")
    assert bag.tokens("to be or not") == ["or", "not", "or not"]
    assert bag.transform_one("or") != {}


COPIES = {
    "pickle": lambda bag: pickle.loads(pickle.dumps(bag)),
    "deepcopy": copy.deepcopy,
    "clone": lambda bag: bag.clone(),
    "clone with attributes": lambda bag: bag.clone(include_attributes=True),
}


@pytest.mark.parametrize("copied", COPIES)
def test_copies_do_the_same(copied):
    for options in OPTIONS:
        bag = HashedBagOfWords(**options)
        if copied == "pickle" and any(callable(value) and "<lambda>" in repr(value) for value in options.values()):
            continue
        other = COPIES[copied](bag)
        assert other.transform_one(SAMPLES[5]) == bag.transform_one(SAMPLES[5])
        assert repr(other) == repr(bag)


def test_memory_does_not_grow_with_what_went_through():
    bag = HashedBagOfWords()
    for i in range(100):
        bag.transform_one(f"some words {i}")
    before = bag._raw_memory_usage
    for i in range(10_000):
        bag.transform_one(f"other words {i}")
    assert bag._raw_memory_usage <= before + 1000


# --- River ------------------------------------------------------------------------------------------------------------


def river_texts(bag):
    """A stream for River's checks: texts, as a bag wants them, beside fields that it does not."""
    generator = random.Random(3)
    words = ["cheap", "pills", "see", "you", "at", "lunch", "noon", "buy", "now", "é", "漢字"]
    rows = []
    for _ in range(200):
        text = " ".join(generator.choices(words, k=generator.randrange(8)))
        rows.append((text if bag.on is None else {"text": text, "a": 1.0, "b": 2.0, "c": 3.0}, "cheap" in text))
    return rows


RIVER_BAGS = [
    HashedBagOfWords(),
    HashedBagOfWords(on="text"),
    HashedBagOfWords(n_features=100, ngram_range=(1, 2), analyzer="char_wb", stop_words=("you", "at"), on="text"),
]


# Fields of an example are no features here, the words are; and the result is a sparse matrix, as of texts it has to be,
# where these want a data frame, or numbers in one.
PASSED_OVER = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
    "check_transform_many_matches_transform_one",
    "check_learn_many_matches_learn_one",
}
ABOUT_DICTS = {"check_shuffle_features_no_impact", "check_no_state_aliasing_with_input"}


def river_checks():
    """River has no texts of its own for its checks of transformers; these give it some."""
    for i, bag in enumerate(RIVER_BAGS[::2]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(checks, "_yield_datasets", lambda model, scale=1: [river_texts(model)])
            for one in checks.yield_checks(bag):
                if one.__name__ not in PASSED_OVER | (ABOUT_DICTS if bag.on is None else set()):
                    yield pytest.param(bag, one, id=f"{i}-{one.__name__}")


@pytest.mark.parametrize("bag, one_check", list(river_checks()))
def test_rivers_checks(bag, one_check):
    assert not bag._unit_test_skips()
    one_check(bag.clone())


def test_in_pipelines_and_unions():
    rows = [(x["text"], y) for x, y in river_texts(HashedBagOfWords(on="text"))]
    for model in (
        HashedBagOfWords() | linear_model.LogisticRegression(optim.SGD(1.0)),
        HashedBagOfWords(alternate_sign=False, norm=None) | naive_bayes.MultinomialNB(),
        (HashedBagOfWords() + HashedBagOfWords(analyzer="char_wb", ngram_range=(2, 3)))
        | linear_model.LogisticRegression(optim.SGD(1.0)),
        compose.FuncTransformer(str.strip) | HashedBagOfWords() | linear_model.LogisticRegression(optim.SGD(1.0)),
    ):
        for text, y in rows:
            model.predict_one(text)
            model.learn_one(text, y)
        hits = sum(model.predict_one(text) == y for text, y in rows)
        assert hits > 0.9 * len(rows)
    fields = (compose.Select("a") | preprocessing.StandardScaler()) + HashedBagOfWords(on="text", n_features=50)
    x = {"text": "one two", "a": 1.0}
    fields.learn_one(x)
    assert fields.transform_one(x) == {"a": 0.0, **HashedBagOfWords(n_features=50).transform_one("one two")}
