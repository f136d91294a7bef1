"""A block of inputs of each target, and that the fuzzer finds faults that were put in."""

import asyncio
import subprocess
import sys

import pytest

from stream_pegasos.runtime.live_learner import LiveLearner

fuzz = pytest.importorskip("fuzz", reason="alarms and limits of memory need POSIX", exc_type=ImportError)


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_a_block(target):
    if target in ("http", "spamd"):
        pytest.importorskip("msgspec")
    assert not fuzz.try_block(target, seed=0, number=1)


@pytest.mark.heavy
def test_the_command():
    pytest.importorskip("msgspec")
    command = [sys.executable, fuzz.__file__, "--inputs", "100"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 0 failures") == len(fuzz.TARGETS)


def test_a_failure_is_told_with_its_input(monkeypatch, capsys):
    def check(streams, random):
        for data, _, _ in streams:
            assert b"7" not in data

    monkeypatch.setitem(fuzz.TARGETS, "readers", fuzz.TARGETS["readers"]._replace(check=check))
    assert fuzz.try_block("readers", 0, 3)
    inputs, _ = fuzz.block_of("readers", 0, 3)
    at = next(i for i, (data, _, _) in enumerate(inputs) if b"7" in data)
    said = capsys.readouterr().out
    assert f"--block 3, input {at}\n{inputs[at]!r}\n" in said and "AssertionError" in said


def test_requests_that_once_failed(capsys):
    service = pytest.importorskip("stream_pegasos.service", exc_type=ImportError)
    app = service.create_app(LiveLearner(fuzz.TextClassifier()))
    json, huge = (b"content-type", b"application/json"), (b"content-length", b"9" * 5000)
    cases = [("/predict", [json, huge], "whole", 413), ("/predict", [json], "disconnect", 400)]
    for path, headers, end, status in [*cases, ("/learn", [json], "disconnect", 400)]:
        request = ("POST", path, b"", headers, [b'{"text": "x",', b' "label": 1}'], end)
        answered, _, body = asyncio.run(fuzz.answer_to(app, request))
        assert answered == status and b"internal" not in body
    assert capsys.readouterr().err == ""
