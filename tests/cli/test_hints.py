"""What the command says to somebody who has nearly found the right way."""

import zipfile
from pathlib import Path

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


@pytest.mark.parametrize(
    ("name", "data", "hint"),
    [
        ("e.jsonl", "", "m is not written; it is empty"),
        ("e.csv", "text,label\n", "it is empty, or a header alone: where there is no header, see --read columns=…"),
        ("s.csv", "text;label\na;b\n", "it looks separated by ';': --read 'delimiter=;'"),
    ],
)
def test_what_holds_no_message_says_why(fails, here, name, data, hint):
    Path(name).write_text(data, encoding="utf-8")
    assert fails(f"train {name} --save m").endswith(f"{hint}\n")


@pytest.mark.parametrize("name", ["a.zip", "a.csv.zip", "a.xlsx", "a.ods", "a.csv"])
def test_archives_and_spreadsheets_say_what_to_do(fails, here, name):
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("a.csv", "text,label\na,b\n")
    for command in ("train {} --save m", "evaluate {} --format jsonl"):
        said = f"error: {name} is an archive or a spreadsheet, which may hold several files: unpack it, as by unzip -p"
        assert said in fails(command.format(name))


def test_a_folder_without_mail_names_the_file_in_it(fails, here):
    (here / "folder").mkdir()
    write_jsonl("folder/a.jsonl", [("win", "spam")])
    for command in ("train folder --save m", "evaluate --spam folder"):
        assert fails(command).endswith("; a folder is read as mail: name a file, as folder/a.jsonl\n")


@pytest.mark.parametrize(
    ("labels", "meant"),
    [("spam,Ham", "spam,ham"), ("SPAM,ham", "spam,ham"), ("spam,hma", "spam,ham"), ("spam,eggs", "")],
)
def test_a_label_that_is_misspelt_is_no_success(main, labels, meant):
    """All messages with the other one are skipped."""
    for command in ("train mail.jsonl --save m", "evaluate mail.jsonl", "run mail.jsonl --no-follow"):
        code, _, err = main(f"{command} --labels {labels}")
        assert code == bool(meant) and (f"see --labels {meant}\n" in err) == bool(meant)


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
