"""By what a mail is known again."""

import pytest

from stream_pegasos.mail_text.features import mail_bytes
from stream_pegasos.mail_text.ids import mail_id

MAIL = (
    b"Received: by mx; Thu, 02 Jan 2020 10:00:00 +0000\nMessage-ID:\n <a@x>\nDate: Thu, 02 Jan 2020 10:00:00 +0000\n"
    b"From: Ann <ann@x>\nSubject: a long\n\tsubject\nTo: bob@y\n\nDear Bob,\n\nFrom here on it is yours.\n"
)


@pytest.mark.parametrize(
    "way",
    [
        lambda mail: mail.replace(b"\n", b"\r\n"),
        lambda mail: b"From ann@x Thu Jan  2 10:00:00 2020\n" + mail.replace(b"\nFrom here", b"\n>From here") + b"\n",
        lambda mail: b"X-Spam-Flag: YES\nX-Spam-Status: Yes,\n score=9\nReturn-Path: <a@x>\nDelivered-To: b\n" + mail,
        lambda mail: mail.replace(b"Received: by mx", b"Received: by other\n\tand others"),
        lambda mail: mail.replace(b":\n <a@x>", b": <a@x>").replace(b"\n\tsubject", b" subject"),
        lambda mail: mail.replace(b"Message-ID", b"Message-Id").replace(b"To: bob@y\n", b"") + b"\r\n \r\n",
        lambda mail: mail.rstrip(),
    ],
)
def test_a_mail_is_the_same_after_delivery(way):
    assert way(MAIL) != MAIL and mail_id(way(MAIL)) == mail_id(MAIL)


@pytest.mark.parametrize("charset", [b"utf-8", b"shift_jis", b"utf-16", b"unicode", b"cp037"])
def test_a_mail_of_raw_letters_is_the_same_after_delivery_in_whatever_charset_a_part_of_it_is(charset):
    mail = b"Subject: Gr\xfc\xdfe\nContent-Type: text/plain; charset=" + charset + b"\n\nGr\xfc\xdfe\n"
    assert mail_id(b"X-Spam-Flag: YES\n" + mail) == mail_id(mail)


@pytest.mark.parametrize("word", [b"<a@x>", b"Jan 2020", b"Ann", b"subject", b"Bob", b"yours"])
def test_a_mail_that_copies_the_rest_of_another_is_another(word):
    start = MAIL.index(b"Message-ID")  # what delivery added does not count
    assert mail_id(MAIL[:start] + MAIL[start:].replace(word, b"else")) != mail_id(MAIL)


def test_what_is_hardly_a_mail_is_told_apart():
    odd = [b"", b"no header", b"\0\xff", b"A: b\n\nc", b"A: b\n\nd"]
    odd += [b"Subject: c", b"\nc", b"Subject: c\nFrom: c"]
    assert len({mail_id(mail) for mail in odd}) == len(odd)


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "shift_jis", "koi8-r"])
def test_a_large_mail_is_the_same_as_bytes_and_as_a_text(charset):
    """Wherever it is cut."""
    letter = {"koi8-r": "п"}.get(charset, "大")
    for more in range(3):
        mail = f"Subject: a\nContent-Type: text/plain; charset={charset}\n\n{'x' * more}{letter * 400_000}"
        assert mail_id(mail.encode(charset)) == mail_id(mail_bytes(mail))


def test_of_a_large_mail_imap_need_not_fetch_all():
    large = MAIL.replace(b"\n", b"\r\n") + b"A line of a picture, in base64.\r\n" * 50_000
    assert mail_id(large) == mail_id(large[: 512 * 1024]) != mail_id(large[:400_000])
