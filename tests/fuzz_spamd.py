"""A target of the fuzzer: what clients send to spamd."""

import asyncio
import re
import socket
import tempfile
import zlib
from pathlib import Path

from fuzz_mail import BY_HAND, TOKENS
from fuzz_shared import below, mutated, one_byte, state_of

from stream_pegasos import AdaptiveClassifier, MailFeatures, TextClassifier

COMMANDS = ["CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS", "TELL", "PING", "SKIP"]
HEADERS = [
    b"User: ann",
    b"User: ../../etc/passwd",
    b"User: \xff\xfe\n",
    b"user:",
    b"Message-class: spam",
    b"Message-class: ham",
    b"Set: local, remote",
    b"Remove: local",
    b"Compress: zlib",
    b"Content-length: 5",
    b"Content-length: -1",
    b"Content-length: \xb2",
    b"Content-length: " + b"9" * 5000,
    b"X-Other: y",
]
HEAD_TOKENS = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\0",
    b": ",
    b" SPAMC/1.",
    b"Content-length: ",
    b"TELL",
    b"CHECK",
    b"9" * 30,
]
ANSWER = re.compile(rb"SPAMD/1\.[015] (\d+) [^\r\n]*\r\n.*", re.DOTALL)
CODES = {0, 65, 67, 69, 75, 76, 79}
LARGEST = 20_000
BOMB = zlib.compress(bytes(100 * LARGEST))


def request(random):
    """The parts of what is sent, and how it ends."""
    mail = random.choice(BY_HAND)
    if random.random() < 0.7:
        mail = mutated(random, mail, BY_HAND, TOKENS, one_byte)
    headers = [random.choice(HEADERS) for _ in range(below(random, 4))]
    if b"Compress: zlib" in headers and random.random() < 0.9:
        mail = BOMB if random.random() < 0.1 else zlib.compress(mail)
    if random.random() < 0.7:
        headers.insert(below(random, len(headers) + 1), b"Content-length: %d" % len(mail))
    version = random.choice([b"1.0", b"1.2", b"1.3", b"1.5", b"1.5", b"1.5", b"9.9"])
    head = b"%b SPAMC/%b" % (random.choice(COMMANDS).encode(), version)
    if random.random() < 0.3:
        head = mutated(random, head, [head], HEAD_TOKENS, one_byte)
    sent = b"\r\n".join([head, *headers, b"", b""]) + mail
    if random.random() < 0.3:
        sent = mutated(random, sent, [sent], HEAD_TOKENS, one_byte)
    i = below(random, len(sent) + 1)
    parts = [sent[:i], sent[i:]] if random.random() < 0.3 else [sent]
    return parts, random.choices(["half-closed", "open", "gone"], [0.8, 0.15, 0.05])[0]


async def answer_to(port, parts, end):
    """What comes back until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0)
        if end == "gone":
            writer.transport.abort()
            return None
        if end == "half-closed":
            writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


class SpamdTarget:
    """Requests to spamd, over the loopback."""

    share, size = 1, 100

    def block(self, random):
        return [request(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        from stream_pegasos.mail.spamd import Spamd
        from stream_pegasos.mail.users import UserModels
        from stream_pegasos.mail.verdict import Verdicts
        from stream_pegasos.service import Limits, Service

        model = TextClassifier(MailFeatures(), AdaptiveClassifier(max_features=500))
        service = Service(model, limits=Limits(body=LARGEST, seconds=0.05))

        async def check_all(folder):
            users = UserModels(service, random.choice([None, folder]), most_loaded=1)
            spamd, listener = Spamd(users, Verdicts()), socket.create_server(("127.0.0.1", 0))
            port = listener.getsockname()[1]
            async with spamd.listening(listener):
                for i, (parts, end) in enumerate(inputs):
                    at(i)
                    before = state_of(service.model)
                    said = await answer_to(port, parts, end)
                    if said:
                        code = int(ANSWER.fullmatch(said)[1])
                        assert code in CODES, said
                        assert b"Traceback" not in said and b'File "' not in said
                        if code or (b"DidSet" not in said and b"DidRemove" not in said):
                            assert state_of(service.model) == before
            assert not spamd._clients and not spamd._waiting
            assert all(path.is_dir() for path in folder.iterdir())

        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "ann").mkdir()
            asyncio.run(check_all(Path(folder)))
