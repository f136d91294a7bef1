"""Learning whole folders of an IMAP mailbox, in the order in which the mails arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stream_pegasos.mail.imap_connection import Connection
from stream_pegasos.mail.imap_ledger import LabelledMail, Ledger

__all__ = ["learn_folders"]

AT_ONCE = 100  # mails in memory
BEGIN = [0.0, 0]  # before the first mail of a folder


def learn_folders(
    box: Connection,
    ledger: Ledger,
    folders: Mapping[str, str],
    junk: str,
    on_progress: Callable[[int, int], None] = lambda n, total: None,
) -> int:
    """Learn all mails in folders, each folder once, and return how many mails were learned. Each folder has the label
    of its mails, `"spam"` or `"ham"`; `on_progress` is told how many are learned, and how many there are.

    The ledger records the progress, so that a run after a kill goes on from there. Mails that come meanwhile are not
    learned.
    """
    training, before = ledger.memory.training, ledger.learning.n_learned
    states = {}
    for name in folders:
        uidvalidity, uidnext = box.open(name)
        state = training.get(_key(name))
        if state is None or state[0] != uidvalidity:
            state = [uidvalidity, uidnext or 1 + max(box.uids(), default=0), *BEGIN, False]
            ledger.record([["trained", _key(name), state]])
        if not state[4]:
            states[name] = state
    mails = _in_order(box, states)
    for begin in range(0, len(mails), AT_ONCE):
        batch, found, names = mails[begin : begin + AT_ONCE], dict[tuple[str, int], LabelledMail](), [*states]
        uids: dict[str, list[int]] = {}
        for arrived, number, uid in batch:
            name = names[number]
            uids.setdefault(name, []).append(uid)
            states[name] = [*states[name][:2], arrived, uid, False]
        for name, some in uids.items():
            box.open(name)
            keys = {uid: key for keys in box.keys(sorted(some)) for uid, key in keys.items()}
            for contents in box.mails([*keys]):
                for uid, mail in contents.items():
                    found[name, uid] = LabelledMail(mail, keys[uid], folders[name], uid if name == junk else 0)
        order = [(names[number], uid) for _, number, uid in batch]
        events = [["trained", _key(name), states[name]] for name in uids]
        ledger.record(events, [found[each] for each in order if each in found])
        on_progress(begin + len(batch), len(mails))
    ledger.record([["trained", _key(name), [*state[:4], True]] for name, state in states.items()])
    return ledger.learning.n_learned - before


def _key(folder: str) -> str:
    return f"folder {folder}"


def _in_order(box: Connection, states: Mapping[str, Sequence[Any]]) -> list[tuple[float, int, int]]:
    """The mails that are still to be learned, by arrival: when each arrived, the number of its folder, and its UID."""
    rows = list[tuple[float, int, int]]()
    for number, (name, (uidvalidity, end, arrived, last, _)) in enumerate(states.items()):
        if box.open(name)[0] == uidvalidity:
            times = box.arrivals([uid for uid in box.uids() if uid < end])
            rows += [(time, number, uid) for uid, time in times.items() if (time, uid) > (arrived, last)]
    return sorted(rows)
