"""The file of messages whose label looks wrong, and what `train` says of them."""

import json

import pytest

from stream_pegasos import TextClassifier, prequential
from stream_pegasos.streams import read, synthetic

STREAM = [*synthetic(n=1_500, seed=3)]


@pytest.fixture(autouse=True)
def strange(here):
    STREAM[700] = ('=1+1 "a", meeting\nlunch', "spam")
    examples = [{"id": f"m{i}", "text": text, "label": label} for i, (text, label) in enumerate(STREAM)]
    write("strange.jsonl", examples)


def write(path, records):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(record)}\n" for record in records)


def test_evaluate_writes_suspects_which_are_read_as_a_stream(main):
    expected = prequential(STREAM, TextClassifier()).suspects(10_000)
    for name in ("suspects.csv", "suspects.jsonl"):
        code, _, err = main(f"evaluate strange.jsonl --suspects {name}")
        assert code == 0 and f"{name} has the {len(expected):,} most suspicious labels" in err
        seen = [(example.x, example.y, example.id) for example in read(name)]
        text = lambda each, name=name: f"'{each.text}" if name.endswith("csv") and each.text[0] == "=" else each.text  # noqa: E731
        assert seen == [(text(each), each.label, f"m{each.number - 1}") for each in expected]
    with open("suspects.jsonl", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    assert [each["label_probability"] for each in records] == [each.label_probability for each in expected]
    assert [each["number"] for each in records] == [each.number for each in expected]  # each line is a message


def test_no_other_file_is_replaced_and_no_other_form_is_written(main):
    for name in ("suspects.txt", "mail.jsonl"):
        code, _, err = main(f"evaluate strange.jsonl --suspects {name}")
        assert code and name in err
    code, _, err = main("evaluate strange.jsonl --suspects strange.jsonl")
    assert code and "strange.jsonl" in err


def test_train_says_which_share_of_labels_looks_wrong(main):
    clean = [{"text": f"{word} {i % 9}", "label": word} for i in range(2_000) for word in ("spam", "ham")]
    write("clean.jsonl", clean)
    code, _, err = main("train clean.jsonl --save m")
    assert code == 0 and "at most 0.4% of labels look wrong; to see them: stream-pegasos evaluate" in err
    code, _, err = main("train strange.jsonl --limit 500 --save n")
    assert code == 0 and "look wrong" not in err
