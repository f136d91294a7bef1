import importlib.util
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import examples, pairs
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from stream_pegasos.streams import LabelFormat

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


labels = st.lists(st.integers(-9, 9), max_size=4, unique=True)


@given(st.lists(labels, min_size=1), st.booleans())
def test_vw_reads_several_labels_as_lists_of_json(rows, has_names):
    rows = [[f"topic{label}" for label in row] if has_names else row for row in rows]
    lines = "".join(f"{','.join(map(str, row))} | a\n" for row in rows).encode()
    several = {"labels": LabelFormat(several=True)}
    assert [y for _, y in pairs(lines, "vw", **several)] == [tuple(row) for row in rows]
    # Vowpal Wabbit learns nothing from a line without a label, and neither does what need not have one.
    assert [y for _, y in pairs(lines, "vw", unlabelled=True, **several)] == [tuple(row) or None for row in rows]
    expected = [tuple(row) if len(row) > 1 else row[0] if row else None for row in rows]
    assert [y for _, y in pairs(lines, "vw", unlabelled=True)] == expected


LINES = ["1 2 .5 't |a x", "1 2 .5 t|a x", "7 3 |a x", "  7 |a x", "-1 |a x", "1 2 3|a x", "1 '|a x", "2 .5 -1e-3 |a x"]


@pytest.mark.skipif(importlib.util.find_spec("vowpalwabbit") is None, reason="Vowpal Wabbit is not installed")
@pytest.mark.parametrize("line", LINES)
def test_label_weight_and_tag_are_those_of_vowpal_wabbit(line):
    from vowpalwabbit import pyvw

    with pyvw.Workspace(quiet=True) as workspace:
        parsed = workspace.parse(line)
        label = parsed.get_label()
        expected = label.label, label.weight, parsed.get_tag()
        workspace.finish_example(parsed)
    [example], _ = examples(line.encode(), "vw")
    assert (example.y, example.w, example.id or "") == pytest.approx(expected)


@pytest.mark.skipif(importlib.util.find_spec("vowpalwabbit") is None, reason="Vowpal Wabbit is not installed")
@pytest.mark.parametrize("line", ["1,2 | a", " 3 | a", " | a", "| a", "0,4,2 't | a", "\t4,1 | a"])
def test_several_labels_are_those_of_vowpal_wabbit(line):
    from vowpalwabbit import pyvw

    with pyvw.Workspace("--multilabel_oaa 5", quiet=True) as workspace:
        parsed = workspace.parse(line)
        expected = [int(each) for each in str(parsed.get_label()).split(",") if each]
        workspace.finish_example(parsed)
    [(_, y)] = pairs(line.encode(), "vw", labels=LabelFormat(several=True))
    assert sorted(y) == sorted(expected)


@pytest.mark.parametrize("line", ["shared| x", "1 2 shared| x", "'0:1:.5 | x", "1 '12:30| x", "7 1:30| x"])
def test_a_tag_may_look_like_what_is_no_label(line):
    [example], bad = examples(line.encode(), "vw", unlabelled=True)
    assert bad == [] and example.id == line.partition("|")[0].split()[-1].strip("'")


# svmlight


@given(st.lists(labels, min_size=1))
def test_svmlight_reads_the_several_labels_that_scikit_learn_reads(rows):
    """A line without a label, as scikit-learn writes one, has none of them."""
    targets = np.array([[column in row for column in range(10)] for row in rows])
    file = io.BytesIO()
    dump_svmlight_file(np.ones((len(rows), 1)), targets, file, multilabel=True)
    data = file.getvalue()
    file.seek(0)
    _, expected = load_svmlight_file(file, multilabel=True)
    assert [y for _, y in pairs(data, "svmlight", labels=LabelFormat(several=True))] == expected


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
