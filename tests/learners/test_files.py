import errno
import math
import os
import pickle
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import orjson
import pytest
from forging import put_together, state_arrays, take_apart, without_spaces
from hypothesis import given
from hypothesis import strategies as st
from interpreter import run
from safetensors import safe_open
from safetensors.numpy import save as safetensors_save
from saved import classifier, fails_in_one_line, state_of, text_model

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, PegasosClassifier, TextClassifier
from stream_pegasos.common.file_lock import FileLock
from stream_pegasos.common.packing import pack, unpack
from stream_pegasos.learners.files import Spool
from stream_pegasos.learners.loading import load_with_progress

needs_posix = pytest.mark.skipif(os.name != "posix", reason="this is about POSIX files")


# --- round trips ------------------------------------------------------------------------------------------------------


def test_numpy_parameters_can_be_saved(path):
    model = PegasosClassifier(
        l2=np.float64(0.5), batch_size=np.int64(3), project=np.bool_(False), class_weight={np.str_("a"): np.float32(2)}
    )
    model.save(path)
    assert stream_pegasos.load(path).batch_size == 3
    assert stream_pegasos.load(path).class_weight == {"a": 2.0}


packable = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats(allow_nan=False), st.just("\ud800a")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.integers(), st.text(max_size=2), st.tuples(st.integers())), inner, max_size=3),
        st.frozensets(st.one_of(st.integers(), st.text(max_size=2)), max_size=3),
    ),
    max_leaves=8,
)


def typed(value):
    if isinstance(value, (list, tuple)):
        return type(value), [typed(part) for part in value]
    if isinstance(value, frozenset):
        return type(value), sorted(map(typed, value), key=repr)
    if isinstance(value, dict):
        return type(value), [(typed(key), typed(part)) for key, part in value.items()]
    return type(value), value


@given(packable)
def test_values_survive_json_with_their_types(value):
    if isinstance(value, float) and not math.isfinite(value):
        return
    assert typed(unpack(orjson.loads(orjson.dumps(pack(value))))) == typed(value) or "inf" in repr(value)


def test_an_int_of_any_size_can_be_a_name(path):
    model = PegasosClassifier()
    model.learn_one({10**6000: 1.0, -(10**6000): 2.0}, True)
    model.save(path)
    assert stream_pegasos.load(path).weights == model.weights


# --- what cannot be saved, and what is no model -----------------------------------------------------------------------


def test_functions_cannot_be_saved(path):
    text_model().save(path)
    before = path.read_bytes()
    for features in (
        HashedBagOfWords(tokenizer=str.split),
        HashedBagOfWords(preprocessor=lambda text: text),
        HashedBagOfWords(strip_accents=str.upper),
    ):
        with pytest.raises(ValueError, match="cannot be saved"):
            TextClassifier(features).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileNotFoundError):
        stream_pegasos.load(tmp_path / "missing")
    with pytest.raises(OSError):
        stream_pegasos.load(tmp_path)
    if os.name == "posix" and os.geteuid() != 0:
        (tmp_path / "secret").touch(mode=0)
        with pytest.raises(PermissionError):
            stream_pegasos.load(tmp_path / "secret")


def test_other_files_are_no_models(path):
    fails_in_one_line_of = [b"", b"\0", b"\0" * 8, b"\0" * 100, b"{}", b"\xff" * 64, b"hello, world\n" * 20]
    fails_in_one_line_of += [pickle.dumps({"a": 1}), (1 << 62).to_bytes(8, "little") + b"{}" * 50]
    fails_in_one_line_of += [(2).to_bytes(8, "little") + b"{}", safetensors_save({"a": np.ones(3)}, {"format": "pt"})]
    fails_in_one_line_of += [safetensors_save({"a": np.ones(3)}), safetensors_save({})]
    for content in fails_in_one_line_of:
        path.write_bytes(content)
        fails_in_one_line(path)


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_what_was_there(step, path, monkeypatch):
    classifier("default").save(path)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="no space"):
            classifier("batches").save(path)
        with pytest.raises(OSError, match="no space"):
            classifier("batches").save(path.with_name("new"))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    classifier("batches").save(path)
    assert os.listdir(path.parent) == [path.name]
    assert stream_pegasos.load(path).batch_size == 7


@needs_posix
def test_devices_are_written_to_and_stay_devices():
    full = "/dev/full"
    if not os.path.exists(full):
        pytest.skip(f"there is no {full}")
    before = sorted(os.listdir("/dev"))
    # As one who may not replace it, in case it is tried.
    code = f"""
        import os
        import safetensors.numpy  # now, since from a private folder it could not be read later
        from stream_pegasos import PegasosClassifier
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            PegasosClassifier().save("{full}")
        except OSError as error:
            print(error.errno)
        PegasosClassifier().save("/dev/null")
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{errno.ENOSPC}\n"
    assert stat.S_ISCHR(os.stat(full).st_mode) and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert sorted(os.listdir("/dev")) == before


@needs_posix
def test_permissions_are_as_for_any_file_and_stay_as_they_were_set(path):
    for mask, expected in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        old = os.umask(mask)
        try:
            classifier("default").save(path)
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == expected
        path.unlink()
    for mode in (0o600, 0o640, 0o444):
        path.touch()
        path.chmod(mode)
        classifier("default").save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()


@needs_posix
def test_a_symbolic_link_stays_one(tmp_path):
    (tmp_path / "models").mkdir()
    target, link = tmp_path / "models" / "today", tmp_path / "newest"
    link.symlink_to(target)
    for which in ("default", "batches"):  # first with its target missing
        classifier(which).save(link)
        assert link.is_symlink() and not target.is_symlink()
        assert state_of(stream_pegasos.load(target)) == state_of(classifier(which))
    assert os.listdir(target.parent) == ["today"]
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError):
        classifier("default").save(loop)


def test_names_of_files(tmp_path, monkeypatch):
    model = classifier("default", n=3)
    monkeypatch.chdir(tmp_path)
    long = "x" * 250
    letters = "é漢😀".encode(sys.getfilesystemencoding(), "ignore").decode() or "none"
    for name in ("plain", "with space", ".hidden", letters, "new\nline", long, "-dash", "a.b.c"):
        model.save(name)
        assert state_of(stream_pegasos.load(name)) == state_of(model)
    for place in (tmp_path / "missing" / "model", tmp_path / "plain" / "model", "x" * 300):
        with pytest.raises(OSError):
            model.save(place)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        model.save(tmp_path / "folder")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


METADATA = {'é\n"': "value\u2028 ünd \\ mehr"}


def test_files_are_those_that_safetensors_writes(path):
    """But for spaces, as the contract has it of each model: also with metadata and arrays that none has."""
    known = text_model().snapshot().arrays
    for arrays in (known, {**known, "progress": np.arange(5, dtype=np.uint8)}, {}):
        with open(path, "wb") as file:
            spool = Spool(file, METADATA, arrays)
            spool.write(arrays)
            spool.finish(METADATA)
        assert without_spaces(path.read_bytes()) == without_spaces(safetensors_save(dict(arrays), METADATA))
        with safe_open(path, "numpy") as file:
            assert file.metadata() == METADATA
            assert {name: file.get_tensor(name).tobytes() for name in file.keys()} == {  # noqa: SIM118
                name: array.tobytes() for name, array in arrays.items()
            }


@pytest.mark.parametrize(
    "progress", [0, "", {"position": {"é\ud800": [1, 2.5, None, True]}, "n": 2**70}, [], {"a": ("b", 1)}]
)
def test_progress_stands_beside_the_model(progress, path):
    model = classifier("default")
    model.snapshot(progress).write(path)
    loaded, found = load_with_progress(path)
    assert found == progress
    assert type(found) is type(progress)
    assert loaded.weights == model.weights
    assert stream_pegasos.load(path).weights == model.weights
    model.save(path)
    assert load_with_progress(path)[1] is None


def test_stop_words_and_progress_do_not_stand_in_the_header(path):
    """Which may have 100 MB. Of names of features the contract says so."""
    sizes = []
    for n in (1, 1000):
        stop_words, progress = [f"{i} {'long' * 20}" for i in range(n)], ["x" * 100] * n
        TextClassifier(HashedBagOfWords(stop_words=stop_words)).snapshot(progress).write(path)
        loaded, found = load_with_progress(path)
        assert (set(loaded.features.stop_words), found) == (set(stop_words), progress)
        sizes.append(int.from_bytes(path.read_bytes()[:8], "little"))
    assert sizes[1] <= sizes[0] + 200


@pytest.mark.parametrize(
    "change",
    [
        lambda texts, ends: (texts, ends[:-1]),
        lambda texts, ends: (texts, ends[1:]),
        lambda texts, ends: (texts, ends[:0]),
        lambda texts, ends: (texts, ends + 1),
        lambda texts, ends: (texts, ends * -1),
        lambda texts, ends: (texts, np.where(ends == ends[1], ends[-1] + 5, ends)),
        lambda texts, ends: (texts, np.where(ends == ends[2], 0, ends)),
        lambda texts, ends: (texts, ends.astype(np.float64)),
        lambda texts, ends: (texts, ends.reshape(1, -1)),
        lambda texts, ends: (texts[:-1], ends),
        lambda texts, ends: (texts.view(np.int8), ends),
        lambda texts, ends: (np.where(texts == ord('"'), 0xFF, texts).astype(np.uint8), ends),
        lambda texts, ends: (np.where(texts == ord('"'), ord("["), texts).astype(np.uint8), ends),
        lambda texts, ends: (np.concatenate([texts, texts]), np.concatenate([ends, ends[-1] + ends[1:]])),
    ],
    ids=range(14),
)
def test_names_that_cannot_be_are_refused(change, path):
    classifier("default").save(path)
    arrays, header = take_apart(path)
    texts = state_arrays(header["state"])
    arrays["names"], arrays["name_offsets"] = change(texts["names"], texts["name_offsets"])
    put_together(path, arrays, header)
    fails_in_one_line(path)


def test_names_nested_deeper_than_files_hold_are_refused_when_they_are_learned(unchanged):
    model, name = PegasosClassifier(), "x"
    for _ in range(32):
        name = (name,)
    model.learn_one({name: 1.0}, True)
    with unchanged(model):
        for deeper in ((name,), ((("a", (name, 1)), 2),)):
            with pytest.raises(ValueError, match="nested at most 32 deep"):
                model.learn_one({deeper: 1.0}, True)
            with pytest.raises(ValueError, match="nested at most 32 deep"):
                model.learn_many([{"new": 1.0}, {deeper: 1.0}], [True, False])


@needs_posix
def test_what_is_no_regular_file_is_no_model(path):
    """Not even a pipe that nobody writes to."""
    os.mkfifo(path)
    for place in ("/dev/null", path):
        with pytest.raises(ValueError, match=f"^{place} must be a regular file$"):
            stream_pegasos.load(place)


@needs_posix
def test_a_file_that_a_service_keeps_is_left_alone(path, monkeypatch):
    kept, model = FileLock(path), text_model()
    model.save(path)
    before = path.read_bytes()
    kept.claim()
    monkeypatch.setattr("stream_pegasos.common.file_lock.PATIENCE", 0.05)
    with pytest.raises(OSError, match="is in use: another process writes it"):
        PegasosClassifier().save(path)
    assert path.read_bytes() == before
    kept.release()
    PegasosClassifier().save(path)
    assert path.read_bytes() != before and [*path.parent.iterdir()] == [path]


def test_several_threads_may_save_to_one_file(path):
    model = text_model()
    with ThreadPoolExecutor(8) as threads:
        [*threads.map(lambda _: model.save(path), range(40))]
    assert state_of(stream_pegasos.load(path)) == state_of(model)


def test_a_file_that_is_written_over_while_it_is_read(path):
    """As `cp` does it. In a process of its own: a file that is mapped ends the process where it gets shorter."""
    for name, n in (("small", 10), ("large", 30_000)):
        model = AdaptiveClassifier()
        model.learn_many([{i: 1.0} for i in range(n)], [i % 2 for i in range(n)])
        model.save(path.with_name(name))
    path.write_bytes(path.with_name("small").read_bytes())
    printed = run(
        f"""
        import json, shutil, threading
        import stream_pegasos

        done, kinds = threading.Event(), set()

        def copy():
            while not done.is_set():
                for name in ("large", "small"):
                    shutil.copyfile({str(path.parent)!r} + "/" + name, {str(path)!r})

        thread = threading.Thread(target=copy)
        thread.start()
        for _ in range(150):
            try:
                kinds.add(stream_pegasos.load({str(path)!r}).n_learned)
            except ValueError as error:
                assert "damaged" in str(error), error
                kinds.add(None)
        done.set()
        thread.join()
        print(json.dumps([None in kinds, {{*kinds}} <= {{None, 10, 30_000}}]))
        """
    )
    assert printed == [True, True]


@pytest.mark.parametrize("content", [b"text,label\na,b\n", b"\x08\0\0\0\0\0\0\0{}      ", b"PK\x03\x04"])
def test_what_is_no_model_is_not_written_over(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must be a model to be replaced"):
        TextClassifier().save(path)
    assert path.read_bytes() == content
    path.write_bytes(b"")
    TextClassifier().save(path)
    TextClassifier().save(path)
    assert stream_pegasos.load(path).n_learned == 0
