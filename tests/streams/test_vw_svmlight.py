import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, examples, pairs
from sklearn.datasets import load_svmlight_file

from stream_pegasos.streams import Example

# Vowpal Wabbit


@pytest.mark.parametrize(
    ("line", "x", "y", "w", "tag"),
    [
        ("1 |f a b:2 c:.5", {"f^a": 1, "f^b": 2, "f^c": 0.5}, 1, 1, None),
        ("-1 2.5 'tag |a x |b:3 x y:2", {"a^x": 1, "b^x": 3, "b^y": 6}, -1, 2.5, "tag"),
        ("+1 0 tag| x", {"x": 1}, 1, 0, "tag"),
        ("1.0 | x x y:1 y:2", {"x": 2, "y": 3}, 1, 1, None),
        ("spam |\tx\t y", {"x": 1, "y": 1}, "spam", 1, None),
        ("0.5 |", {}, "0.5", 1, None),
        ("| x", {"x": 1}, None, 1, None),
        ("'id | x", {"x": 1}, None, 1, "id"),
        ("1|x y", {"x^y": 1}, None, 1, "1"),
        ("1 |:2 x |y z", {"x": 2, "y^z": 1}, 1, 1, None),
        ("0 |f a|g b", {"f^a": 1, "g^b": 1}, 0, 1, None),
        ("1 |f é\u00a0:1 \u2028", {"f^é\u00a0": 1, "f^\u2028": 1}, 1, 1, None),
    ],
)
def test_vw(line, x, y, w, tag):
    found, bad = examples(line.encode() + b"\r\n", "vw", unlabelled=True)
    assert (found, bad) == ([Example(x, y, w, 1, tag)], [])
    assert type(found[0].y) is type(y)


def test_namespaces_of_vw_are_fields():
    lines = b"1 'tag |subject win a prize |n:2 amount:3.5 count |body see |subject now\n0 |body noon\n0 |other x:1\n"
    fields = ["subject", "body", "n.amount", "n"]
    unread = []
    found, bad = examples(lines, "vw", fields=fields, on_unread_field=unread.append)
    assert [(each.x, each.y, each.id) for each in found] == [
        ({"subject": "win a prize now", "body": "see", "n.amount": "3.5", "n": "amount count"}, 1, "tag"),
        ({"body": "noon"}, 0, None),
    ]
    assert bad == [(3, "no namespace 'subject' or 'body' or 'n.amount' or 'n'; it has other, other.x")]
    assert unread == ["other"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1", "no |"),
        ("1 |a x:nan", "value of feature 'x' is 'nan'"),
        ("1 |a x:inf", "'inf'"),
        ("1 |a x:1e999", "'1e999'"),
        ("1 |a x:1e308 x:1e308", "infinite"),
        ("1 |a x:", "value of feature 'x' is ''"),
        ("1 |a x:1:2", "'1:2'"),
        ("1 |a x:1_0", "'1_0'"),
        ("1 |a http://x", "'//x'"),
        ("1 |a:b x", "weight of namespace 'a' is 'b'"),
        ("1 -1 | x", "negative"),
        ("1 nan | x", "weight is 'nan'"),
        ("nan | x", "label is 'nan'"),
        ("1 1 0.5 | x", "more than"),
    ],
)
def test_vw_bad_lines(line, reason):
    ((number, text),) = bad_lines(line.encode(), "vw", unlabelled=True)
    assert number == 1
    assert reason in text


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


def test_svmlight():
    data = b"1.0 3:1 1:-.5\n\n  # note\n0\n2:7 # unlabelled\n1,2 1:1\n"
    found, bad = examples(data, "svmlight", unlabelled=True)
    assert [(e.x, e.y, e.line) for e in found] == [
        ({3: 1.0, 1: -0.5}, 1, 1),
        ({}, 0, 4),
        ({2: 7.0}, None, 5),
        ({1: 1.0}, "1,2", 6),
    ]
    assert bad == []
    assert bad_lines(data, "svmlight") == [(5, "no label")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 a:1", "'a:1' is not id:value"),
        ("1 5", "'5' is not id:value"),
        ("1 -5:1", "'-5:1' is not id:value"),
        ("1 1_0:1", "'1_0:1' is not id:value"),
        ("1 1:2:3 4", "'2:3'"),
        ("1 1:2:3", "'2:3'"),
        ("1 1:nan", "'nan'"),
        ("1 1:-inf", "'-inf'"),
        ("1 1:1 1:2", "feature 1 occurs twice"),
        ("1 1:", "''"),
        ("inf 1:1", "label is 'inf'"),
        ("1 1:\xff", "'\xff'"),
    ],
)
def test_svmlight_bad_lines(line, reason):
    ((number, text),) = bad_lines(line.encode(), "svmlight")
    assert number == 1
    assert reason in text


def test_svmlight_huge_finite_values():
    assert pairs(b"1 1:1e308 2:1e308", "svmlight") == [({1: 1e308, 2: 1e308}, 1)]
