"""The command `run`."""

import os
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli import options
from stream_pegasos.cli.answer_formats import ANSWERS, Output, chosen_format, format_field
from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, check_outputs, check_replaceable, file_itself, note
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import exit_with_code, stopping
from stream_pegasos.cli.models import ask_for_coverage, resuming, save_model, sharing, tell_of_labels, text_model
from stream_pegasos.cli.stream import Stream
from stream_pegasos.cli.teacher_options import TeacherOptions
from stream_pegasos.cli.watching import host_and_port, metrics_at, telling
from stream_pegasos.common.display import printable
from stream_pegasos.common.file_lock import FileLock

if TYPE_CHECKING:
    from stream_pegasos.streams import Answer, Example, Source, Truth


@dataclass(frozen=True)
class RunOptions:
    begin: Path | None = options.begin_argument(earlier=("--load",))
    address: str = argument(
        "SOURCE",
        "A file that grows, kafka://host/topic?group=…, redis://host/stream?group=…, or - for standard input.",
        default="-",
    )
    kept: options.CheckpointOptions = bundled()
    save: Path | None = options.save_field(help="Write the model here at the end, also after Ctrl-C and SIGTERM.")
    sink: str = options.result_field(
        "--output SINK",
        "Where answers go: a file, kafka://…, redis://…, - for standard output, or none.",
        default="-",
        brief="File, kafka://…, redis://…, - or none [default: -]",
    )
    append: bool = options.result_field("--append", "Add answers to an output file that is not empty.", default=False)
    output_format: str | None = format_field()
    label_topic: str | None = options.stream_field(
        "--label-topic SOURCE",
        "A source of labels that come later, each with the id of its message.",
        brief="Labels that come later, by ids of messages.",
    )
    label_window: int = options.stream_field(
        "--label-window N", "How many messages wait for their labels.", type=number(int, 1), default=10_000
    )
    follow: bool = options.stream_field(
        "--follow/--no-follow", "At the end of the source, wait for more.", default=True, shown="follow"
    )
    moved: bool = options.stream_field(
        "--allow-moved",
        "Resume from the checkpoint although the source has another name or server now.",
        default=False,
        earlier=("--moved",),
    )
    share: str | None = options.stream_field(
        "--share FOLDER",
        "Share the topic with the other runs of this folder and group: each reads some partitions, and predicts with "
        "what all learned. The folder has their common checkpoint.",
        brief="Share a topic with other runs, and what they learn.",
        shown="nothing is shared",
    )
    merge_every: tuple[int, float] | None = options.stream_field(
        "--merge-every N",
        "With --share, merge after this many messages (1000) or seconds (60s); at first more often.",
        type=options.messages_or_seconds,
        shown="10s",
    )
    metrics: tuple[str, int] | None = options.service_field(
        "--metrics PORT",
        "Serve metrics for Prometheus at this port of this machine, or at HOST:PORT; 0 is any free port.",
        type=host_and_port,
        shown="nowhere",
    )
    teaching: TeacherOptions = bundled()
    stream: options.StreamOptions = bundled()
    coverage: float | None = options.coverage_field()
    vectors: str | None = options.vectors_field()

    @property
    def checkpoint(self) -> Path | None:
        """The file with the model and the progress of the run."""
        if self.share is None:
            return self.kept.path
        from stream_pegasos.runtime.shared_checkpoint import NAME

        return Path(self.share, NAME)


@command(RunOptions)
def run(arguments: RunOptions) -> None:
    """Predict each message of a live source as it comes; learn it if labelled.

    The prediction is made before the label is learned. An answer is what
    predict prints: the label, a tab and its probability. Before the first label
    it is an empty label and 0.5. If a message cannot be read, both are empty,
    and the error is reported. A topic or a stream gets the fields of
    --output-format. An output file must be new or empty, unless --append says
    that answers are added. A run that resumes from a checkpoint first cuts off
    the answers since that checkpoint, then appends, so the file has exactly one
    answer for each message. Topics, streams and standard output get the answers
    since the checkpoint again. Only standard input may be parquet, utf-16 or
    compressed. A record of csv or tsv is read when it is complete.

    --checkpoint keeps the model and the position in the source in one file.
    However the run ended, the same command resumes from there: no message is
    lost, and none is learned twice. Only standard input cannot be read again:
    its messages since the checkpoint were answered, but are not learned. MODEL
    is for the first start: a new model has the defaults, and train --save makes
    one with other options. A source with another name or on another server is
    refused, unless --allow-moved says that it is the same stream: the run then
    reads on at the same position.

    With --share, several runs of one group share a topic of Kafka: start the
    same command several times, on one or more machines, with a folder that all
    see. Each run reads the partitions that the group gives it. The runs merge
    what they learned in one checkpoint in the folder. When one dies, the others
    read on from there. MODEL is for the very first run.

    With --teacher a language model labels a share of the messages. No answer
    waits for it, but with --no-follow a file is read as fast as it answers.

    \b
    Examples:
      tail -f mail.jsonl | stream-pegasos run mail.safetensors
      stream-pegasos run mail.csv --checkpoint mail.safetensors
      stream-pegasos run 'kafka://localhost/mail?group=spam' --checkpoint m.st
      stream-pegasos run 'kafka://localhost/mail?group=spam' --share /mnt/spam
      printf 'spam\\twin\\nwin?\\n' | stream-pegasos run --format labelled-text
    """
    from stream_pegasos.runtime.run_teaching import RunTeaching
    from stream_pegasos.runtime.stream_runner import StreamRunner
    from stream_pegasos.streams import open_sink

    path = Path(arguments.sink) if arguments.sink not in ("-", "none") and "://" not in arguments.sink else None
    _check(arguments, path)
    stream = Stream(arguments.address, arguments.stream)
    is_text = path is not None or arguments.sink == "-"  # else a topic or stream, which gets the fields of answers
    if not is_text and arguments.output_format is not None:
        raise click.BadParameter("it is for files and standard output", param_hint="--output-format")
    format = chosen_format(arguments.output_format, path, stream.separator) if is_text else None
    with ExitStack() as end:
        shared = None
        if arguments.share is None:
            checkpoints, learner, progress = end.enter_context(
                resuming(arguments.kept, arguments.begin, arguments.vectors, stream)
            )
        else:
            interval = arguments.merge_every or (options.NEVER, 10.0)
            shared, learner = sharing(
                arguments.share, interval, arguments.begin, arguments.vectors, stream, arguments.coverage
            )
            checkpoints, progress = shared.checkpoints, shared.progress_for(path)
            if path is not None:  # another run that writes it would cut it
                output_lock = FileLock(path, note)
                output_lock.claim()
                end.callback(output_lock.release)
        if shared is None:
            ask_for_coverage(learner, arguments.coverage)
        if format is not None:
            format = replace(format, has_sets=learner.coverage is not None)
        teaching = arguments.teaching.teaching(learner, stream.listed, str(arguments.begin or "the model"))
        source = Input(stream, learner, unlabelled=True, unreadable=True)
        before = progress or {}
        keeps = _check_kept(arguments.append, path, before)
        if "monitor" in before:
            raise Failure(f"{arguments.checkpoint} is a checkpoint of serve; MODEL takes only the model")
        written: Output | None = None
        if arguments.sink == "none":
            send: Callable[[list[Answer]], None] = _discard
        elif format is not None:
            written = end.enter_context(closing(Output(format, path)))
            send = written.send
        else:
            server = end.enter_context(closing(open_sink(arguments.sink)))
            send = server.send
        messages, labels = _open_sources(arguments, source, before)
        known_labels = learner.classes
        if written is not None:
            is_pipe = arguments.address == "-"  # a pipe cannot be read again, and its answers stay
            written.open(append=keeps, written=None if is_pipe else before.get("output"))
            if is_pipe and _is_longer(path, before):
                progress = {**before, "unsent": []}

        def met(label: "Truth | None") -> str | None:
            source.n_good += 1  # as far as is known before the end
            return source.meet_label(label)

        def refused(example: "Example", reason: str) -> None:
            place = f"line {example.line}" if example.id is None else f"message {printable(example.id)}"
            source.report(place, reason)

        runner = StreamRunner(
            learner,
            messages,
            send,
            output=written,
            in_full=arguments.sink != "none" and (format is None or format.in_full),
            labels=labels,
            window=arguments.label_window,
            limit=arguments.stream.limit,
            checkpoints=checkpoints if shared is None else None,
            shared=shared,
            progress=progress,
            moved=arguments.moved,
            teaching=None
            if teaching is None
            else RunTeaching(teaching, text_model(learner, arguments.begin), not arguments.follow, note),
            label_fault=met,
            on_bad=refused,
            on_event=note,
        )
        stopped = end.enter_context(stopping(runner))
        if (model := arguments.save) is not None:
            end.callback(lambda: save_model(runner.model, model))  # before another signal may end the process
        with metrics_at(arguments.metrics, runner, checkpoints, lambda: source.n_bad), telling(runner):
            runner.run()
        if written is not None and not stopped:
            written.write([])  # the header, if there were no answers
        source.n_good = runner.n_read - before.get("n_read", 0)
        n_learned = runner.n_learned - before.get("n_learned", 0)
        if stopped:
            note(f"read {source.n_good:,} messages, learned {n_learned:,}, {source.bad_lines()}")
        source.report_rest()
        source.report_blank()
        if not stopped and not before:
            source.tell_of_nothing()
            if source.n_bad and not source.n_good:
                raise source.nothing("read")
        tell_of_labels(runner.model, known_labels, source.labels_met)
    if stopped:
        raise click.exceptions.Exit(128 + stopped[0])
    exit_with_code(source)


def _check(arguments: RunOptions, path: Path | None) -> None:
    if arguments.share is not None:
        _check_share(arguments)
    elif arguments.merge_every is not None:
        raise click.BadParameter("it needs --share", param_hint="--merge-every")
    if arguments.stream.limit is not None and arguments.checkpoint is not None:
        option = "--checkpoint" if arguments.share is None else "--share"
        raise click.BadParameter(f"it does not go with {option}", param_hint="--limit")
    if arguments.moved and arguments.checkpoint is None:
        raise click.BadParameter("it needs --checkpoint", param_hint="--allow-moved")
    if arguments.checkpoint and arguments.save and file_itself(arguments.checkpoint) == file_itself(arguments.save):
        # Without the position, the whole stream would be learned again.
        raise click.BadParameter("it is the file of --checkpoint, which is kept up to date anyway", param_hint="--save")
    if path is None and "://" in arguments.sink:
        from stream_pegasos.streams.opening import is_same_stream

        for read in (arguments.address, arguments.label_topic):
            if read is not None and "://" in read and is_same_stream(read, arguments.sink):
                begin, _, place = arguments.sink.partition("://")
                shown = f"{begin}://{place.partition('?')[0].rpartition('@')[2]}"  # without a possible password
                raise Failure(f"cannot write {shown}: the command reads it, and would read its own answers")
    check_outputs(path, save=arguments.save, checkpoint=arguments.checkpoint, load=arguments.begin)


def _check_share(arguments: RunOptions) -> None:
    folder = str(arguments.share)
    if arguments.kept.path is not None or arguments.kept.when is not None:
        raise click.BadParameter(
            "it does not go with --share, whose folder has the checkpoint",
            param_hint="--checkpoint, --checkpoint-every",
        )
    if arguments.teaching.teacher is not None:
        raise click.BadParameter("it does not go with --share, whose runs have one model", param_hint="--teacher")
    if arguments.label_topic is not None:
        raise click.BadParameter(
            "it does not go with --share: another run may have the message of a label", param_hint="--label-topic"
        )
    if not os.path.isdir(folder):
        raise click.BadParameter(
            f"must be a folder, got {folder}; make it first, where all runs see it", param_hint="--share"
        )


def _check_kept(append: bool, path: Path | None, before: dict[str, Any]) -> bool:
    """Whether the content of the output stays, up to the length in the checkpoint, or else completely; a Failure if it
    is not empty and no option allows this.
    """
    if path is None or _length(path, before) is not None:
        return True
    if append:
        check_replaceable(path, ANSWERS, "file of answers")
        return True
    if path.is_file() and path.stat().st_size:
        raise Failure(f"{path} is not empty: add to it by --append, name another file, or remove it")
    return bool(before)


def _length(path: Path, before: dict[str, Any]) -> int | None:
    """The length of the output at the checkpoint; `None` if the run wrote to no file or to another file."""
    match before.get("output"):
        case (name, int(length)) if name == os.path.abspath(path):
            return length
    return None


def _is_longer(path: Path | None, before: dict[str, Any]) -> bool:
    """Whether the output already has answers that the checkpoint holds as unsent."""
    length = None if path is None else _length(path, before)
    return path is not None and length is not None and path.is_file() and path.stat().st_size > length


def _open_sources(arguments: RunOptions, source: Input, before: dict[str, Any]) -> "tuple[Source, Source | None]":
    """Open the messages, and the later labels, at the positions of the checkpoint."""
    from stream_pegasos.streams import StreamError, of_any_server

    positions = [before.get("position"), before.get("label_position")]
    if arguments.moved:
        positions = [of_any_server(position) for position in positions]
    keeps = arguments.checkpoint is not None  # a later run continues, and then reads the complete last line
    opening = 0  # the number of the source
    try:
        messages, labels = source.open(positions[0], arguments.follow, keeps, share=arguments.share is not None), None
        if arguments.label_topic is not None:
            opening = 1
            labels = source.open(positions[1], arguments.follow, keeps, arguments.label_topic)
    except StreamError as error:
        about = before["sources"][opening] if "sources" in before else None
        raise Failure(f"{arguments.checkpoint} belongs to {about}: {error}" if about else str(error)) from None
    return messages, labels


def _discard(answers: "list[Answer]") -> None:
    pass
