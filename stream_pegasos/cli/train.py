"""The command `train`."""

from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from stream_pegasos.cli import options
from stream_pegasos.cli.command import argument, bundled, command
from stream_pegasos.cli.console import check_outputs, note, print_lines, rate
from stream_pegasos.cli.description_options import DescriptionOptions
from stream_pegasos.cli.inputs import Input, model_for_first_message, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.mail_options import header_advice
from stream_pegasos.cli.models import keep_names, model_for, save_model, tell_of_labels
from stream_pegasos.cli.stream import Stream, labelled_stream
from stream_pegasos.common.display import printable

if TYPE_CHECKING:
    from stream_pegasos.learners.model import Model


@dataclass(frozen=True)
class TrainOptions:
    begin: Path | None = options.begin_argument(earlier=("--load",))
    file: str | None = argument(
        "FILE", "The stream, - for standard input; without it the model is made but learns nothing.", default=None
    )
    mails: options.MailOptions = bundled()
    save: Path = options.must_save_field()
    names: bool = options.names_field()
    stream: options.StreamOptions = bundled(without=("id_field",))
    model: options.ModelOptions = bundled()
    descriptions: DescriptionOptions = bundled()


@command(TrainOptions)
def train(arguments: TrainOptions) -> None:
    """Learn a stream in one pass and save the model.

    Lines that cannot be read or learned are reported and skipped. Ctrl-C
    ends the training and saves the model.

    Without FILE the new model is saved at once, for run, serve and label to
    go on with. A loaded model gets the given threshold or limit, and keeps its
    progress if it is a checkpoint.

    \b
    Examples:
      stream-pegasos train mail.jsonl.gz --save mail.safetensors
      stream-pegasos train old.safetensors new.jsonl --save new.safetensors
      stream-pegasos train --spam Maildir/.Junk --ham Maildir --save m.safetensors
      stream-pegasos train --multi-label --vectors wordllama --save new.safetensors
    """
    check_outputs(save=arguments.save, load=arguments.begin, keeps_progress=True)
    from stream_pegasos.blocks.blockwise import chunks, encoded_ahead, predict_learn
    from stream_pegasos.evaluation.label_errors import LabelErrors, shown_by

    if arguments.file is None and not arguments.mails.given:
        _save_untaught(arguments)
        return
    stream = labelled_stream(arguments.file, arguments.mails, arguments.stream)
    learner, progress = model_for(stream, arguments.begin, arguments.model)
    descriptions = arguments.descriptions.read(learner, stream.listed)
    source = Input(stream, learner, known_labels=descriptions)
    known_labels = learner.classes
    n, start = 0, perf_counter()
    with Interrupt() as interrupt, closing(source):
        if arguments.begin is None:
            learner = model_for_first_message(learner, arguments.model, source, interrupt.wait)
        if arguments.names:
            keep_names(learner)
        arguments.descriptions.learn(learner, descriptions)
        telling, errors = TellingHeaders(learner), LabelErrors(shown_by(learner))
        with progress_bar(source) as show, suppress(KeyboardInterrupt):
            for chunk in encoded_ahead([learner], chunks(interrupt.until_signal(source))):
                telling.meet(chunk)
                for block in predict_learn(learner, chunk, source.refuse, options.n_threads()):
                    counted = block.counted()
                    n += len(counted)
                    errors.update(counted)
                show(n, "")
        seconds = perf_counter() - start
        source.report_rest()
        if not n and interrupt.signal is None:
            raise source.nothing(f"learned, and {arguments.save} is not written")
        save_model(learner, arguments.save, progress)
        interrupted = ", interrupted" * (interrupt.signal is not None)
        print_lines(
            f"learned {n:,} messages{rate(n, seconds)}, {source.bad_lines()}{interrupted}; saved {arguments.save}"
        )
        tell_of_labels(learner, known_labels, source.labels_met)
        telling.report()
        if str(errors):
            note(f"{errors}; to see them: stream-pegasos evaluate FILE --suspects suspects.csv")
    exit_with_code(source, interrupt)


class TellingHeaders:
    """Warns of header fields that almost reveal the label by themselves, if a model reads whole mails."""

    def __init__(self, learner: "Model") -> None:
        from stream_pegasos.features.base import Features
        from stream_pegasos.mail_text.features import MailFeatures
        from stream_pegasos.mail_text.telling import TellingFields

        self._fields = TellingFields()
        features = learner.parts.get("features")
        self._mail_field = features.mail_field if isinstance(features, Features) else None
        self._ignored = features.is_ignored if isinstance(features, MailFeatures) else lambda name: False

    def meet(self, chunk: "list[Any]") -> None:
        for x, y, *_ in chunk if self._mail_field is not None else ():
            mail = x if isinstance(x, str) else x.get(self._mail_field)
            if isinstance(mail, str):
                self._fields.meet(mail, y)

    def report(self) -> None:
        for name, label, n, total in self._fields.found():
            if not self._ignored(name):
                note(
                    f"the header {name} alone nearly tells the label: of {total:,} mails with it {n:,} are "
                    f"{printable(label)}; {header_advice(name)}"
                )


def _save_untaught(arguments: TrainOptions) -> None:
    """Save a new or loaded model, with its progress if it is a checkpoint."""
    stream = Stream("-", arguments.stream)
    learner, progress = model_for(stream, arguments.begin, arguments.model)
    if arguments.names:
        keep_names(learner)
    arguments.descriptions.learn(learner, arguments.descriptions.read(learner, stream.listed))
    save_model(learner, arguments.save, progress)
    print_lines(f"saved {arguments.save}, a model that has learned {learner.n_learned:,} messages")
