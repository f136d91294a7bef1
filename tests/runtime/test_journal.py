"""The journal: what was learned after a checkpoint comes back, in order and once."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from journals import Learner, again, close_all, journal_at

from stream_pegasos.features.message import Fields
from stream_pegasos.runtime import journal as module
from stream_pegasos.runtime.active_learning import Waiting

ENTRIES = [
    ("win a prize", "spam", 1.0, "m1"),
    ("\ud800 \n 😀", -(2**70), 0.1 + 0.2, 2**63),
    ("", True, 1e30, None),
    (Fields(subject="wheat", size=7), ("grain", "wheat", 3), 1.0, ""),
]


def files(path):
    return sorted(file.name.rpartition("-")[2] for file in path.iterdir())


def test_what_was_learned_comes_back(tmp_path):
    journal = journal_at(tmp_path)
    assert files(tmp_path) == []  # until there is something
    journal.learn(ENTRIES[:1])
    journal.learn([])
    journal.learn(ENTRIES[1:])
    entries, other = again(tmp_path)
    assert entries == ENTRIES and type(entries[2][1]) is bool
    other.learn(ENTRIES[:1])  # which goes on in another file
    assert again(tmp_path)[0] == [*ENTRIES, ENTRIES[0]] and files(tmp_path) == ["0", "1"]
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_a_line_that_is_cut_off_was_never_answered(tmp_path):
    journal = journal_at(tmp_path)
    for entry in ENTRIES[:3]:
        journal.learn([entry])
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    last = len(whole) - whole[:-1].rindex(b"\n") - 1
    for n in range(1, last + 1):
        told = []
        file.write_bytes(whole[:-n])
        assert (again(tmp_path, told=told)[0], told) == (ENTRIES[:2], [])
    file.write_bytes(whole.replace(b"prize", b"price"))
    assert again(tmp_path, told=told)[0] == ENTRIES[1:3]
    assert told == [f"{file}: line 1 is damaged and lost"]


def test_a_checkpoint_begins_a_file_with_what_is_at_work(tmp_path):
    journal = journal_at(tmp_path)
    positions = [None]
    for entry in ENTRIES:
        journal.learn([entry, entry, entry])
        journal.commit(1)
        positions.append(journal.rotate())
        journal.commit(1)
    journal.abort()
    triples = [entry for entry in ENTRIES for _ in range(3)][:-1]
    for n, position in enumerate(positions):  # any of them may be the newest that is whole
        assert again(tmp_path, position)[0] == triples[max(0, 3 * n - 2) :]
    journal.written(positions[1])
    assert files(tmp_path) == ["0", "1", "2", "3", "4"]
    journal.written(positions[3])
    assert files(tmp_path) == ["1", "2", "3", "4"]  # those that the checkpoint before needs, too
    journal.written(positions[4])
    assert files(tmp_path) == ["3", "4"]


def test_learning_that_fails_takes_the_rest_out(tmp_path):
    journal = journal_at(tmp_path)
    for n_done in (0, 2):
        journal.learn(ENTRIES)
        journal.commit(n_done)
        journal.abort()
    journal.learn(ENTRIES[:1])
    journal.commit(1)
    journal.abort()
    assert again(tmp_path)[0] == [*ENTRIES[:2], ENTRIES[0]]


def test_labels_that_wait_come_back(tmp_path):
    journal = journal_at(tmp_path)
    messages = [Waiting(number, f"text {number}", origin=f"id {number}") for number in range(1, 5)]
    for message in messages:
        journal.given(message, ("a", "b"))
    journal.taken_back(messages[0])
    journal.taken_back(messages[0])
    position = journal.rotate()
    journal.learn([(messages[1].x, "c", 1.0, None)], [2])
    for where in (None, position):
        entries, other = again(tmp_path, where)
        assert entries == [("text 2", "c", 1.0, None)]
        assert other.waiting == {n: (f"text {n}", ("a", "b"), 1.0, f"id {n}") for n in (3, 4)}


def test_what_may_be_lost_in_a_power_cut_is_not_told(tmp_path, monkeypatch):
    journal = journal_at(tmp_path, safe=True)
    journal.learn(ENTRIES[:1])
    journal.sync()
    assert journal.n_synced == journal.n_written == 1
    journal.learn(ENTRIES[1:2])
    journal.commit(1)

    def fail(file):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output"):
            journal.sync()
    for call in (journal.sync, lambda: journal.learn(ENTRIES[2:])):  # also once the disk works
        with pytest.raises(OSError, match="after the next checkpoint"):
            call()
    assert journal.n_synced == 1
    position = journal.rotate()
    with pytest.raises(OSError, match="after the next checkpoint"):
        journal.learn(ENTRIES[2:])
    journal.written(position)
    journal.learn(ENTRIES[2:])
    journal.sync()
    assert again(tmp_path, position)[0] == ENTRIES[2:]


def test_the_journal_of_another_checkpoint_is_refused(tmp_path):
    journal = journal_at(tmp_path)
    position = journal.rotate()
    journal.learn(ENTRIES)
    for other in (None, ["00000000", 1]):
        with pytest.raises(ValueError, match="of another checkpoint"):
            again(tmp_path, other)
    for other in (3, [], ["a"], ["a", "b"], "ab"):
        with pytest.raises(ValueError, match="a position in a journal must"):
            again(tmp_path, other)
    assert again(tmp_path, position)[0] == ENTRIES


@pytest.mark.parametrize(("begun_with", "other"), [("the model a", "the model b"), ("the model a", "a new model")])
def test_a_journal_without_a_checkpoint_asks_for_its_model(tmp_path, begun_with, other):
    """As another one may refuse what it learned, or not know what it knew."""
    for mine, others in ((begun_with, other), (other, begun_with)):
        path = tmp_path / mine
        path.mkdir()
        journal = journal_at(path, begun_with=mine)
        journal.learn(ENTRIES[:1])
        (file,) = path.iterdir()
        file.write_bytes(file.read_bytes()[:-1])  # a record that is cut off tells nothing
        for number in range(2):
            again = journal_at(path, begun_with=mine)
            assert [*again.entries(None)][-1] == ENTRIES[:number]
            again.learn(ENTRIES[:1])
            with pytest.raises(ValueError, match=f"begun with {mine}, not with {others}, and has no checkpoint"):
                [*journal_at(path, begun_with=others).entries(None)]
        again.commit(1)
        position = again.rotate()
        assert [*journal_at(path, begun_with=others).entries(position)] == [[]]


class Disk:
    """Fails so many system calls of a journal, from one of them on."""

    def __init__(self, first, n):
        self.n_calls, self.failing = 0, range(first, first + n)
        self.os = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if name[0] != "_"})
        for name in ("open", "close", "dup"):
            setattr(self.os, name, self.counted(getattr(os, name)))
        self.os.fsync = self.counted(lambda file: None)
        self.os.fdopen = lambda *arguments, **options: File(self, os.fdopen(*arguments, **options))
        unlink = self.counted(Path.unlink)
        self.unlink = lambda path, missing_ok=False: unlink(path, missing_ok)  # a function becomes a method

    def fail(self):
        self.n_calls += 1
        if self.n_calls - 1 in self.failing:
            raise OSError(errno.EIO, "Input/output error")

    def counted(self, call):
        def counted(*arguments, **options):
            try:
                self.fail()
            except OSError:
                if call is os.close:  # which lets go of the file nevertheless
                    os.close(*arguments)
                raise
            return call(*arguments, **options)

        return counted


class File:
    """A file of which half of a record may be written."""

    def __init__(self, disk, file):
        self.disk, self.file = disk, file
        self.seek, self.truncate, self.fileno = disk.counted(file.seek), disk.counted(file.truncate), file.fileno

    def write(self, data):
        try:
            self.disk.fail()
        except OSError:
            self.file.write(data[: len(data) // 2])
            raise
        return self.file.write(data[: len(data) // 2 + 1])

    def close(self):
        self.file.close()
        self.disk.fail()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


STEPS = [
    lambda it: it.learn("ab"),
    lambda it: it.give(1),
    lambda it: it.give(2),
    lambda it: it.give(3),
    lambda it: it.take_back(2),
    lambda it: it.learn("cde", snapshot_after=0),  # which begins a file with labels and with what is at work
    lambda it: it.learn(["of 1"], number=1),
    lambda it: it.learn("fgh", fails_after=1),
    lambda it: it.learn("gi"),
    lambda it: it.checkpoint(),
    lambda it: it.learn("j"),
    lambda it: it.checkpoint(),
]


@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.heavy)])
def test_a_system_call_that_fails_and_a_kill_lose_and_repeat_nothing(tmp_path, monkeypatch, n):
    """Whichever call it is; whoever was told of a failure tries again."""
    first, n_calls = 0, 1
    while first < n_calls:
        path = tmp_path / f"{first}"
        path.mkdir()
        disk, learner = Disk(first, n), Learner(path)
        for step in STEPS:
            with monkeypatch.context() as patch:
                patch.setattr(module, "os", disk.os)
                patch.setattr(Path, "unlink", disk.unlink)
                for _ in range(n + 5):
                    try:
                        step(learner)
                        break
                    except OSError as error:
                        learner.check(path)
                        if "next checkpoint" in str(error):
                            with suppress(OSError):
                                learner.checkpoint()
            learner.check(path)
        assert learner.told == {*"abcdefghij", "of 1", "of 3"}
        close_all()
        n_calls = disk.n_calls
        first += 1
    assert n_calls > 50
