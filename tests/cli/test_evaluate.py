"""The command `evaluate`."""

import csv
import gzip
import os
import pty
import subprocess
import sys

import pytest
from commands import command, environment, error_line, metrics, process, stream

from stream_pegasos import PegasosClassifier, TextClassifier, TextFeatures, engine, load
from stream_pegasos.evaluation.prequential import evaluate
from stream_pegasos.streams import synthetic

pure = engine.NAME == "pure"


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
        TextFeatures(
            n_features=5000,
            ngram_range=(1, 2),
            binary=True,
            norm=None,
            token_pattern=r"\w+",
            mask_digits=False,
            prefix_length=0,
            boundaries=False,
        ),
        PegasosClassifier(l2=1e-3, t0=10, batch_size=2, project=False, fit_intercept=True, pos_label="ham"),
    )
    score = evaluate(model, stream, delay=5).score
    assert metrics(out)["F1 of ham"] == round(score.f1, 4)
    assert metrics(out)["log loss"] == round(score.log_loss, 4)
    assert load("m").features._get_params() == model.features._get_params()
    assert load("m").classifier._get_params() == model.classifier._get_params()


def test_limit(main):
    assert "mail.jsonl: 70 messages" in main("evaluate", "mail.jsonl", "--limit", 70)[1]
    assert "synthetic stream: 70 messages" in main("evaluate", "--limit", 70)[1]


def test_standard_input():
    data = gzip.compress(b"".join(b"%s\t%s\n" % (y.encode(), x.encode()) for x, y in stream))
    done = process("evaluate", "-", "--format", "labelled-text", input=data)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"standard input: 600 messages")
    done = process("evaluate", "-", input=b'{"text": "a", "label": 1}\n')
    assert done.stdout.startswith(b"standard input: 1 message")


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


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [("sms_spam.jsonl.gz", "5,574", 0.93)] + [("enron_1to3.jsonl.gz", "16,541", 0.95)] * (not pure),
)
def test_real_streams(main, data_folder, name, n, least):
    code, out, err = main("evaluate", data_folder / name)
    assert (code, err) == (0, "")
    assert f"{n} messages" in out
    assert metrics(out)["accuracy"] > least
