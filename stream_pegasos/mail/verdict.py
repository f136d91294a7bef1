"""Verdicts on mails: spam, ham, or unsure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from stream_pegasos.common.checks import check_share, must_be
from stream_pegasos.evaluation.blocks import predict_block
from stream_pegasos.evaluation.predicted import MOST_PROBABLE
from stream_pegasos.features.message import Fields, Message
from stream_pegasos.learners.capabilities import Capability
from stream_pegasos.learners.explanations import INTERCEPT, phrases
from stream_pegasos.learners.model import Model
from stream_pegasos.learners.text import TextClassifier
from stream_pegasos.mail_text.features import OF_SOURCE, Mail
from stream_pegasos.streams import Answer

__all__ = [
    "HAM",
    "LEAST_LEARNED",
    "REQUIRED",
    "SPAM",
    "UNSURE",
    "MailModelError",
    "Verdict",
    "Verdicts",
    "make_message",
]

SPAM, HAM, UNSURE = "spam", "ham", "unsure"
# No mail is called spam by a model that has learned fewer mails than this.
LEAST_LEARNED = 100
# The score from which on a mail is spam, as SpamAssassin has it.
REQUIRED = 5.0
LARGEST_LOG_ODDS = 50.0
N_WORDS = 5
N_NAMED = 300  # n-grams; words and phrases are made of those that are not of the source


class MailModelError(ValueError):
    """The model cannot tell spam from ham in mails."""


class Verdict(NamedTuple):
    """The verdict on a mail."""

    outcome: str
    probability: float | None  # of spam; `None` as long as the model knows no answer
    score: float  # spam has at least `REQUIRED`; one more is e times the odds
    words: tuple[tuple[str, float], ...] = ()  # that decided, with what each adds to the margin of spam, largest first
    reason: str | None = None  # why a mail that is probably spam is not called so

    @property
    def is_spam(self) -> bool:
        return self.outcome == SPAM


@dataclass(frozen=True)
class Verdicts:
    """Calls mails spam, ham or unsure, by the predictions of a model.

    A mail is spam if its probability is at least a threshold and the model itself predicts the label: so never beyond
    the model's limit of false positives. It is never spam before the model has learned `LEAST_LEARNED` mails, of both
    labels. Below `ham_threshold` it is ham, and between the two unsure. Thresholds are from 0 to 1.
    """

    spam_threshold: float = 0.9
    ham_threshold: float = 0.1

    def __post_init__(self) -> None:
        check_share("spam_threshold", self.spam_threshold)
        check_share("ham_threshold", self.ham_threshold)
        if self.ham_threshold > self.spam_threshold:
            expected = f"at most spam_threshold, {self.spam_threshold}"
            raise ValueError(must_be("ham_threshold", expected, self.ham_threshold))

    def check(self, model: Model) -> TextClassifier:
        """The model, which must judge mails; a MailModelError if it reads none, or has other labels."""
        if not isinstance(model, TextClassifier) or model.features.mail_field is None:
            raise MailModelError("the model does not read mails; one that does is made by train --spam … --ham …")
        if Capability.MULTILABEL in model.capabilities:
            raise MailModelError("the model may give a mail several labels; spam and ham exclude each other")
        classes = list(model.classes)
        missing = [label for label in (SPAM, HAM) if label not in classes]
        if len(classes) > 1 and missing:
            raise MailModelError(f"the model knows no label {missing[0]!r}; it knows {', '.join(map(repr, classes))}")
        return model

    def on(self, model: TextClassifier, mail: bytes) -> Verdict:
        """The verdict on a mail, with the words that decided."""
        x = make_message(mail, model)
        (answer,) = predict_block(model, [x], []).answers()
        return self.of(model, answer, self.words(model, x))

    def words(self, model: TextClassifier, x: Message) -> list[tuple[str, float]]:
        """What the heaviest words and phrases of a message add to the margin of spam, the largest size first. Pieces of
        the mail's source are none: nobody could read them.
        """
        if Capability.EXPLAIN not in model.capabilities or SPAM not in model.classes:
            return []
        contributions = model.explain_ngrams_one(x, label=SPAM, limit=N_NAMED)
        words = [item for item in contributions.items() if item[0] != INTERCEPT and not item[0].startswith(OF_SOURCE)]
        return [(phrase.name, phrase.value) for phrase in phrases(words, N_WORDS, model.features.texts(x))[0]]

    def of(self, model: TextClassifier, answer: Answer, words: Iterable[tuple[str, float]] = ()) -> Verdict:
        """The verdict on a mail, by the model's answer to it, with the words that decided."""
        probability = self.probability(answer)
        if probability is None or not {SPAM, HAM} <= {*model.classes}:
            return Verdict(UNSURE, None, 0.0, reason="the model does not know spam and ham yet")
        outcome = SPAM if probability >= self.spam_threshold else HAM if probability < self.ham_threshold else UNSURE
        score = REQUIRED + log_odds(probability) - log_odds(self.spam_threshold)
        reason = None
        if outcome == SPAM:
            if model.n_learned < LEAST_LEARNED:
                reason = f"the model has learned {model.n_learned:,} mails; it takes {LEAST_LEARNED:,} to call any spam"
            elif answer.label != SPAM:
                reason = "the model's limit of false positives does not allow it"
        if reason is not None:
            outcome = UNSURE
        # Rounded it must not be spam if it is not.
        score = round(max(score, REQUIRED), 1) if outcome == SPAM else min(round(score, 1), REQUIRED - 0.1)
        return Verdict(outcome, probability, score, tuple(words)[:N_WORDS], reason)

    def probability(self, answer: Answer) -> float | None:
        """The probability of spam in an answer, or the most that it may be; `None` if there is none."""
        if answer.label is None:
            return None
        if answer.probabilities is not None:
            listed: dict[Any, float] = {**answer.probabilities}
            # Of many labels the most probable are listed; no other is more probable than the last of them.
            most = min(listed.values()) if len(listed) == MOST_PROBABLE else 0.0
            return float(listed.get(SPAM, most))
        probability: Any = answer.probability
        return float(probability if answer.label == SPAM else 1.0 - probability)


def log_odds(probability: float) -> float:
    if not 0.0 < probability < 1.0:
        return math.copysign(LARGEST_LOG_ODDS, probability - 0.5)
    return max(min(math.log(probability / (1.0 - probability)), LARGEST_LOG_ODDS), -LARGEST_LOG_ODDS)


def make_message(mail: bytes, model: TextClassifier) -> Message:
    """A mail as a message of a model, parsed once for all its predictions."""
    text = Mail(mail, "latin-1")
    field = model.features.mail_field
    return text if model.features.takes_text or field is None else Fields({field: text})
