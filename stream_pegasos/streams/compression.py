"""Decompression of streams, which are recognised by their first bytes."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from stream_pegasos.common.extras import missing
from stream_pegasos.streams.chunks import Chunks, may_begin
from stream_pegasos.streams.example import StreamError, Truncated

# The first bytes of compressed streams; no text begins with these. Zstandard may begin with a frame to skip.
_MAGIC = {
    b"\x1f\x8b": "gzip",
    **{b"BZh%d" % level + block: "bzip2" for level in range(1, 10) for block in (b"1AY&SY", b"\x17rE8P\x90")},
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    **{b"%c\x2a\x4d\x18" % n: "Zstandard" for n in range(0x50, 0x60)},
}
_MAGICS = tuple(_MAGIC)
# The first bytes of archives: zip (also newer spreadsheets), 7z, rar, and old spreadsheets.
_ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_SIZE = 1 << 16  # bytes decompressed at a time
ARCHIVES = (".zip", ".7z", ".rar", ".xlsx", ".xlsm", ".xls", ".ods")
EXTENSIONS = (".gz", ".bz2", ".xz", ".zst", ".zstd")


def detect_compression(head: bytes) -> str | None:
    """The compression of data that begins with these bytes; `None` if there is none."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def not_unpacked(name: str) -> StreamError:
    return StreamError(
        f"{name} is an archive or a spreadsheet, which may hold several files: unpack it, as by unzip -p FILE.zip | "
        "stream-pegasos …, or save the sheet as CSV"
    )


def decompressed(chunks: Chunks, name: str) -> tuple[bool, Chunks]:
    """Whether the stream is compressed, and its decompressed chunks."""
    head = chunks.look(partial(may_begin, marks=(*_MAGICS, *_ARCHIVES)))
    if head.startswith(_ARCHIVES):
        raise not_unpacked(name)
    kind = detect_compression(head)
    if kind is None:
        return False, chunks
    return True, Chunks(_members(_decompressor(kind), chunks, f"{name}: the {kind} data"))


class _Decompressor(Protocol):
    """A decompressor of one member, such as `bz2.BZ2Decompressor`."""

    @property
    def needs_input(self) -> bool: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _decompressor(kind: str) -> Callable[[], _Decompressor]:
    """The function that makes the decompressor of a member."""
    factories: dict[str, Callable[[], _Decompressor]] = {
        "gzip": _Gunzip,
        "bzip2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    if kind in factories:
        return factories[kind]
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ModuleNotFoundError as error:
        raise missing("a stream compressed by Zstandard", "zstd", error) from error
    return zstd.ZstdDecompressor


class _Gunzip:
    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._member.decompress(self._member.unconsumed_tail + data, max_length)
        self.needs_input = len(out) < max_length
        return out

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data


def _members(new: Callable[[], _Decompressor], chunks: Chunks, subject: str) -> Iterator[bytes]:
    """Decompress the members one after another; zeros after a member are padding."""
    member: _Decompressor | None = None
    for chunk in chunks:
        while chunk or not (member is None or member.needs_input):
            if member is None:
                chunk = chunk.lstrip(b"\0")
                if not chunk:
                    break
                member = new()
            try:
                out = member.decompress(chunk, _SIZE)
            except Exception as error:  # each library has its own exception
                raise StreamError(f"{subject} is damaged ({error})") from None
            chunk = b""
            if member.eof:
                chunk, member = member.unused_data, None
            if out:
                yield out
    if member is not None:
        raise Truncated(f"{subject} is truncated")
