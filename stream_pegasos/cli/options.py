"""Options shared by commands."""

import functools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.command import argument, number, shared
from stream_pegasos.cli.mail_options import vectors_field as vectors_field

if TYPE_CHECKING:
    from stream_pegasos.features.base import Features
    from stream_pegasos.learners.label_policy import Label

NEVER = 1_000_000_000  # messages, or seconds

stream_field = functools.partial(shared, group="Stream")
model_field = functools.partial(shared, group="Model")
service_field = functools.partial(shared, group="Service")
result_field = functools.partial(shared, group="Results")


@dataclass(frozen=True)
class StreamOptions:
    format: str | None = stream_field(
        "--format NAME",
        "jsonl, csv, tsv, labelled-text, text, fasttext, vw, svmlight, parquet or mail. Any may be compressed.",
        brief="jsonl, csv, tsv, labelled-text, text, fasttext, vw, svmlight, parquet or mail.",
        shown="what the extension of the file says; mail for a folder; jsonl for standard input and other pipes",
    )
    text_field: str | None = stream_field(
        "--text-field A,B,…",
        "The field with the text, in jsonl, csv, tsv and parquet, or several; a.b is the field b of an object a. In "
        "vw a field is a namespace.",
        brief="Field of the text [default: text]",
        shown="that of the model, or text",
    )
    label_field: str | None = stream_field(
        "--label-field NAME",
        "The field with the label, named in the same way; in mail a header, which is removed from the mail.",
        brief="Field of the label [default: label]",
        shown="that of the model, or label",
    )
    id_field: str = stream_field(
        "--id-field NAME", "The field with the id of a message, named in the same way; answers have it.", default="id"
    )
    read: tuple[str, ...] = stream_field(
        "--read-option NAME=VALUE",
        "The form of the file: encoding=latin-1, say; in csv and tsv delimiter=';' (or '\\t'), escape=\\\\ if a "
        "backslash escapes quotes, and columns=text,label if there is no header (_ skips a column). May be given "
        "several times.",
        default=(),
        shown="encoding=utf-8, a comma or tab, the header",
        earlier=("--read",),
    )
    labels: str | None = stream_field(
        "--labels A,B,…",
        "The allowed labels; a line with any other is bad. On the page of label they are the buttons.",
        shown="any label",
    )
    label_separator: str | None = stream_field(
        "--label-separator SEP",
        "The separator of several labels in one text; implies --multi-label.",
        shown="a text is one label; a comma in vw and svmlight",
    )
    limit: int | None = stream_field("--limit N", "Stop after N messages.", type=number(int, 0), shown="no limit")
    strict: bool = stream_field(
        "--strict",
        "Exit with code 1 if any line was bad. A line is also bad if its label is new and looks like a known one.",
        default=False,
    )


@dataclass(frozen=True)
class MailOptions:
    """Mails whose labels follow from their folders; the labels are the names of the first fields."""

    spam: tuple[str, ...] = stream_field(
        "--spam PATH",
        "In place of FILE: a Maildir, mbox, .eml or folder of mails with the label spam; may be given several times. "
        "Mails of --spam and --ham come in order of arrival.",
        brief="In place of FILE: Maildir, mbox or folder of spam.",
        default=(),
    )
    ham: tuple[str, ...] = stream_field("--ham PATH", "The same with the label ham.", brief=True, default=())
    attached: bool = stream_field(
        "--attached",
        "Read the mails attached to mails of --spam and --ham in place of these: for mails that people forwarded. "
        "Without it the forwarder is learned.",
        default=False,
    )

    @property
    def given(self) -> dict[str, tuple[str, ...]]:
        return {name: paths for name, paths in (("spam", self.spam), ("ham", self.ham)) if paths}


@dataclass(frozen=True)
class ModelOptions:
    """Named as the parameters of the models; an option that is not given means the model's default."""

    classifier: str | None = model_field(
        "--classifier NAME",
        "adaptive, or pegasos as published.",
        shown="adaptive, unless an option of pegasos is given",
    )
    ordered: bool | None = model_field("--ordered", "The labels are integers with an order, such as stars.", brief=True)
    multi_label: bool | None = model_field(
        "--multi-label",
        "A message may have several labels: a JSON list, or in vw and svmlight 1,2 before the features, or none.",
        brief="A message has a list of labels.",
        shown="off unless evaluate or train find a list in the first message",
    )
    learning_rate: float | None = model_field("--learning-rate η", "adaptive: size of steps.", shown="0.5")
    half_life: float | str | None = model_field(
        "--half-life N",
        "adaptive: after this many messages evidence counts half; auto is 10000, or a fifth of a long stream.",
        type=number(float, word="auto"),
        shown="auto",
    )
    threshold: float | None = model_field(
        "--threshold P", "adaptive: positive only above this probability.", shown="0.5"
    )
    max_false_positive_rate: float | None = model_field(
        "--max-false-positive-rate R", "adaptive: share of negatives that may be flagged.", shown="no limit"
    )
    decide_for: str | None = model_field(
        "--decide-for METRIC",
        "adaptive: accuracy, micro_f1 or macro_f1. For F1, thresholds follow from the decisions so far.",
        shown="accuracy",
    )
    coverage: float | None = model_field(
        "--coverage SHARE",
        "adaptive: also answer with a set of labels. This share of sets, such as 0.95, has the right label.",
        shown="no sets",
    )
    drift_detector: str | None = model_field(
        "--drift-detector NAME",
        "adaptive: one of River's detectors, such as HDDMW. A loaded or resumed model has a new one.",
    )
    l2: float | None = model_field("--l2 λ", "pegasos: regularisation, above 0.", shown="0.0001")
    class_weight: str | None = model_field(
        "--class-weight NAME",
        "Weight rare labels more: balanced, so that each counts the same in total, or sqrt, the root of that.",
    )
    balanced: bool | None = model_field("--balanced", "Short for --class-weight balanced.")
    pos_label: str | None = model_field(
        "--pos-label LABEL",
        "The positive label, for --threshold and --max-false-positive-rate. They need it unless "
        "labels are true and false, 0 and 1, or -1 and 1.",
        shown="1, or true; for other labels, the second one that comes",
    )
    max_features: int | None = model_field(
        "--max-features N", "Beyond N the least-used features are dropped first.", shown="no limit"
    )

    mail: bool | None = model_field(
        "--mail",
        "The text of a message is a whole mail, headers and all.",
        shown="off unless the format is mail, or --spamd is given",
    )
    features: str | None = model_field(
        "--features JSON_OR_FILE",
        "How texts are read: parameters of TextFeatures, or for mails of MailFeatures, as a JSON object or a file with "
        """one, as {"ngram_range": [1, 3], "prefix_length": 0}. In Python, features.to_json() prints it.""",
    )
    other_fields: str | None = model_field(
        "--fields NAME:KIND,…",
        "Fields beside the text, each with its kind: category (one of several values, or a list of them), number or "
        "time (its hour and weekday count), as in size:number,sender:category,sent:time.",
    )
    vectors: str | None = model_field(
        "--vectors NAME_OR_PATH",
        "Vectors of words: wordllama, a folder of model2vec, a text file .vec; or of whole texts: use, a folder of "
        "sentence-transformers, the address of a server. For a loaded model only its own can be named, and must be if "
        "they are a file, a folder or a server: its file names these but never opens them.",
    )

    def split_decision(self) -> "tuple[ModelOptions, DecisionOptions]":
        """The options that only a new model takes, and those of its decision; a positive label alone is no decision."""
        if (self.threshold, self.max_false_positive_rate, self.decide_for, self.coverage) == (None,) * 4:
            return self, DecisionOptions()
        names = [f.name for f in fields(DecisionOptions)]
        decision = DecisionOptions(**{name: vars(self)[name] for name in names})
        return replace(self, **dict.fromkeys(names)), decision

    def given(self, text_fields: Sequence[str], is_mail: bool) -> "tuple[Features | None, dict[str, Any]]":
        """The features, if one of their options is given or messages are not texts, and the given parameters of the
        classifier, including its name and the kind of labels.
        """
        from stream_pegasos import MailFeatures, TextFeatures
        from stream_pegasos.features.base import FeatureUnion

        values = {name: value for name, value in vars(self).items() if value is not None}
        if values.get("classifier") not in (None, "adaptive", "pegasos"):
            raise click.BadParameter(f"{self.classifier!r} is neither adaptive nor pegasos", param_hint="--classifier")
        if "pos_label" in values:
            values["pos_label"] = positive_label(values["pos_label"])  # "true" and "1" also mean bool and int
        if values.pop("balanced", False) and values.setdefault("class_weight", "balanced") != "balanced":
            raise click.BadParameter(f"--class-weight {self.class_weight} says otherwise", param_hint="--balanced")
        if "drift_detector" in values:
            values["drift_detector"] = _drift_detector(values["drift_detector"])
        kind = MailFeatures if values.pop("mail", is_mail) else TextFeatures
        of_features = parameters_of_features(values.pop("features", "{}"), kind)
        of_features |= {"vectors": values.pop("vectors")} if "vectors" in values else {}
        other_fields = _other_fields(values.pop("other_fields", ""))
        if other_fields or len(text_fields) > 1:
            return FeatureUnion([*(kind(on=name, **of_features) for name in text_fields), *other_fields]), values
        return kind(**of_features) if of_features or kind is MailFeatures else None, values


def read_label(text: str, option: str, known_labels: "Iterable[Label | None]" = ()) -> "Label | None":
    """The label in an option, `None` if it is blank."""
    from stream_pegasos.learners.label_policy import Fault, LabelPolicy

    label = LabelPolicy(known_labels).read(text)
    if isinstance(label, Fault):
        raise click.BadParameter(str(label), param_hint=option)
    return label


def positive_label(text: str, known_labels: "Iterable[Label | None]" = ()) -> "Label":
    label = read_label(text, "--pos-label", known_labels)
    if label is None:
        raise click.BadParameter("it is blank", param_hint="--pos-label")
    return label


def field_names(text: str) -> list[str]:
    """The field names in an option, separated by commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def read_json(text: str, as_pairs: bool = False) -> Any:
    """The value of a JSON text; with `as_pairs` objects are lists of pairs, because a name may be duplicated. A
    ValueError if the text is not JSON.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=list if as_pairs else None)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it must be JSON: {error}") from None


def json_of_features(text: str) -> dict[str, Any]:
    """The JSON object in a text, or in the file with this name."""

    def wrong(reason: str) -> click.BadParameter:
        return click.BadParameter(reason, param_hint="--features")

    try:
        record = read_json(text if text.lstrip().startswith("{") else Path(text).read_text("utf-8"))
    except OSError as error:
        raise wrong(f"{text}: {error.strerror}; it is neither a JSON object nor a file of one") from None
    except ValueError as error:
        raise wrong(str(error)) from None
    if not isinstance(record, dict):
        raise wrong("it must be a JSON object, of parameters and their values")
    return record


def parameters_of_features(text: str, kind: type[Any]) -> dict[str, Any]:
    """The parameters for features of this kind."""
    from stream_pegasos.common.packing import parameters_in_json

    parameters = json_of_features(text)
    names = parameters_in_json(kind)
    for name in parameters.keys() - {*names}:
        raise click.BadParameter(
            f"{kind.__name__} has no parameter {name!r} here; it has {', '.join(names)}", param_hint="--features"
        )
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


def _other_fields(text: str) -> "list[Features]":
    from stream_pegasos import Category, Number, Time

    kinds: dict[str, Any] = {"category": Category, "number": Number, "time": Time}
    parts = []
    for field_name in field_names(text):
        name, _, kind = field_name.rpartition(":")
        if kind not in kinds or not name:
            raise click.BadParameter(
                f"{field_name!r} must be a name and, behind a colon, {', '.join(kinds)}", param_hint="--fields"
            )
        parts.append(kinds[kind](on=name))
    return parts


def _drift_detector(name: str) -> Any:
    from stream_pegasos.common.packing import drift_detector_class

    try:
        return drift_detector_class(name)()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--drift-detector") from None


coverage_field = functools.partial(
    model_field,
    "--coverage SHARE",
    "Also answer with a set of labels. This share of sets, such as 0.95, has the right label; 0 for no sets. Sets "
    "adapt as messages are learned.",
    shown="that of the model",
)


@dataclass(frozen=True)
class DecisionOptions:
    """Changes of the decision of a loaded model; named as the parameters of `set_decision`."""

    threshold: float | None = model_field(
        "--threshold P", "Positive only above this probability.", brief=True, shown="that of the model"
    )
    max_false_positive_rate: float | None = model_field(
        "--max-false-positive-rate R",
        "Share of negatives that may be flagged; 1 for no limit. A model of more than two classes "
        "takes a limit only if it learned with one; it need not be the same.",
        shown="that of the model",
    )
    pos_label: str | None = model_field(
        "--pos-label LABEL",
        "The positive label, for --threshold and --max-false-positive-rate.",
        shown="that of the model",
    )
    decide_for: str | None = model_field(
        "--decide-for METRIC",
        "accuracy, micro_f1 or macro_f1. For F1 the model must have learned with this option, since it counts then.",
        shown="that of the model",
    )
    coverage: float | None = coverage_field()

    def given(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


# In all commands --save is the file of the model, and --output the file of answers, one line for each message.
save_field = functools.partial(
    result_field, flag="--save MODEL", help="Write the model here, as safetensors.", brief=True, shown="nowhere"
)
must_save_field = functools.partial(save_field, required=True, shown="none, it must be given")
names_field = functools.partial(
    result_field,
    "--keep-feature-names",
    "Keep the words of the heaviest features in the model file, for explain and the page of serve.",
    default=False,
    earlier=("--names",),
)
gap_field = functools.partial(
    result_field,
    "--allow-gap",
    "Begin although the journal beside MODEL lacks messages, for example after a partial restore. They are not "
    "learned.",
    default=False,
)
model_argument = functools.partial(argument, "MODEL", "A model that --save wrote.")
begin_argument = functools.partial(
    argument, "MODEL", "A saved model to continue with; without it a new one.", default=None
)


def messages_or_seconds(text: str) -> tuple[int, float]:
    if text.endswith("s"):
        return NEVER, number(float, 0.1, NEVER)(text[:-1])
    return int(number(int, 1, NEVER)(text)), float(NEVER)


@dataclass(frozen=True)
class CheckpointOptions:
    """Options of the checkpoint: its file and its interval."""

    path: Path | None = result_field(
        "--checkpoint MODEL",
        "Keep model and progress in this file, and resume from it.",
        brief="Keep model and progress here; resume from it.",
        shown="nothing is kept",
    )
    when: tuple[int, float] | None = result_field(
        "--checkpoint-every N",
        "Write it after this many messages (1000) or seconds (60s).",
        type=messages_or_seconds,
        shown="10000 messages or 10 seconds, whichever comes first; of a large model 1 MB a second",
    )

    @property
    def interval(self) -> tuple[int, float, float]:
        """The messages and the seconds between two checkpoints, whichever end first, and their share of the time."""
        return (*self.when, 1.0) if self.when else (10_000, 10.0, 0.02)


def n_threads() -> int:
    """The number of processors that the process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
