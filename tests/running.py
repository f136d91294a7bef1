"""What tests of long runs share."""

import time


def wait(condition):
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def bits(model):
    """All that a model has learned, to compare."""
    snapshot = model.snapshot()
    return {name: array.tobytes() for name, array in snapshot.arrays.items()}, snapshot.values
