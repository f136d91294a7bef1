"""Mboxes as programs write them, and what stands in folders beside mails."""

import gzip
import io
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, byte_by_byte, pairs

from stream_pegasos.streams import StreamError, read, read_mail
from stream_pegasos.streams.mail import separating_date, split
from stream_pegasos.streams.mail_arrival import parse_time

FROM = b"From ann@x.example Thu Jan  2 10:00:00 2020\n"
BOM = b"\xef\xbb\xbf"
INTERNAL = (
    b"Date: 02 Jan 2020 10:00:00 +0000\nFrom: Mail System Internal Data <MAILER-DAEMON@x.example>\n"
    b"Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nX-IMAP: 1577959200 0000000042\nStatus: RO\n\n"
    b"This text is part of the internal format of your mail folder.\n"
)


def mail(name, body=b"x\n"):
    return b"Subject: %b\n\n%b" % (name.encode(), body)


def names_of(examples):
    return [x.partition("Subject: ")[2].partition("\n")[0].strip() for x in examples]


def names(data, **options):
    return names_of(x for x, _ in pairs(data, "mail", unlabelled=True, **options))


def from_each_side(data, folder):
    """What is read of some bytes from memory, a pipe, a file, a folder and a compressed one; all must be the same."""
    expected = [x for x, _ in pairs(data, "mail", unlabelled=True)]
    (folder / "plain").mkdir()
    (folder / "packed").mkdir()
    (folder / "plain" / "box").write_bytes(data)
    (folder / "packed" / "box.gz").write_bytes(gzip.compress(data))
    for path in ("plain", "packed", "plain/box", "packed/box.gz"):
        assert [each.x for each in read(folder / path, format="mail", unlabelled=True)] == expected
        assert [each.x for each in read_mail({"a": folder / path})] == expected
    with byte_by_byte(data) as pipe:
        assert [each.x for each in read(pipe, format="mail", unlabelled=True)] == expected
    return names_of(expected)


# where an mbox begins, and its separators


@pytest.mark.parametrize("before", [b"\n", b"\r\n\r\n", BOM, BOM + b"\n", b"\n" * 70_000, b"\n" + BOM[:0] + b"\r\n"])
def test_what_stands_before_an_mbox(tmp_path, before):
    data = before + FROM + mail("a") + b"\n" + FROM + mail("b")
    assert from_each_side(data, tmp_path) == ["a", "b"]


@pytest.mark.parametrize("before", [BOM, b"\n", b"\r\n\n"])
def test_what_stands_before_a_mail_stays(before):
    data = before + mail("a", FROM + b"no\n\n" + FROM + b"x\n")
    assert pairs(data, "mail", unlabelled=True) == [(data.decode("latin-1"), None)]


DATES = {  # and the seconds since the 5th of January 2024, 10:00, in UTC
    "2024-01-05T10:00:00Z": 0,
    "2024-01-05T10:00:00": 0,
    "2024-01-05 10:00:00": 0,
    "2024-01-05 10:00": 0,
    "2024-01-05T10:00:00.123456Z": 0,
    "2024-01-05 10:00:00,5 +0000": 0,
    "2024-01-05T12:00:00+02:00": 0,
    "2024-01-05 12:00:00 +0200": 0,
    "2024-01-05T05:30:00-0430": 0,
    "2024-01-05T11:00:00+01": 0,
    "2024-01-05 10:00:00 UTC": 0,
    "2024-01-05 05:00:00 EST": 0,
    "2024/01/05 10:00:00": 0,
    "2024-1-5, 9:00:00": -3600,
    "Fri Jan  5 10:00:00 2024": 0,
    "Fri Jan  5 10:00 2024": 0,
    "Fri Jan  5 11:00:00 2024 +0100": 3600,  # asctime's with a zone behind; the zone is not read
    "Fri Jan  5 05:00:00 EST 2024": 0,
    "Fri Jan 5 2024 10:00:00": None,
    "Jan  5 10:00:00 2024": None,
    "Friday, 05-Jan-24 10:00:00 GMT": 0,
    "Fri 05 Jan 2024 10:00:00": None,
    "Fri, 5 Jan 2024 11:00:00 +0100": 0,
    "5 Jan 2024 11:00:00 +0100": 0,
    "05-Jan-2024 10:00:00 GMT": None,
    "5 January 2024 10:00": None,
}


@pytest.mark.parametrize("date", DATES)
def test_dates_of_separators(tmp_path, date):
    for end in (b"\n", b"\r\n"):
        line = b"From ann@x.example " + date.encode() + end
        assert separating_date(line).decode().strip() == date
        data = line + b"Odd\n" + end + line + mail("b")  # though no header field follows
        assert names(data) == ["", "b"]
    if DATES[date] is not None:
        assert parse_time(date) in (1704448800 + DATES[date], 1704448800)
    assert from_each_side(line + mail("a") + b"\n" + line + mail("b"), tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        b"From ann@x.example 5. Januar 2024 10:00",
        b"From ann@x.example 1704448800",
        b"From ann@x.example 20240105T100000Z",
        b"From ann@x.example",
        b"From -",
        b"From MAILER-DAEMON ven. 5 janv. 2024 10:00:00",
        "From ann 2024年1月5日".encode(),
        b"From ann Frobday",
    ],
)
def test_a_date_that_is_not_understood(tmp_path, line):
    """The header field in the next line tells."""
    data = b"\n".join(line + b"\n" + mail(name) for name in ("a", "b", "c"))
    assert from_each_side(data, tmp_path) == ["a", "b", "c"]
    no_field = line + b"\nSubject: a\n\nx\n\n" + line + b"\nand so on\n"
    assert names(no_field) == ["a"]
    no_empty_line = line + b"\nSubject: a\n\nx\n" + line + b"\nSubject: b\n"
    assert names(no_empty_line) == ["a"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_mails_without_an_empty_line_between_them(tmp_path, end):
    data = b"".join(FROM + b"Subject: %b\n\nx\n" % name for name in (b"a", b"b", b"c"))
    assert from_each_side(data.replace(b"\n", end), tmp_path) == ["a", "b", "c"]
    within = FROM + b"Subject: a\n\nx\n" + FROM + b"and so on\n"
    assert names(within) == ["a"]


@pytest.mark.parametrize(
    "line",
    [
        b"From here to there: a way",
        b"From 2024-01-05 to 2024-02-05 we are closed",
        b"From now on, 5 Jan 2024 10:00 is the time",
        b"From ann@x.example, with love",
    ],
)
@pytest.mark.parametrize("after", [b"Note: this", b"and that", b"", b"http://x.example"])
def test_a_line_of_a_text_does_not_separate(line, after):
    assert names(FROM + mail("a", b"x\n\n" + line + b"\n" + after + b"\n")) == ["a"]


# mboxcl2


def sized(name, body, length=None, end=b"\n"):
    length = len(body) if length is None else length
    head = f"Subject: {name}\nContent-Length: {length}\n\n".encode()
    return FROM + head + body + end


INNER = b"hi\n\n" + FROM + b"Subject: inner\n\nx\n"


@pytest.mark.parametrize("end", [b"\n", b"", b"\n\n\n"])
@pytest.mark.parametrize("last", [INNER, b"z\n"])
def test_content_length_says_where_a_mail_ends(tmp_path, end, last):
    data = sized("a", INNER, end=end) + sized("b", b"y\n", end=end) + sized("c", last, end=end)
    assert from_each_side(data, tmp_path) == ["a", "b", "c"]
    bodies = [x.partition("\n\n")[2] for x, _ in pairs(data, "mail", unlabelled=True)]
    assert [body.rstrip() for body in bodies] == [body.decode().rstrip() for body in (INNER, b"y\n", last)]


@pytest.mark.parametrize("length", [0, 1, 3, len(INNER) - 8, len(INNER) + 7, 10**6, 10**11, "9" * 5000, "-1", "٣", ""])
def test_a_wrong_content_length_is_ignored(tmp_path, length):
    data = sized("a", INNER, length) + sized("b", b"y\n", length) + sized("c", b"z\n", length)
    assert from_each_side(data, tmp_path) == ["a", "inner", "b", "c"]


@given(
    st.lists(st.lists(st.sampled_from([b"", b"x", FROM[:-1], b"Subject: inner", b"From me"]), max_size=6), min_size=1)
)
def test_any_mboxcl2_comes_back(bodies):
    bodies = [b"".join(line + b"\n" for line in lines) + b"end\n" for lines in bodies]
    data = b"".join(sized(str(number), body) for number, body in enumerate(bodies))
    found = [x.partition("\n\n")[2].encode() for x, _ in pairs(data, "mail", unlabelled=True)]
    assert found == bodies


LINES = [b"", b"\r", b"x", FROM[:-1], b"From me", b"From a@b 1", b"Subject: a", b"A: b", b"Content-Length: 9", BOM]


@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=9)), st.binary(max_size=3))
def test_no_byte_is_lost_where_an_mbox_is_split(lines, rest):
    data = b"".join(line + b"\n" for line in lines) + rest
    found = list(split(io.BytesIO(data)))
    ends = [offset + size for offset, size, _ in found]
    assert [offset for offset, _, _ in found[1:]] == ends[:-1] and (not found or ends[-1] == len(data))
    assert all(mail == data[offset : offset + size] for offset, size, mail in found)
    assert not data[: found[0][0] if found else None].removeprefix(BOM).strip(BOM + b"\r\n")


def test_a_content_length_is_read_from_the_headers_alone():
    body = b"Content-Length: 30\n\n" + INNER
    assert names(FROM + mail("a", body)) == ["a", "inner"]
    assert names(FROM + b"Content-Length: x1\n" + mail("a", INNER)) == ["a", "inner"]


def test_wrong_lengths_take_little_memory_and_time():
    """Each mail says that it ends far behind."""
    data = b"".join(sized(str(number), b"x" * 9_999 + b"\n", 3_000_000) for number in range(300))
    stream = read(io.BytesIO(gzip.compress(data, 1)), format="mail", unlabelled=True)
    tracemalloc.start()
    assert sum(1 for _ in stream) == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 << 20


def test_a_mail_of_a_pipe_is_there_when_its_end_is():
    out, into = os.pipe()
    with open(out, "rb") as pipe, open(into, "wb", buffering=0) as writer:
        writer.write(sized("a", INNER) + FROM)
        stream = read(pipe, format="mail", unlabelled=True)
        assert names_of([next(stream).x]) == ["a"]


# the first message of UW-IMAP


def written(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.mark.parametrize("other", [b"X-IMAP", b"X-IMAPbase", b"x-imapbase"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_internal_data_are_no_mail(tmp_path, other, end):
    internal = INTERNAL.replace(b"X-IMAP", other).replace(b"\n", end)
    box = FROM.replace(b"ann@x.example", b"MAILER-DAEMON") + internal + end
    assert names(box + FROM + mail("a")) == names(b"\n" + box + FROM + mail("a")) == ["a"]
    assert names(box) == names(internal) == names(b">" + FROM + internal) == names(BOM + internal) == []
    assert names(box.replace(b"<MAILER-DAEMON@x.example>", b"")) == []
    files = {"1": internal, "2": mail("a"), "box": box + FROM + mail("b"), "3.gz": gzip.compress(internal)}
    folder = written(tmp_path, {**files, "in/cur/1": internal, "in/new/2": mail("c")})
    found = [(each.line, each.x) for each in read_mail({"ham": folder})]
    assert sorted(names_of(x for _, x in found)) == ["a", "b", "c"] and [line for line, _ in found] == [1, 2, 3]


@pytest.mark.parametrize(
    "old, new",
    [
        (b"Subject: ", b"Subject: Re: "),
        (b"X-IMAP: ", b"X-Other: "),
        (b"MAILER-DAEMON", b"win"),
        (b"Subject: DON'T", b"Subject: a\n\nSubject: DON'T"),
    ],
)
def test_what_only_looks_so_is_a_mail(old, new):
    assert len(names(FROM + INTERNAL.replace(old, new))) == len(names(INTERNAL.replace(old, new))) == 1


# folders

INDEXES = [
    *("dovecot.index", "dovecot.index.log", "dovecot.index.log.2", "dovecot.index.cache", "dovecot.list.index.log"),
    *("dovecot.mailbox.log", "dovecot-uidlist", "dovecot-uidvalidity", "dovecot-uidvalidity.5e0d", "dovecot-keywords"),
    *("dovecot-acl-list", "subscriptions", "maildirsize", "maildirfolder", "courierimapuiddb", "courierimapsubscribed"),
    *("courierpop3dsizelist", "cyrus.header", "cyrus.index", "Inbox.msf", "Inbox.cmeta", "popstate.dat"),
]
NO_MAILS = {
    "README": b"These are mails of 2020.\n\nSubject: a\n",
    "cmds": b"mv 1 00001.abc\nmv 2 00002.def\n",
    "picture": b"\x89PNG\r\n\x1a\n\0\0Subject: a\n",
    "page.html": b"<html><a href='x:y'>",
    "list.json": b'{"Subject": "a"}\n',
    "link": b"https://x.example/a\n",
    "zeros": bytes(100_000),
    "one line": b"word " * 20_000,
    "colon": b": a\n",
    "spaces": b"  Subject: a\n",
    "packed.gz": gzip.compress(b"no mail\n"),
    "utf-16": "Subject: a\n".encode("utf-16"),
}


def bad_and_good(folder):
    bad = []
    good = names_of(each.x for each in read_mail({"ham": folder}, on_bad_line=lambda *at: bad.append(at[1])))
    return [reason.removeprefix(f"{folder}{os.sep}") for reason in bad], good


def test_indexes_are_passed_over(tmp_path):
    for content in (b"INBOX\nSent\n", b"\x07\x02\0\0", b"", b"a: b\n"):
        folder = written(tmp_path, dict.fromkeys(INDEXES, content) | {"1": mail("a")})
        assert bad_and_good(folder) == ([], ["a"])
    written(tmp_path, {"subscriptions": FROM + mail("b"), "dovecot-users": FROM + mail("c")})
    assert sorted(bad_and_good(tmp_path)[1]) == ["a", "b", "c"]


def test_what_is_no_mail_is_told_and_passed_over(tmp_path):
    bad, good = bad_and_good(written(tmp_path, NO_MAILS | {"1": mail("a"), "deep/README": b"no\n"}))
    assert good == ["a"]
    reason = "is not a mail: it begins with no header field"
    assert sorted(bad) == sorted(f"{name}: {reason}" for name in [*NO_MAILS, f"deep{os.sep}README"])


MAILS = {
    "field": mail("a"),
    "odd field": b"X_a.b-c \t: 1\n" + mail("a"),
    "quoted": b">" + FROM + mail("a"),
    "empty lines": b"\r\n\n" + mail("a"),
    "mark": BOM + mail("a"),
    "mark and line": BOM + b"\n" + mail("a"),
    "mbox": FROM + mail("a"),
    "mbox behind lines": b"\n\n" + FROM + mail("a"),
    "packed.gz": gzip.compress(mail("a")),
    "long.gz": gzip.compress(b"\n" * 9 + b"A: " + b"x" * 99_999 + b"\n" + mail("a")),
}


def test_which_files_are_mails(tmp_path):
    assert bad_and_good(written(tmp_path, MAILS)) == ([], ["a"] * len(MAILS))


def test_files_beside_and_above_maildirs(tmp_path):
    """They are indexes, unless they are mails; in another folder they are told."""
    maildir = {"ann/INBOX/cur/1": mail("a"), "ann/Sent/new/2": b"no header field"}
    beside = {f"{folder}{name}": data for folder in ("", "ann/", "ann/INBOX/") for name, data in NO_MAILS.items()}
    folder = written(
        tmp_path, maildir | beside | {"ann/box": FROM + mail("b"), "bob/README": b"no\n", "ann/empty": b""}
    )
    bad, good = bad_and_good(folder)
    no_field = "is not a mail: it begins with no header field"
    assert sorted(bad) == [f"ann/Sent/new/2: {no_field}", f"bob/README: {no_field}"]
    assert sorted(good) == ["a", "b"]
    of_maildir = [f"Sent/new/2: {no_field}"]
    assert bad_and_good(folder / "ann")[0] == bad_and_good(f"{folder}/ann")[0] == of_maildir


@pytest.mark.parametrize("name", NO_MAILS)
def test_no_mail_is_none_wherever_it_is(tmp_path, name):
    """Named, in a Maildir, and read by itself."""
    files = {name: NO_MAILS[name], "box/cur/1:2,S": NO_MAILS[name], "box/cur/2:2,S": mail("a"), "ham": mail("b")}
    written(tmp_path, files)
    reason = "is not a mail: it begins with no header field"
    with pytest.raises(StreamError, match=f"{name}: {reason}"):
        list(read_mail({"spam": tmp_path / name}))
    bad = []
    paths = {"spam": tmp_path / name, "ham": [tmp_path / "box", tmp_path / "ham"]}
    good = list(read_mail(paths, on_bad_line=lambda *at: bad.append(at[1])))
    assert names_of(each.x for each in good) == ["a", "b"] and {each.y for each in good} == {"ham"}
    assert bad == [f"{tmp_path / name}: {reason}", f"{tmp_path / 'box' / 'cur' / '1:2,S'}: {reason}"]
    assert bad_lines(NO_MAILS[name], "mail", unlabelled=True) == [(1, f"this {reason}")]


# where there is no mail


def test_a_path_without_mail_beside_others(tmp_path):
    written(tmp_path, {"file": b"", "ham": mail("a"), "uw": FROM.replace(b"ann", b"MAILER-DAEMON") + INTERNAL})
    (tmp_path / "folder").mkdir()
    for name in ("file", "uw", "folder"):
        bad, paths = [], {"spam": tmp_path / name, "ham": tmp_path / "ham"}
        found = list(read_mail(paths, on_bad_line=lambda *at, bad=bad: bad.append(at)))
        said = f"{tmp_path / name} must have at least one mail, got none"
        assert [(each.line, each.y) for each in found] == [(2, "ham")] and bad == [(1, said)]
        for source in (
            lambda paths=paths: read_mail({"spam": paths["spam"]}),
            lambda paths=paths: read(paths["spam"], format="mail"),
        ):
            with pytest.raises(StreamError, match=f"{Path(name)} must have at least one mail, got none"):
                list(source())
    with pytest.raises(StreamError, match=r"file must have .*; .*folder must have at least one mail"):
        list(read_mail({"spam": tmp_path / "file", "ham": tmp_path / "folder"}))
    assert pairs(b"", "mail", unlabelled=True) == pairs(b"\n\n", "mail", unlabelled=True) == []
