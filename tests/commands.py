"""The command in a process of its own, a stream for it, and what it answers."""

import json
import os
import pty
import subprocess
import sys

from stream_pegasos import TextClassifier
from stream_pegasos.streams import synthetic

stream = list(synthetic(n=600, seed=11))
environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path)), "COLUMNS": "100"}
command = [sys.executable, "-m", "stream_pegasos"]


def write_jsonl(path, examples):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text, "label": label}) + "\n" for text, label in examples)


def append(path, examples):
    with open(path, "ab") as file:
        file.writelines(line_of(*example) for example in examples)


def line_of(text, label=None):
    return json.dumps({"text": text} if label is None else {"text": text, "label": label}).encode() + b"\n"


def process(*arguments, **options):
    return subprocess.run(
        [*command, *map(str, arguments)], env=environment, capture_output=True, timeout=120, **options
    )


def started(*arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*command, *arguments], env=environment, **pipes, **options)


def run_at_terminal(words, stream, env=environment):
    """Run a command whose standard output or error is a terminal; return what is shown there, which must be short."""
    terminal, end = pty.openpty()
    done = subprocess.run(words, env={**env, "TERM": "xterm"}, timeout=120, **{"stdout": subprocess.PIPE, stream: end})
    os.close(end)
    shown = b""
    try:
        while part := os.read(terminal, 65536):
            shown += part
    except OSError:  # on Linux the end of a terminal is an error
        pass
    os.close(terminal)
    return done, shown


def figures(summary):
    """The figures of a summary by name."""
    rows = (line.rsplit(maxsplit=1) for line in summary.split("\n\n")[1].splitlines())
    return {name: float(value) for name, value in rows}


def labels_of(answers):
    """The labels of answers of two columns."""
    return [line.split("\t")[0] for line in answers.splitlines()]


def reference_of(examples, model=None):
    model = model or TextClassifier()
    model.learn_many(*map(list, zip(*examples, strict=True)))
    return model
