import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from stream_pegasos import AdaptiveClassifier, TextClassifier, TextFeatures
from stream_pegasos.features import frames
from stream_pegasos.sklearn import OnlineTextClassifier


def test_what_is_a_frame():
    frame = pd.DataFrame({"a": [1.0]})
    assert frames.is_frame(frame) and frames.is_frame(frame[[]])
    for other in (frame["a"], frame.to_numpy(), [{"a": 1}], {"a": 1}, sparse.eye(2, format="csr"), "a", None):
        assert not frames.is_frame(other)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_two_columns_of_one_name_are_refused(is_sparse):
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"])
    frame = frame.astype(pd.SparseDtype(float, 0.0)) if is_sparse else frame
    for model in (TextClassifier(TextFeatures(on="a")), AdaptiveClassifier()):
        with pytest.raises(ValueError, match="two columns with the name 'a'"):
            model.learn_many(frame, ["x", "y"])


@pytest.mark.parametrize(
    ("package", "kind", "how"), [("polars", "LazyFrame", "collect"), ("pyarrow", "Table", "to_pandas")]
)
def test_frames_that_are_not_taken_say_what_to_pass(package, kind, how):
    module = pytest.importorskip(package)
    frame = module.LazyFrame({"text": ["a"]}) if kind == "LazyFrame" else module.table({"text": ["a"]})
    for model in (TextClassifier(TextFeatures(on="text")), AdaptiveClassifier(), OnlineTextClassifier()):
        with pytest.raises(TypeError, match=rf"got a {package}.{kind}; pass X.{how}\(\)"):
            (model.fit if hasattr(model, "fit") else model.learn_many)(frame, ["x"])


cells = st.sampled_from([0.0, 1.0, -2.5, 1e300, np.nan])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    names=st.lists(st.one_of(st.text(max_size=2), st.integers(-3, 3)), max_size=4, unique=True),
    n=st.integers(0, 4),
    data=st.data(),
)
def test_rows_of_frames_are_dicts(names, n, data):
    rows = [[data.draw(cells) for _ in names] for _ in range(n)]
    frame = pd.DataFrame(rows, columns=pd.Index(names, dtype=object), index=range(5, 5 + n), dtype=float)
    before = frame.copy()
    expected = [dict(zip(names, row, strict=True)) for row in rows]
    assert repr(frames.frame_to_dicts(frame)) == repr(expected)
    if names:
        thin = frame.astype(pd.SparseDtype(float, 0.0))
        without_zeros = [{name: v for name, v in row.items() if v != 0.0} for row in expected]
        assert repr(frames.frame_to_dicts(thin)) == repr(without_zeros)
    pd.testing.assert_frame_equal(frame, before)


def test_columns_of_other_types_are_left_to_the_check_of_values():
    frame = pd.DataFrame({"a": ["1", 2], "b": [None, 0.5], "c": [True, False]})
    first, _ = frames.frame_to_dicts(frame)
    assert first["a"] == "1" and (first["b"] is None or np.isnan(first["b"]))
    numbers = pd.DataFrame({"c": [True, False], "d": pd.array([1, 2], dtype="Int64"), "e": np.float32([0.5, 3])})
    assert frames.frame_to_dicts(numbers) == [{"c": 1.0, "d": 1.0, "e": 0.5}, {"c": 0.0, "d": 2.0, "e": 3.0}]


def test_results_have_the_index_of_the_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"])
    series = frames.series_like(frame, np.array(["ham", "spam"]))
    assert series.to_dict() == {"x": "ham", "y": "spam"}
    table = frames.frame_like(frame, {False: np.array([0.25, 0.5]), True: np.array([0.75, 0.5])})
    assert table.to_dict() == {False: {"x": 0.25, "y": 0.5}, True: {"x": 0.75, "y": 0.5}}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8, bool])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_arrays_of_a_matrix(dtype, index):
    matrix = sparse.csr_matrix(np.array([[0, 1, 0], [0, 0, 0], [1, 0, 1]], dtype))
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    indptr, indices, data = frames.csr_arrays(matrix)
    assert (indptr.dtype, indices.dtype, data.dtype) == (np.int64, index, np.float64)
    assert (indptr.tolist(), indices.tolist(), data.tolist()) == ([0, 1, 1, 3], [1, 0, 2], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, bool])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("believed", [None, True])
def test_values_of_one_column_in_one_row_are_added_up(dtype, index, believed):
    """As float64, or some would wrap around; whatever the matrix believes of itself; and it stays as it is."""
    indices, indptr = np.array([4, 2, 4, 0, 3, 3, 3], index), np.array([0, 3, 3, 4, 7], index)
    data = np.array([200, 1, 100, 5, 255, 255, 255]).astype(dtype)
    matrix = sparse.csr_array((data, indices, indptr), shape=(4, 5))
    if believed:
        matrix.has_canonical_format = True
    dense = np.zeros((4, 5))
    np.add.at(dense, (np.repeat(np.arange(4), np.diff(indptr)), indices), data.astype(float))
    arrays = frames.merge_duplicates(frames.csr_arrays(matrix), matrix.shape[1])
    assert [array.dtype for array in arrays] == [np.int64, arrays[1].dtype, np.float64]
    assert arrays[1].dtype in (np.int32, np.int64)
    assert arrays[0].tolist() == [0, 2, 2, 3, 4]
    assert sparse.csr_array((arrays[2], arrays[1], arrays[0]), shape=(4, 5)).toarray().tolist() == dense.tolist()
    assert matrix.indices.tolist() == [4, 2, 4, 0, 3, 3, 3] and matrix.indptr.tolist() == [0, 3, 3, 4, 7]
    assert matrix.data.dtype == dtype and matrix.data.tolist() == data.tolist()


def test_no_copy_is_made_of_a_matrix_without_such_columns():
    matrix = sparse.random(20, 30, density=0.2, format="csr", rng=np.random.default_rng(0))
    _, indices, data = frames.merge_duplicates(frames.csr_arrays(matrix), matrix.shape[1])
    assert np.shares_memory(indices, matrix.indices) and np.shares_memory(data, matrix.data)


def test_matrices_that_are_none():
    for array, damage in (
        ("indptr", [0, 1, 2, 10]),
        ("indptr", [0, 3, 1, 3]),
        ("indptr", [1, 1, 2, 3]),
        ("data", [1.0]),
    ):
        matrix = sparse.csr_matrix(np.eye(3))
        setattr(matrix, array, np.array(damage))
        with pytest.raises(ValueError, match="X must be a CSR matrix"):
            frames.csr_arrays(matrix)
    with pytest.raises(TypeError, match="complex"):
        frames.csr_arrays(sparse.csr_matrix(np.array([[1j]])))
    with pytest.raises(ValueError, match="columns"):
        frames.csr_arrays(sparse.csr_matrix(([1.0], [1 << 60], [0, 1]), shape=(1, 1 << 61)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(n=st.integers(0, 6), data=st.data())
def test_some_rows_are_those_rows(n, data):
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    dense = np.arange(1.0, 4 * n + 1).reshape(n, 4) * (np.arange(4 * n).reshape(n, 4) % 3 > 0)
    rows = frames.csr_arrays(sparse.csr_matrix(dense))
    assert frames.n_rows(rows) == n
    indptr, indices, values = frames.some_rows(rows, begin, end)
    assert frames.n_rows((indptr, indices, values)) == end - begin
    assert (
        sparse.csr_matrix((values, indices, indptr), (end - begin, 4)).toarray().tolist() == dense[begin:end].tolist()
    )
    as_list = [{"row": i} for i in range(n)]
    assert frames.n_rows(as_list) == n
    assert frames.some_rows(as_list, begin, end) == as_list[begin:end]


def test_some_rows_of_a_matrix_with_more_values_than_it_says():
    matrix = sparse.csr_matrix((np.arange(1.0, 7.0), np.array([0, 1, 0, 1, 0, 1]), np.array([0, 2, 3, 4])), (3, 2))
    indptr, indices, values = frames.some_rows(frames.csr_arrays(matrix), 1, 3)
    assert (indptr.tolist(), indices.tolist(), values.tolist()) == ([0, 1, 2], [0, 1], [3.0, 4.0])
