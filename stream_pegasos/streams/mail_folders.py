"""Folders of mail, Maildirs and mboxes, read together in the order in which their mails arrived."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from stream_pegasos.common.display import one_line
from stream_pegasos.mail_text.attached import attached_mails
from stream_pegasos.mail_text.mime import end_of_headers, find_begin
from stream_pegasos.streams.chunks import Chunks, buffered, read_chunks
from stream_pegasos.streams.compression import decompressed
from stream_pegasos.streams.example import Example, StreamError, Truth
from stream_pegasos.streams.lines import LONGEST_LINE, TOO_LONG, Parser, make_examples, unify_newlines
from stream_pegasos.streams.mail import (
    FROM,
    LONGEST_HEAD,
    MMDF,
    begins_a_mailbox,
    begins_with_a_mail,
    is_deleted,
    is_emlx,
    is_internal,
    separating_date,
    split,
    unwrapped,
)
from stream_pegasos.streams.mail_arrival import (
    IN_BLOCKS,
    Arrival,
    find_arrival,
    in_order_of_arrival,
    parse_time,
    plausible,
)
from stream_pegasos.streams.mail_marks import is_deleted_in_mh, maildir_flags, why_no_mail, why_other

_OF_MAILDIR = ("cur", "new")
_MOST_IN_MEMORY = 1 << 24  # bytes of copies
_MOST_EMPTY = 1 << 20  # bytes of empty lines before a mail
_EMPTY = "the file is empty"
_digits = re.compile(r"\d+")
_seconds = re.compile(r"([0-9]{1,12})[.]").match  # at the beginning of the name of a file in a Maildir
# Files that Dovecot, Courier, Cyrus, Thunderbird and Evolution keep beside mails.
_is_index = re.compile(
    r"dovecot[.-](?:index|list|mailbox|map|uidlist|uidvalidity|keywords|acl|expunges|lda|quota|vsize).*"
    r"|courier(?:imap|pop3).*|maildir(?:size|folder)|subscriptions|cyrus[.](?:header|index|cache|squat|expunge|seen)"
    r"|.*[.](?:msf|cmeta|ev-summary(?:-meta)?|ibex[.]index(?:[.]data)?)|(?:popstate|msgFilterRules)[.]dat|Info[.]plist"
).fullmatch


class _MailPlace(NamedTuple):
    """The place of a mail."""

    path: str
    time: float | None = None  # of its arrival, in seconds since 1970
    folder: int = 0  # the number of the path among the arguments
    offset: int = 0
    length: int | None = None  # of a mail in a file of several mails
    is_copied: bool = False
    label: Truth | None = None
    fault: str | None = None

    @property
    def name_key(self) -> tuple[str, str, int]:
        """The sort key of mails that arrived at the same time: numbers in names are compared as numbers."""
        name = _digits.sub(lambda number: number[0].zfill(20), os.path.basename(self.path))
        return name, self.path, self.offset


def read_mail_folders(
    sources: Iterable[tuple[str, Truth | None]],
    parse: Parser,
    on_event: Callable[[str], None] = lambda event: None,
    attached: bool = False,
) -> Iterator[Example]:
    """Yield the mails at some paths in order of arrival, with the label of their path if it has one. With `attached`, a
    mail with attached mails is replaced by these. `on_event` is called with the number of deleted mails left out, and
    if the labels come one after the other.

    Only the place of each mail is kept in memory; the mail is read when it is yielded.
    """
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY) as copies:
        index = _Index(copies)
        for path, label in sources:
            index.add(path, label)
        number = 1
        for place in index.in_order(on_event):
            try:
                mail: bytes | ValueError = index.mail(place)
            except OSError as error:
                mail = ValueError(_fault(place.path, error))
            except ValueError as error:  # also damaged compressed data
                mail = error
            if isinstance(mail, bytes) and is_internal(mail):
                continue
            mails: list[bytes | ValueError] = []
            if attached and isinstance(mail, bytes):
                mails += attached_mails(mail)
            for example in make_examples([(number, content) for content in mails or [mail]], parse):
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
        self._places: list[_MailPlace] = []
        self._copies = copies  # of mails from compressed mboxes and pipes, which have no offsets to read again
        self._n_files = self._n_folders = self._n_deleted = 0
        self._empty: list[_MailPlace] = []  # paths without mails
        self._faults: list[_MailPlace] = []  # files that are no mail or cannot be read
        self.broken_off: list[StreamError] = []  # of compressed mboxes that are damaged after some mails

    def in_order(self, on_event: Callable[[str], None]) -> list[_MailPlace]:
        """All places, sorted by arrival; the places of a single mbox in the order of the file. A StreamError if there
        is no mail at any path. If there is none at some paths, the faults of these come first; other faults come last.
        """
        if self._n_deleted:
            on_event(f"{self._n_deleted:,} deleted mail{'s are' if self._n_deleted > 1 else ' is'} left out")
        if self._empty and not self._places and not self._faults:
            raise StreamError("; ".join(str(place.fault) for place in self._empty))
        places = self._places
        if self._n_files > 1:
            places = sorted(places, key=lambda place: place.name_key)
            arrivals = [Arrival(place.time, place.folder, place.label) for place in places]
            order, is_interleaved = in_order_of_arrival(arrivals)
            places = [places[number] for number in order]
            if is_interleaved:
                on_event(IN_BLOCKS)
        return [*self._empty, *places, *self._faults]

    def add(self, path: str, label: Truth | None) -> None:
        """Add the mails at a path; an OSError if nothing exists there."""
        self._n_folders += 1
        before = self._n_added
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
        if is_folder:
            self._add_folder(path, label)
        else:
            try:
                fault = self._add_file(path, label)
                if fault is not None and fault != _EMPTY:
                    self._empty.append(_MailPlace(path, fault=_fault(path, fault)))
                    return
            except StreamError as error:
                self.broken_off.append(error)
        if self._n_added == before:
            fault = f"{path} must have at least one mail, got none"
            self._empty.append(_MailPlace(path, fault=fault))

    @property
    def _n_added(self) -> int:
        return len(self._places) + len(self._faults) + len(self.broken_off)

    def _add_folder(self, path: str, label: Truth | None) -> None:
        for name, has_maildirs, fault in _files(path):
            n_before = len(self._places)
            try:
                if fault is not None:
                    raise fault
                if stat.S_ISREG(os.stat(name).st_mode):
                    self._add_file_of_folder(name, label, has_maildirs)
            except StreamError as error:
                if len(self._places) > n_before:
                    self.broken_off.append(error)
                else:  # a single mail
                    self._add_fault(name, str(error))
            except ImportError as error:  # a library for decompression
                self._add_fault(name, _fault(name, str(error)))
            except OSError as error:
                if name == path:
                    raise
                self._add_fault(name, _fault(name, error))

    def _add_file_of_folder(self, path: str, label: Truth | None, has_maildirs: bool) -> None:
        name = os.path.basename(path)
        is_index = _is_index(name) is not None
        if is_index and _is_in_maildir(path):
            return
        fault = self._add_file(path, label, _begins_with_a_separator if is_index else begins_with_a_mail)
        if fault is not None and not is_index and not has_maildirs:
            self._add_fault(path, _fault(path, fault))

    def _add_file(
        self, path: str, label: Truth | None, is_mail: Callable[[bytes], bool] = begins_with_a_mail
    ) -> str | None:
        """Add a mail or the mails of an mbox; a StreamError if the rest of it cannot be read. Return the reason if its
        beginning is neither a mail nor an mbox.
        """
        name, is_in_maildir = os.path.basename(path), _is_in_maildir(path)
        if "T" in (maildir_flags(name) or "") if is_in_maildir else is_deleted_in_mh(name):
            self._n_deleted += 1
            return None
        with open(path, "rb") as file:
            chunks = read_chunks(file)
            if (fault := why_other(chunks)) is not None:
                return fault
            is_compressed, chunks = decompressed(chunks, path)
            chunks = unify_newlines(chunks)
            head = chunks.look(_wants_more)
            begin = find_begin(head)
            if begin == len(head):
                return _EMPTY
            if not is_mail(head):
                return why_no_mail(head[begin:])
            is_mailbox = begins_a_mailbox(head) and not is_in_maildir
            is_copied = not file.seekable() or (is_compressed and is_mailbox)
            self._n_files += 1
            place = _MailPlace(path, folder=self._n_folders, label=label)
            if not is_copied and not is_mailbox:
                self._add_mail(place, head, chunks, plausible(os.fstat(file.fileno()).st_mtime))
                return None
            for offset, length, mail in split(buffered(chunks)):
                if mail is not None and is_deleted(mail):
                    self._n_deleted += 1
                    continue
                time = _arrived((mail or b"")[:LONGEST_HEAD])
                place = place._replace(time=time, length=length, is_copied=is_copied)
                self._places.append(place._replace(offset=self._copied(mail or b"") if is_copied else offset))
        return None

    def _add_mail(self, place: _MailPlace, head: bytes, chunks: Chunks, modified: float | None) -> None:
        """Add a file with a single mail."""
        if is_internal(head):
            return
        if is_emlx(head):  # its notes are at its end
            head = buffered(chunks).read(LONGEST_LINE)
        head = head[find_begin(head) :]
        if _do_headers_tell(place.path) and is_deleted(head):
            self._n_deleted += 1
            return
        time = _arrived(unwrapped(head)[:LONGEST_HEAD])
        seconds = _seconds(os.path.basename(place.path)) if _is_in_maildir(place.path) else None
        if time is None and seconds:
            time = plausible(float(seconds[1]))
        self._places.append(place._replace(time=modified if time is None else time))

    def _copied(self, mail: bytes) -> int:
        """Copy a mail, and return the offset of the copy."""
        offset = self._copies.seek(0, os.SEEK_END)
        self._copies.write(mail)
        return offset

    def _add_fault(self, path: str, fault: str) -> None:
        self._faults.append(_MailPlace(path, fault=fault))

    def mail(self, place: _MailPlace) -> bytes:
        """Read a mail; a ValueError or OSError gives the reason if it cannot be read."""
        if place.fault is not None:
            raise ValueError(place.fault)
        if place.is_copied:
            return unwrapped(_bytes_at(place, self._copies))
        with open(place.path, "rb") as file:
            if place.length is not None:
                mail = _bytes_at(place, file)
                if len(mail) < place.length or not mail.startswith((FROM, MMDF)):
                    raise ValueError(_fault(place.path, "it was rewritten while it was read"))
                return unwrapped(mail)
            mail = buffered(decompressed(read_chunks(file), place.path)[1]).read(LONGEST_LINE + 1)
        if not 0 < len(mail) <= LONGEST_LINE:
            raise ValueError(_fault(place.path, f"the mail is {TOO_LONG}" if mail else _EMPTY))
        return unwrapped(mail)


def _is_in_maildir(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.abspath(path))) in _OF_MAILDIR


def _do_headers_tell(path: str) -> bool:
    """Whether headers say that a mail is deleted. In a Maildir the names of files say it, and a sender may write such
    headers, too; but Thunderbird keeps names without flags in `cur`.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.basename(folder) != "new" and (not _is_in_maildir(path) or maildir_flags(name) is None)


def _bytes_at(place: _MailPlace, mbox: IO[bytes]) -> bytes:
    assert place.length is not None
    if place.length > LONGEST_LINE:
        raise ValueError(_fault(place.path, f"the mail is {TOO_LONG}"))
    mbox.seek(place.offset)
    return mbox.read(place.length)


def _files(folder: str) -> Iterator[tuple[str, bool, OSError | None]]:
    """Yield the files of a folder of mail that are not hidden, and whether their folder has Maildirs in or below it;
    then the folders that cannot be listed.
    """
    errors: list[OSError] = []
    files: list[tuple[str, list[str]]] = []
    above_maildirs: set[Path] = set()
    for path, folders, names in os.walk(folder, onerror=errors.append):
        if any(name in _OF_MAILDIR for name in folders):
            folders[:] = [name for name in _OF_MAILDIR if name in folders]
            names = []
            above_maildirs.update(Path(path).parents)
        folders[:] = [name for name in folders if not name.startswith(".")]
        files.append((path, [name for name in names if not name.startswith(".")]))
    for path, names in files:
        has_maildirs = Path(path) in above_maildirs
        yield from ((os.path.join(path, name), has_maildirs, None) for name in names)
    yield from ((error.filename or folder, False, error) for error in errors)


def _wants_more(head: bytes) -> bool:
    """Whether more bytes are needed to recognise a file by its beginning."""
    body = head[find_begin(head) :]
    return len(body) < LONGEST_HEAD and end_of_headers(body) is None if body else len(head) < _MOST_EMPTY


def _begins_with_a_separator(head: bytes) -> bool:
    return separating_date(head[find_begin(head) :].partition(b"\n")[0]) is not None


def _arrived(head: bytes) -> float | None:
    """The arrival time of a mail by its headers, else by the separating line of an mbox; `None` if neither has it."""
    time = find_arrival(head)
    if time is None and (head := head.removeprefix(MMDF).lstrip(b"\r\n")).startswith(FROM):
        date = separating_date(head.partition(b"\n")[0])
        time = None if date is None else parse_time(date.decode("latin-1"))
    return time
