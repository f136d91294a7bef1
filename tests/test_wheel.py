"""What people install: the source archive has everything, and the wheel built from it runs without a compiler."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EVALUATE = "import stream_pegasos.cli; print(stream_pegasos.__file__); stream_pegasos.cli.main()"


@pytest.mark.heavy
def test_the_wheel_is_built_from_the_source_archive_alone(tmp_path):
    pytest.importorskip("build")
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows which files it has")
    run = [sys.executable, "-m"]
    (tmp_path / "cc").write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")  # optimising takes most of the time
    (tmp_path / "cc").chmod(0o755)
    environment = {**os.environ, "CC": str(tmp_path / "cc")}
    subprocess.run([*run, "build", "--outdir", tmp_path, ROOT], env=environment, check=True, capture_output=True)
    (archive,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    ).stdout.split()
    with tarfile.open(archive) as names:
        assert {name.partition("/")[2] for name in names.getnames()} >= set(tracked)
    installed = tmp_path / "installed"
    subprocess.run([*run, "pip", "install", "--no-deps", "--target", installed, wheel], check=True)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EVALUATE, "evaluate", "--limit", "3000"],
        env={**os.environ, "PATH": "", "PYTHONPATH": str(installed), "STREAM_PEGASOS_ENGINE": "compiled"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.stdout.startswith(str(installed))
    assert "3,000" in done.stdout
