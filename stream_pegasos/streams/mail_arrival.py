"""The arrival times of mails, and their order: one rule for all kinds of mailboxes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_tz
from itertools import islice, pairwise
from statistics import fmean
from time import time as now
from typing import NamedTuple

from stream_pegasos.mail_text.mime import end_of_headers
from stream_pegasos.streams.example import Truth
from stream_pegasos.streams.mail import header, value

IN_BLOCKS = "the labels come one after the other: accuracy means little; the folders are interleaved"
EARLIEST = 315532800.0  # 1980, in seconds since 1970; an earlier time was never set
_DAY = 86400.0
_LONG_AFTER = 30 * _DAY  # a later download comes from an archive, and its time means nothing
_MOST_DOWNLOADS = 3  # number of newest headers Received that are searched for those of downloads
_MOST_RECEIVED = 100
_LONGEST_DATE = 200  # characters
_FEWEST_IN_BLOCK = 5  # mails of a label; fewer may be consecutive by chance
_APART = 0.95  # the share of ordered pairs of mails with two labels from which the labels count as separated in time
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_iso_date = re.compile(
    r"^(\d{4})[-/](\d\d?)[-/](\d\d?)(?:T|,? +)(\d\d?:\d\d(?::\d\d)?)(?:[.,]\d+)? ?(?:([+-]\d\d):?(\d\d)?)?", re.ASCII
)
_received, _date = header("Received"), header("Date")
_is_download = re.compile(r"\bwith (?:POP|IMAP)|fetchmail|getmail", re.IGNORECASE).search


class Arrival(NamedTuple):
    """The arrival time of a mail, in seconds since 1970, if known; the number of its folder, and its label."""

    time: float | None
    folder: int
    label: Truth | None


def find_arrival(head: bytes) -> float | None:
    """The arrival time of a mail, in seconds since 1970: of its newest header Received, else of its header Date."""
    end = end_of_headers(head)
    end = len(head) if end is None else end
    lines = [value(match) for match in islice(_received.finditer(head, 0, end), _MOST_RECEIVED)]
    times = [(line, time) for line in lines if (time := parse_time(line.rpartition(";")[2])) is not None]
    # A program that fetches an old mail adds a Received header at that time, and so does the next server.
    for number, ((line, time), (_, before)) in enumerate(pairwise(times[: _MOST_DOWNLOADS + 1]), 1):
        if _is_download(line) and time - before > _LONG_AFTER:
            times = times[number:]
            break
    if times:
        return times[0][1]
    match = _date.search(head, 0, end)
    return None if match is None else parse_time(value(match))


def parse_time(date: str) -> float | None:
    """The seconds since 1970 of a date, in UTC unless it names a zone; `None` if it is no date or not `plausible`."""
    try:
        date = _iso_date.sub(_as_in_mails, date.strip()[:_LONGEST_DATE])
        parts = parsedate_tz(date)
        if parts is None:
            return None
        return plausible(datetime(*parts[:6], tzinfo=timezone(timedelta(seconds=parts[9] or 0))).timestamp())
    except Exception:  # it raises many kinds of errors
        return None


def _as_in_mails(date: re.Match[str]) -> str:
    year, month, day, time, hours, minutes = date.groups()
    zone = f"{hours}{minutes or '00'}" if hours else ""
    return f"{day} {_MONTHS[int(month) - 1]} {year} {time} {zone}"


def plausible(time: float) -> float | None:
    """The time, or `None` if no mail can have arrived at it: in the future, or before mail existed."""
    return time if EARLIEST <= time <= now() + _DAY else None


def in_order_of_arrival(mails: Sequence[Arrival]) -> tuple[list[int], bool]:
    """The numbers of mails in order of arrival, and whether the folders are interleaved. They are interleaved if the
    labels would come one after the other: in proportion to the sizes of the folders, each in its own order.

    Mails without a known time are spread evenly over the others. Mails of equal times keep their order.
    """
    mails = set_times(mails)
    order = sorted(range(len(mails)), key=lambda number: mails[number].time or 0.0)
    if not _are_in_blocks([mails[number].label for number in order]):
        return order, False
    return sorted(order, key=_shares(order, mails).__getitem__), True


def set_times(mails: Sequence[Arrival]) -> list[Arrival]:
    """The same mails; mails without a known time get times that spread each folder's mails evenly over the others."""
    times = sorted(mail.time for mail in mails if mail.time is not None) or [0.0]
    unknown = defaultdict[int, list[int]](list)
    for number, mail in enumerate(mails):
        if mail.time is None:
            unknown[mail.folder].append(number)
    spread = [*mails]
    for numbers in unknown.values():
        for n, number in enumerate(numbers):
            time = times[int((n + 0.5) / len(numbers) * len(times))]
            spread[number] = mails[number]._replace(time=time)
    return spread


def _shares(order: Sequence[int], mails: Sequence[Arrival]) -> dict[int, float]:
    """For each mail, its position in its folder, as a share from 0 to 1."""
    folders = defaultdict[int, list[int]](list)
    for number in order:
        folders[mails[number].folder].append(number)
    return {number: (n + 0.5) / len(numbers) for numbers in folders.values() for n, number in enumerate(numbers)}


def _are_in_blocks(labels: Sequence[Truth | None]) -> bool:
    places = defaultdict[Truth | None, list[int]](list)
    for place, label in enumerate(labels):
        places[label].append(place)
    blocks = sorted((times for times in places.values() if len(times) >= _FEWEST_IN_BLOCK), key=fmean)
    return len(blocks) > 1 and all(_share_before(earlier, later) >= _APART for earlier, later in pairwise(blocks))


def _share_before(first: list[int], second: list[int]) -> float:
    """The share of pairs, one from each list, in which the element of `first` is smaller (both lists are sorted)."""
    return fmean(bisect_left(first, place) for place in second) / len(first)
