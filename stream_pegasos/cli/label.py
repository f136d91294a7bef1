"""The command `label`."""

import os
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stream_pegasos.cli import options
from stream_pegasos.cli.answer_formats import to_json
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.console import Failure, check_outputs, file_itself, naming, note, writing
from stream_pegasos.cli.description_options import DescriptionOptions
from stream_pegasos.cli.hosting import HostingOptions, labels_for, serve_page
from stream_pegasos.cli.inputs import Input
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import model_to_continue, save_model, text_model
from stream_pegasos.cli.stream import Stream

if TYPE_CHECKING:
    from stream_pegasos.features.message import Message
    from stream_pegasos.runtime.active_learning import Waiting
    from stream_pegasos.streams import Truth


@dataclass(frozen=True)
class LabelOptions:
    begin: Path | None = options.begin_argument(earlier=("--load",))
    file: str = argument("FILE", "The messages; - for standard input.")
    stream: options.StreamOptions = bundled(without=("label_field", "label_separator", "limit", "strict"))
    vectors: str | None = options.vectors_field()
    descriptions: DescriptionOptions = bundled()
    output: Path | None = options.result_field(
        "--output LABELS",
        "Write the labels here, as JSON lines, after those already there; its name ends in .jsonl.",
        brief="Write the labels here [default: NAME.labels.jsonl]",
        shown="NAME.labels.jsonl in this folder, for a FILE called NAME.csv, or labels.jsonl",
    )
    save: Path | None = options.save_field()
    hosting: HostingOptions = bundled(without=("allowed_host", "access_log", "take_back_seconds"))


@command(LabelOptions)
def label(arguments: LabelOptions) -> None:
    """Ask on a page for the labels of a file; save each label at once.

    Ctrl-C ends it; the same command learns LABELS first, then continues. At
    most 10,000 messages wait. Blank messages and those of over 20,000
    characters are left out.

    Labels in FILE are not used. To continue, give the MODEL with which you
    began, not the one that --save wrote: it has already learned LABELS.

    \b
    Examples:
      stream-pegasos label mail.csv --save mail.safetensors
    """
    from stream_pegasos.blocks.blockwise import predict_learn
    from stream_pegasos.runtime.active_learning import ActiveLearning, is_asked
    from stream_pegasos.runtime.live_learner import LiveLearner

    if arguments.begin and arguments.save and file_itself(arguments.begin) == file_itself(arguments.save):
        raise Failure(
            f"{arguments.save}: the labels would be learned twice when the command runs again; save to another file"
        )
    name = "" if arguments.file == "-" else Path(arguments.file).name.partition(".")[0] + "."
    output = arguments.output or Path(f"{name}labels.jsonl")
    check_outputs(output, save=arguments.save, load=arguments.begin)
    stream = Stream(arguments.file, arguments.stream, reads_labels=False)
    if stream.has_features:
        raise Failure(f"{stream.name} has format {stream.format}, which nobody can read; label takes texts")
    token = arguments.hosting.token()
    hosts = arguments.hosting.hosts(token)
    learner = text_model(model_to_continue(stream, arguments.begin, arguments.vectors), arguments.begin)
    arguments.descriptions.learn(learner, arguments.descriptions.read(learner, stream.listed))
    allowed = labels_for(learner, stream.listed)
    written = options.StreamOptions(
        format="jsonl", text_field="text", label_field="label", labels=arguments.stream.labels
    )
    source, before = Input(stream, learner, unlabelled=True), Input(Stream(str(output), written), learner)
    with closing(source), closing(LabelFile(output)) as labels, Interrupt() as interrupt, suppress(KeyboardInterrupt):
        waiting = ActiveLearning(10_000, arguments.hosting.take_back_seconds, of_file=True, store=labels)
        service = LiveLearner(learner, token=token, active_learning=waiting, labels=allowed)
        with naming(output), service.monitor.learning_again():
            given_before = labels.go_on(before)
            for block in predict_learn(learner, given_before, before.refuse):
                service.monitor.learned([*block.examples], block)
        waiting.n_given = labels.n = len(given_before)
        waiting.drop([example.x for example in given_before])
        for example in takewhile(lambda _: waiting.has_room(), interrupt.until_signal(source)):
            try:
                learner.features.read(example.x)
            except (TypeError, ValueError) as error:  # otherwise no message could be asked for any more
                source.refuse(example, str(error))
                continue
            origin = {"line": example.line} | ({} if example.id is None else {"id": example.id})
            labels.origins.setdefault(example.x, origin)
            waiting.add([cast("Message", example.x)])
        source.report_rest()
        if n := sum(not is_asked(x) for x in labels.origins):
            note(f"{n:,} message{'s' * (n != 1)} not asked for: blank, or longer than 20,000 characters")
        if not len(waiting):
            raise Failure(f"{source.name} has no message to label" + " any more" * bool(labels.n))
        serve_page(service, hosts, arguments.hosting, "label on")
        note(f"{output} has {labels.n:,} label{'s' * (labels.n != 1)}")
    if arguments.save is not None:
        save_model(learner, arguments.save)
    exit_with_code(source, interrupt)


class LabelFile:
    """The file of labels given by people. Its last lines, whose labels can be taken back, may be removed again."""

    def __init__(self, path: Path) -> None:
        self.path, self.n, self.origins = path, 0, dict[Any, dict[str, Any]]()  # its line and its id, by message
        self._held: dict[int, bytes] = {}  # the last lines, by the number of the message
        if path.suffix.lower() not in ("", ".jsonl", ".ndjson", ".json"):
            raise Failure(f"{path}: labels are written as JSON lines; end its name in .jsonl")
        with writing(path):
            self._file = open(path, "r+b" if path.exists() else "w+b", buffering=0)  # noqa: SIM115
        self.close = self._file.close
        with suppress(ImportError):  # not on Windows
            import fcntl

            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise Failure(f"{path} is in use: another process writes its labels there") from None

    def go_on(self, before: Input) -> list[Any]:
        """The messages in the file, with their labels."""
        end = self._file.seek(0, os.SEEK_END)
        note(f"labels go to {self.path}")
        labelled = [*before]
        if end and not before.n_good:
            raise Failure(
                f"{self.path} exists, but none of its lines is JSON with a text and a label; it stays as it is"
            )
        self._file.seek(max(0, end - 1))
        if self._file.read() not in (b"", b"\n"):
            self._file.write(b"\n")
        return labelled

    def given(self, message: "Waiting", label: "Truth") -> None:
        content = {"text": message.x} if isinstance(message.x, str) else message.x
        line = to_json({**self.origins.get(message.x, {}), **content, "label": label}) + "\n"
        self._put({**self._held, message.number: line.encode("utf-8", "backslashreplace")})

    def taken_back(self, message: "Waiting") -> None:
        self._put({number: line for number, line in self._held.items() if number != message.number})

    def learned(self, message: "Waiting") -> None:
        del self._held[message.number]

    def _put(self, lines: dict[int, bytes]) -> None:
        end, data = self._file.seek(0, os.SEEK_END), b"".join(lines.values())
        self._file.seek(end - sum(map(len, self._held.values())))
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            self._file.truncate(end)  # the new line comes after the existing ones
            raise
        self._file.truncate()
        self.n, self._held = self.n + len(lines) - len(self._held), lines
