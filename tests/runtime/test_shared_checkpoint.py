"""Runs that share a stream learn each message once, whatever becomes of them."""

import csv
import threading
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts import Run

from stream_pegasos import AdaptiveClassifier, TextClassifier
from stream_pegasos.cli.answer_formats import AnswerFormat, Output
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.shared_checkpoint import Gain, OvertakenError, SharedCheckpoint
from stream_pegasos.streams import Batch, Example

PARTS = ["0", "1", "2"]
steps = st.tuples(
    st.sampled_from(["take", "take", "learn", "learn", "learn", "exchange", "die", "pause", "race", "damage"]),
    st.integers(0, 2),
    st.sampled_from(PARTS),
    st.integers(1, 5),
)


def word(part, offset):
    return f"{part}:{offset}"


class Peer:
    """A run by hand, which reads parts that it is given; nobody tells it if another one takes them."""

    def __init__(self, folder):
        self.shared = SharedCheckpoint(folder, 1000, 1000.0)
        self.model, self.at, self.n = self.shared.begin(AdaptiveClassifier), {}, 0

    def learn(self, n):
        for part, begin in self.at.items():
            for offset in range(begin, begin + n):
                self.model.learn_one({word(part, offset): 1.0}, offset % 2)
            self.at[part] += n
            self.n += n

    def exchange(self):
        position = {"server": None, "offsets": {**self.at}} if self.at else None
        try:
            self.model = self.shared.exchange(self.model, Gain(position, self.n, self.n))
        except OvertakenError:
            self.model, self.at = self.shared.copy(), {}
        self.n = 0

    def exchange_beside(self, other):
        """Read the file, let another run read and write it, and then write it."""
        beside = SimpleNamespace(**{name: getattr(self.shared.checkpoints, name) for name in ("path", "resume")})
        checkpoints, self.shared.checkpoints = self.shared.checkpoints, beside
        beside.claim = beside.release = lambda: None

        def write(snapshot):
            other.exchange()
            checkpoints.write(snapshot)

        beside.write = write
        self.exchange()
        self.shared.checkpoints = checkpoints

    def take(self, parts):
        self.exchange()
        self.shared.begin_parts()
        offsets = (self.shared.progress["position"] or {"offsets": {}})["offsets"]
        self.at = {part: offsets.get(part, 0) for part in parts}


@given(st.lists(steps, min_size=10, max_size=40))
def test_each_message_is_learned_once(tmp_path_factory, moves):
    """Each has a word of its own. A run may die with what it learned, may read on what another has taken over, and may
    write at the same moment as another one, where the folder has no locks. The newest file may be damaged.
    """
    folder = tmp_path_factory.mktemp("shared")
    peers = [Peer(folder) for _ in range(3)]
    for move, number, part, n in moves:
        peer = peers[number]
        if move == "take":
            parts = {part, *peer.at}
            for other in peers:
                if other is not peer and part in other.at:
                    other.take(other.at.keys() - {part})
            peer.take(parts)
        elif move == "pause":  # in which another one takes its part over
            peers[number - 1].take({part, *peers[number - 1].at})
        elif move == "learn":
            peer.learn(n)
        elif move == "exchange":
            peer.exchange()
        elif move == "damage":
            if (folder / "model.safetensors.previous").exists():
                (folder / "model.safetensors").write_bytes(b"damaged")
        elif move == "race":
            peer.exchange_beside(peers[number - 1])
        else:
            peers[number] = Peer(folder)
    for peer in peers:
        peer.exchange()
    model, progress = Checkpoints(folder / "model.safetensors").resume()
    offsets = (progress["position"] or {"offsets": {}})["offsets"]
    learned = {word(part, offset) for part in offsets for offset in range(offsets[part])}
    assert set(model.weights) == learned
    assert model.n_learned == progress["n_learned"] == progress["n_read"] == len(learned)


class Parts:
    """A source of one part, which the run asks for anew when another one was faster."""

    name = "script"

    def __init__(self, meanwhile):
        self.is_asked, self.meanwhile = threading.Event(), meanwhile

    def batches(self):
        yield self.batch(0, 4)
        self.meanwhile()
        yield self.batch(4, 5)
        assert self.is_asked.wait(60)
        yield self.batch(5, 6)  # which was read before
        begin = self.hand_over()["offsets"]["0"]
        yield self.batch(begin, 10)

    def batch(self, begin, end):
        examples = [Example(f"{offset} text", offset % 2, 1.0, 0, offset) for offset in range(begin, end)]
        return Batch(examples, {"server": None, "offsets": {"0": end}})

    def join(self, hand_over):
        self.hand_over = hand_over

    def rejoin(self):
        self.is_asked.set()

    def commit(self, position):
        self.committed = position

    def close(self):
        pass

    def leave(self):
        self.is_left = True


def test_a_run_that_was_overtaken_drops_its_messages_and_their_answers(tmp_path):
    def overtake():
        other = SharedCheckpoint(tmp_path, 1, 1.0)
        model = other.begin(AssertionError)
        model.learn_many([f"{offset} text" for offset in range(7)], [0, 1, 0, 1, 0, 1, 0])
        other.exchange(model, Gain({"server": None, "offsets": {"0": 7}}, 7, 7))

    shared = SharedCheckpoint(tmp_path, 5, 1000.0)
    with closing(Output(AnswerFormat("csv"), tmp_path / "answers.csv")) as output:
        output.open()
        run = Run(Parts(overtake), shared.begin(TextClassifier), output.send, output=output, shared=shared).run()
    assert len(run.events) == 1 and "another run has read partition 0" in run.events[0]
    model, progress = load_with_progress(tmp_path / "model.safetensors")
    assert model.n_learned == progress["n_learned"] == 10 and run.runner.n_learned == 3
    assert progress["position"]["offsets"] == {"0": 10} and run.source.is_left
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["7", "8", "9"]


def test_runs_go_on_from_the_checkpoint_of_one(tmp_path):
    """With its place in the stream; one with answers that were not sent is refused."""
    model = TextClassifier()
    model.learn_one("win", "spam")
    alone = {"sources": ("topic", None), "n_read": 1, "n_learned": 1, "position": {"server": "s", "offsets": {"0": 1}}}
    path = tmp_path / "model.safetensors"
    model.snapshot({**alone, "unsent": [(1, "spam", 0.5)]}).write(path)
    shared = SharedCheckpoint(tmp_path, 1, 1.0)
    with pytest.raises(ValueError, match="is a checkpoint with unsent"):
        shared.begin(AssertionError)
    model.snapshot({**alone, "output": ("/answers.csv", 7)}).write(path)
    assert shared.begin(AssertionError).n_learned == 1
    assert {name: shared.progress[name] for name in alone} == alone
    assert shared.progress_for(Path("/answers.csv"))["output"] == ("/answers.csv", 7)
