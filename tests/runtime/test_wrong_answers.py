"""The newest wrong answers, their search, and the file for a spreadsheet."""

import csv
import io

import pytest
from kinds import ordered, several_classes, several_labels

from stream_pegasos.blocks.blockwise import predict_learn
from stream_pegasos.runtime.monitor import Monitor
from stream_pegasos.runtime.wrong_answers import FORMULAS, MOST_WRONG, WrongAnswers, as_csv

STRANGE = ['a "quoted", text', "two\nlines", "\r\n", "", "a;b\tc", "\ud800", "\0", "ü", "a = 1", " =1", "1-2"]


def message(text, label="ham", predicted="spam", **rest):
    return {"time": None, "number": 1, "text": text, "label": label, "predicted": predicted, **rest}


def rows_of(messages):
    return [*csv.DictReader(io.StringIO(as_csv(messages), newline=""))]


@pytest.mark.parametrize("text", STRANGE)
def test_a_text_is_read_back_as_it_was(text):
    (row,) = rows_of([message(text, label=text)])
    expected = f"'{text}" if text[:1] in "\r\n" and text else text
    assert (row["text"], row["label"], row["predicted"]) == (expected, expected, "spam")


@pytest.mark.parametrize("sign", FORMULAS)
def test_no_cell_begins_as_a_formula(sign):
    (row,) = rows_of([message(f"{sign}HYPERLINK(1)", label=sign, predicted=[sign])])
    for cell in row.values():
        assert not cell.startswith(FORMULAS)
    assert row["text"][1:] == f"{sign}HYPERLINK(1)" and row["label"][1:] == sign


def test_numbers_stay_numbers():
    (row,) = rows_of([message("a", label=-1, predicted=True, probability=0.25, second_probability=None)])
    written = [row[name] for name in ("label", "predicted", "probability", "second_probability")]
    assert written == ["-1", "true", "0.25", ""]


def test_the_newest_stay_and_are_found_by_text_and_label():
    wrong = WrongAnswers()
    n = MOST_WRONG + 5
    messages = [message(f"Text {i}", label=[f"Label {i % 2}", 7], predicted=[]) for i in range(n)]
    wrong.add(messages, [(("x", 7), None)] * n)
    assert [each["text"] for each in wrong.search()] == [f"Text {i}" for i in range(MOST_WRONG + 4, 4, -1)]
    expected = [f"Text {i}" for i in (*range(779, 769, -1), 77)]
    assert [each["text"] for each in wrong.search("tEXT 77")] == expected
    assert len(wrong.search("LABEL 1")) == MOST_WRONG / 2 and wrong.search("nothing") == []


LABELS = {
    several_classes: lambda n: f"class {n % 4}",
    ordered: lambda n: n % 4,
    several_labels: lambda n: tuple(f"topic {k}" for k in (2, 3) if n % k == 0),
}


@pytest.mark.parametrize("make", LABELS)
def test_they_are_those_that_a_learner_gave_message_by_message(make):
    """A message of weight 0, and one that came before any label, is none."""
    stream = [(f"word{n * n % 7} {n % 5}", LABELS[make](n), float(n % 7 > 0)) for n in range(200)]
    monitor, other, expected, begin = Monitor(make()), make(), [], 0
    for block in predict_learn(monitor.model, stream):
        monitor.learned(stream[begin : begin + len(block)], block)
        begin += len(block)
    for x, y, weight in stream:
        said = other.predict_one(x)
        if isinstance(y, tuple):
            said, y = [label for label, holds in said.items() if holds], [*y]
        if said is not None and weight and said != y:
            expected.append((x, y, said))
        other.learn_one(x, dict.fromkeys(y, True) if isinstance(y, list) else y, w=weight)
    assert [(each["text"], each["label"], each["predicted"]) for each in monitor.wrong.search()] == expected[::-1]
    assert len(expected) > 20
