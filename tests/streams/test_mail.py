"""Mails, against what Python's own `mailbox` writes."""

import gzip
import io
import mailbox
import os
import tracemalloc

import pytest
from compressions import COMPRESSIONS
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, byte_by_byte, examples, pairs

from stream_pegasos.streams import StreamError, format_of, mail, mail_folders, open_source, read, read_mail
from stream_pegasos.streams.example import Truncated

FROM = b"From a@x Thu Jan  2 10:00:00 2020"
HAM = (
    b"Received: by mx; Thu, 02 Jan 2020 10:00:00 +0000\nMessage-ID:\n <h@x>\nSubject: hi\n\nFrom me\n\nFrom you, too\n"
)
SPAM = b"Subject: caf\xe9 \xff\r\nX-Spam-Flag: YES\r\nMessage-ID: <s@x>\r\n\r\nwin\r\n.\r\n>From here\r\n"
BARE = b"no header at all"


def write(path, data, modified=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if modified is not None:
        os.utime(path, (modified, modified))
    return path


def box_of(kind, path, *mails):
    """What Python makes of mails; each may have the line of an mbox before it."""
    box = kind(path)
    for data in mails:
        box.add(data)
    box.close()
    return path


def found(source):
    """What there is at a path, or at labelled ones; nothing of it may be bad."""
    return list(read_mail(source) if isinstance(source, dict) else read(source, unlabelled=True))


def mails(source):
    return [example.x.encode("latin-1") for example in found(source)]


def in_bytes(data):
    return [x.encode("latin-1") for x, _ in pairs(data, "mail", unlabelled=True)]


def dated(name, date, header=b"Date"):
    return b"%b: %b\nSubject: %b\n\n" % (header, date.encode(), name.encode())


def names(source):
    return [data.partition(b"Subject: ")[2].partition(b"\n")[0].decode() for data in mails(source)]


# one mail, and an mbox


@pytest.mark.parametrize("data, id", [(HAM, "h@x"), (SPAM, "s@x"), (b"A: b", None), (b"\n\nFor: you", None)])
def test_a_mail_is_its_bytes(tmp_path, data, id):
    (example,) = found(write(tmp_path / "a.EML", data))
    assert (example.x.encode("latin-1"), example.y, example.line, example.id) == (data, None, 1, id)
    assert in_bytes(data) == [data] and in_bytes(b"") == []
    reason = "this is not a mail: it begins with no header field"
    assert bad_lines(BARE, "mail", unlabelled=True) == bad_lines(b"\n\nFor you", "mail") == [(1, reason)]


PIECES = [FROM[5:], b"From me", b">From b", b"From a@x", b"A: b", b"", b"\xff\r x"]
some_mails = st.lists(
    st.lists(st.sampled_from(PIECES)).map(lambda lines: b"Subject: a\n" + b"".join(line + b"\n" for line in lines)),
    min_size=1,
    max_size=4,
)


@given(some_mails)
def test_an_mbox_that_python_writes(tmp_path_factory, mails):
    """Python writes mboxo, in which `>From ` stands for `From `, too."""
    path = box_of(mailbox.mbox, tmp_path_factory.mktemp("mail") / "a.mbox", *mails)
    assert in_bytes(path.read_bytes()) == [data.replace(b"\n>From ", b"\nFrom ") for data in mails]


@given(some_mails, st.sampled_from([b"\n", b"\r\n"]))
def test_mboxrd_comes_back_as_it_was(mails, end):
    mails = [data.replace(b"\n", end) for data in mails]
    quoted = [
        b"".join(b">" * line.lstrip(b">").startswith(b"From ") + line for line in data.splitlines(keepends=True))
        for data in (data.replace(b"\r ", b"r ") for data in mails)
    ]
    whole = b"".join(FROM + end + data + end for data in quoted)
    assert in_bytes(whole) == [data.replace(b"\r ", b"r ") for data in mails]


@pytest.mark.parametrize(
    "line",
    [
        FROM,
        b"From - Sat Jul 04 06:07:08 2009",  # Thunderbird
        b"From a at x.org  Fri Aug  7 06:07:08 2009",  # Mailman
        b"From 1234@xxx Wed Jan 01 00:00:00 +0000 2020",  # Google Takeout
        b"From MAILER-DAEMON Sat Jan 3 01:05 EST 1996 remote from x",
        b"From a@x Sat, 3 Jan 1996 01:05:34 +0100",
    ],
)
def test_what_stands_between_two_mails(line):
    for end in (b"\n", b"\r\n"):
        data = end.join([FROM, b"A: b", b"", b"x", b"", line, b"A: c", b"", b"y", b""])
        assert in_bytes(data) == [end.join([b"A: b", b"", b"x", b""]), end.join([b"A: c", b"", b"y", b""])]


@pytest.mark.parametrize(
    "before, line", [(b"x", FROM), (b"", b"From me to you"), (b"", b"From Sat to Sun at 10:00 2020")]
)
def test_what_does_not(before, line):
    data = b"\n".join([b"A: b", before, line, b"A: c", b""])
    assert in_bytes(FROM + b"\n" + data) == [data]


def test_a_pipe_and_what_is_compressed(tmp_path):
    path = box_of(mailbox.mbox, tmp_path / "a.mbox", HAM, SPAM)
    data = path.read_bytes()
    expected = mails(path)
    with byte_by_byte(data) as pipe:
        assert [example.id for example in read(pipe, format="mail", unlabelled=True)] == ["h@x", "s@x"]
    out, into = os.pipe()
    with open(out, "rb") as pipe, open(into, "wb", buffering=0) as writer:
        writer.write(data + FROM + b"\n")
        stream = read(pipe, format="mail", unlabelled=True)
        assert [next(stream).id, next(stream).id] == ["h@x", "s@x"]  # though there may be more
    for name, compress in COMPRESSIONS.items():
        packed = write(tmp_path / name / "a.mbox.gz", compress(data))
        assert mails(packed) == mails(packed.parent) == mails({"x": packed}) == expected


def test_an_mbox_takes_the_memory_of_a_mail():
    mail = FROM + b"\nA: b\n\n" + b"x" * 99_999 + b"\n\n"
    stream = read(io.BytesIO(gzip.compress(mail * 300, 1)), format="mail", unlabelled=True)
    tracemalloc.start()
    assert sum(1 for _ in stream) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


# labels


def test_a_header_with_the_label_is_taken_out():
    for name in ("X-Spam-Flag", "x-spam-flag"):
        ((x, y),) = pairs(SPAM, "mail", label_field=name)
        assert (x.encode("latin-1"), y) == (SPAM.replace(b"X-Spam-Flag: YES\r\n", b""), "YES")
    data = b"A: X: 1\nX :\n  2,\n\t3\nx: 4\n\nX: 5\n"
    assert pairs(data, "mail", label_field="X")[0] == ("A: X: 1\n\nX: 5\n", "2,\t3")
    assert pairs(b"X: -1", "mail", label_field="X")[0] == ("", -1)
    for before in (b"\xef\xbb\xbf", b"\r\n"):
        ((x, y),) = pairs(before + b"X-Spam-Flag: YES\nSubject: a\n\nb\n", "mail", label_field="X-Spam-Flag")
        assert (x.encode("latin-1"), y) == (before + b"Subject: a\n\nb\n", "YES")
    assert pairs(b"X: 1\rSubject: a\r\rb\r", "mail", label_field="X")[0] == ("Subject: a\n\nb\n", 1)
    (bad,) = bad_lines(HAM, "mail", label_field="X")
    assert bad == (1, "no label in a header 'X'")


def test_labels_by_folder_and_the_number_of_the_mail(tmp_path):
    box_of(mailbox.mbox, tmp_path / "spam", b"From a@x Wed Jan  1 10:00:00 2020\n" + SPAM, FROM + b"\n" + SPAM)
    write(tmp_path / "more" / "1", dated("c", "Fri, 3 Jan 2020 00:00:00 +0000"))
    write(tmp_path / "ham" / "cur" / "1577923200.a:2,S", HAM)  # 2 January, 00:00
    labelled = read_mail({"spam": [tmp_path / "spam", str(tmp_path / "more")], "ham": tmp_path / "ham"})
    assert [(example.y, example.line, example.id) for example in labelled] == [
        ("spam", 1, "s@x"),
        ("ham", 2, "h@x"),
        ("spam", 3, "s@x"),
        ("spam", 4, None),
    ]


# folders, and the order of arrival


@pytest.mark.parametrize("kind, some", [(mailbox.Maildir, [HAM, SPAM]), (mailbox.MH, [HAM, SPAM])])
def test_folders_that_python_writes(tmp_path, kind, some):
    path = box_of(kind, tmp_path / "box", *some)
    assert format_of(str(path)) == "mail"
    assert sorted(mails(path)) == sorted(some)


def test_which_files_of_a_folder_are_mails(tmp_path):
    for name in ("a.eml", "deep/b", "inbox/new/5.b", "inbox/cur/6.c"):
        write(tmp_path / name, HAM)
    box_of(mailbox.mbox, tmp_path / "deep" / "box", HAM, SPAM)
    for name in (".hidden", ".more/a", "inbox/tmp/7.d", "inbox/.Sent/cur/8.e", "inbox/other/x", "inbox/cur/.x"):
        write(tmp_path / name, BARE)
    os.mkfifo(tmp_path / "pipe")
    assert sorted(mails(tmp_path)) == sorted([HAM] * 5 + [SPAM.replace(b">From", b"From")])


def test_order_of_arrival(tmp_path):
    new_year = 1577836800  # seconds
    received = b"by x (a; b)\n for y;\n Wed, 01 Jan 2020 %b\nReceived: by z; Thu, 1 Jan 1970 00:00:00 +0000"
    for name, data in {
        "d": dated("d", "", b"Received").replace(b": ", b": " + received % b"05:00:00 +0200 (CEST)", 1),
        "e": dated("e", "Wed, 01 Jan 2020 04:00:00 +0000"),
        "b": dated("b", "Wed, 1 Jan 2020 00:30:00"),
        "a": dated("a", "Wed, 01 Jan 2020 05:59:59 +0600"),
        "c": dated("c", "Wed, 99 Jan 2020 1.2.3.4 +9999999999999999"),
        "f": dated("f", "\xff\0 99999999999999999999999999999999"),
    }.items():
        write(tmp_path / name, data, new_year + {"c": 3600, "f": 5 * 3600}.get(name, 0))
    assert names(tmp_path) == [*"abcdef"]


def test_an_mbox_alone_keeps_its_order(tmp_path):
    late, early = (b"From a@x Thu Jan  %d 10:00:00 2020\nSubject: %d\n\n" % (day, day) for day in (3, 1))
    (tmp_path / "box").mkdir()
    path = box_of(mailbox.mbox, tmp_path / "box" / "a", late, early)
    assert names(path.parent) == names({"x": path}) == ["3", "1"]
    write(path.parent / "b", dated("2", "Thu, 2 Jan 2020 10:00:00 +0000"))
    assert names(path.parent) == ["1", "2", "3"]


def test_equal_times_come_by_name(tmp_path):
    for folder, name in (("spam", "2"), ("ham", "1"), ("ham", "3")):
        write(tmp_path / folder / name, dated(name, "Thu, 2 Jan 2020 10:00:00 +0000"))
    assert names({"spam": tmp_path / "spam", "ham": tmp_path / "ham"}) == ["1", "2", "3"]


@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d+ [A-Z][a-z]{2} -?\d+ \d+:\d+(:\d+)? [+-]\d+", fullmatch=True))
def test_no_date_raises(tmp_path_factory, date):
    folder = tmp_path_factory.mktemp("mail")
    write(folder / "a", b"Date: " + date.encode())
    write(folder / "b", FROM[:-4] + date.encode() + b"\nDate: " + date.encode())
    assert len(found(folder)) >= 2


# what cannot be read


def bad_and_good(source, **options):
    bad = []
    reader = read_mail if isinstance(source, dict) else read
    good = list(reader(source, on_bad_line=lambda *at: bad.append(at), **options))
    return bad, good


def test_a_file_that_cannot_be_read_costs_nothing_else(tmp_path, monkeypatch):
    for name, data in {"1": HAM, "2.gz": gzip.compress(HAM)[:-9], "3": b"", "5": b"A: " + b"x" * 3000}.items():
        write(tmp_path / "mail" / name, data, 0)
    os.symlink("nowhere", tmp_path / "mail" / "6\n")
    monkeypatch.setattr(mail_folders, "LONGEST_LINE", 2000)
    bad, good = bad_and_good({"ham": tmp_path / "mail"}, unreadable=True)
    reasons = {reason.removeprefix(f"{tmp_path}/mail/") for _, reason in bad}
    assert reasons == {
        "2.gz: the gzip data is truncated",
        "3: the file is empty",
        "5: the mail is longer than 256 MB",
        "6\\n: No such file or directory",
    }
    assert [(each.line, each.fault) for each in good if each.fault] == bad
    assert [each.line for each in good] == [*range(1, len(good) + 1)]
    assert HAM in [each.x.encode("latin-1") for each in good]
    with pytest.raises(StreamError, match=f"mail {bad[0][0]}: {bad[0][1]}"):
        list(read_mail({"ham": tmp_path / "mail"}))


def test_a_truncated_mbox_is_read_so_far_and_raises_at_the_end(tmp_path):
    write(tmp_path / "ham", HAM)
    box = box_of(mailbox.mbox, tmp_path / "x", *[SPAM] * 3).read_bytes() + FROM + b"\n" + os.urandom(1 << 18)
    write(tmp_path / "spam.mbox.gz", gzip.compress(box)[:-9])
    mails, bad = [], []
    with pytest.raises(Truncated, match=r"spam.mbox.gz: the gzip data is truncated"):
        for each in read_mail(
            {y: tmp_path / y for y in ("ham", "spam.mbox.gz")}, on_bad_line=lambda *at: bad.append(at)
        ):
            mails.append(each.y)
    assert sorted(mails) == ["ham", *["spam.mbox.gz"] * 3] and not bad
    write(tmp_path / "spam.mbox.gz", gzip.compress(box)[:20])
    with pytest.raises(Truncated):
        assert [each.y for each in read_mail({y: tmp_path / y for y in ("ham", "spam.mbox.gz")})] == ["ham"]


def test_a_file_that_goes_while_others_are_read(tmp_path):
    for name in "123":
        write(tmp_path / name, HAM)
    stream = read_mail({"ham": tmp_path}, unreadable=True, on_bad_line=lambda *_: None)
    next(stream)
    (tmp_path / "2").unlink()
    assert [each.fault for each in stream] == [f"{tmp_path}/2: No such file or directory", None]


def test_an_mbox_that_is_written_anew_meanwhile(tmp_path):
    path = box_of(mailbox.mbox, tmp_path / "a", HAM, SPAM, SPAM)
    stream = read_mail({"ham": path}, unreadable=True, on_bad_line=lambda *_: None)
    next(stream)
    path.write_bytes(path.read_bytes()[9:-1])
    assert [each.fault for each in stream] == [f"{path}: it was rewritten while it was read"] * 2


def test_a_mail_that_is_too_long(monkeypatch):
    monkeypatch.setattr(mail, "LONGEST_LINE", 1000)
    box = [FROM + b"\n" + b"x" * size + b"\n\n" for size in (10, 2000, 20)]
    found, bad = examples(b"".join(box), "mail", unlabelled=True)
    assert [(each.line, len(each.x)) for each in found] == [(1, 11), (3, 21)]
    assert bad == [(2, "the mail is longer than 256 MB")]


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(read_mail({"spam": tmp_path / "none"}))


def test_mail_is_not_followed(tmp_path):
    for path in (tmp_path, tmp_path / "a.mbox"):
        with pytest.raises(
            StreamError, match=r"which predict and train read to its end|is a folder and cannot be followed"
        ):
            open_source(path)
