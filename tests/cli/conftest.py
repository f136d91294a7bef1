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
    """Run the command in this process: the exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["stream-pegasos", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, *capsys.readouterr()

    return run
