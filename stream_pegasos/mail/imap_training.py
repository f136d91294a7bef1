"""Learning whole folders of an IMAP mailbox, in the order in which the mails arrived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

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
    """Learn all mails in folders, each folder once, and return how many mails were learned.

    The ledger records the progress, so that a run after a kill goes on from there. Mails that come meanwhile are not
    learned.

    Parameters
    ----------
    folders
        The label of the mails in each folder: `"spam"` or `"ham"`.
    junk
        The folder of spam.
    on_progress
        Called with the number of mails learned so far, and the number of all.
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
    names = [*states]
    mails = _in_order(box, states)
    for begin in range(0, len(mails), AT_ONCE):
        batch = mails[begin : begin + AT_ONCE]
        labelled = dict[tuple[str, int], LabelledMail]()
        for number, group in groupby(sorted(batch, key=lambda mail: mail["folder"]), lambda mail: mail["folder"]):
            name = names[number]
            uids = [int(mail["uid"]) for mail in group]
            labelled |= {(name, uid): found for uid, found in _labelled_mails(box, name, uids, folders[name], junk)}
        events = []
        for mail in batch:
            name = names[mail["folder"]]
            states[name] = [*states[name][:2], float(mail["arrived"]), int(mail["uid"]), False]
        for name in {names[mail["folder"]] for mail in batch}:
            events.append(["trained", _key(name), states[name]])
        order = [(names[mail["folder"]], int(mail["uid"])) for mail in batch]
        ledger.record(events, [labelled[each] for each in order if each in labelled])
        on_progress(begin + len(batch), len(mails))
    ledger.record([["trained", _key(name), [*state[:4], True]] for name, state in states.items()])
    return ledger.learning.n_learned - before


def _key(folder: str) -> str:
    return f"folder {folder}"


def _in_order(box: Connection, states: Mapping[str, Sequence[Any]]) -> Any:
    """The mails that are still to be learned, by arrival."""
    rows = []
    for number, (name, (uidvalidity, end, arrived, last, _)) in enumerate(states.items()):
        if box.open(name)[0] == uidvalidity:
            times = box.arrivals([uid for uid in box.uids() if uid < end])
            rows += [(time, number, uid) for uid, time in times.items() if (time, uid) > (arrived, last)]
    kinds = [("arrived", np.float64), ("folder", np.int32), ("uid", np.int64)]
    return np.sort(np.array(rows, kinds), order=["arrived", "folder", "uid"])


def _labelled_mails(
    box: Connection, folder: str, uids: Sequence[int], outcome: str, junk: str
) -> list[tuple[int, LabelledMail]]:
    """Mails of a folder with their label, by UID."""
    box.open(folder)
    keys = {uid: key for some in box.keys(uids) for uid, key in some.items()}
    found = (pair for mails in box.mails([*keys]) for pair in mails.items())
    return [(uid, LabelledMail(mail, keys[uid], outcome, uid if folder == junk else 0)) for uid, mail in found]
