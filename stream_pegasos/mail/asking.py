"""The verdict of a service on a mail."""

from __future__ import annotations

import asyncio
from typing import Any

from stream_pegasos.features.message import Message
from stream_pegasos.mail.verdict import Verdict, Verdicts, message_of
from stream_pegasos.service import Service
from stream_pegasos.streams.mail_ids import mail_id

__all__ = ["message_at_work", "verdict_of"]

LARGE = 50_000  # bytes; larger mails are parsed in a thread


async def verdict_of(service: Service, verdicts: Verdicts, mail: bytes, explains: bool = True) -> Verdict:
    """The verdict on a mail, with or without the words that decided."""
    x = await message_at_work(mail, service.model)
    (predicted,) = await service.predict([x], [mail_id(mail)])
    with service.monitor.lock:
        model = service.model  # which may have been replaced meanwhile
        return verdicts.of(model, predicted, verdicts.words(model, x) if explains else ())


async def message_at_work(mail: bytes, model: Any) -> Message:
    """A mail as a message of a model. A large one is parsed in a thread."""
    x = message_of(mail, model)
    if len(mail) > LARGE:
        await asyncio.to_thread(model.features.prepare, x)
    return x
