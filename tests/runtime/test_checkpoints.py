import errno
import itertools
import os
import shutil
import threading
import time

import pytest
from hearing import Heard
from running import bits, wait

from stream_pegasos import TextClassifier, load
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.runtime.checkpoints import Checkpoints

needs_posix = pytest.mark.skipif(os.name != "posix", reason="this is about POSIX files")

SOON = 20.0


class Run:
    """A model that learns, and its checkpoints, which are written as often as it is told to."""

    def __init__(self, path, model=None, n=0, **options):
        self.events, self.written = Heard().messages, []
        options = {"every": 1, "seconds": 1_000.0, **options}
        self.checkpoints = Checkpoints(path, **options)
        self.model = TextClassifier() if model is None else model
        self.n = n

    def resume(self):
        resumed = self.checkpoints.resume()
        if resumed is not None:
            self.model, progress = resumed
            self.n = progress["n"]
        return self

    def start(self):
        self.checkpoints.start(lambda file: self.model.snapshot({"n": self.n}, file), self.written.append)
        return self

    def learn(self, n=1):
        for _ in range(n):
            self.model.learn_one(f"word{self.n} word{self.n % 7}", ("ham", "spam")[self.n % 2])
            self.n += 1
        self.checkpoints.count(n)

    def learn_and_wait(self, n=1):
        """Until that is written, or could not be."""
        before = len(self.written) + self.checkpoints.n_failures
        self.learn(n)
        wait(lambda: len(self.written) + self.checkpoints.n_failures > before)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "mail.safetensors"


def learned(n):
    run = Run("nowhere")
    for _ in range(n):
        run.learn()
    return run.model


def two_checkpoints(path):
    """Of 3 examples, and before of 2."""
    run = Run(path).resume().start()
    run.learn_and_wait(2)
    run.learn_and_wait()
    return run


def damage(path, how):
    if how == "missing":
        return path.unlink()
    content = path.read_bytes()
    path.write_bytes(b"" if how == "empty" else content[:-1] + bytes([content[-1] ^ 1]))


def test_it_holds_the_model_and_the_progress(path):
    run = Run(path, every=5).resume().start()
    run.learn_and_wait(5)
    model, progress = load_with_progress(path)
    assert progress == run.written[0] == {"n": 5}
    assert bits(model) == bits(learned(5))
    run.learn(4)
    run.checkpoints.close()
    model, progress = load_with_progress(path)
    assert progress == {"n": 9}
    assert bits(model) == bits(learned(9))
    assert sorted(os.listdir(path.parent)) == [path.name, path.name + ".previous"]
    assert load_with_progress(path.with_name(path.name + ".previous"))[1] == {"n": 5}
    assert not run.events


def test_a_file_is_there_at_the_end_though_nothing_was_learned(path):
    run = Run(str(path))
    assert run.checkpoints.resume() is None
    run.start()
    run.checkpoints.close()
    run.checkpoints.close()
    assert run.checkpoints.path == path.resolve()
    assert run.written == [{"n": 0}]
    assert load(path).n_iterations == 0


@pytest.mark.parametrize("how", ["empty", "a bit flipped", "missing"])
def test_a_damaged_one_is_recognised_and_the_one_before_is_used(how, path):
    two_checkpoints(path).checkpoints.close()  # which wrote a third
    before = load_with_progress(path.with_name(path.name + ".previous"))
    damage(path, how)
    run = Run(path).resume()
    assert run.n == before[1]["n"] == 3
    assert bits(run.model) == bits(before[0])
    (event,) = run.events
    assert str(path) in event
    assert f"resuming from {path}.previous, the one before" in event
    # The damaged one is not kept in place of the whole one.
    run.start().learn_and_wait()
    assert load_with_progress(path)[1] == {"n": 4}
    assert load_with_progress(path.with_name(path.name + ".previous"))[1] == {"n": 3}
    run.learn_and_wait()
    assert load_with_progress(path.with_name(path.name + ".previous"))[1] == {"n": 4}
    run.checkpoints.close()


def test_two_damaged_ones_are_an_error_and_stay_as_they_are(path):
    two_checkpoints(path).checkpoints.close()
    previous = path.with_name(path.name + ".previous")
    for file in (path, previous):
        damage(file, "a bit flipped")
    contents = path.read_bytes(), previous.read_bytes()
    run = Run(path)
    with pytest.raises(ValueError, match=r"mail\.safetensors") as error:
        run.checkpoints.resume()
    assert f"{previous}" in str(error.value)
    run.checkpoints.close()
    assert (path.read_bytes(), previous.read_bytes()) == contents


def test_what_killed_writers_left_is_removed_and_nothing_else(path, monkeypatch):
    two_checkpoints(path).checkpoints.close()
    left, fsync = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: left.update(os.listdir(path.parent)) or fsync(file))
    TextClassifier().snapshot({"n": 0}).write(path)
    others = {".other.tmp", "mail.safetensors.tmp", "mail.safetensors.previous", path.name}
    for name in {".other.tmp", "mail.safetensors.tmp", *left} - {*os.listdir(path.parent)}:
        path.with_name(name).write_text("", encoding="utf-8")
    assert len(os.listdir(path.parent)) == len(others) + 1
    Run(path).resume()
    assert set(os.listdir(path.parent)) == others


# --- when ------------------------------------------------------------------------------------------------------------


def test_it_is_written_after_so_many_examples_and_not_before(path):
    run = Run(path, every=10).start()
    run.learn(9)
    run.learn_and_wait()
    assert run.written == [{"n": 10}]
    run.learn(9)
    run.learn_and_wait()
    assert run.written == [{"n": 10}, {"n": 20}]
    run.checkpoints.close()


def test_writing_takes_at_most_a_share_of_the_time(path):
    """Whatever is due; the last one is written at once."""
    run = Run(path, every=1, seconds=0.01, share=0.2)
    moments = []

    def slow(file):
        moments.append(time.monotonic())
        time.sleep(0.02)
        return run.model.snapshot({"n": run.n}, file)

    run.checkpoints.start(slow, run.written.append)
    while len(moments) < 4:
        run.learn()
        time.sleep(0.001)
    assert all(after - before >= 0.1 for before, after in itertools.pairwise(moments))
    run.checkpoints.close()
    assert load_with_progress(path)[1] == {"n": run.n}


def test_it_is_written_after_so_many_seconds_if_anything_was_learned(path):
    run = Run(path, every=1_000, seconds=0.05).start()
    start = time.monotonic()
    run.learn_and_wait()
    assert run.written == [{"n": 1}]
    assert run.checkpoints.written_at >= start
    run.checkpoints.close()
    assert run.written == [{"n": 1}] * 2


def test_what_is_learned_while_the_last_but_one_is_written_is_in_the_last(path):
    """However little time there is between."""
    run = Run(path)
    writing, go_on = threading.Event(), threading.Event()
    snapshots = []

    def snapshot(file):
        snapshots.append(run.n)
        taken = run.model.snapshot({"n": run.n}, file)
        writing.set()
        assert go_on.wait(SOON)
        return taken

    run.checkpoints.start(snapshot)
    run.learn()
    assert writing.wait(SOON)
    run.learn()
    closing = threading.Thread(target=run.checkpoints.close)
    closing.start()
    wait(lambda: run.checkpoints._closing)
    go_on.set()
    closing.join(SOON)
    assert snapshots == [1, 2]
    assert load_with_progress(path)[1] == {"n": 2}


@pytest.mark.parametrize(
    ("options", "value"), [({"every": 0}, "0"), ({"seconds": 0.0}, "0.0"), ({"seconds": 1e300}, "1e[+]300")]
)
def test_impossible_parameters(options, value, path):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be .*, got {value}"):
        Checkpoints(path, **options)


# --- where it cannot be written ---------------------------------------------------------------------------------------


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def read_only(*_, **__):
    raise PermissionError(errno.EACCES, "Permission denied")


def no_memory(*_, **__):
    raise MemoryError


FAILURES = {
    "a full disk, for arrays": (
        "stream_pegasos.learners.files.Spool.write",
        no_space,
        "No space left on device",
    ),
    "a full disk, for the header": (
        "stream_pegasos.learners.files.Spool.finish",
        no_space,
        "No space left on device",
    ),
    "a full disk, in fsync": ("os.fsync", no_space, "No space left on device"),
    "a full disk, in rename": ("os.replace", no_space, "No space left on device"),
    "a folder that may only be read": ("stream_pegasos.learners.files.open", read_only, "Permission denied"),
    "too little memory": ("stream_pegasos.learners.files.checksum", no_memory, "out of memory"),
}


@pytest.mark.parametrize("which", FAILURES)
def test_a_failure_stops_nothing_is_reported_once_and_it_is_tried_again(which, path, monkeypatch):
    run = two_checkpoints(path)
    target, failing, reason = FAILURES[which]
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(target, failing, raising=False)
        for i in range(1, 4):
            run.learn_and_wait()
            assert run.checkpoints.n_failures == i
            assert run.checkpoints.error == reason
        assert run.events == [f"cannot write {path}: {reason}; learning continues, and it will be tried again"]
        assert path.read_bytes() == before
        assert sorted(os.listdir(path.parent)) == [path.name, path.name + ".previous"]
    run.learn_and_wait()
    assert run.events[1:] == [f"{path} is written again"]
    assert run.checkpoints.error is None
    assert load_with_progress(path)[1] == {"n": 7}
    assert load_with_progress(path.with_name(path.name + ".previous"))[1] == {"n": 3}
    run.checkpoints.close()


def test_it_is_tried_again_in_time_though_nothing_more_is_learned(path, monkeypatch):
    run = Run(path, seconds=0.05)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        run.start().learn_and_wait()
        assert run.checkpoints.error
    wait(lambda: run.written == [{"n": 1}])
    run.checkpoints.close()


def test_other_reasons_are_reported_each(path, monkeypatch):
    run = Run(path).start()
    for failing in (no_space, no_space, read_only, no_space):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing)
            run.learn_and_wait()
    assert [event.split(": ")[1].split(";")[0] for event in run.events] == [
        "No space left on device",
        "Permission denied",
        "No space left on device",
    ]
    run.checkpoints.close()


def test_a_failure_after_a_checkpoint_is_reported_and_the_next_one_is_written(path):
    run = Run(path)
    run.checkpoints.start(lambda file: run.model.snapshot({"n": run.n}, file), {}.__getitem__)
    for _ in range(2):
        n_events = len(run.events)
        run.learn()
        wait(lambda n=n_events: len(run.events) > n)
    assert run.events == [f"{path} is written, but the next step failed: unhashable type: 'dict'"] * 2
    assert run.checkpoints.error is None
    run.learn()
    run.checkpoints.close()
    assert load_with_progress(path)[1] == {"n": 3}


def test_a_last_one_that_cannot_be_written_raises(path, monkeypatch):
    run = two_checkpoints(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        run.learn()
        with pytest.raises(OSError, match="No space left on device"):
            run.checkpoints.close()
    assert load_with_progress(path)[1] == {"n": 3}


# --- crashes ----------------------------------------------------------------------------------------------------------


@needs_posix
@pytest.mark.parametrize("links", [True, False], ids=["with hard links", "without"])
def test_a_crash_at_any_step_leaves_a_whole_checkpoint(links, path, tmp_path_factory, monkeypatch):
    """The folder is copied before each call of the system: so a process would leave it that ended there."""
    two_checkpoints(path).checkpoints.close()
    snapshot = learned(4).snapshot({"n": 4})
    copies, steps = tmp_path_factory.mktemp("crashes"), []

    def watched(name, call):
        def watching(*arguments, **named):
            if threading.current_thread() is not threading.main_thread():  # that of another test
                return call(*arguments, **named)
            steps.append((name, copies / str(len(steps))))
            with monkeypatch.context() as patch:
                for name_of_other, other in calls.items():
                    patch.setattr(os, name_of_other, other)
                shutil.copytree(path.parent, steps[-1][1])
            return call(*arguments, **named)

        return watching

    def no_links(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    calls = {name: getattr(os, name) for name in ("chmod", "fsync", "unlink", "link", "replace", "close")}
    with monkeypatch.context() as patch:
        for name, call in calls.items():
            patch.setattr(os, name, watched(name, no_links if name == "link" and not links else call))
        patch.setattr("stream_pegasos.learners.files.open", watched("open", open), raising=False)
        snapshot.write(path, keep=path.with_name(path.name + ".previous"))
    progresses = []
    for _, folder in [*steps, ("end", path.parent)]:
        run = Run(folder / path.name).resume()
        progresses.append(run.n)
        assert bits(run.model) == bits(learned(run.n))
        assert set(os.listdir(folder)) <= {path.name, path.name + ".previous"}
    assert progresses == sorted(progresses)  # first the old one, then the new one
    assert set(progresses) == {3, 4}
    # What is renamed is on the disk by then, and after that the folder.
    moves = ["unlink", "link"] if links else ["unlink", "link", "replace"]
    assert [name for name, _ in steps] == ["open", "chmod", "fsync", *moves, "replace", "fsync", "close"]


@needs_posix
def test_one_process_keeps_the_others_off(tmp_path):
    first, second = (Checkpoints(tmp_path / "model") for _ in range(2))
    first.claim()
    with pytest.raises(OSError, match="model is in use: another process"):
        second.claim()
    first.close()
    second.claim()
    second.close()
    assert list(tmp_path.iterdir()) == []


@needs_posix
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINTR, errno.EWOULDBLOCK, errno.EACCES])
def test_where_nothing_can_be_locked_it_goes_on_and_says_why_unless_another_process_has_the_lock(
    number, path, monkeypatch
):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    run = Run(path)
    monkeypatch.setattr("fcntl.flock", fail)
    if number in (errno.EWOULDBLOCK, errno.EACCES):
        with pytest.raises(OSError, match="is in use: another process"):
            run.checkpoints.claim()
        assert not run.events
        return
    run.checkpoints.claim()
    (event,) = run.events
    assert f"mail.safetensors.lock ({os.strerror(number)})" in event
    assert "in use" not in event
    run.start().learn_and_wait()
    run.checkpoints.close()
    assert load_with_progress(path)[1] == {"n": 1}


@needs_posix
def test_a_folder_that_cannot_be_written_is_refused_at_the_start(path, monkeypatch):
    """As a second process could begin there once it can be written."""
    with monkeypatch.context() as patch:
        patch.setattr("stream_pegasos.common.file_lock.os.open", read_only)
        with pytest.raises(OSError, match=r"cannot write .*, nor a lock beside it: Permission denied"):
            Checkpoints(path).claim()
    with pytest.raises(OSError, match="No such file or directory"):
        Checkpoints(path.parent / "nowhere" / "model").claim()


@needs_posix
def test_a_file_with_the_longest_name_is_locked(tmp_path):
    first, second = (Checkpoints(tmp_path / ("m" * 255)) for _ in range(2))
    first.claim()
    with pytest.raises(OSError, match="is in use"):
        second.claim()
    first.close()


def test_a_device_needs_no_lock():
    Checkpoints(os.devnull).claim()
