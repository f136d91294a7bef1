"""What tests of long runs share."""

import threading
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


def is_held(lock):
    """Whether another thread would have to wait for a lock."""
    taken = []

    def take():
        taken.append(lock.acquire(timeout=0.0))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return not taken[0]
