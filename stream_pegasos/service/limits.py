"""What a client of the service may ask for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What a client may ask for.

    Parameters
    ----------
    body
        The size of a request's body, in bytes. All bodies that are not answered yet may have four times that much
        together; beyond it the slowest one that is being received gives way.
    text
        The length of a text, in characters.
    batch
        The number of messages in a request.
    concurrency
        The number of connections at a time. Beyond it, the connection that waited longest for its client is closed; if
        all are at work on a request, the answer is 503.
    seconds
        How long a client may take to send the head of a request, to send its body, and to take an answer.
    classes
        The number of labels that the model may learn here, as each takes memory for good.
    """

    body: int = 8 << 20
    text: int = 1_000_000
    batch: int = 10_000
    concurrency: int = 256
    seconds: float = 30.0
    classes: int = 10_000
