"""The parts of a mail: its subject, the text that a reader sees, and tokens for all else.

A mail may come from anyone, so each limit below is checked before the work that it limits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stream_pegasos.mail_text.decoding import ENCODED, charset_in_page, decode_bytes, decode_field, files_in
from stream_pegasos.mail_text.disguise import compatible, respelled
from stream_pegasos.mail_text.headers import FIELD, read_headers
from stream_pegasos.mail_text.html import read_html
from stream_pegasos.mail_text.markup import strip_markup, strip_tag
from stream_pegasos.mail_text.mime import MAX_VALUE, WINMAIL, MailSplitter, MimePart
from stream_pegasos.mail_text.tokens import attachment_tokens, link_tokens, other_tokens, page_tokens, text_tokens
from stream_pegasos.mail_text.work import Work

__all__ = ["MailParts", "leave_out_fields", "mail_parts"]

MAX_BEGIN = 500  # characters of a body, taken unchanged
MAX_TOKENS = 2_000

FIRST, LAST = 2_500, 1_000  # characters of a long text that are kept: its beginning and its end

# Only if no quoted parameter comes before, which might contain another charset.
CHARSET = re.compile(r"[^\"]*?;\s*charset=\"?([\w:.-]+)\"?\s*(?:;|\Z)", re.ASCII | re.IGNORECASE)
BEGINS_AS_HTML = re.compile(
    r"\s*(?:<\?xml[^>]{0,100}>\s*)?<(?:!doctype|html|head|body|table|div|p|center|font)\b", re.IGNORECASE
)
PAGES = ("text/html", "application/xhtml+xml")
ENRICHED = ("text/enriched", "text/richtext")
# Types that mail programs show in place of another form of the same text.
SHOWN = ("text/plain", *PAGES, *ENRICHED)
# Text types that they show as an attachment, if at all.
NO_TEXTS = frozenset(
    f"text/{kind}" for kind in ("calendar", "directory", "rfc822-headers", "rtf", "vcard", "x-amp-html", "x-vcard")
)
TEXT_FILES = ("txt", "text", "asc", "htm", "html")
FLOWED = re.compile(r" \r?\n(?!>)")  # within a line of format=flowed with DelSp=yes (RFC 3676)
COMMAND = re.compile(r"<(?:param>.{0,200}?</param|/?[a-zA-Z-]{1,60})>|<(?=<)", re.DOTALL)  # of text/enriched (RFC 1896)


@dataclass(frozen=True, slots=True)
class MailParts:
    """The parts of a mail, as `mail_parts` returns them."""

    subject: str  # decoded, with its words in usual spelling
    # The visible text of the body, in usual spelling, and the subjects of forwarded messages. A long text is cut to its
    # first 2,500 and its last 1,000 characters, so that it does not outweigh all else.
    text: str
    headers: str  # fields and the servers' lines, without the names of hosts, addresses and lists
    # The servers' lines with the names of hosts, which show the servers of a mailbox and of its spam.
    route: str
    # The beginnings of the newest of these lines, without time and number, of the fields of the sender's program (its
    # name, Message-ID, types of content), and of the body before it is decoded.
    source: str
    tokens: list[str]  # for all beside the text, each "kind:value", in the order of the mail; without duplicates
    left_out: dict[str, int]  # beyond a limit: "bytes", "parts", "characters", "tags" and "tokens"


def leave_out_fields(parts: MailParts, is_left_out: Callable[[str], Any]) -> MailParts:
    """The parts of a mail without the header fields of these names."""
    lines = [line for line in parts.headers.split("\n") if not is_left_out(line.partition(":")[0])]
    tokens = [token for token in parts.tokens if not (token.startswith(FIELD) and is_left_out(token[len(FIELD) :]))]
    return replace(parts, headers="\n".join(lines), tokens=tokens)


@dataclass(slots=True)
class Shown:
    """The shown content of a part: its texts, whether it can be shown in place of another form, and its type."""

    tree: str
    is_shown: bool = False
    is_rich: bool = False  # whether it is or contains a page or the like, and is no plain text
    has_image: bool = False
    texts: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.has_image and not any(map(str.strip, self.texts))


def part_charset(part: MimePart) -> str:
    """The charset that the type of a part names."""
    content = part.get("content-type")
    if "charset" not in content.lower():
        return ""
    match = CHARSET.match(content)
    return match[1] if match else part.parameter("content-type", "charset")


def texts_in(part: MimePart) -> Iterator[MimePart]:
    """The parts that may be texts."""
    if part.kind.startswith(("text/", "multipart/")) and not part.parts:
        yield part
    for inner in part.parts:
        yield from texts_in(inner)


def find_subject(mail: MimePart) -> str:
    """The subject in the header, or else in a winmail.dat."""
    return mail.get("subject") or next((part.get("subject") for part in mail.parts if part.kind == WINMAIL), "")


def new_texts(texts: list[str], known_texts: list[str]) -> list[str]:
    """The texts with words that are not in the known ones, because Outlook often sends a text twice."""
    words = set(" ".join(known_texts).split()) if texts else set()
    return [text for text in texts if not words.issuperset(text.split())]


class MailReader:
    """Reads a mail, part by part, and collects its content."""

    def __init__(self, is_decoded: bool = False) -> None:
        self.is_decoded = is_decoded
        self.left_out: Counter[str] = Counter()
        self.tokens: dict[str, None] = {}  # in order, without duplicates
        self.work = Work()
        self.splitter = MailSplitter(self.left_out, self.work)

    def read(self, message: bytes) -> MailParts:
        mail = self.splitter.read_mail(strip_markup(message))
        mail.fields = [(name, strip_tag(value) if name.lower() == "subject" else value) for name, value in mail.fields]
        charset = next(filter(None, map(part_charset, texts_in(mail))), "")
        subject = strip_tag(decode_field(find_subject(mail), charset))
        subject = respelled(compatible(subject)[0][:MAX_VALUE])
        headers = read_headers(mail.fields, subject, charset)
        self._add(headers.tokens)
        shown = self._read_part(mail)
        self._add([f"tree:{shown.tree[:200]}"])
        text = "\n".join(filter(None, map(str.strip, "\n".join(shown.texts).split("\n"))))
        if len(text) > FIRST + LAST:
            self.left_out["characters"] += len(text) - FIRST - LAST
            text = f"{text[:FIRST]}\n{text[-LAST:]}"
        usual = respelled(text)
        if usual != text:
            self._add(["text:respelled"])
        self._add(text_tokens(usual))
        self.left_out = +self.left_out
        self._add(f"left-out:{reason}" for reason in self.left_out)
        tokens = list(self.tokens)
        if len(tokens) > MAX_TOKENS:
            self.left_out["tokens"] += len(tokens) - MAX_TOKENS
        raw = mail.body[: 8 * MAX_BEGIN]
        named = "" if raw.isascii() else "utf-8" if self.is_decoded else charset
        begin = decode_bytes(raw, named, charset)[:MAX_BEGIN]
        begin_text = respelled(compatible(begin)[0][:MAX_BEGIN])
        return MailParts(
            subject=subject,
            text=usual,
            headers=headers.text,
            route=headers.route,
            source=f"{headers.source}\n{begin_text}",
            tokens=tokens[:MAX_TOKENS],
            left_out=dict(self.left_out),
        )

    def _add(self, tokens: Iterable[str]) -> None:
        self.tokens.update(dict.fromkeys(tokens))

    def _read_part(self, part: MimePart) -> Shown:
        kind = part.kind[:60]
        if part.parts:
            return self._read_parts(part, kind)
        shown = Shown(kind)
        disposition = part.get("content-disposition").partition(";")[0].strip().lower()
        name = part.file_name
        # A multipart that could not be split is text, too.
        is_text = kind.startswith(("text/", "multipart/")) or kind in PAGES
        is_text = is_text and kind not in NO_TEXTS and disposition != "attachment"
        if is_text:
            self._read_text(part, kind, shown)
        if name or not is_text:
            self._add(attachment_tokens(name, kind, disposition, len(part.body)))
        return shown

    def _read_parts(self, part: MimePart, kind: str) -> Shown:
        inner = [self._read_part(subpart) for subpart in part.parts]
        shown = Shown(f"{kind}({','.join([subpart.tree for subpart in inner[:10]])})", True)
        if kind == "multipart/alternative" and len(inner) > 1:
            inner = [self._alternative(inner)]
        winmail_texts: list[str] = []
        for subpart, read in zip(part.parts, inner, strict=False):
            if part.kind.startswith("message/"):
                shown.texts.append(decode_field(find_subject(subpart), part_charset(subpart)))
            (winmail_texts if subpart.kind == WINMAIL else shown.texts).extend(read.texts)
            shown.has_image |= read.has_image
            shown.is_rich |= read.is_rich
        shown.texts += new_texts(winmail_texts, shown.texts)
        return shown

    def _alternative(self, forms: list[Shown]) -> Shown:
        """The one of several forms that mail programs show: of those that are not empty, the last rich one, or else the
        last one that they can show. (Some senders write after a page that it could not be loaded.)
        """
        full = [form for form in forms if not form.is_empty]
        able = [form for form in full if form.is_shown] or full
        able = [form for form in able if form.is_rich] or able
        if not able:
            return forms[-1]
        chosen = able[-1]
        own, *other_texts = ["\n".join(form.texts) for form in [chosen, *(form for form in full if form is not chosen)]]
        if other_texts:
            first, last = set(other_texts[0][:5_000].split()), set(own[:5_000].split())
            overlap = len(first & last) / max(1, min(len(first), len(last)))
            self._add([f"alternatives:alike:{int(4 * overlap)}"])
            self._add(other_tokens(own, other_texts))
        elif len(full) < len(forms):
            self._add(["alternatives:one-is-empty"])
        return chosen

    def _read_text(self, part: MimePart, kind: str, shown: Shown) -> None:
        data, charset = part.content, part_charset(part)
        shown.is_shown = kind in SHOWN or kind.startswith("multipart/")
        files = files_in(data) if kind not in PAGES else []
        end, pieces = 0, []
        winmails: list[MimePart] = []
        for name, content, (start, stop) in files:
            self._add(attachment_tokens(name, "application/octet-stream", "uuencoded", len(content)))
            stem, _, ending = name.lower().rpartition(".")
            pieces += [data[end:start], content if ending in TEXT_FILES or not stem else b""]
            winmails += filter(None, [self.splitter.read_winmail(MimePart([], content, WINMAIL))])
            end = stop
        data = b"".join([*pieces, data[end:]])
        named = charset
        if self.is_decoded and part.encoding not in ENCODED:
            named = "utf-8"
        elif kind in PAGES and charset.lower() in ("", "us-ascii") and not data.isascii():
            named = charset_in_page(data)
        text = decode_bytes(data, named).replace("\0", "")
        if kind in PAGES or (BEGINS_AS_HTML.match(text) and not part.get("content-type").strip().startswith("text/")):
            page = read_html(text, self.work)
            self.left_out["tags"] += page.n_tags_left_out
            self._add(page_tokens(page, len(text)))
            text = "".join(page.seen)
            shown.is_rich = True
            shown.has_image = not all(is_small for _, is_small in page.images)
        else:
            if BEGINS_AS_HTML.match(text):
                self._add(["text:is-html"])
            if part.parameter("content-type", "delsp").lower() == "yes":
                text = FLOWED.sub("", text)
            if kind in ENRICHED:
                text = COMMAND.sub("", text)
                shown.is_rich = True
            self._add(link_tokens(text))
        text, n_invisible = compatible(text)
        if n_invisible > 2:
            self._add([f"text:invisible:{n_invisible.bit_length()}"])
        shown.texts.append(text)
        winmail_texts = [text for winmail in winmails for text in self._read_part(winmail).texts]
        shown.texts += new_texts(winmail_texts, shown.texts)
        self._add([f"part:{kind}", f"charset:{charset.lower()[:30]}", f"encoding:{part.encoding[:20]}"])


def mail_parts(message: bytes, is_decoded: bool = False) -> MailParts:
    """Parse a mail, as it was received. `is_decoded` means that its raw letters are in UTF-8, although it may name
    another charset, because it was a text meanwhile.

    Nothing in it is opened, run or fetched. A mail may be damaged or hostile: no bytes raise an error, and time and
    memory are bounded; content beyond a limit is left out and counted.
    """
    return MailReader(is_decoded).read(message)
