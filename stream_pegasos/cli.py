"""The command `stream-pegasos`."""

import csv
import functools
import inspect
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn

import typer

# What only some commands need is imported there, so that --help is there at once.
if TYPE_CHECKING:
    from stream_pegasos.prequential import Evaluation
    from stream_pegasos.streams import Answer, Example

DICT_FORMATS = ("vw", "svmlight")
REPORTED_BAD_LINES = 10
SECONDS_FOR_ANSWERS = 2.0  # when a run is to end

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Failure(Exception):
    """An end with exit code 1 and one line that says why."""


# Options ------------------------------------------------------------------------------------------


def _option(group: str, *names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=group, **more)


_stream = functools.partial(_option, "Stream")
_model = functools.partial(_option, "Model")
_service = functools.partial(_option, "Service")
_result = functools.partial(_option, "Results")


@dataclass(frozen=True)
class StreamOptions:
    format: Annotated[
        str | None,
        _stream(
            "--format",
            metavar="NAME",
            help="jsonl, csv, tsv, labelled-text, fasttext, vw or svmlight; by default what the "
            "extension of the file says, jsonl for standard input. Any may be gzip-compressed.",
        ),
    ] = None
    text_field: Annotated[str, _stream("--text-field", metavar="NAME", help="Field of the text: jsonl, csv, tsv.")] = (
        "text"
    )
    label_field: Annotated[
        str, _stream("--label-field", metavar="NAME", help="Field of the label: jsonl, csv, tsv.")
    ] = "label"
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=0,
            metavar="N",
            help="Stop after N messages.",
            rich_help_panel="Stream",
        ),
    ] = None
    strict: Annotated[bool, _stream("--strict", help="Exit with code 1 if any line was bad.")] = False


@dataclass(frozen=True)
class ModelOptions:
    """Named as the parameters of the models; what is not given is left to the model's default."""

    classifier: Annotated[
        str | None,
        _model(
            "--classifier",
            metavar="NAME",
            help="adaptive, or pegasos as published; adaptive unless an option of pegasos is given.",
        ),
    ] = None
    learning_rate: Annotated[float | None, _model("--learning-rate", metavar="η", help="adaptive: size of steps.")] = (
        None
    )
    half_life: Annotated[
        float | None, _model("--half-life", metavar="N", help="adaptive: messages until evidence counts half.")
    ] = None
    threshold: Annotated[
        float | None, _model("--threshold", metavar="P", help="adaptive: positive only above this probability.")
    ] = None
    max_false_positive_rate: Annotated[
        float | None,
        _model("--max-false-positive-rate", metavar="R", help="adaptive: share of negatives that may be flagged."),
    ] = None
    drift_detector: Annotated[
        str | None, _model("--drift-detector", metavar="NAME", help="adaptive: one of River's, as HDDMW.")
    ] = None
    l2: Annotated[float | None, _model("--l2", metavar="λ", help="pegasos: regularisation, above 0.")] = None
    t0: Annotated[
        float | None, _model("--t0", metavar="T", help="pegasos: steps that count as taken, a gentle start.")
    ] = None
    batch_size: Annotated[int | None, _model("--batch-size", metavar="K", help="pegasos: examples in one step.")] = None
    project: Annotated[
        bool | None, _model("--project/--no-project", help="pegasos: project onto the ball of 1/√λ.")
    ] = None
    fit_intercept: Annotated[bool | None, _model("--intercept/--no-intercept", help="Learn an intercept.")] = None
    class_weight: Annotated[
        bool | None, _model("--balanced", help="Weigh the labels so that both count the same in all.")
    ] = None
    pos_label: Annotated[
        str | None,
        _model(
            "--pos-label",
            metavar="LABEL",
            help="The positive label; by default 1, true, or else the label that comes second.",
        ),
    ] = None
    ngram_range: Annotated[str | None, _model("--ngrams", metavar="N[,M]", help="Lengths of n-grams: 1, or 1,2.")] = (
        None
    )
    n_features: Annotated[int | None, _model("--n-features", metavar="N", help="Number of hashed features.")] = None
    analyzer: Annotated[str | None, _model("--analyzer", metavar="NAME", help="word, char or char_wb.")] = None
    token_pattern: Annotated[str | None, _model("--token-pattern", metavar="REGEX", help="What a word is.")] = None
    binary: Annotated[bool | None, _model("--binary/--no-binary", help="Presence rather than counts.")] = None
    norm: Annotated[str | None, _model("--norm", metavar="NAME", help="l2, l1 or none.")] = None
    mask_digits: Annotated[bool | None, _model("--mask-digits/--no-mask-digits", help="Take every digit for 0.")] = None
    prefix_length: Annotated[
        int | None, _model("--prefix-length", metavar="N", help="Count the first N letters of longer words, too; 0.")
    ] = None
    max_features: Annotated[
        int | None,
        _model("--max-features", metavar="N", help="Most features known: the least are forgotten."),
    ] = None
    boundaries: Annotated[
        bool | None, _model("--boundaries/--no-boundaries", help="N-grams reach over the ends of a text.")
    ] = None

    def given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters given for the features and for the classifier, its name among them."""
        given = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        if "ngram_range" in given:
            given["ngram_range"] = _ngram_range(given["ngram_range"])
        if given.get("norm") == "none":
            given["norm"] = None
        if "pos_label" in given:
            from stream_pegasos.streams import label_of

            given["pos_label"] = label_of(given["pos_label"])
        if given.pop("class_weight", False):
            given["class_weight"] = "balanced"
        if "drift_detector" in given:
            given["drift_detector"] = _drift_detector(given["drift_detector"])
        features = {name: given.pop(name) for name in TEXT_OPTIONS if name in given}
        return features, given


TEXT_OPTIONS = (
    "ngram_range",
    "n_features",
    "analyzer",
    "token_pattern",
    "binary",
    "norm",
    "mask_digits",
    "prefix_length",
    "boundaries",
)


def _drift_detector(name: str) -> Any:
    from stream_pegasos.persistence import drift_detector_class

    try:
        return drift_detector_class(name)()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--drift-detector") from None


def _ngram_range(text: str) -> tuple[int, int]:
    try:
        shortest, _, longest = text.partition(",")
        return int(shortest), int(longest or shortest)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a length nor two, as in 1,2", param_hint="--ngrams") from None


SaveOption = Annotated[Path | None, _result("--save", metavar="MODEL", help="Write the model here, as safetensors.")]
LoadOption = Annotated[Path | None, _model("--load", metavar="MODEL", help="Continue with this saved model.")]
CheckpointOption = Annotated[
    Path | None,
    _result("--checkpoint", metavar="MODEL", help="Keep model and progress in this file, and go on from it."),
]
CheckpointEvery = Annotated[
    int, _result("--checkpoint-every", min=1, metavar="N", help="Write it after so many messages learned.")
]
CheckpointSeconds = Annotated[
    float, _result("--checkpoint-seconds", min=0.1, metavar="S", help="Write it after so many seconds.")
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that --save wrote.", show_default=False)]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command; each field of a parameter that is a dataclass is an option of its own."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        group = parameter.annotation
        if is_dataclass(group):
            groups[parameter.name] = group
            parameters += [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
                for f in fields(group)
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{f.name: values.pop(f.name) for f in fields(group)})
        try:
            function(**values)
        except BrokenPipeError:
            # The reader of the output has had enough.
            raise typer.Exit from None
        except KeyboardInterrupt:
            raise typer.Exit(128 + signal.SIGINT) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command()(run)
    return function


# Commands -----------------------------------------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"stream-pegasos {version('stream-pegasos')}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learn to classify a stream of messages, one message at a time.

    stream-pegasos evaluate
    stream-pegasos evaluate mail.jsonl.gz
    stream-pegasos train mail.csv --save m.safetensors
    stream-pegasos predict m.safetensors new.csv
    tail -f mail.jsonl | stream-pegasos run --save m.safetensors
    """


@command
def evaluate(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The stream, - for standard input; 20,000 synthetic messages without it.",
            show_default=False,
        ),
    ] = None,
    *,
    stream: StreamOptions,
    model: ModelOptions,
    delay: Annotated[
        int,
        typer.Option(
            "--delay",
            min=0,
            metavar="N",
            help="Each label arrives N messages late.",
            rich_help_panel="Stream",
        ),
    ] = 0,
    curve: Annotated[Path | None, _result("--curve", metavar="CSV", help="Write the prequential curve here.")] = None,
    plot: Annotated[
        Path | None,
        _result("--plot", metavar="PNG", help="Draw the curve here (.png, .svg, .pdf); extra 'plot'."),
    ] = None,
    save: SaveOption = None,
) -> None:
    """Predict every message of a stream, then learn it, and print how good the predictions were.

    Every prediction is made before its label is learned: the figures are
    those of live use. Lines that cannot be read are reported and skipped.
    Exit codes: 0; 1 it failed; 2 usage; 130 Ctrl-C, after the summary.

    Examples:

      stream-pegasos evaluate
      stream-pegasos evaluate sms.jsonl.gz --plot curve.png
      stream-pegasos evaluate tweets.csv --text-field tweet --ngrams 1,2
      zcat mail.vw.gz | stream-pegasos evaluate - --format vw --delay 100
    """
    _check_outputs(curve, plot, save)
    if plot:
        import stream_pegasos.plot  # noqa: F401 fail before the work if matplotlib is missing

    from stream_pegasos.prequential import evaluate as evaluate_model

    source = _Synthetic(stream) if file is None else _File(file, stream)
    learner = _new_model(model, source)
    with _Interrupt() as interrupt, ExitStack() as end:
        with _progress(source) as progress:
            evaluation = evaluate_model(
                learner,
                interrupt.guard(source),
                delay=delay,
                on_checkpoint=lambda row: progress(
                    row.n, f"accuracy {row.accuracy:.4f}, newest 1,000 {row.window_accuracy:.4f}"
                ),
            )
        source.report_rest()
        # Each is written even where another fails; the last one put in comes first.
        if save:
            end.callback(_save, learner, save)
        if plot:
            end.callback(_save_plot, evaluation, plot, source.name)
        if curve:
            end.callback(_save_curve, evaluation, curve)
        end.callback(_print, _summary(source, evaluation, learner.classes))
    _exit(source, interrupt)


@command
def train(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The stream, - for standard input.")],
    *,
    save: Annotated[Path, _result("--save", metavar="MODEL", help="Write the model here, as safetensors.")],
    load: LoadOption = None,
    stream: StreamOptions,
    model: ModelOptions,
) -> None:
    """Learn a stream in one pass and save the model.

    After Ctrl-C the model is saved as it then is.

    Examples:

      stream-pegasos train mail.jsonl.gz --save mail.safetensors
      stream-pegasos train new.jsonl --load old.safetensors --save new.safetensors
    """
    _check_outputs(save)
    from stream_pegasos.prequential import chunks, learn

    source = _File(file, stream)
    learner = _model_for(source, load, model)
    n, start = 0, perf_counter()
    with _Interrupt() as interrupt:
        with _progress(source) as progress, suppress(KeyboardInterrupt):
            for chunk in chunks(interrupt.guard(source)):
                learn(learner, chunk)
                n += len(chunk)
                progress(n, "")
        seconds = perf_counter() - start
        source.report_rest()
        _save(learner, save)
        _print(f"learned {n:,} messages{_rate(n, seconds)}, {_bad_lines(source)}; saved {save}")
    _exit(source, interrupt)


@command
def predict(
    model: ModelArgument,
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="The messages; standard input without it."),
    ] = "-",
    *,
    stream: StreamOptions,
) -> None:
    """Print a line for each message: the predicted label, a tab and the probability of that label.

    Labels in FILE are not needed and not used. Lines that cannot be read give
    no line. A model that has learned nothing yet predicts an empty label with
    probability 0.5. For an answer to each line as it comes, use run.

    Examples:

      stream-pegasos predict mail.safetensors new.jsonl
      cut -f 2 x.tsv | stream-pegasos predict m.safetensors --format labelled-text
    """
    from stream_pegasos.prequential import chunks

    source = _File(file, stream, unlabelled=True)
    learner = _load(model, source)
    n = 0
    with _Interrupt() as interrupt:
        try:
            for chunk in chunks(interrupt.guard(source)):
                interrupt.wait(_print_answers, learner, [example[0] for example in chunk])
                n += len(chunk)
        except KeyboardInterrupt:
            _note(f"interrupted after {n:,} messages, {_bad_lines(source)}")
    source.report_rest()
    _exit(source, interrupt)


@command
def run(
    address: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file that grows, kafka://host/topic?group=…, redis://host/stream?group=…, or - for standard input.",
        ),
    ] = "-",
    *,
    checkpoint: CheckpointOption = None,
    every: CheckpointEvery = 10_000,
    seconds: CheckpointSeconds = 10.0,
    load: LoadOption = None,
    save: Annotated[
        Path | None,
        _result("--save", metavar="MODEL", help="Write the model here at the end, also after Ctrl-C and SIGTERM."),
    ] = None,
    predictions: Annotated[
        str,
        _result("--predictions", metavar="SINK", help="- for standard output, none, kafka://… or redis://…"),
    ] = "-",
    label_topic: Annotated[
        str | None,
        _stream("--label-topic", metavar="SOURCE", help="Labels that come later, under the ids of their messages."),
    ] = None,
    label_window: Annotated[
        int, _stream("--label-window", min=1, metavar="N", help="How many messages wait for their labels.")
    ] = 10_000,
    follow: Annotated[bool, _stream("--follow/--no-follow", help="Wait for more at the end of what is there.")] = True,
    stream: StreamOptions,
    model: ModelOptions,
) -> None:
    """Answer each message of a live source as it comes; learn from those labelled.

    The prediction is made before the label is learned. On standard output an
    answer is what predict prints: the predicted label, a tab and its
    probability; an empty label and 0.5 while nothing is learned. A topic or
    stream gets id, label and probability.

    With --checkpoint the model and the position in the source are kept in one
    file, and the run goes on from there when it is started again, whatever
    ended it: no message is lost, none is learned twice.

    Examples:

      tail -f mail.jsonl | stream-pegasos run --load mail.safetensors
      stream-pegasos run mail.jsonl --checkpoint mail.safetensors
      stream-pegasos run 'kafka://localhost/mail?group=spam' --checkpoint m.st
      printf 'spam\\twin\\nwin?\\n' | stream-pegasos run --format labelled-text
    """
    from stream_pegasos.live import Live
    from stream_pegasos.streams import open_sink

    _check_outputs(checkpoint, save)
    if stream.limit is not None and checkpoint is not None:
        raise typer.BadParameter("it does not go with --checkpoint", param_hint="--limit")
    if checkpoint and save and checkpoint.resolve() == save.resolve():
        # Without the position in it, the whole stream would be learned once more.
        raise typer.BadParameter("it is the file of --checkpoint, which is kept up to date anyway", param_hint="--save")
    source = _LiveStream(address, stream)
    checkpoints, learner, progress = _resume(checkpoint, every, seconds, load, model, source)
    with ExitStack() as end:
        if save:
            end.callback(_save, learner, save)
        send = _send
        if predictions == "none":
            send = _discard
        elif predictions != "-":
            sink = open_sink(predictions)
            end.callback(sink.close)
            send = sink.send
        kept = progress or {}
        live = Live(
            learner,
            source.open(kept.get("position"), follow),
            send,
            labels=None if label_topic is None else source.open_labels(label_topic, kept.get("label_position"), follow),
            window=label_window,
            limit=stream.limit,
            checkpoints=checkpoints,
            progress=progress,
            on_bad=lambda example, reason: source.report(_place(example), reason),
            on_event=_note,
        )
        with _stopping(live) as stopped:
            live.run()
        source.n_good, n_learned = live.n_read - kept.get("n_read", 0), live.n_learned - kept.get("n_learned", 0)
        if stopped:
            _note(f"read {source.n_good:,} messages, learned {n_learned:,}, {_bad_lines(source)}")
        source.report_rest()
    if stopped:
        raise typer.Exit(128 + stopped[0])
    _exit(source)


@command
def serve(
    *,
    checkpoint: CheckpointOption = None,
    every: CheckpointEvery = 10_000,
    seconds: CheckpointSeconds = 10.0,
    load: LoadOption = None,
    host: Annotated[str, _service("--host", metavar="ADDRESS", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, _service("--port", min=0, max=65535, metavar="N", help="0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        _service("--token-file", metavar="FILE", help="Requests must carry the bearer token that stands here."),
    ] = None,
    max_body: Annotated[int, _service("--max-body", min=1, metavar="BYTES", help="Largest body.")] = 8 << 20,
    max_text: Annotated[
        int, _service("--max-text", min=1, metavar="N", help="Longest text, in characters.")
    ] = 1_000_000,
    max_batch: Annotated[int, _service("--max-batch", min=1, metavar="N", help="Most messages in a request.")] = 10_000,
    max_concurrency: Annotated[
        int, _service("--max-concurrency", min=1, metavar="N", help="Most connections at a time.")
    ] = 256,
    model: ModelOptions,
) -> None:
    """Predict and learn over HTTP, and show it on a page.

    POST /predict and /learn take {"text": …}, to learn with a "label", or a
    list of them. GET / is the page, /openapi.json says the rest. Without a
    token only who can reach the address is asked for nothing: keep it to this
    machine, or put a proxy with TLS before it.

    Examples:

      stream-pegasos serve --checkpoint mail.safetensors
      curl -H 'Content-Type: application/json' -d '{"text": "win a prize"}' http://127.0.0.1:8000/predict
    """
    import ipaddress

    from stream_pegasos.service import LOOPBACK, Limits, Service, create_app
    from stream_pegasos.service import serve as serve_app

    _check_outputs(checkpoint)
    checkpoints, learner, progress = _resume(checkpoint, every, seconds, load, model, None)
    if not _takes_text(learner):
        raise Failure(f"{load or checkpoint} is a model of features, not of texts")
    if progress and "sources" in progress:
        raise Failure(f"{checkpoint} is about {progress['sources'][0]}, which run reads; --load takes the model alone")
    if not hasattr(learner.classifier, "weights"):
        raise Failure(f"{load or checkpoint} has a kernel, and no weights to show; use it from Python")
    token = None if token_file is None else token_file.read_text("ascii", "replace").strip()
    if token == "":
        raise Failure(f"{token_file} is empty")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise Failure(f"{token_file} must hold one line of ASCII, the token")
    limits = Limits(max_body, max_text, max_batch, max_concurrency)
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not local and token is None:
        _note(f"anyone who reaches {host} may teach the model; see --token-file")
    hosts = (*LOOPBACK, f"[{host}]" if ":" in host else host) if local else ("*",)
    app = create_app(Service(learner, checkpoints, progress, limits, token), hosts)
    serve_app(app, host, port, limits, lambda url: _note(f"listening on {url}"))


@command
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
        str | None, typer.Option("--text", metavar="TEXT", help="Explain the prediction for this text instead.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many features for each label.")] = 20,
    stream: StreamOptions,
) -> None:
    """Print the features that weigh most for either label, or why a text is predicted as it is.

    A text model stores hashed features. The words of STREAM, such as the one
    it was trained on, give them names; where several words share a feature,
    the most frequent names it.

    Examples:

      stream-pegasos explain mail.safetensors mail.jsonl.gz --top 10
      stream-pegasos explain rcv1.safetensors
      stream-pegasos explain mail.safetensors --text 'win a free prize'
    """
    if text is not None:
        if stream_file:
            raise typer.BadParameter("a stream is for the weights of the model, not for a text", param_hint="--text")
        _explain_text(_load(model, None), text, model, top)
        return
    from heapq import nlargest, nsmallest

    source = _File(stream_file, stream, unlabelled=True) if stream_file else None
    learner = _load(model, source)
    if not hasattr(learner, "weights"):
        raise Failure(f"{model} has a kernel, and no weights that explain it")
    weights: dict[Any, float] = learner.weights
    hashed = _takes_text(learner)
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
        lines.append(f"for {_printable(label)}")
        lines += [f"  {weight:+.5f}  {_shown(name)}" for weight, name in rows]
    if learner.intercept:
        lines.append(f"intercept {learner.intercept:+.5f}")
    _print("\n".join(lines))
    if hashed and not source:
        _note(f"these are hashed features; for their names: stream-pegasos explain {model} STREAM")
    if source:
        source.report_rest()
        _exit(source)


def _explain_text(learner: Any, text: str, path: Path, top: int) -> None:
    from rich.console import Console
    from rich.text import Text

    if not _takes_text(learner):
        raise Failure(f"{path} is a model of features, not of texts")
    try:
        contributions = learner.explain_one(text)
    except TypeError as error:
        raise Failure(f"{path}: {error}") from None
    label, margin = learner.predict_one(text), learner.decision_function_one(text)
    probability = learner.predict_proba_one(text).get(label, 0.5)
    negative, positive = map(_printable, learner.classes)
    console = Console(highlight=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(Text(f"{_printable(label)}, probability {probability:.4f}, margin {margin:+.5f}", style="bold"))
        console.print(Text(f"+ speaks for {positive}, - for {negative}"))
        for ngram, contribution in list(contributions.items())[:top]:
            style = "green" if contribution > 0 else "red"
            console.print(Text(f"  {contribution:+.5f}  {_shown(ngram)}", style=style))
        rest = list(contributions.values())[top:]
        if rest:
            console.print(Text(f"  {sum(rest):+.5f}  {len(rest):,} other{'s' * (len(rest) != 1)}"))
    _print(capture.get().rstrip("\n"))


def _shown(feature: Any) -> str:
    """A feature on one line; the beginning of a word, which comes with a space before, as such."""
    if isinstance(feature, str) and feature.startswith(" "):
        feature = f"{feature[1:]}…"
    return _printable(feature)


# Streams ------------------------------------------------------------------------------------------


class _Source:
    """What a command reads. Bad records are reported and counted."""

    name = "synthetic stream"
    format = "labelled-text"
    strict = False
    n_bad = 0
    n_good = 0

    def report(self, where: str, reason: str) -> None:
        self.n_bad += 1
        if self.n_bad <= REPORTED_BAD_LINES:
            _note(f"{where} skipped: {reason}")

    def report_rest(self) -> None:
        if self.n_bad > REPORTED_BAD_LINES:
            _note(f"{self.n_bad - REPORTED_BAD_LINES:,} more bad lines skipped")
        if self.n_bad and not self.n_good:
            _note("no line could be read; see --format, --text-field and --label-field")


class _Synthetic(_Source):
    """The built-in stream."""

    def __init__(self, options: StreamOptions) -> None:
        self._limit = options.limit

    def __iter__(self) -> "Iterator[Example]":
        from stream_pegasos.streams import Example, synthetic

        for line, (text, label) in enumerate(islice(synthetic(), self._limit), 1):
            yield Example(text, label, 1.0, line)

    def done(self) -> float | None:
        return None


class _Chosen(_Source):
    """What the options say of a stream that is no synthetic one."""

    def __init__(self, address: str, options: StreamOptions) -> None:
        from stream_pegasos.streams import FORMATS, format_of

        if options.format is not None and options.format not in FORMATS:
            raise typer.BadParameter(f"{options.format!r} is none of {', '.join(FORMATS)}", param_hint="--format")
        if options.text_field == options.label_field:
            raise typer.BadParameter("text and label are the same field", param_hint="--text-field")
        self.name = "standard input" if address == "-" else address
        self.format = options.format or ("jsonl" if address == "-" or "://" in address else format_of(address))
        self.strict = options.strict
        self._address = address
        self._options = options


class _LiveStream(_Chosen):
    """A stream that is followed."""

    def open(self, position: Any, follow: bool) -> Any:
        from stream_pegasos.streams import open_source

        return open_source(
            self._address,
            position,
            format=self._options.format,
            text_field=self._options.text_field,
            label_field=self._options.label_field,
            follow=follow,
            on_bad=self.report,
            on_event=_note,
        )

    def open_labels(self, address: str, position: Any, follow: bool) -> Any:
        from stream_pegasos.streams import open_source

        return open_source(
            address,
            position,
            label_field=self._options.label_field,
            follow=follow,
            labels=True,
            on_bad=self.report,
            on_event=_note,
        )


class _File(_Chosen):
    """A stream from a file or standard input, read to its end."""

    def __init__(self, source: str, options: StreamOptions, unlabelled: bool = False) -> None:
        super().__init__(source, options)
        self._unlabelled = unlabelled
        self._file: IO[bytes] | None = None

    def __iter__(self) -> "Iterator[Example]":
        from stream_pegasos.streams import read

        with ExitStack() as stack:
            source: Any = "-"
            if self._address != "-":
                source = self._file = stack.enter_context(open(self._address, "rb"))
            examples = read(
                source,
                format=self.format,
                text_field=self._options.text_field,
                label_field=self._options.label_field,
                unlabelled=self._unlabelled,
                on_bad_line=lambda line, reason: self.report(f"line {line}", reason),
            )
            for example in islice(examples, self._options.limit):
                self.n_good += 1
                yield example

    def done(self) -> float | None:
        """The part that is read, between 0 and 1, where the length is known."""
        if self._file is None or not os.path.isfile(self._address):
            return None
        if self._file.closed:
            return 1.0
        return self._file.tell() / max(1, os.fstat(self._file.fileno()).st_size)


class _Interrupt:
    """Ctrl-C and SIGTERM, heeded while waiting for others: learning an example is never cut in half."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    def __enter__(self) -> "_Interrupt":
        numbers = (signal.SIGINT, signal.SIGTERM)
        self._before = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: object) -> None:
        self.signal = number
        if self._waiting:
            raise KeyboardInterrupt

    def wait(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function that waits for input or output; a signal ends it."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            return function(*arguments)
        finally:
            self._waiting = False

    def guard(self, examples: "Iterable[Example]") -> "Iterator[Example]":
        """The examples, until a signal comes."""
        iterator = iter(examples)
        while (example := self.wait(next, iterator, None)) is not None:
            yield example


@contextmanager
def _stopping(live: Any) -> Iterator[list[int]]:
    """Stop on Ctrl-C and SIGTERM; which signal came, if one did."""
    came: list[int] = []

    def handle(number: int, _: object) -> None:
        came.append(number)
        live.stop()
        # Answers on their way get some time; then those are given up that nobody takes.
        signal.setitimer(signal.ITIMER_REAL, SECONDS_FOR_ANSWERS)

    def give_up(number: int, _: object) -> None:
        if live.sending:
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, SECONDS_FOR_ANSWERS)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGALRM] = signal.signal(signal.SIGALRM, give_up)
    try:
        yield came
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(source: _Synthetic | _File) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield lambda n, text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    start = perf_counter()
    with Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.fields[n]:,} docs, {task.fields[rate]:,.0f} docs/s"),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=None, n=0, rate=0.0, text="")

        def progress(n: int, text: str) -> None:
            done = source.done()
            bar.update(
                task,
                total=None if done is None else 1.0,
                completed=done or 0.0,
                n=n,
                rate=n / (perf_counter() - start),
                text=text,
            )

        yield progress


# Models -------------------------------------------------------------------------------------------


def _takes_text(model: Any) -> bool:
    from stream_pegasos import PegasosTextClassifier

    return isinstance(model, PegasosTextClassifier)


def _new_model(options: ModelOptions, source: _Source | None) -> Any:
    from stream_pegasos import PegasosTextClassifier

    features, classifier = options.given()
    try:
        if source is not None and source.format in DICT_FORMATS:
            if features:
                raise typer.BadParameter(
                    f"format {source.format} carries features, not text: --ngrams, --n-features, --analyzer, "
                    "--token-pattern, --binary, --norm, --mask-digits, --prefix-length and --boundaries do not apply"
                )
            return _new_classifier(**classifier)
        if features.get("analyzer", "word") != "word":
            features = {"prefix_length": 0, "boundaries": False, **features}
        return PegasosTextClassifier(PegasosTextClassifier().features.clone(features), _new_classifier(**classifier))
    except (ValueError, TypeError) as error:
        raise typer.BadParameter(str(error)) from None


def _new_classifier(classifier: str | None = None, **parameters: Any) -> Any:
    from stream_pegasos import AdaptiveClassifier, PegasosClassifier

    kinds = {"adaptive": AdaptiveClassifier, "pegasos": PegasosClassifier}
    known = {name: inspect.signature(kind).parameters for name, kind in kinds.items()}
    if classifier is None:
        classifier = "adaptive" if known["adaptive"].keys() >= parameters.keys() else "pegasos"
    if classifier not in kinds:
        raise typer.BadParameter(f"{classifier!r} is neither adaptive nor pegasos", param_hint="--classifier")
    for name in parameters.keys() - known[classifier].keys():
        raise typer.BadParameter(f"it is no option of the classifier {classifier}", param_hint=_flag(name))
    return kinds[classifier](**parameters)


def _flag(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")


def _model_for(source: _Source | None, load: Path | None, options: ModelOptions) -> Any:
    if load is None:
        return _new_model(options, source)
    if options != ModelOptions():
        raise typer.BadParameter("a loaded model keeps its own options", param_hint="--load")
    return _load(load, source)


def _resume(
    checkpoint: Path | None,
    every: int,
    seconds: float,
    load: Path | None,
    options: ModelOptions,
    source: _Source | None,
) -> tuple[Any, Any, Any]:
    """The checkpoints, the model in the newest of them or else a new one or the loaded one, and the progress."""
    from stream_pegasos.checkpoints import Checkpoints

    if checkpoint is None:
        return None, _model_for(source, load, options), None
    checkpoints = Checkpoints(checkpoint, every, seconds, _note)
    checkpoints.claim()
    try:
        return checkpoints, *_resumed(checkpoints, checkpoint, load, options, source)
    except BaseException:
        checkpoints.close()
        raise


def _resumed(
    checkpoints: Any, checkpoint: Path, load: Path | None, options: ModelOptions, source: _Source | None
) -> tuple[Any, Any]:
    try:
        resumed = checkpoints.resume()
    except ValueError as error:
        raise Failure(str(error)) from None
    if resumed is None:
        return _model_for(source, load, options), None
    model, progress = resumed
    _check_model(model, checkpoint, source)
    if options != ModelOptions() and _made_with(_new_model(options, source)) != _made_with(model):
        raise Failure(f"{checkpoint} was begun with other options of the model; keep to them, or name another file")
    _note(f"resuming with {model.n_iterations:,} messages learned")
    return model, progress


def _made_with(model: Any) -> list[tuple[str, dict[str, Any]]]:
    """The parts of a model and their parameters."""
    from stream_pegasos.persistence import pack_parameters

    parts = [model.features, model.classifier] if _takes_text(model) else [model]
    return [(type(part).__name__, pack_parameters(part)) for part in parts]


def _load(path: Path, source: _Source | None) -> Any:
    from stream_pegasos import load

    try:
        model = load(path)
    except ValueError as error:
        text = str(error)
        raise Failure(text if str(path) in text else f"{path}: {text}") from None
    _check_model(model, path, source)
    return model


def _check_model(model: Any, path: Path, source: _Source | None) -> None:
    if model._multiclass:
        raise Failure(f"{path} is a model of several classes, which the command does not take; use it from Python")
    if source and _takes_text(model) == (source.format in DICT_FORMATS):
        kind = "texts" if _takes_text(model) else "features, as in the formats vw and svmlight"
        raise Failure(f"{path} is a model of {kind}, but {source.name} has format {source.format}")


def _save(model: Any, path: Path) -> None:
    with _writing(path):
        model.save(path)


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


# Output -------------------------------------------------------------------------------------------


def _print_answers(model: Any, X: list[Any]) -> None:
    from stream_pegasos.prequential import predict

    _print("\n".join(_answer(label, probability) for label, probability, _ in predict(model, X)))


def _place(example: "Example") -> str:
    return f"line {example.line}" if example.id is None else f"message {_printable(example.id)}"


def _send(answers: "list[Answer]") -> None:
    _print("\n".join(_answer(answer.label, answer.probability) for answer in answers))


def _discard(answers: "list[Answer]") -> None:
    pass


def _answer(label: Any, probability: float | None) -> str:
    return "\t0.500000" if label is None or probability is None else f"{_printable(label)}\t{probability:.6f}"


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except (OSError, KeyboardInterrupt) as error:
        # What is still buffered would fail again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, KeyboardInterrupt):
            raise
        if isinstance(error, BrokenPipeError):
            raise
        raise Failure(f"cannot write standard output: {error.strerror}") from None


def _printable(value: object) -> str:
    """A label or a feature on one line and in one column."""
    if value is None:
        return "?"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _summary(source: _Source, evaluation: "Evaluation", classes: tuple[Any, Any]) -> str:
    score = evaluation.score
    names = [_printable(label) for label in classes]
    truly = [f"truly {name}" for name in names]
    metrics = [
        ("accuracy", score.accuracy),
        ("balanced accuracy", score.balanced_accuracy),
        (f"F1 of {names[1]}", score.f1),
        ("ROC AUC", score.roc_auc),
        ("log loss", score.log_loss),
        ("calibration error", score.expected_calibration_error),
        (f"accuracy of newest {min(score.n, score.window):,}", score.window_accuracy),
    ]
    cells = [[f"{count:,}" for count in row] for row in score.confusion_matrix]
    left = max(map(len, [*truly, *(name for name, _ in metrics)]))
    width = max(map(len, [*names, *cells[0], *cells[1]]))
    head = f"{source.name}: {score.n:,} messages{_rate(score.n, evaluation.seconds)}"
    head += f", {_bad_lines(source)}{', interrupted' * evaluation.interrupted}"
    lines = [head, ""]
    lines += [f"{name:<{left}}  {value:.4f}" for name, value in metrics]
    lines.append("")
    for name, row in zip(["predicted", *truly], [names, *cells], strict=True):
        lines.append(f"{name:<{left}}  {row[0]:>{width}}  {row[1]:>{width}}")
    return "\n".join(lines)


def _save_curve(evaluation: "Evaluation", path: Path) -> None:
    with _writing(path), open(path, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(evaluation.score.checkpoint()._fields)
        for row in evaluation.curve:
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in row)


def _save_plot(evaluation: "Evaluation", path: Path, name: str) -> None:
    from stream_pegasos.plot import save

    with _writing(path):
        save(evaluation.curve, path, os.path.basename(name), evaluation.score)


def _rate(n: int, seconds: float) -> str:
    return f" in {seconds:.2f} s, {n / seconds:,.0f} docs/s" if n and seconds else ""


def _bad_lines(source: _Source) -> str:
    return f"{source.n_bad:,} bad line{'s' * (source.n_bad != 1)}"


def _note(message: str) -> None:
    print(f"stream-pegasos: {message}", file=sys.stderr, flush=True)


def _check_outputs(*paths: Path | None) -> None:
    """Fail before the work rather than after it."""
    for path in paths:
        if path and not path.absolute().parent.is_dir():
            raise Failure(f"cannot write {path}: {path.parent} is no directory")
        if path and path.is_dir():
            raise Failure(f"cannot write {path}: it is a directory")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot write {path}: {error.strerror or error}") from None


def _exit(source: _Source, interrupt: _Interrupt | None = None) -> NoReturn:
    if interrupt and interrupt.signal is not None:
        raise typer.Exit(128 + interrupt.signal)
    raise typer.Exit(1 if source.strict and source.n_bad else 0)


def main() -> None:
    """The entry point: every failure is one line on standard error."""
    warnings.formatwarning = lambda message, *_, **__: f"stream-pegasos: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="stream-pegasos")
    except (Failure, ImportError) as error:
        message = str(error)
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except ValueError as error:
        from stream_pegasos.prequential import ExampleError
        from stream_pegasos.streams import StreamError

        if isinstance(error, ExampleError):
            message = f"line {error.example[3]}: {error}"
        elif isinstance(error, StreamError):
            message = str(error)
        else:
            raise
    _note("error: " + " ".join(message.splitlines()))
    sys.exit(1)


if __name__ == "__main__":
    main()
