"""Records that a copy, a restored checkpoint or the disk has lost: what is left is a state of before, or is refused."""

import json
import shutil
import zlib
from contextlib import closing
from random import Random

import pytest
from disks import Full
from hearing import Heard
from hypothesis import given
from hypothesis import strategies as st
from journals import Learner, again, close_all, journal_at


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
        f"the journal lacks 2 records between model and {file_of(tmp_path, 3).name}; continuing without"
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
    with pytest.raises(ValueError, match="which belongs to another copy"):
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
            (self.path / "model").write_text(json.dumps([position, learned]), "utf-8")
            self.journal.written(position)

    def resume(self):
        self.journal.close()
        self.learned, self.journal = resumed(self.path)
        self.states.add((*self.learned,))


def by_number(path):
    return sorted(path.iterdir(), key=lambda file: (len(file.name), file.name.rpartition("-")[2]))


def resumed(path):
    model = path / "model"
    position, learned = json.loads(model.read_text("utf-8")) if model.exists() else (None, [])
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
        close_all()


def test_a_damaged_byte_costs_its_record_alone(tmp_path):
    """Whichever it is, and whatever it becomes: a line end, too."""
    learner = Copied(tmp_path)
    learner.take([0, 1], None, None)
    learner.save()
    position, learned = json.loads((tmp_path / "model").read_text("utf-8"))
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
