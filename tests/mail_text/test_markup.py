"""What others write into a mail or around it is not read: SpamAssassin, other filters, servers, mail programs."""

import shutil
import subprocess

import pytest

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.mail_text.markup import strip_markup, strip_tag
from stream_pegasos.mail_text.parts import mail_parts

ORIGINAL = b"""\
Return-Path: <a@b.example>
Received: from x.example (x.example [203.0.113.7]) by y.example; Mon, 2 Nov 2026 10:00:00 +0000
From: Bob <bob@x.example>
To: ann@y.example
Subject: Free prize for
 you
Date: Mon, 2 Nov 2026 09:59:00 +0000
Message-ID: <1@x.example>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

Win a prize now
--=
"""


def folded(text):
    return text.encode().replace(b"|", b"\n\t")


def report(original, kind="message/rfc822", above=b"", received=b"Received: from localhost by mx"):
    """What SpamAssassin makes with `report_safe`, as its template has it."""
    return b"".join(
        [
            above + received + b"\n\twith SpamAssassin (version 4.0.1);\n\tSat, 28 Nov 2026 21:47:20 +0000\n",
            b"From: Bob <bob@x.example>\nSubject: *****SPAM***** Free prize for\n you\nMessage-Id: <1@x.example>\n",
            b"X-Spam-Flag: YES\nX-Spam-Status: Yes, score=9.0 required=5.0\n\ttests=MSGID_SHORT version=4.0.1\n",
            b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="----------=_6B0B4BE8.704C6AD8"\n\n',
            b"This is a multi-part message in MIME format.\n\n------------=_6B0B4BE8.704C6AD8\n",
            b"Content-Type: text/plain; charset=UTF-8\n\nSpam detection software says so.\n",
            f"\n------------=_6B0B4BE8.704C6AD8\nContent-Type: {kind}; x-spam-type=original\n".encode(),
            b"Content-Description: original message before SpamAssassin\nContent-Disposition: inline\n\n",
            original + b"\n------------=_6B0B4BE8.704C6AD8--\n\n",
        ]
    )


LOCAL = b"Delivered-To: ann\nReceived: from mx (mx [10.0.0.5])\n\tby store with LMTP; Mon, 2 Nov 2026 10:00:05 +0000\n"


@pytest.mark.parametrize("crlf", [False, True])
@pytest.mark.parametrize("above", [b"", LOCAL])
@pytest.mark.parametrize("kind", ["message/rfc822", "text/plain"])
def test_a_mail_in_a_report_is_the_mail_itself(kind, above, crlf):
    original, wrapped = ORIGINAL, report(ORIGINAL, kind, above)
    if crlf:
        original, wrapped = (mail.replace(b"\n", b"\r\n") for mail in (original, wrapped))
    assert strip_markup(wrapped) == original
    assert mail_parts(wrapped) == mail_parts(original) and mail_id(wrapped) == mail_id(original)
    in_mbox = b"From a@b.example Mon Nov  2 10:00:00 2026\n"
    assert mail_parts(in_mbox + wrapped) == mail_parts(original)


def test_a_report_that_the_sender_wrote_is_no_report():
    """Else spam would hide around a harmless original."""
    harmless = ORIGINAL.replace(b"prize", b"agenda")
    outside = b"Received: from spam.example ([8.8.8.8]) by y.example; Mon, 2 Nov 2026 10:00:05 +0000\n"
    for forged in (report(harmless, above=outside), report(harmless, received=b"Received: from localhost.x by mx")):
        assert "Spam detection" in mail_parts(forged).text
    hidden = ORIGINAL.replace(b"MIME-V", b"X-Spam-Prev-Subject: for\nMIME-V")
    assert mail_parts(hidden).subject == "Free prize for you"


@pytest.mark.parametrize(
    "tag",
    [
        "[SPAM] ",
        "*****SPAM***** ",
        "{Spam?} ",
        "***SPAM 7.5*** ",
        "SPAM: ",
        "(Spam?) ",
        "##SPAM## ",
        "-=[SPAM]=- ",
        "[JUNK] [SPAM 8.3/5.0] ",
        "[Suspected SPAM]",
    ],
)
def test_a_tag_before_a_subject_is_no_part_of_it(tag):
    tagged = ORIGINAL.replace(b"Subject: ", b"Subject: " + tag.encode())
    assert mail_parts(tagged) == mail_parts(ORIGINAL) and mail_id(tagged) == mail_id(ORIGINAL)
    kept = b"X-Spam-Flag: YES\nX-Spam-Prev-Subject: Free prize for\nMIME-V"
    assert strip_markup(tagged.replace(b"MIME-V", kept)) == ORIGINAL


@pytest.mark.parametrize(
    "subject", ["Spam sandwich", "[spam-list] hi", "!!! free", "Junk: cars", "[ANN] x", "Virus (a): b"]
)
def test_a_subject_keeps_what_is_no_tag(subject):
    assert strip_tag(subject) == subject


FIELDS = (
    """
X-Spam-Flag: YES|X-Rspamd-Action: reject|X-Bogosity: Spam|X-DSPAM-Result: Spam|X-CRM114-Status: SPAM
X-Text-Classification: spam|X-Barracuda-Connect: a|X-Forefront-Antispam-Report: SFV:SPM|X-Microsoft-Antispam: BCL:0
X-MS-Exchange-Organization-SCL: 9|X-acme-MailScanner-SpamScore: ss|X-IronPort-AV: E=1|X-GMX-Antispam: 5
X-Yandex-Spam: 4|X-Gmail-Labels: Spam|X-Mozilla-Keys: Junk|X-Proofpoint-GUID: 1|X-Mimecast-Bulk-Signature: yes
X-Sophos-Email-ID: 1|X-TM-AS-Result: No|X-KLMS-Rule-ID: 1|X-CMAE-Score: 100|X-Virus-Scanned: yes|X-Acme-Junk: 1
X-Foo-Score: 9|X-Quarantine-ID: 7|X-Greylist: delayed|X-OVH-SPAMSTATE: OK|X-Sieve: CMU 3.0|X-eXpurgate-ID: 1
X-WatchGuard-Spam-ID: 1|X-RBL-Warning: x|X-Evolution-Source: a|X-Account-Key: account1|X-UIDL: 1|X-Label: spam
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("field", FIELDS)
def test_what_others_note_in_headers_is_not_learned(field):
    """By its name, wherever it stands."""
    at_end = ORIGINAL.replace(b"MIME-V", field.encode() + b"\nMIME-V")
    for marked in (at_end, field.encode() + b"\n" + ORIGINAL, at_end.replace(b"Received", b"X-Hop")):
        assert mail_parts(marked) == mail_parts(marked.replace(field.encode() + b"\n", b""))


def test_what_stands_above_the_newest_server_is_not_learned():
    """Whatever its name; below it, it is the sender's."""
    assert mail_parts(b"X-Nobody-Knows: 1\n" + ORIGINAL) == mail_parts(ORIGINAL)
    below = mail_parts(ORIGINAL.replace(b"MIME-V", b"X-Nobody-Knows: 1\nMIME-V"))
    assert "x-nobody-knows: 1" in below.headers and "field:x-nobody-knows" in below.tokens
    sent = ORIGINAL[ORIGINAL.index(b"From") :]  # by no server yet
    assert "x-nobody-knows: 1" in mail_parts(b"X-Nobody-Knows: 1\n" + sent).headers


def test_fields_that_are_ignored_are_not_learned(tmp_path):
    marked = ORIGINAL.replace(b"MIME-V", b"X-Company-Gate: spam\nX-Other: 1\nMIME-V")
    features = MailFeatures(ignored_headers=["x-company-*", "X-OTHER:"])
    assert (
        features.transform_one(marked) == MailFeatures().transform_one(ORIGINAL) != MailFeatures().transform_one(marked)
    )
    model = TextClassifier(features)
    model.learn_one(marked, "spam")
    model.save(tmp_path / "model")
    assert TextClassifier.load(tmp_path / "model").features.ignored_headers == ["x-company-*", "X-OTHER:"]
    for wrong in ("X-Company", [1], [" "]):
        with pytest.raises(TypeError, match="ignored_headers must be a list of names"):
            MailFeatures(ignored_headers=wrong)


@pytest.mark.skipif(shutil.which("spamassassin") is None, reason="SpamAssassin is not installed")
@pytest.mark.heavy
@pytest.mark.parametrize("safe", [0, 1, 2])
def test_the_markup_of_the_real_spamassassin_is_taken_away_as_it_does_itself(safe, tmp_path):
    (tmp_path / "p").write_text(f"required_score -99\nreport_safe {safe}\nrewrite_header Subject ***SPAM***\n", "ascii")
    unfolded = ORIGINAL.replace(b"for\n you", b"for you")  # of a folded subject it keeps one line

    def spamassassin(*options, given):
        command = ["spamassassin", "--local", "--prefspath", str(tmp_path / "p"), *options]
        return subprocess.run(
            command, input=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        ).stdout

    marked = spamassassin(given=unfolded)
    assert marked != unfolded and strip_markup(marked) == spamassassin("--remove-markup", given=marked) == unfolded
