"""A filter of an IMAP mailbox: it moves or flags spam, and learns from mails that people move into or out of Junk."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic

from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.common.display import printable
from stream_pegasos.mail.imap_connection import (
    CopiedError,
    ImapConnection,
    RefusedError,
    in_batches,
    warn_of_undelivered,
)
from stream_pegasos.mail.imap_ledger import LabelledMail, Ledger
from stream_pegasos.mail.imap_memory import HAM_FOLDER, INBOX, JUDGE, JUNK, LEARN_HAM, LEARN_SPAM, NOTHING, Event, Known
from stream_pegasos.mail.verdict import HAM, SPAM, Verdict, Verdicts, make_message
from stream_pegasos.mail_text.parts import mail_parts

__all__ = ["MailboxFilter", "MailboxPlan"]

log = logging.getLogger(__name__)

ONE_DAY = timedelta(days=1)
LONGEST_SUBJECT = 60
MOST_WARNED = 100
OLD = "old mails"  # a key of `Memory.training`: keys of mails that the first look found in the inbox
COPIES = "copies"  # another: mails with a copy in Junk: folder, UIDVALIDITY, UID and key of each
UNDELIVERED = "undelivered"  # another: mails that the server could not deliver: folder, UIDVALIDITY, UID
FLAGS = "flags"  # the UIDVALIDITY of the inbox, and its UIDs with a keyword of spam, and with one of ham
MOST_NOTED = 1_000  # entries of each of these lists
NEWEST_FLAGGED = 10_000  # UIDs of the inbox whose keywords are checked
# Keywords of mail programs for spam and ham: the registered ones, and Thunderbird's.
OF_SPAM, OF_HAM = ("$Junk", "Junk"), ("$NotJunk", "NonJunk")
SECONDS_TO_RETRY = 60.0
NEW_MAILS = "INBOX"  # the name of the folder for new mails in RFC 3501
DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class MailboxPlan:
    """The folders to look at, and the actions."""

    junk: str = "Junk"
    ham_folders: tuple[str, ...] = ()  # other folders into which people move mails that are not spam
    moves: bool = True  # whether spam is moved to Junk; if not, it is flagged in its folder
    acts: bool = True  # whether to change anything on the server; if not, actions are only logged
    backlog: bool = False  # whether to judge also the mails that are already in the inbox


class MailboxFilter:
    """Looks at a mailbox: it judges new mails by the model, and learns the mails that people moved.

    A look finds new mails by their numbers (UID) in a folder, and moved mails by their keys, which a move does not
    change. Each action is recorded before it is done. So a look may end at any moment, and the next one continues
    there. Actions on mails are logged, and each kind of error once.
    """

    def __init__(self, ledger: Ledger, verdicts: Verdicts, plan: MailboxPlan) -> None:
        self.ledger, self.plan, self._verdicts = ledger, plan, verdicts
        self.counts: Counter[str] = Counter()
        self._warned: set[str] = set()
        self._shown: dict[int, str] = {}  # log texts of pending mails
        self._backlog = plan.backlog
        self._next_try = 0.0  # for undelivered mails, by the monotonic clock

    def begin(self, box: ImapConnection) -> None:
        """Record the mails in folders that are new to the memory, and create Junk if it is missing."""
        plan, memory = self.plan, self.ledger.memory
        if "since" not in memory.training:
            self.ledger.record([["trained", "since", (datetime.now(UTC) - ONE_DAY).timestamp()]])
        if not box.has_folder(plan.junk):
            self._make_junk(box)
        for folder, role in self._folders():
            if folder not in memory.folders:
                self._look_at(box, folder, role)
        if self._backlog:
            uidvalidity, _ = box.open(NEW_MAILS)
            self.ledger.record([["looked", NEW_MAILS, uidvalidity, 1]])

    def look(self, box: ImapConnection) -> int:
        """Look once, and return the number of new mails."""
        n, memory = 0, self.ledger.memory
        for folder, role in self._folders():
            if role == INBOX and memory.pending:
                # If the inbox has new numbers, the pending mails are settled once they are found again.
                uidvalidity, _ = box.open(folder, self.plan.acts)
                if memory.folders[folder][0] == uidvalidity:
                    self._settle(box)
            n += self._look_at(box, folder, role)
        self._look_at_copies(box)
        if not self.plan.moves:
            self._look_at_flags(box)
        if monotonic() >= self._next_try:
            self._look_at_undelivered(box)
            self._next_try = monotonic() + SECONDS_TO_RETRY
        self._backlog = False
        return n

    def _folders(self) -> list[tuple[str, str]]:
        """The folders and their roles. Junk is first, so that a mail that leaves it is known."""
        plan = self.plan
        return [(plan.junk, JUNK), *((name, HAM_FOLDER) for name in plan.ham_folders), (NEW_MAILS, INBOX)]

    def _make_junk(self, box: ImapConnection) -> None:
        if self.plan.acts:
            box.create_folder(self.plan.junk)
            log.warning("made the folder %s", self.plan.junk)

    def _look_at(self, box: ImapConnection, folder: str, role: str) -> int:
        memory = self.ledger.memory
        try:
            if role != INBOX and folder in memory.folders and box.status(folder) == memory.folders[folder]:
                return 0
            uidvalidity, uidnext = box.open(folder, role == INBOX and self.plan.acts)
        except RefusedError as error:
            if role == INBOX:
                raise
            self._warn_once(f"cannot open {folder}: {error}")
            if role == JUNK and not box.has_folder(folder):
                self._make_junk(box)
            return 0
        before = memory.folders.get(folder)
        is_known = before is not None and before[0] == uidvalidity
        first = before[1] if before is not None and is_known else 1
        if is_known and first == uidnext:
            return 0
        uids = box.uids(first)
        end = max(uidnext, first, uids[-1] + 1 if uids else 1)
        if not is_known:
            # The keys of existing mails are needed only if they may show a move.
            known_uids = uids[-max(1, memory.window // 2) :] if role == JUNK or before is not None else []
            if role == INBOX and before is None:
                self._note_old(box)
            elif role == INBOX:
                self._park()
            self._meet(box, folder, role, known_uids, None, before is not None)
            self.ledger.record([["looked", folder, uidvalidity, end]])
            if role == INBOX:
                self._settle(box)
            return 0
        self._meet(box, folder, role, uids, uidvalidity)
        if memory.folders[folder] != (uidvalidity, end):
            self.ledger.record([["looked", folder, uidvalidity, end]])
        return len(uids)

    def _note_old(self, box: ImapConnection) -> None:
        """Note the mails of the first day in the inbox at the first look: their day is also that of new ones."""
        recent = box.uids(since=self._start)[-self.ledger.memory.window :]
        self.ledger.record([["trained", OLD, [key for keys in box.keys(recent) for key in keys.values()]]])

    def _park(self) -> None:
        """Give pending mails numbers that no mail has, because the inbox has new numbers, which may coincide."""
        for uid, key in [*self.ledger.memory.pending.items()]:
            if uid > 0:
                self.ledger.record([["settle", uid], ["intend", -uid, key]])

    @property
    def _start(self) -> datetime:
        return datetime.fromtimestamp(float(self.ledger.memory.training["since"]), UTC)

    def _meet(
        self,
        box: ImapConnection,
        folder: str,
        role: str,
        uids: Sequence[int],
        uidvalidity: int | None,
        was_looked_at: bool = True,
    ) -> None:
        """Handle mails that appear in a folder.

        Without a UIDVALIDITY they may have been there before. If the folder was looked at with other numbers, an
        unknown mail has arrived since, unless the memory is so full that some mails may be forgotten.
        """
        memory = self.ledger.memory
        is_numbered_anew = uidvalidity is None and was_looked_at
        stood_there = uidvalidity is None and not (was_looked_at and len(memory.mails) < memory.window // 2)
        old = {*memory.training.get(OLD, ())} if is_numbered_anew and role == INBOX else set()
        for keys in box.keys(uids):
            steps: dict[int, str] = {}
            events: list[Event] = []
            pending_uids = {key: uid for uid, key in memory.pending.items()} if role == INBOX else {}
            for uid, key in keys.items():
                step = memory.asks(role, key, stood_there or key in old)
                if key in pending_uids:  # its number is new, because the inbox was created again
                    events += [["settle", pending_uids[key]], ["intend", uid, key]] if uid != pending_uids[key] else []
                elif step != NOTHING:
                    steps[uid] = step
                elif role == JUNK:
                    events.append(["know", key, True, "", uid])
                elif role == HAM_FOLDER or key in memory.mails:
                    mail_known = memory.mails.get(key, Known(False))
                    events.append(["know", key, mail_known.is_junk, "", mail_known.uid])
            self._drop_copies(box, folder, keys, steps)
            if role == INBOX:
                too_old = self._drop_old(box, keys, steps)
                events += [] if is_numbered_anew else too_old  # existing mails would displace remembered ones
            if events:
                self.ledger.record(events)
            for batch in in_batches(steps, 100):
                for mails in box.mails(batch):
                    self._take(role, {uid: (steps[uid], keys[uid], mail) for uid, mail in mails.items()})
            if uidvalidity is not None and keys:
                self.ledger.record([["looked", folder, uidvalidity, max(memory.folders[folder][1], max(keys) + 1)]])
                if role == INBOX:
                    self._settle(box)
        self._note_undelivered(box, folder, uidvalidity, uids)

    def _look_at_flags(self, box: ImapConnection) -> None:
        """Learn mails of the inbox if a person set a keyword of spam or ham, or removed that of spam."""
        uidvalidity, _ = self._open(box, NEW_MAILS)
        first = self.ledger.memory.folders[NEW_MAILS][1] - NEWEST_FLAGGED
        try:
            spam, ham = ({uid for uid in box.search_keywords(*words) if uid >= first} for words in (OF_SPAM, OF_HAM))
        except RefusedError as error:
            self._warn_once(f"keywords in {NEW_MAILS} cannot be looked at: {error}")
            return
        before = self.ledger.memory.training.get(FLAGS)
        if before is not None and before[0] == uidvalidity:
            spam_before, ham_before = ({uid for uid in uids if uid >= first} for uids in before[1:])
            now_spam, now_ham = spam - spam_before, ham - ham_before
            no_more = box.there(spam_before - spam)
            steps = dict.fromkeys(now_spam - now_ham, LEARN_SPAM)
            steps |= dict.fromkeys((now_ham | no_more) - now_spam, LEARN_HAM)
            for keys in box.keys(sorted(steps)):
                for mails in box.mails([*keys]):
                    self._take(INBOX, {uid: (steps[uid], keys[uid], mail) for uid, mail in mails.items()})
        now = [uidvalidity, sorted(spam), sorted(ham)]
        if now != before:
            self.ledger.record([["trained", FLAGS, now]])

    def _note_undelivered(self, box: ImapConnection, folder: str, uidvalidity: int | None, uids: Sequence[int]) -> None:
        """Report each mail that was not delivered, once, and note it, unless it may be older."""
        before, uids_looked_at = self.ledger.memory.training.get(UNDELIVERED, []), {*uids}
        now = [
            entry
            for entry in before
            if entry[0] != folder or (entry[1] == uidvalidity and entry[2] not in uids_looked_at)
        ]
        for uid in [uid for uid in uids if (folder, uid) in box.undelivered]:
            if [folder, uidvalidity, uid] not in before:
                warn_of_undelivered(box, folder, uid)
            now += [[folder, uidvalidity, uid]] if uidvalidity is not None else []
        if now != before:
            self.ledger.record([["trained", UNDELIVERED, now[-MOST_NOTED:]]])

    def _look_at_undelivered(self, box: ImapConnection) -> None:
        """Request mails again that the server could not deliver."""
        memory, roles = self.ledger.memory, dict(self._folders())
        noted = memory.training.get(UNDELIVERED, ())
        for folder in dict.fromkeys(folder for folder, _, _ in noted if folder in roles):
            uidvalidity = self._uidvalidity(box, folder)
            uids = [uid for *place, uid in noted if place == [folder, uidvalidity]]
            for uid in uids:
                box.undelivered.pop((folder, uid), None)
            if uidvalidity is not None and memory.folders.get(folder, (0,))[0] == uidvalidity:
                self._meet(box, folder, roles[folder], sorted(box.there(uids)), uidvalidity)
                self._note_undelivered(box, folder, uidvalidity, uids)

    def _drop_copies(self, box: ImapConnection, folder: str, keys: dict[int, str], steps: dict[int, str]) -> None:
        """Do not learn mails that are also still in Junk: they were not moved out of it. This may happen, because many
        programs move a mail by a copy.
        """
        back = {uid: keys[uid] for uid, step in steps.items() if step == LEARN_HAM}
        if not back:
            return
        copies = self._in_junk(box, back.values())
        uidvalidity, _ = self._open(box, folder)
        dropped = {uid: key for uid, key in back.items() if key in copies}
        for uid in dropped:
            del steps[uid]
        if not dropped:
            return
        new = ([folder, uidvalidity, uid, key] for uid, key in dropped.items())
        all_copies = [*self.ledger.memory.training.get(COPIES, ()), *new]
        self.ledger.record([["trained", COPIES, all_copies[-MOST_NOTED:]]])

    def _look_at_copies(self, box: ImapConnection) -> None:
        """Learn copies of mails that have since left Junk."""
        memory = self.ledger.memory
        copies = [copy for copy in memory.training.get(COPIES, ()) if memory.mails.get(copy[3], Known(False)).is_junk]
        if not copies:
            return
        try:
            still = self._in_junk(box, [key for *_, key in copies])
        except RefusedError:  # Junk is missing, and this was reported
            return
        roles = dict(self._folders())
        for folder in {folder: None for folder, _, _, key in copies if key not in still and folder in roles}:
            uidvalidity = self._uidvalidity(box, folder)
            missing_keys = {
                uid: key for *place, uid, key in copies if place == [folder, uidvalidity] and key not in still
            }
            for keys in box.keys([*missing_keys]):
                back = [uid for uid in box.there(keys) if keys[uid] == missing_keys[uid]]
                for mails in box.mails(back):
                    self._take(
                        roles[folder], {uid: (LEARN_HAM, missing_keys[uid], mail) for uid, mail in mails.items()}
                    )
        remaining_copies = [copy for copy in copies if copy[3] in still]
        if remaining_copies != memory.training[COPIES]:
            self.ledger.record([["trained", COPIES, remaining_copies]])

    def _in_junk(self, box: ImapConnection, keys: Iterable[str]) -> set[str]:
        """The mails among these that are still at their known numbers in Junk; Junk is then the open folder."""
        numbers = self.ledger.memory.junk_uids(keys)
        if not numbers:
            return set()
        box.open(self.plan.junk)
        still = box.there(numbers.values())
        return {key for key, uid in numbers.items() if uid in still}

    def _open(self, box: ImapConnection, folder: str) -> tuple[int, int]:
        return box.open(folder, folder == NEW_MAILS and self.plan.acts)

    def _uidvalidity(self, box: ImapConnection, folder: str) -> int | None:
        """The UIDVALIDITY of a folder, which is then open; `None` if it is missing, which `_look_at` reports."""
        try:
            return self._open(box, folder)[0]
        except RefusedError:
            return None

    def _drop_old(self, box: ImapConnection, keys: dict[int, str], steps: dict[int, str]) -> list[Event]:
        """Do not judge mails that arrived before the first start and were moved into the inbox only now."""
        judged = [uid for uid, step in steps.items() if step == JUDGE]
        if not judged or self._backlog:
            return []
        new = set(box.uids(min(judged), since=self._start))
        old = [uid for uid in judged if uid not in new]
        for uid in old:
            del steps[uid]
        return [["know", keys[uid], False, "", 0] for uid in old]

    def _take(self, role: str, mails: dict[int, tuple[str, str, bytes]]) -> None:
        """Judge and learn the fetched mails."""
        labelled, events = list[LabelledMail](), list[Event]()
        for uid, (step, key, mail) in mails.items():
            if step != JUDGE:
                label = HAM if step == LEARN_HAM else SPAM
                labelled.append(LabelledMail(mail, key, label, uid if role == JUNK else 0, role == INBOX))
        judged = {uid: (key, mail) for uid, (step, key, mail) in mails.items() if step == JUDGE}
        for (uid, (key, mail)), verdict in zip(judged.items(), self._judge([*judged.values()]), strict=True):
            events.append(["know", key, verdict.is_spam and self.plan.moves, "", 0])
            if verdict.is_spam:
                events.append(["intend", uid, key])
                self._shown[uid] = f"{verdict.outcome} {verdict.probability:.3f} {shown_subject(mail)}"
        answers = self.ledger.record(events, labelled)
        self.counts["judged"] += len(judged)
        for labelled_mail, answer in zip(labelled, answers, strict=True):
            if answer.learned:
                outcome = f"{'' if self.plan.acts else 'would be '}{'corrected' if answer.correction else 'learned'}"
                log.info(f"{outcome}: {labelled_mail.outcome} {shown_subject(labelled_mail.content)}")

    def _judge(self, mails: Sequence[tuple[str, bytes]]) -> list[Verdict]:
        if not mails:
            return []
        model = self.ledger.model
        block = predict_block(model, [make_message(mail, model) for _, mail in mails], [])
        return [self._verdicts.of(model, answer) for answer in block.answers()]

    def _settle(self, box: ImapConnection) -> None:
        """Move or flag the pending mails of the open inbox, also those from before a kill."""
        memory, plan = self.ledger.memory, self.plan
        if not memory.pending:
            return
        verb = "moved" if plan.moves else "flagged"
        if not plan.acts:
            for uid in [*memory.pending]:
                log.info(f"would be {verb}: {self._shown.pop(uid, 'spam')}")
                self.counts[verb] += 1
                self.ledger.record([["settle", uid]])
            return
        self.ledger.learning.journal.sync()
        pending = [*memory.pending.items()]
        numbers = [uid for uid in memory.pending if uid > 0]  # others were not found again
        keys = {uid: key for keys_of_part in box.keys(numbers) for uid, key in keys_of_part.items()}
        present = box.there(numbers)  # without mails deleted since
        for uid, key in pending:
            shown, events = self._shown.pop(uid, "spam"), list[Event]([["settle", uid]])
            has_copy = bool(memory.junk_uids([key]))  # it was copied there before a kill
            if keys.get(uid) == key and (uid in present or has_copy):
                try:
                    self._act(box, uid, has_copy)
                    events += self._own_flag(uid)
                    self.counts[verb] += 1
                    log.info(f"{verb}: {shown}")
                except RefusedError as error:
                    self.counts["refused"] += 1
                    self._warn_once(f"a mail cannot be {verb}, and stays: {error}")
                    # A copy that is then in Junk is our own.
                    is_there = has_copy or isinstance(error, CopiedError)
                    events.append(["know", key, is_there, "", 0])
            self.ledger.record(events)

    def _own_flag(self, uid: int) -> list[Event]:
        """Note our own keyword, which teaches nothing."""
        uidvalidity, spam, ham = self.ledger.memory.training.get(FLAGS, (0, [], []))
        is_noted = not self.plan.moves and uidvalidity == self.ledger.memory.folders[NEW_MAILS][0]
        return [["trained", FLAGS, [uidvalidity, [*spam, uid], ham]]] if is_noted else []

    def _act(self, box: ImapConnection, uid: int, has_copy: bool) -> None:
        if not self.plan.moves:
            box.flag(uid)
        elif has_copy:
            box.remove(uid)
        else:
            box.move(uid, self.plan.junk)

    def _warn_once(self, text: str) -> None:
        kind = DIGITS.sub("", text)  # some servers report the time it took
        if kind not in self._warned and len(self._warned) < MOST_WARNED:
            self._warned.add(kind)
            log.warning(text)


def shown_subject(mail: bytes) -> str:
    """The subject of a mail for a terminal: short, and without control characters."""
    return f"'{printable(' '.join(mail_parts(mail).subject.split()), LONGEST_SUBJECT, ' ')}'"
