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
        The size of a request's body, in bytes.
    text
        The length of a text, in characters.
    batch
        The number of messages in a request.
    connections
        The number of connections at a time. What comes beyond that is answered by 503. A proxy ends connections that
        send nothing or half a head, and limits those of each client.
    seconds
        How long a client may take to send the body of a request.
    classes
        The number of labels that the model may learn here. Each takes memory for good.
    """

    body: int = 8 << 20
    text: int = 1_000_000
    batch: int = 10_000
    connections: int = 1024
    seconds: float = 30.0
    classes: int = 10_000
