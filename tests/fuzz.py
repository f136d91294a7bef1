"""Feed the package with hostile input, and check what it does with it.

    python tests/fuzz.py --inputs 10_000_000
    python tests/fuzz.py --target readers --seed 3 --block 17

The second command tries one block of inputs again, as the report of a failure names it. Each target runs in a process
of its own, so that a crash and a hang are failures like others. The exit status is 1 if there was any failure.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import io
import json
import math
import multiprocessing
import os
import re
import resource
import socket
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fuzz_inputs
import numpy as np

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, MailFeatures, TextClassifier
from stream_pegasos.engine import pure as pure_engine
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.mail_text.parts import mail_parts
from stream_pegasos.streams import Example, StreamError, read

SECONDS = 30  # that one input, or one block of texts, may take


def check_predicts(model, examples):
    several, classifier = "several labels" in model.capabilities, model.parts["classifier"]
    limit = getattr(classifier, "max_features", None)
    assert limit is None or classifier.n_features <= limit
    for labels in model.predict_many(examples):
        assert {*labels} <= {*model.classes} if several else labels in (None, False, True, *model.classes)
    for x in examples[:2]:
        model.predict_one(x)
        model.predict_proba_one(x)
    return model.predict_proba_many(examples)


def state_of(model):
    snapshot = model.snapshot()
    return {name: (array.dtype, array.tobytes()) for name, array in snapshot.arrays.items()}, snapshot.values


def check_texts(texts, random):
    """The values of texts are finite and of length 1 or 0, and, of the last few, what the pure engine finds. Learning
    leaves finite weights, no more than allowed, and the model predicts; learning one by one gives the same.
    """
    texts, features = [*texts], fuzz_inputs.features(random)
    matrix = features.transform_many(texts)
    assert matrix.shape == (len(texts), features.n_columns)
    assert np.isfinite(matrix.data).all()
    if features.norm is not None:
        hashed = matrix[:, : features.n_features]
        sizes = abs(hashed).sum(axis=1) if features.norm == "l1" else hashed.multiply(hashed).sum(axis=1)
        assert np.allclose(sizes[sizes != 0], 1.0, rtol=1e-9, atol=0.0)
    scanner = pure_engine.Scanner(*features.scanner.arguments)
    for row, text in zip(matrix[-10:], texts[-10:], strict=True):
        expected, found = scanner.transform_one(features.prepare(text)), dict(zip(row.indices, row.data, strict=True))
        assert found.keys() == expected.keys() and np.allclose([found[j] for j in expected], [*expected.values()])
    model = TextClassifier(features, fuzz_inputs.classifier_for(features, random))
    view = model.clone()
    labels = random.choices(["ham", "spam"], k=len(texts))
    weights = random.choices([1.0, 1.0, 0.0, 1e-300, 0.3, 1e30], k=len(texts))
    model.learn_many(texts, labels, weights)
    probabilities = check_predicts(model, texts[:20])
    assert ((probabilities >= 0.0) & (probabilities <= 1.0)).all() and np.allclose(probabilities.sum(axis=1), 1.0)
    assert all(np.isfinite(array).all() for array in model.snapshot().arrays.values())
    if random.random() < 0.1:
        for example in zip(texts, labels, weights, strict=True):
            view.learn_one(*example)
        assert state_of(view) == state_of(model)


def check_streams(streams, random):
    """Only examples come out of a stream, and only a `StreamError` is raised; without a callback, at the first bad
    line. What cannot be read may stand in its place.
    """
    for data, format, options in streams:
        bad, told = [], []
        examples, error = read_all(data, format, options, lambda *at, bad=bad: bad.append(at))
        for line, reason in bad:
            assert type(line) is int and line >= 1 and reason.isprintable()
        for example in examples:
            check_example(example, options["unlabelled"])
        lines = [example.line for example in examples]
        assert lines == sorted(lines if format == "jsonl" else set(lines))  # an array may stand on one line
        with_faults = {**options, "unreadable": True}
        placed, same_error = read_all(data, format, with_faults, lambda *at, told=told: told.append(at))
        assert repr([example for example in placed if example.fault is None]) == repr(examples)
        assert [(example.line, example.fault) for example in placed if example.fault is not None] == bad == told
        assert same_error == error
        strict_examples, strict_error = read_all(data, format, options, None)
        assert repr(strict_examples) == repr(examples[: len(strict_examples)])
        if bad:
            record = "mail" if format == "mail" else "line"
            assert strict_error.endswith(f"{record} {bad[0][0]}: {bad[0][1]}")
        else:
            assert len(strict_examples) == len(examples) and strict_error == error
        assert error is None or error.isprintable()


def read_all(data, format, options, on_bad_line):
    examples = []
    try:
        examples.extend(read(io.BytesIO(data), format=format, on_bad_line=on_bad_line, **options))
    except StreamError as error:
        return examples, str(error)
    return examples, None


def check_example(example, unlabelled):
    assert type(example) is Example and example.fault is None
    if type(example.x) is dict:
        assert all(type(name) in (str, int) and type(value) is float for name, value in example.x.items())
        assert all(map(math.isfinite, example.x.values()))
    else:
        assert type(example.x) is str
    assert type(example.y) in (bool, int, str, tuple) or (unlabelled and example.y is None)
    assert type(example.w) is float and 0.0 <= example.w < math.inf


def check_mails(mails, random):
    """Mails into a model, which predicts and learns them."""
    parts = [parts_in_time(mail) for mail in mails]
    labels = [i % 2 for i in range(len(parts))]
    said = TextClassifier(MailFeatures()).predict_learn_many(parts, labels).probabilities
    assert ((said >= 0.0) & (said <= 1.0)).all()


def parts_in_time(mail):
    """What is in a mail; the time is that of the processor, at best of five times, as others may hold up a machine."""
    for _ in range(5):
        start = time.thread_time()
        parts = mail_parts(mail)
        if (took := time.thread_time() - start) < 0.15 + 20e-9 * len(mail):
            return parts
    raise AssertionError(f"{took:.3f} s for {len(mail):,} bytes")


executed = []  # what ran or was imported while a file was loaded
watching = False
CODE = ("exec", "compile", "import", "os.", "subprocess.", "socket.", "ctypes.", "pickle.")


def watch(event, arguments):
    if watching and event.startswith(CODE):
        executed.append((event, arguments))


def check_model_files(contents, random):
    """A file gives a model that works, or a `ValueError` in one line; loading it runs no code and takes no memory but
    in proportion to its size: so many bytes for each byte of the file, and so many besides.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        tracemalloc.start()
        for content in contents:
            check_model_file(content, path)
        tracemalloc.stop()


def check_model_file(content, path):
    global watching
    path.write_bytes(content)
    executed.clear()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        watching = True
        model, _ = load_with_progress(path)
    except ValueError as error:
        model = None
        assert "\n" not in str(error)
    finally:
        watching = False
    peak = tracemalloc.get_traced_memory()[1] - before
    assert not executed, executed
    assert peak <= 128 * len(content) + (1 << 18), f"{peak:,} bytes for a file of {len(content):,}"
    if model is not None:
        check_loaded(model, path)


def check_loaded(model, path):
    """A model from a forged file works; its weights may be larger than any that were learned, up to infinity."""
    examples = [{"a": 1.0, "é": -0.5}, {}, {0: 2.0, 2**60: 1.0, ("b", -3): 1e45}]
    if isinstance(model, TextClassifier):
        on = model.features.on
        examples = [text if on is None else {on: text} for text in ("win a prize", "", "\ud800é 42")]
    labels = [label for label in model.classes if label is not None] or [1]
    if "several labels" in model.capabilities:
        labels = [[], labels]
    check_predicts(model, examples)
    for x in examples:
        model.learn_one(x, labels[0])
    model.learn_many(examples, [labels[-1]] * len(examples))
    model.flush()
    check_predicts(model, examples)
    model.save(path)
    try:
        loaded = stream_pegasos.load(path, model.vector_source)
    except ValueError:
        return  # from the largest state that a file may hold it grew beyond that
    assert state_of(loaded) == state_of(model)


async def answer_to(app, request):
    """What the application answers over ASGI: status, headers and body."""
    method, path, query, headers, parts, end = request
    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "scheme": "http"}
    scope |= {"method": method, "path": path, "raw_path": path.encode("utf-8", "surrogatepass"), "root_path": ""}
    scope |= {"query_string": query, "headers": headers, "client": ("127.0.0.1", 4321), "server": ("127.0.0.1", 8000)}
    events = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if end == "whole":
        events[-1]["more_body"] = False
    else:
        del events[-1]
    events.reverse()
    sent = []

    async def receive():
        if events:
            return events.pop()
        if end == "stall":
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    assert sent and sent[0]["type"] == "http.response.start"
    assert all(message["type"] == "http.response.body" for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def check_http(requests, random):
    """The answer is a success or names the client's fault, in one line of JSON; then the model is as it was before."""
    from stream_pegasos.runtime.limits import Limits
    from stream_pegasos.runtime.live_learner import LiveLearner
    from stream_pegasos.service import create_app

    limits = Limits(body=4000, text=1000, batch=20, seconds=0.01)
    model = TextClassifier(classifier=AdaptiveClassifier(max_features=random.choice([200, None])))
    service = LiveLearner(model, limits=limits, token=random.choice([None, fuzz_inputs.TOKEN]))
    app = create_app(service, random.choice([("*",), ("localhost", "127.0.0.1")]))
    secrets = [b"Traceback", b'File "', os.path.dirname(stream_pegasos.__file__).encode(), fuzz_inputs.TOKEN.encode()]

    async def check_all():
        for request in requests:
            before = state_of(service.model)
            status, headers, body = await answer_to(app, request)
            assert 200 <= status < 300 or 400 <= status < 500 or status == 503, (status, body)
            is_json = headers.get(b"content-type") == b"application/json"
            content = json.loads(body, parse_constant=refuse_constant) if is_json else None
            if status >= 400:
                assert type(content["detail"]) is str
                assert b"\n" not in body and not any(secret in body for secret in secrets)
            if status >= 400 or request[1] not in ("/learn", "/describe", "/teach"):
                assert state_of(service.model) == before

    asyncio.run(check_all())


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def check_spamd(requests, random):
    """The same of spamd, over the loopback; no file is made."""
    from stream_pegasos.mail.spamd import Spamd
    from stream_pegasos.mail.users import UserModels
    from stream_pegasos.mail.verdict import Verdicts
    from stream_pegasos.runtime.limits import Limits
    from stream_pegasos.runtime.live_learner import LiveLearner

    model = TextClassifier(MailFeatures(), AdaptiveClassifier(max_features=500))
    service = LiveLearner(model, limits=Limits(body=fuzz_inputs.LARGEST, seconds=0.05))

    async def check_all(folder):
        users = UserModels(service, random.choice([None, folder]), most_bytes=1)
        spamd, listener = Spamd(users, Verdicts()), socket.create_server(("127.0.0.1", 0))
        async with spamd.listening(listener):
            port, idle = listener.getsockname()[1], asyncio.all_tasks()
            for parts, end in requests:
                before = state_of(service.model)
                said = await spamd_answer(port, parts, end)
                if end == "gone":  # what it asked for may go on; whoever is answered came later
                    await spamd_answer(port, [b"PING SPAMC/1.2\r\n\r\n"], "half-closed")
                    while asyncio.all_tasks() - idle:
                        await asyncio.sleep(0.001)
                if said:
                    code = int(re.fullmatch(rb"SPAMD/1\.[015] (\d+) [^\r\n]*\r\n.*", said, re.DOTALL)[1])
                    assert code in {0, 65, 67, 69, 75, 76, 79} and b"Traceback" not in said and b'File "' not in said
                    if code or (b"DidSet" not in said and b"DidRemove" not in said):
                        assert state_of(service.model) == before
        assert all(path.is_dir() for path in folder.iterdir())

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ann").mkdir()
        asyncio.run(check_all(Path(folder)))


async def spamd_answer(port, parts, end):
    """What comes back until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0)
        if end == "gone":
            writer.transport.abort()
            return None
        if end == "half-closed":
            writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


class Target(NamedTuple):
    share: int  # of all inputs
    size: int  # of a block
    make: Callable[[Random], Any]  # one input
    check: Callable[[Any, Random], None]  # takes the inputs of a block, one after the other


TARGETS = {
    "scanner": Target(60, 500, fuzz_inputs.text, check_texts),
    "readers": Target(35, 1000, fuzz_inputs.stream, check_streams),
    "mail": Target(5, 100, fuzz_inputs.mail, check_mails),
    "loader": Target(3, 200, fuzz_inputs.model_file, check_model_files),
    "http": Target(2, 200, fuzz_inputs.http_request, check_http),
    "spamd": Target(1, 100, fuzz_inputs.spamd_request, check_spamd),
}


def block_of(name, seed, number):
    """The inputs of a block, and the source of what else is random in it."""
    random = Random(f"{name} {seed} {number}")
    return [TARGETS[name].make(random) for _ in range(TARGETS[name].size)], random


def try_block(name, seed, number):
    """Whether a block of inputs fails, which is told; where one crashes or hangs, the process ends with a traceback."""
    inputs, random = block_of(name, seed, number)
    at = 0

    def watched():
        nonlocal at
        for at in range(len(inputs)):
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=sys.__stderr__)
            yield inputs[at]

    try:
        TARGETS[name].check(watched(), random)
    except Exception:
        print(f"FAILURE --target {name} --seed {seed} --block {number}, input {at}\n{inputs[at]!r}", flush=True)
        traceback.print_exc(file=sys.stdout)
        return True
    finally:
        faulthandler.cancel_dump_traceback_later()
    return False


def fuzz(name, seed, numbers, megabytes):
    """What the process of a target does; the exit status is 1 if anything failed."""
    faulthandler.enable()
    if megabytes:
        resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 23, megabytes << 23))  # what is reserved may be far more
    sys.addaudithook(watch)
    start, n_failures = time.perf_counter(), 0
    for number in numbers:
        print(f"{name}, block {number}", end="\r", flush=True)  # which stands there after a crash
        n_failures += try_block(name, seed, number)
    n = len(numbers) * TARGETS[name].size
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> (20 if sys.platform == "darwin" else 10)
    per_second = n / (time.perf_counter() - start)
    print(f"{name}: {n:,} inputs, {per_second:,.0f} a second, {n_failures} failures, {held} MB of {megabytes}")
    sys.exit(n_failures > 0 or 0 < megabytes < held)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, of all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--block", type=int, help="only this block of the target")
    parser.add_argument("--megabytes", type=int, default=500, help="bound on memory; 0 for none")
    options = parser.parse_args()
    if options.block is not None and options.target is None:
        parser.error("--block needs --target")
    names = [*TARGETS] if options.target is None else [options.target]
    shares, codes = sum(TARGETS[name].share for name in names), []
    print(f"Seed {options.seed}, {stream_pegasos.engine.NAME} engine, at most {SECONDS} s an input", flush=True)
    for name in names:
        numbers = range(-(-options.inputs * TARGETS[name].share // (shares * TARGETS[name].size)))
        if options.block is not None:
            numbers = range(options.block, options.block + 1)
        arguments = (name, options.seed, numbers, options.megabytes)
        process = multiprocessing.get_context("spawn").Process(target=fuzz, args=arguments)
        process.start()
        process.join()
        codes.append(process.exitcode)
        if process.exitcode not in (0, 1):
            print(f"\nFAILURE: the process ended with exit code {process.exitcode} in that block", flush=True)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
