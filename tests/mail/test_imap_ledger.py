"""What is remembered of a mailbox, beside its model: bounded, and kept by later versions."""

from threading import Lock

import pytest

pytest.importorskip("lxml", reason="lxml is not installed")

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.mail.imap_ledger import LabelledMail, Ledger
from stream_pegasos.mail.imap_memory import INBOX, JUNK, Memory
from stream_pegasos.mail.verdict import Verdicts, make_message
from stream_pegasos.mail_text.ids import mail_id
from stream_pegasos.runtime.journal import Journal


def test_the_memory_is_bounded_and_comes_back():
    memory = Memory(window=3)
    for number in range(9):
        memory.apply(["know", str(number), number % 2 == 1, "", number])
    memory.apply(["know", "7", False, "ham", 0, "digest of 7"])
    memory.apply(["looked", "INBOX", 4, 9])
    memory.apply(["intend", 8, "8"])
    assert [*memory.mails] == ["6", "8", "7"]
    again = Memory(window=3)
    again.set_state(memory.get_state())
    assert vars(again) == vars(memory)
    assert again.asks(INBOX, "5") == "judge" and again.asks(JUNK, "7") == "learn spam"
    for state in ("", "{}", "[]", "[1,2,3,4,5]", "[" * 9_999, None, '["a", [[1]], {}, [], {}]'):
        with pytest.raises(ValueError, match="mailbox"):
            again.set_state(state)


A, B, C = (b"Message-ID: %s\nSubject: spam\n\n" % name for name in (b"a", b"b", b"c"))
BY_KEY = '["ann", [["a", true, "spam", 7], ["b", false, "", 0]], {"Junk": [1, 8]}, [[3, "b"]], {}]'
BY_ID = f'["ann", [["a", true, 7], ["b", false, 0]], {{"Junk": [1, 8]}}, [[3, "b"]], {{}}, [["{mail_id(A)}", "spam"]]]'


def outcomes(ledger, labelled):
    answers = ledger.record([], labelled)
    return [(answer.correction or "learned") if answer.learned else "known" for answer in answers]


@pytest.mark.parametrize("memory, of_journal", [(BY_KEY, []), (BY_ID, [mail_id(C)])], ids=["by key", "by id"])
def test_what_earlier_versions_remembered_is_kept(tmp_path, memory, of_journal):
    """What was learned then is not learned again, and corrected by two steps; also what stands in the journal."""
    path, model = tmp_path / "m", TextClassifier(MailFeatures())
    model.learn_one(A, "spam")
    journal = Journal(path, Lock())
    model.snapshot({"imap": memory, "journal": journal.rotate()}).write(path)
    entry = (make_message(C, model), "ham", 1.0, ["know", "c", False, "ham", 0, *of_journal])
    journal.learn([entry, ("", None, 0.0, ["know", "d", True, "spam", 9, "d"]), ("", None, 0.0, ["settle", 3])])
    journal.close()
    for _ in range(2):
        ledger = Ledger(path, None, Verdicts())
        assert ledger.memory.mails == {"a": (True, 7), "b": (False, 0), "c": (False, 0), "d": (True, 9)}
        assert ledger.memory.pending == {} and ledger.model.n_learned == 2
        ledger.close()
    ledger = Ledger(path, None, Verdicts())
    again = [LabelledMail(A, "a", "spam"), LabelledMail(C, "c", "ham"), LabelledMail(B, "b", "spam")]
    assert outcomes(ledger, again) == ["known", "known", "learned"] and ledger.model.n_learned == 3
    assert outcomes(ledger, [LabelledMail(A, "a", "ham")]) == ["taught anew"]
    n_learned = ledger.model.n_learned
    assert 4 <= n_learned <= 6
    ledger.learning.close(last=False)
    ledger = Ledger(path, None, Verdicts())
    assert outcomes(ledger, [LabelledMail(A, "a", "ham"), *again[1:]]) == ["known"] * 3
    assert ledger.model.n_learned == n_learned
    ledger.close()


def test_a_ledger_that_is_not_kept_sees_all_and_writes_nothing(tmp_path):
    def make():
        return TextClassifier(MailFeatures())

    ledger = Ledger(tmp_path / "m", make, Verdicts())
    ledger.record([["settle", 1]], [LabelledMail(A, "a", "spam")])
    ledger.close()
    ledger = Ledger(tmp_path / "m", make, Verdicts())
    ledger.record([["intend", 7, "b"]], [LabelledMail(B, "b", "ham")])
    ledger.learning.close(last=False)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for _ in range(2):
        ledger = Ledger(tmp_path / "m", None, Verdicts(), is_kept=False)
        assert ledger.memory.pending == {7: "b"} and ledger.model.n_learned == 2
        assert outcomes(ledger, [LabelledMail(B, "b", "ham"), LabelledMail(C, "c", "ham")]) == ["known", "learned"]
        ledger.close()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
