import pytest

from stream_pegasos.common.batch_then_single import batch_then_single


def test_each_by_itself_where_all_together_fail():
    calls = []

    def work(some):
        calls.append(some)
        return sum(map(int, some))

    assert [*batch_then_single(["1", "2"], work, ValueError)] == [(["1", "2"], 3)] and len(calls) == 1
    first, (item, error), last = batch_then_single(["1", "x", "3"], work, ValueError)
    assert (first, item, last) == ((["1"], 1), ["x"], (["3"], 3)) and "'x'" in str(error)
    ((item, error),) = batch_then_single(["x"], work, ValueError)
    assert item == ["x"] and isinstance(error, ValueError)
    assert [*batch_then_single(["x"], work, ValueError, lambda some: 7)] == [(["x"], 7)]
    assert [*batch_then_single([], work, ValueError)] == [([], 0)]
    with pytest.raises(ValueError, match="'x'"):
        [*batch_then_single(["1", "x"], work, TypeError)]
