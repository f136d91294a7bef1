"""Room for what clients send: if there is none, the slowest client gives way."""

from __future__ import annotations

import asyncio
from typing import Protocol

PATIENCE = 2.0  # seconds that a client has in any case


class Sender(Protocol):
    n_bytes: int  # that it has sent and that are still kept

    def give_way(self) -> None: ...


class Room:
    """Counts the bytes of all clients, together at most `most`. `waiting` has the clients that the server waits for,
    the slowest first, each with the time since when it does.
    """

    def __init__(self, most: int) -> None:
        self.n_bytes, self._most = 0, most
        self.waiting: dict[Sender, float] = {}

    def take(self, sender: Sender, n: int) -> bool:
        """Count `n` more bytes of a client, and return whether there is room for them."""
        sender.n_bytes += n
        self.n_bytes += n
        return self.n_bytes <= self._most or self.make(sender, PATIENCE)

    def release(self, sender: Sender) -> None:
        """Stop counting the bytes of a client, which are not kept any longer."""
        self.n_bytes -= sender.n_bytes
        sender.n_bytes = 0

    def make(self, new: Sender, patience: float) -> bool:
        """Let the slowest client give way to a new one, if it had `patience` seconds; return whether it does."""
        slowest = next(iter(self.waiting), new)
        if slowest is new or asyncio.get_running_loop().time() < self.waiting[slowest] + patience:
            return False
        del self.waiting[slowest]
        self.release(slowest)
        slowest.give_way()
        return True
