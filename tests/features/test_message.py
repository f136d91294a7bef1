"""What a message is to those who do not look into it."""

import json

import pytest

from stream_pegasos.blocks.blockwise import chunks
from stream_pegasos.features.message import Fields, is_blank, make_message, message_size, shown_message
from stream_pegasos.streams.example import Example
from stream_pegasos.streams.sources import batched

MAIL = Fields({"subject": "free", "n": 7, "to": ["ann", 1], "route": {"by": "a.b"}, "none": None})


def test_how_large_it_is():
    """Characters; what is no text counts as 100."""
    assert [message_size("free"), message_size({"a": 1.0, "b": 2.0}), message_size(["ab", "c"])] == [4, 200, 3]
    assert message_size(MAIL) == len("free") + 100 + len("ann") + 100 + len("a.b") + 100


def test_it_is_a_key_and_comes_back_from_json():
    again = make_message(json.loads(json.dumps(MAIL)))
    assert again == MAIL and hash(again) == hash(MAIL) and {MAIL: 1}[again] == 1
    assert hash(MAIL) != hash(Fields({**MAIL, "n": 8})) and make_message("free") == "free"


def test_what_a_person_reads_of_it():
    assert shown_message("free") == "free"
    assert shown_message(MAIL) == "subject: free\nn: 7\nto: ['ann', 1]\nroute: {'by': 'a.b'}"
    blank = "", " \n", Fields({"a": "", "b": None, "c": "\t"})
    assert [is_blank(x) for x in (*blank, "x", MAIL, Fields({"n": 0}))] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    "message", ["x" * 3_000_000, Fields(body="x" * 3_000_000), Fields(tags=["x" * 1_500_000, {"a": "x" * 1_500_000}])]
)
def test_messages_of_fields_are_as_large_as_what_is_in_them(message):
    assert message_size(message) == 3_000_000
    assert [len(chunk) for chunk in chunks([(message, 1)] * 5)] == [2, 2, 1]
    batches = batched([None, Example(message, 1), None, *[Example("", 1)] * 600], lambda: 0)
    assert [len(batch.examples) for batch in batches] == [1, 512, 88]
