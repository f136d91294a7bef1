"""Limits of the service."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """What a client may ask for.

    Parameters
    ----------
    body
        The size of a request's body, in bytes. All bodies that wait for their answer may have four times that much
        together. Beyond that the slowest client gives way.
    text
        The length of a text, in characters.
    batch
        The number of messages in a request.
    concurrency
        The number of bodies that are received at a time. Beyond that the slowest client gives way. There may be four
        times as many connections; a proxy ends those that send nothing or half a head.
    seconds
        How long a client may take to send the body of a request.
    classes
        The number of labels that the model may learn here. Each takes memory for good.
    """

    body: int = 8 << 20
    text: int = 1_000_000
    batch: int = 10_000
    concurrency: int = 256
    seconds: float = 30.0
    classes: int = 10_000
