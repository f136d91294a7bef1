"""What is said of a mail, by what a model predicts."""

import math

import pytest

from stream_pegasos import AdaptiveClassifier, MailFeatures, TextClassifier
from stream_pegasos.learners.explanations import phrases
from stream_pegasos.mail.verdict import LEAST_LEARNED, MailModelError, Verdicts
from stream_pegasos.streams import Answer

SPAM_MAIL, HAM_MAIL = b"Subject: prize\n\nClaim your free prize now", b"Subject: lunch\n\nShall we have lunch at noon?"


@pytest.mark.parametrize("probability", [0.0, 0.01, 0.0999999, 0.1, 0.5, 0.8999999, 0.9, 0.99, 1.0])
def test_thresholds_and_scores(mail_model, probability):
    """A score of 5 and more is spam, as for SpamAssassin; one more is e times the odds."""
    answer = Answer(None, "ham", 1.0 - probability)
    if probability > 0.5:
        answer = Answer(None, "spam", probability)
    verdict = Verdicts(0.9, 0.1).of(mail_model, answer)
    p = 1.0 - answer.probability if answer.label == "ham" else probability
    assert verdict.outcome == ("spam" if p >= 0.9 else "ham" if p < 0.1 else "unsure")
    assert (verdict.score >= 5.0) == verdict.is_spam
    if 0.0 < p < 0.9:
        expected = 5.0 + math.log(p / (1.0 - p)) - math.log(9.0)
        assert verdict.score == pytest.approx(min(expected, 4.9), abs=0.051)


def test_words_that_decided(mail_model):
    verdict = Verdicts().on(mail_model, SPAM_MAIL)
    explained = mail_model.explain_ngrams_one(SPAM_MAIL, label="spam")
    words = [(word, value) for word, value in explained.items() if not word.startswith(("(intercept)", "source: "))]
    expected = [phrase[:2] for phrase in phrases(words, 5, mail_model.features.texts(SPAM_MAIL))[0]]
    assert verdict.is_spam and [word for word, _ in verdict.words] == [word for word, _ in expected]
    assert [value for _, value in verdict.words] == pytest.approx([value for _, value in expected])
    assert Verdicts().on(mail_model, HAM_MAIL).outcome == "ham"


def test_a_model_that_has_learned_too_little_calls_nothing_spam():
    model = TextClassifier(MailFeatures())
    assert Verdicts().on(model, SPAM_MAIL).outcome == "unsure"
    for n in range(LEAST_LEARNED + 1):
        verdict = Verdicts(0.6).on(model, SPAM_MAIL)
        assert verdict.is_spam == (n == LEAST_LEARNED)
        assert verdict.score >= 5.0 or n < LEAST_LEARNED
        model.learn_one(*((HAM_MAIL, "ham") if n % 2 else (SPAM_MAIL, "spam")))
    assert verdict.reason is None


def test_one_label_alone_decides_nothing():
    model = TextClassifier(MailFeatures())
    for _ in range(200):
        model.learn_one(SPAM_MAIL, "spam")
    assert Verdicts().on(model, SPAM_MAIL).outcome == "unsure"


def test_spam_is_ham_only_where_its_own_probability_says_so():
    """Also where many labels are more probable, so that an answer does not list it."""
    others = [f"topic{i}" for i in range(12)]
    model = TextClassifier(MailFeatures())
    model.learn_many([b"Subject: x\n\nword"] * 310, [*others, *others, "ham", *others, "spam"] * 8 + others[:6])
    probability = model.predict_proba_one(b"Subject: x\n\nword")["spam"]
    verdict = Verdicts(0.9, probability / 2).on(model, b"Subject: x\n\nword")
    assert verdict.outcome == "unsure" and verdict.probability >= probability


def test_never_beyond_the_limit_of_false_positives():
    """The model withholds the label, whatever the probability."""
    model = TextClassifier(MailFeatures(), AdaptiveClassifier(pos_label="spam", max_false_positive_rate=1e-4))
    for i in range(150):
        model.learn_one(SPAM_MAIL + b" %d" % i, "spam")
        model.learn_one(HAM_MAIL + b" %d" % i, "ham")
    verdict = Verdicts().on(model, SPAM_MAIL)  # it would need 500 mails of ham
    assert verdict.outcome == "unsure" and verdict.probability > 0.9 and verdict.score < 5.0
    assert "limit of false positives" in verdict.reason


def test_models_that_cannot_be_asked():
    several = TextClassifier(MailFeatures())
    several.learn_many([SPAM_MAIL, HAM_MAIL], ["junk", "ham"])
    for model, why in ((TextClassifier(), "does not read mails"), (several, "no label 'spam'")):
        with pytest.raises(MailModelError, match=why):
            Verdicts().check(model)
    for wrong in ({"spam_threshold": 1.5}, {"ham_threshold": 0.95}):
        with pytest.raises(ValueError):
            Verdicts(**wrong)
