"""Decoding of the text of a stream: UTF-8, with Windows-1252 for lines that are not UTF-8, or a named encoding."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, product
from typing import cast

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.windows_1252 import decode_windows_1252
from stream_pegasos.streams.chunks import Chunks, may_begin
from stream_pegasos.streams.example import StreamError

ERRORS = ("windows-1252", "strict")

_ASCII = bytes(range(128))
# The longer marks first: a mark of UTF-32 begins with a mark of UTF-16. UTF-8 has neither 0xfe nor 0xff.
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# Replaces bytes that cannot be decoded: encoded, it is invalid UTF-8, so that its line is reported as bad.
_UNDECODABLE = "\udcff"
_HANDLER = "stream_pegasos.undecodable"
codecs.register_error(_HANDLER, lambda error: (_UNDECODABLE, cast(UnicodeDecodeError, error).end))


def marked_encoding(head: bytes) -> str | None:
    """UTF-16 or UTF-32 if the bytes begin with its byte order mark, else `None`."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)


class TextEncoding:
    """An encoding of text, by the name of one of Python's codecs, with a rule for records in another encoding.

    `"windows-1252"`: a record that is not UTF-8 is read as Windows-1252, and `on_windows_1252` is called for it;
    `"strict"`: it cannot be read. If the encoding is not UTF-8, a record in another encoding can never be read.
    """

    def __init__(
        self, name: str = "utf-8", errors: str = "windows-1252", on_windows_1252: Callable[[], None] | None = None
    ) -> None:
        if errors not in ERRORS:
            raise StreamError(must_be("errors of encoding", f"one of {', '.join(ERRORS)}", errors))
        try:
            "".encode(name)
            codec = codecs.lookup(name).name
        except (LookupError, ValueError):
            raise StreamError(f"unknown encoding {name!r}: give one of Python's, as latin-1 or gb18030") from None
        self.name = name
        self._codec = codec
        self._decode: Callable[[bytes], str] = bytes.decode
        self.is_utf8 = codec in ("utf-8", "utf-8-sig")
        if codec == "cp1252":
            self._decode = decode_windows_1252
        elif not self.is_utf8:
            self._decode = partial(bytes.decode, encoding=codec)
        self._reads_all = self.is_utf8 and errors == "windows-1252"
        self._on_windows_1252 = on_windows_1252
        self._is_transcoded = False
        try:  # whether lines can be split before they are decoded; UTF-16 fails
            self.has_lines = _ASCII.decode(name) == _ASCII.decode("ascii")
        except ValueError:
            self.has_lines = False

    def text(self, data: bytes) -> str:
        """The decoded text; a ValueError with the reason if the data is not in this encoding."""
        try:
            return self._decode(data)
        except UnicodeDecodeError as error:
            if not self._reads_all:
                raise ValueError(self._fault(error)) from None
        if self._on_windows_1252 is not None:
            self._on_windows_1252()
        return decode_windows_1252(data)

    def find_lines(self, chunks: Chunks, name: str, *, brackets: bool = False) -> tuple[TextEncoding, Chunks]:
        """The encoding and the chunks. The chunks are transcoded to UTF-8 unless lines (and `brackets`, if asked for)
        can be recognised in the bytes as they are.
        """
        codec = self._codec
        if self.is_utf8:
            head = chunks.look(partial(may_begin, marks=tuple(_MARKS)))
            codec = marked_encoding(head) or codec
        if codec == self._codec and self.has_lines and not (brackets and self._hides_brackets()):
            return self, chunks
        other = TextEncoding("utf-8", "strict")
        other.name, other._is_transcoded = (self.name if codec == self._codec else codec), True
        return other, Chunks(_transcoded(chunks, codec, name))

    def _hides_brackets(self) -> bool:
        """Whether the byte of a bracket, quote or backslash may be part of another character, as in Shift JIS."""
        if self._codec.startswith(("iso2022", "hz", "utf-7")):
            return True
        for pair in product(range(0x80, 0x100), b'"[\\]{}'):
            try:
                if len(self._decode(bytes(pair))) == 1:
                    return True
            except UnicodeDecodeError:
                pass
        return False

    def _fault(self, error: UnicodeDecodeError) -> str:
        if self._is_transcoded:
            return f"not {self.name} (column {len(error.object[: error.start].decode()) + 1})"
        name = "UTF-8" if self.is_utf8 else self.name
        return f"not {name} (byte 0x{error.object[error.start]:02x} at column {error.start + 1})"


def _transcoded(chunks: Chunks, codec: str, name: str) -> Iterator[bytes]:
    """Transcode to UTF-8. Undecodable bytes become invalid UTF-8, so that only their line is bad."""
    decoder = codecs.getincrementaldecoder(codec)(_HANDLER)
    for chunk in chain(chunks, [b""]):
        try:
            text = decoder.decode(chunk, not chunk)
        except UnicodeError as error:  # e.g. UTF-16 without a mark
            raise StreamError(f"{name} cannot be read as {codec}: {error}") from None
        yield text.encode(errors="surrogatepass")
