import contextlib
import csv
import dataclasses
import errno
import fcntl
import gzip
import inspect
import io
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import termios
import time
from array import array
from pathlib import Path

import pytest

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    PegasosClassifier,
    TextClassifier,
    cli,
    engine,
    load,
)
from stream_pegasos.cli.options import ModelOptions, with_options
from stream_pegasos.evaluation.prequential import evaluate
from stream_pegasos.learners.persistence import load_with_progress
from stream_pegasos.streams import synthetic

pure = engine.NAME == "pure"
stream = list(synthetic(n=600, seed=11))
environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path)), "COLUMNS": "100"}
command = [sys.executable, "-m", "stream_pegasos"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Commands run in a folder of their own, which holds a stream."""
    monkeypatch.chdir(tmp_path)
    write_jsonl("mail.jsonl", stream)
    return tmp_path


@pytest.fixture
def main(here, capsys, monkeypatch):
    """Run the command in this process: the exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stream-pegasos", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return run


def write_jsonl(path, examples):
    with open(path, "w") as file:
        file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in examples)


def process(*arguments, **options):
    return subprocess.run([*command, *map(str, arguments)], env=environment, capture_output=True, timeout=60, **options)


def started(*arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *arguments], env=environment, **pipes, **options)


def wait_until_read(pipe):
    """Wait until the other process has taken everything, and a little for it to work on that."""
    unread = array("i", [1])
    while unread[0]:
        time.sleep(0.05)
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
    time.sleep(0.3)


def metrics(summary):
    """The figures of a summary by name."""
    rows = (line.rsplit(maxsplit=1) for line in summary.splitlines()[2:9])
    return {name: float(value) for name, value in rows}


def error_line(err):
    """The only line of standard error, which must be an error."""
    (line,) = err.splitlines()
    assert line.startswith("stream-pegasos: error: ")
    return line


# evaluate


def test_evaluate_needs_no_file(main):
    code, out, err = main("evaluate")
    assert (code, err) == (0, "")
    score = evaluate(TextClassifier(), synthetic()).score
    assert out.startswith("synthetic stream: 20,000 messages in ")
    assert ", 0 bad lines" in out.splitlines()[0]
    expected = {
        "accuracy": score.accuracy,
        "balanced accuracy": score.balanced_accuracy,
        "F1 of spam": score.f1,
        "ROC AUC": score.roc_auc,
        "log loss": score.log_loss,
        "calibration error": score.expected_calibration_error,
        "accuracy of newest 1,000": score.window_accuracy,
    }
    assert metrics(out) == {name: round(value, 4) for name, value in expected.items()}
    (tn, fp), (fn, tp) = score.confusion_matrix.tolist()
    assert [line.split() for line in out.splitlines()[-3:]] == [
        ["predicted", "ham", "spam"],
        ["truly", "ham", f"{tn:,}", f"{fp:,}"],
        ["truly", "spam", f"{fn:,}", f"{tp:,}"],
    ]


def test_evaluate_writes_what_it_is_told_to(main):
    code, out, _ = main("evaluate", "mail.jsonl", "--curve", "c.csv", "--plot", "p.png", "--save", "m")
    assert code == 0
    with open("c.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows] == list(range(50, 601, 50))
    assert float(rows[-1]["accuracy"]) == pytest.approx(metrics(out)["accuracy"], abs=5e-5)
    assert set(rows[0]) == {
        *("n", "accuracy", "balanced_accuracy", "f1", "roc_auc", "log_loss", "window_accuracy", "seconds")
    }
    with open("p.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"
    reference = TextClassifier()
    reference.learn_many(*zip(*stream, strict=True))
    assert load("m").weights == reference.weights


def test_evaluate_with_options_of_the_model(main):
    code, out, _ = main(
        *("evaluate", "mail.jsonl", "--l2", "1e-3", "--t0", 10, "--batch-size", 2, "--no-project", "--intercept"),
        *("--pos-label", "ham", "--ngrams", "1,2", "--n-features", 5000, "--binary", "--norm", "none"),
        *("--token-pattern", r"\w+", "--no-mask-digits", "--prefix-length", 0, "--no-boundaries"),
        *("--delay", 5, "--save", "m"),
    )
    assert code == 0
    model = TextClassifier(
        HashedBagOfWords(
            n_features=5000,
            ngram_range=(1, 2),
            binary=True,
            norm=None,
            token_pattern=r"\w+",
            alternate_sign=False,
        ),
        PegasosClassifier(l2=1e-3, t0=10, batch_size=2, project=False, fit_intercept=True, pos_label="ham"),
    )
    score = evaluate(model, stream, delay=5).score
    assert metrics(out)["F1 of ham"] == round(score.f1, 4)
    assert metrics(out)["log loss"] == round(score.log_loss, 4)
    assert load("m").features._get_params() == model.features._get_params()
    assert load("m").classifier._get_params() == model.classifier._get_params()


def test_what_is_not_given_is_left_to_the_model(main):
    assert main("train", "mail.jsonl", "--save", "m", "--analyzer", "char", "--ngrams", 3)[0] == 0
    default = TextClassifier()
    expected = {**default.features._get_params(), "analyzer": "char", "ngram_range": (3, 3)}
    expected |= {"prefix_length": 0, "boundaries": False}  # which are for words only
    assert load("m").features._get_params() == expected
    assert load("m").classifier._get_params() == default.classifier._get_params()


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.jsonl", '{{"text": "{}", "label": "{}"}}'),
        ("a.csv", '"{}",{}'),
        ("a.tsv", "{}\t{}"),
        ("a.txt", "{1}\t{0}"),
        ("a.ft", "__label__{1} {0}"),
    ],
)
def test_every_text_format_gives_the_same(main, name, line, compress):
    head = {"a.csv": "text,label\n", "a.tsv": "text\tlabel\n"}.get(name, "")
    data = head + "".join(line.format(text, label) + "\n" for text, label in stream)
    with open(f"{name}.gz", "wb") as file:
        file.write(compress(data.encode()))
    code, out, err = main("evaluate", f"{name}.gz")
    assert (code, err) == (0, "")
    assert metrics(out) == metrics(main("evaluate", "mail.jsonl")[1])


def test_dict_formats(main):
    ids: dict[str, int] = {}
    with open("a.vw", "w") as vw, open("a.svm", "w") as svm:
        for text, label in stream:
            words = dict.fromkeys("".join(c if c.isalnum() else " " for c in text).split())
            y = 1 if label == "spam" else -1
            vw.write(f"{y} | {' '.join(words)}\n")
            svm.write(f"{y} {' '.join(f'{ids.setdefault(word, len(ids))}:1' for word in words)}\n")
    out = main("evaluate", "a.vw", "--save", "m")[1]
    assert metrics(out) == metrics(main("evaluate", "a.svm")[1])
    assert metrics(out)["accuracy"] > 0.7
    assert isinstance(load("m"), AdaptiveClassifier)
    code, out, _ = main("explain", "m", "--top", 3)
    assert code == 0
    assert out.splitlines()[0] == "for 1"
    weights = load("m").weights
    shown = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert len(shown) == 6
    assert all(f"{weights[name]:+.5f}" == weight for weight, name in shown)
    assert "text options" not in main("predict", "m", "a.vw")[2]


def test_limit(main):
    assert "mail.jsonl: 70 messages" in main("evaluate", "mail.jsonl", "--limit", 70)[1]
    assert "synthetic stream: 70 messages" in main("evaluate", "--limit", 70)[1]


@pytest.mark.parametrize("data", [b"", gzip.compress(b""), b"\n\n"], ids=["nothing", "gzip", "lines"])
def test_empty_stream(main, here, data):
    (here / "e.jsonl").write_bytes(data)
    for arguments in (["evaluate", "--curve", "c.csv", "--plot", "c.png", "--save", "m"], ["train", "--save", "m"]):
        code, out, err = main(arguments[0], "e.jsonl", *arguments[1:])
        assert (code, out) == (1, "")
        assert error_line(err).startswith("stream-pegasos: error: no message of e.jsonl was learned")
    assert not any((here / name).exists() for name in ("m", "c.csv", "c.png"))
    TextClassifier().save("new")
    assert main("predict", "new", "e.jsonl") == (0, "", "")  # there was nothing to be done
    assert main("predict", "new", "mail.jsonl", "--limit", 2)[:2] == (0, "\t0.500000\n" * 2)
    assert main("explain", "new")[0] == 0


def test_standard_input():
    data = gzip.compress(b"".join(b"%s\t%s\n" % (y.encode(), x.encode()) for x, y in stream))
    done = process("evaluate", "-", "--format", "labelled-text", input=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"standard input: 600 messages")
    done = process("evaluate", "-", input=b'{"text": "a", "label": 1}\n')
    assert done.stdout.startswith(b"standard input: 1 message")


# bad lines and errors


def test_bad_lines_are_reported_counted_and_skipped(main, here):
    with open("bad.jsonl", "w") as file:
        for i, (text, label) in enumerate(stream):
            file.write(json.dumps({"text": text, "label": label}) + "\n" + "oops\n" * (i < 12))
    code, out, err = main("evaluate", "bad.jsonl")
    assert code == 0
    assert "600 messages" in out
    assert "12 bad lines" in out.splitlines()[0]
    assert metrics(out) == metrics(main("evaluate", "mail.jsonl")[1])
    lines = err.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("stream-pegasos: line 2 skipped: not JSON")
    assert lines[9].startswith("stream-pegasos: line 20 skipped: not JSON")
    assert lines[10] == "stream-pegasos: 2 more bad lines skipped"
    assert main("evaluate", "bad.jsonl", "--strict")[:2][0] == 1
    assert main("train", "bad.jsonl", "--strict", "--save", "m")[0] == 1
    assert main("predict", "m", "bad.jsonl", "--strict")[0] == 1
    assert main("evaluate", "mail.jsonl", "--strict")[0] == 0


def test_a_stream_without_a_good_line_gets_a_hint(main):
    TextClassifier().save("new")
    for arguments in (["evaluate"], ["train", "--save", "m"]):
        code, out, err = main(arguments[0], "mail.jsonl", "--label-field", "class", *arguments[1:])
        assert (code, out) == (1, "")
        assert "no label in the field 'class'" in err.splitlines()[0]
        assert "--label-field" in err.splitlines()[-1]
    code, out, err = main("predict", "new", "mail.jsonl", "--text-field", "body")
    assert (code, out) == (1, "") and "--text-field" in err.splitlines()[-1]
    assert not os.path.exists("m")


def test_missing_file(main):
    for arguments in (["evaluate", "x.jsonl"], ["train", "x.jsonl", "--save", "m"], ["predict", "x.jsonl"]):
        code, out, err = main(*arguments)
        assert (code, out) == (1, "")
        assert error_line(err) == "stream-pegasos: error: x.jsonl: No such file or directory"
    assert not os.path.exists("m")


def test_directory(main, here):
    (here / "d.jsonl").mkdir()
    assert "d.jsonl: Is a directory" in error_line(main("evaluate", "d.jsonl")[2])


def test_unknown_extension(main, here):
    (here / "mail.xyz").write_text("x")
    code, _, err = main("evaluate", "mail.xyz")
    assert code == 1
    assert "'.xyz'" in error_line(err)


def test_truncated_gzip(main, here):
    data = gzip.compress((here / "mail.jsonl").read_bytes())
    (here / "t.jsonl.gz").write_bytes(data[:-20])
    for strict in (0, 1):
        code, out, err = main("evaluate", "t.jsonl.gz", *["--strict"] * strict)
        assert code == strict and re.match(r"t\.jsonl\.gz: [4-6]\d\d messages .* 1 bad line\n", out)
        assert err == "stream-pegasos: the rest skipped: t.jsonl.gz: the gzip data is truncated\n"
        code, out, _ = main("train", "t.jsonl.gz", "--save", "m", *["--strict"] * strict)
        assert code == strict and load("m").n_iterations == int(out.split()[1]) > 400
    (here / "t.jsonl.gz").write_bytes(data[:30])  # nothing of it can be read
    code, out, err = main("evaluate", "t.jsonl.gz")
    assert (code, out) == (1, "")
    assert error_line(err) == "stream-pegasos: error: t.jsonl.gz: the gzip data is truncated"


def test_unknown_csv_field(main, here):
    (here / "a.csv").write_text("body,label\nx,1\n")
    code, _, err = main("evaluate", "a.csv")
    assert code == 1
    assert "no field 'text'; its fields: body, label" in error_line(err)


@pytest.mark.parametrize("data", [b"", b"nonsense" * 10])
def test_damaged_model(main, here, data):
    (here / "m").write_bytes(data)
    for arguments in (["predict", "m", "mail.jsonl"], ["explain", "m"]):
        code, _, err = main(*arguments)
        assert code == 1
        assert "m is damaged" in error_line(err)


def test_models_of_several_classes_and_kernels(main, here):
    several = TextClassifier(classifier=PegasosClassifier(multi_class="crammer_singer"))
    kernel = TextClassifier(classifier=KernelPegasosClassifier(budget=50))
    for model in (several, kernel):
        model.learn_many(*zip(*stream, strict=True))
        model.save(f"{type(model.classifier).__name__}.safetensors")
    for command in ("predict", "explain"):
        code, _, err = main(command, "PegasosClassifier.safetensors", "mail.jsonl")
        assert code and "several classes" in error_line(err)
    code, out, _ = main("predict", "KernelPegasosClassifier.safetensors", "mail.jsonl")
    assert code == 0 and len(out.splitlines()) == len(stream)
    code, _, err = main("explain", "KernelPegasosClassifier.safetensors", "mail.jsonl")
    assert code and "has a kernel" in error_line(err)


def test_third_label(main):
    """An odd label is passed over, and costs nothing of what came before or comes after."""
    write_jsonl("three.jsonl", [*stream, ("a", "eggs"), ("b", "ham")])
    write_jsonl("two.jsonl", [*stream, ("b", "ham")])
    for arguments in (["evaluate"], ["evaluate", "--delay", 3], ["train"]):
        assert main(arguments[0], "two.jsonl", *arguments[1:], "--save", "expected")[0] == 0
        for strict in (0, 1):
            code, out, err = main(arguments[0], "three.jsonl", *arguments[1:], "--save", "m", *["--strict"] * strict)
            assert code == strict and "1 bad line" in out and "601 messages" in out
            (line,) = err.splitlines()
            assert "line 601 skipped: " in line
            assert "'eggs'" in line
            assert "multi_class" in line
            assert (load("m").weights, load("m").n_iterations) == (load("expected").weights, 601)


def test_labels_that_are_known_before(main):
    """Whichever comes first, others are passed over; text and JSON alike."""
    odd = [("win", "Spam"), *stream, ("hi", "eggs")]
    write_jsonl("odd.jsonl", odd)
    assert main("train", "mail.jsonl", "--save", "expected")[0] == 0
    code, out, err = main("train", "odd.jsonl", "--labels", "ham,spam", "--save", "m")
    assert code == 0 and out.startswith("learned 600 messages") and "2 bad lines" in out
    assert "line 1 skipped: label Spam is none of ham, spam" in err
    assert load("m").weights == load("expected").weights
    done = process("run", "--labels", "ham, spam", "--save", "live", input=Path("odd.jsonl").read_bytes())
    assert len(done.stdout.splitlines()) == 602 and load("live").weights == load("expected").weights
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": true}\n{"text": "no", "label": "false"}\n{"text": "no", "label": 0}\n')
    assert main("evaluate", "bool.jsonl", "--labels", "true,false")[1].startswith("bool.jsonl: 2 messages")
    for labels in ("True,False", "1,0", "+1,00"):
        code, out, _ = main("evaluate", "bool.jsonl", "--labels", labels)
        assert (code == 0 and out.startswith("bool.jsonl: 2 messages")) or labels == "+1,00"
    for bad in ("ham", "ham,ham", "ham,", "a,b,c", "", "1,+1"):
        code, _, err = main("train", "odd.jsonl", "--labels", bad, "--save", "m")
        assert code == 2 and "--labels" in err


def test_which_label_is_positive_must_be_said_where_a_decision_rests_on_it(main):
    """Whichever comes first: no line is learned, and no message is flagged as what it is not."""
    write_jsonl("odd.jsonl", [("win", "spam"), *stream])
    for option in (["--max-false-positive-rate", 0.01], ["--threshold", 0.9]):
        for arguments in (["evaluate"], ["evaluate", "--delay", 2], ["train", "--save", "m"], ["run"]):
            code, out, err = main(
                arguments[0], "odd.jsonl", *arguments[1:], *option, *["--no-follow"] * (arguments == ["run"])
            )
            assert (code, out) == (1, "")
            assert "line 1: is label 'spam' the positive one?" in error_line(err) and "--pos-label" in err
        code, out, _ = main("evaluate", "odd.jsonl", *option, "--pos-label", "spam")
        assert code == 0 and "F1 of spam" in out
    assert not os.path.exists("m")


@pytest.mark.parametrize("given", ["true", "false", "1", "0"])
@pytest.mark.parametrize("labels", ["true false", '"true" "false"', "1 0", '"1" "0"', '"True" "False"'])
@pytest.mark.parametrize("first", [0, 1])
def test_positive_labels_that_are_true_or_1(main, given, labels, first):
    """As JSON's bools and numbers, and as the text that they are written as."""
    labels = labels.split()
    with open("t.jsonl", "w") as file:
        for i in range(6):
            file.write(f'{{"text": "{"ab"[i % 2]}", "label": {labels[(i + first) % 2]}}}\n')
    positive = labels[given in ("false", "0")].strip('"')
    assert f"F1 of {positive} " in main("evaluate", "t.jsonl", "--pos-label", given)[1]
    assert f"F1 of {labels[0].strip(chr(34))} " in main("evaluate", "t.jsonl")[1]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["evaluate", "--l2", "-1"], "l2"),
        (["evaluate", "--l2", "x"], "--l2"),
        (["evaluate", "--ngrams", "one"], "--ngrams"),
        (["evaluate", "--ngrams", "3,1"], "ngram_range"),
        (["evaluate", "--format", "xml", "mail.jsonl"], "--format"),
        (["evaluate", "--token-pattern", "("], "token_pattern"),
        (["evaluate", "--delay", "-1"], "--delay"),
        (["evaluate", "--text-field", "label", "mail.jsonl"], "--text-field"),
        (["evaluate", "a.vw", "--binary"], "--binary"),
        (["train", "mail.jsonl"], "--save"),
        (["train", "mail.jsonl", "--save", "m", "--load", "m", "--l2", "1"], "--load"),
        (["predict"], "MODEL"),
        (["explain", "m", "--top", "0"], "--top"),
        (["evaluate", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
    ],
)
def test_usage(main, arguments, word):
    code, out, err = main(*arguments)
    assert code == 2
    assert out == ""
    assert word in err
    assert "Traceback" not in err


# train, predict, explain


def test_train_then_predict(main):
    code, out, err = main("train", "mail.jsonl", "--save", "m", "--limit", 400)
    assert (code, err) == (0, "")
    assert out.startswith("learned 400 messages in ")
    code, out, err = main("predict", "m", "mail.jsonl")
    assert (code, err) == (0, "")
    model = load("m")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [label for label, _ in rows] == [model.predict_one(text) for text, _ in stream]
    for (label, probability), (text, _) in zip(rows, stream, strict=True):
        assert float(probability) == pytest.approx(model.predict_proba_one(text)[label], abs=1e-6)


def test_training_in_two_runs_is_training_in_one(main):
    write_jsonl("a.jsonl", stream[:250])
    write_jsonl("b.jsonl", stream[250:])
    assert main("train", "mail.jsonl", "--save", "whole", "--batch-size", 7)[0] == 0
    assert main("train", "a.jsonl", "--save", "m", "--batch-size", 7)[0] == 0
    assert main("train", "b.jsonl", "--load", "m", "--save", "m")[0] == 0
    assert load("m").weights == load("whole").weights
    assert load("m").n_iterations == load("whole").n_iterations


def test_one_label_learned(main):
    write_jsonl("ham.jsonl", [("a", "ham"), ("b", "ham")])
    assert main("train", "ham.jsonl", "--save", "m")[0] == 0
    assert main("predict", "m", "ham.jsonl")[1] == "ham\t0.750000\n" * 2  # Laplace's rule of succession
    assert "for ham" in main("explain", "m")[1]


def test_labels_stay_in_their_column(main):
    strange = [("one two", "x\ty\n"), ("three four", "\ud800é")] * 5
    write_jsonl("strange.jsonl", strange)
    assert main("train", "strange.jsonl", "--save", "m")[0] == 0
    labels = [line.split("\t")[0] for line in main("predict", "m", "strange.jsonl")[1].splitlines()]
    # Labels are stripped when they are read.
    assert labels == ["x\\ty", "\\ud800é"] * 5
    with open("bool.jsonl", "w") as file:
        file.write('{"text": "yes", "label": true}\n{"text": "no", "label": false}\n' * 3)
    assert main("train", "bool.jsonl", "--save", "m")[0] == 0
    labels = [line.split("\t")[0] for line in main("predict", "m", "bool.jsonl")[1].splitlines()]
    assert labels == ["true", "false"] * 3


def test_model_and_format_must_fit(main, here):
    (here / "a.vw").write_text("1 | a\n-1 | b\n")
    assert main("train", "a.vw", "--save", "dicts")[0] == 0
    assert main("train", "mail.jsonl", "--save", "texts")[0] == 0
    for model, file in (("dicts", "mail.jsonl"), ("texts", "a.vw")):
        code, _, err = main("predict", model, file)
        assert code == 1
        assert "has format" in error_line(err)


def test_explain_names_the_hashed_features(main):
    options = ("--classifier", "pegasos", "--ngrams", 1, "--prefix-length", 0)
    assert main("train", "mail.jsonl", "--save", "m", *options)[0] == 0
    code, out, err = main("explain", "m", "mail.jsonl", "--top", 5)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert (lines[0], lines[6]) == ("for spam", "for ham")
    model = load("m")
    # What a word adds to the margin when it stands alone says the same, its sign included.
    margins = {word: model.decision_function_one(word) for text, _ in stream for word in model.features.tokens(text)}
    ordered = sorted(margins.values())
    for block, expected in ((lines[1:6], ordered[:-6:-1]), (lines[7:], ordered[:5])):
        shown = [line.split(maxsplit=1) for line in block]
        assert [float(weight) for weight, _ in shown] == pytest.approx(expected, abs=1e-5)
        assert all(margins[word] == pytest.approx(float(weight), abs=1e-5) for weight, word in shown)


def test_explain_says_why_a_text_is_what_it_is(main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    text, _ = stream[7]
    code, out, err = main("explain", "m", "--text", text, "--top", 4)
    assert (code, err) == (0, "")
    model = load("m")
    label, margin = model.predict_one(text), model.decision_function_one(text)
    first, legend, *lines = out.splitlines()
    assert legend == "+ speaks for spam, - for ham"
    assert first == f"{label}, probability {model.predict_proba_one(text)[label]:.4f}, margin {margin:+.5f}"
    shown = [line.split(maxsplit=1) for line in lines]
    contributions = model.explain_one(text)
    assert [float(contribution) for contribution, _ in shown[:4]] == pytest.approx(
        list(contributions.values())[:4], abs=1e-5
    )
    assert shown[4][1] == f"{len(contributions) - 4:,} others"
    assert sum(float(contribution) for contribution, _ in shown) == pytest.approx(margin, abs=1e-4)
    assert "\x1b" not in out  # colours are for terminals


def test_thresholds_and_limits_decide_what_is_answered(main):
    for options in (["--threshold", 0.9], ["--max-false-positive-rate", 0.02]):
        assert main("train", "mail.jsonl", "--save", "m", "--pos-label", "spam", *options)[0] == 0
        model = load("m")
        X = [text for text, _ in stream]
        answers = [line.split("\t") for line in main("predict", "m", "mail.jsonl")[1].splitlines()]
        assert [label for label, _ in answers] == model.predict_many(X).tolist()
        assert [float(p) for _, p in answers] == pytest.approx(
            [model.predict_proba_one(text)[model.predict_one(text)] for text in X], abs=1e-6
        )
        assert min(float(p) for _, p in answers) < 0.5  # the less probable label, where the other may not be given


def test_explain_a_text_needs_a_linear_model_of_texts(main, here):
    (here / "a.vw").write_text("1 | a\n-1 | b\n")
    assert main("train", "a.vw", "--save", "dicts")[0] == 0
    kernel = TextClassifier(classifier=KernelPegasosClassifier(budget=50))
    kernel.learn_many(["a", "b"], [True, False])
    kernel.save("kernel")
    for model, message in (("dicts", "a model of features"), ("kernel", "linear")):
        code, _, err = main("explain", model, "--text", "a")
        assert code == 1
        assert message in error_line(err)
    assert main("explain", "dicts", "a.vw", "--text", "a")[0] == 2


def test_options_of_one_classifier_are_not_for_the_other(main):
    assert main("train", "mail.jsonl", "--save", "m", "--t0", 100)[0] == 0
    assert isinstance(load("m").classifier, PegasosClassifier)
    for arguments, flag in (
        (("--classifier", "adaptive", "--t0", 1), "--t0"),
        (("--classifier", "pegasos", "--half-life", 9), "--half-life"),
        (("--l2", 1e-3, "--learning-rate", 1), "--learning-rate"),
        (("--classifier", "svm"), "--classifier"),
        (("--drift-detector", "base"), "--drift-detector"),
    ):
        code, _, err = main("evaluate", "mail.jsonl", *arguments)
        assert code == 2
        assert flag in err


def test_explain_without_a_stream_shows_indices_and_a_hint(main):
    assert main("train", "mail.jsonl", "--save", "m", "--intercept")[0] == 0
    code, out, err = main("explain", "m", "--top", 4)
    assert code == 0
    model = load("m")
    shown = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert len(shown) == 8
    assert all(f"{model.weights[int(index)]:+.5f}" == weight for weight, index in shown)
    assert out.splitlines()[-1] == f"intercept {model.intercept:+.5f}"
    assert err.startswith("stream-pegasos: these are hashed features; for their names: ")


def test_explain_where_words_collide(main):
    assert main("train", "mail.jsonl", "--save", "m", "--n-features", 8)[0] == 0
    out = main("explain", "m", "mail.jsonl")[1]
    assert len([line for line in out.splitlines() if line.startswith("  ")]) <= 8


# run


def line_of(text, label=None):
    return json.dumps({"text": text} if label is None else {"text": text, "label": label}).encode() + b"\n"


def test_run_answers_each_line_before_it_learns_it(here):
    model = TextClassifier()
    with started("run", "--save", "m") as run:
        for i, (text, label) in enumerate(stream[:40]):
            known = label if i % 3 else None
            run.stdin.write(line_of(text, known))
            run.stdin.flush()
            answer, probability = run.stdout.readline().decode().rstrip("\n").split("\t")
            if model.classes == (None, None):
                assert (answer, probability) == ("", "0.500000")
            else:
                assert answer == model.predict_one(text)
                assert float(probability) == pytest.approx(model.predict_proba_one(text)[answer], abs=1e-6)
            if known:
                model.learn_one(text, known)
        run.stdin.write(b"nonsense\n")
        rest, err = run.communicate()
    assert (run.returncode, rest) == (0, b"")
    assert err.startswith(b"stream-pegasos: line 41 skipped: not JSON")
    assert load("m").weights == model.weights


def test_run_from_nothing_in_each_format(here):
    done = process("run", "--format", "labelled-text", input=b"first\nspam\twin\nspam\twin\nham\thi\n\tlast\n")
    lines = done.stdout.decode().splitlines()
    assert lines[:3] == ["\t0.500000", "\t0.500000", "spam\t0.666667"]
    assert len(lines) == 5
    done = process("run", "--format", "vw", input=b"| a\n1 | a\n-1 | b\n| a b\n")
    assert len(done.stdout.splitlines()) == 4
    assert done.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_run_saves_when_it_is_told_to_end(here, number, code):
    with started("run", "--save", "m") as run:
        for text, label in stream[:20]:
            run.stdin.write(line_of(text, label))
            run.stdin.flush()
            run.stdout.readline()
        run.send_signal(number)
        out, err = run.communicate(timeout=20)
    assert (run.returncode, out) == (code, b"")
    assert err == b"stream-pegasos: read 20 messages, learned 20, 0 bad lines\n"
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:20], strict=True))
    assert load("m").weights == reference.weights


def test_run_continues_with_a_loaded_model(here):
    process("train", "mail.jsonl", "--save", "m")
    model = load("m")
    data = b"".join(line_of(text) for text, _ in stream[:50])
    lines = process("run", "--load", "m", input=data).stdout.decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == [model.predict_one(text) for text, _ in stream[:50]]


def test_sigterm_ends_run_while_nobody_takes_its_answers(here):
    """The pipe of the answers is full: the command waits until somebody reads them."""
    data = b"".join(line_of(text, label) for text, label in stream)
    with started("run", "--save", "m") as run:
        os.set_blocking(run.stdin.fileno(), False)
        unchanged = 0
        while unchanged < 10:
            try:
                unchanged = 0 if run.stdin.raw.write(data) else unchanged + 1
            except BlockingIOError:
                unchanged += 1
            if not select.select([run.stdout], [], [], 0.05)[0]:  # it has not begun
                unchanged = 0
            time.sleep(0.05)
        for _ in range(20):  # an impatient operator does not prolong it
            run.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(0.5)
                break
        assert run.returncode in (143, -signal.SIGTERM)  # this one if all is done when the last one comes
        run.stdin.raw.close()
    load("m")


def test_run_ends_quietly_and_saves_when_nobody_reads(here):
    data = b"".join(line_of(text, label) for text, label in stream)
    with started("run", "--save", "m") as run:
        run.stdout.close()
        run.stdin.write(data)
        run.stdin.close()
        assert run.stderr.read() == b""
        assert run.wait(20) == 0
    load("m")


def test_run_passes_over_a_third_label(here):
    first, last = (b"".join(line_of(text, label) for text, label in part) for part in (stream[:30], stream[30:50]))
    done = process("run", "--save", "m", "--strict", input=first + line_of("x", "eggs") + last)
    assert done.returncode == 1
    assert "line 31 skipped: label 'eggs'" in done.stderr.decode()
    assert len(done.stdout.splitlines()) == 51
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:50], strict=True))
    assert load("m").weights == reference.weights


# signals, pipes and disks


def test_predict_into_a_closed_pipe_ends_quietly(here):
    process("train", "mail.jsonl", "--save", "m")
    write_jsonl("long.jsonl", stream * 20)
    with started("predict", "m", "long.jsonl") as predict:
        predict.stdout.readline()
        predict.stdout.close()
        assert predict.stderr.read() == b""
        assert predict.wait(20) == 0


@pytest.mark.parametrize("arguments", [["evaluate", "-", "--save", "m"], ["train", "-", "--save", "m"]])
def test_ctrl_c_ends_with_what_was_done(here, arguments):
    with started(*arguments) as running:
        running.stdin.write(b"".join(line_of(text, label) for text, label in stream[:200]))
        running.stdin.flush()
        wait_until_read(running.stdin)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert (running.returncode, err) == (130, b"")
    assert b"200 messages in " in out
    assert (b"interrupted" in out) == (arguments[0] == "evaluate")
    reference = TextClassifier()
    reference.learn_many(*zip(*stream[:200], strict=True))
    assert load("m").weights == pytest.approx(reference.weights)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk(main):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*command, "evaluate"], env=environment, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert error_line(done.stderr.decode()).endswith("cannot write standard output: No space left on device")
    for option in ("--curve", "--plot"):
        code, out, err = main("evaluate", "mail.jsonl", option, "/dev/full", "--save", option[2:])
        assert code == 1
        assert "accuracy" in out
        load(option[2:])
        assert error_line(err).endswith("cannot write /dev/full: No space left on device")


def test_model_that_does_not_fit_on_the_disk(here):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    (here / "m").write_text("as it was")
    done = process("train", "mail.jsonl", "--save", "m", preexec_fn=small_disk)
    assert done.returncode == 1
    assert error_line(done.stderr.decode()).startswith("stream-pegasos: error: cannot write m: ")
    assert (here / "m").read_text() == "as it was"
    assert sorted(path.name for path in here.iterdir()) == ["m", "mail.jsonl"]


def test_output_that_cannot_be_written_fails_before_the_work(main, here):
    for option in ("--curve", "--plot", "--save"):
        for path in ("none/x.png", here):
            code, out, err = main("evaluate", option, path)
            assert (code, out) == (1, "")
            assert "cannot write" in error_line(err)


def test_plot_without_matplotlib(here):
    script = "import sys; sys.modules['matplotlib'] = None; import stream_pegasos.cli as cli; cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "evaluate", "--plot", "p.png"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{sys.executable} -m pip install 'matplotlib>=" in error_line(done.stderr)


def test_progress_on_a_terminal_only(here):
    terminal, end = pty.openpty()
    done = subprocess.run(
        [*command, "evaluate", "mail.jsonl"],
        env={**environment, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=end,
    )
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # on Linux the end of a terminal is an error
        pass
    os.close(terminal)
    assert b"docs/s" in shown
    assert b"Traceback" not in shown
    assert done.stdout.startswith(b"mail.jsonl: 600 messages")
    assert process("evaluate", "mail.jsonl").stderr == b""


# help


def test_version(main):
    code, out, _ = main("--version")
    assert code == 0
    assert out.startswith("stream-pegasos ")
    assert out.split()[1][0].isdigit()


COMMANDS = ["evaluate", "train", "predict", "run", "serve", "explain"]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_help_has_whole_names_and_every_default(main, name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = main(name, "--help")[1]
    n_options = 0
    for parameter in inspect.signature(with_options(getattr(cli, name))).parameters.values():
        (option,) = parameter.annotation.__metadata__
        if option.rich_help_panel is None:
            continue  # an argument
        n_options += 1
        for whole in "/".join([option.default, *option.param_decls]).split("/"):
            assert whole in text.split()
        said = re.search(r" \[default: (.*)\]$", option.help)[1]
        assert f"[default: {' '.join(said.split())}]" in " ".join(text.split())
        if parameter.default not in (None, False, True, inspect.Parameter.empty):
            assert said == str(parameter.default)
    assert n_options > 5


def test_defaults_of_the_model_in_the_help_are_those_of_the_model():
    model = TextClassifier()
    pegasos = PegasosClassifier()
    for field in dataclasses.fields(ModelOptions):
        (option,) = field.type.__metadata__
        said = re.search(r" \[default: (.*)\]$", option.help)[1]
        parts = [model.features, model.classifier, pegasos]
        (value, *_) = [getattr(part, field.name) for part in parts if hasattr(part, field.name)] or [None]
        if isinstance(value, bool):
            on, _, off = option.default.partition("/")
            assert said.startswith((on if value else off).removeprefix("--"))
        elif isinstance(value, tuple):
            assert said == ",".join(map(str, value))
        elif isinstance(value, (int, float)):
            assert float(said) == value
        elif isinstance(value, str):
            assert said == value
        else:
            assert value is None and said.split()[0] in ("no", "none", "off", "1,", "adaptive,")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(main, name):
    code, out, err = main(name, "--help")
    assert (code, err) == (0, "")
    assert "Examples:" in out
    assert f"stream-pegasos {name}" in out
    assert name in main("--help")[1]


def test_help_imports_nothing_heavy():
    script = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules)); import stream_pegasos.cli as c; c.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "--help"], env=environment, capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split())
    assert "typer" in imported
    assert not imported & {
        "matplotlib",
        "scipy.stats",
        "scipy.sparse",
        "sklearn",
        "stream_pegasos.evaluation.prequential",
    }


# real streams


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [("sms_spam.jsonl.gz", "5,574", 0.93)] + [("enron_1to3.jsonl.gz", "16,541", 0.95)] * (not pure),
)
def test_real_streams(main, data_folder, name, n, least):
    code, out, err = main("evaluate", data_folder / name)
    assert (code, err) == (0, "")
    assert f"{n} messages" in out
    assert metrics(out)["accuracy"] > least


# --- run, with checkpoints --------------------------------------------------------------------------------------------


def append(path, examples):
    with open(path, "ab") as file:
        file.write(b"".join(line_of(*example) for example in examples))


def reference_of(examples):
    model = TextClassifier()
    for text, label in examples:
        model.learn_one(text, label)
    return model


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_run_goes_on_from_its_checkpoint_over_a_growing_file(here, number, code):
    arguments = ["run", "log.jsonl", "--checkpoint", "m", "--checkpoint-every", "20"]
    append("log.jsonl", stream[:50])
    with started(*arguments) as run:
        first = [run.stdout.readline() for _ in range(50)]
        append("log.jsonl", stream[50:90])
        first += [run.stdout.readline() for _ in range(40)]
        run.send_signal(number)
        _, err = run.communicate(timeout=20)
    assert run.returncode == code
    if number != signal.SIGKILL:
        assert load("m").weights == reference_of(stream[:90]).weights
        assert b"read 90 messages, learned 90, 0 bad lines" in err
    append("log.jsonl", stream[90:150])
    done = process(*arguments, "--no-follow")
    assert done.returncode == 0
    if number != signal.SIGKILL:
        assert b"resuming with 90 messages learned" in done.stderr
        assert len(done.stdout.splitlines()) == 60
    assert len(first) + len(done.stdout.splitlines()) >= 150
    assert load("m").weights == reference_of(stream[:150]).weights
    assert process(*arguments, "--no-follow").stdout == b""
    assert load("m").weights == reference_of(stream[:150]).weights


def test_run_refuses_other_options_than_the_checkpoint_was_begun_with(main):
    options = ["run", "mail.jsonl", "--no-follow", "--predictions", "none", "--checkpoint", "m", "--half-life", "500"]
    assert main(*options)[:2] == (0, "")
    assert load("m").classifier.half_life == 500
    for others in (["--half-life", "500.001"], ["--half-life", "500", "--ngrams", "1"], ["--classifier", "pegasos"]):
        code, _, err = main(*options[:-2], *others)
        assert code == 1
        assert "m was begun with other options of the model" in err
    assert main(*options)[0] == 0
    assert main(*options[:-2])[0] == 0  # those that it was begun with
    assert load("m").weights == load("m.previous").weights
    code, _, err = main("run", "mail.jsonl", "--checkpoint", "m", "--limit", "5")
    assert code == 2
    assert "--limit" in err


def test_run_reads_no_more_than_its_limit(main):
    code, out, err = main("run", "mail.jsonl", "--limit", "30", "--save", "m")
    assert (code, len(out.splitlines()), err) == (0, 30, "")
    assert load("m").weights == reference_of(stream[:30]).weights


def test_run_without_predictions(main):
    code, out, err = main("run", "mail.jsonl", "--no-follow", "--predictions", "none", "--save", "m")
    assert (code, out, err) == (0, "", "")
    assert load("m").weights == reference_of(stream).weights


def test_run_takes_a_damaged_checkpoint_for_none(main, here):
    arguments = ["run", "mail.jsonl", "--no-follow", "--predictions", "none", "--checkpoint", "m"]
    assert main(*arguments)[0] == main(*arguments)[0] == 0  # so that there are two
    with open("m", "r+b") as file:
        file.truncate(1_000)
    code, _, err = main(*arguments)
    assert code == 0
    assert "resuming from" in err
    assert "m.previous, the one before" in err
    assert load("m").weights == reference_of(stream).weights
    for name in ("m", "m.previous"):
        with open(name, "wb") as file:
            file.write(b"damaged")
    code, _, err = main(*arguments)
    assert code == 1
    assert "is damaged" in err
    assert (here / "m").read_bytes() == b"damaged"


def test_run_joins_labels_that_come_later(here):
    with open("unlabelled.jsonl", "w") as file:
        file.writelines(json.dumps({"id": i, "text": text}) + "\n" for i, (text, _) in enumerate(stream[:40]))
    labels = ["--label-topic", "labels.jsonl", "--checkpoint", "m"]
    with started("run", "unlabelled.jsonl", *labels, "--checkpoint-every", "1") as run:
        for _ in range(40):
            run.stdout.readline()
        with open("labels.jsonl", "w") as file:
            file.writelines(json.dumps({"id": i, "label": stream[i][1]}) + "\n" for i in range(30, 5, -1))
        deadline = time.monotonic() + 20
        while not (os.path.exists("m") and load_with_progress("m")[1]["n_learned"] == 25):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, err = run.communicate(timeout=20)
    assert b"read 40 messages, learned 25" in err
    assert load("m").weights == reference_of(stream[i] for i in range(30, 5, -1)).weights
    with open("labels.jsonl", "a") as file:
        file.writelines(json.dumps({"id": i, "label": stream[i][1]}) + "\n" for i in range(31, 40))
    again = process("run", "unlabelled.jsonl", *labels, "--no-follow")
    assert again.stdout == b""
    order = [*range(30, 5, -1), *range(31, 40)]
    assert load("m").weights == reference_of(stream[i] for i in order).weights


def test_serve_and_run_keep_checkpoints_apart(here, main):
    pytest.importorskip("fastapi", reason="the extra 'service' is not installed")
    assert main("run", "mail.jsonl", "--no-follow", "--predictions", "none", "--checkpoint", "m")[0] == 0
    code, _, err = main("serve", "--port", "0", "--checkpoint", "m")
    assert code == 1
    assert f"m is about {here / 'mail.jsonl'}, which run reads; --load takes the model alone" in err
    TextClassifier().snapshot({"monitor": {}}).write(here / "web")
    code, _, err = main("run", "mail.jsonl", "--checkpoint", "web")
    assert code == 1
    assert "web is what serve keeps; --load takes the model alone" in err
    code, _, err = main("serve", "--checkpoint", "web")
    assert code == 1
    assert "web: this is no state of a Monitor ('score')" in err


def test_a_checkpoint_knows_its_file_from_every_folder(here, main, monkeypatch):
    arguments = ["--no-follow", "--predictions", "none", "--checkpoint", here / "m"]
    assert main("run", "mail.jsonl", *arguments)[0] == 0
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    write_jsonl("mail.jsonl", stream)
    code, _, err = main("run", "mail.jsonl", *arguments)
    assert code == 1
    assert f"the checkpoint is about {here / 'mail.jsonl'}, not about {here / 'other' / 'mail.jsonl'}" in err
    assert main("run", "../mail.jsonl", *arguments)[0] == 0
    assert load(here / "m").n_iterations == len(stream)


def test_a_checkpoint_of_another_kind_of_source(here, main):
    pytest.importorskip("redis", reason="the extra 'redis' is not installed")
    assert main("run", "mail.jsonl", "--no-follow", "--predictions", "none", "--checkpoint", "m")[0] == 0
    code, _, err = main("run", "redis://localhost/mail", "--checkpoint", "m")
    assert code == 1
    assert f"m is about {here / 'mail.jsonl'}: " in err


def test_a_run_that_does_not_begin_saves_nothing(here, main):
    assert main("train", "mail.jsonl", "--save", "m")[0] == 0
    code, _, err = main("run", "mail.jsonl", "--save", "m", "--predictions", "foo")
    assert (code, "give kafka://host/topic or redis://host/stream" in err) == (1, True)
    assert load("m").n_iterations == len(stream)


def test_run_tells_of_ever_more_bad_lines(here, main):
    (here / "bad.jsonl").write_text("no JSON\n" * 1_234)
    _, _, err = main("run", "bad.jsonl", "--no-follow")
    lines = err.splitlines()
    assert [line.split(": ")[1] for line in lines[9:13]] == [
        "line 10 skipped",
        "100 lines skipped, the newest of them line 100",
        "1,000 lines skipped, the newest of them line 1000",
        "1,224 more bad lines skipped",
    ]


def test_answers_go_on_where_the_disk_was_full(here, monkeypatch):
    class Disk(io.RawIOBase):
        room, taken = 0, b""

        def writable(self):
            return True

        def write(self, data):
            n = min(self.room, len(data), 7)
            if n == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.room -= n
            self.taken += bytes(data[:n])
            return n

    disk = Disk()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(disk), "utf-8"))
    monkeypatch.setattr(sys, "argv", ["stream-pegasos", "run", "mail.jsonl", "--no-follow", "--limit", "60"])

    def make_room(seconds):
        disk.room += 100

    monkeypatch.setattr("stream_pegasos.operation.live.sleep", make_room)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0
    lines = disk.taken.decode().splitlines()
    assert len(lines) == 60
    assert all(re.fullmatch(r"(ham|spam)?\t[01]\.[0-9]{6}", line) for line in lines)


@pytest.mark.parametrize("errors", ["full", "closed"])
def test_messages_that_nobody_can_take_stop_nothing(errors, tmp_path):
    """A log often stands on the disk that is full, and daemons close standard error."""
    mail, folder = tmp_path / "mail.jsonl", tmp_path / "away"
    mail.write_text('{"text": "win", "label": "spam"}\n')
    folder.mkdir()
    arguments = [str(mail), "--checkpoint", str(folder / "model"), "--checkpoint-seconds", "0.1"]
    command = [sys.executable, "-m", "stream_pegasos", "run", *arguments]
    redirect = "2>/dev/full" if errors == "full" else "2>&-"
    process = subprocess.Popen(["sh", "-c", f'exec "$@" {redirect}', "sh", *command], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"\t0.500000\n"
        os.rename(folder, tmp_path / "gone")
        with mail.open("a") as file:
            file.write('{"text": "lunch", "label": "ham"}\nno JSON\n')
        assert process.stdout.readline().startswith(b"spam\t")
        time.sleep(0.5)  # some checkpoints are due, and fail
        folder.mkdir()
        end = time.monotonic() + 20
        while not (folder / "model").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        assert load_with_progress(folder / "model")[1]["n_learned"] == 2
    finally:
        process.terminate()
        rest, _ = process.communicate(timeout=20)
    assert rest == b""


def test_a_model_whose_texts_stand_in_a_field_takes_them_as_they_are(main):
    model, plain = (TextClassifier().clone({"features": {"on": on}}) for on in ("body", None))
    model.learn_many([{"body": text} for text, _ in stream[:300]], [label for _, label in stream[:300]])
    plain.learn_many(*zip(*stream[:300], strict=True))
    model.save("on")
    plain.save("off")
    for command in ("predict", "explain"):
        assert main(command, "on", "mail.jsonl") == main(command, "off", "mail.jsonl")
    for name in ("on", "off"):
        assert main("train", "mail.jsonl", "--load", name, "--save", f"{name}.new")[0] == 0
    assert load("on.new").weights == load("off.new").weights
    assert main("explain", "on", "--text", "win a prize")[0] == 0


def test_values_that_the_model_refuses_cost_their_line_alone(main, here):
    lines = ["1 a:1", "-1 b:1", "-1 b:1e300", "1 a:2", "1 a:1e300", "-1 b:2"]
    (here / "v.vw").write_text("".join(f"{label} | {x}\n" for label, x in map(str.split, lines)))
    good = [line for line in lines if "e300" not in line]
    (here / "good.vw").write_text("".join(f"{label} | {x}\n" for label, x in map(str.split, good)))
    assert main("train", "good.vw", "--save", "expected")[0] == 0
    for arguments in (["evaluate"], ["evaluate", "--delay", 2], ["train"]):
        code, out, err = main(arguments[0], "v.vw", *arguments[1:], "--save", "m")
        assert code == 0 and "4 messages" in out and "2 bad lines" in out
        assert [line.split()[1:3] for line in err.splitlines()] == [["line", "3"], ["line", "5"]]
        assert load("m").weights == load("expected").weights
    code, out, err = main("predict", "m", "v.vw")
    assert code == 0 and len(out.splitlines()) == 4 and "line 3 skipped" in err
    done = process("run", "v.vw", "--no-follow", "--checkpoint", "live")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 6 and done.stdout.splitlines()[2] == b"\t0.500000"
    assert load("live").weights == load("expected").weights


def test_a_missing_positive_label_is_no_odd_label(main):
    """Also where the first label alone said enough."""
    write_jsonl("m.jsonl", [("a", 1), ("b", 2)] * 20)
    for command in ("evaluate", "train", "run"):
        options = {"train": ["--save", "m"], "run": ["--no-follow", "--checkpoint", "c"]}.get(command, [])
        code, _, err = main(command, "m.jsonl", "--threshold", 0.9, *options)
        assert code == 1 and "is label 2 the positive one?" in error_line(err)
    assert not os.path.exists("m") and not os.path.exists("c")
