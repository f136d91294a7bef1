import gzip
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import rest, texts

from stream_pegasos.streams import StreamError, file, open_source


def line(text, **fields):
    return json.dumps({"text": str(text), **fields}) + "\n"


def append(path, *texts):
    with path.open("a", encoding="utf-8") as opened:
        opened.write("".join(map(line, texts)))


def old(path, seconds):
    """Make it look as if the file was last modified so long ago."""
    at = os.stat(path).st_mtime - seconds
    os.utime(path, (at, at))


@pytest.fixture
def mail(tmp_path, monkeypatch):
    monkeypatch.setattr(file, "_GRACE", 0.1)
    monkeypatch.setattr(file, "_INTERVAL", 0.01)
    return tmp_path / "mail.jsonl"


def rename(path, n=1):
    """Rotate as logrotate does by default, without the new file."""
    for k in range(n, 0, -1):
        older = Path(f"{path}.{k}")
        if older.exists():
            older.rename(f"{path}.{k + 1}")
    path.rename(f"{path}.1")


def copy_and_truncate(path, n=1):
    for k in range(n, 0, -1):
        older = Path(f"{path}.{k}")
        if older.exists():
            older.rename(f"{path}.{k + 1}")
    shutil.copy(path, f"{path}.1")
    os.truncate(path, 0)


# reading


def test_examples(mail):
    mail.write_text(line("a", label="spam", id=7) + "\n" + line("b"), encoding="utf-8")
    [batch], bad, events = rest(mail)
    assert [tuple(example) for example in batch.examples] == [
        ("a", "spam", 1.0, 1, 7, None, None),
        ("b", None, 1.0, 3, None, None, None),
    ]
    assert batch.position["offset"] == mail.stat().st_size and batch.position["line"] == 3
    assert bad == events == []
    assert json.loads(json.dumps(batch.position)) == batch.position


@pytest.mark.parametrize("name", ["mail.parquet", "mail.jsonl.gz", "mail.csv.gz"])
def test_formats_that_cannot_be_followed(tmp_path, name):
    with pytest.raises(StreamError, match="stream-pegasos run --format"):
        open_source(tmp_path / name)


def test_compressed_data_under_another_name_and_a_folder(mail):
    mail.write_bytes(gzip.compress(line("a").encode()))
    with pytest.raises(StreamError, match="compressed"):
        rest(mail)
    with pytest.raises(StreamError, match="is a folder and cannot be followed"):
        open_source(mail.parent, format="jsonl")


def test_labels_in_another_format(mail):
    with pytest.raises(StreamError, match="labels come as jsonl"):
        open_source(mail, format="vw", labels=True)


def test_a_line_that_is_too_long(mail, monkeypatch):
    monkeypatch.setattr(file, "LONGEST_LINE", 1000)
    monkeypatch.setattr(file, "_CHUNK", 300)
    mail.write_text(
        line("a") + line("x" * 5000) + line("b") + line("y" * (1000 - len(line("")))) + line("c"), encoding="utf-8"
    )
    batches, bad, _ = rest(mail)
    assert texts(batches) == ["a", "b", "y" * (1000 - len(line(""))), "c"]
    assert [where for where, _ in bad] == ["line 2"]
    assert batches[-1].position["offset"] == mail.stat().st_size


def test_lines_that_end_in_cr_and_marks_of_files_that_were_put_together(mail):
    mail.write_bytes("".join(map(line, "abc")).replace("\n", "\r").encode())
    [batch], bad, _ = rest(mail)
    assert (texts([batch]), bad, batch.position["line"]) == (["a", "b", "c"], [], 3)
    with mail.open("ab") as opened:
        opened.write("".join(map(line, "de")).replace("\n", "\r").encode())
    assert texts(rest(mail, batch.position)[0]) == ["d", "e"]
    mail.write_bytes(("\ufeff" + line("a")).encode() * 3)
    assert texts(rest(mail)[0]) == ["a"] * 3


# following


def test_a_file_that_is_not_there_yet_and_a_line_without_its_end(mail, follow):
    following = follow(mail)
    following.wait(lambda: following.events)
    assert following.events[0].startswith("waiting for")
    with mail.open("a", encoding="utf-8") as opened:
        opened.write(line("a") + line("b")[:5])
        opened.flush()
        following.wait_for("a")
        opened.write(line("b")[5:])
    following.wait_for("a", "b")
    assert following.bad == []
    assert len(following.events) == 2


def test_the_last_line_waits_for_its_end_where_somebody_goes_on_later(mail):
    mail.write_text(line("a") + line("b")[:9], encoding="utf-8")
    batches, bad, events = rest(mail, whole_lines=True)
    assert (texts(batches), bad) == (["a"], []) and "has no end yet" in events[0]
    with mail.open("a", encoding="utf-8") as opened:
        opened.write(line("b")[9:])
    again, bad, events = rest(mail, batches[-1].position, whole_lines=True)
    assert (texts(again), bad, events[1:]) == (["b"], [], [])


def test_a_missing_file_that_is_not_followed(mail):
    with pytest.raises(FileNotFoundError):
        rest(mail)


def test_rotation_by_renaming_while_reading(mail, follow):
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    with mail.open("a", encoding="utf-8") as writer:
        rename(mail)
        writer.write(line("b"))
        writer.flush()
        append(mail, "c")
        writer.write(line("late").strip())
    following.wait_for("a", "b", "late", "c")
    append(mail, "d")
    following.wait_for("a", "b", "late", "c", "d")
    assert sum("rotated" in event for event in following.events) == 1


def test_a_writer_that_goes_on_in_the_rotated_file(mail, follow, monkeypatch):
    """Until the new file has something in it, nobody is known to write to it."""
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    with mail.open("a", encoding="utf-8") as writer:
        rename(mail)
        mail.touch()
        old(f"{mail}.1", 20)
        find, looks = file.FollowedFile._successor, []
        monkeypatch.setattr(file.FollowedFile, "_successor", lambda source: looks.append(1) or find(source))
        following.wait(lambda: len(looks) > 2 or "rotated" in str(following.events))
        writer.write(line("b"))
    old(f"{mail}.1", 20)
    following.wait_for("a", "b")
    append(mail, "c")
    following.wait_for("a", "b", "c")


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_no_clock_tells_when_a_rotated_file_is_complete(mail, follow, monkeypatch, seconds):
    """As where the file comes from a machine whose clock is ahead, or behind."""
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    now, looks, find = [0.0], [], file.FollowedFile._successor
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep, time=time.time)
    monkeypatch.setattr(file, "time", clock)
    monkeypatch.setattr(file.FollowedFile, "_successor", lambda source: looks.append(1) or find(source))
    with mail.open("a", encoding="utf-8") as writer:
        rename(mail)
        old(f"{mail}.1", seconds)
        append(mail, "c")
        begun = len(looks)
        following.wait(lambda: len(looks) > begun + 3 or "rotated" in str(following.events))
        writer.write(line("late"))
    old(f"{mail}.1", seconds)
    following.wait_for("a", "late")
    begun = len(looks)
    following.wait(lambda: len(looks) > begun + 2)
    now[0] = 1.0
    following.wait_for("a", "late", "c")


@pytest.mark.parametrize("again", [False, True])
def test_written_and_rotated_right_after_a_look(mail, follow, monkeypatch, again):
    """A process may be stopped between two looks for longer than a writer needs."""
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    find, written = file.FollowedFile._successor, []

    def write_then_find(source):
        if not written:
            written.append("b")
            append(mail, "b")
            rename(mail)
            old(f"{mail}.1", 20)
            append(mail, "c")
        found = find(source)
        if again and found and len(written) == 1:
            written.append("d")
            old(mail, 10)
            rename(mail)
            append(mail, "d")
        return found

    monkeypatch.setattr(file.FollowedFile, "_successor", write_then_find)
    following.wait_for(*"abcd"[: 4 if again else 3])


def test_several_rotations_between_two_looks(mail, follow, monkeypatch):
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    monkeypatch.setattr(file, "_GRACE", 3600.0)
    rename(mail, 3)
    append(mail, "b")
    rename(mail, 3)
    append(mail, "c")
    old(f"{mail}.2", 20)
    old(f"{mail}.1", 10)
    monkeypatch.setattr(file, "_GRACE", 0.1)
    following.wait_for("a", "b", "c")


@pytest.mark.parametrize(("before", "after"), [("c", "d"), ("", "d" * 100)], ids=["less", "more than was read"])
def test_copytruncate_while_reading(mail, follow, before, after):
    """The new file begins as the old one did."""
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    append(mail, "b")
    following.wait_for("a", "b")
    append(mail, *before)
    copy_and_truncate(mail)
    append(mail, "a", after)
    following.wait_for("a", "b", *before, "a", after)
    assert following.bad == []


def test_emptied_without_a_copy(mail, follow):
    append(mail, "a", "b")
    following = follow(mail)
    following.wait_for("a", "b")
    os.truncate(mail, 0)
    append(mail, "c")
    following.wait_for("a", "b", "c")
    assert any("may be lost" in event for event in following.events)


def test_replaced_and_away_for_a_while(mail, follow):
    append(mail, "a")
    following = follow(mail)
    following.wait_for("a")
    mail.unlink()
    append(mail, "b")
    following.wait_for("a", "b")


@pytest.mark.parametrize("names", [["12", "3", "2", "1"], ["2026-01-01", "2026-01-02", "2026-02-01", "2026-10-01"]])
def test_rotated_files_of_one_time(mail, names):
    """Those that were rotated within a moment, on a file system that knows no finer time."""
    append(mail, "a")
    [batch], *_ = rest(mail)
    expected = []
    for k, name in enumerate(names):
        mail.rename(f"{mail}.{name}")
        expected.append(f"b{k}")
        append(mail, expected[-1])
    for name in ("", *(f".{name}" for name in names)):
        os.utime(f"{mail}{name}", (1_000_000, 1_000_000))
    assert texts(rest(mail, batch.position)[0]) == expected


def test_a_rotated_file_that_is_gone(mail):
    append(mail, "a")
    batches, *_ = rest(mail)
    mail.unlink()
    (mail.parent / "other").write_text("so that the inode is not used again", encoding="utf-8")
    append(mail, "b")
    again, _, events = rest(mail, batches[-1].position)
    assert texts(again) == ["b"]
    assert len(events) == 1 and "after its line 1 may be lost" in events[0]


def test_compressed_siblings_and_other_files_are_left_alone(mail):
    append(mail, "a")
    batches, *_ = rest(mail)
    rename(mail)
    old(f"{mail}.1", 10)
    Path(f"{mail}.2.gz").write_bytes(gzip.compress(b"x"))
    (mail.parent / "spam.jsonl").write_text(line("no"), encoding="utf-8")
    for other in (".safetensors", ".safetensors.previous", ".1.safetensors", ".labels", "2", "-eu"):
        Path(f"{mail}{other}").write_text(line("no"), encoding="utf-8")
    append(mail, "b")
    assert texts(rest(mail, batches[-1].position)[0]) == ["b"]


steps = st.lists(st.sampled_from(["append", "half", "rename", "copy", "stop", "read"]), min_size=1, max_size=25)


@given(steps, st.sampled_from([1, 50, 1 << 20]))
def test_nothing_is_lost_or_doubled(steps, chunk):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(file, "_CHUNK", chunk)
        patch.setattr(file, "_GRACE", 0.0)
        patch.setattr(file, "_INTERVAL", 0.0)
        path = Path(folder, "mail.jsonl")
        writer = path.open("a", encoding="utf-8")
        written, found, position, n, clock = [], [], None, 0, 1_000_000
        kinds = {step for step in steps if step in ("rename", "copy")}

        def touch():
            nonlocal clock
            clock += 1
            writer.flush()
            os.utime(path, (clock, clock))

        def look(stop_after=None):
            nonlocal position
            bad = []
            # Follows until all that was written by then is there.
            source = open_source(path, position, on_bad=lambda *at: bad.append(at))
            idle = iter(range(100))
            patch.setattr(file.time, "sleep", lambda _: next(idle, None) is None and source.close())
            for batch in source.batches():
                found.extend(texts([batch]))
                position = json.loads(json.dumps(batch.position))
                if len(found) >= len(written) or stop_after is not None:
                    source.close()
            assert bad == []

        # Without a position nothing is known of files that were rotated before.
        for step in ["append", "read", *steps]:
            if step == "append":
                written.append(f"message {n}")
                n += 1
                writer.write(line(written[-1]))
                touch()
            elif step == "half":
                whole = line(f"message {n}")
                writer.write(whole[:9])
                touch()
                if len(found) < len(written):
                    look(stop_after=1)
                writer.write(whole[9:])
                written.append(f"message {n}")
                n += 1
                touch()
            elif step in kinds and step == min(kinds) and path.stat().st_size:
                if step == "rename":
                    writer.close()
                    rename(path, len(steps))
                    writer = path.open("a", encoding="utf-8")
                else:
                    for k in range(len(steps), 0, -1):
                        if Path(f"{path}.{k}").exists():
                            os.rename(f"{path}.{k}", f"{path}.{k + 1}")
                    shutil.copy2(path, f"{path}.1")
                    writer.truncate(0)
                touch()
            elif step == "stop" and len(found) < len(written):
                look(stop_after=1)
            elif step == "read" and len(found) < len(written):
                look()
        if len(found) < len(written):
            look()
        writer.close()
        assert found == written


@pytest.mark.parametrize("rotate", [None, rename, copy_and_truncate])
def test_a_position_tells_the_bytes_behind_the_end(mail, rotate):
    append(mail, *range(9))
    source = open_source(mail, follow=False)
    positions = [batch.position for batch in source.batches()]
    assert source.lag(None).behind == {"": mail.stat().st_size}
    assert str(source.lag(positions[-1])) == "0 bytes behind"
    append(mail, "more")
    n = len(line("more"))
    assert source.lag(positions[-1]) == ("bytes", {"": n})
    if rotate is rename:
        rename(mail)
        append(mail, "after")
        assert source.lag(positions[-1]).behind == {"": n + len(line("after"))}
    mail.unlink()
    assert source.lag(positions[-1]) is None
