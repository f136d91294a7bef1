"""Options of the command, its mistakes in use and its help."""

import dataclasses
import importlib
import subprocess
import sys

import click
import pytest
from commands import environment

from stream_pegasos import PegasosClassifier, TextClassifier, load
from stream_pegasos.cli import COMMANDS
from stream_pegasos.cli.options import ModelOptions


def test_what_is_not_given_is_left_to_the_model(main):
    assert main("train", "mail.jsonl", "--save", "m", "--analyzer", "char", "--ngrams", 3)[0] == 0
    default = TextClassifier()
    expected = {**default.features._get_params(), "analyzer": "char", "ngram_range": (3, 3)}
    expected |= {"prefix_length": 0, "boundaries": False}  # which are for words only
    assert load("m").features._get_params() == expected
    assert load("m").classifier._get_params() == default.classifier._get_params()


def test_options_of_one_classifier_are_not_for_the_other(main):
    assert main("train", "mail.jsonl", "--save", "m", "--t0", 100)[0] == 0
    assert isinstance(load("m").classifier, PegasosClassifier)
    for arguments, flag in (
        (("--classifier", "adaptive", "--t0", 1), "--t0"),
        (("--classifier", "pegasos", "--half-life", 9), "--half-life"),
        (("--l2", 1e-3, "--learning-rate", 1), "--learning-rate"),
        (("--classifier", "svm"), "--classifier"),
        (("--drift-detector", "base"), "--drift-detector"),
    ):
        code, _, err = main("evaluate", "mail.jsonl", *arguments)
        assert code == 2
        assert flag in err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["evaluate", "--l2", "-1"], "l2"),
        (["evaluate", "--l2", "x"], "--l2"),
        (["evaluate", "--ngrams", "one"], "--ngrams"),
        (["evaluate", "--ngrams", "3,1"], "ngram_range"),
        (["evaluate", "--format", "xml", "mail.jsonl"], "--format"),
        (["evaluate", "--token-pattern", "("], "token_pattern"),
        (["evaluate", "--delay", "-1"], "--delay"),
        (["evaluate", "--text-field", "label", "mail.jsonl"], "--text-field"),
        (["evaluate", "a.vw", "--binary"], "--binary"),
        (["train", "mail.jsonl"], "--save"),
        (["train", "mail.jsonl", "--save", "m", "--load", "m", "--l2", "1"], "--load"),
        (["predict"], "MODEL"),
        (["explain", "m", "--top", "0"], "--top"),
        (["serve", "--allowed-host", "example.org:80"], "--allowed-host"),
        (["serve", "m", "--load", "m"], "--load"),
        (["evaluate", "--nonsense"], "--nonsense"),
        (["nonsense"], "nonsense"),
    ],
)
def test_usage(main, arguments, word):
    code, out, err = main(*arguments)
    assert code == 2
    assert out == ""
    assert word in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "mail.jsonl", "--save", "m", "--threads", "ten"], "'ten' is not a whole number of at least 1"),
        (["train", "mail.jsonl", "--save", "m", "--threads", "1.5"], "'1.5' is not a whole number of at least 1"),
        (["evaluate", "--limit", "-3"], "'-3' is not a whole number of at least 0"),
        (["serve", "--port", "65536"], "'65536' is not a whole number from 0 to 65535"),
        (["run", "--checkpoint-seconds", "nan"], "'nan' is not a number of at least 0.1"),
        (["evaluate", "--half-life", "x"], "'x' is not a number"),
        (["evaluate", "--drift-detector", "Adwin"], "which are ADWIN, DDM, "),
    ],
)
def test_a_mistake_says_what_is_wanted(main, arguments, said):
    code, _, err = main(*arguments)
    assert code == 2 and said in err


def test_version(main):
    code, out, _ = main("--version")
    assert code == 0
    assert out.startswith("stream-pegasos ")
    assert out.split()[1][0].isdigit()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_help_has_whole_names_and_every_default(main, name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = main(name, "--help-all")[1]
    module = name.replace("-", "_")
    command = getattr(importlib.import_module(f"stream_pegasos.cli.{module}"), module)
    options = [each for each in command.params if isinstance(each, click.Option)]
    for option in options:
        assert {*option.opts, *option.secondary_opts} <= {*text.split()}
        said = option.help.partition(" [default: ")[2]
        assert said and f"[default: {said}" in " ".join(text.split())
        if isinstance(option.default, (str, int, float)) and not isinstance(option.default, bool):
            assert said == f"{option.default}]"
    assert len(options) > 5 or name in ("freeze", "forget-class")  # which have few


def test_defaults_of_the_model_in_the_help_are_those_of_the_model():
    model = TextClassifier()
    pegasos = PegasosClassifier()
    for field in dataclasses.fields(ModelOptions):
        said = field.metadata.get("shown", "off")
        parts = [model.features, model.classifier, pegasos]
        (value, *_) = [getattr(part, field.name) for part in parts if hasattr(part, field.name)] or [None]
        if isinstance(value, bool):
            on, _, off = field.metadata["flag"].partition("/")
            assert said.startswith((on if value else off).removeprefix("--"))
        elif isinstance(value, tuple):
            assert said == ",".join(map(str, value))
        elif isinstance(value, (int, float)):
            assert float(said) == value
        elif isinstance(value, str):
            assert said == value
        else:
            assert value is None and said.split()[0] in ("no", "none", "off", "1,", "adaptive,", "words")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_teaches_on_one_screen(main, name):
    code, out, err = main(*name.split(), "--help")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert any(line.strip().startswith(f"stream-pegasos {name}") for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_line_of_the_short_help_is_in_the_long_one(main, name):
    """Examples and names of options, in the same words."""
    short, long = (main(name, flag)[1] for flag in ("--help", "--help-all"))
    assert "Examples:" in long
    assert {word for word in short.split() if word.startswith("--")} <= set(long.split())
    assert {line for line in short.splitlines() if line.startswith("  stream-pegasos")} <= {
        line.removeprefix("  ") for line in long.splitlines()
    }


def modules_after(*arguments):
    """The modules that are imported once a command has ended."""
    script = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules)); import stream_pegasos.cli as c; c.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_imports_nothing_that_is_not_needed():
    imported = modules_after("--help")
    assert "click" in imported
    assert not imported & {"numpy", "river", "orjson", "rich", "stream_pegasos.engine", "stream_pegasos.cli.options"}


def test_evaluate_imports_nothing_heavy(tmp_path):
    (tmp_path / "mail.jsonl").write_text('{"text": "win a prize", "label": "spam"}\n')
    imported = modules_after("evaluate", str(tmp_path / "mail.jsonl"))
    assert "stream_pegasos.evaluation.prequential" in imported
    heavy = {
        "matplotlib",
        "pandas",
        "narwhals",
        "rich",
        "river.optim",
        "river.drift",
        "river.utils",
        "scipy",
    }
    assert not imported & heavy


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_named_in_the_list_as_in_its_help(main, name):
    """Short enough for a line of its own."""
    (line,) = [line for line in main("--help")[1].splitlines() if line.split()[:1] == [name]]
    assert line.endswith(COMMANDS[name]) and len(line) <= 80
