"""The command `tune`: what it tries, and that the line which it ends with does what it says."""

import shlex

import numpy as np
import pytest

from stream_pegasos import load
from stream_pegasos.cli.options import ModelOptions
from stream_pegasos.cli.tune import FEATURES, LEARNERS, THE_DEFAULTS, models_to_try


@pytest.fixture
def by_letters(tmp_path):
    """A stream in which every word is new, and their beginnings do not tell the class: only the letters within do."""
    rng = np.random.default_rng(1)
    letters = np.array(list("bcdfghjklmnprstvz"))

    def word(mark):
        begin, end = rng.choice(letters, (2, 5))
        return "".join(begin) + mark + "".join(end)

    path = tmp_path / "words.csv"
    lines = [f"{' '.join(word('qu' if i % 2 else 'xy') for _ in range(3))},{'ab'[i % 2]}" for i in range(3_000)]
    path.write_text("words,label\n" + "\n".join(lines))
    return path


def test_the_line_at_the_end_trains_the_model_that_was_found(main, by_letters, tmp_path):
    saved, plot = tmp_path / "tuned", tmp_path / "tune.svg"
    code, out, err = main("tune", by_letters, "--text-field", "words", "--save", saved, "--plot", plot)
    assert (code, err) == (0, "")
    assert "char_wb" in out
    line = shlex.split(out.splitlines()[-1])
    assert line[:2] == ["stream-pegasos", "train"]
    line[line.index("model.safetensors")] = str(tmp_path / "trained")
    assert main(*line[1:])[0] == 0
    tuned, trained = load(saved), load(tmp_path / "trained")
    assert tuned.features._get_params() == trained.features._get_params()
    assert tuned.classifier._get_params() == trained.classifier._get_params()
    texts = [line.partition(",")[0] for line in by_letters.read_text().splitlines()[1:200]]
    np.testing.assert_allclose(tuned.predictions(texts).scores, trained.predictions(texts).scores, rtol=1e-4, atol=1e-6)
    assert plot.read_text().count("char_wb") >= 1


def test_the_defaults_win_where_nothing_is_better(main, tmp_path):
    path = tmp_path / "mail.jsonl"
    path.write_text('{"text": "win a prize", "label": "spam"}\n{"text": "lunch?", "label": "ham"}\n' * 20)
    code, out, _ = main("tune", path)
    assert code == 0
    assert "Best: the defaults" in out
    assert out.splitlines()[-1] == f"  stream-pegasos train {path} --save model.safetensors"
    assert main("tune", tmp_path / "nothing.jsonl")[0] == 1


@pytest.mark.parametrize(
    ("options", "n"),
    [
        ({}, len(FEATURES) * len(LEARNERS)),
        ({"multi_label": True}, len(FEATURES) * (len(LEARNERS) - 1)),
        ({"l2": 1e-3}, len(FEATURES) * 2),
        ({"half_life": 10.0, "ngram_range": "1"}, (len(FEATURES) - 3) * 3),
    ],
)
def test_what_is_given_stays_in_all(options, n):
    made = models_to_try(ModelOptions(**options), None)
    assert len(made) == n
    assert THE_DEFAULTS in made
    for name, value in options.items():
        for model in made.values():
            parts = [model.features, model.classifier]
            found = [getattr(part, name) for part in parts if hasattr(part, name)]
            assert name == "multi_label" or found == [(1, 1) if name == "ngram_range" else value]


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("accuracy", "accuracy"),
        ("macro-f1", "macro F1"),
        ("log-loss", "log loss"),
        ("auc", "AUC"),
        ("recall@0.01", "recall of spam at 0.01"),
    ],
)
def test_any_metric_is_optimised(main, here, metric, title):
    options = ["--pos-label", "spam", "--analyzer", "word", "--learning-rate", 0.5, "--half-life", 1e4]
    code, out, err = main("tune", "mail.jsonl", "--metric", metric, *options, "--plot", "t.png")
    assert (code, err) == (0, "") and f"  {title}  " in out
    assert (here / "t.png").stat().st_size


def test_a_metric_that_is_none_or_not_for_such_labels_is_refused(main, here):
    code, _, err = main("tune", "mail.jsonl", "--metric", "kappa")
    assert code == 2 and "--metric" in err and "recall@R" in err
    (here / "odd.jsonl").write_text((here / "mail.jsonl").read_text() + '{"text": "hi", "label": "eggs"}\n')
    code, _, err = main("tune", "odd.jsonl", "--metric", "auc")
    assert code == 1 and "line 601: a third label came" in err
