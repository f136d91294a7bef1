"""Room for what clients send: where there is none, the slowest client gives way."""

from __future__ import annotations

import asyncio
from typing import Protocol

PATIENCE = 2.0  # seconds that a client has in any case


class Sender(Protocol):
    n_bytes: int  # that it has sent and that are still kept

    def give_way(self) -> None: ...


class Room:
    """Counts the bytes of all clients, of which there may be `most`, and those that are waited for: `waiting` has since
    when, the slowest first.
    """

    def __init__(self, most: int) -> None:
        self.n_bytes, self._most = 0, most
        self.waiting: dict[Sender, float] = {}

    def take(self, sender: Sender, n: int) -> bool:
        """Take `n` more bytes of a client; whether there is room for them."""
        sender.n_bytes += n
        self.n_bytes += n
        return self.n_bytes <= self._most or self.make(sender, PATIENCE)

    def release(self, sender: Sender) -> None:
        """The bytes of a client are not kept any longer."""
        self.n_bytes -= sender.n_bytes
        sender.n_bytes = 0

    def make(self, new: Sender, patience: float) -> bool:
        """Whether another client gives way to this one: the slowest, if it had so many seconds."""
        slowest = next(iter(self.waiting), new)
        if slowest is new or asyncio.get_running_loop().time() < self.waiting[slowest] + patience:
            return False
        del self.waiting[slowest]
        self.release(slowest)
        slowest.give_way()
        return True
