"""How each rule combines states that went on from the same one, each over examples of its own, into one state.

The state of a part may lack features: those have not changed.
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
    OF_PROBLEM,
    OFFSET_RATE,
    OFFSET_SQUARES,
    ORDINAL_INTERCEPT_RATE,
    ORDINAL_OFFSET_RATE,
    ORDINAL_OFFSET_SQUARES,
    RESCALED_AT,
    with_class,
)
from stream_pegasos.engine.pure.driver import CALIBRATION_MEMORY, CONFIDENCE
from stream_pegasos.engine.pure.mistakes import COUNTS, MOST_NEWEST
from stream_pegasos.engine.pure.pegasos import OF_BUFFER

__all__ = [
    "Clock",
    "Rule",
    "is_changed",
    "merged_adaptive",
    "merged_columns",
    "merged_newest",
    "merged_pegasos",
    "negated",
]

SMALLEST_SINGLE, LARGEST_SINGLE = 2.0**-126, 2.0**127
RESCALED_AT_BITS = round(math.log2(RESCALED_AT))
# Of a feature that is learned at least one of these changes.
EVIDENCE_OF_FEATURE = {"counts", "positives", "negatives", "gradient_squares"} - set(OF_COLUMN)


def union(keys: Places, of_parts: Sequence[Places]) -> tuple[Places, Places, list[Places]]:
    """All keys, in order, and the places among them of those of the base and of each part."""
    every, places = np.unique(np.concatenate([keys, *of_parts]), return_inverse=True)
    ends = np.cumsum([len(each) for each in (keys, *of_parts)])
    of_base, *rest = np.split(places, ends[:-1])
    return every, of_base, rest


def as_kept(of_features: State) -> State:
    """What is known of features, as the engine in use keeps it: the compiled one in single precision."""
    if NAME == "pure":
        return of_features
    made = {}
    for name, numbers in of_features.items():
        kept = np.clip(numbers, -LARGEST_SINGLE, LARGEST_SINGLE).astype(np.float32).astype(np.float64)
        made[name] = np.where(np.abs(kept) < SMALLEST_SINGLE, 0.0, kept)
    return made


class Clock:
    """How much evidence counts after the examples of all parts, which came at the same time.

    An example counts half as much as one that comes `half_life` examples later; 0 for always as much. All that was
    known before is older by the examples of all parts, and the examples of all parts are taken as evenly mixed.
    """

    def __init__(self, base: State, parts: Sequence[State], half_life: float) -> None:
        before, self._evidence = int(base["n_iterations"]), float(base["evidence"])
        self.n_learned = [int(part["n_iterations"]) - before for part in parts]
        self.n_iterations = before + sum(self.n_learned)
        self._rate = 1.0 / half_life if half_life else 0.0  # how often evidence halves an example
        self._of_parts = [float(part["evidence"]) for part in parts]
        self.kept = [2.0 ** -(self._rate * n) for n in self.n_learned]
        n = self.n_iterations - before
        bits = math.log2(self._evidence) + self._rate * n
        self._n_rescalings = math.floor(bits / RESCALED_AT_BITS)
        self.evidence = 2.0 ** (bits - RESCALED_AT_BITS * self._n_rescalings) if half_life else self._evidence
        self._kept_of_base = 2.0 ** -(self._rate * n)
        self._spread = [mean_kept(self._rate * n) / mean_kept(self._rate * own) for own in self.n_learned]

    def added(self, number: int, now: Any, before: Any) -> Any:
        """What a part added to evidence, in examples of now; none where it is as it was."""
        new = now / self._of_parts[number] - before * (self.kept[number] / self._evidence)
        is_old = now == before * RESCALED_AT ** -self.n_rescalings(number)
        return np.where(is_old, 0.0, np.maximum(new, 0.0) * self._spread[number])

    def n_rescalings(self, number: int) -> int:
        """How often a part has written its evidence anew."""
        bits = math.log2(self._evidence) + self._rate * self.n_learned[number]
        return round((bits - math.log2(self._of_parts[number])) / RESCALED_AT_BITS)

    def together(self, before: Any, added: Any) -> Any:
        """The evidence once all is added."""
        return before * RESCALED_AT**-self._n_rescalings + added * self.evidence

    def in_examples(self, evidence: Any) -> Any:
        """What evidence of the base counts, in examples of now."""
        return evidence * (self._kept_of_base / self._evidence)


def mean_kept(halvings: float) -> float:
    """What is kept on average of what came evenly over so many half-lives."""
    return -math.expm1(-halvings * math.log(2.0)) / (halvings * math.log(2.0)) if halvings else 1.0


class Rule(NamedTuple):
    """The parameters of an adaptive learner that say how parts of it become one; as the learner has them."""

    learning_rate: float
    smoothing: float
    half_life: float
    intercept_scaling: float


def merged_adaptive(
    base: State,
    parts: Sequence[State],
    rule: Rule,
) -> State:
    """The state of an `AdaptiveLearner` of two classes."""
    clock = Clock(base, parts, rule.half_life)
    keys, place, places = union(base["keys"], [part["keys"] for part in parts])
    n = len(keys)

    def with_intercept(state: State, name: str, of_intercept: str) -> Floats:
        return np.append(state[name], state[of_intercept])

    values, log_ratios, squares, positives, negatives = OF_FEATURE
    names = list(zip(OF_FEATURE, OF_INTERCEPT, strict=True))
    before = {name: np.zeros(n + 1) for name in OF_FEATURE}
    for name, of_intercept in names:
        before[name][np.append(place, n)] = with_intercept(base, name, of_intercept)
    one_column = np.zeros(n + 1, np.int64)
    steps = Steps(before[values], clock.in_examples(before[squares]), rule.learning_rate, one_column, n_intercepts=1)
    messages = Messages(n + 1)
    counts = {name: np.zeros(n + 1) for name in (positives, negatives)}
    made = {log_ratios: before[log_ratios].copy()}
    n_saw = np.zeros(n + 1, np.int64)
    for number, (part, of_part) in enumerate(zip(parts, places, strict=True)):
        at = np.append(of_part, n)
        now = {name: with_intercept(part, name, of_intercept) for name, of_intercept in names}
        steps.add(at, now[values], clock.added(number, now[squares], before[squares][at]))
        new = {name: clock.added(number, now[name], before[name][at]) for name in counts}
        for name, added in counts.items():
            added[at] += new[name]
        messages.add(at, new[positives] + new[negatives])
        saw = (new[positives] > 0.0) | (new[negatives] > 0.0)
        n_saw[at] += saw
        made[log_ratios][at[saw]] = now[log_ratios][saw]
    made |= {name: clock.together(before[name], added) for name, added in counts.items()}
    made[squares] = clock.together(before[squares], steps.added)
    if rule.smoothing:
        few, several = rule.smoothing * clock.evidence, n_saw > 1
        made[log_ratios][several] = np.log(made[positives][several] + few) - np.log(made[negatives][several] + few)
    scales = LEAST_SCALE + abs(made[log_ratios][:n] - made[log_ratios][n]) if rule.smoothing else np.ones(n)
    made[values] = steps.weights(messages, np.arange(n + 1), messages.values(scales, rule.intercept_scaling))
    return {
        "keys": keys,
        **as_kept({name: made[name][:n] for name in OF_FEATURE}),
        **{of_intercept: float(made[name][n]) for name, of_intercept in names},
        "evidence": clock.evidence,
        "n_iterations": clock.n_iterations,
        **merged_calibration(base, parts, clock.n_learned),
        **merged_newest(base, parts, COUNTS[:2], COUNTS[2:], MOST_NEWEST),
        **merged_dense(base, parts, "two", [np.arange(2)] * (len(parts) + 1), 2, clock.kept),
    }


def merged_columns(
    base: State,
    parts: Sequence[State],
    rule: Rule,
    reduction: str,
    numbers: Sequence[Places],
    n_classes: int,
    order: Places,
) -> State:
    """The state of an `AdaptiveLearner` of several classes. Of the base and of each part it is said which `numbers` its
    classes have among all `n_classes`, and of ordered ones in which `order` these are.
    """
    is_ordinal = reduction == "ordinal"
    clock = Clock(base, parts, rule.half_life)
    keys, place, places = union(base["keys"], [part["keys"] for part in parts])
    n = len(keys)
    counts, log_ratios, n_saw = np.zeros(n), np.zeros(n), np.zeros(n, np.int64)
    counts[place], log_ratios[place] = base["counts"], base["log_ratios"]
    messages = Messages(n + 1)
    for number, (part, at) in enumerate(zip(parts, places, strict=True)):
        new = clock.added(number, part["counts"], counts[at])
        messages.add(np.append(at, n), np.append(new, clock.added(number, part["n_examples"], base["n_examples"])))
        n_saw[at] += new > 0.0
        log_ratios[at[new > 0.0]] = part["log_ratios"][new > 0.0]
    counts = clock.together(counts, messages.counts[:n])
    n_examples = float(clock.together(base["n_examples"], messages.counts[n]))

    # What is known of a feature and a class has the place feature · classes + class. Ordered classes have the weight,
    # and what belongs to it, in column 0, whichever class that is.
    values, squares, taught_counts = OF_COLUMN
    width = max(n_classes, 1)

    def taught(state: State, at: Places, of: Places) -> tuple[Places, Places]:
        """The places of the weights, and of the counts."""
        rows = np.repeat(at, state["n_taught"]) * width
        columns = state["taught_columns"]
        return rows + (columns if is_ordinal else of[columns]), rows + of[columns]

    pairs = [taught(*each) for each in zip((base, *parts), (place, *places), numbers, strict=True)]
    there = np.unique(np.concatenate([each for pair in pairs for each in pair]))
    at_weights, at_counts = ([np.searchsorted(there, pair[i]) for pair in pairs] for i in (0, 1))
    m = len(there)
    before = {name: np.zeros(m) for name in OF_COLUMN}
    for name, at in ((values, at_weights[0]), (squares, at_weights[0]), (taught_counts, at_counts[0])):
        # An ordered class that is not the first has no weight, so that nothing is lost where two have one place.
        np.add.at(before[name], at, base[name])
    feature, column = np.divmod(there, width)
    lines_before, *problems_after = (
        ordered_problems(state, of, order.tolist()) if is_ordinal else problems_of_classes(state, of, n_classes)
        for state, of in zip((base, *parts), numbers, strict=True)
    )
    n_problems = lines_before.shape[1]
    problem = np.arange(n_problems)
    rate = rule.learning_rate * math.sqrt(2.0 * min(max(base["slope"], LEAST_SLOPE), MOST_SLOPE))
    all_squares = np.append(before[squares], lines_before[1])
    steps = Steps(
        np.append(before[values], lines_before[0]),
        clock.in_examples(all_squares) + np.repeat([FIRST_SQUARES, 0.0], [m, n_problems]),
        rate * np.repeat([1.0, ORDINAL_INTERCEPT_RATE if is_ordinal else 1.0], [m, n_problems]),
        np.append(np.zeros(m, np.int64), 1 + problem) if is_ordinal else np.append(column, problem),
        0 if is_ordinal else n_problems,
    )
    of_class = np.zeros(m)
    for number, (part, problems) in enumerate(zip(parts, problems_after, strict=True)):
        at, at_count = at_weights[number + 1], at_counts[number + 1]
        at = np.append(at, m + problem)
        new_squares = clock.added(number, np.append(part[squares], problems[1]), all_squares[at])
        steps.add(at, np.append(part[values], problems[0]), new_squares)
        of_class[at_count] += clock.added(number, part[taught_counts], before[taught_counts][at_count])
    of_class = clock.together(before[taught_counts], of_class)

    def classes_of(state: State, of: Places) -> Floats:
        result = np.zeros(n_classes)
        result[of] = state["class_counts"]
        return result

    of_classes = [classes_of(*each) for each in zip((base, *parts), numbers, strict=True)]
    new_of_class = [clock.added(number, each, of_classes[0]) for number, each in enumerate(of_classes[1:])]
    class_counts = clock.together(of_classes[0], np.sum(new_of_class, axis=0))
    few = rule.smoothing * clock.evidence
    if rule.smoothing:
        found = (
            ordinal_ratios(counts, feature, column, of_class, class_counts, n_examples, order, few)
            if is_ordinal
            else largest_ratios(counts, feature, column, of_class, class_counts, n_examples, few)
        )
        log_ratios[n_saw > 1] = found[n_saw > 1]
    log_ratios = np.minimum(log_ratios, LARGEST_LOG_RATIO)
    in_messages = messages.values(
        LEAST_SCALE + log_ratios if rule.smoothing else np.ones(n), 0.0 if is_ordinal else rule.intercept_scaling
    )
    merged = steps.weights(messages, np.append(feature, np.full(n_problems, n)), in_messages)
    merged_squares = clock.together(all_squares, steps.added)
    offsets, offset_squares = merged_offsets(lines_before, problems_after, is_ordinal)
    result = {
        "keys": keys,
        **as_kept({"log_ratios": log_ratios, "counts": counts}),
        "n_taught": np.bincount(feature, minlength=n),
        "taught_columns": column,
        **as_kept({values: merged[:m], squares: merged_squares[:m], taught_counts: of_class}),
        "class_counts": class_counts,
        "n_examples": n_examples,
        **dict(zip(OF_PROBLEM, (merged[m:], merged_squares[m:], offsets, offset_squares), strict=True)),
        "evidence": clock.evidence,
        "n_iterations": clock.n_iterations,
        **merged_calibration(base, parts, clock.n_learned),
        **merged_dense(base, parts, reduction, numbers, n_classes, clock.kept),
    }
    return result | ({"order": order} if is_ordinal else {})


def largest_ratios(
    counts: Floats, feature: Places, column: Places, of_class: Floats, class_counts: Floats, n: float, few: float
) -> Floats:
    """Of each feature the largest log-count ratio that it has for a class; 0 where it has none above."""
    others, n_others = np.maximum(counts[feature] - of_class, 0.0), np.maximum(n - class_counts, 0.0)
    odds = (of_class + few) / (others + few) * ((n_others + few) / (class_counts + few))[column]
    largest = np.ones(len(counts))
    np.maximum.at(largest, feature, np.where(of_class > 0.0, odds, 1.0))
    return np.log(largest)


def ordinal_ratios(
    counts: Floats,
    feature: Places,
    column: Places,
    of_class: Floats,
    class_counts: Floats,
    n: float,
    order: Places,
    few: float,
) -> Floats:
    """Of each feature the mean size of its log-count ratios of the classes above each problem to those below."""
    total, above, n_above = np.zeros(len(counts)), np.zeros(len(counts)), 0.0
    for number in order[:0:-1].tolist():
        of_this = column == number
        above[feature[of_this]] += of_class[of_this]
        n_above += float(class_counts[number])
        odds = (above + few) / (np.maximum(counts - above, 0.0) + few)
        total += np.abs(np.log(odds / ((n_above + few) / (max(n - n_above, 0.0) + few))))
    return total / max(len(order) - 1, 1)


def merged_offsets(before: Floats, after: Sequence[Floats], is_ordinal: bool) -> tuple[Floats, Floats]:
    """The offsets of problems, and their squared gradients."""
    rate, first = (ORDINAL_OFFSET_RATE, ORDINAL_OFFSET_SQUARES) if is_ordinal else (OFFSET_RATE, OFFSET_SQUARES)
    at = np.arange(before.shape[1])
    steps = Steps(before[2], before[3] + first, rate, at)
    for problems in after:
        steps.add(at, problems[2], np.maximum(problems[3] - before[3], 0.0))
    return steps.weights_alone(), before[3] + steps.added


def problems_of_classes(state: State, of: Places, n_classes: int) -> Floats:
    """The problems of all classes, those that a state does not know as they begin."""
    problems = np.zeros((len(OF_PROBLEM), n_classes))
    problems[:, of] = [state[name] for name in OF_PROBLEM]
    return problems


def ordered_problems(state: State, of: Places, order: list[int]) -> Floats:
    """The problems between all classes; one that a state does not know begins as the one that it stands beside."""
    problems = np.array([state[name] for name in OF_PROBLEM])
    met = of[state["order"]].tolist()
    for number in order:
        if number not in met:
            problems = with_class(problems, met, order, number)
    return problems


def is_changed(base: State, part: State, half_life: float) -> NDArray[np.bool_]:
    """Which features of a part are not as they were in the base."""
    keys, place, (of_part,) = union(base["keys"], [part["keys"]])
    n_rescaled = Clock(base, [part], half_life).n_rescalings(0)
    result = np.zeros(len(part["keys"]), bool)
    for name in EVIDENCE_OF_FEATURE & part.keys():
        before = np.full(len(keys), -1.0)  # of those that are new
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
    """A state of two classes with these exchanged."""
    made = dict(state)
    for name in SIGNED:
        if name in state:
            made[name] = 0.0 - state[name]  # no −0
    for pair in OF_SIGNS:
        if pair[0] in state:
            made |= {pair[0]: state[pair[1]], pair[1]: state[pair[0]]}
    return made


def merged_calibration(base: State, parts: Sequence[State], n_learned: Sequence[int]) -> State:
    """What makes probabilities of margins: each part's change counts by its examples."""
    n = sum(n_learned)
    fades = [1.0 - CALIBRATION_MEMORY**own for own in n_learned]

    def mean(name: str) -> float:
        changes = (part[name] - base[name] for part in parts)
        return float(
            base[name] + math.fsum(own * change for own, change in zip(n_learned, changes, strict=True)) / max(n, 1)
        )

    def faded(name: str) -> float:
        """A sum of squares of which the newest thousand count."""
        new = math.fsum(part[name] - base[name] * (1.0 - fade) for part, fade in zip(parts, fades, strict=True))
        fade = 1.0 - CALIBRATION_MEMORY**n
        return float(base[name] * (1.0 - fade) + max(new, 0.0) * (fade / math.fsum(fades) if n else 0.0))

    ratios = [own * math.log(part["slope"] / base["slope"]) for own, part in zip(n_learned, parts, strict=True)]
    made = {
        "slope": base["slope"] * math.exp(math.fsum(ratios) / max(n, 1)),
        "calibration_squares": faded("calibration_squares"),
    }
    for field in CONFIDENCE if CONFIDENCE[0].name in base else ():
        made[field.name] = (faded if field.name.endswith("squares") else mean)(field.name)
    return made


def merged_newest(
    base: State, parts: Sequence[State], totals: Sequence[str], of_totals: Sequence[str], most: float
) -> State:
    """Counts of newest examples, which are halved when a total reaches `most`: what each part added is added."""
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
    """How often a total was halved that is not what it was and more; as far as can be told."""
    return math.ceil(math.log2(before / now)) if before > now > 0.0 else 0


def merged_pegasos(base: State, parts: Sequence[State], batch_size: int) -> State:
    """The state of a `PegasosLearner` whose mini-batch buffer holds what those of the parts do: sums of subgradients,
    all taken with the weights of the base.

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
    for name in {"n_buffered", "n_violations"} & base.keys():
        made[name] = base[name] + sum(part[name] - base[name] for part in parts)
    if (made["n_buffered"] > batch_size).any():
        raise ValueError(f"the parts have {made['n_buffered'].max():,} examples, and a mini-batch is of {batch_size:,}")
    n_learned = [int((part["n_buffered"] - base["n_buffered"]).max(initial=0)) for part in parts]
    return made | merged_calibration(base, parts, n_learned)


def is_new(base: State, part: State) -> NDArray[np.bool_]:
    """Which entries of a part's buffer come, in their column, after those of the base."""
    columns = part["buffer_columns"]
    before = np.bincount(base["buffer_columns"], minlength=len(part["n_buffered"]))
    by_column = np.argsort(columns, kind="stable")
    first = np.searchsorted(columns[by_column], np.arange(len(before)))
    new = np.empty(len(columns), bool)
    new[by_column] = np.arange(len(columns)) - first[columns[by_column]] >= before[columns[by_column]]
    return new
