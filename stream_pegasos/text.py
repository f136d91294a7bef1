"""The ready-made text model: features and classifier fused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from stream_pegasos.features import HashedBagOfWords
from stream_pegasos.labels import Label
from stream_pegasos.linear import PegasosClassifier
from stream_pegasos.persistence import Saveable, pack, unpack

__all__ = ["PegasosTextClassifier"]


class PegasosTextClassifier(Saveable, base.MiniBatchClassifier):
    """Text in, label out: `HashedBagOfWords` and `PegasosClassifier` run as one in the engine.

    It does what the pipeline of its two parts does, to rounding, without making Python objects of the features on the
    way. The `_many` methods take any iterable of texts.

    Parameters
    ----------
    features
        The `HashedBagOfWords` that turns texts into features; with its defaults if `None`.
    classifier
        The `PegasosClassifier` that learns from them; with its defaults if `None`.

    Attributes
    ----------
    weights : dict
        The weight of each hashed feature learned.
    intercept : float
        What the intercept adds to the margin.
    n_iterations : int
        The number of steps taken.
    classes : tuple
        The negative and the positive label, each `None` as long as it is unknown.

    Raises
    ------
    TypeError
        If a part is of another class.

    Examples
    --------

    >>> from stream_pegasos import HashedBagOfWords, PegasosClassifier, PegasosTextClassifier

    >>> model = PegasosTextClassifier(
    ...     features=HashedBagOfWords(ngram_range=(1, 2)),
    ...     classifier=PegasosClassifier(l2=1e-3),
    ... )
    >>> model.predict_learn_many(
    ...     ["see you at lunch", "cheap pills for you", "lunch at noon?"], ["ham", "spam", "ham"]
    ... )
    array([ 0.        , -4.51753951, -0.33942812])
    >>> model.predict_one("pills, cheap pills")
    'spam'

    Evaluated by predicting each message before learning it:

    >>> from river import evaluate, metrics
    >>> from stream_pegasos.streams import synthetic

    >>> evaluate.progressive_val_score(
    ...     synthetic(n=2_000, seed=1), PegasosTextClassifier(), metrics.Accuracy()
    ... ).get() > 0.9
    True

    """

    def __init__(
        self,
        features: HashedBagOfWords | None = None,
        classifier: PegasosClassifier | None = None,
    ) -> None:
        self.features = HashedBagOfWords() if features is None else features
        self.classifier = PegasosClassifier() if classifier is None else classifier
        for part, kind in ((self.features, HashedBagOfWords), (self.classifier, PegasosClassifier)):
            if not isinstance(part, kind):
                raise TypeError(f"{part!r} is a {type(part).__name__}, not a {kind.__name__}")

    @property
    def weights(self) -> dict[int, float]:
        return self.classifier.weights

    @property
    def intercept(self) -> float:
        return self.classifier.intercept

    @property
    def n_iterations(self) -> int:
        return self.classifier.n_iterations

    @property
    def classes(self) -> tuple[Label | None, Label | None]:
        return self.classifier.classes

    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        """Learn from one text.

        Parameters
        ----------
        x
            The text; with `features.on`, a dict that has it.
        y
            The label: bool, int or str.
        w
            What the loss on this example counts, from 0 to 1e30.

        Raises
        ------
        TypeError
            If the text is no str, or the label is no bool, int or str.
        ValueError
            If the weight is out of its range or the label is a third one. The model is then as it was before.
        """
        self.classifier._learn_one(self.features._scanner, self.features._prepare(x), y, w)

    def predict_one(self, x: Any) -> Any:  # type: ignore[override]
        """The label of a text; `None` where `pos_label` is given and nothing has been learned.

        Parameters
        ----------
        x
            The text, as for `learn_one`.
        """
        return self.classifier._decide(self.decision_function_one(x))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:  # type: ignore[override]
        """The probability of each label; the label that `predict_one` gives has the larger one.

        Parameters
        ----------
        x
            The text, as for `learn_one`.
        """
        return self.classifier._probabilities(self.decision_function_one(x))

    def decision_function_one(self, x: Any) -> float:
        """The margin of a text; above 0 for the positive label.

        Parameters
        ----------
        x
            The text, as for `learn_one`.
        """
        return self.classifier._learner.margin(self.features._scanner, self.features._prepare(x))

    def learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> None:
        """Learn from many texts in turn, as `learn_one` would; only faster.

        Parameters
        ----------
        X
            Texts, in any iterable or as a series; with `features.on`, dicts or a data frame.
        y
            As many labels.
        w
            The weight of all texts, or as many weights.

        Raises
        ------
        TypeError, ValueError
            As `learn_one` does, and if there are not as many labels or weights as texts. Nothing is learned then.
        """
        self._predict_learn_many(X, y, w)

    def predict_learn_many(self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0) -> NDArray[np.float64]:
        """Prequential evaluation in one call: the margin of each text before it is learned.

        Parameters
        ----------
        X, y, w
            As for `learn_many`, and raising as it does.
        """
        return self._predict_learn_many(X, y, w)[0]

    def predict_many(self, X: Any) -> Any:
        """The label of each text, as an array; as a series for a data frame.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        return self.classifier._decide_many(self.decision_function_many(X), X)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of each text, as an array with a column a label, the negative one first; as a data frame
        for a data frame.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        return self.classifier._probabilities_many(self._predict_many(X)[1], X)

    def decision_function_many(self, X: Any) -> NDArray[np.float64]:
        """The margin of each text.

        Parameters
        ----------
        X
            As for `learn_many`.
        """
        return self._predict_many(X)[0]

    def flush(self) -> None:
        """Take the step with the texts that the mini-batch buffer holds; none if it is empty."""
        self.classifier.flush()

    def _predict_many(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.classifier._learner.predict_learn_many(self.features._scanner, self.features._prepare_many(X))

    def _predict_learn_many(
        self, X: Any, y: Iterable[Any], w: float | Iterable[float] = 1.0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Margin and probability of the positive label of each text before it is learned."""
        return self.classifier._learn_many(self.features._scanner, self.features._prepare_many(X), y, w)

    def _more_tags(self) -> set[str]:
        return self.features._more_tags()

    def _to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, classifier = self.classifier._to_state()
        features = {name: pack(value) for name, value in self.features._get_params().items()}
        return arrays, {"features": features, "classifier": classifier}

    @classmethod
    def _from_state(cls, arrays: Mapping[str, NDArray[Any]], values: Any) -> Self:
        features = {name: unpack(value) for name, value in values["features"].items()}
        classifier = PegasosClassifier._from_state(arrays, values["classifier"])
        return cls(HashedBagOfWords(**features), classifier)
