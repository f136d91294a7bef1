"""A server for spamc and other clients of SpamAssassin's spamd."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from socket import AF_UNIX, socket
from typing import TYPE_CHECKING

from stream_pegasos.features.message import Message
from stream_pegasos.mail.listening import remove_path
from stream_pegasos.mail.spamd_protocol import (
    EX_DATAERR,
    EX_IOERR,
    EX_SOFTWARE,
    EX_TEMPFAIL,
    EX_TIMEOUT,
    EX_UNAVAILABLE,
    NAMES,
    PONG,
    RefusalError,
    SpamdRequest,
    answer,
    bad_header,
    failure,
    inflated,
    read_head,
    tell_answer,
    too_large,
)
from stream_pegasos.mail.users import UserModels
from stream_pegasos.mail.verdict import HAM, SPAM, UNSURE, Verdict, Verdicts, make_message
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.limits import LARGEST_HEAD
from stream_pegasos.runtime.live_learner import EndingError, LiveLearner

if TYPE_CHECKING:
    from stream_pegasos.learners.text import TextClassifier

__all__ = ["Spamd", "judge_mail"]

log = logging.getLogger(__name__)

FAILURES = (EX_SOFTWARE, EX_IOERR, EX_TEMPFAIL)  # of the service, not of a client
SECONDS_TO_END = 10.0  # for requests in progress at the end
LARGE = 50_000  # bytes; larger mails are parsed in a thread
LINGER = 1.0  # seconds for a client that still sends to read its answer
PART = 64 << 10  # bytes of a body read at a time


class Spamd:
    """Answers SpamAssassin's protocol with the common model and the models of users.

    Each connection brings one request. A client has `Limits.seconds` to send it, and the same time to read the answer.
    If there are too many connections, a client is told to try again.
    """

    def __init__(self, users: UserModels, verdicts: Verdicts, may_teach: bool = True) -> None:
        self._users, self._verdicts, self._may_teach = users, verdicts, may_teach
        self._limits = users.common.limits
        users.common.n_verdicts.update(
            dict.fromkeys((SPAM, HAM, UNSURE), 0)
        )  # counters that Prometheus sees from the start
        self._clients: set[_Client] = set()
        self._waiting: set[_Client] = set()  # clients whose input or reading is awaited

    @asynccontextmanager
    async def listening(self, listener: socket) -> AsyncIterator[None]:
        """Answer the clients of a socket. At the end, close it and finish the requests in progress."""
        start = asyncio.start_unix_server if listener.family == AF_UNIX else asyncio.start_server
        server = await start(self._serve, sock=listener, limit=LARGEST_HEAD)
        try:
            yield
        finally:
            remove_path(listener)
            server.close()
            for client in [*self._waiting]:
                client.stop_waiting()
            if self._clients:
                _, late = await asyncio.wait([client.task for client in self._clients], timeout=SECONDS_TO_END)
                for task in late:
                    task.cancel()
            await self._users.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _Client(reader, writer)
        self._clients.add(client)
        try:
            try:
                if len(self._clients) > self._limits.connections:
                    raise RefusalError(EX_TEMPFAIL, "too many requests at the same time")
                response = await self._answer_to(client)
            except Exception as error:
                refusal = _refusal(error)
                response = failure(refusal)
                common, is_failure = self._users.common, refusal.code in FAILURES
                common.monitor.refused("spamd", str(refusal.code), refusal.reason, is_failure)
                common.refusals.add(f"spamd {refusal.code}", NAMES[refusal.code], is_failure)
            with self._waiting_for(client):
                async with client.timer:
                    await client.send(response)
                    await client.linger()
        except OSError:  # the client has left, or does not read its answer in time
            writer.transport.abort()
        finally:
            self._clients.discard(client)
            writer.close()

    @contextmanager
    def _waiting_for(self, client: _Client) -> Iterator[None]:
        """Wait for the client within its time, which ends early when the server stops."""
        client.timer = asyncio.timeout(self._limits.seconds)
        self._waiting.add(client)
        try:
            yield
        finally:
            self._waiting.discard(client)

    async def _answer_to(self, client: _Client) -> bytes:
        try:
            with self._waiting_for(client):
                async with client.timer:
                    request = await read_head(client.reader)
            if not request.has_mail:
                return PONG if request.command == "PING" else b""
            with self._waiting_for(client):
                async with client.timer:
                    mail = await self._mail(client, request)
        except TimeoutError:
            raise RefusalError(EX_TIMEOUT, "the request did not come in time") from None
        if request.command == "TELL":
            return await self._tell(request, mail)
        async with self._users.serving(request.user) as learner:
            verdict = await judge_mail(learner, self._verdicts, mail, explains=request.command != "CHECK")
        self._users.common.n_verdicts[verdict.outcome] += 1  # for all users
        return answer(request, mail, verdict)

    async def _mail(self, client: _Client, request: SpamdRequest) -> bytes:
        """The mail in the body of a request."""
        largest, length = self._limits.body, request.length
        if length is not None and length > largest:
            raise too_large(largest)
        if request.is_compressed and length is None:
            raise RefusalError(EX_UNAVAILABLE, "Compress requires Content-length header")
        mail = bytearray()
        while length is None or len(mail) < length:
            # One byte more than the length shows that the length is wrong.
            part = await client.reader.read(PART if length is None else min(PART, length - len(mail) + 1))
            if not part:
                break
            mail += part
            if len(mail) > largest + 1:
                raise too_large(largest)
        if length is not None and len(mail) != length:
            # Like spamd, ignore further lines.
            if len(mail) < length or not mail[:length].endswith(b"\n"):
                got = len(mail) if len(mail) < length else "more"
                raise bad_header(f"(Content-Length mismatch: Expected {length} bytes, got {got} bytes)")
            del mail[length:]
        if not request.is_compressed:
            return bytes(mail)
        return inflated(mail, largest)

    async def _tell(self, request: SpamdRequest, mail: bytes) -> bytes:
        if not self._may_teach:
            raise RefusalError(EX_UNAVAILABLE, "TELL commands have not been enabled.")
        if request.sets and request.removes:
            raise bad_header("Unable to set local and remove local in the same operation.")
        if request.sets and not request.label:
            raise bad_header("(Message-class header is missing)")
        if not request.sets and not request.removes:
            return tell_answer(False, False)
        if not mail.strip():
            raise RefusalError(EX_DATAERR, "the mail is missing")
        if not self._users.may_teach(request.user):
            return tell_answer(False, False)
        async with self._users.serving(request.user, teaches=True) as learner:
            x, id = await _parsed(mail, learner.model), mail_id(mail)
            if request.removes:
                (outcome,) = await learner.unlearn([x], [id])
                return tell_answer(False, outcome != "unknown")
            label = SPAM if request.label == "spam" else HAM
            (answered,) = await learner.learn([(x, label)], [id])
            return tell_answer(bool(answered.learned), False)


async def judge_mail(learner: LiveLearner, verdicts: Verdicts, mail: bytes, explains: bool = True) -> Verdict:
    """The verdict of a learner on a mail, with or without the words that decided."""
    x = await _parsed(mail, learner.model)
    (predicted,) = await learner.predict([x], [mail_id(mail)])
    with learner.monitor.lock:
        model = learner.model  # it may have been replaced meanwhile
        return verdicts.of(model, predicted, verdicts.words(model, x) if explains else ())


async def _parsed(mail: bytes, model: TextClassifier) -> Message:
    """A mail as a message of a model. A large one is parsed in a thread."""
    x = make_message(mail, model)
    if len(mail) > LARGE:
        await asyncio.to_thread(model.features.prepare, x)
    return x


def _refusal(error: Exception) -> RefusalError:
    """The answer to an error."""
    if isinstance(error, RefusalError):
        return error
    if isinstance(error, EndingError):
        return RefusalError(EX_TEMPFAIL, str(error))
    if isinstance(error, (ValueError, TypeError)):
        return RefusalError(EX_DATAERR, str(error))
    if isinstance(error, OSError):
        return RefusalError(EX_IOERR, error.strerror or str(error))
    log.error("spamd: %r", error)
    return RefusalError(EX_SOFTWARE, "the service has a fault")


class _Client:
    """A connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.reader, self.writer, self.task = reader, writer, task
        self.timer = asyncio.timeout(None)

    def stop_waiting(self) -> None:
        """Stop waiting for the client."""
        with suppress(RuntimeError):  # its time has just ended
            self.timer.reschedule(0.0)

    async def send(self, response: bytes) -> None:
        """Send the answer, and wait until the client has taken it."""
        self.writer.transport.set_write_buffer_limits(0)
        self.writer.write(response)
        self.writer.write_eof()
        await self.writer.drain()

    async def linger(self) -> None:
        """Wait a moment before the connection is closed, so that a client that still sends can read its answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while await self.reader.read(LARGEST_HEAD):
                    pass
