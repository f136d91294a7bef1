"""What the command says to somebody who has nearly found the right way."""

import pytest
from commands import write_jsonl

from stream_pegasos.mail_text.mime import looks_like_mail

MAIL = "From: ann@x.example\nSubject: note {}\n\nhello {}"


@pytest.mark.parametrize(
    ("said", "meant"), [("evalute", "evaluate"), ("trian", "train"), ("mailfilter", "mail-filter")]
)
def test_a_misspelt_command_names_the_nearest(fails, said, meant):
    assert f"Did you mean '{meant}'?" in fails(f"{said} x", code=2)


def test_a_command_like_no_other_names_none(fails):
    assert "Did you mean" not in fails("xyzzy", code=2)


@pytest.mark.parametrize("options", ["", "--mail"])
def test_texts_that_are_whole_mails_are_told_once(main, options):
    write_jsonl("mails.jsonl", [(MAIL.format(i, i), "ham") for i in range(30)])
    assert main(f"evaluate mails.jsonl {options}")[2].count("look like whole mails") == (not options)


@pytest.mark.parametrize(
    ("text", "is_mail"),
    [
        (MAIL, True),
        ("\ufeffFrom: a\r\nTo: b\r\n\r\nx", True),
        ("From ann Mon Jan 1\nReceived: by x\n\tfor y\nSubject: z", True),
        ("Subject: alone\n\nx", False),
        ("From: a\nTo: b\nsee you there", False),
        ("Note: this is\nTo: do", False),
        ("", False),
    ],
)
def test_what_looks_like_a_mail(text, is_mail):
    assert looks_like_mail(text) == is_mail
