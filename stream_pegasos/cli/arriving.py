"""Read a pipe in a thread, while the command does something else."""

from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Thread
from typing import Any

MOST_AHEAD = 1_000  # messages that are read before they are asked for


class Arriving(Iterator[Any]):
    """Messages that a thread reads ahead; `None` while there is none, so that nobody has to wait.

    Parameters
    ----------
    messages
        The messages that the thread reads. An exception of theirs is raised once, after the messages before it.
    """

    def __init__(self, messages: Iterable[Any]) -> None:
        self._queue: Queue[Any] = Queue(MOST_AHEAD)
        self._next: Any = None  # the message for which `wait` has waited
        Thread(target=self._read, args=(messages,), daemon=True).start()

    def wait(self) -> bool:
        """Wait for the next message, and return whether there is one."""
        if self._next is None:
            self._next = self._queue.get()
        return not isinstance(self._next, Exception)

    def __next__(self) -> Any:
        try:
            message = self._queue.get_nowait() if self._next is None else self._next
        except Empty:
            return None
        self._next = None
        if isinstance(message, Exception):
            self._next = StopIteration()
            raise message
        return message

    def _read(self, messages: Iterable[Any]) -> None:
        end: Exception = StopIteration()
        try:
            for message in messages:
                self._queue.put(message)
        except Exception as error:
            end = error
        self._queue.put(end)
