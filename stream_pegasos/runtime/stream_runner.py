"""A model on a live stream: it answers each message, and learns the messages with a label."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, cast

from stream_pegasos.blocks.blockwise import encode_ahead, encode_early, n_teaching, predict_learn
from stream_pegasos.blocks.predicted import NOTHING, Labelled
from stream_pegasos.common.checks import LARGEST_COUNT, check_integer
from stream_pegasos.common.errors import must_be
from stream_pegasos.common.locks import Lock
from stream_pegasos.features.encoders import EncoderAwayError
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.runtime.answers import answer
from stream_pegasos.runtime.checkpoints import Checkpoints
from stream_pegasos.runtime.run_teaching import RunTeaching
from stream_pegasos.runtime.shared_checkpoint import Gain, SharedCheckpoint
from stream_pegasos.runtime.sharing import SharedOutput, Sharing
from stream_pegasos.streams import Answer, Batch, Example, LabelJoin, Lag, Source, StreamError, Truth, of_any_server
from stream_pegasos.streams.sources import LARGEST_BATCH, Member

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model

__all__ = ["StreamRunner"]

READ_AHEAD = 8  # batches
COMMIT_INTERVAL = 5.0  # seconds between two commits, without checkpoints
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to reach an encoder that is away, doubled each time
MOVED = "if it has moved there, add --allow-moved"


class StreamRunner:
    """Runs a model on a live stream: it answers each message, learns those with a label, and writes checkpoints.

    A checkpoint holds the model and the position in the source at the same moment. So a resumed run learns each message
    exactly once; the first checkpoint is written before the first answer is sent. An `output` gets each answer exactly
    once: the checkpoint holds its length, and a resumed run truncates it to this length. Other sinks get each answer at
    least once: answers after the newest checkpoint are sent again. A checkpoint also holds the unsent answers.

    Sources commit a position once its checkpoint is on the disk. Without checkpoints they commit every 5 seconds and at
    the end; they commit messages that are learned and answered.

    Runs that share a stream have a `shared` checkpoint instead, through which they exchange their lessons; a message is
    merged once its answer is sent.

    The answer to a message that could not be read is its fault. `labels` is a source of later labels, each with the id
    of its message; at most `window` messages wait for labels, and at most `window` labels for messages. A StreamError
    says that the progress belongs to another source, unless it has `moved`. `teaching` asks a teacher about messages
    without a label; messages that wait for the teacher are in the checkpoint.
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        send: Callable[[list[Answer]], None],
        *,
        output: SharedOutput | None = None,
        in_full: bool = False,
        labels: Source | None = None,
        window: int = 10_000,
        limit: int | None = None,
        checkpoints: Checkpoints | None = None,
        shared: SharedCheckpoint | None = None,
        progress: object = None,
        moved: bool = False,
        teaching: RunTeaching | None = None,
        label_fault: Callable[[Truth | None], str | None] = lambda label: None,
        on_bad: Callable[[Example, str], None],
        on_event: Callable[[str], None],
    ) -> None:
        progress = _checked(progress)
        names = [source.name, None if labels is None else labels.name]
        about, labels_from = progress.get("sources", (None, None))
        if about not in (None, source.name) and not moved:
            raise StreamError(f"the checkpoint belongs to {about}, not to {source.name}; {MOVED}")
        if labels_from is not None and labels is None:
            raise StreamError(
                f"the checkpoint waits for labels from {labels_from}, not from nowhere: see --label-topic"
            )
        if labels is not None and labels_from not in (None, labels.name) and not moved:
            raise StreamError(f"the checkpoint waits for labels from {labels_from}, not from {labels.name}; {MOVED}")
        self.model = model
        self._names = names
        self._before = progress or None  # the progress in the newest checkpoint
        self.n_read = progress.get("n_read", 0)  # without messages that could not be read
        self.n_learned = progress.get("n_learned", 0)
        self._sources = [source] if labels is None else [source, labels]
        # A run that shares a stream has read nothing yet.
        positions = [None if shared else progress.get("position"), progress.get("label_position")]
        self._positions = [of_any_server(position) if moved else position for position in positions]
        self._kept = [*self._positions]  # nothing before these positions is needed again
        self._committing = Lock()  # so that no older position follows a newer one
        self._next_commit = monotonic() + COMMIT_INTERVAL
        self._join, self.teaching = None if labels is None else LabelJoin(window), teaching
        beside: dict[str, Any] = {"join": self._join, "teaching": teaching}
        for name in beside.keys() & progress.keys():
            try:
                if beside[name] is not None:
                    beside[name].set_state(progress[name])
            except ValueError as error:
                raise StreamError(f"cannot resume from the checkpoint: {error}") from None
        self._send, self._output, self._in_full = send, output, in_full
        self._written = None if output is None else output.written()  # the length before the unsent answers
        self._checkpoints = checkpoints
        self._sharing = None if shared is None else Sharing(shared, cast(Member, source), names, output, on_event)
        self._label_fault = label_fault
        self._on_bad = on_bad
        self._on_event = on_event
        self._rest = limit  # messages still to read; without checkpoints only, as these hold positions of whole batches
        self._stopping = False
        # After `stop`, while this is set, a signal handler may raise KeyboardInterrupt to drop the remaining answers.
        self.sending = False
        self._gave_up = False  # whether sending answers was given up
        self._unsent = [Answer(*answer) for answer in progress.get("unsent", [])]
        self._lock = Lock()  # the model and the positions change together
        self._torn = False  # whether a failure left a batch learned in part
        self._batches: queue.Queue[tuple[int, Batch | BaseException | threading.Event | None]] = queue.Queue(READ_AHEAD)

    def run(self) -> None:
        """Work until the source ends, or `stop` is called; then write a last checkpoint. A StreamError if a source
        fails permanently, an OSError if the last checkpoint cannot be written.
        """
        if self._checkpoints is not None:
            self._checkpoints.start(self.snapshot, self._keep)
        if self._sharing is not None:
            self._sharing.join(lambda event: self._put(0, event))
        for number in range(len(self._sources)):
            threading.Thread(target=self._read, args=[number], name="source", daemon=True).start()
        if self.teaching is not None:
            self.teaching.teaching.start()
        try:
            self._deliver()
            self._work()
        finally:
            self._stopping = True
            for source in self._sources:
                source.close()
            if self.teaching is not None:
                self.teaching.close()
            if self._unsent and not self._torn:
                is_kept = self._checkpoints is not None or self._sharing is not None
                note_of_answers = "; they are sent when the run continues" if is_kept else ""
                self._on_event(f"{len(self._unsent):,} answers were not sent{note_of_answers}")
            if self._checkpoints is not None:
                self._checkpoints.close(last=not self._torn)  # not if a batch is learned in part
            elif self._sharing is not None:
                self._leave()
            else:
                self._commit()

    def stop(self) -> None:
        """End soon, after the messages read so far; may be called from any thread or from a signal handler."""
        self._stopping = True

    def lags(self) -> dict[str, Lag]:
        """The distance of the learned messages from the end of each source, by its name, if known."""
        lags = [source.lag(at) for source, at in zip(self._sources, self._positions, strict=False)]
        return {source.name: lag for source, lag in zip(self._sources, lags, strict=True) if lag is not None}

    def snapshot(self, file: IO[bytes] | None = None) -> Snapshot:
        with self._lock:
            if self._torn:
                raise OSError("the newest messages were learned in part")
            progress: dict[str, Any] = {
                "sources": self._names,
                "n_read": self.n_read,
                "n_learned": self.n_learned,
                "position": self._positions[0],
            }
            if self._written is not None:
                progress["output"] = self._written
            if self._unsent:
                progress["unsent"] = [tuple(answer) for answer in self._unsent]
            if self._join is not None:
                progress |= {"label_position": self._positions[1], "join": self._join.get_state()}
            if self.teaching is not None:
                progress["teaching"] = self.teaching.get_state()
            snapshot: Snapshot = self.model.snapshot(progress, file)
        if self._output is not None:
            self._output.sync()  # the answers are on the disk before the checkpoint that counts them
        return snapshot

    def _read(self, number: int) -> None:
        """Read ahead, in a separate thread."""
        last: BaseException | None = None
        try:
            for batch in self._sources[number].batches():
                encode_early(self.model, [example.x for example in batch.examples if example.fault is None])
                if not self._put(number, batch):
                    return
        except BaseException as error:
            last = error
        self._put(number, last)

    def _put(self, number: int, item: Batch | BaseException | threading.Event | None) -> bool:
        while not self._stopping:
            try:
                self._batches.put((number, item), timeout=0.5)
                return True
            except queue.Full:
                pass
        return False

    def _work(self) -> None:
        reading = len(self._sources)
        while reading and self._rest != 0:
            if monotonic() >= self._next_commit:
                self._commit()
            if self._sharing is not None and self._sharing.is_due(self.n_read):
                self._exchange()
            self._learn_taught()
            try:
                # Messages that were read are learned, also after `stop`: not every source can go back.
                number, item = self._batches.get(timeout=0 if self._stopping else 0.2)
            except queue.Empty:
                if self._stopping:
                    return
                continue
            if isinstance(item, BaseException):
                raise item
            if item is None:
                reading -= 1
            elif isinstance(item, threading.Event):
                self._hand_over(item)
            elif self._sharing is not None and self._sharing.is_behind:
                continue
            elif number == 0:
                if not self._take(self._add_waiting(item)):
                    return
            elif not self._take_labels(item):
                return

    def _exchange(self, waits: bool = False) -> None:
        """Exchange lessons with the runs that share the stream, and continue with the merged model."""
        if self._unsent or self._sharing is None:  # the unsent messages come again
            return
        gain = Gain(self._positions[0], self.n_read, self.n_learned, self._written)
        after = self._sharing.exchange(self.model, gain, waits, lambda: self._stopping)
        if after is not None:
            with self._lock:
                self.model, self._positions[0], self.n_read, self.n_learned, self._written = after
            self._kept = [self._sharing.shared.committable]
            self._commit()

    def _hand_over(self, event: threading.Event) -> None:
        """Exchange all messages read, before the source continues with other parts."""
        assert self._sharing is not None
        self._exchange(waits=True)
        self._sharing.begin_parts()
        self._positions[0] = None
        event.set()

    def _leave(self) -> None:
        """Exchange for the last time, and leave the stream to the other runs."""
        assert self._sharing is not None
        try:
            if not self._torn:
                self._exchange(waits=True)
        finally:
            self._sharing.is_over.set()
            self._commit()
            self._sharing.source.leave()

    def _add_waiting(self, batch: Batch) -> Batch:
        """A batch and those that wait behind it, if the source cannot go back, such as a pipe: a pipe gives messages
        one by one, and together they take half the time.
        """
        examples, waiting = [*batch.examples], self._batches.queue
        while waiting and len(examples) < LARGEST_BATCH:
            number, item = waiting[0]
            if number or not isinstance(item, Batch) or batch.position is not None or item.position is not None:
                break
            self._batches.get()
            examples += item.examples
        return batch._replace(examples=examples)

    def _take(self, batch: Batch) -> bool:
        """Answer and learn a batch; False if the run is stopped first."""
        answers: list[Answer] = []
        if self._rest is not None:
            examples = first(batch.examples, self._rest)
            is_whole = len(examples) == len(batch.examples)
            batch = Batch(examples, batch.position if is_whole else self._positions[0])
        n = sum(example.fault is None for example in batch.examples)
        if self._rest is not None:
            self._rest -= n
        if not self._encode([example.x for example in batch.examples if example.fault is None]):
            return False
        with self._lock:
            self._torn = True
            for labelled, group in itertools.groupby(batch.examples, has_label):
                examples = list(group)
                answers += self._learn(examples) if labelled else self._answer(examples)
            self.n_read += n
            self._positions[0] = batch.position
            self._torn = False
            self._unsent = [*self._unsent, *answers]
        self._write_first()  # otherwise a kill would leave answers without a checkpoint
        self._deliver()
        self._count(n)
        self._learn_taught()
        return True

    def _learn_taught(self) -> None:
        """Learn the teacher's new answers."""
        if self.teaching is None or not (lessons := self.teaching.lessons(lambda: self._stopping)):
            return
        if self._encode([lesson.x for lesson in lessons]):
            with self._lock:
                self._torn = True
                self.n_learned += self.teaching.learn(lessons)
                self._torn = False
            self._count(len(lessons))
        else:
            self.teaching.teaching.give_back(lessons)

    def _encode(self, X: list[Any]) -> bool:
        """Let the model's encoder, if it has one, read messages; while its server is away, wait for it. False if the
        run is stopped first.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                encode_ahead(self.model, X)
            except EncoderAwayError as error:
                self._on_event(f"{error}; trying again in {pause:.0f} s")
            else:
                return True
            until = monotonic() + pause
            while monotonic() < until:
                if self._stopping:
                    return False
                sleep(0.1)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _take_labels(self, batch: Batch) -> bool:
        """Learn the messages that wait for the labels of a batch; False if the run is stopped first."""
        assert self._join is not None
        labels = [
            (labelled.id, labelled.y)
            for labelled in batch.examples
            if labelled.y is not None and self._may_be_learned(labelled)
        ]
        waiting = [self._join.message(id) for id, _ in labels]
        if not self._encode([message.x for message in waiting if message is not None]):
            return False
        with self._lock:
            self._torn = True
            joined = [example for id, y in labels if (example := self._join.add_label(id, y)) is not None]
            self._learn(joined)
            self._positions[1] = batch.position
            self._torn = False
        self._write_first()
        self._count(len(batch.examples))
        return True

    def _may_be_learned(self, example: Example) -> bool:
        """Whether the model may learn the label of an example; otherwise the message waits for another label."""
        fault = self._label_fault(example.y)
        if fault is None:
            try:
                self.model.check_labels([example.y])
                return True
            except (ValueError, TypeError) as error:
                fault = str(error)
        self._on_bad(example, fault)
        return False

    def _answer(self, examples: list[Example]) -> list[Answer]:
        answers: list[Answer] = []
        begin = 0
        for end, example in enumerate(examples, 1):
            # If a label came before its message, it is learned right after the answer, also within a batch.
            early = None if self._join is None else self._join.add_message(example)
            if early is not None or end == len(examples):
                part, begin = examples[begin:end], end
                asks = None if self.teaching is None else self.teaching.ask
                answers += answer(self.model, part, self._on_bad, self._in_full, on_predicted=asks)
            if early is not None:
                self._learn([early])
        return answers

    def _learn(self, examples: list[Example]) -> list[Answer]:
        """Predict each example, then learn it; an example that the model refuses is only answered."""
        answers: list[Answer] = []

        def refuse(labelled: Labelled, reason: str) -> None:
            example = cast(Example, labelled)
            (predicted,) = answer(self.model, [example], in_full=self._in_full)
            answers.append(predicted._replace(error=reason))
            self._on_bad(example, reason)

        for fault, group in itertools.groupby(
            examples, lambda labelled: self._label_fault(labelled.y) or labelled.label_fault
        ):
            if fault is not None:
                for example in group:
                    refuse(example, fault)
                continue
            taught = (lambda labelled: False) if self.teaching is None else self.teaching.is_taught
            for is_taught, some in itertools.groupby(group, taught):
                if self.teaching is not None and is_taught:
                    for example in some:
                        answers += answer(self.model, [example], in_full=self._in_full)
                        self.teaching.correct(example)
                    continue
                for block in predict_learn(self.model, list(some), refuse):
                    self.n_learned += n_teaching(block.examples)
                    if self.teaching is not None:
                        self.teaching.compare(block.examples)
                    ids = [cast(Example, example).id for example in block.examples]
                    answers += block.answers(ids, block.probabilities_by_label() if self._in_full else NOTHING)
        return answers

    def _deliver(self) -> None:
        """Send the answers until they are accepted. After `stop`, the first failure drops these and later answers."""
        failing = False
        while self._unsent and not self._gave_up:
            try:
                self.sending = True
                self._send(self._unsent)
                with self._lock:
                    self._unsent = []
                    self._written = None if self._output is None else self._output.written()
            except BrokenPipeError:
                self._unsent = []  # no reader is left
                raise
            except KeyboardInterrupt:
                self._gave_up = True
            except OSError as error:
                if not failing:
                    self._on_event(f"answers cannot be sent: {error}; trying again")
                failing = True
            finally:
                self.sending = False
            if self._unsent:
                if not self._stopping:
                    sleep(1.0)
                self._gave_up = self._stopping
            elif failing:
                self._on_event("answers are sent again")

    def _count(self, n: int) -> None:
        """Record that `n` more messages are learned and answered."""
        if self._checkpoints is not None:
            self._checkpoints.count(max(1, n))  # the position has moved, even if all records were bad
        elif self._sharing is None and not self._unsent:
            self._kept = [*self._positions]

    def _write_first(self) -> None:
        """Write a checkpoint if there is none, and more until the newest two contain each position that exists now."""
        if self._checkpoints is None:
            return
        if self._before is None:
            self._checkpoints.write_now()
        for _ in range(2):
            if any(old is None and new is not None for old, new in zip(self._kept, self._positions, strict=True)):
                self._checkpoints.write_now()

    def _keep(self, progress: dict[str, Any]) -> None:
        """Commit the positions of the checkpoint that was written, except positions that the previous one lacks: if the
        newest file is damaged, the run resumes from the previous one, and needs the old position of the group.
        """
        before, self._before = self._before, progress
        new_positions = [progress["position"], progress.get("label_position")]
        if before is not None:
            known_positions = before.get("position"), before.get("label_position")
            new_positions = [
                None if old is None else new for old, new in zip(known_positions, new_positions, strict=True)
            ]
        self._kept = new_positions
        self._commit()

    def _commit(self) -> None:
        """Let the sources commit the kept positions, also unchanged ones: an earlier commit may have failed."""
        with self._committing:
            self._next_commit = monotonic() + COMMIT_INTERVAL
            for source, position in zip(self._sources, self._kept, strict=False):
                if position is not None:
                    source.commit(position)


def has_label(example: Example) -> bool:
    """Whether the example has a label, even an unreadable one."""
    return example.y is not None or example.label_fault is not None


def first(examples: list[Example], n: int) -> list[Example]:
    """The examples up to the `n`th that could be read."""
    readable = [place for place, example in enumerate(examples, 1) if example.fault is None]
    return examples[: [0, *readable][n]] if n <= len(readable) else examples


def _checked(progress: object) -> dict[str, Any]:
    """The progress of a checkpoint, after a check, because a file may hold anything; empty if there is none."""
    progress = progress or {}
    try:
        if not isinstance(progress, dict):
            raise TypeError(must_be("progress", "a dict", progress))
        check_integer("n_read", progress.get("n_read", 0), 0, LARGEST_COUNT)
        check_integer("n_learned", progress.get("n_learned", 0), 0, LARGEST_COUNT)
        _, _ = progress.get("sources", (None, None))
        for answer in progress.get("unsent", []):
            Answer(*answer)
    except (AttributeError, TypeError, ValueError) as error:
        raise StreamError(f"cannot resume from the checkpoint: {error}") from None
    return progress
