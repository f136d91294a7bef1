"""Journals of a test, closed at its end, and what a service does with one."""

from contextlib import closing, suppress
from threading import Lock

from hearing import Heard

from stream_pegasos.runtime.active_learning import Waiting
from stream_pegasos.runtime.journal import Journal

opened = []


def journal_at(path, **options):
    opened.append(Journal(path / "model", Lock(), **options))
    return opened[-1]


def again(path, position=None, told=None):
    journal, heard = journal_at(path), Heard()
    with closing(heard):
        entries = [entry for entries in journal.entries(position) for entry in entries]
    if told is not None:
        told += heard.messages
    return entries, journal


def close_all():
    while opened:
        with suppress(OSError):
            opened.pop().close()


class Learner:
    """What a service does with its journal; its model is the list of what it has learned."""

    def __init__(self, path):
        self.journal, self.learned, self.told, self.given = journal_at(path, safe=True), [], set(), {}
        self.checkpoints = [(None, [])]

    def learn(self, ids, number=None, fails_after=None, snapshot_after=None):
        new = [id for id in ids if id not in self.learned]
        if new:
            self.journal.learn([(id, "a", 1.0, id) for id in new], [] if number is None else [number])
        try:
            for i, id in enumerate(new):
                if i == fails_after:
                    raise OSError("the learner fails")
                self.learned.append(id)
                self.journal.commit(1)
                if i == snapshot_after:
                    with suppress(OSError):  # in another thread
                        self.checkpoint()
        except OSError:
            with suppress(OSError):
                self.journal.abort()
            raise
        self.given.pop(number, None)
        self.journal.sync()
        self.told |= {*ids}

    def give(self, number):
        if number not in self.given:
            self.journal.given(Waiting(number, f"of {number}", origin=f"of {number}"), "a")
            self.given[number] = f"of {number}"
        self.journal.sync()
        self.told.add(f"of {number}")

    def take_back(self, number):
        self.told.discard(f"of {number}")  # it may be there, or not, until that is told
        if number in self.given:
            self.journal.taken_back(Waiting(number, f"of {number}"))
            del self.given[number]
        self.journal.sync()

    def checkpoint(self):
        position = self.journal.rotate()
        self.checkpoints.append((position, [*self.learned]))
        self.journal.written(position)

    def check(self, path):
        """After a kill now, from the newest checkpoint or the one before, whatever was told is there once."""
        for position, learned in self.checkpoints[-2:]:
            entries, other = again(path, position)
            found = [*learned, *(entry[0] for entry in entries), *(entry[0] for entry in other.waiting.values())]
            assert len(found) == len({*found}) and self.told <= {*found}
