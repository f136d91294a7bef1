"""What an earlier version saved loads, predicts what it predicted then, and learns on."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("lxml", reason="lxml is not installed")
pytest.importorskip("msgspec", reason="msgspec is not installed")

from earlier_versions import MAILS, TEXTS, served, watched

from stream_pegasos import load
from stream_pegasos.mail.imap_ledger import LabelledMail
from stream_pegasos.mail_text.ids import mail_id

FOLDERS = sorted((Path(__file__).parent / "saved_models").iterdir())


@pytest.fixture(params=FOLDERS, ids=[folder.name for folder in FOLDERS])
def folder(request, tmp_path):
    return shutil.copytree(request.param, tmp_path / "saved")


def test_a_model_of_words_gives_the_answers_of_then(folder):
    model = load(folder / "words.safetensors")
    for text, answers in json.loads((folder / "words.json").read_text("utf-8")).items():
        assert model.predict_proba_one(text) == pytest.approx(answers, abs=1e-6)


@pytest.mark.parametrize("name", ["words", "mails"])
def test_numbers_stay_what_they_were(folder, name):
    features = load(folder / f"{name}.safetensors").features
    assert features.mask_digits is True
    assert features.transform_one("code 404") == features.transform_one("code 500")
    assert type(features)().transform_one("code 404") != type(features)().transform_one("code 500")


def test_a_frozen_model_is_refused():
    path = FOLDERS[0] / "frozen.safetensors"
    with pytest.raises(ValueError) as raised:
        load(path)
    assert str(raised.value) == f"{path} was made by freeze of 0.2; save the model itself"


def test_a_model_of_words_learns_on(folder):
    model = load(folder / "words.safetensors")
    before = model.predict_proba_one("the prize")["ham"]
    model.learn_one("the prize", "ham")
    assert model.n_learned == len(TEXTS) + 1 and model.predict_proba_one("the prize")["ham"] > before


def test_a_model_of_mails_knows_spam_and_learns_on(folder):
    model = load(folder / "mails.safetensors")
    assert [model.predict_one(mail) for mail, _ in MAILS] == [label for _, label in MAILS]
    model.learn_many([mail for mail, _ in MAILS], ["spam"] * len(MAILS))
    assert model.n_learned == 2 * len(MAILS)


def test_a_service_goes_on_from_its_checkpoint_and_its_journal(folder):
    service = served(folder / "serve.safetensors")
    assert (service.n_learned_again, service.model.n_learned) == (2, 2 * len(TEXTS))
    assert service.learned_ids() == ["in the checkpoint", 17, "in the journal", 18]
    service.start()
    again = asyncio.run(service.learn([*TEXTS, ("a prize", "ham")], [*service.learned_ids(), "in the checkpoint"]))
    assert [(answer.learned, answer.correction) for answer in again] == [
        *[(False, None)] * 4,
        (True, "taught anew"),
    ]
    service.close()


def test_a_mailbox_is_remembered_and_learned_from(folder):
    ledger = watched(folder / "imap.safetensors")
    assert ledger.memory.owner == "ann at mail.example.org" and ledger.model.n_learned == 2 * len(MAILS)
    ids, labels = [mail_id(mail) for mail, _ in MAILS], [label for _, label in MAILS]
    assert ledger.learning.ids.compared(ids, labels) == ["known"] * len(MAILS)
    new = (b"Subject: prize\n\nA prize\n", "spam")
    ledger.record([], [LabelledMail(mail, str(number), label) for number, (mail, label) in enumerate([*MAILS, new])])
    assert ledger.learning.n_learned == 1
    ledger.close()


def test_modules_of_long_runs_are_found_by_their_name_of_0_2():
    with pytest.warns(DeprecationWarning, match=r"stream_pegasos\.runtime"):
        from stream_pegasos.operation.active_learning import ActiveLearning
    from stream_pegasos.runtime import active_learning

    assert ActiveLearning is active_learning.ActiveLearning
