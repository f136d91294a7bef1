"""What people install: the source archive has everything, and the wheel built from it runs without a compiler."""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = [sys.executable, "-m"]
EVALUATE = "import stream_pegasos.cli; print(stream_pegasos.__file__); stream_pegasos.cli.main()"


def install(wheel, folder):
    installed = folder / "installed"
    subprocess.run([*RUN, "pip", "install", "--no-deps", "--target", installed, wheel], check=True)
    return installed


def evaluate(installed, limit, **environment):
    """What the installed command says of as many messages, with warnings as errors and away from the source."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", EVALUATE, "evaluate", "--limit", str(limit)],
        env={**os.environ, "PYTHONPATH": str(installed), **environment},
        cwd=installed.parent,
        check=True,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.mark.heavy
def test_the_wheel_is_built_from_the_source_archive_alone(tmp_path):
    pytest.importorskip("build")
    if not (ROOT / ".git").exists():
        pytest.skip("only a clone knows which files it has")
    (tmp_path / "cc").write_text('#!/bin/sh\nexec cc "$@" -O0\n', encoding="utf-8")  # optimising takes most of the time
    (tmp_path / "cc").chmod(0o755)
    environment = {**os.environ, "CC": str(tmp_path / "cc")}
    subprocess.run([*RUN, "build", "--outdir", tmp_path, ROOT], env=environment, check=True, capture_output=True)
    (archive,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, encoding="utf-8"
    ).stdout.split()
    with tarfile.open(archive) as names:
        assert {name.partition("/")[2] for name in names.getnames()} >= set(tracked)
    installed = install(wheel, tmp_path)
    done = evaluate(installed, 3000, PATH="", STREAM_PEGASOS_ENGINE="compiled")
    assert done.stdout.startswith(str(installed))
    assert "3,000" in done.stdout


@pytest.mark.heavy
def test_without_a_compiler_it_is_built_and_runs_where_warnings_are_errors(tmp_path, monkeypatch):
    """As it says, on the pure engine. The build's own tools are installed before, as some cannot bear it."""
    build = pytest.importorskip("build")
    env = pytest.importorskip("build.env")
    source = tmp_path / "source"
    leave_out = shutil.ignore_patterns(".*", "*.so", "*.c", "__pycache__", "*.egg-info", "build", "examples", "tests")
    shutil.copytree(ROOT, source, ignore=leave_out)
    with env.DefaultIsolatedEnv() as isolated:
        builder = build.ProjectBuilder.from_isolated_env(isolated, source)
        isolated.install(builder.build_system_requires)
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONWARNINGS", "error")
            patch.setenv("CC", shutil.which("false"))
            assert builder.get_requires_for_build("wheel") <= builder.build_system_requires
            wheel = builder.build("wheel", tmp_path)
    installed = install(wheel, tmp_path)
    assert not [*installed.rglob("compiled*.so"), *installed.rglob("engine_builder.py")]
    done = evaluate(installed, 100, STREAM_PEGASOS_ENGINE="")
    assert done.stdout.startswith(str(installed))
    assert "without a C compiler that works; get one (" in done.stderr
