"""Mails in files and folders, labelled by a header or by where they are."""

import gzip
import json
import mailbox

import pytest
from commands import figures, stream

from stream_pegasos import MailFeatures, TextClassifier, TextFeatures, load

N = 200
EIGHT = 1577952000  # 8 o'clock on 2 January 2020
INTERNAL = (
    b"From MAILER-DAEMON Thu Jan  2 10:00:00 2020\nX-IMAP: 1577959200 0\n"
    b"Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\n\nThis text is part of your mail folder.\n"
)


@pytest.fixture
def mails(here):
    """The same mails with the label in a header of one mbox, and in a Maildir of spam and two mboxes of ham."""
    boxes = {"all.mbox": [], "ham.mbox": [], "more.mbox": []}
    (here / "spam box" / "cur").mkdir(parents=True)
    for i, (text, label) in enumerate(stream[:N]):
        minute = b"From a@x Thu Jan  2 %02d:%02d:00 2020\n" % (8 + i // 60, i % 60)
        head, body = b"Message-ID: <%d@x>\n" % i, b"Subject: a\n\n" + text.encode() + b"\n"
        boxes["all.mbox"].append(minute + head + b"X-Label: " + label.encode() + b"\n" + body)
        if label == "ham":
            boxes["more.mbox" if i % 3 else "ham.mbox"].append(minute + head + body)
        else:
            (here / "spam box" / "cur" / f"{EIGHT + 60 * i}.x:2,S").write_bytes(head + body)
    for name, written in boxes.items():
        box = mailbox.mbox(here / name)
        for data in written:
            box.add(data)
        box.close()
    return "--spam 'spam box' --ham ham.mbox --ham more.mbox"


def test_folders_teach_what_a_header_does(ok, mails):
    out = ok(f"train {mails} --save m")
    assert out.startswith(f"learned {N} messages in ") and "0 bad mails" in out
    ok("train all.mbox --label-field x-label --save n")
    assert load("m").weights == load("n").weights
    assert figures(ok(f"evaluate {mails}")) == figures(ok("evaluate all.mbox --label-field X-Label"))
    assert f"  stream-pegasos train {mails} --limit 9" in ok(f"tune {mails} --limit 9")


def test_every_way_to_read_mails(ok, main, here, mails):
    ok(f"train {mails} --save m")
    expected = ok("predict m all.mbox")
    assert len(expected.splitlines()) == N
    data = (here / "all.mbox").read_bytes()
    assert ok("predict m --format mail", input=data) == ok("run m --format mail", input=data)
    assert ok("predict m --format mail", input=data) == expected
    rows = ok("predict m 'spam box' --output-format tsv").splitlines()[1:]
    assert [row.split("\t")[0] for row in rows] == [f"{i}@x" for i in range(N) if stream[i][1] == "spam"]
    assert main("explain m all.mbox")[0] == 0
    assert figures(ok(f"test m {mails}")) == figures(ok("test m all.mbox --label-field x-label"))


def test_a_model_of_mails(ok, fails, here, mails):
    """A mail in a file, on standard input and in a field of JSON."""
    ok(f"train {mails} --save m")
    assert isinstance(load("m").features, MailFeatures)
    mail = next((here / "spam box" / "cur").iterdir())
    said = ok("explain m --mail", mail)
    assert said.startswith("spam, probability ") and "text: " in said
    assert ok("explain m --mail -", input=mail.read_bytes()) == said
    (here / "raw.jsonl").write_text(
        json.dumps({"raw": mail.read_text("latin-1"), "queue": "a", "label": "spam"}), encoding="utf-8"
    )
    assert ok("predict m raw.jsonl --text-field raw") == ok("predict m", mail, "--format", "mail")
    ok("train raw.jsonl --text-field raw --mail --fields queue:category --save fields")
    assert load("fields").features.mail_field == "raw"
    assert "queue=a" in ok("explain fields raw.jsonl --top 999") and "spam" in ok("explain fields --mail", mail)
    ok(f"train {mails} --features '{{\"route\": false}}' --save other")
    assert not load("other").features.route and load("m").features.route
    ok("train mail.jsonl --save texts")
    assert "texts must be a model of mails" in fails(f"explain texts --mail '{mail}'")


def test_the_mail_that_is_explained_is_read_as_by_predict(ok, fails, here, mails):
    ok(f"train {mails} --save m")
    mail = b"Message-ID: <1@x>\nSubject: win\n\nHi\nFrom me to you: a prize\n"
    minute = b"From a@x Thu Jan  2 08:00:00 2020\n"
    mbox = minute + mail.replace(b"\nFrom", b"\n>From") + b"\n"
    explained = set()
    for data in (mail, gzip.compress(mail), mbox, gzip.compress(mbox), b"\xef\xbb\xbf" + mbox):
        (here / "one").write_bytes(data)
        label, probability = ok("predict m one --format mail").split()
        for said in (ok("explain m --mail one"), ok("explain m --mail -", input=data)):
            assert said.startswith(f"{label}, probability {float(probability):.4f}")
            explained.add(said)
    assert len(explained) == 1
    (here / "two").write_bytes(mbox + mbox)
    assert "two must have one mail, got several" in fails("explain m --mail two")
    for data in (b"", b"\n\n", gzip.compress(b"")):
        (here / "none").write_bytes(data)
        assert fails("explain m --mail none") == fails("predict m none --format mail")


def test_wrong_usage(main, fails, here, mails):
    assert main("tune")[0] == 2
    for command in ("train --save m", "tune"):
        assert main(f"{command} mail.jsonl {mails}")[0] == 2
    assert main(f"evaluate {mails} --format csv")[0] == 2
    assert "spam box is a folder and cannot be followed: name a file in it" in fails("run 'spam box'")
    assert "given for both labels" in fails("train --spam ham.mbox --ham ./ham.mbox --save m", code=2)
    TextClassifier(TextFeatures(on="a") + TextFeatures(on="b")).save(here / "fields")
    assert "fields reads the fields a, b, but a mail of" in fails(f"train fields {mails} --save m")
    first, *_, end = fails("evaluate all.mbox").splitlines()
    assert first == "stream-pegasos: mail 1 skipped: no label in a header 'label'" and "--label-field" in end


def test_nothing_is_written_among_the_mails(fails, here, mails):
    mail = next((here / "spam box" / "cur").iterdir())
    data = mail.read_bytes()
    for written in (f"train {mails} --save", f"evaluate {mails} --output"):
        for path in (mail, here / "spam box" / "new.st"):
            assert "it is in a folder that the command reads" in fails(written, path)
    assert mail.read_bytes() == data and not (here / "spam box" / "new.st").exists()


def test_a_mail_that_cannot_be_read_is_told(main, here, mails):
    (here / "spam box" / "cur" / "1.gone").symlink_to("nowhere")
    code, out, err = main(f"evaluate {mails} --output p.tsv")
    assert code == 0 and "1 bad mail\n" in out
    assert err == f"stream-pegasos: mail {N + 1} skipped: spam box/cur/1.gone: No such file or directory\n"
    assert (here / "p.tsv").read_text(encoding="utf-8").rstrip().endswith("No such file or directory")


def test_where_there_is_no_mail(main, ok, fails, here, mails):
    """One sentence for a folder and for a file; beside mails it costs nothing."""
    ok(f"train {mails} --save m")
    for name in ("folder", "other", "maildir/new", "index"):
        (here / name).mkdir(parents=True)
    (here / "index" / "dovecot-uidlist").write_text("3 V1 N1\n", encoding="utf-8")
    files = {"file": b"", "lines": b"\r\n\n", "bom": b"\xef\xbb\xbf\n", "packed": gzip.compress(b""), "uw": INTERNAL}
    for name, data in files.items():
        (here / name).write_bytes(data)
    for name in ("folder", "maildir", "index", *files):
        said = f"{name} must have at least one mail, got none"
        for command in ("train --save x", "evaluate", "test m", "predict m"):
            assert fails(f"{command} {name} --format mail") == f"stream-pegasos: error: {said}\n"
        for command in ("train --save x", "evaluate", "test m"):
            both = fails(f"{command} --spam {name} --ham other")
            assert both == f"stream-pegasos: error: {said}; other must have at least one mail, got none\n"
            code, out, err = main(f"{command} --spam {name} --ham ham.mbox")
            assert (code, err) == (0, f"stream-pegasos: mail 1 skipped: {said}\n"), out
            assert command == "test m" or "1 bad mail" in out
    assert ok("predict m --format mail", input=b"") == ""


def test_train_warns_of_a_header_that_alone_tells_the_label(main, here):
    lines = [
        json.dumps(
            {"text": f"From: a@b.example\nSubject: {i % 3}\n{'X-Gateway: 1' * (i % 2)}\n\nbody", "label": "ab"[i % 2]}
        )
        for i in range(100)
    ]
    (here / "mails.jsonl").write_text("\n".join(lines), encoding="utf-8")
    command = "train mails.jsonl --mail --save m"
    told = "the header x-gateway alone nearly tells the label: of 50 mails with it 50 are b"
    assert main(command)[2].count(told) == 1
    assert told not in main(f"""{command} --features '{{"ignored_headers": ["X-Gateway"]}}'""")[2]


@pytest.mark.parametrize("features", ["--mail", "--mail --text-field mail --fields size:number"])
def test_explain_warns_of_headers_that_alone_decide_the_label(main, here, features):
    """Where the words are the same for both labels, and where they tell them, too."""
    head = "From: a@b.example\nSubject: {}\n{}\n"
    for name, words in (("told", ["noon lunch", "noon lunch"]), ("words", ["noon lunch", "prize claim"])):
        with (here / name).open("w", encoding="utf-8") as file:
            for i in range(200):
                is_spam = i % 2
                lines = "X-Gateway: 1\nX-Gateway-Host: a\n" * is_spam + "X-Team: 1\n" * (i % 3 == 0)
                mail = head.format(i % 7, lines) + f"{words[is_spam]} {i % 5}"
                field = "mail" if "text-field" in features else "text"
                print(json.dumps({field: mail, "size": i % 9, "label": ["ham", "spam"][is_spam]}), file=file)
        assert main(f"train {name} --format jsonl {features} --save {name}.st")[0] == 0
    marked, plain = head.format(1, "X-Gateway: 1\nX-Gateway-Host: a\nX-Team: 1\n"), head.format(1, "X-Team: 1\n")
    for name, text, is_warned in (
        ("told", marked + "noon lunch 1", True),
        ("told", plain + "noon lunch 1", False),
        ("words", marked + "prize claim 1", False),  # it would be spam without them
        ("words", plain + "prize claim 1", False),
    ):
        (here / "a.eml").write_text(text, encoding="utf-8")
        code, out, err = main(f"explain {name}.st --mail a.eml --top 2")
        assert code == 0 and out
        for header in ("x-gateway", "x-gateway-host"):
            told = (
                f"the header {header} alone decides the label: without headers that not every mail has it would be ham,"
            )
            assert err.count(told) == is_warned, (name, text, out, err)
        assert is_warned == ("""--features '{"ignored_headers": ["x-gateway"]}'""" in err) and "x-team" not in err


def test_labels_that_come_one_after_the_other_are_told_once(main, here):
    for label, hour in (("spam", 8), ("ham", 9)):
        box = [f"From a@x Thu Jan  2 {hour:02}:{i:02}:00 2020\nSubject: {label} {i}\n\nx\n" for i in range(40)]
        deleted = "From a@x Thu Jan  2 08:00:00 2020\nStatus: D\nSubject: gone\n\nx\n"
        (here / label).write_text("\n".join([*box, deleted]), encoding="utf-8")
    for command in ("train --save m", "evaluate", "tune --limit 60"):
        code, _, err = main(f"{command} --spam spam --ham ham")
        assert code == 0 and err.count("the labels come one after the other: accuracy means little") == 1
        assert err.count("2 deleted mails are left out") == 1


def test_attached_mails_are_read_in_place_of_their_forwarder(ok, fails, here):
    part = "--b\nContent-Type: message/rfc822\n\nFrom: w@x.example\nSubject: win {}\n\nA prize\n"
    head = "From: ann@y.example\nSubject: look\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nsee\n"
    (here / "report.eml").write_text(f"{head}{part.format(1)}{part.format(2)}--b--\n", encoding="ascii")
    (here / "good.eml").write_text("From: bob@y.example\nSubject: noon\n\nlunch?\n", encoding="ascii")
    for option, n in (("", 2), (" --attached", 3)):
        assert f"learned {n} messages" in ok(f"train --spam report.eml --ham good.eml --save m{option}")
    assert "it is for mails of --spam and --ham" in fails("evaluate mail.jsonl --attached", code=2)
