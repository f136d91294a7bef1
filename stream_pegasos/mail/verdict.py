"""Verdicts on mails: spam, ham, or unsure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from stream_pegasos.blocks.blockwise import predict_block
from stream_pegasos.blocks.predicted import MOST_PROBABLE
from stream_pegasos.common.checks import check_share
from stream_pegasos.common.errors import must_be
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
# A model that has learned fewer mails calls no mail spam.
LEAST_LEARNED = 100
# The score from which on a mail is spam, as in SpamAssassin.
REQUIRED = 5.0
LARGEST_LOG_ODDS = 50.0
N_WORDS = 5
N_NAMED = 300  # n-grams; those of the mail's source are left out of words and phrases


class MailModelError(ValueError):
    """The model cannot distinguish spam and ham in mails."""


class Verdict(NamedTuple):
    """The verdict on a mail."""

    outcome: str
    probability: float | None  # of spam; `None` while the model knows no answer
    score: float  # spam has at least `REQUIRED`; a difference of 1 is a factor e of the odds
    words: tuple[tuple[str, float], ...] = ()  # the deciding ones, with their contributions to the margin of spam
    reason: str | None = None  # why a probable spam mail is not called spam

    @property
    def is_spam(self) -> bool:
        return self.outcome == SPAM


@dataclass(frozen=True)
class Verdicts:
    """Calls mails spam, ham or unsure, by the predictions of a model.

    A mail is spam if its probability is at least a threshold and the model itself predicts the label. So the model's
    limit of false positives always holds. A mail is never spam before the model has learned `LEAST_LEARNED` mails, with
    both labels. Below `ham_threshold` a mail is ham, and between the two thresholds unsure. Thresholds are from 0 to 1.
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
        """The model, which must judge mails; a MailModelError if it does not read mails, or has other labels."""
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
        """The contributions of the heaviest words and phrases to the margin of spam, the largest size first. Pieces of
        the mail's source are left out, because people cannot read them.
        """
        if Capability.EXPLAIN not in model.capabilities or SPAM not in model.classes:
            return []
        contributions = model.explain_ngrams_one(x, label=SPAM, limit=N_NAMED)
        words = [item for item in contributions.items() if item[0] != INTERCEPT and not item[0].startswith(OF_SOURCE)]
        return [(phrase.name, phrase.value) for phrase in phrases(words, N_WORDS, model.features.texts(x))[0]]

    def of(self, model: TextClassifier, answer: Answer, words: Iterable[tuple[str, float]] = ()) -> Verdict:
        """The verdict on a mail from the model's answer to it, with the words that decided."""
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
        # A mail that is not spam must not reach the score of spam by rounding.
        score = round(max(score, REQUIRED), 1) if outcome == SPAM else min(round(score, 1), REQUIRED - 0.1)
        return Verdict(outcome, probability, score, tuple(words)[:N_WORDS], reason)

    def probability(self, answer: Answer) -> float | None:
        """The probability of spam in an answer, or its upper bound; `None` if there is none."""
        if answer.label is None:
            return None
        if answer.probabilities is not None:
            listed: dict[Any, float] = {**answer.probabilities}
            # If there are many labels, the answer lists the most probable; the others are at most as probable as the
            # last one.
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
