import gc
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from stream_pegasos import engine

# How long an example takes depends on what else the machine does; tests/fuzz.py tries more of them.
settings.register_profile("few", max_examples=15, deadline=None, derandomize=True)
settings.load_profile("few")

# Each process that a test starts would otherwise compile all its modules anew, which takes longer than most of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background has them ignore interrupts, some ignore SIGTERM, and with them
# what they start.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# They speak to servers on this machine, past any proxy.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"

if engine.NAME == "pure":
    # Commands that tests start then need not say that no compiled engine was built.
    os.environ["STREAM_PEGASOS_ENGINE"] = "pure"


class DensePegasos:
    """The algorithm as published, on dense vectors, with nothing lazy and nothing incremental.

    `average` is False, the step that the average begins with, or "weighted".
    """

    def __init__(self, dimension, l2=1e-4, batch_size=1, t0=0.0, project=True, average=False):
        self.l2, self.batch_size, self.t0, self.project = l2, batch_size, t0, project
        self.average = average
        self.w = np.zeros(dimension)
        self.t = 0
        self.batch = []
        self.iterates = []  # with their weights in the average
        self.largest = 0.0  # the largest weight ever, which rounding errors are relative to

    @property
    def predicting(self):
        """The weights that predict."""
        total = sum(c for c, _ in self.iterates)
        return sum(c * w for c, w in self.iterates) / total if total else self.w

    def margin(self, x):
        return float(self.w @ x)

    def learn(self, x, y, c=1.0):
        if c == 0.0:  # which is no example
            return
        x = np.array(x, float)
        self.batch.append((x, y, c))
        if len(self.batch) == self.batch_size:
            self.flush()

    def flush(self):
        if not self.batch:
            return
        violating = [(x, y, c) for x, y, c in self.batch if y * self.margin(x) < 1.0]
        k, self.batch = len(self.batch), []
        self.t += 1
        eta = 1.0 / (self.l2 * (self.t + self.t0))
        self.w = (1.0 - eta * self.l2) * self.w
        for x, y, c in violating:
            self.w = self.w + eta / k * c * y * x
            self.largest = max(self.largest, np.abs(self.w).max())  # also where the next one takes it back
        norm = np.linalg.norm(self.w)
        if self.project and norm > 0.0:
            self.w = min(1.0, 1.0 / (np.sqrt(self.l2) * norm)) * self.w
        if self.average == "weighted":
            self.iterates.append((self.t, self.w))
        elif self.average and self.t >= self.average:
            self.iterates.append((1.0, self.w))

    def is_close_call(self, x):
        """Whether rounding alone may decide if `x` violates the margin: no two programs need agree there."""
        return abs(abs(self.margin(x)) - 1.0) <= 1e-9 * (1.0 + self.largest * np.abs(x).sum())


@pytest.fixture(scope="session")
def dense_pegasos():
    return DensePegasos


@pytest.fixture(scope="session")
def unchanged():
    """A context manager: whatever happens inside, the models are afterwards, bit for bit, what they were before."""

    class Unchanged:
        def __init__(self, *models):
            self.models = models

        def __enter__(self):
            self.before = [pickle.dumps(model) for model in self.models]

        def __exit__(self, *_):
            assert [pickle.dumps(model) for model in self.models] == self.before

    return Unchanged


@pytest.fixture(scope="session")
def run_threads():
    """A function: each of the first works runs to its end in a thread of its own, each of the others again and again
    until then. None may fail.
    """

    def run(works, repeated):
        done, failures = threading.Event(), []

        def guarded(work, again):
            try:
                work()
                while again and not done.is_set():
                    work()
            except BaseException as error:
                failures.append(error)

        finishing = [threading.Thread(target=guarded, args=(work, False)) for work in works]
        repeating = [threading.Thread(target=guarded, args=(work, True)) for work in repeated]
        for thread in (*finishing, *repeating):
            thread.start()
        for thread in finishing:
            thread.join(120)
        done.set()
        for thread in repeating:
            thread.join(120)
        assert not failures, failures
        assert not any(thread.is_alive() for thread in (*finishing, *repeating))

    return run


@pytest.fixture(scope="session")
def data_folder():
    """The folder of the real streams; a test that needs them skips where it is absent."""
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("STREAM_PEGASOS_DATA") or default)
    if not folder.is_dir():
        pytest.skip(f"the real streams are not in {folder}")
    return folder


def pytest_addoption(parser):
    parser.addoption("--reverse", action="store_true", help="run the tests from the last to the first")
    parser.addoption("--every", type=int, default=1, metavar="N", help="run one of N tests, spread over all files")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Nothing of what is collected is garbage: to look for it took a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--reverse"):
        items.reverse()
    every = config.getoption("--every")
    config.hook.pytest_deselected(items=[item for i, item in enumerate(items) if i % every])
    items[:] = items[::every]


def pytest_configure(config):
    """Give all processes a folder with matplotlib's list of fonts, as it may say so where it makes the list."""
    if "MPLCONFIGDIR" not in os.environ:
        os.environ["MPLCONFIGDIR"] = folder = tempfile.mkdtemp(prefix="matplotlib-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], capture_output=True)


def pytest_xdist_auto_num_workers():
    """One more than there are processors: some tests wait for servers."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True, scope="module")
def what_is_there_is_no_garbage():
    """The thousands of tests, and what they imported, stay: to look at them each time took a third of the time."""
    gc.freeze()


@pytest.fixture
def serve():
    """Starts the service in a process of its own, which ends with the test."""
    from serving import COMMAND, Served

    started = []

    def start(*options, command=COMMAND):
        started.append(Served(*options, command=command))
        return started[-1]

    yield start
    for served in started:
        served.kill()
