"""The command `explain`."""

import io
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest, nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, naming, note, print_lines
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import exit_with_code
from stream_pegasos.cli.mail_options import header_advice
from stream_pegasos.cli.models import (
    chosen_label,
    load_model,
    message_fields,
    takes_several,
    takes_text,
    text_model,
)
from stream_pegasos.cli.options import StreamOptions, model_argument, result_field, vectors_field
from stream_pegasos.cli.stream import Stream
from stream_pegasos.common.display import printable
from stream_pegasos.learners.capabilities import Capability

if TYPE_CHECKING:
    from stream_pegasos.features.message import Message
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.learners.text import TextClassifier


@dataclass(frozen=True)
class ExplainOptions:
    model: Path = model_argument()
    stream_file: str | None = argument(
        "STREAM", "Messages like those that it learned; their words name the features.", default=None
    )
    text: str | None = result_field(
        "--text TEXT",
        "Explain the prediction for this text instead; for a model of several fields, a JSON object with them.",
        brief=True,
    )
    mail: Path | None = result_field(
        "--mail FILE", "Explain the prediction for the mail in this file instead, - for standard input.", brief=True
    )
    top: int = result_field("--top N", "How many features for each label.", type=number(int, 1), default=20, brief=True)
    label: str | None = result_field(
        "--label LABEL",
        "The label to explain.",
        brief=True,
        shown="all; for a text, the predicted one against the next",
    )
    stream: StreamOptions = bundled(without=("label_field", "id_field", "labels", "label_separator", "limit", "strict"))
    vectors: str | None = vectors_field()


@command(ExplainOptions)
def explain(arguments: ExplainOptions) -> None:
    """Print the heaviest features of each label, or explain a prediction.

    The explanation of a text compares the predicted class with the next one;
    --label explains one class. Overlapping words are one phrase, with the
    share of each word beside it. For a mail, a header that alone decides the
    label is reported.

    A text model stores hashed features, which have no names, unless it was
    trained with --keep-feature-names or is a checkpoint of serve. Otherwise the
    words of STREAM, such as the stream that it learned, name them. If several
    words share a feature, the most frequent one names it. A 0 stands for any
    digit.

    \b
    Examples:
      stream-pegasos explain mail.safetensors mail.jsonl.gz --top 10
      stream-pegasos explain rcv1.safetensors
      stream-pegasos explain mail.safetensors --text 'win a free prize'
      stream-pegasos explain bank.safetensors --text 'my card is lost' --label card_lost
    """
    if arguments.text is None and arguments.mail is None:
        _explain_weights(arguments)
        return
    if arguments.stream_file or None not in (arguments.text, arguments.mail):
        raise click.BadParameter(
            "give only one of a text, a mail, and a STREAM that names the weights of the model",
            param_hint="--text" if arguments.mail is None else "--mail",
        )
    learner = load_model(arguments.model, None, arguments.vectors)
    if arguments.label is not None and Capability.ORDINAL in learner.capabilities:
        raise click.BadParameter("ordered classes cannot be explained one by one", param_hint="--label")
    chosen = None if arguments.label is None else chosen_label(learner, arguments.label, "--label")
    message = (
        _mail(learner, str(arguments.mail), arguments.model)
        if arguments.text is None
        else _message(learner, arguments.text)
    )
    _explain_message(learner, message, arguments.model, arguments.top, chosen)
    if arguments.mail is not None and not takes_several(learner):
        _tell_of_headers(text_model(learner, arguments.model), message)


def _explain_weights(arguments: ExplainOptions) -> None:
    stream = Stream(arguments.stream_file, arguments.stream, reads_labels=False) if arguments.stream_file else None
    learner = load_model(arguments.model, stream, arguments.vectors)
    source = Input(stream, learner, unlabelled=True) if stream else None
    if Capability.WEIGHTS not in learner.capabilities:
        raise Failure(f"{arguments.model} has a kernel, so no weights explain it")
    chosen = None if arguments.label is None else chosen_label(learner, arguments.label, "--label")
    names = _names(learner.features, source) if takes_text(learner) and source else None
    if source and names is not None and not source.n_good:
        source.report_rest()
        raise source.nothing("read")
    kept_feature_names = None
    if takes_text(learner) and not source:
        kept_feature_names = kept_names(learner, arguments.model, arguments.vectors)
    lines: list[str] = []
    for about, weights, intercept in _columns(learner):
        against, speaks_for = about if isinstance(about, tuple) else (None, about)
        if chosen is not None and chosen not in (speaks_for, against):
            continue
        weighed = (
            [(weight, name) for name, weight in kept_feature_names.named(weights)]
            if kept_feature_names
            else _named(weights, names)
        )
        if chosen in (None, speaks_for):
            lines += _block(
                f"for {printable(speaks_for)}", nlargest(arguments.top, (row for row in weighed if row[0] > 0))
            )
        if chosen in (None, against) if against is not None else chosen is not None:
            heading = f"against {printable(speaks_for)}" if against is None else f"for {printable(against)}"
            lines += _block(heading, nsmallest(arguments.top, (row for row in weighed if row[0] < 0)))
        if isinstance(intercept, dict):
            lines += [f"intercept between {a} and {b} {value:+.5f}" for (a, b), value in intercept.items()]
        elif intercept:
            lines.append(f"intercept {intercept:+.5f}")
    print_lines("\n".join(lines))
    if takes_text(learner) and not source and not kept_feature_names:
        note(f"these are hashed features; for their names: stream-pegasos explain {arguments.model} STREAM")
    if source:
        source.report_rest()
        exit_with_code(source)


def kept_names(learner: "TextClassifier", path: Path, vectors: str | None) -> Any:
    """The names of features in a model file, or in a checkpoint of serve; `None` if there are none."""
    from stream_pegasos.learners.feature_names import FeatureNames
    from stream_pegasos.learners.loading import load_with_progress

    if learner.names is not None:
        return learner.names
    progress = load_with_progress(path, vectors)[1]
    if not progress or "names" not in progress.get("monitor", {}):
        return None
    names = FeatureNames()
    names.set_state(progress["monitor"]["names"])
    return names


def _columns(learner: "Model") -> "Iterator[tuple[Any, dict[Any, float], Any]]":
    """Yield the subject of each column, its weights and its intercept. The subject is a label, or two labels, which
    negative and positive weights support. Ordered classes have one column, with an intercept for each pair.
    """
    weights, intercept = learner.weights, learner.intercept
    if isinstance(next(iter(weights.values()), None), dict):
        for about in weights:
            yield about, weights[about], intercept[about]
    elif learner.classes:
        yield learner.labels.poles, weights, intercept


def _block(heading: str, rows: list[tuple[float, str]]) -> list[str]:
    return [heading, *(f"  {weight:+.5f}  {_shown(name)}" for weight, name in rows)]


def _message(learner: "Model", text: str) -> Any:
    """The message to explain: the text, or the fields of a JSON object in it, read as in predict."""
    fields = message_fields(learner)
    if not fields:
        return text
    from stream_pegasos.streams import ReadOptions
    from stream_pegasos.streams.json_lines import json_parser
    from stream_pegasos.streams.lines import make_example

    read = json_parser(ReadOptions(fields=fields, label_field=None, unlabelled=True))
    example = make_example(text.encode("utf-8", "surrogateescape"), read)
    assert example is not None
    if example.fault is not None:
        expected = f"a message of this model is a JSON object with {', '.join(fields)}"
        raise click.BadParameter(f"{expected}: {example.fault}", param_hint="--text")
    return example.x


def _mail(learner: "Model", file: str, path: Path) -> Any:
    """The mail in a file, read as in predict, as a message of the model."""
    from stream_pegasos.features.message import Fields
    from stream_pegasos.streams import read

    if not takes_text(learner) or learner.features.mail_field is None:
        raise Failure(f"{path} must be a model of mails for --mail")
    label_header = learner.field_names.get("label_field", "label")
    mails = [*islice(read(file, format="mail", label_field=label_header, unlabelled=True), 2)]
    if len(mails) != 1:
        raise Failure(f"{file} must have one mail, got {'several' if mails else 'none'}")
    return mails[0].x if learner.features.takes_text else Fields({learner.features.mail_field: mails[0].x})


def _tell_of_headers(learner: "TextClassifier", message: "Message") -> None:
    """Warn of header fields that decide the label of a mail by themselves."""
    from stream_pegasos.features.message import Fields
    from stream_pegasos.mail_text.features import read_parts
    from stream_pegasos.mail_text.telling import deciding_fields

    field = None if learner.features.takes_text else learner.features.mail_field

    def predict(mails: Iterable[Any]) -> list[tuple[Any, float]]:
        predictions = learner.predictions([mail if field is None else Fields({field: mail}) for mail in mails])
        rows = [dict(zip(predictions.classes, row, strict=True)) for row in predictions.probabilities.tolist()]
        return [(label, row.get(label, 0.0)) for label, row in zip(predictions.labels, rows, strict=True)]

    names, (label, probability) = deciding_fields(
        read_parts(message if isinstance(message, str) or field is None else message[field]), predict
    )
    for name in names:
        note(
            f"the header {name} alone decides the label: without headers that not every mail has it would be "
            f"{printable(label)}, probability {probability:.4f}; {header_advice(name)}"
        )


def _explain_message(learner: "Model", message: "Message", path: Path, top: int, chosen: "Label | None") -> None:
    from rich.console import Console
    from rich.text import Text

    from stream_pegasos.runtime.explaining import explained

    with naming(path):
        why = explained(text_model(learner, path), message, chosen, top)
    head, sides = _head_and_sides(learner, message, why)
    if "withheld" in why:
        head += f"; the limit of false positives withholds {', '.join(map(printable, why['withheld']))}"
    if "set" in why:
        labels = ", ".join(map(printable, why["set"])) or "nothing"
        head += f"; with a coverage of {learner.coverage:g} it is one of {labels}"
    written = io.StringIO()  # rich's own capture would also write to standard output
    is_terminal = True if sys.stdout is not None and sys.stdout.isatty() else None
    console = Console(file=written, force_terminal=is_terminal, highlight=False, soft_wrap=True)
    console.print(Text(head, style="bold"))
    for (phrase, value), words in zip(why["contributions"], why["words"], strict=True):
        line = f"  {value:+.5f}  {_side(sides, value)}  {_shown(phrase)}"
        if len(words) > 1:
            line += f"  ({', '.join(f'{_shown(word)} {share:+.2f}' for word, share in words)})"
        console.print(Text(line, style="green" if value > 0 else "red"))
    if n := why["n_others"]:
        console.print(Text(f"  {why['others']:+.5f}  {_side(sides, why['others'])}  {n:,} other{'s' * (n != 1)}"))
    print_lines(written.getvalue().rstrip("\n"))


def _side(sides: tuple[str, str], value: float) -> str:
    return sides[value < 0].ljust(max(map(len, sides)))


def _head_and_sides(learner: "Model", message: "Message", why: dict[str, Any]) -> tuple[str, tuple[str, str]]:
    """The prediction for a text, and the labels that positive and negative contributions support."""
    predictions = learner.predictions([message])
    chances = dict(zip(predictions.classes, predictions.probabilities[0].tolist(), strict=True))
    has_several, named, against = takes_several(learner), why["explained"], why["against"]
    labels = why["label"] if has_several else [why["label"]]
    between = " " if has_several else ", probability "
    head = ", ".join(f"{printable(label)}{between}{chances.get(label, 0.5):.4f}" for label in labels) or "no label"
    if against is not None:
        head += f"; then {printable(against)}, {chances[against]:.4f}"
    elif named is not None and named not in labels:
        head += f"; {printable(named)}: probability {chances[named]:.4f}"
    if Capability.ORDINAL in learner.capabilities:
        against, named = learner.classes[0], learner.classes[-1]
    minus = f"against {printable(named)}" if against is None else f"for {printable(against)}"
    return head, (f"for {printable(named)}", minus)


Names = dict[Any, tuple[str, float]]  # by the number of a feature: its name, and the sign of the value of this name


def _names(features: Any, source: Input) -> Names:
    """Name each feature by the most frequent of its words in the examples."""
    from collections import Counter

    counts: Counter[tuple[str, int, float]] = Counter()
    for example in source:
        try:
            prepared = features.prepare(example.x)
        except (TypeError, ValueError) as error:
            source.refuse(example, str(error))
            continue
        for name, column, value in features.contents(prepared):
            counts[name, column, math.copysign(1.0, value)] += abs(value)
    names: Names = {}
    for (name, column, sign), _ in counts.most_common():
        names.setdefault(column, (name, sign))
    return names


def _named(weights: dict[Any, float], names: Names | None) -> list[tuple[float, str]]:
    """Pairs of a weight and the name of its feature."""
    if names is None:
        return [(weight, str(name)) for name, weight in weights.items()]
    return [(sign * weights[index], name) for index, (name, sign) in names.items() if index in weights]


def _shown(feature: object) -> str:
    """A feature on one line, with the end of the text that it belongs to; `…` marks a character n-gram that begins or
    ends inside a word.
    """
    from stream_pegasos.engine.pure.tokens import BEGIN, END
    from stream_pegasos.learners.explanations import shown_ngram

    if isinstance(feature, str):
        for mark, place in ((f"{BEGIN} ", "beginning"), (f" {END}", "end")):
            if mark in feature:
                return f"{printable(feature.replace(mark, ''))} (at the {place})"
    if isinstance(feature, str) and (shown := shown_ngram(feature)) != feature:
        return printable(shown)
    if isinstance(feature, str) and feature.strip(" "):
        is_begin, is_end = feature.startswith(" "), feature.endswith(" ")
        feature = "…" * (is_end and not is_begin) + feature.strip(" ") + "…" * (is_begin and not is_end)
    return printable(feature)
