import copy
import pickle
import threading

import pytest

from stream_pegasos.common.locks import Lock


def test_a_lock_may_be_taken_twice_by_its_thread_and_by_no_other():
    lock = Lock()
    taken = []
    other = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=0.05)))
    with lock, lock:
        other.start()
        other.join()
    assert taken == [False]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda lock: pickle.loads(pickle.dumps(lock))])
def test_a_copy_of_a_locked_lock_is_free(copied):
    lock = Lock()
    taken = []
    with lock:
        new = copied(lock)
        other = threading.Thread(target=lambda: taken.append(new.acquire(timeout=10)))
        other.start()
        other.join()
    assert type(new) is Lock
    assert taken == [True]
