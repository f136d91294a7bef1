"""The memory of a mailbox, and the meaning of a mail's appearance in a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from stream_pegasos.common.checks import check_integer
from stream_pegasos.common.errors import must_be
from stream_pegasos.runtime.learned_ids import IdMemory
from stream_pegasos.runtime.recent import Recent

__all__ = [
    "HAM_FOLDER",
    "INBOX",
    "JUDGE",
    "JUNK",
    "LEARN_HAM",
    "LEARN_SPAM",
    "NOTHING",
    "Event",
    "Known",
    "Memory",
    "add_ids",
]

# The roles of folders.
INBOX, JUNK, HAM_FOLDER = "inbox", "junk", "ham folder"
# The actions for a mail that appears in a folder.
NOTHING, JUDGE, LEARN_SPAM, LEARN_HAM = "nothing", "judge", "learn spam", "learn ham"

UNREADABLE = "the memory of the mailbox cannot be read"

Event = list[Any]  # the kind of the event and its arguments, as JSON: see `Memory.apply`


class Known(NamedTuple):
    """Whether the mail is in Junk, put there by the filter or a person, or was learned as spam, and has not come back;
    and its number in Junk, 0 if it was never seen there.
    """

    is_junk: bool
    uid: int = 0


class Memory:
    """The memory of a mailbox, bounded to the `window` newest mails.

    It changes only by events, and an event may be applied twice. So the events of a journal restore it after a kill.
    """

    name = "imap"

    def __init__(self, window: int = 100_000) -> None:
        check_integer("window", window, 1, 100_000_000)
        self.owner: str | None = None  # of the mailbox; `None` before the first event
        self.mails: Recent[str, Known] = Recent(window)  # by the key, which is the same in all folders
        self.folders: dict[str, tuple[int, int]] = {}  # UIDVALIDITY of each, and its next UID to look at
        self.pending: dict[int, str] = {}  # keys by UID, of spam in the inbox that will be moved or flagged
        self.training: dict[str, Any] = {}  # the progress of learning folders: see `learn_folders`

    @property
    def window(self) -> int:
        return self.mails.window

    def asks(self, role: str, key: str, stood_there: bool = False) -> str:
        """The action for a mail that appears in a folder with this role. With `stood_there` it may have been there
        before, e.g. if the folder is looked at for the first time.
        """
        mail = self.mails.get(key)
        if mail is None:
            if stood_there or role == HAM_FOLDER:
                return NOTHING
            return JUDGE if role == INBOX else LEARN_SPAM
        if role == JUNK:
            return NOTHING if mail.is_junk else LEARN_SPAM
        return LEARN_HAM if mail.is_junk else NOTHING

    def id_of(self, event: Event, learned_ids: IdMemory) -> str:
        """The id of the mail that is learned with an event. In old journals, and in old files with known ids, it is the
        mail's key.
        """
        _, key, _, _, _, *more = event
        id = more[0] if more else key
        is_new, is_new_by_key = learned_ids.are_new([id, key])
        return str(key if is_new and not is_new_by_key else id)

    def apply(self, event: Event) -> None:
        """Apply an event: one of the kinds below, with its arguments."""
        match event:
            case "owned", owner:  # the folders of another account are dropped
                if owner != self.owner:
                    self.owner, self.folders, self.pending, self.training = owner, {}, {}, {}
                    self.mails.update((key, mail._replace(uid=0)) for key, mail in [*self.mails.items()])
            case "know", key, is_junk, _, uid, *_:  # with a label, and the `mail_id`, if it is learned
                self.mails[key] = Known(is_junk, uid)
                self.mails.move_to_end(key)
            case "looked", folder, uidvalidity, uid:  # up to the mail before this UID
                self.folders[folder] = (uidvalidity, uid)
            case "intend", uid, key:  # to move or flag a mail of the inbox
                self.pending[uid] = key
            case "settle", uid:  # it was moved or flagged, or stays
                self.pending.pop(uid, None)
            case "trained", folder, state:
                self.training[folder] = state
            case _:
                raise ValueError(must_be("an event of a mailbox", "a kind with its parts", event))

    def get_state(self) -> str:
        """The state, as JSON."""
        mails = [[key, *mail] for key, mail in self.mails.items()]
        return json.dumps([self.owner, mails, self.folders, [*self.pending.items()], self.training])

    def set_state(self, state: object) -> None:
        """Restore the state from `get_state`; a ValueError if it is not valid."""
        try:
            owner, mails, folders, pending, training, *_ = json.loads(state if isinstance(state, str) else "")
            self.owner = None if owner is None else str(owner)
            known_mails = ((str(key), Known(bool(junk), int(uid))) for key, junk, *_, uid in mails)
            self.mails = Recent(self.window, known_mails)
            self.folders = {str(name): (int(validity), int(uid)) for name, (validity, uid) in folders.items()}
            self.pending = {int(uid): str(key) for uid, key in pending}
            self.training = dict(training)
        except (AttributeError, TypeError, ValueError, RecursionError):
            raise ValueError(UNREADABLE) from None

    def junk_uids(self, keys: Iterable[str]) -> dict[str, int]:
        """The numbers in Junk of those mails that were seen there."""
        return {key: self.mails[key].uid for key in keys if key in self.mails and self.mails[key].uid}


def add_ids(progress: dict[str, Any], window: int) -> dict[str, Any]:
    """The progress of a checkpoint, with the ids of the learned mails beside the memory; in older versions their labels
    were in the memory. A ValueError if it cannot be read.
    """
    if "ids" in progress:
        return progress
    try:
        _, mails, _, _, _, *more = json.loads(progress["imap"])
        (labels,) = more or [[(key, label) for key, _, label, _ in mails if label]]
        learned_ids = IdMemory(window)
        learned_ids.add([str(id) for id, _ in labels], [str(label) for _, label in labels])
    except (TypeError, ValueError, RecursionError):
        raise ValueError(UNREADABLE) from None
    return {**progress, "ids": json.dumps(learned_ids.ids()), "labels_of_ids": json.dumps(learned_ids.digests())}
