"""Windows-1252 as in browsers: every byte is a character, so no byte is lost.

The five bytes that the charset leaves undefined are the control characters of Latin-1.
"""

import codecs

__all__ = ["decode_windows_1252", "encode_windows_1252"]

_CHARACTERS = "".join(bytes([i]).decode("cp1252", "ignore") or chr(i) for i in range(256))
_BYTES = codecs.charmap_build(_CHARACTERS)


def decode_windows_1252(data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", _CHARACTERS)[0]


def encode_windows_1252(text: str) -> bytes:
    """Encode a text; raise a UnicodeEncodeError if it has other characters."""
    return codecs.charmap_encode(text, "strict", _BYTES)[0]
