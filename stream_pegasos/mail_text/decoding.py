"""Decoding of a mail's bytes to text: transfer encodings, character sets, and encoded words of headers."""

from __future__ import annotations

import binascii
import codecs
import functools
import re
from contextlib import suppress
from itertools import islice

from stream_pegasos.common.extras import missing
from stream_pegasos.common.windows_1252 import decode_windows_1252

__all__ = [
    "ENCODED",
    "charset_in_page",
    "decode_bytes",
    "decode_field",
    "decode_transfer",
    "files_in",
    "found_in_ascii",
]

MAX_HEAD = 4_000  # bytes of a page that are searched for its charset
MAX_FILES, MAX_FILE = 100, 100_000  # files within a text, and bytes of one in yEnc
MAX_LETTERS = 20_000  # characters that a Japanese codec lacks
MAX_SHIFTS = 20_000  # runs of letters in UTF-7 that are not ASCII

PADDED = re.compile(rb"[^=]+")
IS_BASE64 = re.compile(rb"[A-Za-z0-9+/\s]*")
NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
# A language may follow the charset (RFC 2231). Space between two encoded words is not part of the text.
ENCODED_WORD = re.compile(
    r"=\?([^?*\s]{1,60})(?:\*[^?\s]{0,60})?\?([bBqQ])\?(.*?)\?=(?:\s+(?==\?[^?\s]{1,120}\?[bBqQ]\?))?"
)
IN_PAGE = re.compile(
    rb"<(?:meta\b[^>]{0,300}?charset|\?xml\b[^>]{0,100}?encoding)\s*=\s*[\"']?\s*([\w:.-]+)", re.IGNORECASE
)
UU = re.compile(
    rb"^begin(-base64)? [0-7]{3,4} +([^\r\n]{1,200})\r?\n(.*?)(?:^(?:end|====)[ \t]*\r?$|\Z)", re.MULTILINE | re.DOTALL
)
YENC = re.compile(
    rb"^=ybegin [^\r\n]{0,200}?name=([^\r\n]{1,200})\r?\n(?:=ypart [^\r\n]*\r?\n)?(.*?)(?:^=yend\b[^\r\n]*\r?$|\Z)",
    re.MULTILINE | re.DOTALL,
)
YENC_ESCAPE = re.compile(rb"=(.)", re.DOTALL)
YENC_SHIFT = bytes((code - 42) % 256 for code in range(256))
UU_ENCODINGS = ("x-uuencode", "uuencode", "x-uue", "uue")
ENCODED = ("base64", "quoted-printable", *UU_ENCODINGS)

BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Codecs that are not charsets of mails, or whose time grows with the square of the length.
NO_CHARSETS = ("punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem")
# Codecs that include all characters of another codec, whose name is often used for them.
WIDER = {"gbk": "gb18030", "gb2312": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs"}
WIDER |= {"iso2022_jp": "iso2022_jp_ext", "ascii": "cp1252", "iso8859-1": "cp1252"}
SHIFTING = ("iso2022", "utf-16", "utf-32", "utf-7", "hz")  # codecs in which ASCII bytes may mean other letters
# Charsets that mails name although their text is UTF-8; a mail that came as a string is always UTF-8. In these codecs a
# byte is a letter, and consecutive letters hardly ever look like UTF-8.
OFTEN_UTF8 = ("cp125", "iso8859", "koi8", "utf-8")
ASCII = bytes(range(128))
NO_LETTERS = {code: decode_windows_1252(bytes([code])) for code in range(128, 160)}
# Pairs of GBK, and the single byte for the euro in the variant of Windows.
IN_GBK = re.compile(rb"(?:[\x00-\x7f]++|[\x81-\xfe][\x30-\xfe])++|\x80")
EURO = "€".encode("gb18030")
BLANKS_AT_END = re.compile(rb"=[ \t]++(?=\r?\n|\Z)")  # at the end of a line in quoted-printable
OF_JIS = ("euc_jp", "iso2022_jp")  # codecs without the rows that NEC and IBM added, which browsers support
IN_UTF7 = re.compile(rb"\+([A-Za-z0-9+/]*)-?")


@functools.lru_cache(500)
def find_codec(charset: str) -> str:
    """The codec for the name of a charset in a mail, by the table of the WHATWG for browsers (Encoding Standard,
    https://encoding.spec.whatwg.org/#names-and-labels), or else by Python's names; `""` if it is unknown.
    """
    try:
        import webencodings
    except ImportError as error:
        raise missing("mail that names a charset", "mail", error) from error
    label = charset.strip(" \t\"'").lower()
    encoding = webencodings.lookup(label)
    if encoding is not None and encoding.name not in ("replacement", "x-user-defined"):
        codec: str = encoding.codec_info.name
        return WIDER.get(codec, codec)
    for name in (label, label.replace("windows-", "cp"), label.replace("cp-", "cp"), label.removeprefix("x-")):
        if name.replace("-", "_").startswith(NO_CHARSETS):
            continue
        try:
            b"a".decode(name)
        except (LookupError, ValueError):
            continue
        codec = codecs.lookup(name).name
        return WIDER.get(codec, codec)
    return ""


def decode_bytes(data: bytes, charset: str = "", otherwise: str = "") -> str:
    """The text of bytes whose charset may be missing, unknown or wrong. `otherwise` is the charset that is used if none
    is named and the bytes are not UTF-8.
    """
    codec = find_codec(charset) if charset else ""
    if codec in ("", "cp1252", "utf-8") and b"\x1b$" in data:
        codec = "iso2022_jp_ext"  # no other charset has these signs
    if data.isascii() and not codec.startswith(SHIFTING):
        return data.decode("ascii")
    for mark, name in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    if not codec or codec.startswith(OFTEN_UTF8):
        text, other = data.decode("utf-8", "replace"), codec or (find_codec(otherwise) if otherwise else "")
        n_broken = 2 if not other or other.startswith(OFTEN_UTF8) else len(data)  # none, or a few letters
        if n_broken * text.count("\ufffd") <= len(data.translate(None, ASCII)):
            return text
        if codec in ("", "cp1252", "utf-8"):
            codec = find_codec(otherwise).replace("utf-8", "") or "cp1252"
    if codec.startswith("iso8859"):  # bytes that are no letters there come from Windows-1252
        return data.decode(codec, "replace").translate(NO_LETTERS)
    if codec == "utf-7":
        return IN_UTF7.sub(decode_utf7, data, MAX_SHIFTS).decode("utf-8", "replace")
    if codec == "gb18030" and b"\x80" in data:
        data = IN_GBK.sub(lambda match: EURO if match[0] == b"\x80" else match[0], data)
    text = data.decode(codec, "replace")
    if codec.startswith(OF_JIS) and 0 < text.count("\ufffd") <= MAX_LETTERS:
        text = data.decode(codec, "stream_pegasos.jis")
    return text


def letter_of_windows(error: UnicodeError) -> tuple[str, int]:
    """The letter of a row of JIS X 0208 that only Windows has, in place of an error."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    row, cell = (code & 0x7F for code in (error.object[error.start : error.start + 2] + b"\0\0")[:2])
    if 0x21 <= row <= 0x7E and 0x21 <= cell <= 0x7E:
        row, cell = row - 0x20, cell - 0x20
        first = (row - 1) // 2 + (0x81 if row <= 62 else 0xC1)
        second = cell + (0x9E if row % 2 == 0 else 0x3F if cell <= 63 else 0x40)
        with suppress(UnicodeDecodeError):
            return bytes([first, second]).decode("cp932"), error.start + 2
    return "\ufffd", max(error.start + 1, error.end)


codecs.register_error("stream_pegasos.jis", letter_of_windows)


def decode_utf7(match: re.Match[bytes]) -> bytes:
    """Letters of UTF-7 in UTF-8; a plus that begins none, as in +49, stays unchanged."""
    if not match[1]:
        return b"+"
    letters = decode_base64(match[1]).decode("utf-16-be", "ignore")
    return letters.encode("utf-8", "replace") or match[0]


def charset_in_page(page: bytes) -> str:
    """The charset that an HTML page declares; `""` if it declares none."""
    match = IN_PAGE.search(page[:MAX_HEAD])
    return found_in_ascii(match[1].decode("ascii", "replace")) if match else ""


def found_in_ascii(charset: str) -> str:
    """A charset declared in ASCII within the text itself; UTF-8 if the charset is not compatible with ASCII."""
    codec = find_codec(charset)
    return charset if not codec or b"a=:\n".decode(codec, "replace") == "a=:\n" else "utf-8"


def decode_base64(data: bytes) -> bytes:
    """The decoded bytes of base64, also of consecutive pieces that each end with `=`. Other characters are skipped, and
    so is a text after the end, such as mailing lists add.
    """
    if b"=" not in data.rstrip(b"=\r\n\t "):
        try:
            return binascii.a2b_base64(data)
        except ValueError:
            return decode_piece(data)
    first, *other_blocks = PADDED.findall(data)
    decoded = [decode_piece(first)]
    for piece in other_blocks:
        if not IS_BASE64.fullmatch(piece):
            break
        decoded.append(decode_piece(piece))
    return b"".join(decoded)


def decode_piece(piece: bytes) -> bytes:
    clean = NOT_BASE64.sub(b"", piece)
    if len(clean) % 4 == 1:
        clean = clean[:-1]
    return binascii.a2b_base64(clean + b"=" * (-len(clean) % 4))


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The decoded bytes of a part, which may be damaged; the encoding is in lower case."""
    if encoding == "quoted-printable":
        return binascii.a2b_qp(BLANKS_AT_END.sub(b"=", data))
    if encoding == "base64":
        return decode_base64(data)
    if encoding in UU_ENCODINGS:
        match = UU.search(data)
        return decode_uu(match[3] if match else data)
    return data


def decode_uu(lines: bytes) -> bytes:
    decoded = []
    for line in lines.splitlines():
        n = ((line[0] - 32) & 63) if line else 0  # number of bytes; three bytes are four characters
        try:
            decoded.append(binascii.a2b_uu(line[: 1 + (n + 2) // 3 * 4]))  # some programs add a character
        except ValueError:
            continue
    return b"".join(decoded)


def files_in(text: bytes) -> list[tuple[str, bytes, tuple[int, int]]]:
    """Files within a text, by uuencode or yEnc: the name, the content and the place of each."""
    files = []
    if b"begin" in text:
        for match in islice(UU.finditer(text), MAX_FILES):
            content = decode_base64(match[3]) if match[1] else decode_uu(match[3])
            if content:
                files.append((decode_bytes(match[2]).strip(), content, match.span()))
    if b"=ybegin " in text:
        for match in islice(YENC.finditer(text), MAX_FILES):
            escaped = match[2][:MAX_FILE].replace(b"\r", b"").replace(b"\n", b"")
            plain = YENC_ESCAPE.sub(lambda pair: bytes([(pair[1][0] - 64) % 256]), escaped).translate(YENC_SHIFT)
            files.append((decode_bytes(match[1]).strip(), plain, match.span()))
    return files


def decode_field(value: str, charset: str = "") -> str:
    """A header field, with its encoded words (RFC 2047) and any raw bytes decoded. Each character beyond ASCII is a raw
    byte (Latin-1); `charset` is used for raw bytes that are not UTF-8, such as the charset of the mail's text.
    """
    pieces: list[tuple[bytes, str]] = []
    end = 0
    for match in ENCODED_WORD.finditer(value) if "=?" in value else ():
        named, how, encoded = match.groups()
        data = encoded.encode("latin-1", "replace")
        data = binascii.a2b_qp(data, header=True) if how in "qQ" else decode_base64(data)
        if encoded and not data:  # it is damaged, and stays unchanged
            continue
        pieces.append((value[end : match.start()].encode("latin-1", "replace"), ""))
        pieces.append((data, named.lower()))
        end = match.end()
    pieces.append((value[end:].encode("latin-1", "replace"), ""))
    joined: list[tuple[bytes, str]] = []
    for data, named in pieces:
        if joined and data and named == joined[-1][1]:  # letters may be split between two words
            joined[-1] = joined[-1][0] + data, named
        elif data:
            joined.append((data, named))
    return " ".join("".join([decode_bytes(data, named, charset) for data, named in joined]).split())
