"""The command `run` among others that share a topic."""

import pytest
from commands import stream, write_jsonl

from stream_pegasos import KernelPegasosClassifier, TextClassifier
from stream_pegasos.common.file_lock import FileLock

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

RUN = "run kafka://127.0.0.1:1/mail?group=readers --output none"


def test_what_does_not_go_with_sharing(here, fails):
    for options, reason in (
        ("--share . --checkpoint m", "whose folder has the checkpoint"),
        ("--share . --checkpoint-every 5s", "whose folder has the checkpoint"),
        ("--share . --label-topic labels.jsonl", "another run may have the message"),
        ("--share . --limit 5", "does not go with --share"),
        ("--share nowhere", "must be a folder, got nowhere"),
        ("--merge-every 5s", "needs --share"),
    ):
        assert reason in fails(f"{RUN} {options}", code=2)
    write_jsonl("mail.jsonl", stream[:1])
    assert "a shared stream must be one as kafka:" in fails("run mail.jsonl --output none --share .")


def test_a_folder_whose_model_cannot_be_shared(here, fails):
    TextClassifier(classifier=KernelPegasosClassifier()).save("model")
    run = RUN.replace("run", "run model")
    assert "a model of KernelPegasosClassifier cannot be merged" in fails(f"{run} --share .")


def test_no_two_runs_write_one_file_of_answers(here, fails):
    """The second one would cut the answers of the first."""
    lock = FileLock("answers.csv")
    lock.claim()
    assert "answers.csv is in use: another process writes it" in fails(
        f"{RUN.replace('none', 'answers.csv')} --share ."
    )
    lock.release()
