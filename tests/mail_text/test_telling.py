"""Header fields that alone nearly tell the label."""

from stream_pegasos.mail_text.telling import TellingFields

HEAD = "Received: from a by b\nFrom: a@b.example\nSubject: {}\n{}\nbody: no field\n"


def test_a_field_that_tells_is_found_and_others_are_not():
    fields = TellingFields()
    for i in range(200):
        spam = i % 2 == 0
        lines = {
            "X-Gateway: 1\n": spam,  # tells
            "X-Nearly: 1\n": spam or i == 1,  # nearly
            "X-Often: 1\n": spam or i % 20 == 1,  # a sign, no more
            "X-Rare: 1\n": i % 40 == 0,  # of few mails
            "X-Spam-Flag: YES\n": spam,  # not learned anyway
            "In-Reply-To: <1@a>\n": not spam,  # the sender's
            "X-Both: 1\n": True,
        }
        mail = HEAD.format(i, "".join(line for line, has in lines.items() if has))
        fields.meet("X-Above: 1\n" * spam + mail, "spam" if spam else "ham")
    assert fields.found() == [("x-gateway", "spam", 100, 100), ("x-nearly", "spam", 100, 101)]
