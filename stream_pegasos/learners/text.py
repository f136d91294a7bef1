"""The ready-made text model: features and classifier in one."""

from __future__ import annotations

import functools
import heapq
import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from river import base

from stream_pegasos.common.checks import check_integer
from stream_pegasos.common.errors import must_be, type_name
from stream_pegasos.engine import Encoder
from stream_pegasos.engine.pure.encoders import Inputs
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.features.message import FieldsMet
from stream_pegasos.features.text import TextFeatures
from stream_pegasos.features.vectors import VectorSource, WordVectors
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.class_weights import read_weights
from stream_pegasos.learners.classifier import Classifier
from stream_pegasos.learners.descriptions import Descriptions, Lessons, make_lessons
from stream_pegasos.learners.explanations import INTERCEPT, words
from stream_pegasos.learners.feature_names import FeatureNames
from stream_pegasos.learners.files import Arrays, find_model_class, packed_features, unpacked_features
from stream_pegasos.learners.label_policy import Label, Prediction
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.trainer import Examples, Trainer

__all__ = ["TextClassifier"]

if TYPE_CHECKING:

    class ModelOfAnyKind(Model, base.MiniBatchClassifier):  # type: ignore[misc]
        """A base class for type checkers, which see classes only. River asks instances, of the classifier's kind."""
else:
    ModelOfAnyKind = Model


class TextClassifier(ModelOfAnyKind):
    """Text classifier: features and a classifier that run together in the engine.

    The defaults are the most accurate model that we know for a single pass over a stream of text in any language:
    `TextFeatures` with an `AdaptiveClassifier`. tests/benchmarks/accuracy.py compares it with other tools, and with
    itself without each of its parts.

    With other parts, the results are those of their pipeline, up to rounding, but no Python objects are created for
    features. The `_many` methods take any iterable of texts.

    There is one warning about fields that the features read but none of 500 messages has; a message that is predicted
    and then learned counts twice.

    Parameters
    ----------
    features : Features or None, default None
        The `TextFeatures` or `HashedBagOfWords` that turn texts into features; or a sum of features that read fields of
        a message. `None` is `TextFeatures()`.
    classifier : classifier of this package or None, default None
        The classifier that learns from the features: an `AdaptiveClassifier`, `PegasosClassifier`, `OrdinalClassifier`,
        `MultiLabelClassifier` or `KernelPegasosClassifier`. `None` is `AdaptiveClassifier()`. For River, the model has
        the kind of this classifier: for one label per example, or for several.

    Attributes
    ----------
    weights, intercept : float or dict
        As for the classifier; the names of features are their hashed columns.
    n_iterations : int
        As for the classifier.
    classes : tuple
        As for the classifier.
    names : FeatureNames or None
        The words of the heaviest features; `None` before `keep_names`.

    Raises
    ------
    TypeError
        If a part has another class.
    ValueError
        If there are vectors, but the classifier cannot use them.

    Examples
    --------
    >>> from stream_pegasos import HashedBagOfWords, PegasosClassifier, TextClassifier
    >>> model = TextClassifier()
    >>> stream = [("see you at lunch", "ham"), ("cheap pills for you", "spam"), ("lunch at noon?", "ham")]
    >>> for text, label in stream:
    ...     model.learn_one(text, label)
    >>> model.predict_one("pills, cheap pills")
    'spam'
    >>> model.predict_proba_one("pills, cheap pills")["spam"] > 0.6
    True
    >>> for word, contribution in model.explain_one("cheap lunch?", limit=2).items():
    ...     print(f"{contribution:+.2f} {word}")
    +0.86 cheap
    -0.78 lunch

    Pegasos as published, on pairs of words:

    >>> model = TextClassifier(features=HashedBagOfWords(ngram_range=(1, 2)), classifier=PegasosClassifier(l2=1e-3))
    >>> model.predict_learn_many(*zip(*stream)).scores
    array([ 0.        , -4.51753951, -0.33942812])

    Each message is predicted before it is learned:

    >>> from river import evaluate, metrics
    >>> from stream_pegasos.streams import synthetic
    >>> evaluate.progressive_val_score(synthetic(n=2_000, seed=1), TextClassifier(), metrics.Accuracy()).get() > 0.95
    True
    """

    def __init__(self, features: Features | None = None, classifier: Classifier | None = None) -> None:
        self.features: Features = TextFeatures() if features is None else features
        self.classifier = AdaptiveClassifier() if classifier is None else classifier
        if not isinstance(self.features, Features):
            raise TypeError(must_be("features", "features of this package", type_name(features)))
        kind = type(self.classifier)  # not isinstance: in River it looks into pipelines
        if not issubclass(kind, Classifier):
            raise TypeError(
                must_be("classifier", "a classifier over feature dicts, as AdaptiveClassifier()", type_name(classifier))
            )
        if self.vector_source is not None and Capability.VECTORS not in self.capabilities:
            raise ValueError(
                f"{type(self.classifier).__name__} has no use for vectors: they need an AdaptiveClassifier, or an "
                "OrdinalClassifier or MultiLabelClassifier made with one"
            )
        self.names: FeatureNames | None = None
        self._begin()

    def _begin(self) -> None:
        """Set the attributes of this process, which are no part of the model."""
        self.lock = self.classifier.lock
        self.trainer.set_scaler(None)  # features of messages are no numbers of a table
        # Features of a single field refuse a message without it, so they need no warning.
        self.fields_met = FieldsMet(self.features.fields if isinstance(self.features, FeatureUnion) else ())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "fields_met"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.classifier.capabilities | {
            Capability.TEXTS,
            *([Capability.VECTORS] if isinstance(self.classifier.inner, AdaptiveClassifier) else []),
        }

    @property
    def vector_source(self) -> VectorSource | None:
        """The source of a message's vector, if there is one: a table of word vectors, or an encoder."""
        return self.features.vector_source

    @property
    def parts(self) -> dict[str, base.Base]:
        return {"features": self.features, "classifier": self.classifier}

    @property
    def trainer(self) -> Trainer:
        return self.classifier.trainer

    @property
    def _last_step(self) -> Classifier:
        """The classifier. By this property River finds the kind of a pipeline, so this model has the kind of its
        classifier.
        """
        return self.classifier

    def learn_one(self, x: object, y: object, w: float = 1.0) -> None:
        """Learn from one text.

        Parameters
        ----------
        x : str, dict or, with `MailFeatures`, a mail
            The text; with `features.on`, a dict with this field.
        y : bool, int or str
            The label; for a `MultiLabelClassifier`, a collection of labels.
        w : float, default 1.0
            The weight of the loss on this example, from 0 to 1e30.

        Raises
        ------
        TypeError
            If the text is no str, or the label is no bool, int or str.
        ValueError
            If the weight is out of its range, or if the classifier refuses the label. The model does not change then.
        """
        text = self.features.prepare(x)
        if self.fields_met.lacking:
            self.fields_met.meet([x])
        if self.names is None:
            self.classifier.learn_prepared(self.features.scanner, text, y, w)
            return
        with self.lock:
            self.classifier.learn_prepared(self.features.scanner, text, y, w)
            self._name_features(Examples(self.features.scanner, [text], [y], read_weights(w, 1)), 1)

    def describe(self, descriptions: Descriptions) -> None:
        """Learn the meaning of labels from words, before the first message or later: each text is learned twice, like a
        message. If a message may have several labels, each text is learned once, with a weight of 0.1.

        A new label is known from then on. tests/benchmarks/vectors.py measures the benefit: with many classes, a third
        fewer errors over the first hundreds of messages; names without a meaning do no harm.

        Parameters
        ----------
        descriptions : mapping of label to str, iterable of str or None
            For each label a text, several texts, or `None` for its name, which is split into words at underscores,
            hyphens and capitals. Names are left out, with a warning, if they are numbers, true or false, or differ only
            by numbers. If messages have fields, a text stands for the first field of text.

        Raises
        ------
        TypeError
            If `descriptions` is no mapping of labels to texts, or if messages have no text.
        ValueError
            If a text is blank, or if the classifier refuses a label. The model does not change then.

        Examples
        --------
        >>> from stream_pegasos import TextClassifier
        >>> model = TextClassifier()
        >>> model.describe({"lost_card": None, "refund": ["give me my money back", "Refund not showing up"]})
        >>> model.predict_one("I think I lost my card")
        'lost_card'
        """
        lessons = self.make_lessons(descriptions)
        if lessons.warning is not None:
            warnings.warn(lessons.warning, stacklevel=2)
        self.learn_many(lessons.X, lessons.y, lessons.w)

    def make_lessons(self, descriptions: Descriptions) -> Lessons:
        """The lessons of `describe`: messages and labels as this model takes them."""
        return make_lessons(descriptions, Capability.MULTILABEL in self.capabilities, self.features.make_message)

    def predict_one(self, x: object) -> Prediction:  # type: ignore[override]
        """The predicted label of a text.

        Parameters
        ----------
        x : str, dict or, with `MailFeatures`, a mail
            The text, as for `learn_one`.
        """
        text = self.features.prepare(x)
        if self.fields_met.lacking:
            self.fields_met.meet([x])
        return self.classifier.predict_prepared(self.features.scanner, text)

    def keep_names(self) -> None:
        """Keep the words of the up to 20,000 heaviest features from now on, because hashed features have no names. The
        first 1,000 messages learned are searched for them, and then every sixteenth; a saved model has them, too. So
        some words of messages are stored; the package does this only on request.

        Raises
        ------
        TypeError
            If the classifier has no weights, for example with a kernel.

        Examples
        --------
        >>> from stream_pegasos import TextClassifier
        >>> model = TextClassifier()
        >>> model.keep_names()
        >>> model.learn_many(["cheap pills", "see you at lunch"] * 9, ["spam", "ham"] * 9)
        >>> "pills" in dict(model.names.weights(model))
        True
        """
        if Capability.WEIGHTS not in self.capabilities:
            raise TypeError(f"{type(self.classifier).__name__} has no weights whose names could be kept")
        if self.names is None:
            self.names = FeatureNames()

    def _name_features(self, examples: Examples, n_learned: int) -> None:
        if self.names is not None and n_learned:
            teaching = self.trainer.class_weights.teaching(examples.labels, examples.weights)
            taught = examples.rows if teaching is None else itertools.compress(examples.rows, teaching)
            self.names.learned(self, itertools.islice(taught, n_learned))

    def explain_one(
        self, x: object, label: Label | None = None, limit: int | None = None, against: Label | None = None
    ) -> dict[str, float]:
        """Explain a prediction by the part of the margin that each word of the text adds, largest size first.

        With two classes, it explains the margin of the positive class. With more, it explains the difference between
        the margin of the predicted class and the next best; with ordered classes, the position of the text in their
        order. The values sum to the margin. The part of an n-gram is divided equally among its words, as in the command
        and the web page; `explain_ngrams_one` gives the n-grams. The intercept, if any, has the name `"(intercept)"`.
        In a message of several fields, the name of the field precedes a word. Words with a part of 0 are left out.

        Parameters
        ----------
        x : str, dict or, with `MailFeatures`, a mail
            The text, as for `learn_one`.
        label : bool, int, str or None, default None
            A class whose own margin is explained instead. `None`: as above; if a text may have several labels, the most
            probable label.
        limit : int or None, default None
            The number of words, at least 1: the heaviest; `None` for all.
        against : bool, int, str or None, default None
            A class that `label` is compared with: the margin of `label` above its margin is explained. Two classes have
            one margin.

        Raises
        ------
        TypeError
            If the margin of the classifier is no sum over features, for example with a kernel.
        ValueError
            If a label is not in `classes`, if `against` comes without `label`, if classes are ordered, which cannot be
            explained one by one, or if `limit` is below 1.
        """
        if limit is not None:
            check_integer("limit", limit, 1, 1 << 53)
        ngrams = self.explain_ngrams_one(x, label, against=against).items()
        return dict([*words(ngrams, self.features.texts(x)).items()][:limit])

    def explain_ngrams_one(
        self, x: object, label: Label | None = None, limit: int | None = None, against: Label | None = None
    ) -> dict[str, float]:
        """The part of each n-gram in the margin that `explain_one` explains, largest size first.

        An n-gram with the name `"(intercept)"` is added to the intercept. An n-gram that begins or ends with a space is
        the beginning or the end of a word or run. N-grams in the same column share its part. N-grams with a part of 0
        are left out.

        Parameters
        ----------
        x : str, dict or, with `MailFeatures`, a mail
            The text, as for `learn_one`.
        label : bool, int, str or None, default None
            As for `explain_one`, with the same errors.
        limit : int or None, default None
            The number of columns, at least 1: the heaviest, and those that equal the last of these; `None` for all.
            With a limit, one n-gram stands for all in the same column, with the whole part. A small limit takes a
            fraction of the time.
        against : bool, int, str or None, default None
            As for `explain_one`.
        """
        if Capability.EXPLAIN not in self.capabilities:
            raise TypeError(must_be("classifier", "a linear one for explain_one", type_name(self.classifier)))
        if limit is not None:
            check_integer("limit", limit, 1, 1 << 53)
        if label is None and against is not None:
            raise ValueError(must_be("against", "None without a label", against))
        encoder, prepared = self.encode_one(x)
        with self.lock:
            contributions, vector_score, intercept = self.trainer.contributions(encoder, prepared, label, against)
        explanation = {INTERCEPT: intercept}
        named = self._named if limit is None else functools.partial(self._heaviest, limit)
        for ngram, value in named(prepared, contributions):
            explanation[ngram] = explanation.get(ngram, 0.0) + value
        for word, value in self.features.vector_contents(prepared, vector_score):
            explanation[word] = explanation.get(word, 0.0) + value
        by_size = sorted(explanation.items(), key=lambda item: (-abs(item[1]), item[0]))
        return {ngram: contribution for ngram, contribution in by_size if contribution}

    def _named(self, prepared: Any, contributions: Mapping[int, float]) -> Iterator[tuple[str, float]]:
        """The part of each n-gram, given the parts of columns."""
        columns: dict[int, list[tuple[str, float]]] = {}
        for ngram, column, value in self.features.contents(prepared):
            columns.setdefault(column, []).append((ngram, value))
        for column, contribution in contributions.items():
            if contribution == 0.0:
                continue  # also if the counts in a column cancel out
            total = sum(value for _, value in columns[column])
            for ngram, value in columns[column]:
                yield ngram, contribution * value / total

    def _heaviest(
        self, limit: int, prepared: object, contributions: Mapping[int, float]
    ) -> Iterator[tuple[str, float]]:
        sizes = heapq.nlargest(limit, map(abs, contributions.values()))
        least = sizes[-1] if len(sizes) == limit else 0.0
        columns = [column for column, value in contributions.items() if value and abs(value) >= least]
        for column, ngram in self.features.names(prepared, columns).items():
            yield ngram, contributions[column]

    def encode_one(self, x: object) -> tuple[Encoder, Any]:
        text = self.features.prepare(x)
        if self.fields_met.lacking:
            self.fields_met.meet([x])
        return self.features.scanner, text

    def encode_many(self, X: object, threads: int = 1) -> tuple[Encoder, Inputs]:
        if not self.fields_met.lacking:
            return self.features.scanner, self.features.prepare_many(X, threads)
        messages = [*self.features.messages(X)]
        prepared = self.features.prepare_many(messages, threads)
        self.fields_met.meet(messages)
        return self.features.scanner, prepared

    def _more_tags(self) -> set[str]:
        return set() if self.features.fields else {base.tags.TEXT_INPUT}

    def to_state(self, lazy: bool = False) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        arrays, names, classifier = self.classifier.to_state(lazy)
        kind = type(self.classifier).__name__
        values = {**packed_features(self.features), "kind": kind, "classifier": classifier}
        if self.names is not None:
            values["names"] = self.names.get_state()
        return arrays, names, values

    @classmethod
    def from_state(cls, arrays: Arrays, names: list[Any], values: dict[str, Any]) -> Self:
        classifier = find_model_class(values["kind"]).from_state(arrays, names, values["classifier"])
        model = cls(unpacked_features(values, values["find_vectors"]), classifier)
        n, n_known = model.vector_source.n_dimensions if model.vector_source else 0, len(arrays.get("vector_mean", ()))
        if n_known not in (0, n):
            raise ValueError(f"the classifier knows vectors of {n_known} numbers, but those of messages have {n}")
        if "names" in values:
            model.keep_names()
            assert model.names is not None
            model.names.set_state(values["names"])
        return model

    def vectors_met(self) -> WordVectors:
        table = self.vector_source
        if not isinstance(table, WordVectors):
            return super().vectors_met()
        with self.lock:
            words_met = table.only(*self.features.scanner.kept_vectors())
        if not len(words_met.kept[0]):
            raise ValueError(
                "this model has met no word since it was made, copied, merged or loaded, so it has no vectors to "
                "save; let it predict messages with the words that matter first"
            )
        return words_met
