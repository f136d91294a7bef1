"""The journal: what was learned after a checkpoint comes back, in order and once."""

import errno
import json
import os
import shutil
import zlib
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from threading import Lock
from types import SimpleNamespace

import pytest
from disks import Full
from hearing import Heard
from hypothesis import given
from hypothesis import strategies as st

from stream_pegasos.features.message import Fields
from stream_pegasos.operation import journal as module
from stream_pegasos.operation.active_learning import Waiting
from stream_pegasos.operation.journal import Journal

ENTRIES = [
    ("win a prize", "spam", 1.0, "m1"),
    ("\ud800 \n 😀", -(2**70), 0.1 + 0.2, 2**63),
    ("", True, 1e30, None),
    (Fields(subject="wheat", size=7), ("grain", "wheat", 3), 1.0, ""),
]


opened = []


@pytest.fixture(autouse=True)
def closed():
    yield
    while opened:
        opened.pop().close()


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
        with pytest.raises(ValueError, match="no position"):
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
            with pytest.raises(ValueError, match=f"begun with {mine}, not with {others}, and there is no checkpoint"):
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


@pytest.mark.parametrize("n", [1, 3])
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
        while opened:
            with suppress(OSError):
                opened.pop().close()
        n_calls = disk.n_calls
        first += 1
    assert n_calls > 50


# Copies and restored checkpoints ------------------------------------------------------------------


def file_of(path, number):
    (found,) = path.glob(f"model.journal-*-{number}")
    return found


def learned_by(journal, ids):
    journal.learn([(id, "a", 1.0, id) for id in ids])
    journal.commit(len(ids))


def checkpoint_of(journal):
    position = journal.rotate()
    journal.written(position)
    return position


def test_what_was_removed_or_not_copied_is_a_gap(tmp_path):
    """But a file of which nothing was written is none."""
    journal = journal_at(tmp_path)
    learned_by(journal, "ab")
    first = checkpoint_of(journal)
    checkpoint_of(journal)  # with nothing in between
    learned_by(journal, "c")
    file = file_of(tmp_path, 2)
    whole = file.read_bytes()
    assert [entry[0] for entry in again(tmp_path, first)[0]] == ["c"]
    learned_by(journal, "d")
    checkpoint_of(journal)
    learned_by(journal, "e")
    file.write_bytes(whole)  # as it was when it was copied
    with pytest.raises(ValueError, match=rf"lacks 1 record between {file.name} and .*-3: .*--allow-gap"):
        again(tmp_path, first)
    file.unlink()
    with pytest.raises(ValueError, match=r"lacks 2 records between model and .*-3"):
        again(tmp_path, first)
    with closing(Heard()) as heard:
        allowed = journal_at(tmp_path, allow_gap=True)
        assert [entry[0] for entries in allowed.entries(first) for entry in entries] == ["e"]
    assert [text.partition(": ")[2] for text in heard.messages] == [
        f"the journal lacks 2 records between model and {file_of(tmp_path, 3).name}; going on without"
    ]
    learned_by(allowed, "f")
    assert [entry[0] for entry in again(tmp_path, checkpoint_of(allowed))[0]] == []


def test_files_of_two_copies_do_not_go_on_from_each_other(tmp_path):
    journal = journal_at(tmp_path)
    learned_by(journal, "ab")
    position = checkpoint_of(journal)
    learned_by(journal, "c")
    shutil.copytree(tmp_path, tmp_path / "copy")
    learned_by(journal, "d")
    other = again(tmp_path / "copy", position)[1]
    learned_by(other, "e")
    shutil.copy(file_of(tmp_path / "copy", 2), tmp_path)
    with pytest.raises(ValueError, match="which is of another copy"):
        again(tmp_path, position)


def test_journals_of_earlier_versions_are_read(tmp_path):
    """Which had no numbers; what is written after them has."""
    records = [
        {"entries": [["a", "x", 1.0, 1], ["b", "x", 1.0, 2]], "is_rest": False, "resolved": []},
        {"entries": [["c", "x", 1.0, 3]], "is_rest": False, "resolved": [], "dropped": 1},
    ]
    rest = [{"entries": [["c", "x", 1.0, 3]], "is_rest": True}, {"labels": [[7, ["d", "y", 1.0, 4]]]}]
    for number, lines in ((4, records), (5, rest)):
        texts = [json.dumps(record).encode() for record in lines]
        content = b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts)
        (tmp_path / f"model.journal-0123abcd-{number}").write_bytes(content)
    for first, found in ((4, ["a", "c"]), (5, ["c"])):
        entries, journal = again(tmp_path, ["0123abcd", first])
        assert [entry[0] for entry in entries] == found and journal.waiting == {7: ("d", "y", 1.0, 4)}
    learned_by(journal, "e")
    learned_by(journal, "f")
    assert [entry[0] for entry in again(tmp_path, ["0123abcd", 4])[0]] == ["a", "c", "e", "f"]


class Copied(Learner):
    """A learner with its checkpoint as a file, of which each state that a kill may leave is known."""

    def __init__(self, path):
        super().__init__(path)
        self.path, self.states = path, {()}

    def take(self, ids, fails_after, snapshot_after):
        self.journal.learn([(id, "a", 1.0, id) for id in ids])
        self.states.add((*self.learned, *ids))
        for i, id in enumerate(ids):
            if i == fails_after:
                self.journal.abort()
                break
            self.learned.append(id)
            self.journal.commit(1)
            self.states.add((*self.learned,))
            if i == snapshot_after:
                self.save()

    def save(self, fails=False):
        position, learned = self.journal.rotate(), [*self.learned]
        if not fails:
            (self.path / "model").write_text(json.dumps([position, learned]))
            self.journal.written(position)

    def resume(self):
        self.journal.close()
        self.learned, self.journal = resumed(self.path)
        self.states.add((*self.learned,))


def by_number(path):
    return sorted(path.iterdir(), key=lambda file: (len(file.name), file.name.rpartition("-")[2]))


def resumed(path):
    model = path / "model"
    position, learned = json.loads(model.read_text()) if model.exists() else (None, [])
    entries, journal = again(path, position)
    return [*learned, *(entry[0] for entry in entries)], journal


@given(st.integers(0, 2**32))
def test_a_copy_of_any_files_at_any_moments_is_a_state_or_is_refused(tmp_path_factory, seed):
    random = Random(seed)
    path, copy = tmp_path_factory.mktemp("service"), tmp_path_factory.mktemp("copy")
    learner, n, in_order = Copied(path), 0, random.random() < 0.3
    for _ in range(random.randrange(10, 50)):
        action = random.random()
        if action < 0.4:
            ids = [n + i for i in range(random.randrange(1, 5))]
            learner.take(ids, random.choice([None, None, 0, 1]), random.choice([None, None, 0, 1]))
            n += len(ids)
        elif action < 0.7:
            learner.save(fails=n > 0 and random.random() < 0.2)
        elif action < 0.8:
            learner.resume()
        else:
            for file in by_number(path):
                if random.random() < 0.7:
                    content = file.read_bytes()
                    is_cut = file.name != "model" and random.random() < 0.2
                    (copy / file.name).write_bytes(content[: random.randrange(len(content) + 1)] if is_cut else content)
    if in_order:  # that of the guide: of one list of files the journal first, then the checkpoint
        shutil.rmtree(copy)
        copy.mkdir()
        there = by_number(path)
        for file in random.sample(there, len(there)):
            learner.take([n], None, random.choice([None, 0]))
            n += 1
            if file.exists() and file.name != "model":
                shutil.copy(file, copy)
        if (path / "model").exists():
            shutil.copy(path / "model", copy)
    try:
        found, _ = resumed(copy)
    except ValueError as error:
        assert not in_order and ("lacks" in str(error) or "of another checkpoint" in str(error))
    else:
        assert tuple(found) in learner.states
    finally:
        while opened:
            opened.pop().close()


def test_a_damaged_byte_costs_its_record_alone(tmp_path):
    """Whichever it is, and whatever it becomes: a line end, too."""
    learner = Copied(tmp_path)
    learner.take([0, 1], None, None)
    learner.save()
    position, learned = json.loads((tmp_path / "model").read_text())
    learner.take([2, 3, 4], None, 0)  # whose rest begins a file
    learner.take([5, 6], 1, None)
    learner.take([7], None, None)
    learner.take([8, 9], 0, None)
    learner.take([10], None, None)
    records = [{2, 3, 4}, {5, 6}, {7}, {8, 9}, {10}]
    whole, n_damaged = [*learner.learned], 0
    for file in sorted(tmp_path.glob("model.journal-*")):
        content = file.read_bytes()
        for place in range(len(content)):
            for flip in {content[place] ^ 10, 1} - {0}:
                file.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
                found = learned + [entry[0] for entry in again(tmp_path, position)[0]]
                lost, more = {*whole} - {*found}, {*found} - {*whole}
                assert sorted(found) == found and any(lost <= record for record in records), (place, flip, found)
                assert more <= {6, 8, 9} and len([record for record in records if record & (lost | more)]) <= 1
                n_damaged += bool(lost)
        file.write_bytes(content)
    assert n_damaged > 100


def test_a_journal_fails_as_long_as_what_failed_does_not_fit(tmp_path, monkeypatch):
    journal, disk = journal_at(tmp_path), Full(300, monkeypatch)
    learned_by(journal, "a")
    long = "b" * 300
    with pytest.raises(OSError, match="No space left"):
        journal.learn([(long, "x", 1.0, 1)])
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            journal.try_again()
        assert journal.error == "No space left on device"
    journal.close()
    journal.written([journal._name, 1, 1])
    assert journal.error == "No space left on device"  # a checkpoint tells nothing of that
    disk.room = 1_000
    journal.try_again()
    assert journal.error is None and file_of(tmp_path, 1).stat().st_size == 0
    journal.learn([(long, "x", 1.0, 1)])
    assert [entry[0] for entry in again(tmp_path, [journal._name, 0])[0]] == ["a", long]
