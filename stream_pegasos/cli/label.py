"""The command `label`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli import options
from stream_pegasos.cli.arriving import Arriving
from stream_pegasos.cli.command import argument, bundled, command, number
from stream_pegasos.cli.console import Failure, check_choice, check_outputs, file_itself, note
from stream_pegasos.cli.descriptions import DescriptionOptions
from stream_pegasos.cli.hosting import HostingOptions, labels_for, serve_page
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.label_file import LabelFile
from stream_pegasos.cli.models import message_fields, model_to_continue, save_model, takes_several
from stream_pegasos.cli.stream import DICT_FORMATS, Stream

if TYPE_CHECKING:
    from stream_pegasos.operation.active_learning import ActiveLearning
    from stream_pegasos.service import Service
    from stream_pegasos.streams import Example


@dataclass(frozen=True)
class LabelOptions:
    file: str = argument("FILE", "The messages; - for standard input.")
    first: str = options.stream_field(
        "--first NAME",
        "What to ask first. uncertain: where the model is most unsure; oldest: in the order of FILE; newest.",
        default="uncertain",
        brief="uncertain, or oldest: in the order of FILE.",
    )
    window: int = options.stream_field(
        "--window N",
        "How many messages of FILE wait in memory, to choose from; when one is labelled the next is "
        "read. 10000 take up to 40 MB.",
        type=number(int, 21, 1_000_000),
        default=10_000,
    )
    stream: options.StreamOptions = bundled(without=("label_separator", "limit", "strict"))
    load: Path | None = options.load_field()
    vectors: str | None = options.vectors_field()
    descriptions: DescriptionOptions = bundled()
    output: Path | None = options.result_field(
        "--output LABELS",
        "Write the labels here, as JSON lines, after those already there. Another file than one of "
        "labels is refused, and an ending that is not .jsonl, .ndjson or .json.",
        brief="Write the labels here [default: NAME.labels.jsonl]",
        shown="NAME.labels.jsonl in this folder, for a FILE called NAME.csv, or labels.jsonl",
    )
    save: Path | None = options.save_field()
    force: bool = options.force_field()
    hosting: HostingOptions = bundled()


@command(LabelOptions)
def label(given: LabelOptions) -> None:
    """Ask on a page for the labels of a file; write them down as they come.

    Ctrl-C ends it. The same command goes on from LABELS: it first learns the
    labels there, and does not ask for them again. Each line of LABELS has a
    text and its label, as train reads them, with the line of FILE and its id. The newest five
    labels can be taken back for some seconds; then they are learned. A text
    that comes several times is asked for once. Blank messages and those of more
    than 20,000 characters are not asked for; the end says how many.

    Labels in FILE are not needed and not used: to label the rest of a file,
    train on the part that has labels, then --load that model. To go on, --load
    the model with which you began, not the one that --save wrote: that one has
    already learned LABELS.

    \b
    Examples:
      stream-pegasos label mail.csv --save mail.safetensors
      stream-pegasos label new.csv --load mail.safetensors --output new.jsonl
      stream-pegasos label tickets.jsonl --load model.safetensors
    """
    from stream_pegasos.operation.active_learning import FIRST, ActiveLearning
    from stream_pegasos.service import Service

    check_choice(given.first, FIRST, "--first")
    if given.load and given.save and file_itself(given.load) == file_itself(given.save):
        raise Failure(f"{given.save}: the labels would be learned twice when the command goes on; save to another file")
    output = given.output or Path(
        "labels.jsonl" if given.file == "-" else f"{Path(given.file).name.partition('.')[0]}.labels.jsonl"
    )
    check_outputs(
        output, save=given.save, force=given.force, inputs=[given.file, given.hosting.token_file], load=given.load
    )
    asked = Stream(given.file, given.stream)
    if asked.format in DICT_FORMATS:
        raise Failure(f"{asked.name} has format {asked.format}, which nobody can read; label takes texts")
    learner = model_to_continue(asked, given.load, given.vectors)
    if not given.stream.label_field and "label" in message_fields(learner):
        # The labels of FILE are not used, and take no field of its messages.
        asked = Stream(given.file, replace(given.stream, label_field="label_"))
    given.descriptions.learn(learner, asked.allowed)
    source = Input(asked, learner, unlabelled=True)
    token = given.hosting.token()
    hosts = given.hosting.hosts(token)
    with closing(source), closing(LabelFile(output, takes_several(learner), source.fields)) as labels:
        messages: Iterator[Any] = Arriving(_messages(source.in_thread())) if source.is_pipe() else _messages(source)
        active_learning = ActiveLearning(given.window, given.hosting.take_back_seconds, given.first, messages, labels)
        service = Service(
            learner, token=token, active_learning=active_learning, labels=labels_for(learner, asked.allowed)
        )
        _learn_again(labels, source, service, active_learning)
        with Interrupt() as interrupt:  # the server ends on a signal and raises it again
            interrupt.wait(_first_fill, active_learning, messages)
            if not len(active_learning):
                _report_left_out(active_learning)
                raise Failure(f"{source.name} has no message to be labelled" + " any more" * bool(labels.n))
            serve_page(service, hosts, given.hosting, "label on")
        source.report_rest()
        _report_left_out(active_learning)
        note(f"{output} has {labels.n:,} label{'s' * (labels.n != 1)}")
    if given.save is not None:
        save_model(learner, given.save)
    exit_with_code(source, interrupt)


def _messages(examples: "Iterable[Example]") -> Iterator[tuple[Any, Any]]:
    for example in examples:
        yield example.x, {"line": example.line} | ({} if example.id is None else {"id": example.id})


def _first_fill(active_learning: "ActiveLearning", messages: Iterator[Any]) -> None:
    """Take in the first messages; of a pipe at least one that waits, if there is one."""
    active_learning.fill()
    if isinstance(messages, Arriving):
        is_more = True
        while is_more and not len(active_learning):
            is_more = messages.wait()
            active_learning.fill()


def _report_left_out(active_learning: "ActiveLearning") -> None:
    from stream_pegasos.operation.active_learning import LONGEST_ASKED

    for n, what in (
        (active_learning.n_too_long, f"longer than {LONGEST_ASKED:,} characters"),
        (active_learning.n_blank, "blank"),
    ):
        if n:
            note(f"{n:,} message{'s' * (n != 1)} not asked for: {what}")


def _learn_again(labels: LabelFile, source: Input, service: "Service", active_learning: "ActiveLearning") -> None:
    """Learn the labels that were given before, but for those that are not allowed."""
    from stream_pegasos.evaluation.prequential import predict_learn

    def refuse(example: Any, reason: str) -> None:
        note(f"{labels.path}: a label is not learned: {reason}")

    given = labels.before()
    examples: list[Sequence[Any]] = []
    for example in given:
        fault = source.label_fault(example[1])
        if fault is None:
            examples.append(example)
        else:
            refuse(example, fault)
    for block in predict_learn(service.model, examples, refuse):
        service.monitor.learned([*block.examples], block)
    active_learning.remember(x for x, _ in given)
    if given:
        note(f"going on with {len(given):,} label{'s' * (len(given) != 1)}")
