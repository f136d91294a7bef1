"""The fields of a learner's state. The build of the engine reads some of them, so nothing here needs NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

State = dict[str, Any]

# The dimensions of arrays. `TAUGHT` joins the taught columns of all features, `n_taught` for each feature.
FEATURES, COLUMNS, BUFFERED, TAUGHT, DIMENSIONS = "features", "columns", "buffered", "taught", "dimensions"
THRESHOLDS = "thresholds"  # between ordered classes

LARGEST_WEIGHT = 1e30  # of an example, and of a class
LARGEST_COUNT = 1 << 62  # far enough below 2^63 that no counter overflows
# The largest sum of squares in a state, and of other values that grow like such a sum.
LARGEST_SUM = 1e307

Limit = float | Callable[[State], float]

# How the values of several learners that continued from one become one value:
# - "sum": what each added, all together; of evidence as if all examples had come evenly mixed;
# - "evidence": the mean of the changes, weighted by the evidence that each added;
# - "weight": a weight, by the evidence on it; see `merging` of the engine;
# - "mean": the mean of the changes, weighted by the numbers of examples;
# - "newest": counts of the newest examples, of which `evidence` names the total;
# - "joint": with other fields, by a function of the rule.
Merging = Literal["", "sum", "evidence", "weight", "mean", "newest", "joint"]

SIGN = "-"  # as a mirror


@dataclass(frozen=True)
class Field:
    """A number of a state or, with dimensions, an array. A dimension has the same size in all fields.

    Parameters
    ----------
    name : str
        The name in a state.
    low, high : float or callable
        The limits of the values or, if `signed`, of their absolute values. A limit may depend on the whole state.
    shape : tuple of str
        The dimensions, which tell the owner: see `owner`.
    signed : bool
        Whether values may be below 0.
    of_type : type
        float or int.
    size : int or None
        The fixed size of an array with one dimension.
    ages : bool
        Whether the value is evidence: it is counted in units of an example that is learned now, and weakens with age.
    merges : str
        How the values of several learners become one: see `Merging`. A state with a field that says nothing cannot be
        merged.
    evidence : tuple of str
        For a value that rests on evidence, the names of that evidence; the number of examples if there are none.
    counts_features : bool
        Whether the values, together with other such ones, are the number of examples with each feature.
    mirror : str
        What becomes of the value if two classes in one column exchange their numbers: `SIGN` changes its sign; another
        field's name exchanges both.
    split : callable or None
        The value after two classes that shared a column got one each, given the state before. `None` for no change.
    holds_columns : bool
        Whether the values are numbers of columns.
    sizes : str
        The dimension of which the value says how many entries each feature has.
    derived : callable or None
        The value for a state of fewer features. `None` for a value that is still true.
    record : str
        The name in the record of a feature, if the compiled engine keeps one.
    place : tuple of int
        Row and column in the `known` numbers of a feature of two classes in the pure engine.
    """

    name: str
    low: Limit = 0.0
    high: Limit = LARGEST_SUM
    shape: tuple[str, ...] = ()
    signed: bool = False
    of_type: type = float
    size: int | None = None
    ages: bool = False
    merges: Merging = ""
    evidence: tuple[str, ...] = ()
    counts_features: bool = False
    mirror: str = ""
    split: Callable[[State], Any] | None = None
    holds_columns: bool = False
    sizes: str = ""
    derived: Callable[[State], Any] | None = None
    record: str = ""
    place: tuple[int, int] | None = None

    @property
    def owner(self) -> str:
        """The owner of the value: "model", "column", "feature", "feature × column", "vector" or "buffer"."""
        return OWNERS.get(self.shape, "vector" if DIMENSIONS in self.shape else "model")


OWNERS = {
    (COLUMNS,): "column",
    (THRESHOLDS,): "column",
    (FEATURES,): "feature",
    (FEATURES, COLUMNS): "feature × column",
    (TAUGHT,): "feature × column",
    (BUFFERED,): "buffer",
}
