"""Sources that follow a script, and runs over them."""

import threading

from stream_pegasos import TextClassifier
from stream_pegasos.runtime.stream_runner import StreamRunner
from stream_pegasos.streams import Batch, Example

WORDS = ["the", "cheap", "pills", "see", "you", "at", "lunch", "noon", "free", "prize"]


def message(i, labelled=True):
    y = ("ham", "spam")[i * 7 % 3 == 0]
    return Example(f"{WORDS[i % 10]} {WORDS[i * 3 % 7]} {y[: i % 3]}", y if labelled else None, 1.0, i, i)


class Script:
    """A source that gives its examples in batches of those sizes; a position is how many were given."""

    name = "script"

    def __init__(self, examples, sizes=(3,), position=None, failure=None, endless=False):
        self.examples, self.sizes, self.at = examples, sizes, position or 0
        self.failure, self.endless = failure, endless
        self.closed = threading.Event()
        self.noted = []

    def batches(self):
        number = 0
        while self.at < len(self.examples) and not self.closed.is_set():
            size = self.sizes[number % len(self.sizes)]
            number += 1
            self.at += (taken := len(self.examples[self.at : self.at + size]))
            yield Batch(self.examples[self.at - taken : self.at], self.at)
        if self.failure is not None:
            raise self.failure
        if self.endless:
            self.closed.wait(20)

    def commit(self, position):
        self.noted.append(position)

    def close(self):
        self.closed.set()


class Run:
    """A runner, with all that it sends and says."""

    def __init__(self, source, model=None, send=None, **options):
        self.answers, self.bad, self.events = [], [], []
        self.model = TextClassifier() if model is None else model
        self.source = source
        self.runner = StreamRunner(
            self.model,
            source,
            send or self.answers.extend,
            on_bad=lambda example, reason: self.bad.append((example, reason)),
            on_event=self.events.append,
            **options,
        )

    def run(self):
        self.runner.run()
        return self


def learned(examples):
    model = TextClassifier()
    for example in examples:
        model.learn_one(example.x, example.y)
    return model
