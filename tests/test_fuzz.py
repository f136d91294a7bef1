"""The properties of the fuzzer, on what hypothesis finds, and the fuzzer itself with few inputs."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import fuzz_http
import fuzz_readers
import fuzz_scanner
import pytest
from hypothesis import given
from hypothesis import strategies as st

fuzz = pytest.importorskip("fuzz", reason="alarms and limits of memory need POSIX", exc_type=ImportError)

from stream_pegasos import TextClassifier  # noqa: E402
from stream_pegasos.streams import FORMATS  # noqa: E402

SCRIPT = Path(__file__).parent / "fuzz.py"
any_text = st.text(st.characters(exclude_categories=()))


def run(*options):
    command = [sys.executable, SCRIPT, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "target, n", [("scanner", 1000), ("readers", 2000), ("mail", 200), ("loader", 400), ("http", 400), ("spamd", 200)]
)
def test_few_inputs(target, n):
    if target in ("http", "spamd"):
        pytest.importorskip("msgspec")
    done = run("--target", target, "--inputs", str(n))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{target} +{n:,} .* 0 ", done.stdout, re.MULTILINE)
    assert done.stdout.endswith(f"{n:,} inputs, 0 failures\n")


@given(texts=st.lists(any_text, min_size=1, max_size=8), seed=st.integers(0, 10**6))
def test_any_texts(texts, seed):
    random = Random(seed)
    bag = fuzz_scanner.bag_of(random)
    make = fuzz_scanner.classifier_for(bag, random)
    fuzz_scanner.check_bag(bag, texts, len(texts))
    model, twin = (TextClassifier(bag, make(Random(seed))) for _ in range(2))
    fuzz_scanner.check_learning(model, twin, texts, [i % 2 for i in range(len(texts))], [1.0] * len(texts))


@given(
    data=st.binary() | st.lists(st.sampled_from(fuzz_readers.STREAM_TOKENS)).map(b"".join),
    format=st.sampled_from(FORMATS),
    unlabelled=st.booleans(),
    encoding=st.sampled_from(fuzz_readers.ENCODINGS),
)
def test_any_bytes_as_a_stream(data, format, unlabelled, encoding):
    options = {"unlabelled": unlabelled or format == "text", "encoding": encoding}
    fuzz_readers.check_stream(data, format, options)


def test_a_failure_is_told_with_its_input(monkeypatch, capsys):
    def check(self, inputs, random, at):
        for i, (data, _, _) in enumerate(inputs):
            at(i)
            assert b"7" not in data

    monkeypatch.setattr(fuzz_readers.ReadersTarget, "check", check)
    target = fuzz_readers.ReadersTarget()
    told = []
    fuzz.try_blocks(target, "readers", 0, range(3, 5), told.append, [0, 0])
    assert [number for number, _, _ in told] == [3, 4]
    for number, i, what in told:
        inputs, _ = fuzz.block_of(target, "readers", 0, number)
        assert i == next(i for i, (data, _, _) in enumerate(inputs) if b"7" in data)
        assert "AssertionError" in what
        fuzz.report("readers", 0, number, i, what)
        assert repr(inputs[i]) in capsys.readouterr().out


@pytest.mark.parametrize(
    "path, headers, end, status",
    [
        ("/predict", [(b"content-length", b"9" * 5000)], "whole", 413),
        ("/predict", [], "disconnect", 400),
        ("/learn", [], "disconnect", 400),
        ("/predict/", [(b"host", b"evil.example")], "whole", 404),
        ("/predict", [], "whole", 200),
    ],
)
def test_requests_that_once_failed(path, headers, end, status, capsys):
    service = pytest.importorskip("stream_pegasos.service", exc_type=ImportError)
    app = service.create_app(service.Service(TextClassifier()))
    one = ("POST", path, b"", [fuzz_http.HEADERS[0], *headers], [b'{"text": "x",', b' "label": 1}'], end)
    answered, _, body = asyncio.run(fuzz_http.answer_to(app, one))
    assert answered == status and b"internal" not in body
    assert capsys.readouterr().err == ""
