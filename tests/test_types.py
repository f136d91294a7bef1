"""What a type checker says of code that uses the package."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import stream_pegasos

RIGHT = """
from river import multiclass

from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, PegasosClassifier, TextClassifier
from stream_pegasos import __version__, load
from stream_pegasos.learners.model import Model

classifier = PegasosClassifier(average="weighted", class_weight="sqrt")
model = TextClassifier(HashedBagOfWords(norm=None), classifier)
again: TextClassifier = TextClassifier.load("model")
any_model: Model = load("model")
text: str = __version__
of_each_label = multiclass.OneVsRestClassifier(TextClassifier())
changed: TextClassifier = model.clone({"classifier": {"l2": 1.0}})
"""
WRONG = [
    "TextClassifier(classifier=42)",
    "TextClassifier(features='words')",
    "AdaptiveClassifier(loss='foo')",
    "AdaptiveClassifier(class_weight='balance')",
    "PegasosClassifier(average='weights')",
    "HashedBagOfWords(analyzer='words')",
    "HashedBagOfWords(norm='l3')",
    "load('model') + 1",
]


def test_the_version_is_that_of_the_distribution():
    assert stream_pegasos.__version__ == version("stream-pegasos")


@pytest.mark.heavy
def test_what_is_wrong_is_found_and_what_is_right_is_not(tmp_path):
    lines = [*RIGHT.splitlines(), *WRONG]
    (tmp_path / "use.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "use.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(Path(stream_pegasos.__file__).parents[1])},
        capture_output=True,
        encoding="utf-8",
    )
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {lines.index(wrong) + 1 for wrong in WRONG}, done.stdout
