"""The choice of an engine, and objects of it that are copied."""

import ast
import copy
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest
from engines import compiled_engine, same_state
from interpreter import run

import stream_pegasos
from stream_pegasos import engine


def trained():
    """One object of each kind of the engine in use, none of them empty."""
    vocabulary = engine.Vocabulary()
    learner = engine.PegasosLearner(1e-3, 3, 0.5, True, 1.0)
    for i in range(20):
        learner.learn(vocabulary, {"a": 1.0 + i, i: -2.0, ("b", i): 0.5}, float(i % 3 > 0), 1.0)
    return learner, vocabulary


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_are_equal_and_independent(duplicate):
    learner, vocabulary = trained()
    names, before = duplicate(vocabulary), learner.get_state()
    other = duplicate(learner)
    assert same_state(other, learner)
    assert other.parameters == learner.parameters
    assert names.names == vocabulary.names
    for made in (learner, other):
        made.learn(duplicate(vocabulary), {"new": 1.0, "a": 3.0}, 1.0, 1.0)
    assert same_state(other, learner)
    other.learn(names, {"newer": 1.0}, 0.0, 1.0)
    assert "newer" in names.names and "newer" not in vocabulary.names
    assert learner.n_iterations == before["n_iterations"].max() + 1
    options = {
        "token_pattern": r"\b\w\w+\b",
        "lowercase": True,
        "stop_words": frozenset(["the"]),
        "ngram_range": (1, 2),
    }
    rest = {"n_features": 1 << 20, "alternate_sign": True, "binary": False, "norm": None}
    scanner = engine.Scanner(analyzer="word", **options, **rest)
    assert len(scanner.transform_one("cat dog")) == 3
    assert duplicate(scanner).transform_one("the cat the dog") == scanner.transform_one("cat dog")


def test_the_engine_is_chosen_by_the_environment():
    kind = "e.in_use(e.pure.PegasosLearner)"
    code = f"import json, stream_pegasos.engine as e; print(json.dumps([e.NAME, {kind}.__module__]))"
    assert run(code, STREAM_PEGASOS_ENGINE="pure") == ["pure", "stream_pegasos.engine.pure.pegasos"]
    if compiled_engine is not None:
        assert run(code, STREAM_PEGASOS_ENGINE="") == ["compiled", "stream_pegasos.engine.compiled"]
        assert run(code, STREAM_PEGASOS_ENGINE="compiled") == ["compiled", "stream_pegasos.engine.compiled"]


def test_an_unknown_engine_is_an_error_that_names_it():
    done = run(
        """
        import json
        try:
            import stream_pegasos.engine
        except ImportError as error:
            print(json.dumps(str(error)))
        """,
        STREAM_PEGASOS_ENGINE="fast",
    )
    assert "'fast'" in done and "'pure'" in done


WITHOUT_COMPILED = """
import json, sys, warnings

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "stream_pegasos.engine.compiled":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        import stream_pegasos, stream_pegasos.engine, stream_pegasos.learners.text
        name = stream_pegasos.engine.NAME
    except ImportError as error:
        name = str(error)
print(json.dumps([name, [str(w.message) for w in caught if "stream_pegasos" in str(w.message)]]))
"""


def test_without_a_compiled_engine_the_pure_one_says_so_once():
    name, said = run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="")
    assert name == "pure"
    assert len(said) == 1 and "STREAM_PEGASOS_ENGINE=pure" in said[0]
    assert run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="pure") == ["pure", []]
    name, said = run(WITHOUT_COMPILED, STREAM_PEGASOS_ENGINE="compiled")
    assert "compiler" in name and said == []


@pytest.mark.parametrize("where", ["source folder", "installed", "for another Python"])
def test_the_warning_tells_the_true_cause_and_cure(where, tmp_path):
    source = Path(stream_pegasos.__file__).parent
    shutil.copytree(source, tmp_path / "stream_pegasos", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    if where == "source folder":
        (tmp_path / "pyproject.toml").touch()
    if where == "for another Python":
        (tmp_path / "stream_pegasos" / "engine" / f"compiled{sysconfig.get_config_var('EXT_SUFFIX')}").write_bytes(
            b"other"
        )
    code = """
        import sys

        # An editable install finds modules that a copy lacks.
        sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
        import stream_pegasos.engine; print(stream_pegasos.__file__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "STREAM_PEGASOS_ENGINE": ""},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path))
    assert {
        "source folder": f"source folder {tmp_path}, where no engine was built",
        "installed": "installed without a C compiler",
        "for another Python": "the compiled one cannot be loaded (",
    }[where] in done.stderr
    cure = shlex.join([sys.executable, "-m", "pip", "install", "-v", "-e", str(tmp_path)])
    assert (cure in done.stderr) == (where == "source folder")


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32", "freebsd14"])
def test_the_cure_says_how_to_get_a_compiler_here(platform, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    told = engine.cause_and_cure(ModuleNotFoundError("compiled"))
    expected = {"darwin": "xcode-select --install", "win32": "Build Tools for Visual Studio"}
    assert expected.get(platform, "apt install build-essential") in told and "pip install -v" in told


def test_where_warnings_are_errors_the_pure_engine_is_logged():
    code = "import io, logging\nlogging.basicConfig(stream=(log := io.StringIO()))\n" + WITHOUT_COMPILED
    code = code.replace('simplefilter("always")', 'simplefilter("error")').replace(
        "[name, [", "[name, log.getvalue(), ["
    )
    name, logged, warned = run(code, STREAM_PEGASOS_ENGINE="")
    assert (name, warned) == ("pure", [])
    assert logged.startswith("WARNING:stream_pegasos:stream_pegasos runs on its pure Python engine")


def test_importing_pulls_in_nothing_optional():
    loaded = run(
        """
        import sys, json, stream_pegasos
        before = sorted(sys.modules)
        for name in stream_pegasos.__all__:
            getattr(stream_pegasos, name)
        print(json.dumps([before, sorted(sys.modules)]))
        """
    )
    optional = {"sklearn", "matplotlib", "click", "rich", "vowpalwabbit", "polars", "pandas"}
    slow = {"narwhals", "river.drift", "river.optim", "river.utils", "scipy"}
    for heavy in optional | slow | {"numpy", "river"}:
        assert heavy not in loaded[0]
    for heavy in optional | slow:
        assert heavy not in loaded[1]
    assert "stream_pegasos.learners.ordinal" in loaded[1]


def test_public_names_come_when_they_are_asked_for_and_are_all_listed():
    public = set(stream_pegasos.__all__)
    assert public <= set(dir(stream_pegasos))
    for name in public - {"__version__"}:
        assert getattr(stream_pegasos, name).__name__ == name
    tree = ast.parse(Path(stream_pegasos.__file__).read_text(encoding="utf-8"))
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed >= public - {"__version__"}
    with pytest.raises(AttributeError, match="'stream_pegasos' has no attribute 'Nonsense'"):
        _ = stream_pegasos.Nonsense
