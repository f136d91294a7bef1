"""The time for a mail is bounded by its length, whatever stands in it."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_pegasos.mail_text.parts import mail_parts
from stream_pegasos.mail_text.work import MAX_STEPS, Work

SIZE = 100_000  # bytes of a mail
HTML = b"Content-Type: text/html; charset=utf-8\n\n"
SHEET = HTML + b"<style>"
STYLED = HTML + b"<style>p, .a > b, [c] + i:not(#d) { top: 0 } b b b p { color: red }</style>"
MIXED = b"Content-Type: multipart/mixed; boundary=a\n\n"
BEGINS = [
    b"",
    b"\n",
    HTML,
    SHEET,
    HTML + b"<p style='",
    HTML + b"<p ",
    STYLED,
    MIXED,
    b"Content-Type: multipart/mixed\n\n",
]
BEGINS += [b"%b: " % name for name in (b"Subject", b"From", b"Received", b"Content-Type", b"Date", b"Message-ID")]
BEGINS += [b"Content-Transfer-Encoding: %b\n\n" % name for name in (b"base64", b"quoted-printable", b"x-uuencode")]
WINMAIL = b"Content-Type: application/ms-tnef\n\n" + bytes.fromhex("789f3e22 0100 01 03900600 ffffff7f ffffff7f")
IN_RTF = [
    WINMAIL + bytes.fromhex("02010910 01000000 ffffff7f") + bytes(8) + kind + bytes(4) for kind in (b"MELA", b"LZFu")
]
BEGINS += [WINMAIL, *IN_RTF]
BEGINS += [
    b"Content-Type: text/plain; charset=%b\n\n" % name
    for name in (b"utf-7", b"iso-2022-jp", b"gb18030", b"euc-jp", b"gbk")
]
WORDS = (
    "a b p i div td table li option <b> </b> <p> </p> <div> </div> <td> <table> <a href=x> </a> <br> <img alt=x> "
    "<style> </style> "
    "<!-- --> <! <? < > </ /> <script> </script> <title> <p class=a> <p style='top:0;color:red'> <i c id=d> c= = ' \" "
    "p{top:0} { } ( ) [ ] ; : , . # * + ~ :not( @media @supports @import screen, /* */ url( \\ \\0 !important "
    "rgb( 1 0 a0 A0 &amp; &# &#769; &a http:// www. a@ @ \u0301 \u0316 \u0430 \u0e33 \uff9e \uac00 \u200b \ufdfa "
    "=?utf-8?q?a?= =?utf-8?b? ?= \\n \\n\\n \\r \\t --a --a-- --b from id boundary= charset= filename*0= =41 = +AOk- - "
    "begin\\u0020644\\u0020a =ybegin Subject: Content-Type: \\u0020 \\x1b$B \\x1b(B \x80 _ "
    "{\\* \\b \\u1? \\'e9 \\fldinst \\htmlrtf"
)
PIECES = [
    word.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t").replace("\\u0020", " ").replace("\\x1b", "\x1b")
    for word in WORDS.split()
]


def filled(begin, unit, end):
    """A mail of the usual size: a piece again and again, and an end."""
    return begin + unit.encode() * ((SIZE - len(begin)) // len(unit.encode())) + end


@pytest.fixture(scope="module")
def reference():
    """The seconds of processor time that a usual page takes."""
    page = filled(HTML, "<p class=a style='margin: 0; color: #333'>Some words <b>of a page</b> to read</p>\n", b"")
    mail_parts(page[:1_000])
    start = time.process_time()
    mail_parts(page)
    return time.process_time() - start


@settings(max_examples=20, deadline=None)
@given(
    begin=st.sampled_from(BEGINS),
    unit=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
    end=st.sampled_from([b"", b"\n\nwords", b"}</style>" + b"<p>" * 5_000, b"'>" + b"</i>" * 5_000]),
)
@example(begin=b"\n", unit="\u0301\u0316", end=b"")
@example(begin=HTML, unit="&#769;&#790;", end=b"")
@example(begin=SHEET + b"p{", unit="top:0;", end=b"}</style>" + b"<p>" * 5_000)
@example(begin=SHEET, unit="p{top:0}", end=b"</style>" + b"<p>" * 5_000)
@example(begin=WINMAIL, unit="\0" * 8, end=b"")
@example(begin=IN_RTF[0], unit="\\b", end=b"")
@example(begin=IN_RTF[1], unit="\1\0\x0fabcdefg", end=b"")
@example(begin=MIXED, unit="--b" + 200 * " " + "\n", end=b"")
def test_no_mail_takes_much_longer_than_a_usual_page_of_its_size(reference, begin, unit, end):
    mail = filled(begin, unit, end)
    start = time.process_time()
    mail_parts(mail)
    assert time.process_time() - start < 15 * reference  # where it was square, it was 50 times and more


def test_comments_leave_the_steps_to_styles():
    parts = mail_parts(HTML + b"<!-- -->" * 30_000 + b"<p style='display:none'>secret</p><p>seen")
    assert parts.text == "seen" and not parts.left_out


def test_steps_are_for_all_parts_of_a_mail_together():
    work = Work()
    assert work.take(MAX_STEPS - 30) and work.read("color:red") and work.read("color:red") and not work.take(2)
    assert not work.left and not work.read("color:blue") and work.read("color:red")


def page_of(n):
    return "<p style='color:#fff'>a<b>b</b></p>" * n


@pytest.mark.parametrize("n", [1_000, 20_000])
def test_text_is_read_where_no_step_is_left(n):
    """It is taken as seen then."""
    parts = mail_parts(HTML + page_of(n).encode() + b"<!-- x --><style>p{}</style><p>the e&amp;n<b>d</b>")
    assert parts.text.split("\n")[-1] == "the e&nd"
    assert ("tags" in parts.left_out) == (n > 10_000) == ("html:styles-left-out" in parts.tokens)


@pytest.mark.parametrize(
    "markup",
    [
        "<style>@font-face{src:url(data:font/woff;base64," + "A" * 300_000 + ")}</style>",
        f"<img src='data:image/png;base64,{'A' * 300_000}'>",
        f"<!-- {'<p>x</p>' * 40_000} -->",
        f"<!--[if mso]>{'<o:p></o:p>' * 40_000}<![endif]-->",
        f"<style>{'.a{color:red}' * 30_000}</style>",
        f"<script>{'x<y;' * 90_000}</script>",
        "<o:p></o:p>" * 30_000,
        "<p>" + "".join(f"<span style='color:#333'>{letter}</span>" for letter in "abcdefghij" * 234),
    ],
    ids=lambda markup: markup[:25],
)
def test_what_a_reader_sees_within_a_megabyte_is_read(markup):
    parts = mail_parts(HTML + f"<p>first</p>{markup}<p>last words</p>".encode())
    assert parts.text.startswith("first") and parts.text.endswith("\nlast words")
    assert parts.text.replace("\n", "") in ("firstlast words", f"first{'abcdefghij' * 234}last words")
