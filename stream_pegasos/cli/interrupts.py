"""How a command ends: with its work, or on a signal."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click

from stream_pegasos.cli.inputs import Input

if TYPE_CHECKING:
    from stream_pegasos.streams import Example

SECONDS_FOR_ANSWERS = 2.0  # when a run is to end


class Interrupt:
    """Ctrl-C and SIGTERM, heeded while waiting for others: learning an example is never cut in half."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    def __enter__(self) -> "Interrupt":
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: object) -> None:
        self.signal = number
        if self._waiting:
            raise KeyboardInterrupt

    def wait(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that waits for input or output; a signal ends it."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            return function(*arguments)
        finally:
            self._waiting = False

    def until_signal(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        """The examples, until a signal comes."""
        iterator = iter(examples)
        while (example := self.wait(next, iterator, None)) is not None:
            yield example


@contextmanager
def stopping(live: Any) -> Iterator[list[int]]:
    """Stop on Ctrl-C and SIGTERM; which signal came, if one did."""
    came: list[int] = []

    def handle(number: int, _: object) -> None:
        came.append(number)
        live.stop()
        # Answers on their way get some time; then those are given up that nobody takes.
        if len(came) == 1:
            signal.setitimer(signal.ITIMER_REAL, SECONDS_FOR_ANSWERS)

    def give_up(number: int, _: object) -> None:
        if live.sending:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, SECONDS_FOR_ANSWERS)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, give_up)
    try:
        yield came
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_with_code(source: Input, interrupt: Interrupt | None = None) -> NoReturn:
    if interrupt and interrupt.signal is not None:
        raise click.exceptions.Exit(128 + interrupt.signal)
    raise click.exceptions.Exit(1 if source.strict and source.n_bad else 0)
