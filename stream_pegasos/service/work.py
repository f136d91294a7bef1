"""A text model at work, with all that belongs to it."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from stream_pegasos import __version__
from stream_pegasos.evaluation.prequential import Labelled, predict_block
from stream_pegasos.evaluation.tallies import LABELS, ORDERED
from stream_pegasos.features.message import Message, size_of
from stream_pegasos.learners.files import Snapshot
from stream_pegasos.learners.labels import AllowedLabels, Label, truth_of
from stream_pegasos.operation.answers import answers_of, label_named, shown, shown_answer
from stream_pegasos.operation.checkpoints import Checkpoints
from stream_pegasos.operation.explaining import explained
from stream_pegasos.operation.journal import Entry, Journal
from stream_pegasos.operation.learned_ids import KNOWN, Id, is_same
from stream_pegasos.operation.learning import Learning
from stream_pegasos.operation.monitor import Monitor
from stream_pegasos.operation.parameters import made_with
from stream_pegasos.operation.teaching import Teaching
from stream_pegasos.service.bodies import Bodies
from stream_pegasos.service.gathering import Gathering
from stream_pegasos.service.limits import Limits
from stream_pegasos.service.slices import A_MESSAGE, SLICE, give_way, slices

MOST_OFFERED = 1_000  # labels that are offered to those who teach
MOST_ANSWERED = 2_000_000  # labels that may be told in an answer, where a message may have several
MOST_GIVEN = 20  # labels that are shown as given
LONGEST_GIVEN = 200  # characters shown of their messages


class EndingError(Exception):
    """Nothing is learned any more."""


class Service:
    """A text model at work, with all that belongs to it: what is seen of it, its checkpoints, its limits.

    Parameters
    ----------
    model
        A `TextClassifier`.
    checkpoints
        What keeps it; `None` to keep nothing.
    progress
        What was kept beside the model the last time.
    limits
        What a stranger may ask for.
    token
        The bearer token that requests have to carry; `None` for none.
    id_window
        How many ids of learned messages are remembered, so that none of them is learned again.
    monitor
        What follows the model if something else teaches it, so that nothing is learned here; `None` if it is taught
        here.
    teaching
        The messages that people are asked to label; `None` for none. With checkpoints its labels are kept here.
    sync
        Whether what was answered outlives a power cut, too, and not only a killed process, where there are checkpoints.
    begun_with
        What `model` is where it is neither new nor from a checkpoint, as `Journal` takes it.
    labels
        The labels that alone may be learned from now on, in the order in which they are offered to those who teach;
        `None` for any. true, `"true"` and 1 are one label here, and have to be written as the model knows it.

    Attributes
    ----------
    n_learned_again
        How many messages were learned again since the checkpoint, from its journal.

    Raises
    ------
    ValueError
        If the progress or the journal cannot be one of this model.
    OSError
        If the journal cannot be read.
    """

    def __init__(
        self,
        model: Any,
        checkpoints: Checkpoints | None = None,
        progress: Any = None,
        limits: Limits | None = None,
        token: str | None = None,
        id_window: int = 100_000,
        monitor: Monitor | None = None,
        teaching: Teaching | None = None,
        sync: bool = False,
        begun_with: str = "",
        labels: Sequence[Label] | None = None,
    ) -> None:
        self.learns = monitor is None
        self.teaching = teaching if teaching is not None and self.learns else Teaching(size=0)
        self.checkpoints = checkpoints
        self.limits = limits or Limits()
        self.labels = None if labels is None else tuple(labels)
        self.token = token
        self.monitor = Monitor(model) if monitor is None else monitor
        self._learning = Learning(self.monitor, id_window, self._count)
        if progress:
            self.monitor.set_state(progress.get("monitor", {}))
            self._learning.ids.set_state(progress.get("ids"), progress.get("labels_of_ids"))
        self._offered: dict[Any, None] = {}  # labels, in the order in which they are offered
        self.bodies = Bodies(self.limits)
        self._lock = self.monitor.lock  # between the event loop and the threads of the checkpoints and the journal
        self._turn, self._syncing = asyncio.Lock(), asyncio.Lock()
        self._predictions = Gathering(self._predict, SLICE)
        self._ending = False
        self._journal: Journal | None = None
        self.n_learned_again = 0
        if checkpoints is not None:
            self._journal = Journal(checkpoints.path, self._lock, checkpoints.tell, sync, begun_with)
            self.teaching.keeper = self._journal
            self._learn_again(self._journal, progress)

    def _learn_again(self, journal: Journal, progress: Any) -> None:
        """Learn what was learned after the checkpoint, and the labels that were given and not learned."""
        before = self.model.n_learned
        for entries in journal.entries((progress or {}).get("journal")):
            for part in slices(entries, lambda entry: size_of(entry[0])):
                self._learn_entries(part)
        for number, entry in [*journal.waiting.items()]:
            journal.learn([entry], [number])
            self._learn_entries([entry])
        self.n_learned_again = self.model.n_learned - before

    def _learn_entries(self, entries: list[Entry]) -> None:
        try:
            for is_lesson, group in itertools.groupby(entries, lambda entry: entry[1] is not None):
                these = [*group]
                if is_lesson:
                    self._learning.learn([entry[:3] for entry in these], [entry[3] for entry in these])
                else:
                    self._unlearn(these)
        except (ValueError, TypeError) as error:
            print(f"stream-pegasos: not learned again: {error}", file=sys.stderr, flush=True)

    @property
    def model(self) -> Any:
        return self.monitor.model

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a message is made of; none where it is a text."""
        features = self.model.features
        return () if features.takes_text else features.fields

    @property
    def mail_field(self) -> str | None:
        """The field that holds a whole mail, if the model reads mails."""
        field: str | None = self.model.features.mail_field
        return field

    def snapshot(self) -> Snapshot:
        with self._lock:
            ids, digests = self._learning.ids.ids(), self._learning.ids.digests()
            progress: dict[str, Any] = {"monitor": self.monitor.get_state()}
            if self._journal is not None:
                progress["journal"] = self._journal.turn()
            snapshot: Snapshot = self.model.snapshot(progress)
        # Each as one string, which is fast, and while others go on.
        progress |= {"ids": json.dumps(ids), "labels_of_ids": json.dumps(digests)}
        return snapshot

    def start(self) -> None:
        """Begin to learn, and to write checkpoints."""
        self._ending = False
        if self.checkpoints is not None and self._journal is not None:
            journal = self._journal
            self.checkpoints.start(self.snapshot, lambda progress: journal.written(progress["journal"]))

    async def finish(self) -> None:
        """Refuse to learn from now on, once the request at work is learned to its end."""
        self._ending = True
        async with self._turn:
            pass

    def close(self, last: bool = True) -> None:
        """Write a last checkpoint.

        Parameters
        ----------
        last
            Whether to write it; not where nothing was learned.

        Raises
        ------
        OSError
            If it could not be written.
        """
        if self.checkpoints is not None and self._journal is not None:
            try:
                self.checkpoints.close(last)
            finally:
                self._journal.close()

    @property
    def kind(self) -> str:
        """The kind of model: "classes", "ordered" or "several labels"."""
        return self.monitor.kind

    async def predict(self, X: list[Message], ids: Sequence[Id | None] | None = None) -> list[dict[str, Any]]:
        """The answer to each message, as `answers_of` has them. People are asked for those that were not learned
        before, by their ids.
        """
        answers: list[dict[str, Any]] = []
        messages = [*zip(X, [None] * len(X) if ids is None else ids, strict=True)]
        for part in slices(messages, lambda message: size_of(message[0])):
            answers += await self._predictions.answers(part, sum(A_MESSAGE + size_of(x) for x, _ in part))
        return answers

    def _predict(self, messages: list[tuple[Message, Id | None]]) -> list[dict[str, Any]]:
        X, ids = [x for x, _ in messages], [id for _, id in messages]
        with self._lock:
            block = predict_block(self.model, X, [])
            self.monitor.predicted(X, block)
            answers = answers_of(block)
        new = [*itertools.compress(messages, self._learning.ids.are_new(ids))]
        self.teaching.add([x for x, _ in new], [id for _, id in new])
        return answers

    async def learn(self, examples: list[Labelled], ids: Sequence[Id | None] | None = None) -> list[dict[str, Any]]:
        """Predict each message, then learn it, unless one with its id was learned before with this label. The answer
        tells whether it is `learned`; and with another label than before, what the `correction` was: the label before
        was "taken back", if it was not learned yet, or the message is "taught anew".

        Raises
        ------
        ValueError
            If a label is not allowed or the model does not take it, or labels or answers would become too many; nothing
            is learned then.
        OSError
            If what is learned cannot be kept.
        EndingError
            If the service is ending; nothing is learned then.
        RuntimeError
            If learning failed on the way; `learned_ids` tells how far it came.
        """
        self._check_learns()
        async with self._turn:  # or labels could become known between the check and the learning
            self._check_runs()
            answers = await self._learn_all(examples, [None] * len(examples) if ids is None else ids)
        await self._sync()
        return answers

    def _check_learns(self) -> None:
        if not self.learns:
            raise ValueError("the model learns from a stream, not from here")

    def _check_runs(self) -> None:
        if self._ending:
            raise EndingError("the service is ending")

    async def _learn_all(
        self, examples: list[Labelled], ids: Sequence[Id | None], given: int | None = None
    ) -> list[dict[str, Any]]:
        """Learn messages as a whole; `given` is the number of the label that waited until now."""
        X, labels = [example[0] for example in examples], [example[1] for example in examples]
        self._check_allowed(labels)
        self.model.check_labels(labels)
        self.check_size(len(examples), self._check_room(labels))
        outcomes = self._learning.ids.compared(ids, labels)
        superseded = self.teaching.superseded(X, ids)
        answers: list[dict[str, Any]] = []
        before = self.model.n_learned
        with self._lock:
            numbers = [each.message.number for each in superseded if each is not None]
            self._write(examples, ids, outcomes, numbers if given is None else [given])
        try:
            for part in slices(examples, lambda example: size_of(example[0])):
                begin, end = len(answers), len(answers) + len(part)
                with self._lock:
                    for is_known, group in itertools.groupby(outcomes[begin:end], lambda outcome: outcome == KNOWN):
                        these = slice(len(answers), len(answers) + len(list(group)))
                        if is_known:
                            block = predict_block(self.model, X[these], [])
                            answers += answers_of(block)
                        else:
                            answers += self._learning.learn(examples[these], ids[these])
                    self.teaching.drop(X[begin:end], ids[begin:end])
                if end < len(examples):
                    await give_way()
        except BaseException as error:
            if self._journal is not None:
                with self._lock, suppress(OSError):
                    self._journal.cut()
            if before == self.model.n_learned or not isinstance(error, (TypeError, ValueError)):
                raise
            raise RuntimeError(f"learned in part: {error}") from error
        for answer, outcome, label, other in zip(answers, outcomes, labels, superseded, strict=True):
            answer["learned"] = outcome != KNOWN
            if other is not None and not is_same(other.label, label):
                answer["correction"] = "taken back"
        return answers

    def _write(
        self,
        examples: list[Labelled],
        ids: Sequence[Id | None],
        outcomes: list[str],
        resolved: Sequence[int],
    ) -> None:
        """Write down what is to be learned."""
        if self._journal is not None:
            entries = [
                (example[0], example[1], example[2] if len(example) > 2 else 1.0, id)
                for example, id, outcome in zip(examples, ids, outcomes, strict=True)
                if outcome != KNOWN
            ]
            self._journal.learn(entries, resolved)

    async def unlearn(self, X: Sequence[Message], ids: Sequence[Id]) -> list[str]:
        """Forget what was learned by each id, as `Learning.unlearn` does.

        Raises
        ------
        ValueError, TypeError, OSError, EndingError
            As `learn` does; nothing is forgotten then.
        """
        self._check_learns()
        async with self._turn:
            self._check_runs()
            predict_block(self.model, [*X], [])  # which raises where a message would be refused
            entries: list[Entry] = [(x, None, 1.0, id) for x, id in zip(X, ids, strict=True)]
            with self._lock:
                if self._journal is not None:
                    self._journal.learn(entries)
                outcomes = self._unlearn(entries)
        await self._sync()
        return outcomes

    def _unlearn(self, entries: Iterable[Entry]) -> list[str]:
        return [self._learning.unlearn(x, id) for x, _, _, id in entries]

    def _count(self, n: int) -> None:
        """So many messages more are learned, or forgotten."""
        if self._journal is not None:
            self._journal.done(n)
        if self.checkpoints is not None:
            self.checkpoints.count(n)

    async def _sync(self) -> None:
        """Wait until all that is learned by now is safe; those who wait together share one look at the disk."""
        journal = self._journal
        if journal is not None and journal.safe:
            n = journal.n_written
            async with self._syncing:
                if journal.n_synced < n:
                    await asyncio.to_thread(journal.sync)

    async def asked(self, limit: int, first: str | None = None, also: int | None = None) -> dict[str, Any]:
        """The messages that people are to label next, what the model says of them, and the labels that can be taken
        back.

        Parameters
        ----------
        limit
            How many messages.
        first
            In another order than usual: see `Teaching`.
        also
            The number of a message that comes as well while it waits, as someone is reading it.
        """
        first = self.teaching.first if first is None else first
        self.teaching.fill()
        stale = self.teaching.stale(self.model.n_learned) if first == "uncertain" else []
        n_columns = len(self.model.classes)
        for part in slices(stale, lambda message: size_of(message.x) + n_columns):
            with self._lock:
                n_learned = self.model.n_learned
                block = predict_block(self.model, [message.x for message in part], [])
                self.teaching.score(part, block.predictions, n_learned)
            await asyncio.sleep(0)
        messages = self.teaching.queue(limit, first, also)
        with self._lock:
            block = predict_block(self.model, [message.x for message in messages], [])
            answers = answers_of(block, in_full=True) if messages else []
            classes = [label for label in self.model.classes if label is not None] if self.model.n_learned else []
        given = self.teaching.given()
        allowed = self._allowed()
        if allowed is None:
            labels = self._offer(itertools.chain(classes, *(_each_label(each.label) for each, _ in given)))
        else:
            labels = [*allowed.written]
        return {
            "kind": self.kind,
            "size": self.teaching.size,
            "seconds": self.teaching.seconds,
            "first": first,
            "reads": self.teaching.reads,
            "n_left_out": self.teaching.n_blank + self.teaching.n_too_long,
            "n_waiting": len(self.teaching),
            "n_given": self.teaching.n_given,
            "n_labels": len(labels),
            "are_fixed": allowed is not None,
            "labels": [shown(label) for label in (labels if allowed else labels[:MOST_OFFERED])],
            "messages": [
                {"number": message.number, "text": self.model.features.shown(message.x), **shown_answer(answer)}
                for message, answer in zip(messages, answers, strict=True)
            ],
            "given": [
                {
                    "number": each.message.number,
                    "text": self.model.features.shown(each.message.x)[:LONGEST_GIVEN],
                    "label": shown(each.label),
                    "seconds": seconds,
                }
                for each, seconds in given[:MOST_GIVEN]
            ],
        }

    def _offer(self, labels: Iterable[Any]) -> list[Any]:
        """The labels that can be given, each in the place that it had, as people know them by it; ordered ones in
        order.
        """
        now = dict.fromkeys(labels)
        if now.keys() != self._offered.keys():
            new = sorted((label for label in now if label not in self._offered), key=str)
            self._offered = dict.fromkeys([*(label for label in self._offered if label in now), *new])
        return sorted(self._offered) if self.kind == ORDERED else [*self._offered]

    async def teach(self, number: int, label: Any) -> None:
        """Take the label that a person gives a message; it is learned when it cannot be taken back any more. With
        `None` the message is passed over.

        Raises
        ------
        LookupError
            If the message does not wait for a label.
        ValueError, TypeError
            If the label is not allowed or the model does not take it, or there would be too many.
        OSError
            If the label cannot be kept.
        """
        if label is None:
            with self._lock:
                self.teaching.skip(number)
            return
        async with self._turn:
            self.teaching.message_of(number)
            allowed = self._allowed()
            known = self.model.classes if allowed is None else allowed.written
            if isinstance(label, tuple):
                label = tuple(_label_meant(known, each) for each in label)
            else:
                label = _label_meant(known, label)
            labels = [*(given.label for given, _ in self.teaching.given()), label]
            self._check_allowed(labels[-1:])
            self.model.check_labels(labels)
            self._check_room(labels)
            with self._lock:
                self.teaching.give(number, label)
        await self.learn_given()
        await self._sync()

    async def take_back(self, number: int) -> None:
        """Take a label back that is not learned yet.

        Raises
        ------
        LookupError
            If the message has no label that can be taken back.
        OSError
            If what keeps the labels fails; the label stays.
        """
        async with self._turn:
            with self._lock:
                self.teaching.take_back(number)
        await self._sync()

    async def learn_given(self, at_once: bool = False) -> None:
        """Learn the labels that people gave and that cannot be taken back any more, or `at_once` all of them."""
        async with self._turn:  # or a label that is learned by now could be learned again
            for given in self.teaching.due(at_once):
                id = None if self.teaching.reads else given.message.origin
                try:
                    await self._learn_all([(given.message.x, given.label)], [id], given.message.number)
                except OSError:  # of the journal
                    self.teaching.hold(given)
                except (ValueError, TypeError, RuntimeError) as error:
                    what = "a label that was given is not learned"
                    print(f"stream-pegasos: {what}: {error}", file=sys.stderr, flush=True)

    def _allowed(self) -> AllowedLabels | None:
        """The labels that may be learned, written as those that are known or given."""
        if self.labels is None:
            return None
        given = (_each_label(each.label) for each, _ in self.teaching.given())
        met = itertools.chain(self.model.classes, *given)
        return AllowedLabels(self.labels, next((label for label in met if truth_of(label) is not None), None))

    def _check_allowed(self, labels: Iterable[Any]) -> None:
        allowed = self._allowed()
        if allowed is not None:
            for label in dict.fromkeys(itertools.chain.from_iterable(map(_each_label, labels))):
                if not allowed.takes(label):
                    raise ValueError(f"label {label!r} is none of {', '.join(map(repr, allowed.written))}")

    def _check_room(self, labels: list[Any]) -> int:
        """See to it that the labels do not become too many, as where a field of ids is taken for the label; how many
        there will be.
        """
        known = set(self.model.classes) - {None}
        met = known.union(*labels) if self.kind == LABELS else known.union(labels)
        if len(met) > max(len(known), self.limits.classes):
            raise ValueError(f"with these there would be {len(met):,} labels; there may be {self.limits.classes:,}")
        return len(met)

    def check_size(self, n: int, n_labels: int | None = None) -> None:
        """See to it that the answers to so many messages are not too large, where each may have all labels.

        Raises
        ------
        ValueError
            If they are.
        """
        n_labels = len(self.model.classes) if n_labels is None else n_labels
        most = max(1, MOST_ANSWERED // max(1, n_labels))
        if self.kind == LABELS and n > most:
            raise ValueError(
                f"{n:,} messages, each with up to {n_labels:,} labels; a request may have {most:,} of these"
            )

    def messages_from(self, ids: Sequence[Id | None]) -> list[Message | None]:
        """The message of each id that waits for its label, or whose label can still be taken back."""
        return self.teaching.messages_from(ids)

    def learned_ids(self) -> list[Id]:
        """The ids of the newest messages learned, the oldest first."""
        with self._lock:
            return self._learning.ids.ids()

    def explain(self, x: Message, label: Any = None) -> dict[str, Any]:
        """The answer to a message, and why: see `explained`."""
        with self._lock:
            return shown_answer(explained(self.model, x, label))

    def classes(self, search: str, limit: int) -> dict[str, Any]:
        with self._lock:
            return self.monitor.classes(search, limit)

    def words(self, label: Any) -> dict[str, Any]:
        with self._lock:
            return self.monitor.words(label)

    def view(self) -> dict[str, Any]:
        with self._lock:
            view = self.monitor.view()
        return {**view, "checkpoint": self._checkpoint(), "asks": self.teaching.size > 0, "fields": self.fields}

    def describe(self) -> dict[str, Any]:
        with self._lock:
            described = {**self.monitor.describe(), "classes": list(self.model.classes)}
        parameters = {name: made_with(part) for name, part in self.model.parts.items()}
        return {**described, "parameters": parameters, "version": __version__}

    def health(self) -> str:
        """Whether what is learned can be kept: "ok", or what fails."""
        fails = {"checkpoints fail": self.checkpoints, "the journal fails": self._journal}
        return ", ".join(what for what, keeper in fails.items() if keeper and keeper.error is not None) or "ok"

    def _checkpoint(self) -> dict[str, Any] | None:
        checkpoints = self.checkpoints
        if checkpoints is None:
            return None
        written = checkpoints.written_at
        return {
            "path": checkpoints.path.name,
            "seconds_ago": None if written is None else monotonic() - written,
            "error": checkpoints.error,
        }


def _label_meant(known: Sequence[Any], given: Any) -> Any:
    try:
        label = label_named(known, given)
    except LookupError as error:
        raise ValueError(str(error)) from None
    return given if label is None else label


def _each_label(label: Any) -> Sequence[Any]:
    return label if isinstance(label, tuple) else (label,)
