import pytest

from stream_pegasos.common.together import together_or_alone


def test_each_by_itself_where_all_together_fail():
    calls = []

    def work(some):
        calls.append(some)
        return sum(map(int, some))

    assert [*together_or_alone(["1", "2"], work, ValueError)] == [(["1", "2"], 3)] and len(calls) == 1
    first, (item, error), last = together_or_alone(["1", "x", "3"], work, ValueError)
    assert (first, item, last) == ((["1"], 1), ["x"], (["3"], 3)) and "'x'" in str(error)
    ((item, error),) = together_or_alone(["x"], work, ValueError)
    assert item == ["x"] and isinstance(error, ValueError)
    assert [*together_or_alone(["x"], work, ValueError, lambda some: 7)] == [(["x"], 7)]
    assert [*together_or_alone([], work, ValueError)] == [([], 0)]
    with pytest.raises(ValueError, match="'x'"):
        [*together_or_alone(["1", "x"], work, TypeError)]
