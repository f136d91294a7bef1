"""The end of a command: by itself, or by a signal."""

import _thread
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from stream_pegasos.cli.inputs import Input

T = TypeVar("T")

if TYPE_CHECKING:
    from stream_pegasos.runtime.stream_runner import StreamRunner
    from stream_pegasos.streams import Example

SECONDS_FOR_ANSWERS = 2.0  # for answers at the end of a run


class Interrupt:
    """Handles Ctrl-C and SIGTERM. They end only waits for input or output: no example is learned in part."""

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

    def wait(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function that waits for input or output; a signal ends it."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            return function(*arguments)
        finally:
            self._waiting = False

    def until_signal(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        """Yield the examples, until a signal comes."""
        iterator = iter(examples)
        while (example := self.wait(next, iterator, None)) is not None:
            yield example


@contextmanager
def stopping(live: "StreamRunner") -> Iterator[list[int]]:
    """Stop a run on Ctrl-C and SIGTERM; the yielded list has the received signals."""
    signals: list[int] = []
    is_over, is_overdue = threading.Event(), threading.Event()
    main = threading.current_thread()

    def hurry() -> None:
        # Answers in progress get some time; then the run drops them.
        while not is_over.wait(SECONDS_FOR_ANSWERS):
            is_overdue.set()
            if hasattr(signal, "pthread_kill"):  # also interrupts a system call
                signal.pthread_kill(cast(int, main.ident), signal.SIGINT)
            else:
                _thread.interrupt_main()

    waiting = threading.Thread(target=hurry, name="hurry", daemon=True)

    def handle(number: int, _: object) -> None:
        if is_overdue.is_set():
            is_overdue.clear()
            if live.sending:
                raise KeyboardInterrupt
            return
        signals.append(number)
        live.stop()
        if len(signals) == 1:
            waiting.start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        is_over.set()
        if waiting.ident is not None:
            waiting.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def exit_with_code(source: Input, interrupt: Interrupt | None = None) -> NoReturn:
    if interrupt and interrupt.signal is not None:
        raise click.exceptions.Exit(128 + interrupt.signal)
    raise click.exceptions.Exit(
        1 if source.is_misspelt() or source.broken_off or (source.strict and source.n_bad) else 0
    )
