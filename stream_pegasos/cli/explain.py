"""The command `explain`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_pegasos.cli.console import Failure, note, print_lines, printable
from stream_pegasos.cli.inputs import FileInput
from stream_pegasos.cli.interrupts import exit_with_code
from stream_pegasos.cli.models import load_model, takes_text
from stream_pegasos.cli.options import ModelArgument, StreamOptions, result_option

if TYPE_CHECKING:
    from stream_pegasos.streams import Example


def explain(
    model: ModelArgument,
    stream_file: Annotated[
        str | None,
        typer.Argument(
            metavar="STREAM",
            help="Messages whose words name the hashed features of a text model.",
            show_default=False,
        ),
    ] = None,
    *,
    text: Annotated[
        str | None,
        result_option("--text", metavar="TEXT", help="Explain the prediction for this text instead.", default="none"),
    ] = None,
    top: Annotated[
        int,
        result_option("--top", min=1, metavar="N", help="How many features for each label.", default="20"),
    ] = 20,
    stream: StreamOptions,
) -> None:
    """Print the features that weigh most for either label, or why a text is predicted as it is.

    A text model stores hashed features. The words of STREAM, such as the one
    it was trained on, give them names; where several words share a feature,
    the most frequent names it.

    \b
    Examples:
      stream-pegasos explain mail.safetensors mail.jsonl.gz --top 10
      stream-pegasos explain rcv1.safetensors
      stream-pegasos explain mail.safetensors --text 'win a free prize'
    """
    if text is not None:
        if stream_file:
            raise typer.BadParameter("a stream is for the weights of the model, not for a text", param_hint="--text")
        _explain_text(load_model(model, None), text, model, top)
        return
    from heapq import nlargest, nsmallest

    source = FileInput(stream_file, stream, unlabelled=True) if stream_file else None
    learner = load_model(model, source)
    if "weights" not in learner.capabilities:
        raise Failure(f"{model} has a kernel, and no weights that explain it")
    weights: dict[Any, float] = learner.weights
    hashed = takes_text(learner)
    named: Iterable[tuple[str, float]] = ((str(name), weight) for name, weight in weights.items())
    if hashed and source:
        named = _named(learner.features, weights, source)
    weighed = [(weight, name) for name, weight in named]
    negative, positive = learner.classes
    blocks = [
        (positive, nlargest(top, (row for row in weighed if row[0] > 0))),
        (negative, nsmallest(top, (row for row in weighed if row[0] < 0))),
    ]
    lines = []
    for label, rows in blocks:
        lines.append(f"for {printable(label)}")
        lines += [f"  {weight:+.5f}  {_shown(name)}" for weight, name in rows]
    if learner.intercept:
        lines.append(f"intercept {learner.intercept:+.5f}")
    print_lines("\n".join(lines))
    if hashed and not source:
        note(f"these are hashed features; for their names: stream-pegasos explain {model} STREAM")
    if source:
        source.report_rest()
        exit_with_code(source)


def _explain_text(learner: Any, text: str, path: Path, top: int) -> None:
    from rich.console import Console
    from rich.text import Text

    if not takes_text(learner):
        raise Failure(f"{path} is a model of features, not of texts")
    try:
        contributions = learner.explain_one(text)
    except TypeError as error:
        raise Failure(f"{path}: {error}") from None
    label, margin = learner.predict_one(text), learner.decision_function_one(text)
    probability = learner.predict_proba_one(text).get(label, 0.5)
    negative, positive = map(printable, learner.classes)
    console = Console(highlight=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(Text(f"{printable(label)}, probability {probability:.4f}, margin {margin:+.5f}", style="bold"))
        console.print(Text(f"+ speaks for {positive}, - for {negative}"))
        for ngram, contribution in list(contributions.items())[:top]:
            style = "green" if contribution > 0 else "red"
            console.print(Text(f"  {contribution:+.5f}  {_shown(ngram)}", style=style))
        rest = list(contributions.values())[top:]
        if rest:
            console.print(Text(f"  {sum(rest):+.5f}  {len(rest):,} other{'s' * (len(rest) != 1)}"))
    print_lines(capture.get().rstrip("\n"))


def _named(features: Any, weights: dict[int, float], examples: "Iterable[Example]") -> Iterator[tuple[str, float]]:
    """The words of the examples with their weights; the most frequent of those that share one."""
    from collections import Counter

    counts: Counter[str] = Counter()
    for example in examples:
        counts.update(features.tokens(example.x))
    seen = set()
    for token, _ in counts.most_common():
        index, sign = features.index(token)
        if index in weights and index not in seen:
            seen.add(index)
            yield token, sign * weights[index]


def _shown(feature: Any) -> str:
    """A feature on one line; the beginning of a word, which comes with a space before, as such."""
    if isinstance(feature, str) and feature.startswith(" "):
        feature = f"{feature[1:]}…"
    return printable(feature)
