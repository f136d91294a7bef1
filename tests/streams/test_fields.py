"""Messages of named fields, in every format that has fields."""

import io
import json

import pyarrow
import pytest
from pyarrow import parquet
from reading import examples

from stream_pegasos.streams import LabelJoin, StreamError

RECORDS = [{"subject": "a", "sender": "x", "label": "ham"}, {"subject": "b", "sender": "", "label": "spam"}]
FILE = io.BytesIO()
parquet.write_table(pyarrow.Table.from_pylist(RECORDS), FILE)
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
DATA = {
    "jsonl": LINES,
    "csv": b"subject,label,sender\na,ham,x\nb,spam,\n",
    "tsv": b"subject\tlabel\tsender\na\tham\tx\nb\tspam\t\n",
    "parquet": FILE.getvalue(),
}


@pytest.mark.parametrize("format", DATA)
def test_messages_are_of_the_fields_that_are_there(format):
    found, bad = examples(DATA[format], format, fields=["sender", "subject", "body"])
    messages = [{name: record[name] for name in ("sender", "subject")} for record in RECORDS]
    assert [each.x for each in found] == messages and [each.y for each in found] == ["ham", "spam"] and bad == []
    join = LabelJoin()
    join.add_message(found[0]._replace(y=None, id=7))
    join.set_state(json.loads(json.dumps(join.get_state())))
    assert hash(join.add_label(7, "spam").x) == hash(found[0].x)


def test_records_without_any_of_the_fields():
    for format, fault in (("csv", "the header has no field 'body'"), ("parquet", "column 'body' is missing")):
        with pytest.raises(StreamError, match=fault):
            examples(DATA[format], format, fields=["body", "queue"])


def test_nested_fields_and_values_of_any_type():
    line = b'{"mail": {"to": ["a", "b"]}, "size": 7, "label": 1}'
    [example], _ = examples(line, "jsonl", fields=["mail.to", "size"])
    assert example.x == {"mail.to": ["a", "b"], "size": 7}
    assert len({example.x, example.x}) == 1


def test_a_number_beyond_2_to_53_is_no_label():
    """The integer that was written is lost."""
    lines = b'{"text": "a", "label": 9007199254740991.0}\n{"text": "a", "label": 9007199254740993.0}'
    found, [(line, reason)] = examples(lines, "jsonl")
    assert [example.y for example in found] == [2**53 - 1] and line == 2 and "an integer below" in reason
