"""A stream is answered and learned, each message once, wherever its run was ended."""

import errno
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kinds import several_classes, several_labels
from outcomes import predictions_of
from running import bits, wait
from scripts import WORDS, Run, Script, learned, message

from stream_pegasos import TextClassifier, TextFeatures
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.loading import load_with_progress
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.streams import Example, StreamError

OF_SEVERAL = {
    "two classes": (TextClassifier, ["ham", "spam"]),
    "classes": (several_classes, ["card", "cash", "fee", "pin"]),
    "labels": (several_labels, [("earn",), (), ("grain", "wheat"), ("earn", "grain")]),
}


@pytest.mark.parametrize("size", [1, 4, 512])
@pytest.mark.parametrize("which", OF_SEVERAL)
def test_each_message_is_answered_then_learned(which, size):
    make, labels = OF_SEVERAL[which]
    examples = [
        Example(f"{WORDS[i % 4]} {WORDS[i % 7]}", None if i % 3 == 1 else labels[i % len(labels)], 1.0, i, i)
        for i in range(60)
    ]
    run, alone = Run(Script(examples, [size]), make()).run(), make()
    for example, answer in zip(examples, run.answers, strict=True):
        (expected,) = predictions_of(alone, [example.x])
        assert answer[:3] == (example.id, expected.label, expected.probability)
        if example.y is not None:
            alone.learn_one(example.x, example.y)
    assert bits(run.model) == bits(alone)
    assert (run.runner.n_read, run.runner.n_learned) == (60, 40)
    assert run.source.closed.is_set()
    assert not run.bad
    assert not run.events


def test_messages_that_wait_in_a_pipe_are_learned_together():
    class Pipe(Script):
        def batches(self):
            return (batch._replace(position=None) for batch in super().batches())

    def send(answers):
        if not sent:
            wait(run.runner._batches.full)
        sent.append(answers)

    sent, examples = [], [message(i, i % 3 != 1) for i in range(60)]
    run, alone = Run(Pipe(examples, [1]), send=send), Run(Script(examples, [1])).run()
    run.run()
    assert len(sent[1]) >= 8 and [each for answers in sent for each in answers] == alone.answers
    assert bits(run.model) == bits(alone.model)


@pytest.mark.parametrize("delay", [False, True])
def test_a_batch_is_encoded_together_and_each_message_once(delay):
    """Also where some have no label."""
    calls = []

    def encode(texts):
        calls.append(sorted(texts))
        return [[len(text), 1.0] for text in texts]

    model = TextClassifier(TextFeatures(vectors=encode))
    calls.clear()
    examples = [Example(f"{i:02} {WORDS[i % 7]}", None if delay and i < 15 else i % 2, 1.0, i, i) for i in range(30)]
    Run(Script(examples, [10]), model).run()
    assert calls == [[example.x for example in examples[i : i + 10]] for i in (0, 10, 20)]


def test_a_label_that_is_refused_is_answered_and_passed_over():
    examples = [message(i) for i in range(20)]
    bad = [Example("third", ("eggs", "ham"), 1.0, 99, "x"), Example("fourth", (), 1.0, 100, "y")]
    given_examples = [*examples[:10], *bad, *examples[10:]]
    run = Run(Script(given_examples, [7])).run()
    assert bits(run.model) == bits(learned(examples))
    assert [answer.id for answer in run.answers] == [example.id for example in given_examples]
    assert [example for example, _ in run.bad] == bad
    assert all("a label must be a bool, an int or a str, got (" in reason for _, reason in run.bad)
    assert (run.runner.n_read, run.runner.n_learned) == (22, 20)


def test_what_cannot_be_read_is_answered_in_its_place():
    """It is neither counted nor learned, nor does it wait for a label."""
    good = [message(i, labelled=i % 3 != 1) for i in range(12)]
    examples = list(good)
    for place in (11, 5, 5, 0):
        examples.insert(place, Example("", None, 1.0, 99, f"bad {place}", "no JSON"))
    for limit in (None, 4):
        run = Run(Script(examples, [5]), limit=limit, in_full=True).run()
        expected = Run(Script(good, [5]), limit=limit, in_full=True).run()
        readable = [answer for answer in run.answers if answer.error is None]
        assert readable == expected.answers
        assert bits(run.model) == bits(expected.model) and run.runner.n_read == expected.runner.n_read
        assert [answer.id for answer in run.answers] == [each.id for each in examples][: len(run.answers)]
        assert {answer[1:6] for answer in run.answers if answer.error} == {(None, None, None, None, "no JSON")}
        assert not run.bad  # it was told when it was read
    assert len(run.answers) == 5


def test_answers_in_full_have_the_probabilities_of_then():
    """Also of classes that come in the middle, however messages come in batches."""
    make, labels = OF_SEVERAL["classes"]
    examples = [Example(f"{WORDS[i % 4]} {WORDS[i % 7]}", labels[min(i // 9, 3)], 1.0, i, i) for i in range(40)]
    runs = [Run(Script(examples, [size]), make(), in_full=True).run() for size in (1, 40)]
    assert runs[0].answers == runs[1].answers
    model = make()
    for example, answer in zip(examples, runs[0].answers, strict=True):
        said = model.predictions([example.x])
        p = dict(zip(said.classes, said.probabilities[0].tolist(), strict=True))
        known = set(model.classes) - {None}
        assert answer.probabilities == pytest.approx({label: each for label, each in p.items() if label in known})
        if len(known) > 2:
            first, second = sorted(model.decision_function_one(example.x).values())[:-3:-1]
            assert answer.margin == pytest.approx(first - second, abs=1e-9)
        model.learn_one(example.x, example.y)


@pytest.mark.parametrize("limit", [0, 1, 5, 6, 100])
def test_limit(limit):
    examples = [message(i) for i in range(20)]
    run = Run(Script(examples, [3]), limit=limit).run()
    assert bits(run.model) == bits(learned(examples[:limit]))
    assert len(run.answers) == run.runner.n_read == min(limit, 20)


@given(
    labelled=st.lists(st.booleans(), max_size=40),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    sizes_after=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    data=st.data(),
)
def test_from_any_checkpoint_each_message_is_learned_once(tmp_path_factory, labelled, sizes, sizes_after, data):
    examples = [message(i, labelled=is_labelled) for i, is_labelled in enumerate(labelled)]
    uninterrupted = Run(Script(examples, [1])).run()
    snapshots = []
    first = Run(Script(examples, sizes))
    take = first.runner._take

    def take_and_look(batch):
        take(batch)
        snapshots.append(first.runner.snapshot())

    first.runner._take = take_and_look
    first.run()
    if not snapshots:
        return
    snapshot = data.draw(st.sampled_from(snapshots))
    path = tmp_path_factory.mktemp("run") / "model"
    snapshot.write(path)
    model, progress = load_with_progress(path)
    assert progress["n_read"] == progress["position"]
    assert progress["n_learned"] == sum(labelled[: progress["position"]])
    second = Run(Script(examples, sizes_after, progress["position"]), model, progress=progress).run()
    assert bits(second.model) == bits(uninterrupted.model) == bits(first.model)
    assert (second.runner.n_read, second.runner.n_learned) == (len(examples), sum(labelled))
    assert second.answers == uninterrupted.answers[progress["position"] :]


def test_checkpoints_hold_what_is_learned_and_sources_are_told(tmp_path):
    examples = [message(i) for i in range(50)]
    Run(Script(examples[:26], [4]), checkpoints=Checkpoints(tmp_path / "model", every=5, seconds=1_000)).run()
    checkpoints = Checkpoints(tmp_path / "model", every=1_000, seconds=1_000)  # one alone, at the end
    model, progress = checkpoints.resume()
    assert progress["position"] == 26
    source = Script(examples, [4], 26)
    Run(source, model, checkpoints=checkpoints, progress=progress).run()
    model, progress = load_with_progress(tmp_path / "model")
    assert progress["position"] == 50
    assert load_with_progress(tmp_path / "model.previous")[1]["position"] == 26
    assert source.noted == [50]
    assert bits(model) == bits(learned(examples))


def test_nothing_is_committed_before_its_checkpoint_is_written(tmp_path):
    class Committing(Script):
        def commit(self, position):
            super().commit(position)
            kept.append(load_with_progress(tmp_path / "model")[1]["position"])

    kept, source = [], Committing([message(i) for i in range(30)], [4])
    Run(source, checkpoints=Checkpoints(tmp_path / "model", every=5, seconds=1_000)).run()
    assert source.noted == kept and kept == sorted(kept) and kept[-1] == 30


def test_a_resumed_run_commits_what_its_checkpoint_holds(tmp_path, monkeypatch):
    """A kill may have come between the two, and a topic may be quiet."""
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.COMMIT_INTERVAL", 0.0)
    source = Script([], position=26, endless=True)
    run = Run(source, checkpoints=Checkpoints(tmp_path / "model", seconds=1_000), progress={"position": 26})
    run_until(run, lambda: source.noted)
    assert set(source.noted) == {26}


@pytest.mark.parametrize("before", [{"position": None}, {"position": 0, "label_position": None}])
def test_a_first_position_is_committed_once_both_checkpoints_have_it(tmp_path, before):
    """Should the newest one be damaged, the run goes on from the one before; without a position, where the group is."""

    class Committing(Script):
        def commit(self, position):
            super().commit(position)
            name = ("position", "label_position")[sources.index(self)]
            kept.append(load_with_progress(tmp_path / "model.previous")[1][name])

    checkpoints = Checkpoints(tmp_path / "model", seconds=1_000)
    TextClassifier().snapshot(before).write(checkpoints.path)
    model, progress = checkpoints.resume()
    kept, sources = [], [Committing([message(0, labelled=False)], endless=True), Committing([message(0)], endless=True)]
    run = Run(sources[0], model, labels=sources[1], checkpoints=checkpoints, progress=progress)
    run_until(run, lambda: all(1 in source.noted for source in sources))
    assert all({*source.noted} == {1} for source in sources)
    assert None not in kept


@pytest.mark.parametrize("limit", [None, 5])
def test_without_checkpoints_what_was_learned_and_answered_is_committed(monkeypatch, limit):
    """At intervals and at the end; of a batch that was learned in part, nothing."""
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.COMMIT_INTERVAL", 0.0)
    source, n_answers = Script([message(i) for i in range(6)], [3], endless=True), []

    def commit(position):
        source.noted.append(position)
        n_answers.append(len(run.answers))

    source.commit = commit
    run = Run(source, limit=limit)
    run_until(run, lambda: 6 in source.noted or len(run.answers) == limit)
    assert all(n >= position for n, position in zip(n_answers, source.noted, strict=True))
    assert source.noted[-1] == (6 if limit is None else 3)


def test_without_checkpoints_answers_that_were_not_sent_are_not_committed(monkeypatch):
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.sleep", lambda seconds: time.sleep(0.01))

    def send(answers):
        if answers[0].id:
            raise OSError("nobody is there")

    source = Script([message(i) for i in range(6)], [3], endless=True)
    run_until(run := Run(source, send=send), lambda: run.events)
    assert source.noted == [3]


def run_until(run, condition):
    """Run until a condition holds."""
    thread = threading.Thread(target=run.run)
    thread.start()
    wait(condition)
    run.runner.stop()
    thread.join(20)
    assert not thread.is_alive()


def test_no_answer_is_sent_before_a_checkpoint_has_its_message(tmp_path, monkeypatch):
    def send(answers):
        model, progress = load_with_progress(tmp_path / "model")
        sent.append((progress["position"], len(progress["unsent"])))
        assert bits(model) == bits(learned(examples[: progress["position"]]))

    examples, sent = [message(i) for i in range(9)], []
    Run(Script(examples, [4]), send=send, checkpoints=Checkpoints(tmp_path / "model", seconds=1_000)).run()
    assert sent == [(4, 4)] * 3
    monkeypatch.setattr(Snapshot, "finish", no_space)
    run = Run(Script(examples, [4]), checkpoints=Checkpoints(tmp_path / "other", seconds=1_000))
    with pytest.raises(OSError, match="No space left"):
        run.run()
    assert run.answers == []


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_answers_that_cannot_be_sent_are_sent_later(monkeypatch):
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.sleep", lambda seconds: None)
    examples = [message(i) for i in range(20)]
    sent, n_failures = [], 0

    def send(answers):
        nonlocal n_failures
        if len(sent) == 8 and n_failures < 5:
            n_failures += 1
            raise OSError("nobody is there")
        sent.extend(answers)

    run = Run(Script(examples, [4]), send=send).run()
    assert [answer.id for answer in sent] == list(range(20))
    assert run.events == ["answers cannot be sent: nobody is there; trying again", "answers are sent again"]
    assert bits(run.model) == bits(learned(examples))


def test_a_checkpoint_knows_how_far_the_answers_before_the_unsent_ones_come():
    class File(list):
        n_synced = 0

        def written(self):
            return len(self)

        def sync(self):
            self.n_synced = len(self)

    file, told = File(), []

    def send(answers):
        file.extend(answers[:2])
        progress = run.runner.snapshot().progress
        told.append((progress["output"], len(progress["unsent"]), file.n_synced))
        file.extend(answers[2:])

    run = Run(Script([message(i) for i in range(12)], [4]), send=send, output=file)
    run.run()
    assert told == [(0, 4, 2), (4, 4, 6), (8, 4, 10)]
    progress = run.runner.snapshot().progress
    assert (progress["output"], "unsent" in progress) == (12, False)


def test_stopped_while_nobody_takes_the_answers(monkeypatch, tmp_path):
    monkeypatch.setattr("stream_pegasos.runtime.stream_runner.sleep", lambda seconds: time.sleep(0.01))
    examples = [message(i) for i in range(6)]

    def send(answers):
        raise OSError("nobody is there")

    checkpoints = Checkpoints(tmp_path / "model")
    run = Run(Script(examples, [3], endless=True), send=send, checkpoints=checkpoints)
    thread = threading.Thread(target=run.run)
    thread.start()
    wait(lambda: run.events)
    run.runner.stop()
    thread.join(20)
    assert not thread.is_alive()
    model, progress = load_with_progress(tmp_path / "model")
    assert f"{progress['n_read']} answers were not sent; they are sent when the run continues" in run.events
    later = Run(Script(examples, position=progress["position"]), model=model, progress=progress).run()
    assert [answer.id for answer in later.answers] == list(range(6))
    model, progress = load_with_progress(tmp_path / "model")
    assert bits(model) == bits(learned(examples[: progress["n_read"]]))
    assert progress["position"] == progress["n_read"] >= 3


def test_a_checkpoint_is_about_its_own_source(tmp_path):
    checkpoints = Checkpoints(tmp_path / "model")
    labels = Script([])
    labels.name = "labels"
    Run(Script([message(0, labelled=False)]), labels=labels, checkpoints=checkpoints).run()
    model, progress = checkpoints.resume()
    other = Script([])
    other.name = "another"
    with pytest.raises(StreamError, match="belongs to script, not to another"):
        Run(other, model=model, labels=labels, progress=progress)
    for missing in (None, other):
        with pytest.raises(StreamError, match="waits for labels from labels, not from"):
            Run(Script([]), model=model, labels=missing, progress=progress)
    Run(other, model=model, labels=other, progress=progress, moved=True).run()
    with pytest.raises(StreamError, match="waits for labels from labels, not from nowhere"):
        Run(other, model=model, progress=progress, moved=True)
    Run(Script([]), model=model, labels=labels, progress=progress)


def test_stopped_while_it_waits_for_more():
    examples = [message(i) for i in range(10)]
    run = Run(Script(examples, [4], endless=True))
    thread = threading.Thread(target=run.run)
    thread.start()
    wait(lambda: len(run.answers) == 10)
    run.runner.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert bits(run.model) == bits(learned(examples))


@pytest.mark.parametrize(("failing", "error", "n"), [("source", StreamError, 10), ("sink", BrokenPipeError, 4)])
def test_a_source_or_a_sink_that_fails_for_good(tmp_path, failing, error, n):
    """What was learned by then is in the checkpoint."""
    examples = [message(i) for i in range(10)]

    def send(answers):
        if failing == "sink":
            raise BrokenPipeError

    source = Script(examples, [4], failure=StreamError("the topic is gone"))
    with pytest.raises(error):
        Run(source, send=send, checkpoints=Checkpoints(tmp_path / "model")).run()
    model, progress = load_with_progress(tmp_path / "model")
    assert progress["position"] == progress["n_learned"] == n
    assert bits(model) == bits(learned(examples[:n]))


def test_a_failure_in_the_middle_of_a_batch_is_told_and_leaves_the_checkpoint_as_it_was(tmp_path, monkeypatch):
    examples = [message(i) for i in range(10)]
    run = Run(Script(examples, [4]), checkpoints=Checkpoints(tmp_path / "model", seconds=1_000))
    learn, n = run.model.predict_learn_many, 0

    def fail(x, *rest, threads=1):
        nonlocal n
        n += len(x)
        if n > 4:
            learn(x[:1], *[column[:1] if isinstance(column, list) else column for column in rest])
            raise RuntimeError("the detector broke")
        return learn(x, *rest)

    monkeypatch.setattr(type(run.model), "predict_learn_many", lambda model, *of, **options: fail(*of, **options))
    with pytest.raises(RuntimeError, match="the detector broke"):
        run.run()
    assert [answer.id for answer in run.answers] == [0, 1, 2, 3]
    model, progress = load_with_progress(tmp_path / "model")
    assert progress["position"] == len(progress["unsent"]) == 4 and bits(model) == bits(learned(examples[:4]))


@pytest.mark.parametrize(
    "progress",
    [{"n_read": -1}, {"n_learned": "many"}, {"sources": 3}, {"unsent": [1]}, {"unsent": [[1, 2]]}, {"join": {}}, [1]],
)
def test_progress_that_is_none(progress):
    with pytest.raises(StreamError, match="cannot resume from the checkpoint"):
        Run(Script([], [4]), labels=Script([], [4]), progress=progress)


def test_a_snapshot_says_how_far_was_learned_and_not_how_far_was_read_ahead():
    seen, source = [], Script([message(i) for i in range(40)])

    def send(answers):
        end = time.monotonic() + 120
        while source.at < min(40, run.runner.n_read + 9) and time.monotonic() < end:
            time.sleep(0.001)  # the reader goes on by itself
        progress = run.runner.snapshot().progress
        seen.append((progress["position"], progress["n_read"], source.at))

    run = Run(source, send=send)
    run.run()
    assert [n_read for _, n_read, _ in seen] == [*range(3, 40, 3), 40]
    assert all(position == n_read for position, n_read, _ in seen)
    assert any(ahead > n_read for _, n_read, ahead in seen)


def test_the_answer_to_a_message_with_a_bad_label_says_so():
    """It is predicted all the same, and not learned."""
    examples = [message(0), message(1), message(2)._replace(y="bad"), message(3)]
    run = Run(Script(examples), label_fault=lambda y: "no such label" if y == "bad" else None).run()
    assert [answer.error for answer in run.answers] == [None, None, "no such label", None]
    assert run.bad == [(examples[2], "no such label")] and run.runner.n_learned == 3
    expected = learned(examples[:2])
    assert run.answers[2].label == expected.predict_one(examples[2].x)
