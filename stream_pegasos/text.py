"""The ready-made text model: features and classifier fused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from numpy.typing import NDArray

from stream_pegasos.adaptive import AdaptiveClassifier
from stream_pegasos.classifier import Classifier, Floats
from stream_pegasos.engine import Encoder
from stream_pegasos.features import HashedBagOfWords
from stream_pegasos.labels import Label
from stream_pegasos.persistence import Saveable, pack_parameters, unpack

__all__ = ["PegasosTextClassifier"]


class PegasosTextClassifier(Classifier):
    """Text in, label out: `HashedBagOfWords` and a classifier run as one in the engine.

    It does what the pipeline of its two parts does, to rounding, without making Python objects of the features on the
    way. The `_many` methods take any iterable of texts.

    Parameters
    ----------
    features
        The `HashedBagOfWords` that turns texts into features; with its defaults if `None`.
    classifier
        The classifier that learns from them: a `PegasosClassifier`, with its defaults if `None`, or the package's
        `MulticlassPegasosClassifier`, `OrdinalPegasosClassifier` or `KernelPegasosClassifier`.

    Attributes
    ----------
    weights, intercept, n_iterations, classes
        As the classifier has them, features by their hashed columns.

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
        classifier: Any = None,
    ) -> None:
        self.features = default_features() if features is None else features
        self.classifier = AdaptiveClassifier() if classifier is None else classifier
        if not isinstance(self.features, HashedBagOfWords):
            raise TypeError(f"{features!r} is a {type(features).__name__}, not a HashedBagOfWords")
        if not isinstance(self.classifier, Classifier) or isinstance(self.classifier, PegasosTextClassifier):
            raise TypeError(f"{classifier!r} is a {type(classifier).__name__}, not a classifier of this package")

    @property
    def weights(self) -> Any:
        return self.classifier.weights

    @property
    def intercept(self) -> Any:
        return self.classifier.intercept

    @property
    def n_iterations(self) -> int:
        return self.classifier.n_iterations

    @property
    def classes(self) -> tuple[Label | None, ...]:
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
        """The label of a text, as the classifier gives it.

        Parameters
        ----------
        x
            The text, as for `learn_one`.
        """
        return self.classifier._predict_one(self.features._scanner, self.features._prepare(x))

    def flush(self) -> None:
        """Take the step with the texts that the mini-batch buffer holds; none if it is empty."""
        self.classifier.flush()

    def _encode_one(self, x: Any) -> tuple[Encoder, Any]:
        return self.features._scanner, self.features._prepare(x)

    def _encode_many(self, X: Any) -> tuple[Encoder, Any]:
        return self.features._scanner, self.features._prepare_many(X)

    def _learn_one(self, encoder: Encoder, x: Any, y: Any, w: float) -> None:
        self.classifier._learn_one(encoder, x, y, w)

    def _learn_many(
        self, encoder: Encoder, rows: Any, y: Iterable[Any], w: float | Iterable[float]
    ) -> tuple[Any, Floats | None]:
        return self.classifier._learn_many(encoder, rows, y, w)

    def _predict_proba_one(self, encoder: Encoder, x: Any) -> dict[Any, float]:
        return self.classifier._predict_proba_one(encoder, x)

    def _decision_function_one(self, encoder: Encoder, x: Any) -> Any:
        return self.classifier._decision_function_one(encoder, x)

    def _predict_many(self, encoder: Encoder, rows: Any) -> NDArray[Any]:
        return self.classifier._predict_many(encoder, rows)

    def _predict_proba_many(self, encoder: Encoder, rows: Any) -> tuple[tuple[Label, ...], Floats]:
        return self.classifier._predict_proba_many(encoder, rows)

    def _decision_function_many(self, encoder: Encoder, rows: Any) -> Floats:
        return self.classifier._decision_function_many(encoder, rows)

    @property
    def _multiclass(self) -> bool:
        return self.classifier._multiclass

    def _more_tags(self) -> set[str]:
        return self.features._more_tags()

    def _to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, classifier = self.classifier._to_state()
        features = pack_parameters(self.features)
        return arrays, {"features": features, "kind": type(self.classifier).__name__, "classifier": classifier}

    @classmethod
    def _from_state(cls, arrays: Mapping[str, NDArray[Any]], values: Any) -> Self:
        features = {name: unpack(value) for name, value in values["features"].items()}
        classifier = Saveable._kinds[values.get("kind", "PegasosClassifier")]._from_state(arrays, values["classifier"])
        return cls(HashedBagOfWords(**features), classifier)


def default_features() -> HashedBagOfWords:
    """What `PegasosTextClassifier` finds in a text unless told otherwise, as measured by tests/benchmarks/accuracy.py."""
    return HashedBagOfWords(
        n_features=2**30,
        ngram_range=(1, 2),
        token_pattern=r"\w+|[^\w\s]",
        binary=True,
        alternate_sign=False,
        mask_digits=True,
        prefix_length=4,
        boundaries=True,
    )
