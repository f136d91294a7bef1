"""What a type checker says of code that uses the package."""

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import stream_pegasos
from stream_pegasos.learners.model import Model

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
label = model.predict_one("text")
said: str = label if isinstance(label, str) else repr(label)
probability: float = model.predict_proba_one("text")["spam"]
known: tuple[bool | int | str, ...] = model.classes
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
    "model.predict_one('text') + 1",
    "model.predict_proba_one('text')['spam'].upper()",
]


def test_the_version_is_that_of_the_distribution():
    assert stream_pegasos.__version__ == version("stream-pegasos")


@pytest.mark.parametrize("name", [name for name in stream_pegasos.__all__ if name.endswith("Classifier")])
def test_completion_offers_what_is_documented(name):
    """Of the package its public names; of a model its parameters and what has a docstring, but no inner parts."""
    assert {of for of in dir(stream_pegasos) if of[0] != "_"} == {of for of in stream_pegasos.__all__ if of[0] != "_"}
    kind = getattr(stream_pegasos, name)
    offered = {of for of in dir(kind()) if of[0] != "_"}
    assert {"learn_one", "predict_one", *inspect.signature(kind).parameters} <= offered
    assert not offered & {"learner", "labels", "vocabulary", "learn_rows", "encode_one", "from_state", "trainer"}
    told = inspect.getdoc(kind) + inspect.getdoc(Model)
    for of in offered - {"mutate", "clone"}:  # which are River's
        assert of in told or inspect.getdoc(getattr(kind, of, None)), of


ROOT = Path(stream_pegasos.__file__).parents[1]
SNIPPETS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


def errors_by_mypy(folder: Path) -> set[tuple[str, int]]:
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command = ["mypy", *settings, "--no-error-summary", *names(folder)]
    return {(file, int(line)) for file, line in re.findall(r"^(\w+\.py):(\d+): error:", output(folder, command), re.M)}


def errors_by_pyright(folder: Path) -> set[tuple[str, int]]:
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    found = json.loads(output(folder, ["basedpyright", "--outputjson", "--pythonpath", sys.executable]))
    assert found["summary"]["filesAnalyzed"] == len(names(folder))
    errors = (of for of in found["generalDiagnostics"] if of["severity"] == "error")
    return {(Path(of["file"]).name, of["range"]["start"]["line"] + 1) for of in errors}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.py"))


def output(folder: Path, command: list[str]) -> str:
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.stdout or not done.returncode, done.stderr
    return done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("errors", [errors_by_mypy, errors_by_pyright])
def test_what_is_wrong_is_found_and_what_is_right_is_not(errors, tmp_path):
    lines = [*RIGHT.splitlines(), *WRONG]
    (tmp_path / "use.py").write_text("\n".join(lines), encoding="utf-8")
    for i, snippet in enumerate(SNIPPETS):
        (tmp_path / f"readme_{i}.py").write_text(f"# mypy: allow-untyped-calls\n{snippet}", encoding="utf-8")
    assert len(SNIPPETS) >= 5
    assert errors(tmp_path) == {("use.py", lines.index(wrong) + 1) for wrong in WRONG}
