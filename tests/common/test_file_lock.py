"""Who may write a file, and who waits."""

import multiprocessing
import os
import threading

import pytest
from running import wait

from stream_pegasos.common import file_lock
from stream_pegasos.common.file_lock import locked


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has locks of files")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_threads_that_save_to_one_file_wait_for_each_other_in_their_order(tmp_path, monkeypatch):
    """However long one takes; a forked child, which has no such threads, waits for none."""
    path = tmp_path / "model"
    monkeypatch.setattr("stream_pegasos.common.file_lock.PATIENCE", 0.0)
    order, waiting = [], []

    def save(number):
        with locked(path):
            order.append(number)

    with locked(path):
        for number in range(6):
            waiting.append(threading.Thread(target=save, args=(number,)))
            waiting[-1].start()
            wait(lambda number=number: len(file_lock._queues[path]) == number + 2)
        child = multiprocessing.get_context("fork").Process(target=tried, args=(path,))
        child.start()
        child.join()
        assert child.exitcode == 3  # it is told that this process writes the file, and does not wait for its threads
        assert not order
    for thread in waiting:
        thread.join()
    assert order == [*range(6)] and not file_lock._queues


def tried(path):
    try:
        with locked(path):
            os._exit(0)
    except BlockingIOError as error:
        os._exit(3 if f"(process {os.getppid()})" in str(error) else 4)
