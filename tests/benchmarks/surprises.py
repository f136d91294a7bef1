"""What a stream brings that nobody expects, beside peers: a misspelt label, several labels in one line, a quote that is
never closed, labels that come late.

    python tests/benchmarks/surprises.py
"""

import copy
import io
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from corpora import known
from peers import is_installed
from report import Table
from river import evaluate, metrics
from sklearn.metrics import f1_score

from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, TextClassifier, prequential
from stream_pegasos.streams import read, synthetic

N_TESTED = 500


def main() -> None:
    warnings.simplefilter("ignore")
    print_misspelt_label()
    print_several_labels()
    print_open_quote()
    print_late_labels()


def print_misspelt_label() -> None:
    """One message has a label that no other has; then this label is forgotten."""
    table = Table("a misspelt label, log loss of the next 500", "before", "after it", "label forgotten")
    for corpus in known():
        if corpus.kind not in ("two classes", "classes"):
            continue
        for n in (100, 1_000, 5_000):
            if n + N_TESTED >= len(corpus.texts):
                continue
            model = TextClassifier()
            model.learn_many(corpus.texts[:n], corpus.labels[:n])
            after = copy.deepcopy(model)
            after.learn_one(corpus.texts[n], "mistake" if isinstance(corpus.labels[0], str) else 7)
            forgotten = copy.deepcopy(after)
            forgotten.forget_class(after.classes[-1])
            held_out = [*zip(corpus.texts, corpus.labels, strict=True)][n + 1 : n + 1 + N_TESTED]
            models = (model, after, forgotten)
            losses = [prequential(held_out, each, learn=False).score.log_loss for each in models]
            table.row(f"{corpus.name}, {n:,} learned", *(f"{loss:.3f}" for loss in losses))


def print_several_labels() -> None:
    """The topics of Reuters' stories as lines of Vowpal Wabbit: both learn the first 80 %, and predict the rest."""
    if not is_installed("vowpalwabbit", "Vowpal Wabbit"):
        return
    for corpus in known():
        if corpus.kind == "labels":
            break
    else:
        return
    numbers = {label: number for number, label in enumerate(corpus.met)}
    labels = [[numbers[label] for label in held] for held in corpus.labels]
    words = [" ".join("".join(c if c.isalnum() else " " for c in text.lower()).split()) for text in corpus.texts]
    lines = [f"{','.join(map(str, held))} | {text}" for held, text in zip(labels, words, strict=True)]
    n = len(lines) * 4 // 5
    with tempfile.TemporaryDirectory() as folder:
        learned, rest, said = (Path(folder) / name for name in ("learned.vw", "rest.vw", "said"))
        learned.write_text("\n".join(lines[:n]) + "\n", encoding="utf-8")
        rest.write_text("\n".join(lines[n:]) + "\n", encoding="utf-8")
        vw = [sys.executable, "-m", "vowpalwabbit", "--quiet"]
        options = ["--multilabel_oaa", str(len(numbers)), "-b", "22", "--loss_function", "logistic"]
        subprocess.run([*vw, *options, "-d", learned, "-f", f"{folder}/model"], check=True)
        subprocess.run([*vw, "-t", "-i", f"{folder}/model", "-d", rest, "-p", said], check=True)
        of_vw = [
            [int(label) for label in line.split(",") if label.strip()]
            for line in said.read_text(encoding="utf-8").splitlines()
        ]
        model = MultiLabelClassifier(AdaptiveClassifier())
        for example in read(learned):
            model.learn_one(example.x, example.y if isinstance(example.y, tuple) else (example.y,))
        ours = [[*held] for held in model.predict_many([example.x for example in read(rest)])]
    table = Table("several labels in lines of Vowpal Wabbit", "its micro F1", "ours")
    table.row(
        f"{n:,} stories, {len(numbers)} topics", *(f"{micro_f1(labels[n:], found):.4f}" for found in (of_vw, ours))
    )


def micro_f1(truths: list[list[int]], found: list[list[int]]) -> float:
    size = 1 + max(max(held, default=0) for held in truths + found)
    holds = np.zeros((2, len(truths), size), bool)
    for which, rows in enumerate((truths, found)):
        for row, held in enumerate(rows):
            holds[which, row, held] = True
    return float(f1_score(*holds, average="micro"))


def print_open_quote() -> None:
    """In line 10 of 1,000 a quote begins that never ends."""
    rows = [f"{label},{text.replace(',', ' ')}" for text, label in synthetic(1_000)]
    rows[9] = rows[9].replace(",", ',"', 1)
    content = "label,text\n" + "\n".join(rows) + "\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mail.csv"
        path.write_text(content, encoding="utf-8")
        ours = sum(1 for _ in read(path, on_bad_line=lambda *_: None))
    table = Table("a quote in line 10 of 1,000 that is never closed", "lines read")
    table.row("stream_pegasos", str(ours))
    table.row("pandas", lines_read(lambda: len(pd.read_csv(io.StringIO(content)))))
    table.row(
        "pandas, on_bad_lines='skip'", lines_read(lambda: len(pd.read_csv(io.StringIO(content), on_bad_lines="skip")))
    )


def lines_read(count: Callable[[], int]) -> str:
    try:
        return str(count())
    except pd.errors.ParserError as error:
        return f"none: {' '.join(str(error).split())}"


def print_late_labels() -> None:
    """Processor time a message, in microseconds: of ours with all metrics and the curve, of River's loop over the same
    model with accuracy alone and with three metrics. Medians of seven, in turn.
    """
    stream = [(text, label == "spam") for text, label in synthetic(20_000)]
    table = Table("labels that come late, µs a message", "ours", "River, accuracy", "River, three metrics")
    for delay in (1, 10, 100):
        runs = (
            lambda delay=delay: prequential(stream, TextClassifier(), delay=delay),
            lambda delay=delay: rivers_loop(stream, metrics.Accuracy(), delay),
            lambda delay=delay: rivers_loop(stream, metrics.Accuracy() + metrics.F1() + metrics.ROCAUC(), delay),
        )
        times: list[list[float]] = [[], [], []]
        for _ in range(7):
            for run, seconds in zip(runs, times, strict=True):
                start = time.process_time()
                run()
                seconds.append((time.process_time() - start) / len(stream) * 1e6)
        table.row(f"by {delay}", *(f"{median(seconds):.1f}" for seconds in times))


def rivers_loop(stream: list[Any], metric: Any, delay: int) -> None:
    evaluate.progressive_val_score(stream, TextClassifier(), metric, delay=delay + 1)


if __name__ == "__main__":
    main()
