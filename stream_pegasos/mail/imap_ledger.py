"""A model and the memory of a mailbox in one checkpoint, with a journal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.mail.imap_memory import Event, Memory, add_ids
from stream_pegasos.mail.verdict import SPAM, Verdicts, make_message
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.durable_learning import DurableLearning, noted
from stream_pegasos.runtime.journal import Entry
from stream_pegasos.streams import Answer

__all__ = ["LabelledMail", "Ledger"]

# Checkpoints are rarely needed: the journal has everything since the newest one.
CHECKPOINT_EVERY, CHECKPOINT_SECONDS = 2_000, 15 * 60.0


class LabelledMail(NamedTuple):
    """A mail, its key, its label, `"spam"` or `"ham"`, its UID in Junk if it is there, and whether it is in the inbox,
    where a keyword may mark it as spam.
    """

    content: bytes
    key: str
    outcome: str
    uid: int = 0
    is_in_inbox: bool = False

    @property
    def event(self) -> Event:
        is_junk = self.outcome == SPAM and not self.is_in_inbox
        return ["know", self.key, is_junk, self.outcome, self.uid, mail_id(self.content)]


class Ledger:
    """The model and the memory of a mailbox, in one file, with a journal beside it.

    A record of the journal holds labelled mails and events before these are learned and applied; after a kill it
    restores both. Each mail is learned once, however the process ends: see `DurableLearning`. If `is_kept` is false,
    the model and the memory change only in this process.

    `model` makes the first model if there is no file yet; `vectors` is as for `load`. A ValueError if a file is
    damaged, or belongs to another command; an OSError if another process holds it.
    """

    def __init__(
        self,
        path: Path,
        model: Callable[[], TextClassifier],
        verdicts: Verdicts,
        window: int = 100_000,
        is_kept: bool = True,
        threads: int = 1,
        vectors: object = None,
        allow_gap: bool = False,
    ) -> None:
        self._path, self.memory = path, Memory(window)
        self._checkpoints = Checkpoints(path, CHECKPOINT_EVERY, CHECKPOINT_SECONDS, reads_only=not is_kept)
        self._checkpoints.claim()
        try:
            resumed = self._checkpoints.resume(vectors)
            first_model, progress = resumed or (model(), None)
            self.model = verdicts.check(first_model)
            if progress is not None:
                if not isinstance(progress, dict) or Memory.name not in progress:
                    advice = "give a copy that train MODEL --save … made"
                    raise ValueError(f"{path} is kept by another command; {advice}")
                progress = add_ids(progress, window)
            self.learning = DurableLearning(
                self.model,
                self._checkpoints,
                progress,
                notes=self.memory,
                id_window=window,
                sync=True,
                threads=threads,
                allow_gap=allow_gap,
            )
            self.learning.is_changed |= resumed is None
            self.learning.start()
        except BaseException:
            self._checkpoints.release()
            raise

    def record(self, events: Sequence[Event], labelled: Sequence[LabelledMail] = ()) -> list[Answer]:
        """Learn labelled mails, unless they were learned with this label before, and apply events. Return the answers
        to the mails. As with `DurableLearning.taking`, nothing is learned or applied if the journal cannot be written;
        if the model fails, the mails and events before the fault are learned and applied.
        """
        model = self.model
        mails: list[Entry] = [(make_message(mail.content, model), mail.outcome, 1.0, mail.event) for mail in labelled]
        try:
            answers = [*chain.from_iterable(self.learning.taking([*mails, *map(noted, events)]))]
        except EncoderAwayError:
            raise
        except OSError as error:
            raise OSError(f"cannot write the journal of {self._path}: {error.strerror or error}") from None
        if not any(answer.learned for answer in answers):
            self._checkpoints.count(1)
        return answers

    def close(self) -> None:
        """Write a last checkpoint if anything is new, and release the lock; an OSError if it could not be written."""
        self.learning.close(last=self.learning.is_changed or self._checkpoints.error is not None)
