"""The commands `evaluate` and `train`, `predict` with what they saved, and which models they take."""

import csv
import subprocess
import sys

import pytest
from commands import command as program
from commands import environment, figures, reference_of, run_at_terminal, stream, write_jsonl

from stream_pegasos import KernelPegasosClassifier, PegasosClassifier, TextClassifier, TextFeatures, load
from stream_pegasos.cli import options
from stream_pegasos.evaluation.prequential import prequential
from stream_pegasos.streams import synthetic

TEXTS = [text for text, _ in stream]


def test_evaluate_needs_no_file(main):
    code, out, err = main("evaluate --limit 2000")
    assert (code, err) == (0, "")
    score = prequential([*synthetic()][:2_000], TextClassifier()).score
    assert out.startswith("synthetic stream: 2,000 messages in ") and ", 0 bad lines" in out.splitlines()[0]
    assert [*figures(out).values()] == [round(value, 4) for value in score.metrics().values()]


def test_evaluate_writes_what_it_is_told_to(ok, here):
    out = ok("evaluate mail.jsonl --plot c.csv --save m")
    assert figures(ok("evaluate mail.jsonl --plot p.png")) == figures(out)
    with open("c.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["n"]) for row in rows] == list(range(50, 601, 50))
    assert float(rows[-1]["accuracy"]) == pytest.approx(figures(out)["accuracy"], abs=5e-5)
    names = "n accuracy balanced_accuracy macro_f1 micro_f1 f1 roc_auc log_loss calibration_error window_accuracy"
    names += " coverage set_size sets_of_one window_coverage seconds"
    assert [*rows[0]] == names.split()
    assert (here / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert load("m").weights == reference_of(stream).weights


def test_evaluate_with_options_of_the_model(ok):
    out = ok(
        "evaluate mail.jsonl --l2 1e-3 --pos-label ham --delay 5 --save m --features",
        '{"ngram_range": [1, 2], "n_features": 5000, "binary": false, "mask_digits": false, "prefix_length": 0}',
    )
    model = TextClassifier(
        TextFeatures(n_features=5000, ngram_range=(1, 2), binary=False, mask_digits=False, prefix_length=0),
        PegasosClassifier(l2=1e-3, pos_label="ham"),
    )
    score = prequential(stream, model, delay=5).score
    assert figures(out)["f1 of ham"] == round(score.f1, 4) and figures(out)["log_loss"] == round(score.log_loss, 4)
    assert load("m").features._get_params() == model.features._get_params()
    assert load("m").classifier._get_params() == model.classifier._get_params()


def test_plot_without_matplotlib(here):
    script = "import sys; sys.modules['matplotlib'] = None; import stream_pegasos.cli as cli; cli.main()"
    plot = [sys.executable, "-c", script, "evaluate", "--plot", "p.png"]
    done = subprocess.run(plot, env=environment, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"{sys.executable} -m pip install 'matplotlib>=" in done.stderr


def test_progress_on_a_terminal_only(here, main):
    done, shown = run_at_terminal([*program, "evaluate", "mail.jsonl"], "stderr")
    assert b"docs/s" in shown and b"Traceback" not in shown
    assert done.stdout.startswith(b"mail.jsonl: 600 messages")
    assert main("evaluate mail.jsonl")[2] == ""


def test_training_in_two_runs_is_training_in_one(ok):
    write_jsonl("a.jsonl", stream[:250])
    write_jsonl("b.jsonl", stream[250:])
    TextClassifier(classifier=PegasosClassifier(batch_size=7)).save("new")
    ok("train new mail.jsonl --save whole")
    ok("train new a.jsonl --save m")
    ok("train m b.jsonl --save m")
    assert load("m").weights == load("whole").weights and load("m").n_iterations == load("whole").n_iterations


def test_any_number_of_threads_gives_the_same_files(ok, here, monkeypatch):
    write_jsonl("long.jsonl", [(text * 9, label) for text, label in stream])
    written = set()
    for threads in (1, 3):
        monkeypatch.setattr(options, "n_threads", lambda n=threads: n)
        ok("train long.jsonl --save m")
        answers = ok("predict m long.jsonl")
        ok("test m long.jsonl --output tested.tsv")
        ok("evaluate long.jsonl --output evaluated.tsv")
        written.add((answers, *((here / name).read_bytes() for name in ("m", "tested.tsv", "evaluated.tsv"))))
    assert len(written) == 1


def test_a_loaded_model_takes_a_limit(ok, fails):
    """Everywhere the same; the explanations say it."""
    write_jsonl("again.jsonl", stream)
    ok("train mail.jsonl --save m")
    limit = "--pos-label spam --max-false-positive-rate"
    expected = load("m")
    expected.set_decision(max_false_positive_rate=0.005, pos_label="spam")
    ok(f"train m {limit} 0.005 --save limited")
    assert load("limited").to_state()[2] == expected.to_state()[2]
    ok("run limited again.jsonl --checkpoint c --no-follow --output none")
    expected.predict_learn_many(*zip(*stream, strict=True))
    assert load("c").to_state()[2] == expected.to_state()[2]
    ok(f"train m again.jsonl --save t {limit} 0.005")
    texts = [text for text, _ in synthetic(n=1_000, seed=12)]
    withheld = load("t").predictions(texts).withheld
    for held in ([], ["spam"]):
        head = ok("explain t --text", texts[withheld.index(held)]).splitlines()[0]
        assert ("; the limit of false positives withholds spam" in head) == bool(held)
    assert "MODEL" in fails("train m mail.jsonl --save t --features {}", code=2)


def test_models_and_messages_must_fit(ok, fails, here):
    (here / "a.vw").write_text("1 | a\n-1 | b\n", encoding="utf-8")
    ok("train a.vw --save dicts")
    reference_of(stream[:50]).save("texts")
    for model, file in (("dicts", "mail.jsonl"), ("texts", "a.vw")):
        assert "has format" in fails(f"predict {model} {file}")
    kernel = TextClassifier(classifier=KernelPegasosClassifier(budget=50))
    kernel.learn_many(*zip(*stream, strict=True))
    kernel.save("kernel")
    assert ok("predict kernel mail.jsonl").count("\n") == len(stream)
    for words, reason in (
        ("kernel mail.jsonl", "has a kernel"),
        ("kernel --text a", "linear"),
        ("dicts --text a", "a model of features"),
    ):
        assert reason in fails(f"explain {words}")
    fails("explain dicts a.vw --text a", code=2)
