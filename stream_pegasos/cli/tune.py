"""The command `tune`."""

import shlex
from contextlib import closing
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli import options
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.console import check_outputs, check_plot, print_lines, printable, writing
from stream_pegasos.cli.inputs import Input, model_for_first_message, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import new_model, save_model
from stream_pegasos.cli.stream import DICT_FORMATS, Stream, labelled_stream

if TYPE_CHECKING:
    from stream_pegasos.evaluation.tuning import Candidate, Tuning

# The options that are tried, all features with all learners; the first of each are the defaults.
FEATURES: tuple[dict[str, Any], ...] = (
    {},
    {"ngram_range": "1"},
    {"ngram_range": "1,3"},
    {"prefix_length": 0},
    {"prefix_length": 5},
    {"binary": False},
    {"mask_digits": False},
    {"analyzer": "char_wb", "ngram_range": "2,5"},
)
LEARNERS: tuple[dict[str, Any], ...] = (
    {},
    {"learning_rate": 0.25},
    {"learning_rate": 1.0},
    {"half_life": 1_000.0},
    {"half_life": 100_000.0},
    {"classifier": "pegasos", "t0": 10_000.0},
)
THE_DEFAULTS = "the defaults"
OF_PEGASOS = {"l2", "t0"}
OF_ADAPTIVE = {"learning_rate", "half_life", "threshold", "max_false_positive_rate", "drift_detector", "vectors"}
N_ROWS = 10
ENOUGH = 1_000  # messages
SAVE = "--save model.safetensors"
COST = {"several labels": "wrong labels a message", "ordered": "mean absolute error"}


@dataclass(frozen=True)
class TuneOptions:
    file: str | None = argument("FILE", "The stream, - for standard input.", default=None)
    mails: options.MailOptions = bundled()
    stream: options.StreamOptions = bundled(without=("id_field", "labels", "strict"))
    model: options.ModelOptions = bundled()
    metric: str = options.result_field(
        "--metric NAME",
        "What to optimise: accuracy, macro-f1, log-loss; for two classes also auc and, as "
        "recall@0.01, the share of positives caught where that share of negatives may be flagged.",
        default="accuracy",
        brief=True,
    )
    plot: Path | None = options.result_field(
        "--plot FILE",
        "Draw what each model gained over the stream: a .png, .svg or .pdf; needs matplotlib.",
        brief=True,
        shown="nowhere",
    )
    save: Path | None = options.save_field()
    force: bool = options.force_field()


@command(TuneOptions)
def tune(given: TuneOptions) -> None:
    """Find the features, the learner and the options that predict a stream best.

    Up to 48 models predict and then learn each message side by side, in one
    pass. After 1,000 messages the worse half is dropped, and again each time
    the number of messages has doubled. Options that you give hold for all
    models. The defaults stay to the end, and win unless another model is
    better by more than three standard errors, as some look better by chance. A
    model is judged, by --metric, on the newer half of its messages. --save writes the model
    that won, which has learned the stream.

    \b
    Examples:
      stream-pegasos tune mail.jsonl.gz
      stream-pegasos tune stars.csv --ordered --plot tune.png
      stream-pegasos tune bank.jsonl --max-features 100000 --save bank.safetensors
    """
    from stream_pegasos.evaluation.metrics import metric_named
    from stream_pegasos.evaluation.scores import kind_of
    from stream_pegasos.evaluation.tuning import tune as tune_models

    check_outputs(given.plot, save=given.save, force=given.force, inputs=[given.file, *given.mails.paths])
    check_plot(given.plot)
    asked = labelled_stream(given.file, given.mails, given.stream)
    learner = new_model(given.model, asked)
    source = Input(asked, learner)
    with Interrupt() as interrupt, closing(source):
        model_for_first_message(learner, given.model, source, interrupt.wait)
        models = models_to_try(given.model, asked, source.several)
        try:
            metric_named(given.metric, kind_of(next(iter(models.values()))))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--metric") from None
        with progress_bar(source) as progress:
            tuning = tune_models(
                models,
                interrupt.until_signal(source),
                metric=given.metric,
                on_refused=source.refuse,
                on_chunk=lambda tuning: progress(tuning.n, _headline(tuning)),
            )
        source.report_rest()
        if not tuning.n:
            raise source.nothing("learned")
        head = f"{source.name}: {len(models)} models, {tuning.n:,} messages, {source.bad_lines()}"
        head += ", interrupted" * tuning.interrupted
        files = _flags(given.mails) if given.file is None else shlex.quote(given.file)
        train = " ".join(filter(None, ["stream-pegasos train", files, _flags(given.stream), _flags(given.model)]))
        print_lines("\n".join([head, "", *_table(tuning), "", *_found(tuning, train)]))
        if given.plot:
            from stream_pegasos.evaluation.plot import save_tuning

            with writing(given.plot):
                save_tuning(tuning, given.plot, source.name)
        if given.save:
            save_model(tuning.best.model, given.save)
    exit_with_code(source, interrupt)


def models_to_try(given: options.ModelOptions, stream: Stream | None, several: bool = False) -> dict[str, Any]:
    """The model with the given options, and models with more options, by the flags of these."""
    # Features as input, and mails, have no options to try.
    are_fixed = given.mail or (stream is not None and (stream.is_mail or stream.format in DICT_FORMATS))
    names = {field.name for field in fields(given) if getattr(given, field.name) is not None}
    of_pegasos, of_adaptive = names & OF_PEGASOS, names & OF_ADAPTIVE
    if given.vectors is not None:
        names.add("analyzer")  # they are for words
    if of_pegasos or given.classifier == "pegasos":
        names |= OF_ADAPTIVE
    if of_adaptive or given.classifier == "adaptive" or given.multi_label or several:  # which pegasos does not learn
        names |= OF_PEGASOS
    tried = [features | learner for features, learner in product(({},) if are_fixed else FEATURES, LEARNERS)]
    return {
        _flags(options.ModelOptions(**each)) or THE_DEFAULTS: new_model(replace(given, **each), stream, several=several)
        for each in tried
        if not each.keys() & names
    }


def _flags(given: options.MailOptions | options.StreamOptions | options.ModelOptions) -> str:
    """The options that are not the defaults, as flags of the command line."""
    words = []
    for field in fields(given):
        value = getattr(given, field.name)
        if value != field.default:
            on, _, off = field.metadata["flag"].partition(" ")[0].partition("/")
            for each in value if isinstance(value, tuple) else (value,):
                written = shlex.quote(str(each).removesuffix(".0"))
                words += [on if each else off] if isinstance(each, bool) else [on, written]
    return " ".join(words)


def _headline(tuning: "Tuning") -> str:
    left = sum(not each.is_dropped for each in tuning.candidates)
    return f"{left} of {len(tuning.candidates)} models left"


def _table(tuning: "Tuning") -> list[str]:
    first, ranking = tuning.candidates[0], tuning.ranking[:N_ROWS]
    rows = [("over the newer half", "messages", _title(tuning), "gain ± error")]
    for each in ranking if first in ranking else [*ranking[:-1], first]:
        rows.append(_row(tuning, each))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # Names stand on the left, figures on the right.
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def _title(tuning: "Tuning") -> str:
    from stream_pegasos.evaluation.scores import kind_of

    name, model = tuning.metric.name, tuning.candidates[0].model
    if name == "accuracy":
        return COST.get(kind_of(model), name)
    figure, _, rate = name.replace("auc", "AUC").replace("f1", "F1").replace("-", " ").partition("@")
    return f"{figure} of {printable(model.classes[1])} at {rate}" if rate else figure


def _row(tuning: "Tuning", each: "Candidate") -> tuple[str, str, str, str]:
    mean, error = tuning.gain(each)
    figure = tuning.metric.figure(each.newer(each.n))
    if _title(tuning) == "accuracy":
        figure = 1.0 - figure
    gain = "" if each is tuning.candidates[0] else f"{mean:+.4f} ± {error:.4f}"
    return each.name, f"{each.n:,}", f"{figure:.4f}", gain


def _found(tuning: "Tuning", train: str) -> list[str]:
    """Which model is best, and the command that trains it."""
    first, best = tuning.candidates[0], tuning.best
    if best is first:
        found = f"Best: {first.name}. No other model is better by more than three standard errors."
        few = f" {tuning.n:,} messages are few; some thousands say more." * (tuning.n < ENOUGH)
        return [found + few, f"  {train} {SAVE}"]
    return [f"Best: {best.name}", f"  {train} {best.name} {SAVE}"]
