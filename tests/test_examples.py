"""Every example runs from start to end."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from river import datasets, linear_model

from stream_pegasos.streams import synthetic

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "send_stream")
PAPERS = sorted(path for path in (FOLDER / "papers").glob("*.py") if path.stem not in ("batch", "common", "variants"))


def run(folder: Path, *command: str | Path) -> str:
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    """On a stream shorter than its own where it takes one."""
    stream = tmp_path / "stream.tsv"
    stream.write_text(
        "label\ttext\n" + "".join(f"{label}\t{text}\n" for text, label in synthetic(600)), encoding="utf-8"
    )
    run(tmp_path, example, *[stream] * ("[STREAM" in example.read_text("utf-8")))


def test_a_learner_of_ones_own_learns_as_rivers_does(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    from passive_aggressive import PassiveAggressiveClassifier

    own, peer = PassiveAggressiveClassifier(C=0.1), linear_model.PAClassifier(C=0.1, mode=1, learn_intercept=False)
    for x, y in datasets.Phishing():
        own.learn_one(x, y)
        peer.learn_one(x, y)
    assert own.weights == pytest.approx(peer.weights, rel=1e-12)
    own.save(tmp_path / "model")
    loaded = PassiveAggressiveClassifier.load(tmp_path / "model")
    assert loaded.weights == own.weights and loaded.predict_proba_one(x) == own.predict_proba_one(x)


def test_sending_a_stream_goes_on_where_the_service_is(tmp_path: Path) -> None:
    service = pytest.importorskip(
        "service", reason="the service is not installed: pip install 'stream-pegasos[service]'"
    )
    lines = [f"{'spam' if i % 3 else 'ham'}\t{'win' if i % 3 else 'lunch'} {i}\n" for i in range(300)]
    stream = tmp_path / "stream.txt"
    with service.running() as (port, _):
        for n, sent in ((200, 200), (300, 100), (300, 0)):
            stream.write_text("".join(lines[:n]), encoding="utf-8")
            url = f"http://127.0.0.1:{port}"
            assert f"sent {sent} messages" in run(tmp_path, FOLDER / "send_stream.py", stream, "--url", url)
            with urllib.request.urlopen(f"{url}/monitor") as answer:
                assert json.load(answer)["n"] == n


@pytest.mark.heavy
@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.stem)
def test_paper_runs(paper: Path, tmp_path: Path) -> None:
    printed = run(tmp_path, "-W", "error", paper, "--small")
    figure = tmp_path / f"{paper.stem}.png"
    # Without the real streams a script says what it misses, and draws nothing.
    assert figure.is_file() or "STREAM_PEGASOS_DATA" in printed
    assert not figure.is_file() or figure.stat().st_size < 100_000


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
    assert len(PAPERS) >= 3
