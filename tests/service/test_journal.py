"""The journal of a service: what of it is missing, and what does not fit on the disk."""

import os
import re
import shutil

import pytest
from disks import Full
from serving import GOOD, KNOWN, checkpoint, health, killed, learn, not_served, refused, send, serving


def test_a_restored_checkpoint_with_later_journals_is_refused_unless_that_is_allowed(tmp_path):
    path = tmp_path / "model"
    service = killed(path)
    with serving(service) as client:
        for message in KNOWN[:4]:
            learn(client, message)
            checkpoint(service)
            if message["id"] == 0:
                shutil.copy(path, tmp_path / "backup")
        learn(client, KNOWN[4])
    before = sorted(tmp_path.glob("model.journal-*"))
    assert killed(path).learned_ids() == [0, 1, 2, 3, 4]
    os.replace(tmp_path / "backup", path)
    code, reason = not_served("--checkpoint", path)
    assert code == 1 and re.search(
        r"the journal lacks 2 records between model and model\.journal-.*--allow-gap", reason
    )
    with pytest.raises(ValueError, match="lacks 2 records"):
        killed(path)
    assert before == sorted(tmp_path.glob("model.journal-*"))
    again = killed(path, allow_gap=True)
    assert again.learned_ids() == [0, 3, 4]
    checkpoint(again)
    assert killed(path).learned_ids() == [0, 3, 4]


@pytest.mark.parametrize("begun", [False, True])
def test_a_full_disk_is_told_as_long_as_lessons_are_refused(tmp_path, monkeypatch, begun):
    """Although shorter records would fit."""
    service, disk = killed(tmp_path / "model"), Full(700, monkeypatch)
    long = {"text": "word " * 100, "label": "ham"}
    with serving(service) as client:
        if begun:
            learn(client, GOOD)
        else:
            disk.room = 100
        for _ in range(3):
            refused(send(client, "/learn", [long, long]), 503, "No space left on device")
            assert health(client) == health(client) == "the journal fails"
        disk.room = 2_000
        assert health(client) == "ok"
        learn(client, long)
    service.close()
