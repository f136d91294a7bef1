"""Merging of learners. All continued from one base learner, each with examples of its own.

Evidence adds up: counts, squared gradients, histograms, the precision of the dense block. Values that rest on evidence
move by the mean of the parts' changes, weighted by the evidence that each part added. A weight moves by the sum of the
changes, each times φ(a) / φ(A) with φ(a) = √(a (a + g)). Here a is the part's evidence on the weight, and A that of all
parts. If a is small beside g, the factor is √(a / A): steps of AdaGrad in the same direction add up like this. If a is
large, the factor is a / A, a mean, because parts that have learned enough have learned the same. So the knowledge of a
single part is kept whole. The factors nearly telescope, so parts may be merged in any tree. A part that lacks an entry
has the entry of the base.

The evidence on a weight is √(Σ gradients² · p (1 − p) n): of the n occurrences of its feature, a share p had its label.
The first factor tells how far the weight moved, but it is large by chance where labels were a surprise; the second
factor is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import BUFFERED, COLUMNS, FEATURES, TAUGHT, THRESHOLDS, Declaration, Field, State
from stream_pegasos.engine.pure.adaptive_state import (
    JOINT_PRECISION,
    LARGEST_JOINT_WEIGHT,
    OF_ONE_WEIGHT,
    PROBLEMS,
    add_class_problem,
)
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.half_life import aged, gained, steady_before
from stream_pegasos.engine.pure.mistakes import MOST_NEWEST
from stream_pegasos.engine.records import LARGEST_SINGLE

__all__ = ["is_changed", "merged_adaptive", "merged_newest", "merged_pegasos", "n_classes_learned"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# The g of a weight is its evidence after this many occurrences of its feature, times the mean squared error: if that is
# large, there is much left to learn.
OCCURRENCES = 500.0
SMOOTHING = 0.1  # added to the occurrences with the label, and to those without
# Evidence that aged down to 0 in single precision still existed. It counts less than any evidence that is left.
LEAST_EVIDENCE = 1e-60


class Entries:
    """All `n` entries of one dimension. `places` gives the places of the base's entries among them, then of each
    part's. How the values of a field become one, its `merges` says.

    Evidence ages as if the examples of all parts had come evenly mixed; with a `half_life` of 0 it does not age. An
    example that is learned now counts 1.
    """

    def __init__(
        self, declaration: Declaration, states: Sequence[State], half_life: float, places: Sequence[Places], n: int
    ) -> None:
        self._states, self._places, self._n = states, places, n
        self._fields = declaration.fields
        self.n_learned = np.array([state["n_iterations"] - states[0]["n_iterations"] for state in states[1:]])
        of_parts = [
            aged(half_life, more, steady_before(part, more))
            for part, more in zip(states[1:], self.n_learned.tolist(), strict=True)
        ]
        # The share of the base's evidence that is left, in each part and in all together; and the mean count of an
        # example, in each part and in all.
        self.kept, mean_kept = np.array(of_parts).reshape(-1, 2).T
        self.kept_of_all, mean_of_all = aged(half_life, int(self.n_learned.sum()), steady_before(states[0], 0))
        self._mixed = mean_of_all / mean_kept
        self._evidence: dict[str, tuple[Floats, list[Floats]]] = {}  # a cache, by name

    def occurrences(self) -> list[Floats]:
        """The number of occurrences of each feature in the examples of each part."""
        counts = [self.evidence(field.name)[1] for field in self._fields if field.counts_features]
        return [np.sum(of_part, axis=0) for of_part in zip(*counts, strict=True)]

    def merged(self, *shape: str, smoothing: float = 0.0) -> State:
        """The merged entries of the fields with these dimensions that are a sum, or rest on evidence. With `smoothing`,
        the log-ratio of two counts is computed from the merged counts where several parts added evidence.
        """
        new_state: State = {}
        fields = [field for field in self._fields if field.shape == shape]
        for field in [field for field in fields if field.merges == "sum"]:
            new_state[field.name] = self.evidence(field.name)[0] if field.ages else self._added(field)
        for field in [field for field in fields if field.merges == "evidence"]:
            name = field.name
            added = [sum(of) for of in zip(*(self.evidence(of)[1] for of in field.evidence), strict=True)]
            new_state[name] = self.moved(name, added or list(self.n_learned))
            if smoothing and len(field.evidence) == 2:
                positives, negatives = (new_state[of] + smoothing for of in field.evidence)
                in_several = self._sum([array > 0.0 for array in added]) > 1.0
                new_state[name] = np.where(in_several, np.log(positives / negatives), new_state[name])
            if not field.signed:
                new_state[name] = np.maximum(new_state[name], 0.0)  # rounding may go below
        return {name: value if np.ndim(self._states[0][name]) else value.item() for name, value in new_state.items()}

    def _added(self, field: Field) -> NDArray[Any]:
        """What the base had and what each part added, of numbers that do not age."""
        before, changes = np.zeros((2, self._n), np.int64 if field.of_type is int else np.float64)
        before[self._places[0]] = self._states[0][field.name]
        for part, at in zip(self._states[1:], self._places[1:], strict=True):
            changes[at] += part[field.name] - before[at]
        total: NDArray[Any] = before + changes
        return total if field.signed else np.maximum(total, 0)

    def evidence(self, name: str) -> tuple[Floats, list[Floats]]:
        """The evidence of all parts together, and the evidence that each part added."""
        if name not in self._evidence:
            self._evidence[name] = self._find_evidence(name)
        return self._evidence[name]

    def _find_evidence(self, name: str) -> tuple[Floats, list[Floats]]:
        before, added = self._before(name) / self._states[0]["evidence"], []
        for part, at, mask, mixed in zip(self._states[1:], self._places[1:], self.kept, self._mixed, strict=True):
            added.append(gained(part[name] / part["evidence"], before[at] * mask) * mixed)
        return before * self.kept_of_all + self._sum(added), added

    def moved(self, name: str, added: Sequence[Any], settled: float | None = None) -> Floats:
        """Merged values that rest on evidence, given the evidence that each part added. For weights, `settled` is their
        g.
        """
        before, places = self._before(name), self._places[1:]
        changes = [part[name] - before[at] for part, at in zip(self._states[1:], places, strict=True)]
        added = [
            np.where(change, np.maximum(of, LEAST_EVIDENCE), of) for of, change in zip(added, changes, strict=True)
        ]
        total = phi(np.maximum(self._sum(added), LEAST_EVIDENCE), settled)
        steps = [phi(of, settled) / total[at] * change for of, at, change in zip(added, places, changes, strict=True)]
        return (before + self._sum(steps)).clip(-LARGEST_SINGLE, LARGEST_SINGLE)

    def _before(self, name: str) -> Floats:
        before = np.zeros(self._n)
        before[self._places[0]] = self._states[0][name]
        return before

    def _sum(self, of_parts: Sequence[Any]) -> Floats:
        total = np.zeros(self._n)
        for at, array in zip(self._places[1:], of_parts, strict=True):
            total[at] += array
        return total


def phi(evidence: Floats, settled: float | None) -> Floats:
    """The share of a change that counts, by the evidence for it. For a weight, `settled` is the g of the
    module's text.
    """
    return evidence if settled is None else np.sqrt(evidence * (evidence + settled))


def merged_weights(
    weights: Entries, occurrences: Sequence[Floats], n_held: Sequence[Floats] | None, n_learned: float
) -> Floats:
    """The merged weights. Given are, for each weight and part, the occurrences of its feature, and those with its label
    (`None` if all labels share the weight); and the number of learned examples, times problems.
    """
    squares = weights.evidence("gradient_squares")[1]
    pairs = zip(occurrences, occurrences if n_held is None else n_held, strict=True)
    spread = occurrences if n_held is None else [spread_labels(n, np.minimum(of, n)) for n, of in pairs]
    n, total = sum(float(of.sum()) for of in occurrences), sum(float(of.sum()) for of in squares)
    # The features of an example have the norm 1, so its squared gradients sum to its squared error.
    settled = OCCURRENCES * (total / n_learned) * sqrt(total / n) if n and n_learned else 0.0
    return weights.moved("values", [np.sqrt(a * b) for a, b in zip(squares, spread, strict=True)], settled)


def spread_labels(n: Floats, n_held: Floats) -> Floats:
    """p (1 − p) n, smoothed; 0 for a feature without occurrences."""
    return np.where(n > 0.0, (n_held + SMOOTHING) * (n - n_held + SMOOTHING) / (n + 2.0 * SMOOTHING), 0.0)


def union(of_states: Sequence[Places]) -> tuple[Places, list[Places]]:
    """All keys, sorted, and the places of each state's keys among them."""
    all_keys, places = np.unique(np.concatenate(of_states), return_inverse=True)
    return all_keys, np.split(places, np.cumsum([len(array) for array in of_states])[:-1])


def merged_adaptive(
    declaration: Declaration,
    states: Sequence[State],
    half_life: float,
    smoothing: float,
    reduction: str,
    numbers: Sequence[Places],
    order: Places,
) -> State:
    """The merged state of `AdaptiveLearner`s, the base's first. `numbers` maps the classes of each state to merged
    ones.
    """
    n_classes = 1 + max(int(of.max(initial=-1)) for of in numbers)
    keys, places = union([state["keys"] for state in states])

    def entries(places: Sequence[Places], n: int) -> Entries:
        return Entries(declaration, states, half_life, places, n)

    features, single = entries(places, len(keys)), entries([np.zeros(1, np.int64)] * len(states), 1)
    n_learned = single.n_learned
    new_state = {"keys": keys, declaration.evidence: 1.0}
    new_state |= merged_means(declaration, states, n_learned)
    new_state |= merged_dense(states, reduction, numbers, n_classes, single.kept, single.kept_of_all)
    new_state |= merged_counts_of_newest(declaration, states)
    new_state |= single.merged(smoothing=smoothing) | features.merged(FEATURES, smoothing=smoothing)
    if reduction == "two":
        positives = features.evidence("positives")[1]
        return new_state | {"values": merged_weights(features, features.occurrences(), positives, n_learned.sum())}
    pairs, of_counts, weight_places = collect_pairs(states, places, numbers, n_classes, reduction in OF_ONE_WEIGHT)
    feature, column = np.divmod(pairs, max(n_classes, 1))
    new_state |= {"n_taught": np.bincount(feature, minlength=len(keys)), "taught_columns": column}
    taught, weights = entries(of_counts, len(pairs)), entries(weight_places, len(pairs))
    new_state |= taught.merged(TAUGHT) | {"gradient_squares": weights.evidence("gradient_squares")[0]}
    is_shared = reduction in OF_ONE_WEIGHT
    occurrences = [np.repeat(n, state["n_taught"]) for n, state in zip(features.occurrences(), states[1:], strict=True)]
    n_held = None if is_shared else taught.evidence("taught_counts")[1]
    new_state["values"] = merged_weights(
        weights, occurrences, n_held, n_learned.sum() * (1 if is_shared else n_classes)
    )
    new_state |= entries(numbers, n_classes).merged(COLUMNS)
    if reduction != "ordinal":
        return new_state
    problems = [ordered_problems(state, of, order.tolist()) for state, of in zip(states, numbers, strict=True)]
    n = len(problems[0]["intercepts"])
    between = Entries(declaration, problems, half_life, [np.arange(n)] * len(states), n)
    return new_state | {"order": order} | between.merged(THRESHOLDS)


def n_classes_learned(declaration: Declaration, states: Sequence[State], half_life: float) -> list[int]:
    """The number of classes in the examples that each part learned."""

    def entries(places: Sequence[Places], n: int) -> Entries:
        return Entries(declaration, states, half_life, places, n)

    if not declaration.names(COLUMNS):
        single = entries([np.zeros(1, np.int64)] * len(states), 1)
        added = [single.evidence(name)[1] for name in ("n_positives", "n_negatives")]
        return [sum(bool(of[0] > 0.0) for of in of_part) for of_part in zip(*added, strict=True)]
    n = max(len(state["class_counts"]) for state in states)
    places = [np.arange(len(state["class_counts"])) for state in states]
    return [int((of > 0.0).sum()) for of in entries(places, n).evidence("class_counts")[1]]


def collect_pairs(
    states: Sequence[State], places: Sequence[Places], numbers: Sequence[Places], n_classes: int, one_weight: bool
) -> tuple[Places, list[Places], list[Places]]:
    """All pairs of a feature and a class, as feature · n_classes + class, and the places among them of each state's
    counts and weights. A weight that all classes share is in column 0.
    """
    rows = [np.repeat(at, state["n_taught"]) * n_classes for state, at in zip(states, places, strict=True)]
    columns = [state["taught_columns"] for state in states]
    of_counts = [row + of[column] for row, column, of in zip(rows, columns, numbers, strict=True)]
    weight_places = [row + column for row, column in zip(rows, columns, strict=True)] if one_weight else of_counts
    pairs, places = union([*of_counts, *(weight_places if one_weight else [])])
    return pairs, places[: len(states)], places[-len(states) :]


def ordered_problems(state: State, of: Places, order: list[int]) -> State:
    """A state with the problems between all ordered classes. A problem that the state does not have is a copy of its
    neighbour.
    """
    problems, labels_met = np.array([state[name] for name in PROBLEMS]), of[state["order"]].tolist()
    for number in order:
        if number not in labels_met:
            problems = add_class_problem(problems, labels_met, order, number)
    return state | dict(zip(PROBLEMS, problems, strict=True))


def is_changed(declaration: Declaration, base: State, part: State, half_life: float) -> NDArray[np.bool_]:
    """A mask of the features of a part of an `AdaptiveLearner` that differ from the base: by their evidence or, if that
    has aged down to 0, by their ratios and weights.
    """
    keys, places = union([base["keys"], part["keys"]])
    features = Entries(declaration, [base, part], half_life, places, len(keys))
    (occurrences,) = features.occurrences()
    known_values = np.full((len(keys), 2), np.nan)
    known_values[places[0]] = ratios_and_weights(declaration, base)
    return np.asarray(
        (occurrences > 0.0) | (ratios_and_weights(declaration, part) != known_values[places[1]]).any(axis=1)
    )


def ratios_and_weights(declaration: Declaration, state: State) -> Floats:
    """The log-ratio of each feature, and the sum of its weights."""
    n, weights = len(state["keys"]), state["values"]
    if declaration.names(TAUGHT):
        weights = np.bincount(np.repeat(np.arange(n), state["n_taught"]), weights, n)
    return np.column_stack([state["log_ratios"], weights])


def learned_shares(n_learned: NDArray[np.int64]) -> Floats:
    shares: Floats = n_learned / max(n_learned.sum(), 1)
    return shares


def merged_means(declaration: Declaration, states: Sequence[State], n_learned: NDArray[np.int64]) -> State:
    """The merged numbers that move by the mean of the parts' changes, weighted by their numbers of examples."""
    shares = learned_shares(n_learned)
    names = declaration.names(merges="mean")
    before, *after = [np.array([state[name] for name in names]) for state in states]
    return dict(zip(names, (before + shares @ (after - before)).tolist(), strict=True))


def merged_counts_of_newest(declaration: Declaration, states: Sequence[State]) -> State:
    """The merged counts of the newest examples; there are none if each class has a column."""
    new_state: State = {}
    for field in declaration.fields:
        if field.merges == "newest" and field.evidence:
            new_state |= merged_newest(states, field.evidence[0], field.name, MOST_NEWEST)
    return new_state


def merged_newest(states: Sequence[State], total: str, counts: str, most: float) -> State:
    """The base's counts of recent examples plus the counts that each part added. All are halved when the total reaches
    `most`.
    """
    rows = np.array([[state[total], *state[counts]] for state in states])
    # The number of times that each part halved its counts, as far as the total shows it.
    n_halvings = np.ceil(np.log2(np.maximum(rows[0, 0] / np.maximum(rows[1:, :1], 1.0), 1.0)))
    merged = rows[0] * 0.5 ** n_halvings.max() + np.maximum(rows[1:] - rows[0] * 0.5**n_halvings, 0.0).sum(axis=0)
    while merged[0] >= most:
        merged /= 2.0
    return {total: float(merged[0]), counts: merged[1:]}


def merged_dense(
    states: Sequence[State],
    reduction: str,
    numbers: Sequence[Places],
    n_classes: int,
    kept_share: Floats,
    kept_of_all: float,
) -> State:
    """The merged dense block, if there is one. Precisions add up, and so do weights · precisions, as for normal
    distributions. Each part has kept the share `kept_share` of the base's evidence; all together keep `kept_of_all`.
    """
    n_dimensions = max(len(state.get("vector_mean", ())) for state in states)
    if not n_dimensions:
        return {}
    new_block = DenseBlock.of(reduction, n_dimensions, n_classes)
    blocks = [
        DenseBlock.from_state(reduction, DenseBlock.of(reduction, n_dimensions, len(of)).get_state() | state, len(of))
        for state, of in zip(states, numbers, strict=True)
    ]
    sums = [block_sums(block, of, new_block) for block, of in zip(blocks, numbers, strict=True)]
    precision, weighted, counts, n, total = (
        kept_of_all * old + sum(new - share * old for new, share in zip(parts, kept_share, strict=True))
        for old, *parts in zip(*sums, strict=True)
    )
    new_block.counts, new_block.n = np.maximum(counts, 0.0), max(float(n), 0.0)
    new_block.mean = total / (new_block.n + 1.0)
    new_block.mean /= max(float(np.linalg.norm(new_block.mean)), 1.0)
    sizes, axes = np.linalg.eigh(precision)
    new_block.covariance = (axes / (np.maximum(sizes, 0.0) + 1.0)) @ axes.T
    new_block.weights = weighted @ new_block.covariance
    prior = np.diag(JOINT_PRECISION)
    information = np.array([block.information + prior for block in blocks[1:]])
    joint = sum(of_part @ block.joint for of_part, block in zip(information, blocks[1:], strict=True))
    new_block.joint = np.linalg.solve(information.sum(axis=0), joint).clip(0.0, LARGEST_JOINT_WEIGHT)
    new_block.information = information.mean(axis=0) - prior
    return new_block.get_state()


def block_sums(block: DenseBlock, of: Places, like: DenseBlock) -> tuple[Floats, Floats, Floats, float, Floats]:
    """The evidence of a block as sums: precision without the prior's, weights · precision, counts, number and sum of
    vectors.
    """
    sizes, axes = np.linalg.eigh(block.covariance * block.evidence)
    precision = (axes / np.clip(sizes, 1e-9, 1.0)) @ axes.T
    weights, counts = np.zeros(like.weights.shape), np.zeros(len(like.counts))
    weights[slice(None) if block.reduction in OF_ONE_WEIGHT else of] = block.weights
    counts[of], n = block.counts / block.evidence, block.n / block.evidence
    return precision - np.eye(len(precision)), weights @ precision, counts, n, (n + 1.0) * block.mean


def merged_pegasos(
    declaration: Declaration, states: Sequence[State], numbers: Sequence[Places], is_joined: bool
) -> State:
    """The merged state of `PegasosLearner`s, the base's state first. w moves by the mean of the parts' changes,
    weighted by their steps, so it stays in the ball. The sums of an average add up. If `is_joined`, all columns are one
    w.
    """
    keys, places = union([state["keys"] for state in states])
    n_columns = 1 + max(int(of.max(initial=-1)) for of in numbers)
    weights, sums = np.zeros((2, len(states), len(keys), n_columns))
    n, n_averaged = np.zeros((2, len(states), n_columns))
    is_averaged = "sums" in {field.name for field in declaration.fields}
    for i, (state, at, of) in enumerate(zip(states, places, numbers, strict=True)):
        weights[i][np.ix_(at, of)], n[i, of] = state["values"] * state["scale"], state["n_iterations"]
        if is_averaged:
            sums[i][np.ix_(at, of)] = state["values"] * state["sums_scale"] - state["sums"]
            n_averaged[i, of] = state["sums_weight"]
    if is_joined:  # even if a class came late
        n[:] = n.max(axis=1, keepdims=True, initial=0.0)
    steps = n[1:] - n[0]
    shares = steps / np.maximum(steps.sum(axis=0), 1.0)
    merged = weights[0] + ((weights[1:] - weights[0]) * shares[:, np.newaxis]).sum(axis=0)
    sums, n, n_averaged = (of[0] + (of[1:] - of[0]).sum(axis=0) for of in (sums, n, n_averaged))
    new_state = states[0] | {name: states[0][name][:0] for name in declaration.names(BUFFERED)}
    new_state |= merged_means(declaration, states, steps.max(axis=1, initial=0.0))
    new_state |= {"keys": keys, "values": merged, "scale": np.ones(n_columns), "squares": (merged * merged).sum(axis=0)}
    new_state |= {"n_iterations": n.astype(np.int64), "n_buffered": np.zeros(n_columns, np.int64)}
    if is_averaged:
        new_state |= {"sums": -sums, "sums_scale": np.zeros(n_columns), "sums_weight": n_averaged}
    return new_state
