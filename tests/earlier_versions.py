"""Write small files of each kind as this version saves them: python tests/earlier_versions.py tests/saved_models/NEW

Later versions have to load them, which tests/test_earlier_versions.py holds.
"""

import asyncio
import json
import sys
from pathlib import Path

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.mail.imap_ledger import LabelledMail, Ledger
from stream_pegasos.mail.verdict import Verdicts
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.live_learner import LiveLearner

SPAM = "Message-ID: <s{0}@x>\nFrom: a{0}@win.example\nSubject: prize\n\nClaim your free prize no {0} now\n"
HAM = "Message-ID: <h{0}@x>\nFrom: b{0}@work.example\nSubject: lunch\n\nShall we have lunch at noon, {0}?\n"
MAILS = [(text.format(number).encode(), label) for number in range(4) for text, label in ((SPAM, "spam"), (HAM, "ham"))]
TEXTS = [("win a prize", "spam"), ("lunch at noon?", "ham"), ("a prize for you", "spam"), ("the agenda", "ham")]
ASKED = ["a prize", "lunch", "the prize at noon", "漢字 😀", ""]


def of_words():
    model = TextClassifier()
    for text, label in TEXTS:
        model.learn_one(text, label)
    return model


def of_mails():
    model = TextClassifier(MailFeatures())
    for mail, label in MAILS:
        model.learn_one(mail, label)
    return model


def served(path, model=None):
    """A service that keeps its checkpoint there, and goes on from it."""
    checkpoints = Checkpoints(path, seconds=10_000)
    resumed, progress = checkpoints.resume() or (model, None)
    return LiveLearner(resumed, checkpoints, progress)


def watched(path):
    """The model and the memory of a mailbox there."""
    return Ledger(path, of_mails, Verdicts())


def write(folder):
    folder.mkdir(parents=True)
    model = of_words()
    model.save(folder / "words.safetensors")
    answers = {text: model.predict_proba_one(text) for text in ASKED}
    (folder / "words.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    of_mails().save(folder / "mails.safetensors")
    ledger = watched(folder / "imap.safetensors")
    labelled = [LabelledMail(mail, f"key {number}", label) for number, (mail, label) in enumerate(MAILS)]
    ledger.record([["owned", "ann at mail.example.org"], ["looked", "INBOX", 1, 9]], labelled)
    ledger.close()
    service = served(folder / "serve.safetensors", of_words())
    service.start()
    asyncio.run(service.learn(TEXTS[:2], ["in the checkpoint", 17]))
    service.close()
    service = served(folder / "serve.safetensors")
    asyncio.run(service.learn(TEXTS[2:], ["in the journal", 18]))  # and the process is killed


if __name__ == "__main__":
    write(Path(sys.argv[1]))
