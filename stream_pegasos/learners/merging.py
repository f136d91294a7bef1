"""Merging models that all continued from one base, each with examples of its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.packing import pack, unpack, unpack_parameters
from stream_pegasos.common.state import Declaration, State
from stream_pegasos.engine.growing import from_two_classes
from stream_pegasos.engine.merging import Rule, is_changed, merged_adaptive, merged_newest, merged_pegasos, negated
from stream_pegasos.engine.pure.adaptive_state import declared
from stream_pegasos.engine.pure.weights import FIRST_NAME
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.decisions import Tail
from stream_pegasos.learners.files import Saveable, Snapshot
from stream_pegasos.learners.forgetting import most_important
from stream_pegasos.learners.labels import Label, Labels, SignedLabels
from stream_pegasos.learners.pegasos import PegasosClassifier

__all__ = ["changes", "merge", "merged_snapshots", "model_of", "snapshot_of"]

C = TypeVar("C", bound=Classifier)

# The reductions of the classifiers whose counts and weights are merged.
REDUCTIONS = {"AdaptiveClassifier": "ovr", "MultiLabelClassifier": "multilabel", "OrdinalClassifier": "ordinal"}
MERGEABLE = (*REDUCTIONS, "PegasosClassifier")
# The state of a limit of false positives that has met nothing.
NO_TAIL = {"n": 0.0, "places": [], "counts": []}


def merge(base: C, parts: Iterable[C]) -> C:
    """Combine models that all continued from one base, each with examples of its own, as on several machines.

    What the parts have learned is added up, and nothing is counted twice:

    - counts of examples and squared gradients: what each part added is added;
    - weights: each moves by the sum of the parts' changes, times a share. The share is 1 if only one part moved the
      weight, and smaller the further several parts moved it, since these learned much of the same. It follows from the
      squared gradients that each part added, and from how far the changes of all parts together move the margins of
      messages. Then weights that several parts moved are corrected, all along one direction, so that the margin of the
      mean message moves as far as on one machine. There is nothing to set;
    - the half-life: evidence ages by the examples of all parts, as if these came evenly mixed;
    - calibration: the mean of the parts', weighted by how many examples each has learned;
    - limits of false positives: counts of examples and of flagged ones are added. The cut-off is the mean of those of
      the parts, weighted by their negatives. Parts do not know of each other's false positives, so together they may
      exceed a limit for a time; then nothing is flagged until it holds again;
    - classes that only some parts met follow those of the base, in the order of the parts. For the other parts, all
      their examples count as being of other classes;
    - `max_features`: the least-used features are dropped, as in learning.

    A `PegasosClassifier` is merged by its mini-batch. Give it a `batch_size` of the number of examples that all parts
    learn together, and the merged model takes exactly the step that one machine takes with all of them. With fewer
    examples they wait in the mini-batch buffer, as usual.

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
        If one is no classifier, or cannot be merged: a `KernelPegasosClassifier`, an `OrdinalClassifier` with a
        `PegasosClassifier`, or a model with a drift detector, which watches one sequence of errors.
    ValueError
        If there is no part, classes or parameters differ, a part has learned less than the base, or parts of a
        `PegasosClassifier` have taken steps or met classes that the base does not know.

    References
    ----------
    [^1]: Agarwal, A., Chapelle, O., Dudík, M. and Langford, J., 2014. A reliable effective terascale linear learning
        system. JMLR 15. (The mean of weights by their squared gradients, as Vowpal Wabbit's `--merge` takes it. Here
        the steps of AdaGrad are taken as a flow, which loses less when there are many parts.)

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
        if not isinstance(model, Classifier):
            raise TypeError(f"{model!r} is a {type(model).__name__}, no classifier of this package")
    snapshots = [snapshot_of(model) for model in models]
    merged: C = model_of(merged_snapshots(snapshots[0], snapshots[1:]))
    return merged


@dataclasses.dataclass
class Known:
    """The classifier of a snapshot."""

    kind: str
    parameters: dict[str, Any]  # packed
    labels: Any  # packed
    state: State
    names: list[Any]
    rest: dict[str, Any]  # what else stands in its file

    @classmethod
    def of(cls, snapshot: Snapshot) -> Known:
        values = snapshot.values.get("classifier", snapshot.values)
        rest = {name: value for name, value in values.items() if name not in ("parameters", "labels", "learner")}
        state = {**snapshot.arrays, **values.get("learner", {})}
        kind = snapshot.values.get("kind", snapshot.kind)
        return cls(kind, values["parameters"], values["labels"], state, snapshot.names, rest)

    def snapshot(self, like: Snapshot) -> Snapshot:
        """A snapshot with this classifier, otherwise like another."""
        arrays = {name: value for name, value in self.state.items() if isinstance(value, np.ndarray)}
        learner = {name: value for name, value in self.state.items() if name not in arrays}
        values = {"parameters": self.parameters, "labels": self.labels, "learner": learner, **self.rest}
        if "classifier" in like.values:
            values = {**like.values, "classifier": values}
        return dataclasses.replace(like, arrays=arrays, names=self.names, values=values)

    @property
    def is_of_two(self) -> bool:
        return isinstance(self.labels, dict)

    @property
    def met(self) -> list[Label]:
        """The labels met, the negative one before the positive one."""
        if not self.is_of_two:
            return [unpack(label) for label in self.labels]
        both = [unpack(self.labels["negative"])] + [unpack(self.labels["positive"])] * (not self.labels["only_named"])
        return [label for label in both if label is not None] if self.labels["met"] else []

    @property
    def declaration(self) -> Declaration:
        return declared("two" if self.is_of_two else REDUCTIONS[self.kind])

    def become_several(self, among: Sequence[Label]) -> None:
        """Give each of two classes a column; a label that is not known is one `among` those of all models."""
        negative, decided = unpack(self.labels["negative"]), unpack(self.labels["positive"])
        positive = None if self.labels["only_named"] and decided not in among else decided
        if negative is None:
            negative = next(label for label in among if label != positive)
        if positive is None:
            positive = next(label for label in among if label != negative)
        self.labels, self.state = [pack(negative), pack(positive)], from_two_classes(self.state)
        if "decisions" in self.rest:
            self.rest = {**self.rest, "decisions": [[pack(decided), limit] for _, limit in self.rest["decisions"]]}


def snapshot_of(model: Classifier) -> Snapshot:
    """The state of a model as it is now, all of it in memory at once."""
    with model.lock:
        arrays, names, values = model.to_state()
    return Snapshot(type(model).__name__, arrays, names, values, None, vectors=model.vector_source)


def model_of(snapshot: Snapshot) -> Any:
    """The model that a snapshot is of."""
    values = {**snapshot.values, "find_vectors": lambda _: snapshot.vectors}
    return Saveable.kind_of(snapshot.kind).from_state(snapshot.arrays, snapshot.names, values)


def merged_snapshots(base: Snapshot, parts: Sequence[Snapshot]) -> Snapshot:
    """What `merge` does, for snapshots. If there are several parts, each may lack the features that `changes` leaves
    out.

    Raises
    ------
    TypeError, ValueError
        As `merge` does.
    """
    known = [Known.of(each) for each in (base, *parts)]
    for each in known:
        check_mergeable(each)
    check_parts(known, [base, *parts])
    if len(parts) == 1:
        return parts[0]
    share_names(known)
    numbers = share_labels(known)
    before, *after = known
    rest = before.rest | merged_decisions(known)
    if "label_counts" in rest:
        rest["label_counts"] = merged_label_counts(known)
    made = dataclasses.replace(before, rest=rest)
    parameters = unpack_parameters(before.parameters)
    states = [each.state for each in after]
    if before.kind == "PegasosClassifier":
        model = model_of(made.snapshot(base))
        classifier: PegasosClassifier = model.parts["classifier"]
        classifier.take_batch(merged_pegasos(before.state, states, parameters["batch_size"]))
        return dataclasses.replace(base, **dict(zip(("arrays", "names", "values"), model.to_state(), strict=True)))
    smoothing = parameters["smoothing"] if parameters["naive_bayes"] else 0.0
    intercept_scaling = float(parameters["intercept_scaling"]) if parameters["fit_intercept"] else 0.0
    half_life = float(parameters["half_life"] or 0.0)
    rule = Rule(float(parameters["learning_rate"]), float(smoothing), half_life, intercept_scaling)
    reduction = "two" if before.is_of_two else REDUCTIONS[before.kind]
    order = sorted(range(len(before.met)), key=before.met.__getitem__) if reduction == "ordinal" else []
    n_classes = 2 if before.is_of_two else len(before.met)
    made.state = merged_adaptive(before.state, states, rule, reduction, numbers, n_classes, np.array(order, np.int64))
    n_most = parameters["max_features"] or len(made.state["keys"])
    if len(made.state["keys"]) > n_most:
        state = made.state
        used = state["counts"] if "counts" in state else state["positives"] + state["negatives"]
        kept = most_important(used, state["keys"], made.names, max(1, n_most * 3 // 4))
        made.state = made.declaration.selected(state, kept)
    return made.snapshot(base)


def changes(base: Snapshot, part: Snapshot) -> Snapshot:
    """A part without the features that are as in the base, so that little is sent to where parts are merged."""
    before, after = Known.of(base), Known.of(part)
    if after.names or before.is_of_two != after.is_of_two or after.kind not in REDUCTIONS:
        return part
    half_life = unpack_parameters(after.parameters)["half_life"] or 0.0
    after.state = after.declaration.selected(after.state, is_changed(before.state, after.state, half_life))
    return after.snapshot(part)


def check_mergeable(model: Known) -> None:
    """Raise a TypeError if a model of this kind cannot be merged."""
    if model.kind not in MERGEABLE:
        raise TypeError(f"a model of {model.kind} cannot be merged; {', '.join(MERGEABLE)} can")
    parameters = unpack_parameters(model.parameters)
    if parameters.get("drift_detector") is not None:
        raise TypeError("a model with drift_detector cannot be merged: it watches one sequence of errors")


def check_parts(known: Sequence[Known], snapshots: Sequence[Snapshot]) -> None:
    """Raise a ValueError unless the first can be the base of the others."""
    base, *parts = known
    if not parts:
        raise ValueError("there is no part to merge")
    features = snapshots[0].values.get("features")
    for number, (part, snapshot) in enumerate(zip(parts, snapshots[1:], strict=True), 1):
        if (part.kind, part.parameters, snapshot.values.get("features")) != (base.kind, base.parameters, features):
            raise ValueError(f"part {number} is another kind of model than the base, or has other parameters")
        if np.max(part.state["n_iterations"], initial=0) < np.max(base.state["n_iterations"], initial=0):
            raise ValueError(f"part {number} did not go on from the base: it has learned fewer examples")


def share_names(known: Sequence[Known]) -> None:
    """Number the names of features alike in all models, those of the base first."""
    numbers: dict[Any, int] = {}
    for each in known:
        own = np.array([FIRST_NAME + numbers.setdefault(name, len(numbers)) for name in each.names], np.int64)
        for of in {"keys", "buffer_keys"} & each.state.keys():
            keys = each.state[of].copy()
            is_name = keys >= FIRST_NAME
            keys[is_name] = own[keys[is_name] - FIRST_NAME]
            each.state = {**each.state, of: keys}
    known[0].names = [*numbers]


def share_labels(known: Sequence[Known]) -> list[NDArray[np.int64]]:
    """Give the base all labels, and return the numbers that those of each model have among them. All models then have
    the same positive label of two or, if there is a third, a column for each class.
    """
    base = known[0]
    every = list(dict.fromkeys(label for each in known for label in each.met))
    if all(each.is_of_two for each in known):
        labels: Labels = SignedLabels(pos_label=unpack_parameters(base.parameters).get("pos_label"))
        for each in known:
            labels = labels.with_labels(each.met)
        if isinstance(labels, SignedLabels):
            for each in known:
                before = {unpack(each.labels["negative"]): 0.0, unpack(each.labels["positive"]): 1.0}
                if any(labels.targets[label] != before[label] for label in each.met):
                    each.state = negated(each.state)
            base.labels = labels.get_state()
            return [np.arange(2)] * len(known)
    for each in known:
        if each.is_of_two:
            each.become_several(sorted(every, key=repr))  # whatever the order of parts
    of_all = list(dict.fromkeys(label for each in known for label in each.met))
    numbers = [np.array([of_all.index(label) for label in each.met], np.int64) for each in known]
    base.labels = [pack(label) for label in of_all]
    return numbers


def merged_label_counts(known: Sequence[Known]) -> list[Any]:
    """How many examples of each label were learned."""
    counts = [{unpack(label): n for label, n in each.rest["label_counts"]} for each in known]
    before, *after = counts
    every = dict.fromkeys(label for each in counts for label in each)
    return [
        [pack(label), before.get(label, 0) + sum(part.get(label, 0) - before.get(label, 0) for part in after)]
        for label in every
    ]


def merged_decisions(known: Sequence[Known]) -> dict[str, Any]:
    """The limits of false positives."""
    if not any("decisions" in each.rest for each in known):
        return {}
    decisions = [each.rest.get("decisions", []) for each in known]
    # A model that has met nothing does not know which label its decision is for.
    named = next((label for each in decisions for label, _ in each if label is not None), None)
    pairs = [[(named if label is None else label, limit) for label, limit in each] for each in decisions]
    of_labels = [{repr(label): (label, limit) for label, limit in each} for each in pairs]
    every = {of: label for each in of_labels for of, (label, _) in each.items()}
    merged = []
    for of, label in every.items():
        limits = [each.get(of, (label, NO_TAIL))[1] for each in of_labels]
        none = any(limit is None for limit in limits)
        merged.append([label, None if none else merged_limit(limits[0], limits[1:])])
    return {"decisions": merged}


def merged_limit(before: Mapping[str, Any], after: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The merged state of a limit of false positives."""
    tails = [tail_arrays(each) for each in (before, *after)]
    counts = merged_newest(tails[0], tails[1:], ("n",), ("counts",), Tail.MOST)["counts"].tolist()
    there = {place: count for place, count in enumerate(counts) if count}
    return {"n": math.fsum(there.values()), "places": [*there], "counts": [*there.values()]}


def tail_arrays(tail: Mapping[str, Any]) -> State:
    counts = np.zeros(2 * Tail.OF_SIGN)
    counts[tail["places"]] = tail["counts"]
    return {"n": tail["n"], "counts": counts}
