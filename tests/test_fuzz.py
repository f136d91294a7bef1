"""A block of inputs of each target, and that the fuzzer finds faults that were put in."""

import os
import subprocess
import sys

import pytest

fuzz = pytest.importorskip("fuzz", reason="alarms and limits of memory need POSIX", exc_type=ImportError)


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_a_block(target):
    if target in ("http", "spamd"):
        pytest.importorskip("msgspec")
    told = [0, 0, 0, 0]
    fuzz.try_block(target, 1, told)
    assert told == [0, fuzz.TARGETS[target].size - 1, 0, 0]


@pytest.mark.heavy
def test_the_command():
    pytest.importorskip("msgspec")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, fuzz.__file__, "--inputs", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(" inputs, 0 failures\n")


def test_a_failure_is_told_with_its_input(monkeypatch, capsys):
    def check(streams, random):
        for data, _, _ in streams:
            assert b"7" not in data

    monkeypatch.setitem(fuzz.TARGETS, "readers", fuzz.TARGETS["readers"]._replace(check=check))
    told = [3, 0, 0, 0]
    fuzz.try_block("readers", 0, told)
    inputs, _ = fuzz.block_of("readers", 0, 3)
    assert told[1:3] == [next(i for i, (data, _, _) in enumerate(inputs) if b"7" in data), 1]
    said = capsys.readouterr().out
    assert f"--block 3, input {told[1]}" in said and "AssertionError" in said and repr(inputs[told[1]]) in said
