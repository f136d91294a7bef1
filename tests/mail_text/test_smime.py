"""What is signed opaquely, in elements that are put together here by hand."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.mail_text.parts import mail_parts
from stream_pegasos.mail_text.smime import signed_content

INNER = b"Content-Type: text/plain; charset=utf-8\r\n\r\nThe agenda for noon, signed\r\n"


def element(tag, *parts, endless=False):
    content = b"".join(parts)
    if endless:
        return bytes([tag, 0x80]) + content + b"\0\0"
    n = len(content)
    return bytes([tag, n] if n < 0x80 else [tag, 0x82, n >> 8, n & 0xFF]) + content


def oid(last):
    return element(0x06, bytes.fromhex("2a864886f70d0107") + bytes([last]))


def signature(inner=INNER, kind=2, endless=False, pieces=1):
    """SignedData around a content, of definite lengths or not, the content in pieces or not."""
    size = -(-len(inner) // pieces)
    octets = [element(0x04, inner[i : i + size]) for i in range(0, len(inner), size)]
    held = octets[0] if pieces == 1 else element(0x24, *octets, endless=endless)
    content = element(0x30, oid(1), element(0xA0, held, endless=endless), endless=endless)
    algorithms = element(0x31, element(0x30, oid(9)))
    signed = element(0x30, element(0x02, b"\1"), algorithms, content, element(0x31, b""), endless=endless)
    return element(0x30, oid(kind), element(0xA0, signed, endless=endless), endless=endless)


def mail(data, kind="application/pkcs7-mime; smime-type=signed-data; name=smime.p7m"):
    head = f"From: ann@x.example\nSubject: noon\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n"
    return head.encode() + base64.encodebytes(data)


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("endless", [False, True])
@pytest.mark.parametrize("kind", ["application/pkcs7-mime", "application/x-pkcs7-mime; name=smime.p7m"])
def test_what_is_signed_is_read(kind, endless, pieces):
    data = signature(endless=endless, pieces=pieces)
    assert signed_content(data) == INNER
    assert mail_parts(mail(data, kind)).text == "The agenda for noon, signed"
    again = mail(signature(mail(data, kind)), kind)  # signed twice
    assert mail_parts(again).text == "The agenda for noon, signed"


def test_what_is_no_signature_around_a_content_is_an_attachment():
    detached = element(0x30, oid(2), element(0xA0, element(0x30, element(0x02, b"\1"), element(0x30, oid(1)))))
    for data in (signature(kind=3), detached, b"", b"no signature", INNER):  # the first is encrypted
        assert signed_content(data) is None
        assert mail_parts(mail(data)).text == ""


@given(st.binary(max_size=40), st.integers(0, 250), st.integers(1, 5))
def test_nothing_raises_and_work_is_bounded(noise, at, pieces):
    data = signature(endless=True, pieces=pieces)
    broken = data[:at] + noise + data[at + len(noise) :]
    assert signed_content(broken) is None or isinstance(signed_content(broken), bytes)
    assert signed_content(data[: at + 60]) is None or INNER.startswith(signed_content(data[: at + 60]))
    assert signed_content(b"\x30\x80" * 100_000) is signed_content(b"\x24\x80" * 100_000) is None
