"""The options that commands share."""

import functools
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import click

from stream_pegasos.cli.command import Argument, Option

stream_option = functools.partial(Option, group="Stream")
model_option = functools.partial(Option, group="Model")
service_option = functools.partial(Option, group="Service")
result_option = functools.partial(Option, group="Results")


@dataclass(frozen=True)
class StreamOptions:
    format: Annotated[
        str | None,
        stream_option(
            "--format",
            brief="jsonl, csv, tsv, text, fasttext, vw, svmlight, …",
            metavar="NAME",
            help="jsonl, csv, tsv, labelled-text, text, fasttext, vw, svmlight or parquet. Any may be compressed.",
            default="what the extension of the file says; jsonl for standard input and other pipes",
        ),
    ] = None
    text_field: Annotated[
        str,
        stream_option(
            "--text-field",
            brief="Field of the text [default: text]",
            metavar="NAME",
            help="The field with the text, in jsonl, csv, tsv and parquet; a.b is the field b of an object a.",
            default="text",
        ),
    ] = "text"
    label_field: Annotated[
        str,
        stream_option(
            "--label-field",
            brief="Field of the label [default: label]",
            metavar="NAME",
            help="The field with the label, named in the same way.",
            default="label",
        ),
    ] = "label"
    id_field: Annotated[
        str,
        stream_option(
            "--id-field",
            metavar="NAME",
            help="The field with the id of a message, named in the same way; answers have it.",
            default="id",
        ),
    ] = "id"
    delimiter: Annotated[
        str | None,
        stream_option(
            "--delimiter",
            metavar="CHAR",
            help=r"The separator of fields in csv and tsv, as ; or \t.",
            default=", or tab",
        ),
    ] = None
    columns: Annotated[
        str | None,
        stream_option(
            "--columns",
            metavar="A,B,…",
            help="Names of the columns, where csv and tsv have no header, as text,label; _ for a column to skip.",
            default="the header",
        ),
    ] = None
    encoding: Annotated[
        str,
        stream_option(
            "--encoding",
            metavar="NAME",
            help="The encoding of the text, as latin-1 or gb18030; a byte order mark shows utf-16.",
            default="utf-8",
        ),
    ] = "utf-8"
    encoding_errors: Annotated[
        str,
        stream_option(
            "--encoding-errors",
            metavar="NAME",
            help="How to read lines that are not UTF-8: as windows-1252; with strict they are bad.",
            default="windows-1252",
        ),
    ] = "windows-1252"
    labels: Annotated[
        str | None,
        stream_option(
            "--labels",
            metavar="A,B,…",
            help="The allowed labels; a line with any other is bad. They are the buttons of the page of label.",
            default="any label",
        ),
    ] = None
    label_separator: Annotated[
        str | None,
        stream_option(
            "--label-separator",
            metavar="SEP",
            help="The separator of several labels in one text; implies --multi-label.",
            default="a text is one label",
        ),
    ] = None
    limit: Annotated[
        int | None, stream_option("--limit", min=0, metavar="N", help="Stop after N messages.", default="no limit")
    ] = None
    strict: Annotated[bool, stream_option("--strict", help="Exit with code 1 if any line was bad.", default="off")] = (
        False
    )


@dataclass(frozen=True)
class ModelOptions:
    """Named as the parameters of the models; what is not given is left to the model's default."""

    classifier: Annotated[
        str | None,
        model_option(
            "--classifier",
            metavar="NAME",
            help="adaptive, or pegasos as published.",
            default="adaptive, unless an option of pegasos is given",
        ),
    ] = None
    ordered: Annotated[
        bool | None,
        model_option(
            "--ordered",
            brief="The labels are integers that have an order, as stars.",
            help="The labels are integers that have an order, as stars.",
            default="off",
        ),
    ] = None
    multi_label: Annotated[
        bool | None,
        model_option(
            "--multi-label",
            brief="A message has a list of labels.",
            help="A message may have several labels, given as a JSON list.",
            default="off unless evaluate or train find a list in the first message",
        ),
    ] = None
    learning_rate: Annotated[
        float | None, model_option("--learning-rate", metavar="η", help="adaptive: size of steps.", default="0.5")
    ] = None
    half_life: Annotated[
        float | None,
        model_option(
            "--half-life", metavar="N", help="adaptive: messages after which evidence counts half.", default="10000"
        ),
    ] = None
    threshold: Annotated[
        float | None,
        model_option("--threshold", metavar="P", help="adaptive: positive only above this probability.", default="0.5"),
    ] = None
    max_false_positive_rate: Annotated[
        float | None,
        model_option(
            "--max-false-positive-rate",
            metavar="R",
            help="adaptive: share of negatives that may be flagged.",
            default="no limit",
        ),
    ] = None
    drift_detector: Annotated[
        str | None,
        model_option(
            "--drift-detector",
            metavar="NAME",
            help="adaptive: one of River's detectors, as HDDMW. A loaded or resumed model begins it anew.",
            default="none",
        ),
    ] = None
    l2: Annotated[
        float | None, model_option("--l2", metavar="λ", help="pegasos: regularisation, above 0.", default="0.0001")
    ] = None
    t0: Annotated[
        float | None,
        model_option("--t0", metavar="T", help="pegasos: steps that count as taken, for a gentle start.", default="0"),
    ] = None
    batch_size: Annotated[
        int | None, model_option("--batch-size", metavar="K", help="pegasos: examples in one step.", default="1")
    ] = None
    project: Annotated[
        bool | None,
        model_option("--project/--no-project", help="pegasos: project onto the ball of 1/√λ.", default="project"),
    ] = None
    fit_intercept: Annotated[
        bool | None,
        model_option(
            "--intercept/--no-intercept",
            help="Learn an intercept.",
            default="intercept for adaptive, no-intercept for pegasos",
        ),
    ] = None
    class_weight: Annotated[
        bool | None,
        model_option("--balanced", help="Weight the labels so that each counts the same in total.", default="off"),
    ] = None
    pos_label: Annotated[
        str | None,
        model_option(
            "--pos-label",
            metavar="LABEL",
            help="The positive label, for --threshold and --max-false-positive-rate. They need it unless labels are "
            "true and false, 0 and 1, or -1 and 1.",
            default="1, or true; with labels of other kinds, the second one that comes",
        ),
    ] = None
    ngram_range: Annotated[
        str | None,
        model_option("--ngrams", metavar="N[,M]", help="Lengths of n-grams: 1, or 1,2.", default="1,2"),
    ] = None
    n_features: Annotated[
        int | None,
        model_option("--n-features", metavar="N", help="Number of hashed features.", default="1073741824"),
    ] = None
    analyzer: Annotated[
        str | None, model_option("--analyzer", metavar="NAME", help="word, char or char_wb.", default="word")
    ] = None
    token_pattern: Annotated[
        str | None,
        model_option("--token-pattern", metavar="REGEX", help="What a word is.", default="words of any language"),
    ] = None
    binary: Annotated[
        bool | None, model_option("--binary/--no-binary", help="Count presence, not occurrences.", default="binary")
    ] = None
    norm: Annotated[str | None, model_option("--norm", metavar="NAME", help="l2, l1 or none.", default="l2")] = None
    mask_digits: Annotated[
        bool | None,
        model_option("--mask-digits/--no-mask-digits", help="Read every digit as 0.", default="mask-digits"),
    ] = None
    prefix_length: Annotated[
        int | None,
        model_option(
            "--prefix-length",
            metavar="N",
            help="Add the first N letters of longer words as a feature; 0 for none.",
            default="4",
        ),
    ] = None
    max_features: Annotated[
        int | None,
        model_option(
            "--max-features",
            metavar="N",
            help="Beyond N the least-used features are dropped first.",
            default="no limit",
        ),
    ] = None
    boundaries: Annotated[
        bool | None,
        model_option(
            "--boundaries/--no-boundaries",
            help="Also make n-grams with the start and the end of a text.",
            default="boundaries",
        ),
    ] = None

    def without_decision(self) -> "tuple[ModelOptions, DecisionOptions]":
        """The options that no loaded model takes, and those that it does; a positive label alone decides nothing."""
        if self.threshold is None and self.max_false_positive_rate is None:
            return self, DecisionOptions()
        names = [f.name for f in fields(DecisionOptions)]
        decision = DecisionOptions(**{name: getattr(self, name) for name in names})
        return replace(self, **dict.fromkeys(names)), decision

    def given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters given for the features and for the classifier; its name and what labels are among them."""
        given = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        if given.get("classifier") not in (None, "adaptive", "pegasos"):
            raise click.BadParameter(f"{self.classifier!r} is neither adaptive nor pegasos", param_hint="--classifier")
        if "ngram_range" in given:
            given["ngram_range"] = _ngram_range(given["ngram_range"])
        if given.get("norm") == "none":
            given["norm"] = None
        if "pos_label" in given:
            from stream_pegasos.streams import label_of

            given["pos_label"] = label_of(given["pos_label"])  # "true" and "1" stand for bool and int, too
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
    from stream_pegasos.common.packing import drift_detector_class

    try:
        return drift_detector_class(name)()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--drift-detector") from None


def _ngram_range(text: str) -> tuple[int, int]:
    try:
        shortest, _, longest = text.partition(",")
        return int(shortest), int(longest or shortest)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a length nor two, as in 1,2", param_hint="--ngrams") from None


@dataclass(frozen=True)
class DecisionOptions:
    """What is changed of the decision of a loaded model; named as the parameters of `set_decision`."""

    threshold: Annotated[
        float | None,
        model_option(
            "--threshold",
            brief="Positive only above this probability.",
            metavar="P",
            help="Positive only above this probability.",
            default="that of the model",
        ),
    ] = None
    max_false_positive_rate: Annotated[
        float | None,
        model_option(
            "--max-false-positive-rate",
            metavar="R",
            help="Share of negatives that may be flagged; 1 for no limit. A model of more than two classes takes a "
            "limit only if it learned with one; it need not be the same.",
            default="that of the model",
        ),
    ] = None
    pos_label: Annotated[
        str | None,
        model_option(
            "--pos-label", metavar="LABEL", help="The positive label, for these two.", default="that of the model"
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        from stream_pegasos.streams import label_of

        given = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}
        return given | ({"pos_label": label_of(given["pos_label"])} if "pos_label" in given else {})


ThreadsOption = Annotated[
    int | None,
    stream_option(
        "--threads",
        min=1,
        metavar="N",
        help="Threads that read texts; the results are the same for any number.",
        default="as many as there are processors",
    ),
]
SaveOption = Annotated[
    Path | None,
    result_option(
        "--save",
        brief="Write the model here.",
        metavar="MODEL",
        help="Write the model here, as safetensors.",
        default="nowhere",
    ),
]
ForceOption = Annotated[
    bool,
    result_option("--force", help="Write the model also over a file that is there and is no model.", default="off"),
]
LoadOption = Annotated[
    Path | None,
    model_option(
        "--load",
        brief="Continue with this saved model.",
        metavar="MODEL",
        help="Continue with this saved model.",
        default="a new one",
    ),
]
NamesOption = Annotated[
    bool,
    result_option(
        "--names",
        help="Keep the words of the heaviest features in the model file, for explain and the page of serve.",
        default="off",
    ),
]
CheckpointOption = Annotated[
    Path | None,
    result_option(
        "--checkpoint",
        brief="Keep model and progress here; go on from there.",
        metavar="MODEL",
        help="Keep model and progress in this file, and go on from it.",
        default="nothing is kept",
    ),
]
CheckpointEvery = Annotated[
    int,
    result_option("--checkpoint-every", min=1, metavar="N", help="Write it after so many messages.", default="10000"),
]
CheckpointSeconds = Annotated[
    float,
    result_option("--checkpoint-seconds", min=0.1, metavar="S", help="Write it after so many seconds.", default="10.0"),
]
HostOption = Annotated[
    str,
    service_option(
        "--host",
        brief="Where to listen [default: 127.0.0.1]",
        metavar="ADDRESS",
        help="Where to listen.",
        default="127.0.0.1",
    ),
]
PortOption = Annotated[
    int,
    service_option(
        "--port",
        brief="Where to listen [default: 8000]",
        min=0,
        max=65535,
        metavar="N",
        help="Where to listen; 0 for any port that is free.",
        default="8000",
    ),
]
TokenFileOption = Annotated[
    Path | None,
    service_option(
        "--token-file",
        brief="File of the token that requests must carry.",
        metavar="FILE",
        help="Requests must carry the bearer token in this file.",
        default="none",
    ),
]
TakeBackSeconds = Annotated[
    float,
    service_option(
        "--take-back-seconds",
        min=0,
        max=3600,
        metavar="S",
        help="How long a label given on the page can be taken back; then it is learned.",
        default="10.0",
    ),
]
ModelArgument = Annotated[Path, Argument(metavar="MODEL", help="A model that --save wrote.")]


def n_threads(given: int | None) -> int:
    """As many as are asked for, or as there are processors that the process may use."""
    if given is not None:
        return given
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
