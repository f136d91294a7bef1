"""The content of opaque S/MIME signatures (RFC 8551); it is readable in them, within DER or BER (X.690)."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["signed_content"]

SEQUENCE, OBJECT, OCTETS, OCTETS_IN_PIECES, EXPLICIT = 0x30, 0x06, 0x04, 0x24, 0xA0
SIGNED_DATA, DATA = bytes.fromhex("2a864886f70d010702"), bytes.fromhex("2a864886f70d010701")
MAX_ELEMENTS, MAX_DEPTH = 20_000, 20
Element = tuple[int, int, int]  # its tag, and the begin and the end of its content


def signed_content(data: bytes) -> bytes | None:
    """The signed content: a part of a mail, with its header fields; `None` if the data is no signature around a
    content, or is damaged. Encrypted content cannot be read.
    """
    try:
        reader = AsnReader(data)
        kind, content = reader.children(reader.only(0, len(data), SEQUENCE))[:2]
        if kind[0] != OBJECT or reader.element_bytes(kind) != SIGNED_DATA or content[0] != EXPLICIT:
            return None
        signed = reader.children(reader.only(content[1], content[2], SEQUENCE))
        kind, *elements = reader.children(next(element for element in signed if element[0] == SEQUENCE))
        if reader.element_bytes(kind) != DATA or not elements or elements[0][0] != EXPLICIT:
            return None  # the content is in another part
        return b"".join(reader.pieces(next(reader.elements(elements[0][1], elements[0][2]))))
    except (IndexError, ValueError, StopIteration):
        return None


class AsnReader:
    """Elements of BER; a ValueError or IndexError if they are not valid, or too many."""

    def __init__(self, data: bytes) -> None:
        self.data, self.n_left = data, MAX_ELEMENTS

    def element_bytes(self, element: Element) -> bytes:
        return self.data[element[1] : element[2]]

    def only(self, begin: int, end: int, tag: int) -> Element:
        element = next(self.elements(begin, end))
        if element[0] != tag:
            raise ValueError("another element")
        return element

    def children(self, element: Element) -> list[Element]:
        return [*self.elements(element[1], element[2])]

    def elements(self, begin: int, end: int, depth: int = 0) -> Iterator[Element]:
        while begin < end:
            element, begin = self._read(begin, end, depth)
            if element is None:
                return
            yield element

    def _read(self, at: int, end: int, depth: int) -> tuple[Element | None, int]:
        """The element at this place, and the place of the next one; no element at the marks that end a list."""
        self.n_left -= 1
        if depth > MAX_DEPTH or self.n_left < 0:
            raise ValueError("too many elements")
        tag, length = self.data[at], self.data[at + 1]
        at += 2
        if tag == length == 0:
            return None, at
        if length == 0x80:  # until those marks
            inner = at
            while inner < end:
                element, after = self._read(inner, end, depth + 1)
                if element is None:
                    return (tag, at, inner), after
                inner = after
            raise ValueError("a list without an end")
        if length > 0x80:
            n = length & 0x7F
            length = int.from_bytes(self.data[at : at + n])
            at += n
        if at + length > end:
            length = end - at  # the mail was cut
        return (tag, at, at + length), at + length

    def pieces(self, element: Element, depth: int = 0) -> Iterator[bytes]:
        """The bytes of a string, which may consist of other strings."""
        if element[0] == OCTETS:
            yield self.element_bytes(element)
        elif element[0] == OCTETS_IN_PIECES and depth < MAX_DEPTH:
            for inner in self.elements(element[1], element[2]):
                yield from self.pieces(inner, depth + 1)
        else:
            raise ValueError("no string")
