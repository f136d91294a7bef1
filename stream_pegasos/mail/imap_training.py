"""Learning of whole folders of an IMAP mailbox, in the order in which the mails arrived."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stream_pegasos.mail.imap_connection import ImapConnection, warn_of_undelivered
from stream_pegasos.mail.imap_ledger import LabelledMail, Ledger
from stream_pegasos.mail.imap_memory import Event
from stream_pegasos.streams.mail_arrival import IN_BLOCKS, Arrival, in_order_of_arrival, set_times

__all__ = ["learn_folders"]

log = logging.getLogger(__name__)

AT_ONCE = 100  # mails in memory
BEGIN = [0.0, 0]  # before the first mail of a folder
ORDER = "headers"  # the source of the order; the progress of older versions has another one


def learn_folders(
    box: ImapConnection,
    ledger: Ledger,
    folders: Mapping[str, str],
    junk: str,
    on_progress: Callable[[int, int], None] = lambda n, total: None,
) -> int:
    """Learn all mails in folders, each folder once, and return the number of learned mails. `folders` has the label of
    each folder's mails, `"spam"` or `"ham"`; `on_progress` is called with the number of learned mails and the total. If
    the labels would come one after the other, the folders are interleaved, and a warning reports it.

    The ledger records the progress, so that a run after a kill continues there. Mails that arrive meanwhile are not
    learned. Mails that the server cannot deliver are reported, and a later run learns them if it gets them.
    """
    training, before = ledger.memory.training, ledger.learning.n_learned
    states = {}
    for name in folders:
        uidvalidity, uidnext = box.open(name)
        state = training.get(_key(name))
        if state is None or state[0] != uidvalidity:
            state = [uidvalidity, uidnext or 1 + max(box.uids(), default=0), *BEGIN, False, ORDER]
            ledger.record([["trained", _key(name), state], ["trained", _missing(name), []]])
        if not state[4]:  # mails learned earlier are not learned again
            states[name] = state if ORDER in state else [*state[:2], *BEGIN, False, ORDER]
        _learn_again(box, ledger, name, folders[name], junk)
    mails = _in_order(box, states, folders)
    for begin in range(0, len(mails), AT_ONCE):
        batch, mails_by_place, names = mails[begin : begin + AT_ONCE], dict[tuple[str, int], LabelledMail](), [*states]
        uids: dict[str, list[int]] = {}
        for arrived, number, uid in batch:
            name = names[number]
            uids.setdefault(name, []).append(uid)
            states[name] = [*states[name][:2], arrived, uid, False, ORDER]
        events: list[Event] = []
        for name, uids_of_folder in uids.items():
            box.open(name)
            mails_of_folder = _fetched(box, sorted(uids_of_folder), folders[name], name == junk)
            mails_by_place |= {(name, uid): mail for uid, mail in mails_of_folder.items()}
            missing = [uid for uid in uids_of_folder if (name, uid) in box.undelivered]
            for uid in missing:
                warn_of_undelivered(box, name, uid)
            if missing:
                events.append(["trained", _missing(name), [*training.get(_missing(name), ()), *missing]])
        order = [(names[number], uid) for _, number, uid in batch]
        events += [["trained", _key(name), states[name]] for name in uids]
        ledger.record(events, [mails_by_place[key] for key in order if key in mails_by_place])
        on_progress(begin + len(batch), len(mails))
    ledger.record([["trained", _key(name), [*state[:4], True, ORDER]] for name, state in states.items()])
    return ledger.learning.n_learned - before


def _key(folder: str) -> str:
    return f"folder {folder}"


def _missing(folder: str) -> str:
    return f"undelivered of {folder}"


def _fetched(box: ImapConnection, uids: list[int], label: str, is_junk: bool) -> dict[int, LabelledMail]:
    """Mails of the open folder."""
    keys = {uid: key for keys in box.keys(uids) for uid, key in keys.items()}
    return {
        uid: LabelledMail(mail, keys[uid], label, uid if is_junk else 0)
        for contents in box.mails([*keys])
        for uid, mail in contents.items()
    }


def _learn_again(box: ImapConnection, ledger: Ledger, folder: str, label: str, junk: str) -> None:
    """Learn mails of the open folder that the server could not deliver before."""
    missing = ledger.memory.training.get(_missing(folder), [])
    if missing:
        mails = _fetched(box, sorted(box.there(missing)), label, folder == junk)
        still = [uid for uid in missing if (folder, uid) in box.undelivered]
        if still != missing:
            ledger.record([["trained", _missing(folder), still]], [*mails.values()])


def _in_order(
    box: ImapConnection, states: Mapping[str, Sequence[Any]], labels: Mapping[str, str]
) -> list[tuple[float, int, int]]:
    """The mails to learn, in order: the arrival of each, the number of its folder, its UID."""
    mails, uids = list[Arrival](), list[int]()
    for number, (name, (uidvalidity, end, *_)) in enumerate(states.items()):
        if box.open(name)[0] == uidvalidity:
            times = box.arrivals([uid for uid in box.uids() if uid < end])
            uids += sorted(times)
            mails += [Arrival(times[uid], number, labels[name]) for uid in sorted(times)]
    mails = set_times(mails)
    order, is_interleaved = in_order_of_arrival(mails)
    progress = [(arrived, last) for _, _, arrived, last, *_ in states.values()]
    if is_interleaved and not any(last for _, last in progress):
        log.warning(IN_BLOCKS)
    rows = [(mails[n].time or 0.0, mails[n].folder, uids[n]) for n in order]
    return [(time, number, uid) for time, number, uid in rows if (time, uid) > progress[number]]
