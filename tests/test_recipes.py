"""The recipes of `source_code.md`, followed in a copy of the package: so many files, and what is new works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stream_pegasos

PACKAGE = Path(stream_pegasos.__file__).parent

# Each change is a file, a text that stands there once, and what is put before it; a new file has no such text.
RECIPES = {
    "a metric": [
        (
            "evaluation/metric_names.py",
            '    Metric("micro_f1", (CLASSES, ORDERED)),',
            '    Metric("error", (CLASSES,)),\n',
        ),
        (
            "evaluation/scores.py",
            "    @property\n    def accuracy(self)",
            "    @property\n    def error(self) -> float:\n        return 1.0 - self.accuracy\n\n",
        ),
    ],
    "a format": [
        ("streams/read_options.py", '    "text": Format(),', '    "arrow": Format(".arrow"),\n'),
        ("streams/readers.py", "from stream_pegasos.streams.vw_svmlight", "from stream_pegasos.streams import arrow\n"),
        ("streams/readers.py", '    "text": text_parser,', '    "arrow": arrow.parser,\n'),
        (
            "streams/arrow.py",
            "",
            """
def parser(options):
    def parse(line):
        text, arrow, label = line.decode().rpartition(" -> ")
        return text, options.label(options.labels.of_text, label), 1.0, None

    return parse
""",
        ),
    ],
    "a live source": [
        (
            "streams/schemes.py",
            "SCHEMES = {",
            """
def _spool(address, settings):
    from stream_pegasos.streams.spool import Spool

    return Spool(address, settings)


""",
        ),
        (
            "streams/schemes.py",
            '    "kafka": Scheme(',
            '    "spool": Scheme("a spool", "spool:///path", LINES, _spool),\n',
        ),
        (
            "streams/spool.py",
            "",
            """
from pathlib import Path

from stream_pegasos.streams.sources import LiveSource


class Spool(LiveSource):
    def __init__(self, address, settings):
        super().__init__(f"spool {address.path}", settings)
        self._files, self._n = sorted(Path(address.path).iterdir()), settings.position or 0
        self._parse = self.line_parser("a spool")

    def next_batch(self):
        if self._n == len(self._files):
            return None
        file, self._n = self._files[self._n], self._n + 1
        return [self.example(file.read_bytes(), self._parse, file.name)]

    def snapshot(self):
        return self._n
""",
        ),
    ],
    "a kind of field": [
        (
            "features/fields.py",
            "class Time(FieldFeatures):",
            "class Initial(FieldFeatures):\n    def written(self, value):\n        return str(value)[:1]\n\n\n",
        ),
        ("__init__.py", '        "Time": "features.fields",', '        "Initial": "features.fields",\n'),
        ("cli/options.py", "    kinds: dict[", "    from stream_pegasos import Initial\n\n"),
        ("cli/options.py", '"category": Category', '"initial": Initial, '),
    ],
}


@pytest.mark.parametrize(("name", "n_files"), [("a metric", 2), ("a format", 3), ("a live source", 2)])
def test_a_recipe_touches_few_files(name, n_files):
    assert len({path for path, _, _ in RECIPES[name]}) == n_files


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """What a command of a copy of the package prints, in which the recipes were followed."""
    folder = tmp_path_factory.mktemp("recipes")
    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__", "*.c", "page"))
    for path, anchor, new in (change for changes in RECIPES.values() for change in changes):
        file = folder / PACKAGE.name / path
        text = file.read_text("utf-8") if anchor else ""
        assert not anchor or text.count(anchor) == 1, (path, anchor)
        file.write_text(text.replace(anchor, new + anchor) if anchor else new, "utf-8")
    (folder / "stream.arrow").write_text("win a prize -> spam\nlunch at noon -> ham\n" * 20, "utf-8")
    (folder / "people.jsonl").write_text('{"name": "Ann", "label": 1}\n{"name": "Bob", "label": 0}\n' * 20, "utf-8")
    (folder / "spool").mkdir()
    for i in range(5):
        (folder / "spool" / str(i)).write_text(f'{{"text": "message {i}", "label": {i % 2}}}', "utf-8")

    def run(*command):
        done = subprocess.run(
            [sys.executable, "-m", PACKAGE.name, *command],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_metric_and_a_format(run):
    lines = run("evaluate", "stream.arrow").splitlines()
    figures = dict(words for line in lines if len(words := line.split()) == 2)
    assert float(figures["error"]) == pytest.approx(1.0 - float(figures["accuracy"]), abs=2e-4)
    assert any("40 messages" in line for line in lines)


def test_a_live_source(run):
    command = ("run", "spool://spool", "--checkpoint", "model.st")
    assert len(run(*command).splitlines()) == 5
    assert not run(*command)  # the checkpoint has the position


def test_a_kind_of_field(run):
    run("train", "people.jsonl", "--fields", "name:initial", "--save", "people.st")
    told = run("explain", "people.st", "people.jsonl")
    assert "name: A" in told and "name: B" in told
