"""The command `tune`."""

import json
import shlex
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli import options
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.console import check_outputs, note, print_lines
from stream_pegasos.cli.inputs import Input, model_for_first_message, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import new_model, save_model
from stream_pegasos.cli.stream import Stream, labelled_stream

if TYPE_CHECKING:
    from stream_pegasos.evaluation.tuning import Tuning

THE_DEFAULTS = "the defaults"
# The options that were best on eight streams, by accuracy, log loss or macro F1, among 48 choices.
TRIED: tuple[dict[str, Any], ...] = (
    {},
    {"half_life": 1_000.0},
    {"half_life": 100_000.0},
    {"learning_rate": 0.25},
    {"learning_rate": 1.0},
    {"features": {"binary": False}},
    {"features": {"binary": False}, "half_life": 1_000.0},
    {"features": {"mask_digits": False}},
    {"features": {"prefix_length": 0}},
    {"features": {"prefix_length": 5}},
    {"features": {"ngram_range": [1, 3]}},
    {"features": {"analyzer": "char_wb", "ngram_range": [2, 5]}, "learning_rate": 0.25},
)
OF_ADAPTIVE = {"half_life", "learning_rate"}
NOT_TUNED = ("learning_rate", "half_life", "threshold", "max_false_positive_rate", "coverage", "drift_detector", "l2")


@dataclass(frozen=True)
class TuneOptions:
    file: str | None = argument("FILE", "The stream, - for standard input.", default=None)
    mails: options.MailOptions = bundled()
    stream: options.StreamOptions = bundled(without=("id_field", "labels", "strict"))
    model: options.ModelOptions = bundled(without=NOT_TUNED)
    metric: str | None = options.result_field(
        "--metric NAME",
        "What to optimise: a metric that evaluate prints, such as macro_f1, log_loss or, for two classes, roc_auc.",
        brief=True,
        shown="the first that evaluate prints",
    )
    save: Path | None = options.save_field()


@command(TuneOptions)
def tune(arguments: TuneOptions) -> None:
    """Find the features, the learner and the options that predict a stream best.

    A dozen models predict and then learn each message side by side, in one
    pass. After 1,000 messages the worse half is dropped, and again each time
    the number of messages has doubled. Options that you give apply to all
    models. The defaults stay to the end, and win unless another model is
    better by more than three standard errors. A model is judged, by --metric,
    on the newer half of its messages. --save writes the model that won.

    \b
    Examples:
      stream-pegasos tune mail.jsonl.gz
      stream-pegasos tune stars.csv --ordered --metric mean_absolute_error
    """
    from stream_pegasos.evaluation import tuning as module

    check_outputs(save=arguments.save)
    stream = labelled_stream(arguments.file, arguments.mails, arguments.stream)
    learner = new_model(arguments.model, stream)
    source = Input(stream, learner)
    with Interrupt() as interrupt, closing(source):
        learner = model_for_first_message(learner, arguments.model, source, interrupt.wait)
        try:
            metric = module.check_metric(learner, arguments.metric and _metric(arguments.metric))
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--metric") from None
        choices = options_to_try(arguments.model, stream)
        models = {
            name: new_model(model_options, stream, has_several=source.several)
            for name, model_options in choices.items()
        }
        with progress_bar(source) as progress:
            tuning = module.tune(models, interrupt.until_signal(source), metric, source.refuse, progress)
        source.report_rest()
        if not tuning.n:
            raise source.nothing("learned")
        head = f"{source.name}: {len(models)} models, {tuning.n:,} messages, {source.bad_lines()}"
        files = _flags(arguments.mails) if arguments.file is None else shlex.quote(arguments.file)
        best, is_default = tuning.best.name, tuning.best is tuning.candidates[0]
        train = ["stream-pegasos train", files, _flags(arguments.stream), _flags(choices[best])]
        print_lines("\n".join([head + ", interrupted" * tuning.interrupted, "", *_table(tuning), ""]))
        why = ". No other model is better by more than three standard errors." * is_default
        print_lines(f"Best: {best}{why}\n  {' '.join(filter(None, train))} --save model.safetensors")
        if arguments.save:
            save_model(tuning.best.model, arguments.save)
    exit_with_code(source, interrupt)


def _metric(name: str) -> str:
    """The name of a metric in all outputs; an older spelling has hyphens."""
    spelt = name.replace("-", "_")
    if spelt != name:
        note(f"--metric {name} is now written --metric {spelt}")
    return spelt


def options_to_try(arguments: options.ModelOptions, stream: Stream | None) -> dict[str, options.ModelOptions]:
    """The given options alone, and with additions, by the flags of the additions."""
    fixed = {name for name, value in vars(arguments).items() if value is not None} - {"features"}
    if arguments.mail or (stream is not None and (stream.is_mail or stream.has_features)):
        fixed.add("features")
    if arguments.classifier == "pegasos" or "l2" in fixed:
        fixed |= OF_ADAPTIVE
    own = {} if arguments.features is None else options.json_of_features(arguments.features)
    fixed_of_features = own.keys() | ({"analyzer"} if arguments.vectors is not None else set())  # these are for words
    candidates = {THE_DEFAULTS: arguments}
    for change in TRIED[1:]:
        more = change.get("features", {})
        if not change.keys() & fixed and not more.keys() & fixed_of_features:
            name = _flags(options.ModelOptions(**_written(change)))
            candidates[name] = replace(
                arguments, **_written(change | {"features": own | more} if own or more else change)
            )
    return candidates


def _written(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if name == "features" else value for name, value in parameters.items()}


def _flags(group: options.MailOptions | options.StreamOptions | options.ModelOptions) -> str:
    """The options that differ from the defaults, as flags of the command line."""
    words = []
    for field in fields(group):
        value = vars(group)[field.name]
        if value != field.default:
            on, _, off = field.metadata["flag"].partition(" ")[0].partition("/")
            for single in value if isinstance(value, tuple) else (value,):
                written = shlex.quote(str(single).removesuffix(".0") if isinstance(single, float) else str(single))
                words += [on if single else off] if isinstance(single, bool) else [on, written]
    return " ".join(words)


def _table(tuning: "Tuning") -> list[str]:
    rows = [("over the newer half", "messages", tuning.metric, "gain ± error")]
    for result in tuning.ranking:
        gain = "" if result is tuning.candidates[0] else f"{result.gain:+.4f} ± {result.error:.4f}"
        rows.append((result.name, f"{result.n:,}", f"{result.figure:.4f}", gain))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
