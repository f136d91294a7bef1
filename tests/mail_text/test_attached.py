"""Mails that are forwarded as attachments, to be learned."""

import base64
import mailbox
from email.message import EmailMessage

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.mail_text.attached import attached_mails
from stream_pegasos.streams import read_mail


def mail(sender, subject, text, *attached):
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = sender, "team@y.example", subject
    made.set_content(text)
    for other in attached:
        made.add_attachment(other)
    return made


SPAM = [mail(f"win{i}@shop.example", f"prize {i}", f"claim your prize now, cheap pills {i}") for i in range(20)]
REPORTS = [mail("Ann <ann@y.example>", "please learn this", "it came today, see below. Ann", each) for each in SPAM]
HAM = [mail(f"bob{i}@y.example", f"agenda {i}", f"the agenda for the meeting at noon {i}") for i in range(20)]


def test_attached_mails_are_as_they_were_sent():
    """In their order, also within parts; those in an attached one are its own."""
    first, second = SPAM[:2]
    data = mail("ann@y.example", "two", "see", first, REPORTS[1]).as_bytes()
    found = attached_mails(data)
    assert [each.rstrip() for each in found] == [first.as_bytes().rstrip(), REPORTS[1].as_bytes().rstrip()]
    assert attached_mails(found[1])[0].rstrip() == second.as_bytes().rstrip()
    assert attached_mails(data.replace(b"\n", b"\r\n")) == found
    assert attached_mails(first.as_bytes()) == attached_mails(b"") == []


def test_attached_mails_may_be_encoded():
    original = SPAM[0].as_bytes()
    head = b"Subject: see\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
    assert attached_mails(head + base64.encodebytes(original)) == [original]


def test_a_forwarder_is_not_learned(tmp_path):
    """Twenty reports do not tell against the good mails of whoever sent them."""
    for name, mails in (("spam", REPORTS), ("ham", HAM)):
        box = mailbox.mbox(tmp_path / name)
        for each in mails:
            box.add(each.as_bytes())
        box.close()
    folders = {name: tmp_path / name for name in ("spam", "ham")}
    good, new = mail("Ann <ann@y.example>", "please learn this", "it came today, see below. Ann"), SPAM[3]
    said = {}
    for attached in (False, True):
        model = TextClassifier(MailFeatures())
        for x, y, *_ in read_mail(folders, attached=attached):
            model.learn_one(x, y)
        said[attached] = [model.predict_proba_one(each.as_bytes())["spam"] for each in (good, new)]
        assert model.n_learned == 40
    assert said[True][0] < said[False][0] and said[True][1] > 0.8
