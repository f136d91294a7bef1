import io

from hypothesis import given
from hypothesis import strategies as st
from reading import examples, pairs
from sklearn.datasets import load_svmlight_file

# Vowpal Wabbit


def test_namespaces_that_no_field_is_made_of_are_told():
    unread = []
    examples(b"1 |a x |b y:2\n", "vw", fields=["a"], on_unread_field=unread.append)
    assert unread == ["b"]


names = st.text(st.characters(exclude_characters=":| \t\r\n", exclude_categories=["Cs"]), min_size=1)
finite = st.floats(-1e30, 1e30)


@given(st.dictionaries(st.tuples(names, names), finite, max_size=5))
def test_vw_round_trip(features):
    sections = "".join(f" |{space} {name}:{value!r}" for (space, name), value in features.items())
    ((x, y),) = pairs(f"1 {sections or '|'}".encode(), "vw")
    assert x == {f"{space}^{name}": value for (space, name), value in features.items()}
    assert y == 1


# svmlight


@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.dictionaries(st.integers(1, 1000), finite)), min_size=1))
def test_svmlight_reads_what_scikit_learn_reads(rows):
    lines = [
        f"{y:+d} qid:{i} " + " ".join(f"{k}:{v!r}" for k, v in sorted(x.items())) + " # note"
        for i, (y, x) in enumerate(rows)
    ]
    data = "\n".join(["# a comment", *lines]).encode()
    matrix, y = load_svmlight_file(io.BytesIO(data), zero_based=True, n_features=1001)
    found = pairs(data, "svmlight")
    assert [label for _, label in found] == y.tolist()
    for (x, _), row in zip(found, matrix.toarray(), strict=True):
        assert [x.get(k, 0.0) for k in range(1001)] == row.tolist()


def test_svmlight_huge_finite_values():
    assert pairs(b"1 1:1e308 2:1e308", "svmlight") == [({1: 1e308, 2: 1e308}, 1)]
