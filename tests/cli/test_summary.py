"""What `evaluate` and `test` print of classes."""

import pytest
from commands import reference_of, stream, write_jsonl

from stream_pegasos import TextClassifier, prequential


def tables(printed):
    """The head, and the tables below it as lists of rows of cells."""
    head, *rest = printed.split("\n\n")
    return head, *(
        [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in table.splitlines()] for table in rest
    )


@pytest.mark.parametrize(("n", "fewer"), [(2, 2), (26, 21)])
def test_a_report_has_all_classes_the_worst_first(ok, n, fewer):
    examples = [(text, f"class {len(text) % n}") for text, _ in stream]
    write_jsonl("many.jsonl", examples)
    score = prequential(examples, TextClassifier()).score
    n_pairs = len(score.confused())
    for options, n_classes, n_shown in (("", fewer, min(10, n_pairs)), ("--report", n, n_pairs)):
        _, _, classes, pairs = tables(ok(f"evaluate many.jsonl {options}"))
        assert (len(classes), len(pairs)) == (n_classes + 1, n_shown + 1)
        if options:
            assert {row[0] for row in classes[1:]} == {row.label for row in score.class_rows()}
            f1 = [float(row[3]) for row in classes[1:]]
            assert f1 == sorted(f1)
    n_wrong = round((score.n - 1) * (1 - score.accuracy))  # the first message has no answer
    assert sum(int(row[-1]) for row in pairs[1:]) == n_wrong


def test_a_test_has_a_report_too(ok):
    reference_of(stream[:300]).save("m")
    plain, report = (ok(f"test m mail.jsonl {options}").split("\n\n") for options in ("", "--report"))
    assert report[1] == plain[1] and len(report) == len(plain) == 4
    assert {row.split()[0] for row in report[2].splitlines()[1:]} == {"ham", "spam"}
