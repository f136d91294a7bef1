"""Options of the command, its mistakes in use and its help."""

import dataclasses
import importlib
import importlib.util
import platform
import subprocess
import sys
from types import SimpleNamespace

import click
import pytest
from commands import environment

from stream_pegasos import MailFeatures, PegasosClassifier, TextClassifier, TextFeatures, __version__, load
from stream_pegasos.cli import COMMANDS
from stream_pegasos.cli.options import ModelOptions
from stream_pegasos.engine import NAME


def test_what_is_not_given_is_left_to_the_model(ok, here):
    (here / "features.json").write_text('{"analyzer": "char", "ngram_range": [3, 3]}', encoding="utf-8")
    ok("train mail.jsonl --save m --features features.json")
    default = TextClassifier()
    expected = {**default.features._get_params(), "analyzer": "char", "ngram_range": (3, 3)}
    assert load("m").features._get_params() == expected
    assert load("m").classifier._get_params() == default.classifier._get_params()
    ok("train mail.jsonl --save m --l2 1e-3 --balanced")
    assert load("m").classifier.class_weight == "balanced"
    assert isinstance(load("m").classifier, PegasosClassifier)
    ok("train mail.jsonl --save m --class-weight sqrt")
    assert load("m").classifier.class_weight == "sqrt"


@pytest.mark.parametrize(
    "features",
    [
        TextFeatures(),
        TextFeatures(ngram_range=(2, 3), analyzer="char", binary=False, mask_digits=True, norm=None),
        TextFeatures(
            stop_words=["the", "a"], lowercase=False, strip_accents="ascii", prefix_length=0, boundaries=False
        ),
        MailFeatures(route=False, mask_digits=False),
    ],
)
def test_features_print_what_the_command_takes(ok, features):
    mail = "--mail" * isinstance(features, MailFeatures)
    ok(f"train mail.jsonl --save m {mail} --features", features.to_json())
    assert load("m").features.to_json() == features.to_json()
    assert load("m").features.transform_one("The á 404 404") == features.transform_one("The á 404 404")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("evaluate --l2 -1", "l2"),
        ("evaluate --l2 x", "--l2"),
        ("evaluate --features one", "one: No such file or directory; it is neither a JSON object nor a file of one"),
        ("evaluate --features {one", "--features: it must be JSON"),
        ("evaluate --features mail.jsonl", "--features: it must be JSON"),
        (
            "evaluate --features '{\"ngrams\":1}'",
            "TextFeatures has no parameter 'ngrams' here; it has n_features, ngram_range",
        ),
        ("evaluate --features '{\"vectors\":1}'", "TextFeatures has no parameter 'vectors' here"),
        ("evaluate --features '{\"ngram_range\":[3,1]}'", "ngram_range"),
        ("evaluate --mail --features '{\"binary\":true}'", "MailFeatures has no parameter 'binary' here; it has route"),
        ("evaluate --fields size", "'size' must be a name and, behind a colon, category, number, time"),
        ("evaluate --fields size:text", "'size:text' must be"),
        ("evaluate --fields :time", "':time' must be"),
        ("evaluate --format xml mail.jsonl", "--format"),
        ("evaluate --delay -1", "--delay"),
        (
            "evaluate --read-option encoding mail.csv",
            "must be encoding=…, delimiter=…, escape=… or columns=…, got 'encoding'",
        ),
        ("evaluate --read-option label=x mail.csv", "or columns=…, got 'label=x'"),
        ("evaluate --text-field label mail.jsonl", "--text-field"),
        ("evaluate a.vw --features '{\"binary\": true}'", "--features"),
        ("evaluate --classifier adaptive --l2 1", "--l2"),
        ("evaluate --classifier pegasos --half-life 9", "--half-life"),
        ("evaluate --l2 1e-3 --learning-rate 1", "--learning-rate"),
        ("evaluate --classifier svm", "--classifier"),
        ("evaluate --nonsense", "--nonsense"),
        ("train mail.jsonl", "--save"),
        ("train m mail.jsonl --save m --l2 1", "MODEL"),
        ("predict", "MODEL"),
        ("explain m --top 0", "--top"),
        ("serve --allowed-host example.org:80", "--allowed-host"),
        ("imap m --host a:b --user u", "must be a server such as mail.example.org, mail.example.org:993"),
        ("imap m --host ::1 --user u", "[::1]:993, got '::1'"),
        ("imap m --host a:70000 --user u", "got 'a:70000'"),
        ("nonsense", "nonsense"),
        ("explain m --top ten", "'ten' is not a whole number of at least 1"),
        ("explain m --top 1.5", "'1.5' is not a whole number of at least 1"),
        ("evaluate --limit -3", "'-3' is not a whole number of at least 0"),
        ("serve --port 65536", "'65536' is not a whole number from 0 to 65535"),
        ("run --checkpoint-every nans", "'nan' is not a number from 0.1 to 1000000000"),
        ("run --checkpoint-every 0", "'0' is not a whole number from 1 to 1000000000"),
        ("run --checkpoint-every s", "'' is not a number from 0.1"),
        ("evaluate --half-life x", "'x' is not a number or auto"),
        ("evaluate --drift-detector Adwin", "one of River's (ADWIN, DDM, "),
    ],
)
def test_a_mistake_says_what_is_wanted(fails, line, said):
    assert said in fails(line, code=2)


def test_version(ok):
    """And what else a report of a fault needs."""
    name, engine, python, system = ok("--version").rstrip().split(", ")
    assert ok("-V") == ok("--version")
    assert (name, python) == (f"stream-pegasos {__version__}", f"Python {platform.python_version()}")
    assert engine == f"{NAME} engine" and platform.system() in system


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", ["60", "200"])
def test_help_has_whole_names_and_every_default(ok, name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    text = ok(f"{name} --help-all")
    module = name.replace("-", "_")
    command = getattr(importlib.import_module(f"stream_pegasos.cli.{module}"), module)
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    for option in options:
        assert {*option.opts, *option.secondary_opts} <= {*text.split()}
        said = option.help.partition(" [default: ")[2]
        assert said and f"[default: {said}" in " ".join(text.split())
        if isinstance(option.default, (str, int, float)) and not isinstance(option.default, bool):
            assert said == f"{option.default}]"
    assert len(options) > 5 or name in ("mail-filter", "forget-class")  # which have few


def test_defaults_of_the_model_in_the_help_are_those_of_the_model():
    model, pegasos = TextClassifier(), PegasosClassifier()
    for field in dataclasses.fields(ModelOptions):
        said = field.metadata.get("shown", "off")
        of_words = dict(zip(("prefix_length", "boundaries"), model.features.of_words, strict=True))
        parts = [SimpleNamespace(**of_words), model.features, MailFeatures(), model.classifier, pegasos]
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
            assert value is None and said.split()[0] in ("no", "none", "off", "1,", "adaptive,")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_teaches_on_one_screen(ok, name):
    """In the same words as the long one."""
    short = ok(f"{name} --help").splitlines()
    examples = {line.strip() for line in short if line.strip().startswith(f"stream-pegasos {name}")}
    assert len(short) <= 24 and max(map(len, short)) <= 80 and examples
    if name:
        long = ok(f"{name} --help-all")
        assert "Examples:" in long and examples <= {line.strip() for line in long.splitlines()}
        assert {word for line in short for word in line.split() if word.startswith("--")} <= {*long.split()}
        (line,) = [line for line in ok("--help").splitlines() if line.split()[:1] == [name]]
        assert line.endswith(COMMANDS[name]) and len(line) <= 80


def modules_after(*arguments):
    """The modules that are imported once a command has ended."""
    script = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules)); import stream_pegasos.cli as c; c.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    return {*done.stdout.split()}


def test_nothing_is_imported_that_is_not_needed(here):
    imported = modules_after("--help")
    assert "click" in imported
    assert not imported & {"numpy", "river", "orjson", "rich", "stream_pegasos.engine", "stream_pegasos.cli.options"}
    imported = modules_after("evaluate", "mail.jsonl")
    assert "stream_pegasos.evaluation.prequential" in imported
    heavy = "matplotlib pandas narwhals rich river.optim river.drift river.utils scipy"
    assert not imported & {*heavy.split()}


def test_no_command_needs_numpy_for_its_help():
    script = (
        "import sys; from importlib import import_module; from stream_pegasos.cli import COMMANDS\n"
        "for name in COMMANDS: import_module('stream_pegasos.cli.' + name.replace('-', '_'))\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "False"


def test_word_vectors(ok, fails, here, monkeypatch):
    """They are given to a new model, and again with a saved one, wherever they are now."""
    (here / "x.vec").write_text("win 1 0.5\nlunch -1 0.25\n", encoding="utf-8")
    ok("train mail.jsonl --save m --vectors x.vec")
    assert load("m", "x.vec").vector_source.name == "x.vec"
    assert "char_wb" not in ok("tune mail.jsonl --vectors x.vec --limit 200")
    run = "run mail.jsonl --no-follow --output none --checkpoint c"
    ok("train --vectors x.vec --save new")
    ok(f"{run.replace('run', 'run new')} --vectors x.vec")
    (here / "x.vec").rename("y.vec")
    for line in "predict m mail.jsonl", "test m mail.jsonl", "explain m", "forget-class m ham --save n":
        said = fails(line)
        assert "needs the word vectors 'x.vec'" in said and "or --vectors x.vec" in said
        assert "damaged" not in said
        ok(f"{line} --vectors y.vec")
    assert "needs the word vectors" in fails("train m mail.jsonl --save n")
    ok("train m mail.jsonl --save n --vectors y.vec")
    assert load("n", "y.vec").vector_source.name == "y.vec"
    assert "file or folder that exists, got 'x.vec'" in fails("evaluate mail.jsonl --vectors x.vec")
    assert "MODEL" in fails("train m mail.jsonl --save n --vectors y.vec --l2 1", code=2)
    assert "need an AdaptiveClassifier" in fails("evaluate mail.jsonl --vectors y.vec --classifier pegasos", code=2)
    assert "--vectors" in fails("evaluate a.vw --vectors y.vec", code=2)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install '.[vectors]'" in fails("evaluate mail.jsonl --vectors wordllama")
    said = fails(run)
    assert "or --vectors x.vec" in said and "begin anew" not in said
    ok(f"{run} --vectors y.vec")


def test_options_go_on_under_their_name_of_before(main, here):
    """Flags, options that may be repeated, and others; each once, or the error names both."""
    (here / "semi.csv").write_text("a;ham\nb;spam\n" * 5, encoding="utf-8")
    columns, separator = "--read columns=text,label", "--read 'delimiter=;'"
    code, _, err = main(f"train semi.csv {columns} {separator} --names --save m")
    assert code == 0 and "--read delimiter=; is now written --read-option delimiter=;" in err
    assert "--names is now written --keep-feature-names" in err and load("m").names is not None
    code, _, err = main(f"train semi.csv {columns} {separator.replace('--read', '--read-option')} --save m")
    assert code == 2 and "given twice, the second time as --read" in err
