from collections import Counter

import pytest
from interpreter import run
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from stream_pegasos.streams import synthetic


def test_same_seed_gives_the_same_stream_in_every_process():
    code = """
        import json
        from stream_pegasos.streams import synthetic
        print(json.dumps(list(synthetic(n=500, seed=7))))
    """
    here = [[*row] for row in synthetic(n=500, seed=7)]
    assert run(code, PYTHONHASHSEED="1") == run(code, PYTHONHASHSEED="2") == here


def test_other_seed_gives_another_stream():
    assert list(synthetic(n=20, seed=1)) != list(synthetic(n=20, seed=2))


def test_labels_and_sizes():
    stream = list(synthetic())
    labels = Counter(label for _, label in stream)
    assert set(labels) == {"ham", "spam"}
    assert 0.23 < labels["spam"] / len(stream) < 0.27
    assert len(stream) == 20_000
    assert stream[0][1] == "ham"
    assert all(text for text, _ in stream)
    assert [list(synthetic(n=n)) == [] for n in (0, 1)] == [True, False]


def test_negative_length_is_refused_at_the_call():
    with pytest.raises(ValueError, match="-1"):
        synthetic(n=-1)


@pytest.mark.parametrize(("label", "share"), [("spam", 0.4), ("ham", 0.05)])
def test_vocabulary_changes_half_way(label, share):
    stream = list(synthetic(seed=3))

    def frequent(half):
        words = (word for text, y in half if y == label for word in text.lower().split())
        counts = Counter(word for word in words if not any(map(str.isdigit, word)))
        return {word for word, n in counts.items() if n >= 20}

    before, after = frequent(stream[:10_000]), frequent(stream[10_000:])
    assert len(after - before) / len(after) > share
    assert len(before & after) / len(after) > 0.2


def test_not_trivial_but_learnable():
    """A batch learner that knows the labels of each half gets 95 to 99 % of the other messages."""
    stream = list(synthetic())
    for half in (stream[:10_000], stream[10_000:]):
        texts, y = zip(*half, strict=True)
        x = HashingVectorizer(n_features=2**14).transform(texts)
        model = LogisticRegression(C=10, tol=0.01).fit(x[:8_000], y[:8_000])
        assert 0.95 < model.score(x[8_000:], y[8_000:]) < 0.99
