"""Requests that are answered together."""

import asyncio

import pytest

from stream_pegasos.service.gathering import Gathering


def test_each_request_gets_its_own_answers_and_one_that_fails_fails_alone():
    calls = []

    def answer(items):
        calls.append(items)
        if "bad" in items:
            raise ValueError("it is bad")
        return [item.upper() for item in items]

    async def ask():
        gathering = Gathering(answer, most=10)
        asked = [["a", "b"], ["c"], [], ["bad"], ["d"] * 6, ["e"]]
        return await asyncio.gather(*(gathering.answers(each, len(each)) for each in asked), return_exceptions=True)

    *right, last = asyncio.run(ask())
    failed = right.pop(3)
    assert right == [["A", "B"], ["C"], [], ["D"] * 6] and last == ["E"]
    with pytest.raises(ValueError, match="it is bad"):
        raise failed
    together, *alone, rest = calls
    assert together == ["a", "b", "c", "bad", *["d"] * 6]  # as many as go together, and no more
    assert alone == [["a", "b"], ["c"], [], ["bad"], ["d"] * 6] and rest == ["e"]


def test_nobody_waits_for_an_answer_that_was_given_up():
    async def ask():
        gathering = Gathering(lambda items: items, most=10)
        one, other = (asyncio.ensure_future(gathering.answers([number], 1)) for number in (1, 2))
        await asyncio.sleep(0)
        one.cancel()
        return await other

    assert asyncio.run(ask()) == [2]
