"""Estimators for one example at a time: the shortest way from River's protocol to a learner."""

from __future__ import annotations

from typing import Any, Protocol

from stream_pegasos.common.locks import Lock
from stream_pegasos.engine.pure.driver import Learner, Margins
from stream_pegasos.engine.pure.encoders import Encoder, Vocabulary


class LabelNumbers(Protocol):
    """A mapping from labels to their numbers, by `find_target`. `choices` has the prediction for each number; the last
    is for no class.
    """

    choices: tuple[Any, ...]

    def find_target(self, y: object) -> float | None: ...


class Trainer(Protocol):
    """What learns and scores: the parts for the shortest way, and methods for all other examples."""

    @property
    def lock(self) -> Lock: ...
    @property
    def learner(self) -> Learner: ...
    @property
    def direct(self) -> Learner | None:
        """The learner, if an example may go straight to it."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def labels(self) -> LabelNumbers: ...
    @property
    def by_margin(self) -> bool:
        """Whether the label with the largest margin is predicted, and examples need no scaling."""

    def learn_row(self, encoder: Encoder, x: object, y: object, w: float) -> None: ...
    def forget_names(self) -> None:
        """Forget names; called when there are far more names than features."""

    def encode_margins(self, encoder: Encoder, x: object) -> Margins: ...
    def label_of(self, margins: Margins) -> Any: ...


class OneByOne:
    """The base class of estimators over feature dicts."""

    @property
    def trainer(self) -> Trainer:
        raise NotImplementedError

    def learn_one(self, x: object, y: object, w: float = 1.0) -> None:
        """Learn from one example.

        Parameters
        ----------
        x : dict
            The features: int, str, bool or tuples of those, each with a finite number of at most 1e45 in size. `None`,
            NaN or another missing value is refused: leave the feature out, or fill it in by `StatImputer` of River.
        y : bool, int or str; for a `MultiLabelClassifier` a collection of these, or a dict
            The label: bool, int or str.
        w : float, default 1.0
            What the loss on this example counts, from 0 to 1e30.

        Raises
        ------
        TypeError
            If a feature's name, a value or the label is of no such type.
        ValueError
            If a value is NaN or infinite, the weight is out of its range, or the label is none that the model takes.
            The model is then as it was before.
        """
        self.learn_prepared(self.trainer.vocabulary, x, y, w)

    def predict_one(self, x: object) -> Any:
        """The label of `x`; `None` before anything is learned.

        Parameters
        ----------
        x : dict
            The features, as for `learn_one`; those never learned count nothing.
        """
        return self.predict_prepared(self.trainer.vocabulary, x)

    # Prepared inputs, for any encoder.

    def learn_prepared(self, encoder: Encoder, x: object, y: object, w: float = 1.0) -> None:
        trainer = self.trainer
        with trainer.lock:
            target, learner = trainer.labels.find_target(y), trainer.direct
            if target is None or w != 1.0 or learner is None:
                trainer.learn_row(encoder, x, y, w)
            elif learner.learn(encoder, x, target, 1.0):
                trainer.forget_names()

    def predict_prepared(self, encoder: Encoder, x: object) -> Any:
        trainer = self.trainer
        with trainer.lock:
            if trainer.by_margin:
                return trainer.labels.choices[trainer.learner.predict(encoder, x)]
            return trainer.label_of(trainer.encode_margins(encoder, x))
