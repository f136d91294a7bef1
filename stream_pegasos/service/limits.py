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
        The number of requests whose bodies are coming at a time. Beyond it the slowest one gives way. There may be four
        times as many connections; a proxy keeps those short that send nothing or half a head.
    seconds
        How long a client may take to send the body of a request.
    classes
        The number of labels that the model may learn here, as each takes memory for good.
    """

    body: int = 8 << 20
    text: int = 1_000_000
    batch: int = 10_000
    concurrency: int = 256
    seconds: float = 30.0
    classes: int = 10_000
