"""Names of a few columns, found without naming all."""

import math

import pytest

from stream_pegasos import Category, HashedBagOfWords, MailFeatures, Number, TextClassifier, TextFeatures
from stream_pegasos.streams import synthetic

LONG = " ".join(f"word{i} shared, and 漢字かな {'x' * (i % 7)}" for i in range(60))
UNION = TextFeatures(on="text") + TextFeatures(on="subject", ngram_range=(1, 3)) + Category(on="sender")


@pytest.mark.parametrize(
    ("features", "x"),
    [
        (TextFeatures(), LONG),
        (TextFeatures(analyzer="char_wb", ngram_range=(2, 3)), LONG),
        (TextFeatures(ngram_range=(1, 9)), LONG),
        (TextFeatures(), ""),
        (UNION + Number(on="size"), {"text": LONG, "subject": "\n a b\n\nc", "sender": "ann", "size": 7}),
        (UNION, {"text": None, "subject": "a"}),
    ],
)
def test_a_column_is_named_by_what_stands_there(features, x):
    prepared = features.prepare(x)
    names = {}
    for name, column, _ in features.contents(prepared):
        names.setdefault(column, set()).add(name)
    for columns in ([*names][::7], [*names]):  # a long n-gram may be among all alone
        found = features.names(prepared, columns)
        assert found.keys() == {*columns}
        assert all(name in names[column] for column, name in found.items())


@pytest.mark.parametrize("text", [HashedBagOfWords(on="t"), TextFeatures(on="t")])
def test_contents_are_the_values_of_the_features(text):
    """Beside a text whose values have signs, those of fields have, too."""
    features = text + Category(on="c") + Number(on="n")
    for i in range(30):
        x = {"t": f"word{i} word{i} free", "c": f"who{i}", "n": i}
        sums = {}
        for _, column, value in features.contents(features.prepare(x)):
            sums[column] = sums.get(column, 0.0) + value
        norm = math.sqrt(sum(value * value for value in sums.values()))
        assert features.transform_one(x) == pytest.approx({j: value / norm for j, value in sums.items() if value})


def test_the_heaviest_words_are_those_of_the_whole_explanation():
    model = TextClassifier()
    model.learn_many(*map(list, zip(*synthetic(n=300, seed=6), strict=True)))
    for text, _ in synthetic(n=50, seed=7):
        whole, few = model.explain_ngrams_one(text), model.explain_ngrams_one(text, limit=3)
        whole.pop("(intercept)", None)
        few.pop("(intercept)", None)
        assert [*few][:3] == [*whole][:3]
        assert few == pytest.approx({name: whole[name] for name in few})


def test_names_of_a_mail_are_found():
    pytest.importorskip("lxml")
    features = MailFeatures()
    prepared = features.prepare(f"Subject: prize\nReceived: from a.example by b.example\n\n{LONG}")
    contents = features.contents(prepared)
    assert features.names(prepared, {column for _, column, _ in contents}).keys() == {c for _, c, _ in contents}
