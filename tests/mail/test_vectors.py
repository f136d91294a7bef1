"""Models of mails whose files name their vectors: each road on which such a model is loaded takes the name anew."""

import asyncio
import io
import sys

import pytest
from spamd_client import SPAM, answering, exchange, request

from stream_pegasos import MailFeatures, TextClassifier, cli, load
from stream_pegasos.features.vectors import VectorsError
from stream_pegasos.mail.imap_ledger import Ledger
from stream_pegasos.mail.users import FILE
from stream_pegasos.mail.verdict import Verdicts


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("prize 1 0.5\nlunch -1 0.25\n", encoding="utf-8")
    return path


@pytest.fixture
def model(table):
    model = TextClassifier(MailFeatures(vectors=table))
    for i in range(60):
        model.learn_many([SPAM, b"Subject: lunch\n\nat noon %d" % i], ["spam", "ham"])
    return model


def test_users_have_the_vectors_of_the_common_model(model, tmp_path):
    (tmp_path / "users" / "ann").mkdir(parents=True)
    tell = request("TELL", SPAM, "User: ann", "Message-class: spam", "Set: local")

    async def asked(sent):
        async with answering(model, folder=tmp_path / "users") as service:
            return await exchange(service.port, sent)

    assert b"DidSet: local" in asyncio.run(asked(tell))
    with pytest.raises(VectorsError):
        load(tmp_path / "users" / "ann" / FILE)
    assert b"Spam: True" in asyncio.run(asked(request("CHECK", SPAM, "User: ann")))  # of a file that was written before


def test_a_ledger_takes_the_vectors(model, table, tmp_path):
    Ledger(tmp_path / "m", lambda: model, Verdicts()).close()
    with pytest.raises(VectorsError, match="name it to allow it"):
        Ledger(tmp_path / "m", None, Verdicts())
    again = Ledger(tmp_path / "m", None, Verdicts(), vectors=str(table))
    assert again.model.n_learned == model.n_learned
    again.close()


def test_the_filter_takes_the_vectors(model, table, tmp_path, monkeypatch, capfd):
    model.save(tmp_path / "m")
    for options, said in ([], b""), (["--vectors", str(table)], b"X-Spam-Flag: YES\n"):
        output = io.BytesIO()
        monkeypatch.setattr(sys, "argv", ["stream-pegasos", "mail-filter", str(tmp_path / "m"), *options])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SPAM), "utf-8"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "utf-8", write_through=True))
        monkeypatch.setattr("gc.disable", lambda: None)
        with pytest.raises(SystemExit):
            cli.main()
        assert output.getvalue().startswith(said) and output.getvalue().endswith(SPAM)
        assert ("name it to allow it" in capfd.readouterr().err) is not bool(options)
