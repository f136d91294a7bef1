"""Mail that other tools have kept: one order of arrival for each kind of mailbox, without what was deleted."""

import gzip
import io
import mailbox
import os
import time
from email.utils import formatdate
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import bad_lines, byte_by_byte, pairs

from stream_pegasos.streams import StreamError, read, read_mail
from stream_pegasos.streams.mail_arrival import IN_BLOCKS, Arrival, find_arrival, in_order_of_arrival

N = 40
BEGIN = 1_577_836_800  # the first of January 2020
DOWNLOADED = {"ham": 1_600_000_000, "spam": 1_700_000_000}
PLIST = b'<?xml version="1.0"?>\n<plist version="1.0"><dict><key>flags</key><integer>%d</integer></dict></plist>\n'


def mail(number, time=None, field=b"Received"):
    date = formatdate(BEGIN + 60 * number if time is None else time).encode()
    date = (b"by mx.example; " if field == b"Received" else b"") + date
    received = b"Received: by a.example; Mon, 1 Jan 2018 00:00:00 +0000\n" if field == b"Received" else b""
    return b"%b: %b\n%bSubject: %d\n\nFrom here\n" % (field, date, received, number)


def label_of(number):
    return "spam" if number % 3 == 0 else "ham"


def asctime(seconds):
    return time.asctime(time.gmtime(seconds)).encode()


def put(path, data, modified=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (modified or time.time(),) * 2)


def write_maildir(path, mails, downloaded):
    for n, data in enumerate(mails):
        put(path / "cur" / f"{downloaded + n}.M{n}P1.host,U={n}:2,S", data, downloaded)


def write_mbox(path, mails, downloaded):
    lines = [b"From a@x %b\n" % asctime(downloaded + n) for n in range(len(mails))]
    put(
        path,
        b"".join(line + data.replace(b"\nFrom", b"\n>From") + b"\n" for line, data in zip(lines, mails, strict=True)),
    )


def write_files(name, pack=lambda data: data):
    def write(path, mails, downloaded):
        for n, data in enumerate(mails, 1):
            put(path / name.format(n), pack(data), downloaded + n)

    return write


def write_by_python(kind):
    def write(path, mails, downloaded):
        box = kind(path)
        for data in mails:
            box.add(data)
        box.close()

    return write


def emlx(data, flags=1):
    return b"%-10d\n%b%b" % (len(data), data, PLIST % flags)


PYTHONS = (mailbox.mbox, mailbox.Maildir, mailbox.MH, mailbox.MMDF)
KINDS = {
    "Maildir": write_maildir,
    "mbox": write_mbox,
    "mbox.gz": lambda path, *given: (write_mbox(path, *given), path.write_bytes(gzip.compress(path.read_bytes()))),
    "MH": write_files("{}"),
    "eml": write_files("{}.eml"),
    "emlx": write_files("Messages/{}.emlx", emlx),
    "compressed": write_files("cur/{}.host,S=9:2,", gzip.compress),
    **{f"Python's {kind.__name__}": write_by_python(kind) for kind in PYTHONS},
}


def numbers(examples):
    return [int(each.x.partition("Subject: ")[2].partition("\n")[0]) for each in examples]


def read_labelled(folder):
    events, bad = [], []
    paths = {label: folder / label for label in ("spam", "ham") if (folder / label).exists()}
    mails = list(read_mail(paths, on_event=events.append, on_bad_line=lambda *at: bad.append(at)))
    return numbers(mails), [each.y for each in mails], events, bad


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("older", ["ham", "spam"])
def test_mails_come_as_they_arrived_whenever_they_were_downloaded(tmp_path, kind, older):
    """Sorted by subject in the folders, and one folder downloaded long after the other."""
    for label in ("spam", "ham"):
        some = sorted((n for n in range(N) if label_of(n) == label), key=str)
        KINDS[kind](tmp_path / label, [*map(mail, some)], DOWNLOADED["ham" if label == older else "spam"])
    found, labels, events, bad = read_labelled(tmp_path)
    assert (found, labels, events, bad) == ([*range(N)], [*map(label_of, range(N))], [], [])
    bodies = {each.x.partition("\n\n")[2] for each in read_mail({"ham": tmp_path / "ham"})}
    assert bodies == {"From here\n"} or (bodies == {">From here\n"} and "Python" in kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("field", [b"Received", b"Date"])
def test_folders_are_interleaved_where_labels_come_one_after_the_other(tmp_path, kind, field):
    for label, first in {"spam": 0, "ham": 1000}.items():
        some = range(first, first + (20 if label == "spam" else 40))
        KINDS[kind](tmp_path / label, [mail(n, field=field) for n in some], DOWNLOADED[label])
    found, labels, events, _ = read_labelled(tmp_path)
    assert events == [IN_BLOCKS]
    assert all(abs(labels[:n].count("spam") - n / 3) <= 1 for n in range(61))
    for is_spam in (True, False):
        own = [n for n in found if (n < 1000) == is_spam]
        assert own == sorted(own)


def test_what_tells_the_arrival():
    head = b"%b: %b\nDate: Thu, 2 Jan 2020 00:00:00 +0000\n\nReceived: x; Wed, 1 Jan 2020 00:00:00 +0000\n"
    good, date = b"by x for y; Wed, 01 Jan 2020 01:00:00 +0100", BEGIN + 86400
    assert find_arrival(head % (b"Received", good)) == BEGIN
    assert find_arrival(head % (b"X", good)) == date
    tomorrow = formatdate(time.time() + 3 * 86400).encode()
    for bad in (b"by x", b"; never", b"; Thu, 01 Jan 1970 00:00:00 +0000", b"; " + tomorrow, b"; 1 Jan 9999 00:00"):
        assert find_arrival(head % (b"Received", bad)) == date
        assert find_arrival(head % (b"Received", bad + b"\nReceived: " + good)) == BEGIN
    assert find_arrival(b"Date: " + tomorrow) is find_arrival(b"Subject: a") is find_arrival(b"") is None
    fetched = b"from pop by localhost with POP3 (fetchmail-6.4); Wed, 01 Jan 2025 00:00:00 +0000"
    assert find_arrival(head % (b"Received", fetched + b"\nReceived: " + good)) == BEGIN


arrivals = st.lists(
    st.builds(Arrival, st.none() | st.integers(1, 99).map(float), st.integers(0, 2), st.sampled_from("ab"))
)


@given(arrivals)
def test_any_order_has_each_mail_once(mails):
    order, is_interleaved = in_order_of_arrival(mails)
    assert sorted(order) == [*range(len(mails))]
    for one, two in pairwise(order):
        if not is_interleaved and None not in (mails[one].time, mails[two].time):
            assert (mails[one].time, one) < (mails[two].time, two)
    if is_interleaved:
        assert min(map([each.label for each in mails].count, "ab")) >= 5
        for folder in range(3):
            times = [mails[n].time for n in order if mails[n].folder == folder and mails[n].time is not None]
            assert times == sorted(times)


def test_mails_without_a_time_are_spread():
    mails = [Arrival(float(n), 0, "a") for n in range(90)] + [Arrival(None, 1, "b")] * 10
    order, is_interleaved = in_order_of_arrival(mails)
    places = [place for place, number in enumerate(order) if number >= 90]
    assert not is_interleaved and all(9 <= two - one <= 11 for one, two in pairwise(places)) and places[0] < 10


# what is deleted


def mbox_of(fields):
    return b"".join(b"From a@x %b\n%bSubject: %d\n\nx\n\n" % (asctime(BEGIN + n), f, n) for n, f in enumerate(fields))


DELETED = [b"Status: D\n", b"Status: ROD\n", b"X-Status: D\n", b"X-Status: AD\n", b"X-Mozilla-Status: 0009\n"]
DELETED += [b"x-mozilla-status: 100A\n", b"X-Mozilla-Status2: 00200000\n", b"X-Evolution: 0000001c-0012\n"]
KEPT = [b"Status: RO\n", b"X-Status: AF\n", b"X-Mozilla-Status: 8011\n", b"X-Mozilla-Status2: 00000000\n"]
KEPT += [b"X-Evolution: 0000001c-0010\n", b"Status: DONE\n", b"X-Status: \n", b"X-A: Status: D\n", b"\nStatus: D\n"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_what_an_mbox_says_is_deleted(tmp_path, end):
    data = mbox_of([*DELETED, *KEPT]).replace(b"\n", end)
    put(tmp_path / "ham", data)
    kept = len(KEPT)
    assert len(pairs(data, "mail", unlabelled=True)) == kept
    found, _, events, bad = read_labelled(tmp_path)
    assert len(found) == kept and events == [f"{len(DELETED)} deleted mails are left out"] and not bad


def test_what_the_name_of_a_file_says_is_deleted(tmp_path):
    for n, name in enumerate(["1.a:2,ST", "2.a:2,T", "3.a!2,FRST", "4.a:2,STab", "5.a:2,S", "6.T:2,", "7.T"]):
        put(tmp_path / "spam" / "cur" / name, mail(n))
    for n, name in enumerate([",3", "#4", "5", "6"], 7):
        put(tmp_path / "ham" / name, b"X-Status: D\n" * (name == "6") + mail(n))
    put(tmp_path / "ham" / "7.emlx", emlx(mail(12), 3))
    put(tmp_path / "ham" / "8.emlx", emlx(mail(13), 1))
    put(tmp_path / "spam" / "cur" / "9.a:2,S", b"X-Status: D\n" + mail(14))  # which its sender may have written
    put(tmp_path / "spam" / "new" / "9.a", b"X-Status: D\n" + mail(15))
    put(tmp_path / "spam" / "cur" / "1234", b"X-Mozilla-Status: 0009\n" + mail(16))  # of Thunderbird
    found, _, events, bad = read_labelled(tmp_path)
    assert found == [4, 5, 6, 9, 13, 14, 15] and events == ["9 deleted mails are left out"] and not bad


# mailboxes of other programs


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("between", [b"", b"\1\1\1\1\n"])
def test_mmdf_and_mails_of_apple(tmp_path, end, between):
    mails = [mail(n).replace(b"\n", end) for n in range(3)]
    line = b"\1\1\1\1\n".replace(b"\n", end)
    box = b"".join(line + data + between.replace(b"\n", end) for data in mails) + line
    one = emlx(mails[0]).replace(b"\n", end, 1)
    expected = [data.replace(b"\r", b"\n") if end == b"\r" else data for data in mails]
    for name, data in {"box": box, **({} if end == b"\r" else {"1.emlx": one, "2.partial.emlx": one[:-9]})}.items():
        some = expected if name == "box" else expected[:1]
        put(tmp_path / name, data)
        with byte_by_byte(data) as pipe:
            assert [each.x.encode() for each in read(pipe, format="mail", unlabelled=True)] == some
        assert [x.encode() for x, _ in pairs(gzip.compress(data), "mail", unlabelled=True)] == some
        assert [each.x.encode() for each in read_mail({"ham": tmp_path / name})] == some


OTHERS = {
    "a.pst": (b"!BDN" + bytes(500), "readpst"),
    "a.msg": (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500), "msgconvert"),
    "a.zip": (b"PK\3\4" + bytes(500), "unpack"),
    "a.pdf": (b"%PDF-1.7\nSubject: a\n", "no header field"),
    "a.csv": (b'text,label\n"a: b",spam\n', "no header field"),
    "a.vcf": (b"BEGIN:VCARD\nVERSION:4.0\n", "no header field"),
    "elf": (b"\x7fELF\2\1\1" + bytes(500), "no header field"),
    "crypt": (b"CRYPTED\3\7\2" + bytes(50), "IMAP"),
    "lz4": (b"Dovecot-LZ4\r\x2a\x9b\xc5" + bytes(50), "IMAP"),
    "letter.txt": (b"From the desk of Ann\n\nHi\n", "no header field"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_other_programs_keep_is_told(tmp_path, name):
    data, advice = OTHERS[name]
    for path in (name, f"box/{name}", f"maildir/cur/{name}", f"maildir/cur/1.{name}:2,S"):
        put(tmp_path / path, data)
    put(tmp_path / "ham", mail(1))
    bad = []
    paths = [tmp_path / path for path in (name, "box", "maildir", "ham")]
    assert numbers(read_mail({"ham": paths}, on_bad_line=lambda *at: bad.append(at[1]))) == [1]
    assert len(bad) == 4 and all(name in reason and advice in reason for reason in bad)
    with pytest.raises(StreamError, match=f"{name}.*{advice}|mail 1: this is no mail.*{advice}"):
        list(read(tmp_path / name, format="mail", unlabelled=True))


# how an mbox is split

FROM = b"From a@x Thu Jan  2 10:00:00 2020"


def subjects(data):
    return [x.partition("Subject: ")[2].partition("\n")[0].strip() for x, _ in pairs(data, "mail", unlabelled=True)]


@pytest.mark.parametrize("line", [b"From ", b"From -", b"From ann@x.example", b"From ann 5. Januar 2024 10:00", FROM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_bare_separators_without_empty_lines(line, end):
    mails = [b"To: x\nSubject: %b\n folded\n\n%b: x\nto you\n" % (name, name) for name in (b"a", b"b", b"c")]
    if line == b"From " or line == FROM:
        mails = [b"Odd: 1\n" + data for data in mails]
    data = b"".join(line + b"\n" + data for data in mails).replace(b"\n", end)
    assert subjects(data) == ["a", "b", "c"]
    inside = line + b"\nSubject: a\n\nx\nFrom me to you and others\nSubject: b\n\n" + line + b"\nhello: you\nx\n"
    assert line == FROM or subjects(inside.replace(b"\n", end)) == ["a"]


def test_senders_of_bare_separators_may_look_otherwise():
    mails = [b"From %b\nSubject: %b\n\nx\n" % (who, who) for who in (b"ann@x.example", b"bob", b"c3@x")]
    assert subjects(b"".join(mails)) == ["ann@x.example", "bob", "c3@x"]
    assert subjects(mails[0] + b"From bob to all\nSubject: b\n\nx\n") == ["ann@x.example"]


PATCH = b"From %b Mon Sep 17 00:00:00 2001\nFrom: ann\nSubject: [PATCH] x\n\ndiff\n" % (b"0123456789" * 4)


def test_a_patch_in_a_mail_is_part_of_it(tmp_path):
    line = b"From a@x Thu Jan  2 10:00:00 2020\n"
    data = line + b"Subject: a\n\nsee:\n\n" + PATCH + b"\n" + PATCH + b"\n" + line + b"Subject: b\n\nx\n"
    assert subjects(data) == ["a", "b"]
    assert subjects(PATCH + b"\n" + PATCH) == ["[PATCH] x"] * 2  # as git format-patch writes them
    assert bad_lines(io.BytesIO(data).read(), "mail", unlabelled=True) == []


@given(st.lists(st.sampled_from([b"", b"x", b"A: b", b"From me", b">From me"])))
def test_an_mbox_of_carriage_returns(lines):
    data = b"From a@x Thu Jan  2 10:00:00 2020\nSubject: a\n\n" + b"".join(line + b"\n" for line in lines)
    assert pairs((data + b"\n" + data).replace(b"\n", b"\r"), "mail", unlabelled=True) == pairs(
        data + b"\n" + data, "mail", unlabelled=True
    )
