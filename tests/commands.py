"""The command in a process of its own, a stream for it, and what it answers."""

import json
import os
import subprocess
import sys

from stream_pegasos import TextClassifier
from stream_pegasos.streams import synthetic

stream = list(synthetic(n=600, seed=11))
environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path)), "COLUMNS": "100"}
command = [sys.executable, "-m", "stream_pegasos"]


def write_jsonl(path, examples):
    with open(path, "w") as file:
        file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in examples)


def line_of(text, label=None):
    return json.dumps({"text": text} if label is None else {"text": text, "label": label}).encode() + b"\n"


def process(*arguments, **options):
    return subprocess.run([*command, *map(str, arguments)], env=environment, capture_output=True, timeout=60, **options)


def started(*arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *arguments], env=environment, **pipes, **options)


def metrics(summary):
    """The figures of a summary by name."""
    rows = (line.rsplit(maxsplit=1) for line in summary.splitlines()[2:9])
    return {name: float(value) for name, value in rows}


def error_line(err):
    """The only line of standard error, which must be an error."""
    (line,) = err.splitlines()
    assert line.startswith("stream-pegasos: error: ")
    return line


def reference_of(examples):
    model = TextClassifier()
    for text, label in examples:
        model.learn_one(text, label)
    return model
