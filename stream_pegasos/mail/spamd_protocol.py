"""SpamAssassin's protocol, SPAMC/1.0 to 1.5: its requests and its answers."""

from __future__ import annotations

import asyncio
import re
import zlib
from dataclasses import dataclass

from stream_pegasos.mail.verdict import REQUIRED, Verdict
from stream_pegasos.mail.verdict_headers import certain, insert_headers, shown_word, verdict_side
from stream_pegasos.runtime.limits import LARGEST_HEAD

__all__ = [
    "EX_DATAERR",
    "EX_IOERR",
    "EX_SOFTWARE",
    "EX_TEMPFAIL",
    "EX_TIMEOUT",
    "EX_UNAVAILABLE",
    "NAMES",
    "PONG",
    "RefusalError",
    "SpamdRequest",
    "answer",
    "bad_header",
    "failure",
    "inflated",
    "read_head",
    "tell_answer",
    "too_large",
]

MOST_HEADERS = 256
LONGEST_USER = 254  # characters, the limit of an address

OF_MAILS = ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS")
COMMAND = re.compile(rb"(%b|TELL|PING|SKIP) SPAMC/(\d{1,3}(?:\.\d{1,3})?)\s*" % "|".join(OF_MAILS).encode())
CONTROL = re.compile("[\x00-\x1f\x7f]")
END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")

# The codes of sysexits.h, and their names in answers.
EX_DATAERR, EX_UNAVAILABLE, EX_SOFTWARE = 65, 69, 70
EX_IOERR, EX_TEMPFAIL, EX_PROTOCOL, EX_TIMEOUT = 74, 75, 76, 79
NAMES = {
    EX_DATAERR: "Bad data",
    EX_UNAVAILABLE: "Service Unavailable",
    EX_SOFTWARE: "Internal error",
    EX_IOERR: "Not kept",
    EX_TEMPFAIL: "Service Unavailable",
    EX_PROTOCOL: "Bad header line",
    EX_TIMEOUT: "Timeout",
}


class RefusalError(Exception):
    """The refusal of a request, with a code and a reason for the client."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


@dataclass(slots=True)
class SpamdRequest:
    """The head of a request."""

    command: str
    version: float  # of the protocol; 1.0 has no headers
    length: int | None = None  # of the body, in bytes; `None` if it ends with the stream
    user: str = ""  # "" if no user is named
    label: str = ""  # to learn: "spam", "ham", or "" if there is none
    sets: bool = False  # whether to learn the mail
    removes: bool = False  # whether to forget it
    is_compressed: bool = False  # by zlib

    @property
    def has_mail(self) -> bool:
        return self.command not in ("PING", "SKIP")


async def read_head(reader: asyncio.StreamReader) -> SpamdRequest:
    """Read a request, up to its body; a RefusalError if it breaks the protocol."""
    line = await _line(reader)
    match = COMMAND.fullmatch(line)
    if match is None:
        raise bad_header(line[:100].decode("latin-1").strip() if line else "(closed before headers)")
    request = SpamdRequest(match[1].decode(), float(match[2]))
    if not request.has_mail or request.version <= 1.0:
        return request
    size = len(line)
    for _ in range(MOST_HEADERS):
        line = await _line(reader)
        size += len(line)
        if size > LARGEST_HEAD:
            break
        text = line.decode("utf-8", "surrogateescape").strip("\r\n")
        if not text:
            if not line:
                raise bad_header("(EOF during headers)")
            return request
        name, colon, value = text.partition(":")
        if not colon:
            raise bad_header("(header not in 'Name: value' format)")
        _take(request, name.strip().lower(), value.strip(" \t"))
    raise bad_header("(too many headers)")


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError:
        raise bad_header("(a header is too long)") from None


def _take(request: SpamdRequest, name: str, value: str) -> None:
    """Store a header in the request; unknown headers are ignored."""
    if name == "content-length":
        if not (value.isascii() and value.isdecimal()):
            raise bad_header("(Content-Length contains non-numeric bytes)")
        request.length = int(value[:18])  # Python rejects very many digits; these already exceed any limit
    elif name == "user":
        if CONTROL.search(value) or len(value) > LONGEST_USER:
            raise bad_header("(User header contains control chars, or is too long)")
        request.user = value
    elif name == "message-class":
        request.label = value.lower()
        if request.label not in ("spam", "ham"):
            raise bad_header("(Message-class header contains invalid class)")
    elif name == "set":
        request.sets = "local" in value.lower()
    elif name == "remove":
        request.removes = "local" in value.lower()
    elif name == "compress":
        if "zlib" not in value.lower():
            raise bad_header("(compression type not supported)")
        request.is_compressed = True


def inflated(body: bytes | bytearray, largest: int) -> bytes:
    """Decompress a body; a RefusalError if zlib cannot read it, or it is too large."""
    stream = zlib.decompressobj()
    try:
        mail = stream.decompress(body, largest + 1)
    except zlib.error as error:
        raise RefusalError(EX_UNAVAILABLE, f"zlib: {error}") from None
    if len(mail) > largest:
        raise too_large(largest)
    if not stream.eof:
        raise RefusalError(EX_UNAVAILABLE, "zlib: failed to find end of zlib stream")
    return mail


def too_large(largest: int) -> RefusalError:
    return RefusalError(EX_DATAERR, f"the mail must have at most {largest:,} bytes, got more")


def bad_header(reason: str) -> RefusalError:
    """The refusal of a request that breaks the protocol; like spamd, it calls all such faults a bad header."""
    return RefusalError(EX_PROTOCOL, reason)


def failure(refusal: RefusalError) -> bytes:
    """The answer to a refused request, on one line of ASCII."""
    reason = re.sub("[^ -~]", "?", refusal.reason[:500])
    return f"SPAMD/1.0 {refusal.code} {NAMES[refusal.code]}: {reason}\r\n".encode()


PONG = b"SPAMD/1.5 0 PONG\r\n"


def tell_answer(did_set: bool, did_remove: bool) -> bytes:
    """The answer to TELL."""
    did = "DidSet: local\r\n" * did_set + "DidRemove: local\r\n" * did_remove
    return f"SPAMD/1.1 0 EX_OK\r\n{did}Content-length: 0\r\n\r\n".encode()


def answer(request: SpamdRequest, mail: bytes, verdict: Verdict) -> bytes:
    """The answer to a request for a verdict, in the request's version of the protocol."""
    command, version = request.command, request.version
    spam = f"Spam: {verdict.is_spam} ; {verdict.score:.1f} / {REQUIRED:.1f}\r\n".encode()
    if command == "CHECK":
        return b"SPAMD/1.1 0 EX_OK\r\n" + spam + b"\r\n"
    body = _body(request, mail, verdict)
    length = b"Content-length: %d\r\n" % len(body)
    if command in ("PROCESS", "HEADERS"):
        if version < 1.2:
            return b"SPAMD/1.0 0 EX_OK\r\n" + body
        spam = spam if version >= 1.3 else b""
    elif version < 1.3:
        length = b""
    return b"SPAMD/1.1 0 EX_OK\r\n" + length + spam + b"\r\n" + body


def _body(request: SpamdRequest, mail: bytes, verdict: Verdict) -> bytes:
    command = request.command
    if command in ("PROCESS", "HEADERS"):
        if command == "HEADERS":
            end = END_OF_HEADERS.search(mail)
            mail = mail if end is None else mail[: end.end()]
        return insert_headers(mail, verdict)
    if command == "SYMBOLS":
        names = ",".join(symbols(verdict)).encode("utf-8", "replace")
        return names + b"\r\n" if request.version < 1.3 else names
    if command == "REPORT_IFSPAM" and not verdict.is_spam:
        return b""
    return report(verdict).encode("utf-8", "replace")


def symbols(verdict: Verdict) -> list[str]:
    """The outcome, the probability and the words that decided, as names for a list."""
    probability = [] if verdict.probability is None else [f"probability={certain(verdict.probability)}"]
    # Names in a list have no commas and no white space.
    words = [re.sub(r"[\s,]+", "_", shown_word(word)) for word, _ in verdict.words]
    return [f"outcome={verdict.outcome}", *probability, *filter(None, words)]


def report(verdict: Verdict) -> str:
    """A verdict for people to read."""
    probability = "unknown" if verdict.probability is None else certain(verdict.probability)
    lines = [f"Outcome: {verdict.outcome}", f"Probability of spam: {probability}"]
    lines.append(f"Score: {verdict.score:.1f} (spam from {REQUIRED:.1f})")
    if verdict.reason is not None:
        lines.append(f"Not called spam: {verdict.reason}")
    if verdict.words:
        lines += ["", "  adds  to what       what decided", " -----  ------------  ------------"]
        lines += [f"{abs(value):6.2f}  {verdict_side(value):12}  {shown_word(word)}" for word, value in verdict.words]
    return "\n".join(lines) + "\n"
