"""What a reader sees of mails as people and programs send them, broken ones among them: a row a case."""

from base64 import b64encode
from binascii import b2a_qp, b2a_uu

import pytest

from stream_pegasos.mail_text.features import mail_bytes, read_parts
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.mail_text.parts import mail_parts
from stream_pegasos.streams.encoding import TextEncoding

HEAD = b"From: Ann <ann@x.example>\nSubject: note\n"


def mail(kind, body, *fields):
    """A mail of a type of content, with other fields."""
    lines = [f"Content-Type: {kind}" if kind else "X-None: 1", *fields]
    body = body.encode() if isinstance(body, str) else body
    return HEAD + b"".join(line.encode("utf-8") + b"\n" for line in lines) + b"\n" + body


def part(text, kind="text/plain; charset=utf-8", *fields):
    return "\n".join([f"Content-Type: {kind}", *fields, "", text])


def mixed(*parts, boundary="b", end="--", preamble=""):
    return preamble + "".join(f"--{boundary}\n{each}\n" for each in parts) + (f"--{boundary}--\n" if end else "")


def uu(data, name="note.txt"):
    lines = [b2a_uu(data[i : i + 45]).decode() for i in range(0, len(data), 45)]
    return f"begin 644 {name}\n{''.join(lines)}`\nend\n"


def yenc(data, name="note.txt"):
    coded = b"".join(
        b"=" + bytes([(code + 106) % 256]) if (code + 42) % 256 in (0, 10, 13, 61) else bytes([(code + 42) % 256])
        for code in data
    )
    return b"=ybegin line=128 size=%d name=%s\n%s\n=yend size=%d\n" % (len(data), name.encode(), coded, len(data))


MIXED, FORMS = "multipart/mixed; boundary=b", "multipart/alternative; boundary=b"
TWO = (part("one"), part("<p>two</p>", "text/html"))
ENDS = b"\r\n", b"\r"
LONG = "; ".join(f'x{i}="{"y" * 40}"' for i in range(60))
INNER = "Subject: inner\n\nwords"

TEXTS = {  # name: (mail, the text that a reader sees)
    # Multiparts whose boundary is missing, wrong or odd.
    "whole": (mail(MIXED, mixed(*TWO)), "one\ntwo"),
    "no boundary": (mail("multipart/mixed", mixed(*TWO)), "one\ntwo"),
    "an unclosed boundary": (mail('multipart/mixed; boundary="b', mixed(*TWO)), "one\ntwo"),
    "another boundary": (mail("multipart/mixed; boundary=other", mixed(*TWO)), "one\ntwo"),
    "another boundary, Windows": (
        mail("multipart/mixed; boundary=other", mixed(*TWO).replace("\n", "\r\n")),
        "one\ntwo",
    ),
    "a boundary far behind": (mail(f"multipart/mixed; {LONG}; boundary=b", mixed(*TWO)), "one\ntwo"),
    "a boundary in pieces": (
        mail('multipart/mixed; boundary*0="b"; boundary*1="c"', mixed(*TWO, boundary="bc")),
        "one\ntwo",
    ),
    "a boundary in a name": (mail('multipart/mixed; x="boundary=q"; boundary=b', mixed(*TWO)), "one\ntwo"),
    "no part has a field": (mail("multipart/mixed", "--z\n\none\n--z\n\ntwo\n--z--\n"), "one\ntwo"),
    "nothing to split at": (mail(MIXED, "only words"), "only words"),
    "nothing to split at, in HTML": (mail("multipart/alternative", "<html><b>only</b> words"), "only words"),
    "nothing but the end": (mail(MIXED, "only words\n--b--\n"), "only words\n--b--"),
    "never closed": (mail(MIXED, mixed(*TWO, end="")), "one\ntwo"),
    "an inner one that is never closed": (
        mail(MIXED, mixed(part(mixed(*TWO, boundary="i", end=""), "multipart/mixed; boundary=i"), part("three"))),
        "one\ntwo\nthree",
    ),
    "an inner one without a boundary": (
        mail(MIXED, mixed(part(mixed(*TWO, boundary="i"), "multipart/mixed"), part("three"))),
        "one\ntwo\nthree",
    ),
    "two types": (mail("text/plain", mixed(*TWO), "Content-Type: multipart/mixed; boundary=b"), "one\ntwo"),
    "two types, the other way": (mail(MIXED, mixed(*TWO), "Content-Type: text/plain"), "one\ntwo"),
    "two types, no parts": (mail(MIXED, "<b>one</b>", "Content-Type: text/html"), "one"),
    "space after a delimiter": (mail(MIXED, mixed(*TWO).replace("--b\n", "--b \t\n")), "one\ntwo"),
    "a boundary that begins another": (
        mail(MIXED, mixed(part(mixed(*TWO, boundary="b1"), "multipart/mixed; boundary=b1"))),
        "one\ntwo",
    ),
    "a preamble is not shown": (mail(MIXED, mixed(*TWO, preamble="This is MIME.\n")), "one\ntwo"),
    "an epilogue is not shown": (mail(MIXED, mixed(*TWO) + "more\n"), "one\ntwo"),
    "base64 around parts": (
        mail(MIXED, b64encode(mixed(*TWO).encode()), "Content-Transfer-Encoding: base64"),
        "one\ntwo",
    ),
    "base64 around a mail": (
        mail("message/rfc822", b64encode(INNER.encode()), "Content-Transfer-Encoding: base64"),
        "inner\nwords",
    ),
    "a mail that only claims base64": (
        mail("message/rfc822", INNER, "Content-Transfer-Encoding: base64"),
        "inner\nwords",
    ),
    "a digest": (mail("multipart/digest; boundary=b", f"--b\n\n{INNER}\n--b--\n"), "inner\nwords"),
    "a type without a slash": (mail("html", "<b>one</b>"), "<b>one</b>"),
    "a type with a comment": (mail("text/html (a page)", "<b>one</b>"), "one"),
    "a type in quotes": (mail('"text/html"', "<b>one</b>"), "one"),
    "a type without a semicolon": (mail("text/html charset=utf-8", "<b>one</b>"), "one"),
    # The transfer.
    "base64 (x)": (mail("text/plain", b64encode(b"one"), "Content-Transfer-Encoding: base64 (x)"), "one"),
    "base64;": (mail("text/plain", b64encode(b"one"), "Content-Transfer-Encoding: base64;"), "one"),
    "BASE64 in quotes": (mail("text/plain", b64encode(b"one"), 'Content-Transfer-Encoding: "BASE64"'), "one"),
    "pieces of base64": (mail("", "QnV5\nIHA=\naWxscw==", "Content-Transfer-Encoding: base64"), "Buy pills"),
    "base64 and a foot": (
        mail("", "b25l\ndHc=\n\n-- \nA list, of words\n", "Content-Transfer-Encoding: base64"),
        "onetw",
    ),
    "base64 with signs": (mail("", "b2!5\nl*IHR3bw\n", "Content-Transfer-Encoding: base64"), "one two"),
    "quoted-printable": (
        mail("", b2a_qp("für dich =".encode()), "Content-Transfer-Encoding: Quoted-Printable"),
        "für dich =",
    ),
    "quoted-printable, blanks behind the sign that joins lines": (
        mail("", b"one= \ntw= \t\no = \n", "Content-Transfer-Encoding: quoted-printable"),
        "onetwo",
    ),
    "x-uuencode": (mail("text/plain", uu(b"one two"), "Content-Transfer-Encoding: x-uuencode"), "one two"),
    "uue": (mail("text/plain", uu(b"one " * 30), "Content-Transfer-Encoding: uue"), ("one " * 30).strip()),
    "a file in a text": (mail("text/plain", f"before\n{uu(b'inside')}after\n"), "before\ninside\nafter"),
    "a picture in a text": (mail("text/plain", f"before\n{uu(b'GIF89a', 'x.gif')}after\n"), "before\nafter"),
    "a file that never ends": (mail("text/plain", f"before\n{uu(b'inside')[:-6]}"), "before\ninside"),
    "base64 in a text": (
        mail("text/plain", f"a\nbegin-base64 644 n.txt\n{b64encode(b'inside').decode()}\n====\nb\n"),
        "a\ninside\nb",
    ),
    "yEnc": (mail("text/plain", b"before\n" + yenc(b"inside = it\n") + b"after\n"), "before\ninside = it\nafter"),
    "yEnc of a program": (mail("text/plain", yenc(b"MZ", "x.exe")), ""),
    "a text that begins": (mail("text/plain", "begin 644 times\nand see"), "begin 644 times\nand see"),
    # Depth, and not words, is bounded.
    "links with /message/": (
        mail(MIXED, mixed(part("see http://x.example/message/1\n" * 17 + "end"), part("<i>two</i>", "text/html"))),
        "see http://x.example/message/1\n" * 17 + "end\ntwo",
    ),
    "a preamble of dashes": (mail(MIXED, mixed(*TWO, preamble="--\n" * 400)), "one\ntwo"),
    "a preamble of types": (mail(MIXED, mixed(*TWO, preamble="message/ multipart/\n" * 400)), "one\ntwo"),
    "thirty mails attached": (
        mail(MIXED, mixed(*[part(f"Subject: s{i}\n\nt{i}", "message/rfc822") for i in range(30)])),
        "\n".join(f"s{i}\nt{i}" for i in range(30)),
    ),
    "mails within mails": (
        HEAD + b"Content-Type: message/rfc822\n\n" * 10 + b"Subject: last\n\nwords",
        "last\nwords",
    ),
    "nine thousand short lines before": (
        mail(MIXED, mixed(part("end"), preamble="x\n" * 9_000)),
        "end",
    ),
    # Alternatives.
    "plain and HTML": (mail(FORMS, mixed(*TWO)), "two"),
    "HTML and plain": (mail(FORMS, mixed(*TWO[::-1])), "two"),
    "HTML among pictures, and plain": (
        mail(FORMS, mixed(part(mixed(TWO[1], boundary="r"), "multipart/related; boundary=r"), TWO[0])),
        "two",
    ),
    "an empty page, and plain": (mail(FORMS, mixed(part("<p> </p>", "text/html"), part("one"))), "one"),
    **{
        f"then {kind}": (mail(FORMS, mixed(*TWO, part("no one", kind))), "two")
        for kind in (
            "text/x-note",
            "text/csv",
            "text/rtf",
            "text/calendar",
            "text/x-amp-html",
            "text/markdown",
            "image/png",
        )
    },
    "then enriched": (mail(FORMS, mixed(*TWO, part("<bold>t<<hree</bold>", "text/enriched"))), "t<hree"),
    "an empty page": (mail(FORMS, mixed(part("one"), part("<p> </p>", "text/html"))), "one"),
    "a page with a picture": (mail(FORMS, mixed(part("one"), part('<img src="//x.example/a.png">', "text/html"))), ""),
    "a page among its pictures": (
        mail(
            FORMS,
            mixed(part("one"), part(mixed(part("<p>two", "text/html"), boundary="r"), "multipart/related; boundary=r")),
        ),
        "two",
    ),
    "only a note": (mail(FORMS, mixed(part("one", "text/x-note"))), "one"),
    # Charsets.
    **{
        f"{name} as {codec}": (mail(f"text/plain; charset={name}", text.encode(codec)), text)
        for name, codec, text in [
            ("csISO2022JP", "iso2022_jp", "こんにちは"),
            ("iso-8859-8-i", "iso8859-8", "שלום"),
            ("windows-874", "cp874", "สวัสดี"),
            ("windows-31j", "cp932", "髙橋"),
            ("x-sjis", "shift_jis", "こんにちは"),
            ("x-gbk", "gbk", "你好"),
            ("windows-936", "gbk", "你好"),
            ("gb_2312-80", "gb2312", "你好"),
            ("windows-949", "cp949", "안녕하세요"),
            ("ks_c_5601-1987", "cp949", "안녕"),
            ("x-euc-jp", "euc_jp", "こんにちは"),
            ("x-mac-roman", "mac-roman", "Grüße"),
            ("x-mac-cyrillic", "mac-cyrillic", "Привет"),
            ("koi8", "koi8-r", "Привет"),
            ("cp-1251", "cp1251", "Привет"),
            ("'windows-1253'", "cp1253", "Καλημέρα"),
            ("hz-gb-2312", "hz", "你好"),
            ("iso-2022-kr", "iso2022_kr", "안녕"),
            ("utf-7", "utf-7", "Grüße + 你好"),
            ("utf-16", "utf-16", "Grüße"),
            ("us-ascii", "cp1252", "“Grüße”"),
            ("iso-8859-1", "cp1252", "„Grüße“"),
            ("big5", "big5", "你好"),
            ("latin5", "cp1254", "şeker"),
        ]
    },
    "NEC and IBM in EUC-JP": (mail("text/plain; charset=euc-jp", b"\xad\xa1 \xfc\xe2\xb6\xb6 \xa4\xa2"), "1 髙橋 あ"),
    "NEC and IBM in ISO-2022-JP": (mail("text/plain; charset=iso-2022-jp", b"\x1b$B-!|b\x1b(B a"), "1髙 a"),
    "the euro of Windows in GBK": (
        mail("text/plain; charset=gbk", "价格".encode("gbk") + b"\x805 " + "丂€".encode("gb18030")),
        "价格€5 丂€",
    ),
    **{
        f"{name}, which says nothing of Latin-1": (
            mail(f"text/plain; charset={name}", "Grüße".encode("latin-1")),
            "Grüße",
        )
        for name in ("nowhere", "rot13")
    },
    "UTF-8 that is called Latin-1": (mail("text/plain; charset=iso-8859-1", "Grüße"), "Grüße"),
    "a plus in UTF-7": (mail("text/plain; charset=utf-7", b"+49 89 1+1 a +- b +AOk-"), "+49 89 1+1 a + b é"),
    "macintosh": (mail("text/plain; charset=macintosh", "Grüße".encode("mac-roman")), "Grüße"),
    "marks that nobody sees": (mail("", "Gr\u200bü\u00adße"), "Grüße"),
    "no charset, but signs of Japanese": (mail("text/plain", "こんにちは".encode("iso2022_jp")), "こんにちは"),
    "a byte order mark": (mail("text/plain; charset=iso-8859-1", b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe"), "Grüße"),
    "in the page": (mail("text/html", '<meta charset="koi8-r"><p>Привет'.encode("koi8-r")), "Привет"),
    **{
        f"{name} in the page, which it cannot be": (mail("text/html", f"<meta charset={name}><p>Grüße"), "Grüße")
        for name in ("utf-16", "unicode", "ucs-2", "cp037")
    },
    "in the page, as of old": (
        mail(
            "text/html",
            '<meta http-equiv="Content-Type" content="x; charset=shift_jis"><p>こんにちは'.encode("shift_jis"),
        ),
        "こんにちは",
    ),
    "in the declaration of XML": (
        mail("text/html", '<?xml version="1.0" encoding="koi8-r"?><p>Привет'.encode("koi8-r")),
        "Привет",
    ),
    "lines that flow": (
        mail("text/plain; format=flowed; delsp=yes", "free pi \nlls\n> no \n> yes\n"),
        "free pills\n> no\n> yes",
    ),
    "the header goes before the page": (
        mail("text/html; charset=koi8-r", '<meta charset="big5"><p>Привет'.encode("koi8-r")),
        "Привет",
    ),
    "NUL within words": (mail("text/plain", b"f\0r\0ee pi\0lls"), "free pills"),
    "NUL within a page": (mail("text/html", b"f\0ree"), "free"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_that_a_reader_sees(name):
    message, text = TEXTS[name]
    assert mail_parts(message).text == text
    if b"\r" not in message and b"\0" not in message and message.isascii():  # the same over a network
        assert mail_parts(message.replace(b"\n", b"\r\n")).text == text


KOI8 = "Привет".encode("koi8-r")
SUBJECTS = {  # name: (the mail, its subject)
    "a language": (b"Subject: =?iso-8859-2*sl?Q?Doma=e8e?=\n\n", "Domače"),
    "a language of UTF-8": (b"Subject: =?utf-8*EN?Q?Gr=C3=BC=C3=9Fe?=\n\n", "Grüße"),
    "a language, base64": (b"Subject: =?koi8-r*ru?B?" + b64encode(KOI8) + b"?=\n\n", "Привет"),
    "one bad word": (b"Subject: =?utf-8?B?SGVsbG8=?= =?utf-8?B?A?=\n\n", "Hello=?utf-8?B?A?="),
    "one bad word before": (b"Subject: =?utf-8?B?A?= =?utf-8?B?SGVsbG8=?=\n\n", "=?utf-8?B?A?= Hello"),
    "an unknown charset": (b"Subject: =?x-none?Q?free?= =?utf-8?Q?_pills?=\n\n", "free pills"),
    "a letter in two words": (b"Subject: =?utf-8?Q?Gr=C3?=\n =?utf-8?Q?=BC=C3=9Fe?=\n\n", "Grüße"),
    "spaces in a word": (b"Subject: =?utf-8?Q?free pills now?=\n\n", "free pills now"),
    "words side by side": (b"Subject: =?utf-8?Q?fr?==?utf-8?Q?ee?=\n\n", "free"),
    "a word in brackets": (b"Subject: [=?utf-8?Q?=C3=BC?=] x\n\n", "[ü] x"),
    "padding lost": (b"Subject: =?utf-8?B?SGVsbG8?=\n\n", "Hello"),
    "never ended": (b"Subject: =?utf-8?B?SGVsbG8\n\n", "=?utf-8?B?SGVsbG8"),
    "words of two charsets": (b"Subject: =?iso-8859-1?B?R3L832U=?= to =?us-ascii?q?you?=\n\n", "Grüße to you"),
    "raw Latin-1, no charset": ("Subject: Grüße\n\n".encode("latin-1"), "Grüße"),
    "japanese": (b"Subject: =?ISO-2022-JP?B?" + b64encode("こんにちは".encode("iso2022_jp")) + b"?=\n\n", "こんにちは"),
    **{
        f"raw {charset}": (
            b"Subject: " + text.encode(charset) + f"\nContent-Type: text/plain; charset={charset}\n\n".encode(),
            text,
        )
        for charset, text in [
            ("koi8-r", "Привет"),
            ("gb2312", "你好"),
            ("big5", "優惠"),
            ("shift_jis", "こんにちは"),
            ("windows-1251", "Скидка"),
            ("iso-8859-2", "Domače"),
            ("utf-8", "Grüße"),
        ]
    },
    "raw, the charset in a part": (
        b"Subject: " + KOI8 + b"\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain; charset=koi8-r\n\n" + KOI8 + b"\n--b--\n",
        "Привет",
    ),
    "raw UTF-8 beside a charset": (
        "Subject: Grüße\nContent-Type: text/plain; charset=koi8-r\n\n".encode(),
        "Grüße",
    ),
    "raw beside an encoded word": (
        b"Subject: " + KOI8 + b" =?utf-8?Q?=C3=BC?=\nContent-Type: text/plain; charset=koi8-r\n\n",
        "Привет ü",
    ),
    "space before the colon": (b"From: a@x.example\nSubject : free pills\n\nhi", "free pills"),
    "a tab before the colon": (b"Subject\t: free\n\nhi", "free"),
    "a byte order mark": (b"\xef\xbb\xbfSubject: free\n\nhi", "free"),
    "a line From": (b"From ann@x.example Mon Jan 1 00:00:00 2024\nSubject: free\n\nhi", "free"),
    "a line >From": (b">From ann@x.example Mon Jan 1 00:00:00 2024\nSubject: free\n\nhi", "free"),
    "a mark and a line": (b"\xef\xbb\xbfFrom ann Mon Jan 1\n>From ann Mon Jan 1\nSubject: free\n\nhi", "free"),
    "empty lines before a line": (b"\xef\xbb\xbf\r\n\nFrom ann Mon Jan 1\nX-A: b\nSubject: free\n\nhi", "free"),
    "a line >From among fields": (b"Received: x\n>From ann Mon Jan 1\nSubject: free\n\nhi", "free"),
    "a broken line among fields": (b"Received: x\nno field at all\nSubject: free\n\nhi", "free"),
    "empty lines before": (b"\n\r\nFrom: a@x.example\nSubject: free\n\nhi", "free"),
    "old Macintosh": (b"From: a@x.example\rSubject: free\r\rhi", "free"),
    "folded": (b"Subject: free\n\tpills\r\n now\n\nhi", "free pills now"),
    "folded, and the indentation lost": (b"Subject: free\npills now\nFrom: a@x.example\n\nhi", "free pills now"),
    "a parameter that lost its indentation": (
        b'Subject: free\nContent-Type: multipart/mixed;\nboundary="b"\n\n--b\n\nhi\n--b--\n',
        "free",
    ),
    "two subjects": (b"Subject: free\nSubject: other\n\nhi", "free"),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_subject_that_a_reader_sees(name):
    message, subject = SUBJECTS[name]
    parts = mail_parts(message)
    assert parts.subject == subject
    assert parts.text in ("hi", "", "Привет")


def test_what_is_not_shown_of_alternatives_are_words_of_their_own():
    parts = mail_parts(mail(FORMS, mixed(*TWO, part("lunch at two", "text/x-note"))))
    assert parts.text == "two" and {"other:one", "other:lunch", "other:at"} <= set(parts.tokens)
    assert "other:two" not in parts.tokens
    parts = mail_parts(mail(FORMS, mixed(TWO[1], part("the page was not loaded"))))
    assert parts.text == "two" and {"other:page", "other:loaded"} <= set(parts.tokens)


def test_files_within_a_text_are_attached():
    assert {"attached:.exe", "attached:setup"} <= set(mail_parts(mail("text/plain", uu(b"MZ", "setup.exe"))).tokens)


def test_parts_deeper_than_the_bound_are_counted():
    deep = HEAD + b"Content-Type: message/rfc822\n\n" * 40 + b"Subject: last\n\nwords"
    assert mail_parts(deep).left_out == {"parts": 1}


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Zoé, votre compte est prêt, à bientôt", "utf-8"),
        ("Zoé, votre compte est prêt — 100 € offerts", "utf-8"),
        ("Zoé, votre compte est prêt, à bientôt", "iso-8859-1"),
        ("Zoé, votre compte est prêt — 100 € offerts", "windows-1252"),
        ("Zażółć gęślą jaźń", "iso-8859-2"),
        ("Ваш счёт готов", "koi8-r"),
        ("Ваш счёт готов", "windows-1251"),
        ("λογαριασμός σας είναι έτοιμος", "iso-8859-7"),
        ("アカウントの準備ができました", "utf-8"),
        ("アカウントの準備ができました", "shift_jis"),
        ("アカウントの準備ができました", "euc-jp"),
        ("免费赢取大奖", "gb2312"),
        ("免费赢取大奖", "gb18030"),
        ("免費贏取大獎", "big5"),
        ("무료 상품 당첨", "euc-kr"),
        ("รางวัลฟรี", "tis-620"),
        ("prix 5 € gratuité", "iso-8859-15"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_mail_is_the_same_as_bytes_and_as_a_string(text, charset, named):
    kind = f"Content-Type: text/plain; charset={charset}\n" if named else ""
    whole = f"From: {text[:3]} <z@x.example>\nX-Mailer: {text}\nSubject: {text}\n{kind}\n{text * 40}\n"
    raw = whole.encode(charset)
    parts = read_parts(raw)
    assert text in parts.text or (not named and charset not in ("utf-8", "iso-8859-1", "windows-1252"))
    assert parts == read_parts(raw.decode("latin-1"))
    assert mail_id(raw) == mail_id(mail_bytes(raw.decode("latin-1")))
    if named or charset in ("utf-8", "iso-8859-1", "windows-1252"):
        assert parts == read_parts(whole)
        assert mail_id(raw) == mail_id(mail_bytes(whole))


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, (raw, _) in TEXTS.items()])
def test_a_mail_is_the_same_however_its_lines_end_and_whatever_stands_before_it(raw):
    parts = mail_parts(raw)
    for other in (
        b"\xef\xbb\xbf" + raw,
        b"\r\n" + raw,
        *([raw.replace(b"\n", end) for end in ENDS if b"\r" not in raw]),
    ):
        assert mail_parts(other) == parts and mail_id(other) == mail_id(raw)


def test_a_mail_of_several_charsets_is_the_same_from_a_reader_that_decodes():
    koi8, utf8 = part("", "text/plain; charset=koi8-r").encode() + KOI8, part("Grüße — 5 €").encode()
    raw = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + koi8 + b"\n--b\n" + utf8 + b"\n--b--\n"
    assert "Grüße — 5 €" in read_parts(raw).text
    assert read_parts(raw) == read_parts(TextEncoding().text(raw))
