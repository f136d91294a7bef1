"""A mail over HTTP as rspamd takes it, and an answer as rspamd gives it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from stream_pegasos.mail.asking import verdict_of
from stream_pegasos.mail.headers import certain
from stream_pegasos.mail.ids import mail_id
from stream_pegasos.mail.protocol import symbol_of
from stream_pegasos.mail.verdict import REQUIRED, Verdict, Verdicts
from stream_pegasos.service import Service
from stream_pegasos.service.messages import as_json
from stream_pegasos.service.openapi import Operation

__all__ = ["OWN_SYMBOL", "checkv2"]

OWN_SYMBOL = "STREAM_PEGASOS"  # which has the outcome and the probability
ADD_HEADER, NO_ACTION = "add header", "no action"


def checkv2(service: Service, verdicts: Verdicts) -> Operation:
    """What answers rspamd's clients: the body is a mail, of whatever content type."""

    async def check(mail: bytes) -> Response:
        verdict = await verdict_of(service, verdicts, mail)
        return as_json(
            {
                "is_skipped": False,
                "score": verdict.score,
                "required_score": REQUIRED,
                "action": ADD_HEADER if verdict.is_spam else NO_ACTION,
                "thresholds": {ADD_HEADER: REQUIRED},
                "symbols": symbols(verdict),
                "message-id": mail_id(mail),
            }
        )

    return Operation("POST", "/checkv2", check, "Whether a mail is spam, as rspamd answers", takes_bytes=True)


def symbols(verdict: Verdict) -> dict[str, Any]:
    """The outcome, and the words that decided with what each adds, by the names of rspamd's symbols."""
    options = [f"outcome={verdict.outcome}"]
    if verdict.probability is not None:
        options.append(f"probability={certain(verdict.probability)}")
    scores = {OWN_SYMBOL: verdict.score} | {
        name: round(value, 4) for word, value in verdict.words if (name := symbol_of(word))
    }
    return {
        name: {"name": name, "score": score, "options": options if name == OWN_SYMBOL else []}
        for name, score in scores.items()
    }
