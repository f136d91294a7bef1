"""How learners that all continued from one base become one, each with examples of its own.

Evidence adds up: counts, squared gradients, histograms. What rests on it moves by the changes of the parts: an estimate
by their mean, weighted by the evidence that each part added; a weight by their sum over k^0.85, where k is the number
of parts that the evidence is spread over. So what one part alone learned is kept whole. A feature that a part lacks is
as it was in the base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine.pure.adaptive_state import (
    JOINT_PRECISION,
    LARGEST_JOINT_WEIGHT,
    LARGEST_SINGLE,
    OF_FEATURE,
    OF_INTERCEPT,
    OF_ONE_WEIGHT,
    OF_PROBLEM,
    RESCALED_AT,
    with_class,
)
from stream_pegasos.engine.pure.dense import DenseBlock
from stream_pegasos.engine.pure.driver import CALIBRATION, CONFIDENCE, has_column_each
from stream_pegasos.engine.pure.mistakes import COUNTS, MOST_NEWEST
from stream_pegasos.engine.pure.pegasos import OF_BUFFER

__all__ = ["is_changed", "merged_adaptive", "merged_newest", "merged_pegasos", "mirrored"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

# Between the sum of the parts' changes, 0, and their mean, 1: parts that each learned a little want their sum, those
# that learned much of the same their mean.
SHARED = 0.85


# What changes its sign, and what changes its place, where two classes in one column have each other's numbers.
SIGNED = ("values", "log_ratios", "intercept", "intercept_log_ratio", "vector_weights", "sums", "buffer_values")
OF_EITHER = (("positives", "negatives"), ("n_positives", "n_negatives"), COUNTS[:2], COUNTS[2:])


def mirrored(state: State) -> State:
    """The state of a learner of two classes in one column that had met them in the other order."""
    made = dict(state)
    for name in ("coefficients",) if "coefficients" in state else {*SIGNED} & state.keys():
        made[name] = 0.0 - state[name]  # no −0
    for one, other in OF_EITHER:
        if one in state:
            made[one], made[other] = state[other], state[one]
    return made


class Clock:
    """How evidence ages when parts are merged, as if all examples had come evenly mixed: one counts half as much as
    one that comes `half_life` examples later; with 0, none ages. In what is merged one learned now counts 1.
    """

    def __init__(self, base: State, parts: Sequence[State], half_life: float) -> None:
        self.n_learned = [int(part["n_iterations"] - base["n_iterations"]) for part in parts]
        self._halvings = [n / half_life if half_life else 0.0 for n in self.n_learned]
        self._of_base, self._of_parts = base["evidence"], [part["evidence"] for part in parts]
        self.kept = [2.0**-halvings for halvings in self._halvings]
        self.of_base = math.prod(self.kept) / self._of_base  # what is left of the base's evidence, as a factor

    def added(self, number: int, now: Any, before: Any) -> Any:
        """The evidence that a part added; 0 where the part changed nothing."""
        own, of_part = self._halvings[number], self._of_parts[number]
        # Where a part learned nothing, it has only divided the evidence by `RESCALED_AT` a few times.
        n_rescalings = round((math.log2(self._of_base / of_part) + own) / math.log2(RESCALED_AT))
        new = np.maximum(now / of_part - before * (self.kept[number] / self._of_base), 0.0)
        mixed = mean_kept(sum(self._halvings)) / mean_kept(own)
        return np.where(now == before * RESCALED_AT**-n_rescalings, 0.0, new * mixed)


def mean_kept(halvings: float) -> float:
    """The mean weight of examples that came evenly over this many half-lives."""
    return -math.expm1(-halvings * math.log(2.0)) / (halvings * math.log(2.0)) if halvings else 1.0


class Entries:
    """All `n` entries of one dimension, given the places among them of the base's entries and of each part's."""

    def __init__(self, clock: Clock, states: Sequence[State], places: Sequence[Places], n: int) -> None:
        self._clock, self._states, self._places, self._n = clock, states, places, n

    def evidence(self, name: str) -> tuple[Floats, list[Floats]]:
        """The evidence of all, and what each part added."""
        before = self._before(name)
        total, added = before * self._clock.of_base, []
        for number, (part, at) in enumerate(zip(self._states[1:], self._places[1:], strict=True)):
            added.append(self._clock.added(number, part[name], before[at]))
            total[at] += added[-1]
        return total, added

    def weights(self, name: str, evidence: Sequence[Any]) -> Floats:
        """Weights, given the evidence that each part added on them."""
        largest = max((float(np.max(each, initial=0.0)) for each in evidence), default=0.0) or 1.0
        shares = [each / largest for each in evidence]
        n, squares = self.sum(shares), self.sum([share * share for share in shares])
        alone = np.divide(squares, n * n, out=np.ones(self._n), where=squares > 0.0)  # 1/k
        moved = self._before(name) + self.sum(self._changes(name)) * alone**SHARED
        return moved.clip(-LARGEST_SINGLE, LARGEST_SINGLE)

    def estimates(self, name: str, evidence: Sequence[Any]) -> Floats:
        """Estimates, given the evidence that each part added on them."""
        n = self.sum(evidence)
        changes = self.sum([of * change for of, change in zip(evidence, self._changes(name), strict=True)])
        return self._before(name) + np.divide(changes, n, out=np.zeros(self._n), where=n > 0.0)

    def _before(self, name: str) -> Floats:
        before = np.zeros(self._n)
        before[self._places[0]] = self._states[0][name]
        return before

    def _changes(self, name: str) -> list[Floats]:
        before = self._before(name)
        return [part[name] - before[at] for part, at in zip(self._states[1:], self._places[1:], strict=True)]

    def sum(self, of_parts: Sequence[Any]) -> Floats:
        total = np.zeros(self._n)
        for at, each in zip(self._places[1:], of_parts, strict=True):
            total[at] += each
        return total


def union(of_states: Sequence[Places]) -> tuple[Places, list[Places]]:
    """All keys, sorted, and the places among them of the keys of each state."""
    every, places = np.unique(np.concatenate(of_states), return_inverse=True)
    return every, np.split(places, np.cumsum([len(each) for each in of_states])[:-1])


def merged_adaptive(
    base: State,
    parts: Sequence[State],
    half_life: float,
    smoothing: float,
    reduction: str,
    numbers: Sequence[Places],
    order: Places,
) -> State:
    """The merged state of an `AdaptiveLearner`. `numbers` maps the classes of the base and of each part to numbers
    among all; `order` sorts these if the classes are ordered.
    """
    clock, states, n_classes = (
        Clock(base, parts, half_life),
        [base, *parts],
        1 + max(int(of.max(initial=-1)) for of in numbers),
    )
    keys, places = union([state["keys"] for state in states])
    features = Entries(clock, states, places, len(keys))
    single = Entries(clock, states, [np.zeros(1, np.int64)] * len(states), 1)
    made = {
        "keys": keys,
        "evidence": 1.0,
        "n_iterations": base["n_iterations"] + sum(clock.n_learned),
        **merged_calibration(parts, clock.n_learned),
        **merged_dense(states, reduction, numbers, n_classes, clock.kept),
    }
    if reduction == "two":
        made |= of_two_classes(features, OF_FEATURE, smoothing)
        made |= {name: value.item() for name, value in of_two_classes(single, OF_INTERCEPT, smoothing).items()}
        return made | merged_newest(base, parts, COUNTS[:2], COUNTS[2:], MOST_NEWEST)
    pairs, at_counts, at_weights = pairs_of(states, places, numbers, max(n_classes, 1), reduction in OF_ONE_WEIGHT)
    feature, column = np.divmod(pairs, max(n_classes, 1))
    of_counts, of_weights = (Entries(clock, states, at, len(pairs)) for at in (at_counts, at_weights))
    problems = classes = Entries(clock, states, numbers, n_classes)
    if reduction == "ordinal":
        made["order"] = order
        own = [ordered_problems(state, of, order.tolist()) for state, of in zip(states, numbers, strict=True)]
        n, of_problems = own[0].shape[1], [dict(zip(OF_PROBLEM, each, strict=True)) for each in own]
        problems = Entries(clock, of_problems, [np.arange(n)] * len(states), n)
    made["counts"], of_features = features.evidence("counts")
    made["gradient_squares"], of_pairs = of_weights.evidence("gradient_squares")
    made["intercept_squares"], of_intercepts = problems.evidence("intercept_squares")
    return made | {
        "log_ratios": np.maximum(features.estimates("log_ratios", of_features), 0.0),  # rounding may go below
        "n_taught": np.bincount(feature, minlength=len(keys)),
        "taught_columns": column,
        "values": of_weights.weights("values", of_pairs),
        "taught_counts": of_counts.evidence("taught_counts")[0],
        "class_counts": classes.evidence("class_counts")[0],
        "n_examples": single.evidence("n_examples")[0].item(),
        "intercepts": problems.weights("intercepts", of_intercepts),
        **{name: problems.estimates(name, clock.n_learned) for name in ("offsets", "offset_squares")},
    }


def of_two_classes(entries: Entries, names: Sequence[str], smoothing: float) -> State:
    """The numbers of features, or of the intercept, under these names."""
    weight, log_ratio, squares, positives, negatives = names
    (p, new_p), (n, new_n), (sum_of_squares, new_squares) = map(entries.evidence, (positives, negatives, squares))
    new = [of_positives + of_negatives for of_positives, of_negatives in zip(new_p, new_n, strict=True)]
    ratios = entries.estimates(log_ratio, new)
    if smoothing:
        ratios = np.where(
            entries.sum([each > 0.0 for each in new]) > 1, np.log((p + smoothing) / (n + smoothing)), ratios
        )
    return dict(zip(names, (entries.weights(weight, new_squares), ratios, sum_of_squares, p, n), strict=True))


def pairs_of(
    states: Sequence[State], places: Sequence[Places], numbers: Sequence[Places], width: int, one_weight: bool
) -> tuple[Places, list[Places], list[Places]]:
    """All pairs of a feature and a class, as feature · width + class, and the places among them of each state's taught
    counts and of its weights. A weight that all classes share is in column 0, whichever class that is.
    """
    rows = [np.repeat(at, state["n_taught"]) * width for state, at in zip(states, places, strict=True)]
    columns = [state["taught_columns"] for state in states]
    of_counts = [row + of[column] for row, column, of in zip(rows, columns, numbers, strict=True)]
    of_weights = [row + column for row, column in zip(rows, columns, strict=True)] if one_weight else of_counts
    pairs = np.unique(np.concatenate([*of_counts, *of_weights]))
    at_counts, at_weights = ([np.searchsorted(pairs, each) for each in of] for of in (of_counts, of_weights))
    return pairs, at_counts, at_weights


def ordered_problems(state: State, of: Places, order: list[int]) -> Floats:
    """The problems between all ordered classes; one that the state does not know is a copy of its neighbour."""
    problems, met = np.array([state[name] for name in OF_PROBLEM]), of[state["order"]].tolist()
    for number in order:
        if number not in met:
            problems = with_class(problems, met, order, number)
    return problems


def is_changed(base: State, part: State, half_life: float) -> NDArray[np.bool_]:
    """Which features of a part differ from the base."""
    keys, places = union([base["keys"], part["keys"]])
    features = Entries(Clock(base, [part], half_life), [base, part], places, len(keys))
    changed = [features.evidence(name)[1][0] > 0.0 for name in {"counts", "positives", "negatives"} & part.keys()]
    return np.asarray(np.any([~np.isin(part["keys"], base["keys"]), *changed], axis=0))


def merged_calibration(parts: Sequence[State], n_learned: Sequence[int]) -> State:
    """The mean over the parts of what turns margins into probabilities, weighted by their numbers of examples."""
    shares = np.array(n_learned, float) if sum(n_learned) else np.ones(len(parts))
    fields = CALIBRATION + (CONFIDENCE if has_column_each(parts[0]) else ())
    return {of.name: float(shares / shares.sum() @ [part[of.name] for part in parts]) for of in fields}


def merged_newest(
    base: State, parts: Sequence[State], totals: Sequence[str], of_totals: Sequence[str], most: float
) -> State:
    """The base's counts of recent examples and what each part added; all are halved when a total reaches `most`."""
    made: State = {}
    for total, counts in zip(totals, of_totals, strict=True):
        # How often each part halved its counts, as far as their total tells.
        left = [0.5 ** math.ceil(math.log2(max(base[total] / max(part[total], 1.0), 1.0))) for part in parts]
        both = {name: base[name] * min(left) for name in (total, counts)}
        for part, share in zip(parts, left, strict=True):
            both = {name: n + np.maximum(part[name] - base[name] * share, 0.0) for name, n in both.items()}
        while both[total] >= most:
            both = {name: n / 2.0 for name, n in both.items()}
        made |= {total: float(both[total]), counts: both[counts]}
    return made


def merged_dense(
    states: Sequence[State], reduction: str, numbers: Sequence[Places], n_classes: int, kept: Sequence[float]
) -> State:
    """The merged dense block; empty if no state has one. Precisions add up, and so do weights · precisions, as of
    normal distributions. Each part has `kept` a share of the base's evidence.
    """
    n_dimensions = max(len(state.get("vector_mean", ())) for state in states)
    if not n_dimensions:
        return {}
    blocks = [
        DenseBlock.from_state(reduction, state, len(of))
        if "vector_mean" in state
        else DenseBlock.of(reduction, n_dimensions, len(of))
        for state, of in zip(states, numbers, strict=True)
    ]
    made = DenseBlock.of(reduction, n_dimensions, n_classes)
    sums = [sums_of(block, of, made) for block, of in zip(blocks, numbers, strict=True)]
    precision, weighted, counts, n, total = (
        math.prod(kept) * old + sum(new - share * old for new, share in zip(parts, kept, strict=True))
        for old, *parts in zip(*sums, strict=True)
    )
    made.counts, made.n = np.maximum(counts, 0.0), max(float(n), 0.0)
    made.mean = total / (made.n + 1.0)
    made.mean /= max(float(np.linalg.norm(made.mean)), 1.0)
    sizes, axes = np.linalg.eigh(precision)
    made.covariance = (axes / (np.maximum(sizes, 0.0) + 1.0)) @ axes.T
    made.weights = weighted @ made.covariance
    prior = np.diag(JOINT_PRECISION)
    information = np.array([block.information + prior for block in blocks[1:]])
    joint = sum(of_part @ block.joint for of_part, block in zip(information, blocks[1:], strict=True))
    made.joint = np.linalg.solve(information.sum(axis=0), joint).clip(0.0, LARGEST_JOINT_WEIGHT)
    made.information = information.mean(axis=0) - prior
    return made.get_state()


def sums_of(block: DenseBlock, of: Places, like: DenseBlock) -> tuple[Any, ...]:
    """What a block knows, as sums in which an example learned now counts 1: the precision without the prior's, weights
    · precision, counts of classes, the number of vectors and their sum.
    """
    sizes, axes = np.linalg.eigh(block.covariance * block.evidence)
    precision = (axes / np.clip(sizes, 1e-9, 1.0)) @ axes.T
    weights, counts = np.zeros(like.weights.shape), np.zeros(len(like.counts))
    weights[slice(None) if block.reduction in OF_ONE_WEIGHT else of] = block.weights
    counts[of], n = block.counts / block.evidence, block.n / block.evidence
    return precision - np.eye(len(precision)), weights @ precision, counts, n, (n + 1.0) * block.mean


def merged_pegasos(
    base: State, parts: Sequence[State], numbers: Sequence[Places], is_joined: bool, largest: float
) -> State:
    """The merged state of a `PegasosLearner` without mini-batches: w moves by the mean of the parts' changes, weighted
    by their steps; the sums of an average add up. No ‖w‖² is above `largest`; if joined, all columns are one w.
    """
    n_columns = 1 + max(int(of.max(initial=-1)) for of in numbers)
    keys, places = union([state["keys"] for state in (base, *parts)])

    def in_all_columns(state: State, at: Places, of: Places) -> list[Floats]:
        weights, sums, (n, weight) = *np.zeros((2, len(keys), n_columns)), np.zeros((2, n_columns))
        weights[np.ix_(at, of)], n[of] = state["values"] * state["scale"], state["n_iterations"]
        if "sums" in state:
            sums[np.ix_(at, of)] = state["values"] * state["sums_scale"] - state["sums"]
            weight[of] = state["sums_weight"]
        return [weights, sums, n, weight]

    before, *after = [in_all_columns(*of) for of in zip((base, *parts), places, numbers, strict=True)]
    changes = [[new - old for old, new in zip(before, each, strict=True)] for each in after]
    _, sums, n, weight = (old + sum(new) for old, new in zip(before, zip(*changes, strict=True), strict=True))
    steps = np.maximum(n - before[2], 1.0)
    weights = before[0] + sum(moved * (own / steps) for moved, _, own, _ in changes)
    squares = (weights * weights).sum(axis=0)
    if is_joined:
        n, weight, squares = (np.full(n_columns, of) for of in (n.max(initial=0), weight.max(initial=0), squares.sum()))
    weights = weights / np.sqrt(np.maximum(squares / largest, 1.0))
    n_learned = [int((part["n_iterations"].max(initial=0)) - base["n_iterations"].max(initial=0)) for part in parts]
    made = base | {name: base[name][:0] for name in OF_BUFFER} | merged_calibration(parts, n_learned)
    made |= {"keys": keys, "values": weights, "scale": np.ones(n_columns), "squares": (weights * weights).sum(axis=0)}
    made |= {"n_iterations": n.astype(np.int64), "n_buffered": np.zeros(n_columns, np.int64)}
    return made | ({"sums": -sums, "sums_scale": np.zeros(n_columns), "sums_weight": weight} if "sums" in base else {})
