"""What tests of long runs share."""

import time

PATIENCE = 120  # seconds that a busy machine may take for what is done in a moment


def wait(condition):
    """Wait until a condition is true, and return what it returned."""
    end = time.monotonic() + PATIENCE
    while not (result := condition()):
        assert time.monotonic() < end
        time.sleep(0.002)
    return result


def bits(model):
    """All that a model has learned, to compare."""
    snapshot = model.snapshot()
    return {name: array.tobytes() for name, array in snapshot.arrays.items()}, snapshot.values
