"""What the command says to somebody who has nearly found the right way."""

import zipfile
from pathlib import Path

import click
import pytest
from commands import write_jsonl

from stream_pegasos import cli, load
from stream_pegasos.cli.suggestions import COMMANDS_BY_OTHER_NAMES, OPTIONS_BY_OTHER_NAMES, is_in, offered
from stream_pegasos.mail_text.mime import looks_like_mail

MAIL = "From: ann@x.example\nSubject: note {}\n\nhello {}"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        *(("evalute", "evaluate"), ("trian", "train"), ("mailfilter", "mail-filter"), ("forget_class", "forget-class")),
        *(("fit", "train"), ("learn", "train"), ("eval", "evaluate"), ("Classify", "predict"), ("optimise", "tune")),
        *(("follow", "run"), ("server", "serve"), ("annotate", "label"), ("why", "explain"), ("help", "--help")),
    ],
)
def test_another_name_of_a_command_names_the_right_one(fails, said, meant):
    assert f"Did you mean '{meant}'?" in fails(f"{said} x", code=2)


def test_a_command_like_no_other_names_none(fails):
    assert "Did you mean" not in fails("xyzzy", code=2)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("serve --load m", "Did you mean MODEL, without an option before it?"),
        ("evaluate --load m", "MODEL belongs to train, test, predict, run, serve,"),
        ("predict --save m", "Did you mean --output FILE? --save belongs to evaluate, train, run, label, tune"),
        ("train --output m", "Did you mean --save MODEL? --output belongs to evaluate, test, predict, run, label"),
        ("run --delay 9", "--delay belongs to evaluate."),
        ("test --label_field y", "Did you mean --label-field?"),
        ("tune --encoding latin-1", "Did you mean --read-option encoding=…?"),
        ("serve --encoding latin-1", "--read-option encoding=… belongs to evaluate, train,"),
        ("predict --sep=;", "Did you mean --label-separator SEP or --read-option delimiter=…?"),
        ("predict -o x", "Did you mean --output FILE?"),
        ("imap --server h", "Did you mean --host NAME[:PORT]?"),
        ("train --epochs 3", "Each message is learned once, in one pass."),
        ("train --treshold 3", "Did you mean --threshold?"),
        ("predict --modle m", "Did you mean MODEL, without an option before it?"),
        ("evaluate --delimeter x", "Did you mean --read-option delimiter=…?"),
        ("train --qqq", "--help-all lists the options."),
    ],
)
def test_an_option_of_another_command_or_tool_names_the_right_one(fails, line, hint):
    assert hint in fails(line, code=2)


def test_all_that_is_suggested_is_there():
    group = click.Context(cli._app)
    names = {each for name in cli.COMMANDS for each in offered(cli._app.get_command(group, name))}
    assert [each for each in OPTIONS_BY_OTHER_NAMES if not is_in(names, each)] == []
    assert {*COMMANDS_BY_OTHER_NAMES} <= {*cli.COMMANDS, "--help", "--version"}


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("train mail.jsonl --load m --save n", "--load m is now written stream-pegasos train m [FILE]"),
        ("train --load m --save n", "stream-pegasos train m [FILE]"),
        ("run mail.jsonl --load m --no-follow --output none --save n", "stream-pegasos run m [SOURCE]"),
        ("test m mail.jsonl --predictions said.csv", "--predictions said.csv is now written --output said.csv"),
        ("mail-filter --model m --exit-code", "--model m is now written stream-pegasos mail-filter m"),
        ("tune mail.jsonl --limit 50 --metric macro-f1", "--metric macro-f1 is now written --metric macro_f1"),
    ],
)
def test_what_was_written_otherwise_goes_on_with_a_hint(main, ok, line, now):
    ok("train mail.jsonl --limit 100 --save m")
    code, _, err = main(line)
    assert code == (3 if "mail-filter" in line else 0) and now in err
    words = line.split()
    if "--load" in words:  # both leave the same
        assert load("n").n_learned == (700 if "mail.jsonl" in words else 100)
        where = words.index("--load")
        again = [words[0], words[where + 1], *words[1:where], *words[where + 2 :]]
        assert main(" ".join(again))[2] == err.partition("\n")[2]


def test_one_argument_is_a_model_if_it_is_one(ok, fails):
    ok("train mail.jsonl --limit 100 --save m.safetensors")
    ok("train m.safetensors --save n")
    assert load("n").n_learned == 100
    assert ok("run m.safetensors --limit 1", input=b'{"text": "win a prize"}\n').startswith("spam\t")
    assert "nowhere.safetensors: No such file" in fails("run nowhere.safetensors --no-follow")
    assert "given twice, the second time as --load" in fails("train m.safetensors mail.jsonl --load n --save o", code=2)
    assert "Missing argument 'FILE'" in fails("label m.safetensors", code=2)


@pytest.mark.parametrize(
    ("name", "data", "hint"),
    [
        ("e.jsonl", "", "m is not written; it is empty"),
        (
            "e.csv",
            "text,label\n",
            "it is empty, or a header alone; without a header, see --read-option columns=…",
        ),
        ("s.csv", "text;label\na;b\n", "it looks separated by ';': --read-option 'delimiter=;'"),
    ],
)
def test_what_holds_no_message_says_why(fails, here, name, data, hint):
    Path(name).write_text(data, encoding="utf-8")
    assert fails(f"train {name} --save m").endswith(f"{hint}\n")


@pytest.mark.parametrize("command", ["predict m {}", "run m {} --no-follow"])
@pytest.mark.parametrize(("name", "data"), [("e.jsonl", ""), ("e.csv", ""), ("h.csv", "text,label\n")])
def test_a_file_without_a_message_has_no_answer_and_is_told(main, ok, command, name, data):
    ok("train mail.jsonl --limit 50 --save m")
    Path(name).write_text(data, encoding="utf-8")
    code, out, err = main(command.format(name))
    assert (code, out) == (0, "") and f"no message of {name} was read; it is empty" in err
    assert main(f"explain m {name}")[:2] == (1, "")


@pytest.mark.parametrize(
    "command", ["train {} --save n", "evaluate {}", "predict m {}", "run m {} --no-follow", "tune {}"]
)
def test_what_cannot_be_read_at_all_is_no_success(main, ok, here, command):
    ok("train mail.jsonl --limit 50 --save m")
    Path("semi.csv").write_text("The Message;Class\na;b\n", encoding="utf-8")
    Path("wrong.jsonl").write_text('{"message": "a", "class": "b"}\n' * 3, encoding="utf-8")
    (here / "papers").mkdir()
    Path("papers/a.pdf").write_bytes(b"%PDF-1.4\n\x00")
    for name, hint in {
        "semi.csv": "its fields: The Message;Class; it looks separated by ';': --read-option 'delimiter=;'",
        "wrong.jsonl": "no field 'text'; its fields: message, class",
        "papers": "papers is a folder" if "run" in command else "a folder is read as mail, and there is none in it",
    }.items():
        code, _, err = main(command.format(name))
        assert code == 1 and hint in err and err.splitlines()[-1].startswith("stream-pegasos: error: ")


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
