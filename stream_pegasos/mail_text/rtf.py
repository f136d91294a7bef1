"""The text of RTF, and the page from which it was made, in mails of Outlook: compressed (MS-OXRTFCP), with HTML pages
within (MS-OXRTFEX).
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from stream_pegasos.mail_text.decoding import decode_bytes
from stream_pegasos.mail_text.work import Work

__all__ = ["code_page_charset", "decompress_rtf", "read_rtf"]

MAX_RTF = 1_000_000  # bytes
MAX_LINK = 100  # steps for the address of a link

COMPRESSED, PLAIN = b"LZFu", b"MELA"
HEAD = 16  # bytes before the content: two sizes, the kind, a checksum
WINDOW = 4096
# The initial dictionary of every compressed text.
DICTIONARY = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
    rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)

# A control word with its number, a byte, a control sign, a brace, the end of a line, text.
TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)", re.DOTALL
)
LINK = re.compile(rb"[^\"]{0,200}?\bHYPERLINK\s{1,9}\"([^\"]{1,500})\"")
WORDS = {b"par": "\n", b"line": "\n", b"row": "\n", b"sect": "\n", b"page": "\n", b"tab": "\t", b"cell": "\t"}
WORDS |= {b"emdash": "\u2014", b"endash": "\u2013", b"bullet": "\u2022", b"emspace": " ", b"enspace": " "}
WORDS |= {b"lquote": "\u2018", b"rquote": "\u2019", b"ldblquote": "\u201c", b"rdblquote": "\u201d"}
SIGNS = {b"\\": "\\", b"{": "{", b"}": "}", b"~": "\u00a0", b"_": "-", b"\n": "\n", b"\r": "\n"}
# Groups whose text is not shown; other such groups begin with a sign that marks them.
UNSHOWN = frozenset(b"fonttbl colortbl stylesheet info pict objdata fldinst mhtmltag xe tc".split())
# Charsets of fonts, by number; other fonts have the charset of the document.
FONT_CHARSETS = {77: "macintosh", 128: "cp932", 129: "cp949", 134: "gb18030", 136: "big5", 161: "cp1253", 162: "cp1254"}
FONT_CHARSETS |= {
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
CODE_PAGES = {932: "shift_jis", 936: "gb18030", 950: "big5", 1200: "utf-16le", 10000: "macintosh", 20127: "us-ascii"}
CODE_PAGES |= {20866: "koi8-r", 21866: "koi8-u", 50220: "iso-2022-jp", 50221: "iso-2022-jp", 50222: "iso-2022-jp"}
CODE_PAGES |= {51932: "euc-jp", 51949: "euc-kr", 54936: "gb18030", 65000: "utf-7", 65001: "utf-8"}
CODE_PAGES |= {28590 + part: f"iso-8859-{part}" for part in range(1, 17)}


def code_page_charset(number: int) -> str:
    """The charset of a Windows code page; `""` for 0."""
    return CODE_PAGES.get(number, f"cp{number}") if number else ""


def decompress_rtf(data: bytes) -> bytes:
    """Decompressed RTF, up to a damage or 1 MB; `b""` if the data is something else."""
    if data[8:12] == PLAIN:
        return data[HEAD : HEAD + MAX_RTF]
    if data[8:12] != COMPRESSED:
        return b""
    text = bytearray(DICTIONARY)
    at = HEAD
    while at < len(data) and len(text) < MAX_RTF:
        flags = data[at]
        at += 1
        if not flags:
            text += data[at : at + 8]
            at += 8
            continue
        for bit in range(8):
            if not flags >> bit & 1:
                text += data[at : at + 1]
                at += 1
                continue
            code = int.from_bytes(data[at : at + 2])
            at += 2
            back, length = (len(text) - (code >> 4)) % WINDOW, (code & 15) + 2
            if at > len(data) or not 0 < back <= len(text):  # 0 is the end
                return bytes(text[len(DICTIONARY) :])
            begin = len(text) - back
            piece = text[begin : begin + length]
            text += (piece * -(-length // len(piece)))[:length]  # it may overlap its own end
    return bytes(text[len(DICTIONARY) :])


class Group(NamedTuple):
    """The state of a group of RTF; a nested group begins with a copy."""

    charset: str
    is_unshown: bool = False
    is_hidden: bool = False
    is_rtf: bool = False  # whether it repeats content of the page within the RTF
    n_skipped: int = 1  # characters after one of Unicode, for programs that cannot show it


def read_rtf(data: bytes, work: Work, left_out: Counter[str], charset: str = "") -> tuple[str, bool]:
    """The text of RTF, or the HTML page from which it was made, and whether it is a page. Each word of RTF takes a
    step; if no steps are left, the rest is left out, and counted as `"bytes"`.
    """
    reader = RtfReader(data, work, charset)
    left_out["bytes"] += len(data) - reader.read()
    return "".join([decode_bytes(bytes(piece), charset) for charset, piece in reader.pieces]), reader.is_page


class RtfReader:
    def __init__(self, data: bytes, work: Work, charset: str) -> None:
        self.data, self.work, self.charset = data, work, charset
        self.is_page = False
        self.pieces: list[tuple[str, bytearray]] = []  # each with its charset, because letters may take two bytes
        self.group = Group(charset)
        self.outer_groups: list[Group] = []
        self.fonts: dict[bytes, str] = {}
        self.font = b""  # the font whose charset follows, in the table of fonts
        self.is_in_fonts = False
        self.n_to_skip = 0

    def read(self) -> int:
        """Read while there are steps; return the offset of the end."""
        at, is_optional = 0, False
        while token := TOKEN.match(self.data, at):
            if not self.work.take(1):
                return at
            at = token.end()
            word, number, code, sign, brace, text = token.groups()
            if word:
                at += self._read_word(word, number or b"", is_optional, at)
            elif text:
                self._skip_or_show(text)
            elif code:
                self._skip_or_show(bytes.fromhex(code.decode()))
            elif brace == b"{":
                self.outer_groups.append(self.group)
            elif brace:
                self.group = self.outer_groups.pop() if self.outer_groups else self.group
                self.is_in_fonts &= self.group.is_unshown
            elif sign in SIGNS:
                self._show(SIGNS[sign])
            if word or brace:
                self.n_to_skip = self.n_to_skip if word == b"u" else 0
            is_optional = sign == b"*"
        return len(self.data)

    def _skip_or_show(self, data: bytes) -> None:
        n = min(self.n_to_skip, len(data))
        self.n_to_skip -= n
        self._add(self.group.charset, data[n:])

    def _show(self, text: str) -> None:
        if text.isascii():
            self._add(self.group.charset, text.encode())
        else:
            self._add("utf-16le", text.encode("utf-16-le"))

    def _add(self, charset: str, data: bytes) -> None:
        group = self.group
        if group.is_unshown or group.is_hidden or group.is_rtf or not data:
            return
        if not self.pieces or self.pieces[-1][0] != charset:
            self.pieces.append((charset, bytearray()))
        self.pieces[-1][1].extend(data)

    def _read_word(self, word: bytes, number: bytes, is_optional: bool, at: int) -> int:
        """Read a control word; return the number of bytes after it that are not RTF."""
        n = int(number or b"1")
        if word == b"bin":
            return max(0, n) if number else 0
        if word in UNSHOWN or (is_optional and not (word == b"htmltag" and self.is_page)):
            if word == b"fldinst" and self.work.take(MAX_LINK) and (link := LINK.match(self.data, at)):
                self._show(f" <{link[1].decode('latin-1')}> ")
            self.is_in_fonts |= word == b"fonttbl"
            self.group = self.group._replace(is_unshown=True)
        elif word == b"u" and number:
            self._add("utf-16le", (n & 0xFFFF).to_bytes(2, "little"))
            self.n_to_skip = self.group.n_skipped
        elif word in WORDS:
            self._show(WORDS[word])
        elif word == b"htmlrtf":
            self.group = self.group._replace(is_rtf=self.is_page and n != 0)
        elif word == b"fromhtml":
            self.is_page |= n != 0
        elif word == b"v":
            self.group = self.group._replace(is_hidden=n != 0)
        elif word == b"uc":
            self.group = self.group._replace(n_skipped=max(0, n))
        elif word == b"ansicpg" and number:
            self.charset = code_page_charset(max(0, n)) or self.charset
            self.group = self.group._replace(charset=self.charset)
        elif word == b"f" and self.is_in_fonts:
            self.font = number
        elif word == b"fcharset" and self.is_in_fonts:
            self.fonts[self.font] = FONT_CHARSETS.get(n, "")
        elif word == b"f":
            self.group = self.group._replace(charset=self.fonts.get(number, "") or self.charset)
        elif word == b"plain":
            self.group = self.group._replace(charset=self.charset, is_hidden=False)
        return 0
