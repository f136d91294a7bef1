"""Merging of models that all continued from one base model, each with its own examples."""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.common.packing import get_parameters
from stream_pegasos.common.state import BUFFERED, Declaration, State, in_double
from stream_pegasos.engine import Vocabulary
from stream_pegasos.engine.merging import (
    is_changed,
    merged_adaptive,
    merged_pegasos,
    n_classes_learned,
)
from stream_pegasos.engine.pure.weights import FIRST_NAME
from stream_pegasos.features.base import FeatureUnion
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.feature_scaler import merge_scalers
from stream_pegasos.learners.forgetting import Recency
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.ordinal import OrderedLabels
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.learners.trainer import Trainer

__all__ = ["check_parts", "drop_unchanged", "merge", "merge_changes", "merge_into"]

C = TypeVar("C", bound=Model)

FEW_EXAMPLES = 20  # that may have one class by chance
MERGEABLE = ("AdaptiveClassifier", "MultiLabelClassifier", "OrdinalClassifier", "PegasosClassifier")


def merge(base: C, parts: Iterable[C]) -> C:
    """Combine models that all continued from one base model, each with its own examples, for example on several
    machines.

    The knowledge of the parts is added up, and nothing is counted twice:

    - counts add up: of examples, of squared gradients, of flagged messages for a limit of false positives, and of
      predictions for F1. Evidence ages by the examples of all parts;
    - a weight moves by the sum of the parts' changes, each times φ(a) / φ(A) with φ(a) = √(a (a + g)). The evidence of
      a part is a = √(Σ gradients² · p (1 − p) n), where n is the number of occurrences of the feature in its examples,
      and p the share with the label; A is the evidence of all parts, and g that of 500 occurrences, times the mean
      squared error. So a weight that only one part moved keeps its change. If parts learned little, the result is more
      than the mean of their changes, otherwise it is the mean. Intercepts, and the weights of a `PegasosClassifier`,
      move by the mean of the changes, weighted by the learned examples of each part; a mini-batch becomes a step;
    - the calibration of probabilities is the mean over the parts, weighted by their learned examples, and so is the
      level of sets with a `coverage`;
    - classes that only some parts met follow those of the base, in the order of the parts. Beyond `max_features`, the
      least-used features are dropped.

    With one part, the result equals that part, bit for bit. The order of parts changes only rounding and the order of
    new classes. It makes little difference whether all are merged at once, or first in pairs.

    Each part must have met all classes: if each part learned a single class, the merged model is poor, and there is a
    warning. Distribute messages at random.

    Parameters
    ----------
    base : Model
        The model from which all parts continued; this cannot be checked. It does not change.
    parts : iterable of Model
        The models to merge, at least one. They do not change.

    Raises
    ------
    TypeError
        If a model is no classifier, or cannot be merged: a `KernelPegasosClassifier`, or a model with a drift detector,
        which needs a single sequence of errors.
    ValueError
        If there is no part, if parameters differ, if a part has learned less than the base, or if examples wait in the
        mini-batch of the base.

    References
    ----------
    [^1]: Agarwal, A., Chapelle, O., Dudík, M. and Langford, J., 2014. A reliable effective terascale linear learning
        system. JMLR 15. (The mean of weights by their squared gradients, as in Vowpal Wabbit's `--merge`.)

    Examples
    --------
    >>> import copy
    >>> from stream_pegasos import TextClassifier, merge
    >>> base = TextClassifier()
    >>> base.learn_many(["see you at lunch", "cheap pills for you"], ["ham", "spam"])
    >>> parts = [copy.deepcopy(base), copy.deepcopy(base)]
    >>> parts[0].learn_many(["lunch at noon?", "cheap watches"], ["ham", "spam"])
    >>> parts[1].learn_many(["win a prize", "the agenda for noon"], ["spam", "ham"])
    >>> model = merge(base, parts)
    >>> model.n_iterations, model.predict_many(["watches", "a prize", "agenda"]).tolist()
    (6, ['spam', 'spam', 'ham'])
    """
    models = [base, *parts]
    for model in models:
        if not isinstance(model, Model):
            raise TypeError(must_be("a model", "a classifier of this package", type_name(model)))
    check_parts(models)
    merged, *after = [copy.deepcopy(model) for model in models]
    if len(after) == 1:
        return after[0]
    merge_into(merged, after)
    return merged


def merge_into(base: Model, parts: Sequence[Model]) -> None:
    """`merge` without checks and copies: the base gets the knowledge of the parts, which may change on the way. Parts,
    even a single one, may lack entries that are the same in the base.
    """
    for part in parts:
        part.flush()
    busy = [part for part in parts if part.n_learned > base.n_learned] or parts[:1]  # other parts add nothing
    take_parts([model.trainer for model in (base, *busy)])
    base.flush()
    names = [part.names for part in parts if isinstance(part, TextClassifier) and part.names is not None]
    if names and isinstance(base, TextClassifier):
        base.keep_names()
        assert base.names is not None
        base.names.take(base, names)


def classifier_part(model: Model) -> Classifier:
    """The classifier that learns: the model itself, or the classifier inside it."""
    classifier = model.parts["classifier"]
    assert isinstance(classifier, Classifier)
    return classifier


def drop_unchanged(base: Model, part: Model) -> None:
    """Drop all entries of a part that are the same in the base, so that little is sent. The part is then for
    `merge_into`, or for `merge` with others.
    """
    old, core = base.trainer, part.trainer
    before, after, declaration = old.learner.get_state(), core.learner.get_state(), core.learner.declaration
    is_alike = old.learner.has_class_columns == core.learner.has_class_columns
    if not core.vocabulary.names and declaration.evidence and is_alike:
        half_life = core.learner.parameters["half_life"]
        mask = is_changed(declaration, in_double(before), in_double(after), half_life)
        core.learner.set_state(declaration.selected(after, mask))


def merge_changes(base: Model, parts: Sequence[Model]) -> None:
    """`merge_into` for parts that lack unchanged entries; afterwards the base lacks them, too."""
    keys = [part.trainer.learner.get_state()["keys"] for part in parts]
    merge_into(base, parts)
    core = base.trainer
    state, declaration = core.learner.get_state(), core.learner.declaration
    if not core.vocabulary.names and declaration.evidence:
        core.learner.set_state(declaration.selected(state, np.isin(state["keys"], np.concatenate(keys))))


def take_parts(cores: Sequence[Trainer]) -> None:
    """Merge the knowledge of the other classifiers into the first; the others may change on the way."""
    base = cores[0]
    numbers = share_labels(cores)
    base.policy.merge([core.policy for core in cores[1:]])
    states, parameters, declaration = core_states(cores), base.learner.parameters, base.learner.declaration
    reduction = parameters["reduction"]
    if declaration.evidence:
        half_life, smoothing = parameters["half_life"], parameters["smoothing"]
        reduction = "ovr" if reduction == "two" and base.learner.has_class_columns else reduction
        if reduction != "multilabel":
            warn_of_sorted_parts(declaration, states, half_life)
        order = base.labels.order if isinstance(base.labels, OrderedLabels) else np.zeros(0, np.int64)
        new_state = merged_adaptive(declaration, states, half_life, smoothing, reduction, numbers, order)
    else:
        new_state = merged_pegasos(declaration, states, numbers, reduction == "crammer_singer")
    base.learner.set_state(new_state)
    base.forgetting.recency = Recency()  # because features have a new order
    scalers = [core.scaler for core in cores]
    known_scalers = [scaler for scaler in scalers if scaler is not None]
    are_all_known = len(known_scalers) == len(scalers)
    base.set_scaler(merge_scalers(known_scalers[0], known_scalers[1:]) if are_all_known else None)
    before, *after = [Counter(core.class_weights.counts) for core in cores]
    base.class_weights.counts = sum((of_part - before for of_part in after), before)
    base.join_parts()


def warn_of_sorted_parts(declaration: Declaration, states: Sequence[State], half_life: float) -> None:
    """Warn if parts with a single class each have most of the examples."""
    n_learned = [state["n_iterations"] - states[0]["n_iterations"] for state in states[1:]]
    n_classes = n_classes_learned(declaration, states, half_life)
    one_sided = [n for n, of in zip(n_learned, n_classes, strict=True) if of < 2 and n >= FEW_EXAMPLES]
    if len(one_sided) > 1 and sum(one_sided) > sum(n_learned) / 2:
        warnings.warn(
            f"merge: {len(one_sided)} of {len(n_learned)} parts have learned one class alone, which makes a poor "
            "model: deal the messages out over the parts at random",
            stacklevel=5,
        )


def check_parts(models: Sequence[Model]) -> None:
    """Raise a TypeError if a model cannot be merged, and a ValueError unless the first can be the base of the
    others.
    """
    described = []
    for model in models:
        core = classifier_part(model)
        kind, features = type(core).__name__, model.features if isinstance(model, TextClassifier) else None
        if kind not in MERGEABLE or not core.trainer.learner.declaration.can_be_merged:
            raise TypeError(f"a model of {kind} cannot be merged; {', '.join(MERGEABLE)} can")
        parameters = get_parameters(core.inner)
        if parameters.get("drift_detector") is not None:
            raise TypeError("a model with drift_detector cannot be merged: it watches one sequence of errors")
        each_kind = features.parts if isinstance(features, FeatureUnion) else [features]
        kinds = [(type(part), part.described()) for part in each_kind if part is not None]
        described.append((kind, parameters, kinds))
    base = models[0]
    if len(models) == 1:
        raise ValueError("models must have at least one model to merge, got none")
    learner = models[0].trainer.learner
    if learner.declaration.names(BUFFERED) and learner.get_state()["n_buffered"].any():
        raise ValueError("examples wait in the mini-batch of the base, which every part would learn: flush() it first")
    for number, (model, of) in enumerate(zip(models[1:], described[1:], strict=True), 1):
        if of != described[0]:
            raise ValueError(f"part {number} is another kind of model than the base, or has other parameters")
        if model.n_iterations < base.n_iterations:
            raise ValueError(f"part {number} did not continue from the base: it has learned fewer examples")
        if forgotten := [label for label in base.classes if label not in model.classes]:
            raise ValueError(
                f"part {number} has forgotten {forgotten[0]!r}, which the base knows: merge first, then forget"
            )


def share_labels(cores: Sequence[Trainer]) -> list[NDArray[np.int64]]:
    """Give the base the labels of all, and all models the same columns: one for two classes, or one for each class.
    Return the numbers of each model's columns.
    """
    own = [core.labels for core in cores]
    labels = cores[0].labels = own[0].joined(own[1:])
    if len(labels.known) > 2 or any(core.learner.has_class_columns for core in cores):
        for core, of in zip(cores, own, strict=True):
            core.grow(len(of.known))
        return [np.array([labels.targets[label] for label in of.known], np.int64) for of in own]
    for core, of in zip(cores, own, strict=True):
        if any(labels.targets[label] != number for label, number in of.targets.items()):
            core.learner.set_state(core.learner.declaration.mirrored(core.learner.get_state()))
    return [np.arange(1)] * len(cores)


def core_states(cores: Sequence[Trainer]) -> list[State]:
    """The states of learners, with the names of features numbered alike in all models, those of the base first."""
    numbers: dict[Any, int] = {}
    states = []
    for core in cores:
        names, state = core.vocabulary.names, in_double(core.learner.get_state())
        own = np.array([FIRST_NAME + numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        is_name = state["keys"] >= FIRST_NAME
        state["keys"][is_name] = own[state["keys"][is_name] - FIRST_NAME]
        states.append(state)
    cores[0].vocabulary = Vocabulary([*numbers])
    return states
