"""A mail taken apart: what a reader sees, what stands beside it, and mails made to do harm."""

import subprocess
import sys
import time
from email.message import EmailMessage

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stream_pegasos.mail_text.parts import FIRST, LAST, MAX_TOKENS, mail_parts

PLAIN = b"From: Ann <ann@mail.bank.example>\nTo: bob@home.example\nSubject: Hello\n"


def html(markup):
    return mail_parts(PLAIN + b"Content-Type: text/html; charset=utf-8\n\n" + markup.encode())


def body(content, *fields):
    return mail_parts(PLAIN + b"".join(field + b"\n" for field in fields) + b"\n" + content)


def test_a_plain_mail():
    parts = body(b"See you!\n\n  Ann\n")
    assert (parts.subject, parts.text, parts.left_out) == ("Hello", "See you!\nAnn", {})
    assert {"from:bank.example", "from:.example", "to:n:1", "tree:text/plain"} <= set(parts.tokens)
    assert len(parts.tokens) == len(set(parts.tokens)) and not any("\n" in token for token in parts.tokens)
    assert body(b"See you!\n\n  Ann\n").tokens == parts.tokens


def test_a_reader_sees_words_as_they_are_shown():
    seen = html("F<b>re</b>e V<!-- x -->iagra<p>for<br>you<td>1<td>2").text
    assert seen.split() == ["Free", "Viagra", "for", "you", "1", "2"]
    assert html("<head><title>T</title></head><style>p{}</style><script>x<y</script>a&amp;b &#8364;5").text == "a&b €5"
    parts = mail_parts(b"Subject: x\n\n<html><body>Hi</body></html>")
    assert parts.text == "Hi"  # no type is written, but it is HTML


@pytest.mark.parametrize("tag", ['<p style="font-size:10px">', '<p style="width:100%">', "<font color=red>", "<p>"])
def test_what_is_shown_is_not_hidden(tag):
    assert "secret" in html(f"{tag}secret").text


def test_entities_are_read_as_browsers_read_them():
    text = html("<p>a&#146;b &amp c &copy2 &eacute d &hellip; &#x80; &lt;p&gt; &xyz; <a title='&copy=1'>e</a>").text
    assert text == "a\u2019b & c \u00a92 \u00e9 d ... \u20ac <p> &xyz; e"  # of three dots, as ever


def test_links_and_images():
    tokens = set(
        html(
            '<a href="http://1.2.3.4/pay/login.php?a=1">www.bank.example.com</a> <a href="https://shop.test/x">here</a>'
            '<img src="http://count.test/open.gif" width=1 height=1>'
        ).tokens
    )
    assert {"href:host-is-ip", "href:names-other-host", "path:pay", "path:login", "href:shop.test"} <= tokens
    assert {"href:https", "img:count.test", "img:too-small"} <= tokens
    assert "href:map.test" in html('<map><area href="https://map.test/a" alt="here"></map>').tokens
    assert {"link:x.test", "path:buy", "links:1"} <= set(body(b"see http://www.x.test/buy now").tokens)


def test_parts_forwarded_and_attached():
    mail = EmailMessage()
    mail["Subject"] = "Outer"
    mail.set_content("plain words")
    mail.add_alternative("<p>rich <b>words</b></p>", subtype="html")
    mail.add_attachment(b"MZ", maintype="application", subtype="octet-stream", filename="Invoice.pdf.exe")
    inner = EmailMessage()
    inner["Subject"] = "Inner"
    inner.set_content("forwarded")
    mail.add_attachment(inner)
    parts = mail_parts(bytes(mail))
    assert (parts.text, parts.left_out) == ("rich words\nInner\nforwarded", {})
    inside = "multipart/alternative(text/plain,text/html),application/octet-stream,message/rfc822(text/plain)"
    assert {f"tree:multipart/mixed({inside})", "attached:.exe", "attached:two-endings", "attached:invoice"} <= set(
        parts.tokens
    )


def test_headers_name_nobody():
    parts = mail_parts(
        b"Received: from localhost (me [127.0.0.1]) by box.home.example; Mon, 1 Jul 2024 10:00:00 +0000\n"
        b"Received: from out (x.dsl.isp.example [9.8.7.6]) by mx.home.example "
        b"(Postfix) with ESMTP id A1B2 for <b@h>; Mon\n"
        b"Delivered-To: bob@home.example\nList-Id: <secret.lists.example>\nFrom: <ann@bank.example>\n"
        b"X-Mailer: Foo 1.2\n\n"
    )
    assert not any(name in parts.headers for name in ("home", "isp", "9.8", "a1b2", "secret", "bank", "localhost"))
    assert "x-mailer: foo 1.2" in parts.headers and "(postfix) with esmtp" in parts.headers
    assert "mx.home.example" in parts.route and "a1b2" not in parts.route
    assert {"first:says-no-host", "first:other", "first:of-homes"} & set(parts.tokens)


def test_senders_answers_and_results():
    tokens = set(
        mail_parts(
            b"Authentication-Results: mx.x; spf=fail smtp.mailfrom=a; dkim=pass; dmarc=none\nFrom: a@b.bank.test\n"
            b"DKIM-Signature: v=1; d=bank.test; s=x\nReply-To: c@other.test\nDate: Mon, 1 Jul 2024 10:00:00 -1700\n"
            b"Subject: Re: hi\nMiME-Version: 1.0\nList-Unsubscribe: <mailto:x@y>\n\n"
        ).tokens
    )
    assert {"auth:spf=fail", "auth:dkim=pass", "auth:dmarc=none", "auth:signed-by-sender:True"} <= tokens
    assert {"reply:other", "date:odd-zone", "subject:reply:True:False", "odd-case:mime-version"} <= tokens
    assert "list:list-unsubscribe" in tokens


@pytest.mark.parametrize(
    "content",
    [
        'text/plain; name="a; charset=utf-16"; charset=utf-8',
        'text/plain; charset="utf-8"; name="a; charset=utf-16"',
        "text/plain; CHARSET=UTF-8 ; charset=utf-16",
        "text/plain; charset*=us-ascii'en'utf-8",
    ],
)
def test_the_charset_is_that_which_the_email_package_finds(content):
    part = EmailMessage()
    part["Content-Type"] = content
    expected = part.get_content_charset()
    parts = body("é".encode(), f"Content-Type: {content}".encode())
    assert expected == "utf-8" and parts.text == "é" and "charset:utf-8" in parts.tokens


def test_a_folded_field_is_one_line():
    parts = body(b"hi", b"Content-Type: text/plain;\r\n\tcharset=us-ascii", b"X-Priority: 1\n (high)")
    assert {"content:text/plain;\tcharset=us-ascii", "content:charset=", "x-priority:1 (high)"} <= set(parts.tokens)
    assert "x-priority: 1 (high)" in parts.headers.split("\n")


def test_a_long_text_keeps_its_beginning_and_its_end():
    parts = body(b"start" + b"x" * 9_000 + b"end")
    assert len(parts.text) == FIRST + LAST + 1 and parts.text.startswith("start") and parts.text.endswith("end")
    assert parts.left_out == {"characters": 9_008 - FIRST - LAST}


MULTI = PLAIN + b"Content-Type: multipart/mixed; boundary=a\n\n"
HTML = PLAIN + b"Content-Type: text/html\n\n"
HOSTILE = {
    "header of 20 MB": b"Subject: " + b"x" * 20_000_000 + b"\n\nhi",
    "folded header": b"Subject: x\n" + b" y\n" * 500_000 + b"\nhi",
    "many headers": b"X-A: b\n" * 100_000 + b"\nhi",
    "brackets": b"From: " + b"(" * 60_000 + b"\nDate: " + b"(" * 2_000 + b"\n\n",
    "parameters": b"Content-Type: multipart/mixed" + b';a="x' * 5_000 + b"\n\n",
    "10,000 parts": MULTI + b"--a\n\nx\n" * 10_000,
    "5,000 deep": b"".join(b"Content-Type: multipart/mixed; boundary=a%d\n\n--a%d\n" % (i, i) for i in range(5_000)),
    "forwarded 5,000 times": b"Content-Type: message/rfc822\n\n" * 5_000,
    "attributes": HTML + b"<a " + b" ".join(b"a%d=1" % i for i in range(160_000)) + b">",
    "lines": MULTI + b"--a\n\n" + b"\n" * 1_000_000,
    "tags": HTML + b"<div>" * 100_000,
    "tags never opened": HTML + b"<b>" * 2_000 + b"</i>" * 100_000,
    "a megabyte of markup": HTML + b"<p>some <b>te</b>xt</p>\n" * 50_000,
    "links": PLAIN + b"\n" + b"http://" * 50_000,
    "codec": PLAIN + b"Content-Type: text/plain; charset=punycode\n\n" + b"a-\xc3" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_mail_made_to_do_harm_is_cut_and_counted(name):
    start = time.process_time()
    parts = mail_parts(HOSTILE[name])
    assert time.process_time() - start < 5.0  # no measure of speed: without the bounds some never end
    assert sum(parts.left_out.values()) > 0 and len(parts.text) <= FIRST + LAST + 1
    assert len(parts.headers) + len(parts.route) < 40_000 and len(parts.tokens) <= MAX_TOKENS


PIECES = st.sampled_from(
    [
        *(b"Content-Type: multipart/mixed; boundary=a\n", b"--a\n", b"--a--", b"Content-Type: message/rfc822\n\n"),
        *(
            b"Subject: =?utf-8?b?",
            b"=?x?q?",
            b"\n",
            b"\n\n",
            b"\r",
            b"\xff",
            b"\0",
            b"%",
            b"Received: from (",
            b"From: <",
        ),
        *(b"Content-Type: text/html; charset=utf-16\n\n", b"Content-Transfer-Encoding: base64\n", b"filename*0*="),
        *(b"<a href='//x", b"<p style='color:", b"&#x110000;", b"http://[", b"Date: 1 Jan 99999999999"),
        b"Content-Disposition: attachment; filename=",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300) | st.lists(PIECES | st.binary(max_size=5), max_size=30).map(b"".join))
@example(b"")
@example(b"\n")
@example(b"Content-Type: multipart/mixed; boundary*=idna''a\n\n--a\n\n")
@example(b"Content-Disposition: attachment; filename*=undefined''a\n\n")
@example(b"Content-Type: text/plain; name*=a; name*0=b; charset*=idna''x\n\n\xff")
@example(b"Content-Type: text/html\n\n\0")
def test_no_bytes_raise(message):
    parts = mail_parts(message)
    assert all(isinstance(text, str) for text in (parts.subject, parts.text, parts.headers, parts.route, *parts.tokens))


def test_lxml_is_not_imported_before_html_comes():
    code = (
        "import sys, stream_pegasos; from stream_pegasos.mail_text.parts import mail_parts;"
        "mail_parts(b'Subject: x\\n\\nhi'); assert 'lxml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
