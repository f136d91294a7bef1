"""Mails of Outlook in rich text: winmail.dat files that are put together here by hand, from MS-OXTNEF."""

import base64
import binascii
import random
import struct

import pytest

from stream_pegasos.mail_text.attached import attached_mails
from stream_pegasos.mail_text.parts import mail_parts
from stream_pegasos.mail_text.rtf import decompress_rtf
from stream_pegasos.mail_text.work import MAX_STEPS

# The example of MS-OXRTFCP.
COMPRESSED = bytes.fromhex(
    "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
)
HELLO = b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
PAGE = (
    rb"{\rtf1\ansi\ansicpg1252\fromhtml1 \deff0{\fonttbl{\f0\fswiss Arial;}{\f1\fcharset204 Arial;}}"
    rb"{\*\htmltag64 <p>}\htmlrtf\par\htmlrtf0 Claim{\*\htmltag84 &nbsp;}\htmlrtf \'a0\htmlrtf0 "
    rb"{\*\htmltag84 <a href='http://x.example/a'>}\htmlrtf{\field{\htmlrtf0 your {\f1 \'ef\'f0\'e8\'e7}\u8212?s "
    rb"\htmlrtf}\htmlrtf0{\*\htmltag92 </a>}{\*\mhtmltag84 <i>no</i>}{\*\htmltag96 <b style='display:none'>secret</b>}}"
)

SIGNS = rb"{\rtf1 a{\v no} \u-10179?\u-8704?{\*\x no}\par{\pict\bin2 }}no}b}"
LINK = b'{\\rtf1{\\field{\\*\\fldinst{HYPERLINK "http://x.example/"}}{\\fldrslt z}}}'


def attribute(level, number, kind, data):
    return struct.pack("<BHHI", level, number, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def padded(data):
    return struct.pack("<I", len(data)) + data + b"\0" * (-len(data) % 4)


def properties(*rows):
    """Each with its id, type and value, or all of its bytes behind the type."""
    coded = [struct.pack("<HH", kind, id) + value for id, kind, value in rows]
    return struct.pack("<I", len(rows)) + b"".join(coded)


def text(id, value):
    return id, 0x1F, struct.pack("<I", 1) + padded(f"{value}\0".encode("utf-16-le"))


def binary(id, value, kind=0x102):
    return id, kind, struct.pack("<I", 1) + padded(value)


def long(id, value):
    return id, 3, struct.pack("<I", value)


def plain_rtf(data):
    return struct.pack("<II4sI", len(data) + 12, len(data), b"MELA", 0) + data


# What stands before the properties that are read: numbers, times, several values, names.
OTHERS = [
    (0x0017, 3, struct.pack("<I", 1)),
    (0x0E07, 2, struct.pack("<HH", 7, 0)),
    (0x0039, 0x40, bytes(8)),
    (0x8001, 0x0B, bytes(16) + struct.pack("<II", 0, 0x8503) + struct.pack("<HH", 1, 0)),
    (0x8002, 0x1F, bytes(16) + struct.pack("<I", 1) + padded("Keys\0".encode("utf-16-le")) + text(0, "v")[2]),
    (0x8003, 0x101F, bytes(16) + struct.pack("<II", 0, 1) + struct.pack("<I", 2) + 2 * padded(b"a\0b\0c\0")),
    (0x0FF6, 0x1003, struct.pack("<III", 2, 5, 6)),
]


def attachment(name, data, *rows):
    begin = attribute(2, 0x9002, 6, bytes(14)) + attribute(2, 0x8010, 1, name.encode() + b"\0")
    begin += attribute(2, 0x800F, 6, data) if data is not None else b""
    return begin + attribute(2, 0x9005, 6, properties(*OTHERS, *rows))


def tnef(*rows, own=b"", attached=b"", code_page=1252):
    begin = struct.pack("<IH", 0x223E9F78, 1) + attribute(1, 0x9006, 8, struct.pack("<I", 0x10000))
    begin += attribute(1, 0x9007, 6, struct.pack("<II", code_page, 0))
    return begin + own + attribute(1, 0x9003, 6, properties(*OTHERS, *rows)) + attached


def mail(data, kind="application/ms-tnef; name=winmail.dat", head="Subject: outer\n"):
    head = f"From: ann@x.example\n{head}Content-Type: {kind}\nContent-Transfer-Encoding: base64\n\n"
    return head.encode() + base64.encodebytes(data)


def test_compressed_rtf_is_as_documented():
    assert decompress_rtf(COMPRESSED) == HELLO
    again = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")  # it goes on into itself
    assert decompress_rtf(again) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert HELLO.startswith(decompress_rtf(COMPRESSED[:-9])) and decompress_rtf(plain_rtf(HELLO)) == HELLO


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (tnef(own=attribute(1, 0x800C, 2, "приз\0".encode("cp1251")), code_page=1251), "приз"),
        (tnef(text(0x1000, "At noon — come")), "At noon — come"),
        (tnef(binary(0x1000, b"At noon\0", 0x1E)), "At noon"),
        (tnef(binary(0x1009, COMPRESSED)), "hello world"),
        (tnef(long(0x3FDE, 28592), binary(0x1013, "<p>Łódź</p>".encode("iso-8859-2"))), "Łódź"),
        (tnef(binary(0x1013, "<meta charset=koi8-r><p>приз</p>".encode("koi8-r"))), "приз"),
        (tnef(text(0x1000, "Claim it"), binary(0x1013, b"<p>Claim <b>it</b> now")), "Claim it now"),
        (tnef(binary(0x1009, plain_rtf(PAGE))), "Claim your приз—s"),
        (
            tnef(binary(0x1009, plain_rtf(rb"{\rtf1 a{\v no} \u-10179?\u-8704?{\*\x no}\par{\pict\bin2 }}no}b}"))),
            "a 😀\nb",
        ),
        (
            tnef(
                binary(
                    0x1009, plain_rtf(b'{\\rtf1{\\field{\\*\\fldinst{HYPERLINK "http://x.example/"}}{\\fldrslt z}}}')
                )
            ),
            "<http://x.example/> z",
        ),
    ],
)
def test_a_text_is_read_in_each_of_its_forms(data, read):
    parts = mail_parts(mail(data))
    assert (parts.subject, parts.text) == ("outer", read)
    assert not parts.left_out


def test_a_page_in_rtf_is_read_as_a_page():
    tokens = mail_parts(mail(tnef(binary(0x1009, plain_rtf(PAGE))))).tokens
    assert {"href:x.example", "hidden:secret"} <= {*tokens}


def test_the_subject_is_read_where_the_mail_has_none():
    data = tnef(text(0x0037, "Приз"), text(0x1000, "now"))
    parts = mail_parts(mail(data, head=""))
    assert parts.subject == "Приз" and "twice:subject" not in mail_parts(mail(data)).tokens
    multipart = b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n now or later\n--b\n" + mail(data, head="")
    parts = mail_parts(multipart + b"--b--\n")
    assert (parts.subject, parts.text) == ("Приз", "now or later")  # whose words are those of the file


def test_attachments_are_read_as_those_of_a_mail():
    inner = tnef(text(0x0037, "Inner"), text(0x1000, "within"))
    message = bytes.fromhex("0703020000000000c000000000000046") + inner
    attached = (
        attachment("PRIZE~1.EXE", b"MZ", text(0x3707, "prize form.pdf.exe"))
        + attachment("terms.txt", b"the terms")
        + attachment("x", None, binary(0x3701, b"<p>a page"), text(0x370E, "text/html"))
        + attachment("Forwarded", None, binary(0x3701, message, 0x0D))
        + attachment("told.eml", b"Subject: told\nContent-Type: text/html\n\n<p>by mail")
        + attachment('a"b\n.zip', b"PK")
    )
    data = mail(tnef(text(0x1000, "See"), attached=attached))
    parts = mail_parts(data)
    assert parts.text.split("\n") == ["See", "the terms", "a page", "Inner", "within", "told", "by mail"]
    assert {"attached:.exe", "attached:two-endings", "attached:prize", "attached:.zip"} <= {*parts.tokens}
    assert [mail_parts(other).text for other in attached_mails(data)] == ["within", "by mail"]


def test_it_is_known_by_its_type_or_its_name():
    data = tnef(text(0x1000, "At noon"))
    for kind in ("application/vnd.ms-tnef", "application/octet-stream; name=WINMAIL.DAT"):
        assert mail_parts(mail(data, kind)).text == "At noon"
    lines = b"".join(binascii.b2a_uu(data[i : i + 45]) for i in range(0, len(data), 45))
    assert mail_parts(b"Subject: a\n\nSee\nbegin 600 winmail.dat\n" + lines + b"`\nend\n").text == "See\nAt noon"
    for other in (b"", b"no file of Outlook", data[1:]):
        assert mail_parts(mail(other)).text == ""


def test_what_is_broken_is_read_as_far_as_it_goes():
    attached = attachment("terms.txt", b"the terms", binary(0x3701, b"", 0x0D))
    data = tnef(
        text(0x1000, "At noon"), binary(0x1009, COMPRESSED), own=attribute(1, 0x8004, 1, b"a\0"), attached=attached
    )
    shuffler = random.Random(1)
    for end in range(len(data)):
        mail_parts(mail(data[:end]))
        at = shuffler.randrange(len(data))
        mail_parts(mail(data[:at] + shuffler.randbytes(4) + data[at + 4 :]))
    assert mail_parts(mail(data[: data.index(b"the terms") + 5])).text == "hello world\nthe t"


def test_words_of_rtf_take_steps_and_the_rest_is_left_out():
    """Compressed it may be eight times as long as the mail."""
    once = b"\\b" * (MAX_STEPS // 2)
    whole, cut = (mail_parts(mail(tnef(binary(0x1009, plain_rtf(b"seen" + n * once + b" end"))))) for n in (1, 3))
    assert (whole.text, whole.left_out) == ("seenend", {})
    assert cut.text == "seen" and 2 * len(once) > cut.left_out["bytes"] > 0.9 * len(once)
