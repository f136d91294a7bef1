import io
import shlex
import sys

import pytest
from commands import stream, write_jsonl

from stream_pegasos import cli


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Commands run in a folder of their own, which holds a stream."""
    monkeypatch.chdir(tmp_path)
    write_jsonl("mail.jsonl", stream)
    return tmp_path


@pytest.fixture
def main(here, capsys, monkeypatch):
    """Run the command in this process: the exit code, standard output and standard error. The first argument is a line
    as in a shell, each other one a word.
    """
    monkeypatch.setenv("COLUMNS", "100")

    def run(line, *words, input=b""):
        (here / "input").write_bytes(input)
        monkeypatch.setattr(sys, "argv", ["stream-pegasos", *shlex.split(line), *map(str, words)])
        with (here / "input").open("rb") as file, pytest.raises(SystemExit) as end:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file, "utf-8"))
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture
def ok(main):
    """Run a command that works: standard output."""

    def run(*arguments, input=b""):
        code, out, err = main(*arguments, input=input)
        assert code == 0, err
        return out

    return run


@pytest.fixture
def fails(main):
    """Run a command that fails: standard error, whose newest line says why."""

    def run(*arguments, code=1):
        found, out, err = main(*arguments)
        assert (found, out) == (code, "") and "Traceback" not in err
        assert code == 2 or err.splitlines()[-1].startswith("stream-pegasos: error: ")
        return " ".join(err.split()) if code == 2 else err

    return run
