"""The service's spamd in this process, and what a client sends it byte by byte."""

import asyncio
import copy
import socket
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("lxml")

from stream_pegasos.mail.spamd import Spamd
from stream_pegasos.mail.users import UserModels
from stream_pegasos.mail.verdict import Verdicts
from stream_pegasos.runtime.limits import Limits
from stream_pegasos.runtime.live_learner import LiveLearner

SPAM = b"Message-ID: <s@x>\nFrom: a@win.example\nSubject: prize\n\nClaim your free prize now\n"
HAM = b"Message-ID: <h@x>\nFrom: b@work.example\nSubject: lunch\n\nShall we have lunch at noon?\n"


@asynccontextmanager
async def answering(model, limits=None, folder=None, may_teach=True, **options):
    """The service, with the port of its spamd as an attribute."""
    service = LiveLearner(copy.deepcopy(model), limits=limits or Limits(seconds=20))
    users = UserModels(service, folder, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    service.users, service.port = users, listener.getsockname()[1]
    async with Spamd(users, Verdicts(), may_teach).listening(listener):
        yield service


async def exchange(port, sent, half_close=True):
    """All that is answered to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    if half_close:
        writer.write_eof()
    said = await reader.read()
    writer.close()
    return said


def request(command, mail=b"", *headers, version="1.5", length=True):
    lines = [f"{command} SPAMC/{version}", *([f"Content-length: {len(mail)}"] if length else []), *headers, "", ""]
    return "\r\n".join(lines).encode() + mail


def ask(model, *sent, half_close=True, **options):
    """What is answered to each of these, one after the other, by one service."""

    async def run():
        async with answering(model, **options) as service:
            return [await exchange(service.port, each, half_close) for each in sent]

    return asyncio.run(asyncio.wait_for(run(), 30))
