"""The model of a command: made from options, loaded, resumed and saved."""

import inspect
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import click

from stream_pegasos.cli.console import Failure, check_read, listed, naming, note, writing
from stream_pegasos.cli.options import CheckpointOptions, DecisionOptions, ModelOptions, positive_label
from stream_pegasos.cli.stream import Stream
from stream_pegasos.common.display import printable
from stream_pegasos.learners.capabilities import Capability

if TYPE_CHECKING:
    from stream_pegasos.learners.classifier import Classifier
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.learners.text import TextClassifier
    from stream_pegasos.runtime.checkpoints import Checkpoints
    from stream_pegasos.runtime.shared_checkpoint import SharedCheckpoint


def takes_text(model: "Model") -> "TypeGuard[TextClassifier]":
    return Capability.TEXTS in model.capabilities


def takes_several(model: "Model") -> bool:
    """Whether a message may have several labels."""
    return Capability.MULTILABEL in model.capabilities


def text_model(model: "Model", path: Path | None) -> "TextClassifier":
    """The model; a Failure unless it reads texts."""
    if not takes_text(model):
        raise Failure(f"{path} is a model of features, not of texts")
    return model


def takes_lines(model: "Model") -> bool:
    """Whether a message may be a line of text."""
    return takes_text(model) and model.features.takes_text and model.features.mail_field is None


def message_fields(model: "Model") -> tuple[str, ...]:
    """The fields of a message; empty if a message is a text or features."""
    return () if not takes_text(model) or model.features.takes_text else tuple(model.features.fields)


def model_for(stream: Stream, load: Path | None, options: ModelOptions) -> "tuple[Model, Any]":
    """The model to train, and its progress if it is a checkpoint."""
    if load is None:
        return new_model(options, stream), None
    plain_options, decision = options.split_decision()
    if replace(plain_options, vectors=None) != ModelOptions():
        raise click.BadParameter(
            "a loaded model keeps its own options, except --threshold, --max-false-positive-rate, --decide-for and "
            "--coverage",
            param_hint="MODEL",
        )
    model, progress = load_with_progress(load, stream, options.vectors)
    tell_what_begins_again(model)
    set_decision(model, load, decision)
    return model, progress


def model_to_continue(
    stream: Stream | None, load: Path | None, vectors: str | None = None, is_mail: bool = False
) -> "Model":
    """The loaded model, which continues to learn, or else a new one with the defaults."""
    if load is None:
        if vectors is not None:
            raise click.BadParameter(
                "it goes with a saved model; train makes one that has them", param_hint="--vectors"
            )
        return new_model(ModelOptions(), stream, is_mail=is_mail)
    model = load_model(load, stream, vectors)
    tell_what_begins_again(model)
    return model


def tell_what_begins_again(model: "Model") -> None:
    from stream_pegasos.learners.adaptive import AdaptiveClassifier

    inner = cast("Classifier", model.parts["classifier"]).inner
    if isinstance(inner, AdaptiveClassifier) and inner.drift_detector is not None:
        note("its drift detector begins again, because its state is not saved")


def tell_of_labels(model: "Model", known_labels: tuple[Any, ...], labels_met: Collection["Label"]) -> None:
    """Warn at the end of labels that may be mistakes: a label in an option never came; or many labels, or all labels in
    the stream, are new to a model that knew others.
    """
    for fault in model.trainer.faults_of_options() if labels_met else ():
        note(fault)
    new = [label for label in model.classes if label in labels_met and label not in known_labels]
    if (
        new
        and known_labels
        and (
            len(known_labels) == 2
            or len(new) > len(known_labels)
            or not any(label in known_labels for label in labels_met)
        )
    ):
        note(
            f"{len(new):,} label{'s' * (len(new) != 1)} came that the model did not know: {listed(new)}; "
            f"it knew {listed(known_labels)}"
        )


def tell_of_unknown_labels(model: "Model", labels_met: Collection["Label"], only_all: bool = False) -> None:
    """Warn of labels of a file that are unknown to the model, which does not learn; with `only_all`, only if all are
    unknown.
    """
    classes = model.classes
    new = [label for label in labels_met if label not in classes]
    if new and not (only_all and len(new) < len(labels_met)):
        knows = f"it knows {listed(classes)}" if classes else "it has learned none"
        note(f"{len(new):,} label{'s' * (len(new) != 1)} came that the model does not know: {listed(new)}; {knows}")


def chosen_label(model: "Model", text: str, named_by: str) -> Any:
    """The learned label that a text means; the text may also be in its printed form."""
    from stream_pegasos.learners.label_policy import LabelPolicy

    labels = LabelPolicy(model.classes).candidates(text, printable)
    if len(labels) > 1:
        raise click.BadParameter(f"{text!r} may be any of {', '.join(map(repr, labels))}", param_hint=named_by)
    if not labels:
        raise click.BadParameter(
            f"must be a label that was learned ({listed(model.classes)}), got {text!r}", param_hint=named_by
        )
    return labels[0]


def new_model(
    options: ModelOptions, stream: Stream | None = None, *, is_mail: bool = False, has_several: bool = False
) -> "Model":
    """A model with these options; without a stream, messages are mails or texts."""
    from stream_pegasos import MailFeatures, TextClassifier
    from stream_pegasos.features.base import FeatureUnion

    try:
        if stream is None:
            features, classifier = options.given(("text",), is_mail)
        else:
            features, classifier = options.given(stream.text_fields or ("text",), stream.is_mail)
            has_several = has_several or stream.separator is not None
        if has_several:
            classifier["multi_label"] = True
        if stream is not None and stream.has_features:
            has_fields = bool(stream.text_fields) or isinstance(features, FeatureUnion)
            if features is None and not has_fields:
                return _new_classifier(**classifier)
            if stream.format != "vw" or not has_fields or isinstance(features, MailFeatures):  # fields are namespaces
                raise click.BadParameter(
                    f"format {stream.format} carries features, not text: --text-field (but for a namespace of vw), "
                    "--features, --vectors and --mail do not apply"
                )
        model = TextClassifier(features, _new_classifier(**classifier))
        _keep_field_names(stream, model)
        return model
    except (ValueError, TypeError) as error:
        raise click.BadParameter(str(error)) from None


def _keep_field_names(stream: Stream | None, model: "Model", name: str = "the model") -> None:
    """Store in the model the fields from which it learns; a Failure if it does not read them."""
    if stream is None:
        return
    text_field = stream.text_fields[0] if len(stream.text_fields) == 1 else None
    named = {"text_field": text_field, "label_field": stream.options.label_field}
    model.field_names = {
        **model.field_names,
        **{field_name: field for field_name, field in named.items() if field is not None},
    }
    if not takes_text(model):
        return
    names = stream.text_fields_for(model)
    if fields := message_fields(model):
        if stream.is_mail:
            raise Failure(f"{name} reads the fields {', '.join(fields)}, but a mail of {stream.name} has none")
        other = [field_name for field_name in names if field_name not in fields]
        if other and names != ("text",):
            raise Failure(f"{name} reads the fields {', '.join(fields)}, but --text-field names {', '.join(other)}")
    elif len(names) > 1:
        raise Failure(f"{name} reads one text, but --text-field names {', '.join(names)}")


def _new_classifier(
    classifier: str | None = None, ordered: bool = False, multi_label: bool = False, **parameters: Any
) -> "Classifier":
    """The named classifier, or else the one with these parameters, made for the kind of labels."""
    from stream_pegasos import AdaptiveClassifier, MultiLabelClassifier, OrdinalClassifier, PegasosClassifier

    kinds: dict[str, Any] = {"adaptive": AdaptiveClassifier, "pegasos": PegasosClassifier}
    takes = {name: inspect.signature(kind).parameters.keys() for name, kind in kinds.items()}
    if classifier is None:
        classifier = "adaptive" if takes["adaptive"] >= parameters.keys() else "pegasos"
    for name in parameters.keys() - takes[classifier]:
        flag = "--" + name.replace("_", "-")
        raise click.BadParameter(f"the classifier {classifier} has no such option", param_hint=flag)
    if multi_label and classifier != "adaptive":
        flags = [f"--{name.replace('_', '-')}" for name in parameters.keys() - takes["adaptive"]] or ["--classifier"]
        raise click.BadParameter(f"{classifier} learns one label a message", param_hint=", ".join(sorted(flags)))
    of_one_label = {
        "--ordered": ordered,
        "--class-weight, --balanced": "class_weight" in parameters,
        "--pos-label": "pos_label" in parameters,
    }
    for flag, is_given in of_one_label.items():
        if multi_label and is_given:
            raise click.BadParameter("it is for one label a message, not for several", param_hint=flag)
    classifier_of_kind = kinds[classifier](**parameters)
    return (
        OrdinalClassifier(classifier_of_kind)
        if ordered
        else MultiLabelClassifier(classifier_of_kind)
        if multi_label
        else classifier_of_kind
    )


@contextmanager
def resuming(
    checkpoint_options: CheckpointOptions,
    load: Path | None,
    vectors: str | None,
    stream: Stream | None,
    is_mail: bool = False,
) -> "Iterator[tuple[Checkpoints | None, Model, Any]]":
    """Yield the checkpoints, the model of the newest one (else the loaded one, else a new one), and its progress."""
    from stream_pegasos.runtime.checkpoints import Checkpoints

    if checkpoint_options.path is None:
        yield None, model_to_continue(stream, load, vectors, is_mail), None
        return
    checkpoints = Checkpoints(checkpoint_options.path, *checkpoint_options.interval)
    checkpoints.claim()
    try:
        resumed = _resumed(checkpoints, checkpoint_options.path, vectors, stream)
        yield checkpoints, *(resumed or (model_to_continue(stream, load, vectors, is_mail), None))
    finally:
        checkpoints.release()


def sharing(
    folder: str,
    interval: tuple[int, float],
    load: Path | None,
    vectors: str | None,
    stream: Stream,
    coverage: float | None = None,
) -> "tuple[SharedCheckpoint, Model]":
    """The checkpoint of the runs that share a folder, and the model to start with."""
    from stream_pegasos.features.vectors import VectorsError
    from stream_pegasos.runtime.shared_checkpoint import SharedCheckpoint

    shared = SharedCheckpoint(folder, *interval, vectors)
    path = shared.checkpoints.path

    def new() -> "Model":
        model = model_to_continue(stream, load, vectors)
        ask_for_coverage(model, coverage)
        return model

    try:
        model = shared.begin(new)
    except VectorsError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        raise Failure(f"{error}; name another folder, or move it away to begin again") from None
    except TypeError as error:
        raise Failure(f"the model cannot be shared: {error}") from None
    _check_reads(model, path, stream)
    if coverage is not None and (coverage or None) != model.coverage:
        fault = f"must be {model.coverage or 0:g}, as the runs of {folder} share a model that has it, got {coverage:g}"
        raise click.BadParameter(fault, param_hint="--coverage")
    if shared.progress["n_read"]:
        note(f"going on with {model.n_learned:,} messages that all runs of {folder} learned")
    return shared, model


def _resumed(
    checkpoints: "Checkpoints", checkpoint: Path, vectors: str | None, stream: Stream | None
) -> "tuple[Model, Any] | None":
    from stream_pegasos.features.vectors import VectorsError

    try:
        resumed = checkpoints.resume(vectors)
    except VectorsError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        raise Failure(f"{error}; name another file, or move it away to begin again") from None
    if resumed is None:
        return None
    model, _ = resumed
    _check_reads(model, checkpoint, stream)
    note(f"resuming with {model.n_learned:,} messages learned")
    tell_what_begins_again(model)
    return resumed


def load_model(path: Path, stream: Stream | None, vectors: str | None = None) -> "Model":
    return load_with_progress(path, stream, vectors)[0]


def load_with_progress(path: Path, stream: Stream | None, vectors: str | None = None) -> "tuple[Model, Any]":
    """The model in a file, and its progress if the file is a checkpoint."""
    from stream_pegasos.features.vectors import VectorsError
    from stream_pegasos.learners import loading
    from stream_pegasos.learners.files import begins_as_model

    try:
        model, progress = loading.load_with_progress(path, vectors)
    except VectorsError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        if os.path.isfile(path) and not begins_as_model(path):
            raise Failure(
                f"{path} must be a model, as --save writes one, got another or a damaged file; MODEL comes before FILE"
            ) from None
        text = str(error)
        raise Failure(text if str(path) in text else f"{path}: {text}") from None
    _check_reads(model, path, stream)
    _tell_of_journal(path, progress)
    return model, progress


def _tell_of_journal(path: Path, progress: object) -> None:
    """Report if the journal of a checkpoint has messages that its model has not learned."""
    position = progress.get("journal") if isinstance(progress, dict) else None
    if position is None:
        return
    from stream_pegasos.common.locks import Lock
    from stream_pegasos.runtime.journal import Journal

    with suppress(OSError, TypeError, ValueError):
        if Journal(Path(os.path.realpath(path)), Lock(), reads_only=True).goes_on(position):
            note(f"{path}: its journal has messages that came after it, which this model has not learned")


def model_to_use(path: Path, stream: Stream | None, decision: DecisionOptions, vectors: str | None = None) -> "Model":
    """A loaded model, with the decision in the options."""
    model = load_model(path, stream, vectors)
    set_decision(model, path, decision)
    return model


def set_decision(model: "Model", path: Path, decision: DecisionOptions) -> None:
    """Change the decision of a model by the options."""
    parameters = decision.given()
    if "pos_label" in parameters:
        parameters["pos_label"] = positive_label(parameters["pos_label"], model.classes)
    if parameters:
        with naming(path):
            model.set_decision(**parameters)


def ask_for_coverage(model: "Model", coverage: float | None) -> None:
    """Let a model that continues to learn answer with sets of labels, if an option asks for it."""
    if coverage is not None:
        try:
            model.set_decision(coverage=coverage)
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error), param_hint="--coverage") from None


def keep_names(model: "Model") -> None:
    """Let a text model keep the words of its heaviest features."""
    if not takes_text(model) or Capability.WEIGHTS not in model.capabilities:
        raise click.BadParameter("it is for models of texts that have weights", param_hint="--keep-feature-names")
    model.keep_names()


def _check_reads(model: "Model", path: Path, stream: Stream | None) -> None:
    """Raise a Failure if the model of this file cannot read the stream, or reads vectors that the command writes."""
    from stream_pegasos.features.base import Features, FeatureUnion

    features = model.parts.get("features")
    parts = features.parts if isinstance(features, FeatureUnion) else [features]
    for part in parts:
        source = part.vector_source if isinstance(part, Features) else None
        if source is not None and not source.kept:  # otherwise only the model file names it, and it is not read
            check_read(source.name)
    if stream is None:
        return
    if stream.separator is not None and not takes_several(model):
        raise Failure(f"{path} is a model of one label a message, but --label-separator gives several")
    _keep_field_names(stream, model, str(path))
    if stream.text_fields and stream.has_features and not takes_text(model):
        raise Failure(f"{path} is a model of features, not of the text of {', '.join(stream.text_fields)}")
    is_namespace = stream.format == "vw" and (stream.text_fields or "text_field" in model.field_names)
    if takes_text(model) and is_namespace:
        return
    if takes_text(model) == stream.has_features and not message_fields(model):
        kind = "texts" if takes_text(model) else "features, as in the formats vw and svmlight"
        raise Failure(f"{path} is a model of {kind}, but {stream.name} has format {stream.format}")


def save_model(model: "Model", path: Path, progress: object = None) -> None:
    """Save a model, with its progress if it is a checkpoint."""
    from stream_pegasos.learners.files import write_model

    with writing(path):
        write_model(path, partial(model.snapshot, progress))  # the command holds its lock
