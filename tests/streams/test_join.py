from collections import deque

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.streams import Example, LabelJoin, join


def message(id, text="text", **fields):
    return Example(text, None, id=id, **fields)


def test_either_may_come_first():
    both = LabelJoin()
    assert both.add_message(message(1, "a", w=2.0, line=7)) is None
    assert both.add_label("1", "spam") == Example("a", "spam", 2.0, 7, 1)
    assert both.add_label(2, False) is None
    assert both.add_message(message("2", "b")) == Example("b", False, id="2")
    # Each is gone once it was used.
    assert both.add_label(1, "ham") is None
    assert both.add_message(message(2)) is None
    assert both.n_expired == 0


def test_the_newer_replaces_the_older():
    both = LabelJoin()
    both.add_message(message(1, "old"))
    both.add_message(message(1, "new"))
    assert both.add_label(1, 0).x == "new"
    both.add_label(2, 0)
    both.add_label(2, 1)
    assert both.add_message(message(2)).y == 1
    assert both.n_expired == 0


def test_messages_that_wait_for_nothing():
    both = LabelJoin()
    assert both.add_message(message(None)) is None
    assert both.add_message(Example("a", 1, id=3)) is None
    assert both.add_label(3, 1) is None
    assert both.add_label("None", 1) is None
    assert both.add_message(Example("", None, id=7, fault="no JSON")) is None
    assert both.add_label(7, 1) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12))), st.integers(1, 5))
def test_like_two_lists(steps, window):
    both = LabelJoin(window)
    messages, labels, n_expired = deque(), deque(), 0
    for k, (is_message, id) in enumerate(steps):
        mine, others = (messages, labels) if is_message else (labels, messages)
        found = next((pair for pair in others if pair[0] == id), None)
        if found:
            others.remove(found)
            expected = (str(k), found[1]) if is_message else (found[1], str(k))
        else:
            expected = None
            for pair in [pair for pair in mine if pair[0] == id]:
                mine.remove(pair)
            mine.append((id, str(k)))
            if len(mine) > window:
                mine.popleft()
                n_expired += 1
        got = both.add_message(message(id, str(k))) if is_message else both.add_label(id, str(k))
        assert (got and (got.x, got.y)) == expected
        assert both.n_expired == n_expired


def test_the_text_that_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(join, "_LARGEST_TEXT", 100)
    both = LabelJoin()
    for id in "abc":
        both.add_message(message(id, "x" * 40))
    assert both.n_expired == 1
    assert both.add_label("a", 1) is None
    assert both.add_label("b", 1) is not None
    both.add_message(message("d", "x" * 200))
    assert both.n_expired == 3
    both.add_label("e" * 101, 1)
    assert both.add_message(message("e" * 101)) is None


def written_and_read(state):
    """As it comes back from a checkpoint."""
    return unpack(orjson.loads(orjson.dumps(pack(state))))


text = st.text(st.characters() | st.just("\udc80"))  # lone surrogates, too
label = st.booleans() | st.integers() | text


@given(
    st.lists(st.tuples(text | st.dictionaries(text, st.floats(-1e9, 1e9)), st.text("ab\udc80", max_size=3))),
    st.lists(st.tuples(st.text("ab\udc80", max_size=3), label | st.lists(label).map(tuple))),
)
def test_state(messages, labels):
    one, other = LabelJoin(20), LabelJoin(20)
    for x, id in messages:
        one.add_message(message(id, x))
    for id, y in labels:
        one.add_label(id, y)
    other.set_state(written_and_read(one.get_state()))
    assert other.get_state() == one.get_state()
    assert other.n_expired == one.n_expired
    for id in {id for _, id in messages} | {id for id, _ in labels}:
        assert other.add_label(id, 1) == one.add_label(id, 1)


def test_a_smaller_window_keeps_the_newest():
    one, other = LabelJoin(5), LabelJoin(2)
    for id in range(5):
        one.add_message(message(id))
    other.set_state(one.get_state())
    assert other.n_expired == 3
    assert other.add_label(2, 1) is None
    assert other.add_label(4, 1) is not None


GOOD = {"messages": [["a", None, 1.0, 0, 7]], "labels": [["8", 1]], "n_expired": [0, 0]}


MESSAGES = (
    *(None, [["a"]], [[1, None, 1.0, 0, 7]], [["a", 1, 1.0, 0, 7]], [["a", None, -1.0, 0, 7]]),
    *([["a", None, 1.0, "0", 7]], [["a", None, 1.0, 0, None]]),
)
LABELS = [["8"]], [["8", None]], [["8", [["x"]]]]
BAD = {"messages": MESSAGES, "labels": LABELS, "n_expired": (0, [-1, 0])}


@pytest.mark.parametrize("change", [{name: value} for name, values in BAD.items() for value in values])
def test_states_that_are_none(change):
    one = LabelJoin()
    one.set_state(GOOD)
    before = one.get_state()
    with pytest.raises(ValueError, match="must be one of a LabelJoin"):
        one.set_state({**GOOD, **change})
    assert one.get_state() == before
    with pytest.raises(ValueError, match="state must be one"):
        one.set_state(None)


@pytest.mark.parametrize("window", [0, -1, 1.5, "10", None])
def test_windows_that_are_none(window):
    with pytest.raises((TypeError, ValueError), match="window"):
        LabelJoin(window)
