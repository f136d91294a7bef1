import errno
import io
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from running import bits

from stream_pegasos import AdaptiveClassifier, OrdinalClassifier, PegasosClassifier, TextClassifier, engine
from stream_pegasos.common.lazy_columns import Column, read
from stream_pegasos.learners.files import write_model

KINDS = {
    "two classes": (lambda: AdaptiveClassifier(half_life=20), 2),
    "several classes": (lambda: AdaptiveClassifier(half_life=20), 5),
    "ordered classes": (OrdinalClassifier, 4),
    "Pegasos": (PegasosClassifier, 2),
    "Pegasos with the average and batches": (lambda: PegasosClassifier(average=True, batch_size=3), 3),
}
for_each_kind = pytest.mark.parametrize("kind", KINDS)


def learned(kind, n, n_words=40):
    """Words that come once have evidence as old as they are; a class comes late, so that not all is known of it."""
    make, n_classes = KINDS[kind]
    model, rng = TextClassifier(classifier=make()), np.random.default_rng(0)
    labels = rng.integers(n_classes, size=n).tolist()
    texts = [" ".join(f"w{word}" for word in rng.integers(n_words, size=6)) + f" once{i}" for i in range(n)]
    model.learn_many(texts, labels if n_classes > 2 else [label == 1 for label in labels])
    return model


@for_each_kind
@pytest.mark.parametrize("n", [0, 1, 300])
@pytest.mark.parametrize("at_a_time", [1, 7, 1 << 16])
def test_a_state_in_parts_is_the_whole_one(kind, n, at_a_time):
    learner = learned(kind, n).trainer.learner
    state, lazy = learner.get_state(), learner.get_state(True)
    assert state.keys() == lazy.keys()
    arrays = {name: value for name, value in lazy.items() if isinstance(value, (np.ndarray, Column))}
    found = {name: [] for name in arrays}
    for name, rows in read(arrays, at_a_time):
        found[name].append(rows)
    for name, parts in found.items():
        joined = np.concatenate(parts)
        assert joined.tobytes() == state[name].tobytes()
        assert (joined.dtype, joined.shape) == (state[name].dtype, state[name].shape)
        assert (lazy[name].dtype, lazy[name].shape) == (state[name].dtype, state[name].shape)
    if engine.NAME == "compiled" and n > 1 and at_a_time == 1:
        assert len(found["keys"]) > 100


@pytest.mark.skipif(engine.NAME == "pure", reason="its objects take many times what their state does")
@for_each_kind
def test_no_second_model_is_in_memory_while_one_is_saved(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("stream_pegasos.learners.files.SOME", 1_000)  # of some ten thousand
    model = learned(kind, 20_000, 100_000)
    size = sum(array.nbytes for array in model.snapshot().arrays.values())
    model.save(tmp_path / "model")  # whatever is imported
    tracemalloc.start()
    try:
        model.save(tmp_path / "model")
        assert tracemalloc.get_traced_memory()[1] < 0.3 * size
    finally:
        tracemalloc.stop()


class Full(io.BytesIO):
    """A disk that is full after so many bytes."""

    room = 20_000

    def write(self, content):
        if self.tell() + len(memoryview(content).cast("B")) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(content)


@for_each_kind
def test_a_full_disk_takes_nothing_from_the_model_and_frees_its_lock(kind, tmp_path):
    model = learned(kind, 2_000)
    before = bits(model)
    with pytest.raises(OSError, match="No space left"):
        model.snapshot(None, Full())
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(model.lock.acquire, False).result()
        pool.submit(model.lock.release).result()
    assert bits(model) == before
    write_model(tmp_path / "model", lambda file: model.snapshot(None, file))
    assert bits(TextClassifier.load(tmp_path / "model")) == before
