"""Feed the package with hostile input, and check what it does with it.

    python tests/fuzz.py --inputs 10_000_000
    python tests/fuzz.py --target readers --seed 3 --block 17

The second command tries one block of inputs again, as the report of a failure names it. Each target runs in a process
of its own, so that a crash and a hang are failures like others. The exit status is 1 if there was any failure.
"""

from __future__ import annotations

import argparse
import faulthandler
import multiprocessing
import resource
import signal
import sys
import time
import traceback
from random import Random

from fuzz_http import HttpTarget
from fuzz_loader import LoaderTarget, watch
from fuzz_mail import MailTarget
from fuzz_readers import ReadersTarget
from fuzz_scanner import ScannerTarget
from fuzz_shared import SECONDS
from fuzz_spamd import SpamdTarget

import stream_pegasos

MEGABYTES = 500  # of memory that the process of a target may come to hold
MOST_FAILURES = 20

TARGETS = {
    "scanner": ScannerTarget,
    "readers": ReadersTarget,
    "mail": MailTarget,
    "loader": LoaderTarget,
    "http": HttpTarget,
    "spamd": SpamdTarget,
}


def block_of(target, name, seed, number):
    """The inputs of a block, and the source of what else is random in it; the same each time."""
    random = Random(f"{name} {seed} {number}")
    return target.block(random), random


def try_blocks(target, name, seed, numbers, tell, position):
    """Try blocks of inputs, and tell of each failure: block, input, traceback."""

    def at(i, seconds=SECONDS):
        position[1] = i
        signal.setitimer(signal.ITIMER_REAL, seconds)

    for number in numbers:
        position[0] = number
        inputs, random = block_of(target, name, seed, number)
        try:
            target.check(inputs, random, at)
        except Exception:
            tell((*position, traceback.format_exc()))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def work(name, seed, begin, end, megabytes, connection, position):
    """What the process of a target does."""
    faulthandler.enable()
    faulthandler.register(signal.SIGALRM, chain=True)  # then the alarm ends the process
    if megabytes:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 23, megabytes << 23))  # what is reserved may be far more
    sys.addaudithook(watch)
    try_blocks(TARGETS[name](), name, seed, range(begin, end), connection.send, position)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (10 if sys.platform == "darwin" else 0)
    connection.send(kilobytes >> 10)
    connection.close()


def fuzz(name, seed, begin, end, most_megabytes):
    """Try blocks of inputs in a process; returns the number of failures and the megabytes of memory."""
    context = multiprocessing.get_context("spawn")
    position = context.RawArray("q", 2)
    n_failures, megabytes = 0, 0
    while begin < end and n_failures < MOST_FAILURES:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(name, seed, begin, end, most_megabytes, sender, position))
        process.start()
        sender.close()
        begin = end
        try:
            while isinstance(said := receiver.recv(), tuple):
                n_failures += 1
                report(name, seed, *said)
                if n_failures == MOST_FAILURES:
                    process.terminate()
            megabytes = max(megabytes, said)
        except EOFError:
            process.join()
            if n_failures < MOST_FAILURES:
                n_failures += 1
                report(name, seed, *position, f"the process ended with exit code {process.exitcode}")
                begin = position[0] + 1
        process.join()
    if 0 < most_megabytes < megabytes:
        n_failures += 1
        print(f"FAILURE {name}: {megabytes} MB of memory, more than {most_megabytes}", flush=True)
    return n_failures, megabytes


def report(name, seed, number, i, what):
    inputs, _ = block_of(TARGETS[name](), name, seed, number)
    shown = inputs if name == "scanner" else inputs[i]
    print(f"FAILURE --target {name} --seed {seed} --block {number}, input {i}\n{what}\n{shown!r}\n", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--block", type=int, help="only this block of the target")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="bound on memory; 0 for none")
    options = parser.parse_args()
    if options.block is not None and options.target is None:
        parser.error("--block needs --target")
    names = [*TARGETS] if options.target is None else [options.target]
    shares = sum(TARGETS[name].share for name in names)
    print(f"Seed {options.seed}, {stream_pegasos.engine.NAME} engine, at most {SECONDS} s an input")
    print(f"{'target':8} {'inputs':>10} {'inputs/s':>9} {'failures':>8} {'memory':>8} {'bound':>8}", flush=True)
    total, n_failures = 0, 0
    for name in names:
        target = TARGETS[name]
        begin, n_blocks = 0, -(-options.inputs * target.share // (shares * target.size))
        if options.block is not None:
            begin, n_blocks = options.block, 1
        start = time.perf_counter()
        failures, megabytes = fuzz(name, options.seed, begin, begin + n_blocks, options.megabytes)
        n = n_blocks * target.size
        per_second = n / (time.perf_counter() - start)
        print(f"{name:8} {n:10,} {per_second:9,.0f} {failures:8} {megabytes:5} MB {options.megabytes:5} MB", flush=True)
        total, n_failures = total + n, n_failures + failures
    print(f"{total:,} inputs, {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
