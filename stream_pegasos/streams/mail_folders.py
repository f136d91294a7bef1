"""Reading folders of mail, Maildirs and mboxes together, in the order in which their mails arrived."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_tz
from pathlib import Path
from typing import IO, NamedTuple

from stream_pegasos.common.display import one_line
from stream_pegasos.mail_text.mime import begin_of, end_of_headers
from stream_pegasos.streams.chunks import buffered, chunks_of
from stream_pegasos.streams.compression import decompressed
from stream_pegasos.streams.example import Example, StreamError, Truth
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, Parser, examples_of
from stream_pegasos.streams.mail import (
    FROM,
    LONGEST_HEAD,
    begins_with_a_mail,
    header,
    is_internal,
    separating_date,
    split,
    unwrapped,
    value,
)

_OF_MAILDIR = ("cur", "new")
_MOST_IN_MEMORY = 1 << 24  # bytes of copies
_MOST_EMPTY = 1 << 20  # bytes of empty lines before a mail
_LONGEST_DATE = 200  # characters
_seconds = re.compile(r"([0-9]{1,12})[.]").match  # at the beginning of the name of a file in a Maildir
# What Dovecot, Courier, Cyrus, Thunderbird and Evolution keep beside mails.
_is_index = re.compile(
    r"dovecot[.-](?:index|list|mailbox|map|uidlist|uidvalidity|keywords|acl|expunges|lda|quota|vsize).*"
    r"|courier(?:imap|pop3).*|maildir(?:size|folder)|subscriptions|cyrus[.](?:header|index|cache|squat|expunge|seen)"
    r"|.*[.](?:msf|cmeta|ev-summary(?:-meta)?|ibex[.]index(?:[.]data)?)|(?:popstate|msgFilterRules)[.]dat"
).fullmatch
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_iso_date = re.compile(
    r"^(\d{4})[-/](\d\d?)[-/](\d\d?)(?:T|,? +)(\d\d?:\d\d(?::\d\d)?)(?:[.,]\d+)? ?(?:([+-]\d\d):?(\d\d)?)?", re.ASCII
)
_received, _date = header("Received"), header("Date")


class _Place(NamedTuple):
    """Where a mail is. The first four fields order mails by their arrival."""

    time: float  # seconds since 1970
    name: str
    path: str
    offset: int = 0
    length: int | None = None  # of a mail in an mbox
    is_copied: bool = False
    label: Truth | None = None
    fault: str | None = None


def read_mail_folders(sources: Iterable[tuple[str, Truth | None]], parse: Parser) -> Iterator[Example]:
    """Yield the mails at some paths in order of arrival, with the label of their path if it has one.

    Only the place of each mail is kept; the mail is read when its turn comes.
    """
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as copies:
        index = _Index(copies)
        for path, label in sources:
            index.add(path, label)
        number = 1
        for place in index.in_order():
            try:
                mail: bytes | ValueError = index.mail(place)
            except OSError as error:
                mail = ValueError(_fault(place.path, error))
            except ValueError as error:  # also if compressed data is damaged
                mail = error
            if isinstance(mail, bytes) and is_internal(mail):
                continue
            for example in examples_of([(number, mail)], parse):
                if example.fault is not None:
                    yield example._replace(fault=one_line(example.fault))
                else:
                    yield example if place.label is None else example._replace(y=place.label)
            number += 1
        if index.broken_off:
            raise type(index.broken_off[0])("; ".join(map(str, index.broken_off)))


def _fault(path: str, error: OSError | str) -> str:
    return f"{path}: {(error.strerror or error) if isinstance(error, OSError) else error}"


class _Index:
    """The places of mails."""

    def __init__(self, copies: IO[bytes]) -> None:
        self._places: list[_Place] = []
        self._copies = copies  # of mails from compressed mboxes and pipes, which cannot be read again at an offset
        self._n_files = 0
        self._empty: list[_Place] = []  # where there is no mail
        self.broken_off: list[StreamError] = []  # of compressed mboxes that are damaged after their first mails

    def in_order(self) -> list[_Place]:
        """All places, sorted by arrival; those of a single mbox in the order of the file. A StreamError if there is no
        mail at any path; if there are mails at others, that is a fault, and the first.
        """
        if self._empty and not self._places:
            raise StreamError("; ".join(str(place.fault) for place in self._empty))
        if self._n_files > 1:
            self._places.sort(key=lambda place: place[:4])
        return [*self._empty, *self._places]

    def add(self, path: str, label: Truth | None) -> None:
        """Add the mails at a path; an OSError if there is nothing."""
        before, n_broken_off = len(self._places), len(self.broken_off)
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        if is_folder:
            self._add_folder(path, label)
        else:
            try:
                self._add_file(path, label)
            except StreamError as error:
                self.broken_off.append(error)
        if (len(self._places), len(self.broken_off)) == (before, n_broken_off):
            fault = f"{path}: there is no mail in this {'folder' if is_folder else 'file'}"
            self._empty.append(_Place(0.0, "", path, fault=fault))

    def _add_folder(self, path: str, label: Truth | None) -> None:
        for each, has_maildirs, fault in _files(path):
            n_before = len(self._places)
            try:
                if fault is not None:
                    raise fault
                status = os.stat(each)
                if stat.S_ISREG(status.st_mode):
                    self._add_file_of_folder(each, status.st_mtime, label, has_maildirs)
            except StreamError as error:
                if len(self._places) > n_before:
                    self.broken_off.append(error)
                else:  # a mail by itself
                    self._add_fault(each, str(error), status.st_mtime)
            except OSError as error:
                if each == path:
                    raise
                self._add_fault(each, _fault(each, error))

    def _add_file_of_folder(self, path: str, modified: float, label: Truth | None, has_maildirs: bool) -> None:
        folder, name = os.path.split(os.path.abspath(path))
        is_index = _is_index(name) is not None
        if os.path.basename(folder) in _OF_MAILDIR:
            if not is_index:
                seconds = _seconds(name)
                self._n_files += 1
                self._places.append(_Place(float(seconds[1]) if seconds else modified, name, path, label=label))
            return
        fault = self._add_file(path, label, _begins_with_a_separator if is_index else begins_with_a_mail)
        if fault is not None and not is_index and not has_maildirs:
            self._add_fault(path, _fault(path, fault), modified)

    def _add_file(
        self, path: str, label: Truth | None, is_mail: Callable[[bytes], bool] = lambda head: True
    ) -> str | None:
        """Add a mail or the mails of an mbox; a StreamError if the rest of it cannot be read. Return why it is neither,
        if its beginning shows that.
        """
        name = os.path.basename(path)
        with open(path, "rb") as file:
            modified = os.fstat(file.fileno()).st_mtime
            is_compressed, chunks = decompressed(chunks_of(file), path)
            head = chunks.look(_wants_more)
            begin = begin_of(head)
            if begin == len(head):
                return "the file is empty"
            if not is_mail(head):
                return "is no mail: it begins with no header field"
            is_mbox = head.startswith(FROM, begin)
            is_copied = not file.seekable() or (is_compressed and is_mbox)
            self._n_files += 1
            if not is_copied and not is_mbox:
                if not is_internal(head):
                    self._places.append(_Place(_arrived(head[begin:], modified), name, path, label=label))
                return None
            for offset, length, mail in split(buffered(chunks)):
                time = _arrived((mail or b"")[:LONGEST_HEAD], modified)
                place = self._copied(mail or b"") if is_copied else offset
                self._places.append(_Place(time, name, path, place, length, is_copied, label))
        return None

    def _copied(self, mail: bytes) -> int:
        """Copy a mail, and return the offset of the copy."""
        offset = self._copies.seek(0, os.SEEK_END)
        self._copies.write(mail)
        return offset

    def _add_fault(self, path: str, fault: str, time: float = float("inf")) -> None:
        self._places.append(_Place(time, os.path.basename(path), path, fault=fault))

    def mail(self, place: _Place) -> bytes:
        """Read a mail; a ValueError or OSError says why if it cannot be read."""
        if place.fault is not None:
            raise ValueError(place.fault)
        if place.is_copied:
            return unwrapped(_bytes_at(place, self._copies))
        with open(place.path, "rb") as file:
            if place.length is not None:
                mail = _bytes_at(place, file)
                if len(mail) < place.length or not mail.startswith(FROM):
                    raise ValueError(_fault(place.path, "it was written anew meanwhile"))
                return unwrapped(mail)
            mail = buffered(decompressed(chunks_of(file), place.path)[1]).read(LONGEST_LINE + 1)
        if not 0 < len(mail) <= LONGEST_LINE:
            raise ValueError(_fault(place.path, f"the mail is {TOO_LONG}" if mail else "the file is empty"))
        return mail


def _bytes_at(place: _Place, mbox: IO[bytes]) -> bytes:
    assert place.length is not None
    if place.length > LONGEST_LINE:
        raise ValueError(_fault(place.path, f"the mail is {TOO_LONG}"))
    mbox.seek(place.offset)
    return mbox.read(place.length)


def _files(folder: str) -> Iterator[tuple[str, bool, OSError | None]]:
    """Yield the files of a folder of mail that are not hidden, and whether there are Maildirs in or below their folder;
    then the folders that cannot be listed.
    """
    errors: list[OSError] = []
    found: list[tuple[str, list[str]]] = []
    above_maildirs: set[Path] = set()
    for path, folders, names in os.walk(folder, onerror=errors.append):
        if any(name in _OF_MAILDIR for name in folders):
            folders[:] = [name for name in _OF_MAILDIR if name in folders]
            names = []
            above_maildirs.update(Path(path).parents)
        folders[:] = [name for name in folders if not name.startswith(".")]
        found.append((path, [name for name in names if not name.startswith(".")]))
    for path, names in found:
        has_maildirs = Path(path) in above_maildirs
        yield from ((os.path.join(path, name), has_maildirs, None) for name in names)
    yield from ((error.filename or folder, False, error) for error in errors)


def _wants_more(head: bytes) -> bool:
    """Whether more is needed to see what a file begins with."""
    rest = head[begin_of(head) :]
    return len(rest) < LONGEST_HEAD and end_of_headers(rest) is None if rest else len(head) < _MOST_EMPTY


def _begins_with_a_separator(head: bytes) -> bool:
    return separating_date(head[begin_of(head) :].partition(b"\n")[0]) is not None


def _arrived(head: bytes, modified: float) -> float:
    """When a mail arrived: by the line before it in an mbox, else by the newest header Received, else by the header
    Date, else when its file was modified.
    """
    if head.startswith(FROM):
        line, _, head = head.partition(b"\n")
        date = separating_date(line)
        time = None if date is None else _time(date.decode("latin-1"))
        if time is not None:
            return time
    end = end_of_headers(head)
    for pattern in (_received, _date):
        found = pattern.search(head, 0, len(head) if end is None else end)
        time = None if found is None else _time(value(found).rpartition(";")[2])
        if time is not None:
            return time
    return modified


def _time(date: str) -> float | None:
    """The seconds since 1970 of a date, in UTC unless it names a zone; `None` if it is no date."""
    try:
        date = _iso_date.sub(_as_in_mails, date.strip()[:_LONGEST_DATE])
        parts = parsedate_tz(date)
        if parts is None:
            return None
        return datetime(*parts[:6], tzinfo=timezone(timedelta(seconds=parts[9] or 0))).timestamp()
    except Exception:  # it raises in many ways
        return None


def _as_in_mails(date: re.Match[str]) -> str:
    year, month, day, time, hours, minutes = date.groups()
    zone = f"{hours}{minutes or '00'}" if hours else ""
    return f"{day} {_MONTHS[int(month) - 1]} {year} {time} {zone}"
