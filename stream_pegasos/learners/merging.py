"""Merging models that all continued from one base, each with examples of its own."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import parameters_of, unpack_parameters
from stream_pegasos.common.state import State
from stream_pegasos.engine import Learner, Vocabulary
from stream_pegasos.engine.merging import is_changed, merged_adaptive, merged_newest, merged_pegasos, mirrored
from stream_pegasos.engine.pure.adaptive_state import declared
from stream_pegasos.engine.pure.driver import has_column_each
from stream_pegasos.engine.pure.weights import FIRST_NAME
from stream_pegasos.learners.class_weights import ClassWeights
from stream_pegasos.learners.decisions import Decisions
from stream_pegasos.learners.false_positives import Tail
from stream_pegasos.learners.files import Snapshot, kind_of
from stream_pegasos.learners.labels import Labels
from stream_pegasos.learners.model import Model

__all__ = ["changes", "check_parts", "merge", "merged_snapshots", "model_of", "snapshot_of"]

C = TypeVar("C", bound=Model)

OF_CLASSES = "class_counts"  # which a state has where each class has a column
MERGEABLE = ("AdaptiveClassifier", "MultiLabelClassifier", "OrdinalClassifier", "PegasosClassifier")


def merge(base: C, parts: Iterable[C]) -> C:
    """Combine models that all continued from one base, each with examples of its own, as on several machines.

    What the parts have learned is added up, and nothing is counted twice:

    - counts of examples, squared gradients, and counts of what a limit of false positives flagged, add up. Evidence
      ages by the examples of all parts;
    - a weight moves by the sum of the parts' changes, divided by k^0.85, where k is the number of parts that its
      squared gradients are spread over; so one that a single part moved keeps its change. The weights of a
      `PegasosClassifier` move by the mean of the changes, weighted by the parts' steps; a mini-batch becomes a step;
    - probabilities are calibrated by the mean of the parts', weighted by how many examples each has learned;
    - classes that only some parts met follow those of the base, in the order of the parts. Beyond `max_features` the
      least-used features are dropped.

    With one part the result is that part, bit for bit. The order of parts changes nothing beyond rounding, except the
    order of new classes.

    Parameters
    ----------
    base
        The model from which all parts continued; this cannot be checked. It stays as it is.
    parts
        The models, at least one. They stay as they are.

    Raises
    ------
    TypeError
        If one is no classifier, or cannot be merged: a `KernelPegasosClassifier`, or a model with a drift detector,
        which watches one sequence of errors.
    ValueError
        If there is no part, parameters differ, a part has learned less than the base, or examples wait in the
        mini-batch of the base.

    References
    ----------
    [^1]: Agarwal, A., Chapelle, O., Dudík, M. and Langford, J., 2014. A reliable effective terascale linear learning
        system. JMLR 15. (The mean of weights by their squared gradients, as Vowpal Wabbit's `--merge` takes it.)

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
            raise TypeError(f"{model!r} is a {type(model).__name__}, no classifier of this package")
    return merged([copy.deepcopy(model) for model in models])  # type: ignore[no-any-return]


def snapshot_of(model: Model) -> Snapshot:
    """The state of a model as it is now, all of it in memory at once."""
    with model.lock:
        arrays, names, values = model.to_state()
    return Snapshot(type(model).__name__, arrays, names, values, None, vectors=model.vector_source)


def model_of(snapshot: Snapshot) -> Any:
    """The model that a snapshot is of."""
    values = {**snapshot.values, "find_vectors": lambda _: snapshot.vectors}
    return kind_of(snapshot.kind).from_state(snapshot.arrays, snapshot.names, values)


def merged_snapshots(base: Snapshot, parts: Sequence[Snapshot]) -> Snapshot:
    """What `merge` does, and raises. If there are several parts, each may lack what `changes` leaves out."""
    return snapshot_of(merged([model_of(each) for each in (base, *parts)]))


def changes(base: Snapshot, part: Snapshot) -> Snapshot:
    """A part without the features that are as in the base, so that little is sent to where parts are merged."""
    before, after = (each.values.get("classifier", each.values) for each in (base, part))
    is_of_two = [OF_CLASSES not in each.arrays for each in (base, part)]
    if part.names or "evidence" not in after["learner"] or is_of_two[0] != is_of_two[1]:
        return part
    half_life = unpack_parameters(after["parameters"])["half_life"] or 0.0
    kept = is_changed(base.arrays | before["learner"], part.arrays | after["learner"], half_life)
    arrays = declared("two" if is_of_two[1] else "ovr").selected(part.arrays, kept)
    return dataclasses.replace(part, arrays=arrays)


def merged(models: Sequence[Any]) -> Any:
    """The first model, merged with those that went on from it, all of which may change on the way."""
    check_parts(models)
    if len(models) == 2:
        return models[1]
    base, *parts = models
    for part in parts:
        part.flush()
    take_parts([model.parts["classifier"] for model in models])
    base.flush()
    return base


class Mergeable(Protocol):
    """What is merged of a classifier."""

    learner: Learner
    labels: Labels
    class_weights: ClassWeights
    vocabulary: Vocabulary
    decisions: Any


def take_parts(models: Sequence[Mergeable]) -> None:
    """Have the first learn what the others have learned, which may change on the way."""
    base = models[0]
    numbers = share_labels(models)
    merge_limits(models)
    before, *after = states_of(models)
    arguments: Any = base.learner.arguments
    if "evidence" in before:
        *_, smoothing, half_life, _, _, reduction = arguments
        reduction = "ovr" if reduction == "two" and has_column_each(before) else reduction
        order = getattr(base.labels, "order", np.zeros(0, np.int64))
        state = merged_adaptive(before, after, half_life, smoothing, reduction, numbers, order)
    else:
        l2, _, _, project, *_, reduction = arguments
        longest = 1.0 / l2 if project else math.inf
        state = merged_pegasos(before, after, numbers, reduction == "crammer_singer", longest)
    base.learner.set_state(state)
    counts, *of_parts = [model.class_weights.counts for model in models]
    every = dict.fromkeys(label for each in (counts, *of_parts) for label in each)
    base.class_weights.counts = {
        label: counts.get(label, 0) + sum(each.get(label, 0) - counts.get(label, 0) for each in of_parts)
        for label in every
    }


def check_parts(models: Sequence[Any]) -> None:
    """Raise a TypeError if one cannot be merged, and a ValueError unless the first can be the base of the others."""
    described = []
    for model in models:
        core = model.parts["classifier"]
        kind, features = type(core).__name__, model.parts.get("features")
        if kind not in MERGEABLE:
            raise TypeError(f"a model of {kind} cannot be merged; {', '.join(MERGEABLE)} can")
        parameters = parameters_of(getattr(core, "classifier", core))
        if parameters.get("drift_detector") is not None:
            raise TypeError("a model with drift_detector cannot be merged: it watches one sequence of errors")
        kinds = [(type(each), each.described()) for each in getattr(features, "parts", [features]) if each is not None]
        described.append((kind, parameters, kinds))
    base = models[0].parts["classifier"]
    if len(models) == 1:
        raise ValueError("there is no part to merge")
    if getattr(base.learner, "n_buffered", 0):
        raise ValueError("examples wait in the mini-batch of the base, which every part would learn: flush() it first")
    for number, (model, of) in enumerate(zip(models[1:], described[1:], strict=True), 1):
        if of != described[0]:
            raise ValueError(f"part {number} is another kind of model than the base, or has other parameters")
        if model.n_iterations < base.n_iterations:
            raise ValueError(f"part {number} did not go on from the base: it has learned fewer examples")


def share_labels(cores: Sequence[Any]) -> list[NDArray[np.int64]]:
    """Give the base the labels of all, and return the numbers that the columns of each model have among them. All then
    have one column for the same two classes or, if there is a third, a column for each class.
    """
    own = [core.labels for core in cores]
    every = list(dict.fromkeys(label for labels in own for label in labels.known))
    named = next((labels.pos_label for labels in own if labels.pos_label is not None), None)
    labels = cores[0].labels = dataclasses.replace(own[0], pos_label=named).with_labels(every)
    if len(every) > 2 or any(core.learner.several for core in cores):
        for core, of in zip(cores, own, strict=True):
            core.grow(len(of.known))
        return [np.array([labels.targets[label] for label in of.known], np.int64) for of in own]
    for core, of in zip(cores, own, strict=True):
        if any(labels.targets[label] != number for label, number in of.targets.items()):
            core.learner.set_state(mirrored(core.learner.get_state()))
    return [np.arange(1)] * len(cores)


def states_of(cores: Sequence[Any]) -> list[State]:
    """The states of learners, in which all models number the names of features alike, those of the base first."""
    numbers: dict[Any, int] = {}
    states = []
    for core in cores:
        names, state = core.vocabulary.names, core.learner.get_state()
        own = np.array([FIRST_NAME + numbers.setdefault(name, len(numbers)) for name in names], np.int64)
        is_name = state["keys"] >= FIRST_NAME
        state["keys"][is_name] = own[state["keys"][is_name] - FIRST_NAME]
        states.append(state)
    cores[0].vocabulary = Vocabulary([*numbers])
    return states


def by_bin(tail: Tail) -> NDArray[np.float64]:
    counts = np.bincount(np.array([*tail.counts], np.int64), [*tail.counts.values()], 2 * Tail.OF_SIGN)
    return np.asarray(counts, np.float64)


def merge_limits(cores: Sequence[Any]) -> None:
    """Give the limits of false positives of the base the negatives of all."""
    every = [getattr(core.decisions, "of_label", core.decisions) or {} for core in cores]
    merged = {label: of for decisions in reversed(every) for label, of in decisions.items()}
    for label, decision in merged.items():
        if decision.limit is not None:
            tails = [decisions[label].limit.negatives if label in decisions else Tail() for decisions in every]
            before, *after = [{"n": tail.n, "counts": by_bin(tail)} for tail in tails]
            counts = merged_newest(before, after, ("n",), ("counts",), Tail.MOST)["counts"]
            places = np.flatnonzero(counts)
            of_places = counts[places].tolist()
            decision.limit.set_state({"n": math.fsum(of_places), "places": places.tolist(), "counts": of_places})
    if merged:
        cores[0].decisions = Decisions(merged) if isinstance(cores[0].decisions, Decisions) else merged
