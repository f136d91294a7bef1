"""The command `tune`: what it tries, and that the line which it ends with does what it says."""

import json
import shlex

import numpy as np
import pytest

from stream_pegasos import load
from stream_pegasos.cli.models import new_model
from stream_pegasos.cli.options import ModelOptions
from stream_pegasos.cli.tune import THE_DEFAULTS, TRIED, options_to_try


@pytest.fixture
def by_letters(tmp_path):
    """A stream of long texts in which every word is new, and their beginnings do not tell the class: only the letters
    within do, which the defaults leave out of long texts.
    """
    rng = np.random.default_rng(1)
    letters = np.array(list("bcdfghjklmnprstvz"))

    def word(mark):
        begin, end = rng.choice(letters, (2, 5))
        return "".join(begin) + mark + "".join(end)

    path = tmp_path / "words.csv"
    lines = [f"{' '.join(word('qu' if i % 2 else 'xy') for _ in range(30))},{'ab'[i % 2]}" for i in range(600)]
    path.write_text("words,label\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_the_line_at_the_end_trains_the_model_that_was_found(ok, by_letters, tmp_path):
    out = ok("tune --text-field words --save tuned", by_letters)
    best = """Best: --learning-rate 0.25 --features '{"analyzer": "char_wb", "ngram_range": [2, 5]}'"""
    assert best in out
    line = out.splitlines()[-1].strip()
    assert line.startswith("stream-pegasos train ") and line.endswith("--save model.safetensors")
    ok(line.removeprefix("stream-pegasos "))
    tuned, trained = load("tuned"), load("model.safetensors")
    assert tuned.features._get_params() == trained.features._get_params()
    assert tuned.classifier._get_params() == trained.classifier._get_params()
    texts = [line.partition(",")[0] for line in by_letters.read_text(encoding="utf-8").splitlines()[1:200]]
    np.testing.assert_allclose(tuned.predictions(texts).scores, trained.predictions(texts).scores, rtol=1e-4, atol=1e-6)


def test_the_defaults_win_where_nothing_is_better(ok, fails, tmp_path):
    path = tmp_path / "a file.jsonl"
    path.write_text(
        '{"text": "win a prize", "label": "spam"}\n{"text": "lunch?", "label": "ham"}\n' * 20, encoding="utf-8"
    )
    out = ok("tune", path)
    assert "Best: the defaults" in out
    line = f"  stream-pegasos train {shlex.quote(str(path))} --save model.safetensors"
    assert out.splitlines()[-1] == line
    fails("tune nothing.jsonl")


@pytest.mark.parametrize(
    ("options", "n"),
    [
        ({}, len(TRIED)),
        ({"multi_label": True}, len(TRIED)),
        ({"l2": 1e-3}, 6),
        ({"mail": True}, 5),
        ({"half_life": 10.0, "features": '{"ngram_range": [1, 1]}'}, 7),
    ],
)
def test_what_is_given_stays_in_all(options, n):
    tried = options_to_try(ModelOptions(**options), None)
    made = {name: new_model(each) for name, each in tried.items()}
    assert len(made) == n and THE_DEFAULTS in made
    given = options | json.loads(options.get("features", "{}"))
    for name in given.keys() - {"multi_label", "mail", "features"}:
        value = tuple(given[name]) if isinstance(given[name], list) else given[name]
        for model in made.values():
            found = [getattr(part, name) for part in (model.features, model.classifier) if hasattr(part, name)]
            assert found == [value]


def test_a_metric_of_evaluate_is_optimised(ok, fails):
    options = '--pos-label spam --features \'{"analyzer": "word"}\' --limit 200'
    for metric in ("macro-f1", "roc_auc"):
        assert f"  {metric.replace('-', '_')}  " in ok(f"tune mail.jsonl --metric {metric} {options}")
    err = fails("tune mail.jsonl --metric recall@0.01", code=2)
    assert "--metric" in err and "macro_f1" in err
