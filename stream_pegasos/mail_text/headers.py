"""The headers of a mail: a text without names, the route, and tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from email.utils import mktime_tz, parsedate_tz
from functools import partial
from typing import NamedTuple

from stream_pegasos.mail_text.decoding import decode_bytes, decode_field

__all__ = ["FIELD", "Headers", "find_site", "name_shape", "read_headers"]

FIELD = "field:"  # prefix of the token of a field that not every mail has
MAX_FIELDS = 150  # header fields that are read
MAX_HOPS = 12
MAX_LOCAL_PART = 200  # characters
MAX_HEADER_TEXT = 6_000  # characters
MAX_SOURCE = 300  # characters of the newest hops, and of fields, taken unchanged

# Parts of the names of fields in which filters or their makers note their results: these would reveal the label.
OF_FILTERS = """
    spam junk ham-report virus malware phish scan score bogo quarantine greylist reputation verdict threat filter
    bayes dnsbl barracuda forefront ironport proofpoint mimecast sophos kaspersky symantec brightmail messagelabs
    fortinet cloudmark trendmicro tm-as tmase mcafee f-secure bitdefender avast drweb eset nod32 clamav amavis cyren
    commtouch retarus hornet nospamproxy mailguard mailmarshal canit declude mdaemon mailcow postini mxlogic
    surfcontrol websense policyd purgate trustwave watchguard cisco-esa authority-analysis pyzor razor popfile
    text-classification crm114 dspam rspamd rmilter sanesecurity puremessage perlmx vade
    """.split()  # noqa: SIM905
# Parts of such names after X-, up to the next hyphen or the end; also of flags, labels and folders of programs.
AFTER_X = r"""
    rbl dcc sieve gmx yandex ovh proxad mras mru msk qq aol ymail\w* yahoo rocket tm brmail mdav mdarrival csc cha
    [0-9a-f]{8} pstn pmx nai mxl feas fe ctch cnfs cm cmae assp gfi klms kav kse avg panda comodo eleven kerio merak
    icewarp smartermail mailru vr sonic lavabit me msg-ref scl bcl pcl sid-pra sid-result message-delivery
    message-info hmxmr\w* eop\w* auth-result incomingtopheadermarker incomingheadercount last-tls-session-version
    zimbra-received ms-(?!has-attach$|tnef-correlator$)\w+

    mozilla gmail gm-(?:labels|thrid|msgid|raw) evolution kmail kontact claws apple uniform-type account-key folder
    labels? tags? flags? keywords? status uid\w* universally-unique remote-mailbox mailmate eudora pegasus imap\w*
    offlineimap tuid maildir mailbox archived?-at read deleted replied
    """.split()  # noqa: SIM905
is_of_filter = re.compile(rf"{'|'.join(OF_FILTERS)}|^x-(?:{'|'.join(AFTER_X)})(?:-|$)|-(?:scl|bcl|pcl|sfv)$").search
# Fields of the sender, even if they are above the newest server's line.
OF_SENDER = frozenset(
    """
    reply-to in-reply-to references organization user-agent x-mailer x-mimeole x-priority x-msmail-priority importance
    auto-submitted content-language content-disposition content-class thread-topic thread-index
    """.split()  # noqa: SIM905
)
# Results of servers about the sender are the same for new mail; they have their own tokens.
OF_RESULTS = frozenset(["authentication-results", "received-spf", "dkim-signature"])
# Fields that the receiving side writes, or may remove.
OF_RECEIVER = frozenset(
    """
    delivered-to delivery-date return-path envelope-to x-envelope-to x-original-to x-original-date x-apparently-to
    x-delivered-to x-uid x-uidl x-status x-keywords status x-mozilla-status x-mozilla-status2 lines content-length
    x-envelope-from x-envelope-info
    """.split()  # noqa: SIM905
)
# Fields of programs for mailing lists: they show the reader's lists.
OF_LISTS = frozenset(
    """
    sender errors-to precedence x-beenthere x-mailman-version x-mailing-list mailing-list x-loop x-list x-sequence
    x-ml-name x-no-archive mail-followup-to x-mailscanner x-egroups-return
    """.split()  # noqa: SIM905
)
NOT_OF_SENDER = OF_RECEIVER | OF_LISTS
# Prefixes of fields that lists, forwarders and other filters add; a filter's field would reveal the label.
ADDED = tuple(
    """
    list- resent- x-spam x-pegasos x-ham x-bogosity x-rspam x-dspam x-crm114 x-ms-exchange-organization-scl
    """.split()  # noqa: SIM905
)
# Fields whose content becomes separate tokens, or another text.
WITHOUT_TEXT = frozenset(["subject", "date", "to", "cc", "bcc"])
COMMON = frozenset(
    """
    from to date subject message-id mime-version content-type content-transfer-encoding cc
    """.split()  # noqa: SIM905
)
USUAL_CASES = ("MIME-Version", "Message-ID")
# Fields of the program that made a mail. The date is left out: it shows when spam came, and when ham.
OF_PROGRAM = frozenset(
    """
    x-mailer user-agent x-mimeole message-id mime-version content-type content-transfer-encoding
    """.split()  # noqa: SIM905
)

CLASSES = bytes.maketrans(
    bytes(range(ord("0"), ord("9") + 1)) + bytes(range(ord("A"), ord("Z") + 1)) + bytes(range(ord("a"), ord("z") + 1)),
    b"0" * 10 + b"A" * 26 + b"a" * 26,
)
REPEATED = re.compile(rb"(.)\1*", re.DOTALL)
IN_BRACKETS = re.compile(r"<([^<>\s]{0,300})>")
# In lower-case text: a host, an IP address.
HOST = re.compile(r"(?<![\w.-])(?:(?:[\w-]{1,60}\.){1,8}[a-z]{2,20}\b|\d{1,3}(?:\.\d{1,3}){3}(?![\w.]))")
IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
CAME_FROM = re.compile(r"\s*from\s+([^\s()]{1,200})(?:\s+\(([^()]{0,300}(?:\([^()]{0,100}\))?[^()]{0,100})\))?")
OF_HOMES = re.compile(r"dsl|dhcp|dial|ppp|cable|pool|dyn|client|cust|modem|\d[-.]\d{1,3}[-.]\d")
# A pattern that begins with a set is searched fast, hence no \b.
OF_THIS_MAIL = re.compile(r"[if](?<!\w.)(?:(?<=i)d|(?<=f)or)\s+[^\s;\0]{1,200}")
NUMBER = re.compile(r"[iI](?<!\w.)[dD]\s+[^\s;\0]{1,200}\s?")
HOP_NAMES = re.compile(
    r"[fbhe(](?:(?<!\w.)((?<=f)rom|(?<=b)y|(?<=h)elo|(?<=e)hlo)[ \n\t=]+[^\s()\[\];=]{1,200}|(?<=\()[\w-]{1,60}(?= \[))"
)
SELF = re.compile(r"\blocalhost\b|\b127\.0\.0\.1\b")
RESULTS = re.compile(r"\b(spf|dkim|dmarc|arc|dara|compauth)\s*=\s*([a-z]+)", re.IGNORECASE)
SIGNER = re.compile(r"(?:^|[;\s])d\s*=\s*([\w.-]+)")
ZONE = re.compile(r"([+-])(\d\d)(\d\d)\b")
REPLY = re.compile(r"(?:re|aw|sv|fwd?|wg|tr)\s*(?:\[\d+\])?\s*:", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]+")
LIST_TAG = re.compile(r"\[[^\]]{1,25}\]\s*")


def name_shape(text: str, longest: int = 24) -> str:
    """A text with one A, a or 0 for each run of capitals, small letters or digits, and ? for other than ASCII."""
    classes = text[:100].encode("ascii", "replace").translate(CLASSES)
    return b"".join(REPEATED.findall(classes)).decode("ascii")[:longest]


def address_in(value: str) -> tuple[str, str]:
    """The name and the address in a field with a single address, approximately: there are many ways to write it."""
    if match := IN_BRACKETS.search(value):
        return value[: match.start()].strip(" \t\r\n\"'"), match[1]
    words = value.split()
    return "", next((word for word in words if "@" in word), words[0] if words else "").strip("<>\"',;")


def parse_host(address: str) -> str:
    return address.rpartition("@")[2].strip(" >]").lower()[:100] if "@" in address else ""


def find_site(host: str) -> str:
    """A host without its machine: its last two labels, or three under a country's short second level."""
    labels = host.split(".")
    n = 3 if len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3 else 2
    return ".".join(labels[-n:])


class Headers(NamedTuple):
    """The features of the headers of a mail."""

    text: str  # fields and the route, without names of addresses, hosts and lists
    route: str  # the servers' lines, with the names of hosts, and without time, recipient and number
    # The beginnings of the newest of these lines, without time and number, and of the fields of the sender's program.
    source: str
    tokens: list[str]  # features of all else


def read_headers(raw_fields: Sequence[tuple[str, str]], subject: str, charset: str) -> Headers:
    """Read the names and values of raw fields. The subject is decoded; `charset` is the charset that the mail names for
    its text, and usually also that of raw bytes in headers.
    """
    decode = partial(decode_field, charset=charset)
    fields: dict[str, str] = {}
    hops: list[str] = []
    lines: list[str] = []
    of_program: list[str] = []
    tokens: list[str] = []
    is_delivered = any(name.lower() == "received" for name, _ in raw_fields)
    for name, value in raw_fields[:MAX_FIELDS]:
        lower = name.lower()
        if lower == "received":
            hops.append(value)
        elif lower in fields:
            if lower in COMMON:
                tokens.append(f"twice:{lower}")
        else:
            fields[lower] = value
            if not value.isascii() or "\x1b" in value:
                value = decode_bytes(value.encode("latin-1", "replace"), "", charset)
            if is_of_others(lower, is_delivered and not hops):
                continue
            if lower not in COMMON:
                tokens.append(f"{FIELD}{lower[:40]}")
            elif name != lower and name not in USUAL_CASES and not name.istitle():
                tokens.append(f"odd-case:{lower}")
            if lower not in WITHOUT_TEXT:
                lines.append(f"{lower}: {value[:300]}")
            if lower in OF_PROGRAM:
                of_program.append(f"{name}: {value}")
    tokens += [f"no:{name}" for name in sorted(COMMON - fields.keys())]
    for read in (address_tokens(fields, decode), subject_tokens(subject, fields), date_tokens(fields, hops)):
        tokens += read
    for read in (route_tokens(hops), identity_tokens(fields), content_tokens(fields), result_tokens(fields)):
        tokens += read
    route = read_route(hops)
    start = 0  # hops from the receiver to itself reveal nothing about the mail
    while start < len(route) and SELF.search(route[start]):
        start += 1
    unnamed = HOP_NAMES.sub(lambda raw_fields: raw_fields[0][0] + (raw_fields[1] or "host"), "\n".join(route[start:]))
    text = masked("\n".join(lines)[:MAX_HEADER_TEXT].lower())
    newest = NUMBER.sub("", "\n".join([hop.partition(";")[0] for hop in hops[:MAX_HOPS]])[: 2 * MAX_SOURCE])
    source = f"{newest[:MAX_SOURCE]}\n" + "\n".join(of_program)[:MAX_SOURCE]
    return Headers(f"{text}\n{masked(unnamed)}", "\n".join(route), source, tokens)


def is_of_others(name: str, is_above: bool) -> bool:
    """Whether a field was not written by the sender, but by a server of the receiver, a list, a filter or a mail
    program: by its name, or by its place above the newest line of a server.
    """
    if name in NOT_OF_SENDER or name.startswith(ADDED) or is_of_filter(name):
        return True
    return is_above and name not in COMMON and name not in OF_SENDER and name not in OF_RESULTS


def masked(text: str) -> str:
    """A lower-case text without its addresses and hosts."""
    *before, last = text.split("@")
    words = "@".join([*map(drop_local_part, before), last]).split(" ")
    return " ".join([HOST.sub("host", word) if "." in word else word for word in words])


def drop_local_part(text: str) -> str:
    """A text cut at the place of the @ of an address."""
    end = len(text)
    while end and (text[end - 1].isalnum() or text[end - 1] in "_.+=%$-"):
        end -= 1
    return text[:end] if len(text) - end <= MAX_LOCAL_PART else text


def read_route(hops: list[str]) -> list[str]:
    """The servers' lines, newest first, without time, recipient and number."""
    lines = "\0".join([hop[:400].partition(";")[0] for hop in hops[:MAX_HOPS]]).lower()
    return OF_THIS_MAIL.sub("", lines).split("\0")


def route_tokens(hops: list[str]) -> Iterator[str]:
    """Tokens for the sender's machine, as seen by the first server."""
    if not hops or not (match := CAME_FROM.match(hops[-1][:600].lower())):
        return
    name, inside = match[1], match[2] or ""
    sender = inside.partition("[")[0].strip().rpartition("@")[2]
    if IP.search(name):
        yield "first:says-ip"
    elif "." not in name:
        yield f"first:says-{'local' if name.startswith('local') else 'no-host'}"
    if "." not in sender:
        yield "first:unnamed"
    else:
        alike = "as-said" if sender == name else "site-as-said" if find_site(sender) == find_site(name) else "other"
        yield f"first:{alike}"
    if OF_HOMES.search(sender or name):
        yield "first:of-homes"
    if "may be forged" in inside:
        yield "first:may-be-forged"


def address_tokens(fields: dict[str, str], decode: Callable[[str], str]) -> Iterator[str]:
    name, address = address_in(fields.get("from", ""))
    name = decode(name)
    local, host = address.rpartition("@")[0], parse_host(address)
    site = find_site(host)
    if host:
        yield f"from:{site}"
        yield f"from:.{host.rpartition('.')[2]}"
    else:
        yield "from:no-address"
    yield f"from:local:{name_shape(local, 8)}"
    yield f"from:name:{name_shape(name, 10)}"
    yield f"from:quoted:{fields.get('from', '')[:1] == chr(34)}"
    if "@" in name:
        yield f"from:name-has-address:{find_site(parse_host(name)) == site}"
    if "reply-to" in fields:
        reply_host = parse_host(address_in(fields["reply-to"])[1])
        alike = "host" if reply_host == host else "site" if find_site(reply_host) == site else "other"
        yield f"reply:{alike if reply_host else 'none'}"
    recipients = f"{fields.get('to', '')},{fields.get('cc', '')}"
    n = recipients.count("@")
    yield f"to:n:{min(n, 3) if n < 8 else 8}"
    to_name, to_address = address_in(fields.get("to", ""))
    to_local = to_address.rpartition("@")[0].lower()
    if "undisclosed" in fields.get("to", "").lower():
        yield "to:undisclosed"
    yield f"to:named:{bool(to_name)}"
    if to_address:
        yield f"to:is-sender:{to_address.lower() == address.lower()}"
        yield f"to:site-of-sender:{find_site(parse_host(to_address)) == site}"
        if to_name and to_name.lower().strip("\"'") in (to_local, to_address.lower()):
            yield "to:name-is-address"


def subject_tokens(subject: str, fields: dict[str, str]) -> Iterator[str]:
    answers = "in-reply-to" in fields or "references" in fields
    bare = LIST_TAG.sub("", subject, count=1)
    is_reply = REPLY.match(bare) is not None
    yield f"subject:reply:{is_reply}:{answers}"
    letters = [character for character in bare if character.isalpha()]
    n_upper = sum(map(str.isupper, letters))
    if letters:
        yield f"subject:upper:{4 * n_upper // len(letters)}"
    yield f"subject:length:{len(bare).bit_length()}"
    for mark in "!?$%*.":
        if mark in bare:
            yield f"subject:{mark}:{min(bare.count(mark), 3)}"
    if "  " in fields.get("subject", "").strip():
        yield "subject:gap"
    if len(bare) > 8 and re.search(r"(?:\s|^)[a-z0-9]*\d[a-z0-9]*[a-z]\d*$", bare[-20:]):
        yield "subject:ends-at-random"
    if "=?" in fields.get("subject", ""):
        yield f"subject:encoded:{fields['subject'].partition('=?')[2].partition('?')[0].lower()[:20]}"
    if not fields.get("subject", "").isascii():
        yield "subject:raw-bytes"
    to_local = address_in(fields.get("to", ""))[1].rpartition("@")[0].lower()
    if len(to_local) > 2 and to_local in bare.lower():
        yield "subject:names-recipient"


def date_tokens(fields: dict[str, str], hops: list[str]) -> Iterator[str]:
    value = fields.get("date", "")
    if not value:
        return
    shape = WORD.sub(lambda word: "Aaa" if len(word[0]) == 3 else word[0][:6], value[:50])
    yield f"date:{re.sub(r'[0-9]', '0', ZONE.sub('+zone', shape))}"
    if zone := ZONE.search(value):
        hours, minutes = int(zone[2]), int(zone[3])
        if hours > 14 or minutes not in (0, 30, 45) or (hours > 12 and zone[1] == "-"):
            yield "date:odd-zone"
        elif not hours and not minutes:
            yield f"date:{zone[0]}"
    else:
        yield "date:no-zone"
    try:
        written = parsedate_tz(value)
        received = parsedate_tz(hops[0].rpartition(";")[2]) if hops else None
        if written is None:
            yield "date:unreadable"
        elif received is not None:
            late = mktime_tz(received) - mktime_tz(written)
            n_hours = abs(late) // 3600
            yield f"date:{'late' if late >= 0 else 'early'}:{min(int(n_hours).bit_length(), 8)}"
    except (ValueError, OverflowError, TypeError, IndexError):
        yield "date:unreadable"


def identity_tokens(fields: dict[str, str]) -> Iterator[str]:
    value = fields.get("message-id", "").strip()
    if not value:
        return
    local, _, host = value.strip("<>").rpartition("@")
    yield f"id:{name_shape(local, 16)}"
    yield f"id:length:{len(local) // 4}"
    yield f"id:host:{name_shape(host, 10)}"
    sender = parse_host(address_in(fields.get("from", ""))[1])
    host = host.lower()
    yield f"id:{'host' if host == sender else 'site' if find_site(host) == find_site(sender) else 'other'}-of-sender"
    if not (value.startswith("<") and value.endswith(">")):
        yield "id:no-brackets"
    if "$" in local:
        yield "id:$"


def content_tokens(fields: dict[str, str]) -> Iterator[str]:
    for name in ("x-priority", "importance", "x-msmail-priority", "content-class", "auto-submitted"):
        if name in fields:
            yield f"{name}:{fields[name].lower()[:20]}"
    content = fields.get("content-type", "")
    yield f"content:{re.sub(r'[0-9]+', '0', content.lower().partition('boundary')[0])[:60].strip()}"
    for parameter in re.findall(r";\s*([\w-]{1,20})\s*=\s*(\"?)", content[:500]):
        yield f"content:{parameter[0]}={parameter[1]}"
    if boundary := re.search(r"boundary\s*=\s*\"?([^\";\s]{1,100})", content, re.IGNORECASE):
        yield f"boundary:{name_shape(boundary[1])}"
    if "content-transfer-encoding" in fields:
        yield f"content:encoding:{fields['content-transfer-encoding'][:20]}"
    if "mime-version" in fields and fields["mime-version"].strip() != "1.0":
        yield "mime-version:odd"


def result_tokens(fields: dict[str, str]) -> Iterator[str]:
    """Tokens for the results of SPF, DKIM and DMARC of the receiving server, whose field is the first."""
    sender = find_site(parse_host(address_in(fields.get("from", ""))[1]))
    for method, result in RESULTS.findall(fields.get("authentication-results", "")):
        yield f"auth:{method.lower()}={result.lower()[:12]}"
    if "received-spf" in fields:
        yield f"auth:received-spf={fields['received-spf'].split(' ')[0].lower()[:12]}"
    if signer := SIGNER.search(fields.get("dkim-signature", "")):
        yield f"auth:signed-by-sender:{find_site(signer[1].lower()) == sender}"
    for name in ("list-unsubscribe", "list-unsubscribe-post"):
        if name in fields:
            yield f"list:{name}"
