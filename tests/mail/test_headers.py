"""Headers that tell of a verdict, as the email package reads them, whatever words strangers wrote."""

import email
import email.policy
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.mail.verdict import HAM, SPAM, UNSURE, Verdict
from stream_pegasos.mail.verdict_headers import insert_headers, spam_headers

ANY_WORDS = st.lists(st.tuples(st.text(max_size=60), st.floats(-99, 99)), max_size=5)
MAILS = {
    "plain": b"Subject: lunch\n\nAt noon?\n",
    "CRLF": b"Subject: lunch\r\nTo: b@example.org\r\n\r\nAt noon?\r\n",
    "a mail server's first line": b"From ann@example.org Mon Nov 23 10:00:00 2026\nSubject: lunch\n\nAt noon?\n",
    "no header": b"\nAt noon?\n",
    "empty": b"",
    "no line": b"From x",
    "nothing but bytes": bytes(range(256)) * 3,
}


@pytest.mark.parametrize("mail", MAILS.values(), ids=MAILS)
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_every_other_byte_stays(mail, newline):
    verdict = Verdict(SPAM, 0.99, 7.4, (("free prize", 0.8),))
    mail = mail.replace(b"\r\n", b"\n").replace(b"\n", newline)
    said = insert_headers(mail, verdict)
    (lines,) = re.findall(rb"X-Spam-Flag: YES.*?X-Spam-Level: \*{7}\r?\n", said, re.DOTALL)
    assert said.replace(lines, b"") == mail
    assert said.startswith((lines, b"From "))
    assert (b"\r\n" in lines) == (newline == b"\r\n" and b"\n" in mail)


@given(st.sampled_from([SPAM, HAM, UNSURE]), st.floats(0, 1), st.floats(-50, 50), ANY_WORDS)
def test_no_word_breaks_a_header(outcome, probability, score, words):
    lines = spam_headers(Verdict(outcome, probability, score, tuple(words), reason="too few"))
    assert lines.isascii() and max(map(len, lines.split(b"\n"))) < 998  # the longest line of RFC 5322
    mail = email.message_from_bytes(lines + b"Subject: lunch\n\nAt noon?", policy=email.policy.default)
    assert mail.keys() == ["X-Spam-Flag", "X-Spam-Status", "X-Spam-Level", "Subject"]
    assert mail["X-Spam-Flag"] == ("YES" if outcome == SPAM else "NO")
    assert mail["X-Spam-Status"].startswith("Yes, score=" if outcome == SPAM else "No, score=")
    assert mail["X-Spam-Level"] == "*" * max(int(score), 0)
    assert mail.get_payload() == "At noon?"


def test_probability_is_never_rounded_to_certainty():
    assert b"probability=0.9999" in spam_headers(Verdict(SPAM, 0.9999999, 17.1))
