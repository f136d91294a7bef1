"""Tokens for links, HTML, attachments and the look of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import unquote

from stream_pegasos.mail_text.headers import find_site, name_shape
from stream_pegasos.mail_text.html import Page

__all__ = ["attachment_tokens", "link_tokens", "other_tokens", "page_tokens", "text_tokens"]

MAX_LINKS = 40
MAX_HIDDEN = 60  # words
MAX_OTHER = 5_000  # characters

# https?://, ftp:// or www., not after a letter. The pattern begins with a set and lists both cases: this is fast.
LINK = re.compile(
    r"[hHfFwW](?<!\w.)(?i:(?:(?<=h)ttps?|(?<=f)tp)://[^\s<>\"')\]]{1,500}|(?<=w)ww\.[^\s<>\"')\]]{1,300})"
)
HOST = re.compile(r"(?:([a-z]+):)?(?://)?(?:([^/@?#\s]{0,200})@)?([^/:?#\s]{1,200})?(?::(\d+))?([^\s]*)", re.IGNORECASE)
NAMED_HOST = re.compile(r"\b(?:[a-z0-9-]{1,60}\.){1,5}(?:com|net|org|info|biz|edu|gov|[a-z]{2})\b", re.IGNORECASE)
WORD = re.compile(r"[^\W\d_]{2,20}")
UPPER, LOWER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz"
NOT_UPPER = bytes(set(range(128)) - set(UPPER))
NOT_LOWER = bytes(set(range(128)) - set(LOWER))
MONEY = re.compile(r"[$£€]\s?\d")


def find_bin(n: int) -> int:
    return n.bit_length()


def tokens_of_link(address: str, kind: str) -> Iterator[str]:
    address = address.strip()
    match = HOST.match(address)
    if match is None:
        return
    scheme, user, host, port, path = match.groups()
    scheme = (scheme or "").lower()
    if scheme in ("mailto", "cid", "javascript", "tel", "data") or address.startswith("#"):
        yield f"{kind}:{scheme or '#'}"
        return
    host = (host or "").lower().strip(".")
    if user is not None:
        yield f"{kind}:has-user"
    if port:
        yield f"{kind}:has-port"
    if not host:
        yield f"{kind}:no-host"
    elif re.fullmatch(r"[\d.]+|0x\w+", host):
        yield f"{kind}:host-is-ip"
    else:
        yield f"{kind}:{find_site(host)}"
        yield f"{kind}:.{host.rpartition('.')[2][:20]}"
        if host.count(".") > 3 or host.count("-") > 2:
            yield f"{kind}:long-host"
    if scheme == "https":
        yield f"{kind}:https"
    if "%" in host or path.count("%") > 3:
        yield f"{kind}:escaped"
        path = unquote(path[:300], errors="replace")
    for word in WORD.findall(path[:200].lower())[:8]:
        yield f"path:{word}"
    if "?" in path:
        yield f"{kind}:query:{find_bin(path.count('=') + path.count('&'))}"
        if "@" in path:
            yield f"{kind}:query-has-address"
    yield f"{kind}:shape:{name_shape(path[:60], 8)}"


def link_tokens(text: str) -> Iterator[str]:
    """The tokens of links in a plain text."""
    n = 0
    for match in LINK.finditer(text):
        n += 1
        if n > MAX_LINKS:
            break
        yield from tokens_of_link(match[0], "link")
    yield f"links:{find_bin(n)}"


def page_tokens(page: Page, length: int) -> Iterator[str]:
    """The tokens of an HTML text of this length."""
    for tag, count in page.tags.items():
        yield f"tag:{tag[:15]}"
        if tag in ("table", "font", "img", "br", "a", "#comment"):
            yield f"tag:{tag}:{find_bin(count)}"
    for trait in sorted(page.traits):
        yield f"html:{trait}"
    hidden = WORD.findall("".join(page.hidden)[:2_000].lower())
    for word in hidden[:MAX_HIDDEN]:
        yield f"hidden:{word}"
    if hidden:
        yield f"html:hidden:{find_bin(len(hidden))}"
    for address, label in page.links[:MAX_LINKS]:
        yield from tokens_of_link(address, "href")
        if named := NAMED_HOST.search(label):
            match = HOST.match(address.strip())
            host = (match[3] or "").lower() if match else ""
            yield f"href:{'as-named' if find_site(named[0].lower()) == find_site(host) else 'names-other-host'}"
        elif not label:
            yield "href:no-text"
    for address, is_small in page.images[:MAX_LINKS]:
        yield from tokens_of_link(address, "img")
        if is_small:
            yield "img:too-small"
    n_seen = sum(map(len, page.seen))
    yield f"html:share:{10 * n_seen // max(1, length)}"
    yield f"html:links:{find_bin(len(page.links))}"
    yield f"html:images:{find_bin(len(page.images))}"
    if page.images and n_seen < 200:
        yield "html:images-only"


def other_tokens(shown: str, texts: Sequence[str]) -> Iterator[str]:
    """The words of other forms of a text that are missing in the shown form."""
    known_words = set(WORD.findall(shown.lower()))
    words = dict.fromkeys(WORD.findall("\n".join(texts)[:MAX_OTHER].lower()))
    for word in islice((word for word in words if word not in known_words), MAX_HIDDEN):
        yield f"other:{word}"


def attachment_tokens(name: str, kind: str, disposition: str, size: int) -> Iterator[str]:
    yield f"attached:{kind}"
    yield f"attached:{disposition[:12]}:size:{find_bin(size)}"
    stem, dot, ending = name.lower().rpartition(".")
    if dot:
        yield f"attached:.{ending[:8]}"
        if re.search(r"\.\w{2,4}\s*$", stem):
            yield "attached:two-endings"
        for word in WORD.findall(stem)[:4]:
            yield f"attached:{word}"


def text_tokens(text: str) -> Iterator[str]:
    """Tokens for the look of a text."""
    n = max(1, len(text))
    lines = text.split("\n")
    yield f"text:size:{find_bin(len(text))}"
    yield f"text:lines:{find_bin(len(lines))}"
    yield f"text:longest:{find_bin(max(map(len, lines)))}"
    begins = f"\n{text}"
    if quoted := begins.count("\n>") + begins.count("\n|"):
        yield f"text:quoted:{4 * quoted // len(lines)}"
    data = text.encode("ascii", "ignore")
    n_upper, n_lower = len(data.translate(None, NOT_UPPER)), len(data.translate(None, NOT_LOWER))
    yield f"text:upper:{10 * n_upper // max(1, n_upper + n_lower)}"
    yield f"text:letters:{10 * (n_upper + n_lower) // n}"
    for mark in "!$%*?#=_\\{":
        if count := text.count(mark):
            yield f"text:{mark}:{find_bin(count)}"
    if len(data) < len(text):
        yield f"text:not-ascii:{find_bin(100 * (len(text) - len(data)) // n)}"
    if "\n-- \n" in text:
        yield "text:signed"
    if "-----BEGIN PGP" in text:
        yield "text:pgp"
    if MONEY.search(text):
        yield "text:money"
