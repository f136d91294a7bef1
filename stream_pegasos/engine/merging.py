"""How each rule merges the states of parts, which all continued from one base, each with examples of its own.

A feature that the state of a part lacks is as it was in the base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stream_pegasos.common.state import State
from stream_pegasos.engine import NAME
from stream_pegasos.engine.merged_dense import merged_dense
from stream_pegasos.engine.merged_steps import Floats, Messages, Places, Steps
from stream_pegasos.engine.pure.adaptive_state import (
    FIRST_SQUARES,
    LARGEST_LOG_RATIO,
    LEAST_SCALE,
    LEAST_SLOPE,
    MOST_SLOPE,
    OF_COLUMN,
    OF_FEATURE,
    OF_INTERCEPT,
    OF_ONE_WEIGHT,
    OF_PROBLEM,
    ORDINAL_INTERCEPT_RATE,
    RESCALED_AT,
    in_columns,
    with_class,
)
from stream_pegasos.engine.pure.driver import CALIBRATION, CONFIDENCE
from stream_pegasos.engine.pure.mistakes import COUNTS, MOST_NEWEST
from stream_pegasos.engine.pure.pegasos import OF_BUFFER

__all__ = ["Rule", "is_changed", "merged_adaptive", "merged_newest", "merged_pegasos", "negated"]

SMALLEST_SINGLE, LARGEST_SINGLE = 2.0**-126, 2.0**127
RESCALED_AT_BITS = round(math.log2(RESCALED_AT))
# Learning a feature changes at least one of these.
CHANGING = {"counts", "positives", "negatives"}


def union(keys: Places, of_parts: Sequence[Places]) -> tuple[Places, Places, list[Places]]:
    """All keys, sorted, and the positions in them of the base's keys and of each part's keys."""
    every, places = np.unique(np.concatenate([keys, *of_parts]), return_inverse=True)
    ends = np.cumsum([len(each) for each in (keys, *of_parts)])
    of_base, *rest = np.split(places, ends[:-1])
    return every, of_base, rest


def as_kept(of_features: State) -> State:
    """Numbers of features, rounded as the engine in use stores them: the compiled engine has single precision."""
    if NAME == "pure":
        return of_features
    made = {}
    for name, numbers in of_features.items():
        kept = np.clip(numbers, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32).astype(np.float64)
        made[name] = np.where(np.abs(kept) < SMALLEST_SINGLE, 0.0, kept)
    return made


class Clock:
    """How evidence ages when parts are merged, as if their examples had come evenly mixed.

    An example counts half as much as one that comes `half_life` examples later; with 0, evidence does not age. The
    evidence of the base ages by the examples of all parts.
    """

    def __init__(self, base: State, parts: Sequence[State], half_life: float) -> None:
        before, self._evidence = int(base["n_iterations"]), float(base["evidence"])
        self.n_learned = [int(part["n_iterations"]) - before for part in parts]
        self.n_iterations = before + sum(self.n_learned)
        self._rate = 1.0 / half_life if half_life else 0.0  # halvings at each example
        self._of_parts = [float(part["evidence"]) for part in parts]
        self.kept = [2.0 ** -(self._rate * n) for n in self.n_learned]
        n = self.n_iterations - before
        bits = math.log2(self._evidence) + self._rate * n
        self._n_rescalings = math.floor(bits / RESCALED_AT_BITS)
        self.evidence = 2.0 ** (bits - RESCALED_AT_BITS * self._n_rescalings) if half_life else self._evidence
        self._kept_of_base = 2.0 ** -(self._rate * n)
        self._spread = [mean_kept(self._rate * n) / mean_kept(self._rate * own) for own in self.n_learned]

    def added(self, number: int, now: Any, before: Any) -> Any:
        """The evidence that a part added, where an example learned now counts 1; 0 where the part changed nothing."""
        new = now / self._of_parts[number] - before * (self.kept[number] / self._evidence)
        is_old = now == before * RESCALED_AT ** -self.n_rescalings(number)
        return np.where(is_old, 0.0, np.maximum(new, 0.0) * self._spread[number])

    def n_rescalings(self, number: int) -> int:
        """How often a part has divided its evidence by `RESCALED_AT`."""
        bits = math.log2(self._evidence) + self._rate * self.n_learned[number]
        return round((bits - math.log2(self._of_parts[number])) / RESCALED_AT_BITS)

    def together(self, before: Any, added: Any) -> Any:
        """The merged evidence: the base's, rescaled, and what the parts added."""
        return before * RESCALED_AT**-self._n_rescalings + added * self.evidence

    def in_examples(self, evidence: Any) -> Any:
        """The base's evidence, where an example learned now counts 1."""
        return evidence * (self._kept_of_base / self._evidence)


def mean_kept(halvings: float) -> float:
    """The mean weight of examples that came evenly over this many half-lives."""
    return -math.expm1(-halvings * math.log(2.0)) / (halvings * math.log(2.0)) if halvings else 1.0


class Rule(NamedTuple):
    """The parameters of an `AdaptiveLearner` that merging needs."""

    learning_rate: float
    smoothing: float
    half_life: float
    intercept_scaling: float


def merged_adaptive(
    base: State,
    parts: Sequence[State],
    rule: Rule,
    reduction: str,
    numbers: Sequence[Places],
    n_classes: int,
    order: Places,
) -> State:
    """The merged state of an `AdaptiveLearner`. `numbers` maps the classes of the base and of each part to numbers
    among all `n_classes`; `order` sorts these numbers if the classes are ordered.

    `Clock` adds up counts and squared gradients; `Steps` merges weights. Two classes have two columns of counts, and
    one of weights.
    """
    is_two = reduction == "two"
    one_weight, is_ordinal = reduction in OF_ONE_WEIGHT, reduction == "ordinal"
    clock = Clock(base, parts, rule.half_life)
    states = [each | in_columns(each, np.array([1.0, 0.0])) if is_two else each for each in (base, *parts)]
    keys, place, places = union(base["keys"], [part["keys"] for part in parts])
    n, width = len(keys), max(n_classes, 1)
    counts, log_ratios, n_saw = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    counts[place], log_ratios[place] = states[0]["counts"], base["log_ratios"]
    messages = Messages(n + 1)
    for number, (part, at) in enumerate(zip(states[1:], places, strict=True)):
        new = clock.added(number, part["counts"], counts[at])
        messages.add(np.append(at, n), np.append(new, clock.added(number, part["n_examples"], states[0]["n_examples"])))
        n_saw[at] += new > 0.0
        log_ratios[at[new > 0.0]] = part["log_ratios"][new > 0.0]
    counts = clock.together(counts, messages.counts[:n])
    n_examples = float(clock.together(states[0]["n_examples"], messages.counts[n]))

    values, squares, taught_counts = OF_COLUMN
    pairs, at_counts, at_weights = pairs_of(states, [place, *places], numbers, width, one_weight)
    feature, column = np.divmod(pairs, width)
    m = len(pairs)
    before = {name: np.zeros(m) for name in OF_COLUMN}
    for name, at in ((values, at_weights[0]), (squares, at_weights[0]), (taught_counts, at_counts[0])):
        np.add.at(before[name], at, states[0][name])
    problems_before, *problems_after = (
        ordered_problems(state, of, order.tolist()) if is_ordinal else problems_of_classes(state, of, n_classes, is_two)
        for state, of in zip(states, numbers, strict=True)
    )
    n_problems = problems_before.shape[1]
    problem = np.arange(n_problems)
    size = 1.0 if is_two else math.sqrt(2.0 * min(max(base["slope"], LEAST_SLOPE), MOST_SLOPE))
    all_squares = np.append(before[squares], problems_before[1])
    steps = Steps(
        np.append(before[values], problems_before[0]),
        clock.in_examples(all_squares) + np.repeat([0.0 if is_two else FIRST_SQUARES, 0.0], [m, n_problems]),
        rule.learning_rate * size * np.repeat([1.0, ORDINAL_INTERCEPT_RATE if is_ordinal else 1.0], [m, n_problems]),
        np.append(np.zeros(m, np.int64) if one_weight else column, is_ordinal + problem),
        0 if is_ordinal else n_problems,
    )
    of_class = np.zeros(m)
    class_counts, *class_counts_after = (
        counts_of_classes(state, of, n_classes) for state, of in zip(states, numbers, strict=True)
    )
    new_of_classes = np.zeros(n_classes)
    for number, (part, problems) in enumerate(zip(states[1:], problems_after, strict=True)):
        at, at_count = np.append(at_weights[number + 1], m + problem), at_counts[number + 1]
        new_squares = clock.added(number, np.append(part[squares], problems[1]), all_squares[at])
        steps.add(at, np.append(part[values], problems[0]), new_squares)
        of_class[at_count] += clock.added(number, part[taught_counts], before[taught_counts][at_count])
        new_of_classes += clock.added(number, class_counts_after[number], class_counts)
    of_class = clock.together(before[taught_counts], of_class)
    class_counts = clock.together(class_counts, new_of_classes)
    few = rule.smoothing * clock.evidence
    learned = [part for part, n_learned in zip(parts, clock.n_learned, strict=True) if n_learned]
    ratio = (learned or [base])[0].get("intercept_log_ratio", 0.0)
    if rule.smoothing:
        merged_counts = Counts(counts, feature, column, of_class, class_counts, n_examples)
        if is_two:
            found, of_all = signed_ratios(merged_counts, few)
            ratio = of_all if len(learned) > 1 else ratio
        else:
            found = ordinal_ratios(merged_counts, order, few) if is_ordinal else largest_ratios(merged_counts, few)
        log_ratios[n_saw > 1] = found[n_saw > 1]
    log_ratios = log_ratios.clip(-LARGEST_LOG_RATIO, LARGEST_LOG_RATIO)
    scales = LEAST_SCALE + np.abs(log_ratios - ratio) if rule.smoothing else np.ones(n)
    in_messages = messages.values(scales, 0.0 if is_ordinal else rule.intercept_scaling)
    merged = steps.weights(messages, np.append(feature, np.full(n_problems, n)), in_messages)
    merged_squares = clock.together(all_squares, steps.added)
    made = {
        "keys": keys,
        "evidence": clock.evidence,
        "n_iterations": clock.n_iterations,
        **merged_calibration(parts, clock.n_learned),
        **merged_dense(base, parts, reduction, numbers, n_classes, clock.kept),
    }
    if is_two:
        of_features = (merged[:m:2], log_ratios, merged_squares[:m:2], of_class[1::2], of_class[::2])
        of_intercept = (merged[m], ratio, merged_squares[m], class_counts[1], class_counts[0])
        return (
            made
            | as_kept(dict(zip(OF_FEATURE, of_features, strict=True)))
            | dict(zip(OF_INTERCEPT, map(float, of_intercept), strict=True))
            | merged_newest(base, parts, COUNTS[:2], COUNTS[2:], MOST_NEWEST)
        )
    offsets = mean_of_parts([each[2] for each in problems_after], clock.n_learned)
    offset_squares = problems_before[3] + sum(each[3] - problems_before[3] for each in problems_after)
    made |= {
        "n_taught": np.bincount(feature, minlength=n),
        "taught_columns": column,
        **as_kept({"log_ratios": log_ratios, "counts": counts}),
        **as_kept({values: merged[:m], squares: merged_squares[:m], taught_counts: of_class}),
        "class_counts": class_counts,
        "n_examples": n_examples,
        **dict(zip(OF_PROBLEM, (merged[m:], merged_squares[m:], offsets, offset_squares), strict=True)),
    }
    return made | ({"order": order} if is_ordinal else {})


def pairs_of(
    states: Sequence[State], places: Sequence[Places], numbers: Sequence[Places], width: int, one_weight: bool
) -> tuple[Places, list[Places], list[Places]]:
    """All pairs of a feature and a class, as feature · width + class, and the positions in them of each state's taught
    counts and of its weights. A weight that all classes share is in column 0, whichever class that is: no other column
    then has a weight.
    """
    rows = [np.repeat(at, state["n_taught"]) * width for state, at in zip(states, places, strict=True)]
    columns = [state["taught_columns"] for state in states]
    of_counts = [row + of[column] for row, column, of in zip(rows, columns, numbers, strict=True)]
    of_weights = [row + column for row, column in zip(rows, columns, strict=True)] if one_weight else of_counts
    pairs = np.unique(np.concatenate([*of_counts, *of_weights]))
    at_counts, at_weights = ([np.searchsorted(pairs, each) for each in of] for of in (of_counts, of_weights))
    return pairs, at_counts, at_weights


class Counts(NamedTuple):
    """Counts of examples: by feature, by pair of the `feature` and the `column` at a place, by class, and of all."""

    of_features: Floats
    feature: Places
    column: Places
    of_pairs: Floats
    of_classes: Floats
    n: float


def signed_ratios(counts: Counts, few: float) -> tuple[Floats, float]:
    """With two classes, the log-count ratio of each feature, and that of all examples."""
    negatives, positives = np.log(np.append(counts.of_pairs.reshape(-1, 2), [counts.of_classes], axis=0) + few).T
    ratios = positives - negatives
    return ratios[:-1], float(ratios[-1])


def largest_ratios(counts: Counts, few: float) -> Floats:
    """The largest log-count ratio of each feature over the classes, or 0 if none is above 0."""
    others = np.maximum(counts.of_features[counts.feature] - counts.of_pairs, 0.0)
    class_odds = (np.maximum(counts.n - counts.of_classes, 0.0) + few) / (counts.of_classes + few)
    odds = (counts.of_pairs + few) / (others + few) * class_odds[counts.column]
    largest = np.ones(len(counts.of_features))
    np.maximum.at(largest, counts.feature, np.where(counts.of_pairs > 0.0, odds, 1.0))
    return np.log(largest)


def ordinal_ratios(counts: Counts, order: Places, few: float) -> Floats:
    """The mean absolute log-count ratio of each feature over the problems: of the classes above to those below."""
    n = len(counts.of_features)
    total, above, n_above = np.zeros(n), np.zeros(n), 0.0
    for number in order[:0:-1].tolist():
        of_this = counts.column == number
        above[counts.feature[of_this]] += counts.of_pairs[of_this]
        n_above += float(counts.of_classes[number])
        odds = (above + few) / (np.maximum(counts.of_features - above, 0.0) + few)
        total += np.abs(np.log(odds / ((n_above + few) / (max(counts.n - n_above, 0.0) + few))))
    return total / max(len(order) - 1, 1)


def problems_of_classes(state: State, of: Places, n_classes: int, is_two: bool) -> Floats:
    """The problem of each class, zeros for a class that the state does not know. Two classes have one problem."""
    known = np.array([state[name] for name in OF_PROBLEM])
    if is_two:
        return known
    problems = np.zeros((len(OF_PROBLEM), n_classes))
    problems[:, of] = known
    return problems


def counts_of_classes(state: State, of: Places, n_classes: int) -> Floats:
    counts = np.zeros(n_classes)
    counts[of] = state["class_counts"]
    return counts


def ordered_problems(state: State, of: Places, order: list[int]) -> Floats:
    """The problems between all ordered classes; one that the state does not know is a copy of its neighbour."""
    problems = np.array([state[name] for name in OF_PROBLEM])
    met = of[state["order"]].tolist()
    for number in order:
        if number not in met:
            problems = with_class(problems, met, order, number)
    return problems


def is_changed(base: State, part: State, half_life: float) -> NDArray[np.bool_]:
    """Which features of a part differ from the base."""
    keys, place, (of_part,) = union(base["keys"], [part["keys"]])
    n_rescaled = Clock(base, [part], half_life).n_rescalings(0)
    result = np.zeros(len(part["keys"]), bool)
    for name in CHANGING & part.keys():
        before = np.full(len(keys), -1.0)  # which no new feature has
        before[place] = base[name] * RESCALED_AT**-n_rescaled
        result |= before[of_part] != part[name]
    return result


SIGNED = ("values", "vector_weights", "log_ratios", "intercept", "intercept_log_ratio", "sums", "buffer_values")
OF_SIGNS = (
    ("positives", "negatives"),
    ("n_positives", "n_negatives"),
    ("n_newest_positives", "n_newest_negatives"),
    ("false_positives", "false_negatives"),
)


def negated(state: State) -> State:
    """The state of a learner of two classes, with these exchanged."""
    made = dict(state)
    for name in SIGNED:
        if name in state:
            made[name] = 0.0 - state[name]  # no −0
    for pair in OF_SIGNS:
        if pair[0] in state:
            made |= {pair[0]: state[pair[1]], pair[1]: state[pair[0]]}
    return made


def mean_of_parts(values: Sequence[Any], n_learned: Sequence[int]) -> Any:
    """The mean over the parts, weighted by their numbers of examples."""
    shares = np.array(n_learned if sum(n_learned) else [1] * len(values), float)
    return (shares / shares.sum()) @ np.array(values, float)


def merged_calibration(parts: Sequence[State], n_learned: Sequence[int]) -> State:
    """The mean over the parts of what turns margins into probabilities."""
    fields = CALIBRATION + (CONFIDENCE if CONFIDENCE[0].name in parts[0] else ())
    return {field.name: float(mean_of_parts([part[field.name] for part in parts], n_learned)) for field in fields}


def merged_newest(
    base: State, parts: Sequence[State], totals: Sequence[str], of_totals: Sequence[str], most: float
) -> State:
    """The base's counts of recent examples and what each part added; all are halved when a total reaches `most`."""
    made: State = {}
    for total, of_total in zip(totals, of_totals, strict=True):
        halvings = [n_halvings(base[total], part[total]) for part in parts]
        least = 0.5 ** max(halvings)
        n, counts = base[total] * least, base[of_total] * least
        for part, times in zip(parts, halvings, strict=True):
            n += part[total] - base[total] * 0.5**times
            counts = counts + np.maximum(part[of_total] - base[of_total] * 0.5**times, 0.0)
        while n >= most:
            n, counts = n / 2.0, counts / 2.0
        made |= {total: n, of_total: counts}
    return made


def n_halvings(before: float, now: float) -> int:
    """How often a total was halved, as far as its values before and now tell."""
    return math.ceil(math.log2(before / now)) if before > now > 0.0 else 0


def merged_pegasos(base: State, parts: Sequence[State], batch_size: int) -> State:
    """The state of a `PegasosLearner` whose mini-batch buffer joins the buffers of the parts: subgradients, all taken
    at the weights of the base.

    Raises
    ------
    ValueError
        If a part has taken a step, or met a class that the base does not know.
    """
    counted = ("n_iterations", "scale")
    for part in parts:
        if any(not np.array_equal(part[name], base[name]) for name in counted):
            raise ValueError(
                f"a part has taken a step, or knows other classes: parts of a mini-batch of {batch_size} examples "
                "must have fewer, of classes that the base knows"
            )
    made = dict(base)
    buffers = [base, *({name: part[name][is_new(base, part)] for name in OF_BUFFER} for part in parts)]
    by_column = np.argsort(np.concatenate([each["buffer_columns"] for each in buffers]), kind="stable")
    for name in OF_BUFFER:
        made[name] = np.concatenate([each[name] for each in buffers])[by_column]
    made["n_buffered"] = base["n_buffered"] + sum(part["n_buffered"] - base["n_buffered"] for part in parts)
    if (made["n_buffered"] > batch_size).any():
        raise ValueError(f"the parts have {made['n_buffered'].max():,} examples, and a mini-batch is of {batch_size:,}")
    n_learned = [int((part["n_buffered"] - base["n_buffered"]).max(initial=0)) for part in parts]
    return made | merged_calibration(parts, n_learned)


def is_new(base: State, part: State) -> NDArray[np.bool_]:
    """Which entries of a part's buffer were added to their column after those of the base."""
    columns = part["buffer_columns"]
    before = np.bincount(base["buffer_columns"], minlength=len(part["n_buffered"]))
    by_column = np.argsort(columns, kind="stable")
    first = np.searchsorted(columns[by_column], np.arange(len(before)))
    new = np.empty(len(columns), bool)
    new[by_column] = np.arange(len(columns)) - first[columns[by_column]] >= before[columns[by_column]]
    return new
