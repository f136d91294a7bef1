"""The command `train`."""

from contextlib import closing, suppress
from pathlib import Path
from time import perf_counter

import click

from stream_pegasos.cli.command import PATH, Command, argument, bundled
from stream_pegasos.cli.console import check_outputs, print_lines, rate, writing
from stream_pegasos.cli.inputs import Input, model_for_first_message, progress_bar
from stream_pegasos.cli.interrupts import Interrupt, exit_with_code
from stream_pegasos.cli.models import (
    keep_names,
    labels_known,
    model_for,
    save_model,
    tell_of_labels,
)
from stream_pegasos.cli.options import (
    MailOptions,
    ModelOptions,
    StreamOptions,
    force_option,
    load_option,
    n_threads,
    names_option,
    result_option,
    threads_option,
)
from stream_pegasos.cli.stream import Stream, labelled_stream


@click.command(cls=Command)
@argument(
    "file", "FILE", "The stream, - for standard input; without it the model is made and taught nothing.", default=None
)
@bundled("mails", MailOptions)
@result_option(
    "--save MODEL",
    "Write the model here, as safetensors.",
    required=True,
    type=PATH,
    brief="Write the model here.",
    shown="none, it must be given",
)
@force_option
@load_option
@names_option
@bundled("stream", StreamOptions)
@threads_option
@bundled("model", ModelOptions)
def train(
    file: str | None,
    mails: MailOptions,
    save: Path,
    force: bool,
    load: Path | None,
    names: bool,
    stream: StreamOptions,
    threads: int | None,
    model: ModelOptions,
) -> None:
    """Learn a stream in one pass and save the model.

    Lines that cannot be read or learned are reported and skipped. Ctrl-C
    ends the training and saves the model.

    Without FILE the model is saved as it is made: run, serve and label go on
    with it. With --load it is the loaded one, with its progress if it is a
    checkpoint, and the threshold or the limit that is asked for.

    \b
    Examples:
      stream-pegasos train mail.jsonl.gz --save mail.safetensors
      stream-pegasos train new.jsonl --load old.safetensors --save new.safetensors
      stream-pegasos train --spam Maildir/.Junk --ham Maildir --save m.safetensors
      stream-pegasos train --multi-label --vectors wordllama --save new.safetensors
    """
    check_outputs(save=save, force=force, inputs=[file, *mails.paths])
    from stream_pegasos.evaluation.prequential import chunks, learn

    if file is None and not mails.given:
        _save_untaught(save, load, names, stream, model)
        return
    asked = labelled_stream(file, mails, stream)
    learner = model_for(asked, load, model)
    source = Input(asked, learner)
    known = labels_known(learner)
    n, start = 0, perf_counter()
    with Interrupt() as interrupt, closing(source):
        if load is None:
            learner = model_for_first_message(learner, model, source, interrupt.wait)
        if names:
            keep_names(learner)
        with progress_bar(source) as progress, suppress(KeyboardInterrupt):
            for chunk in chunks(interrupt.until_signal(source)):
                n += learn(learner, chunk, source.refuse, n_threads(threads))
                progress(n, "")
        seconds = perf_counter() - start
        source.report_rest()
        if not n and interrupt.signal is None:
            raise source.nothing(f"learned, and {save} is not written")
        save_model(learner, save)
        interrupted = ", interrupted" * (interrupt.signal is not None)
        print_lines(f"learned {n:,} messages{rate(n, seconds)}, {source.bad_lines()}{interrupted}; saved {save}")
        tell_of_labels(learner, known, source.labels_met, model.pos_label)
    exit_with_code(source, interrupt)


def _save_untaught(save: Path, load: Path | None, names: bool, stream: StreamOptions, model: ModelOptions) -> None:
    """Save a model that is made or loaded, with what stands beside it in a checkpoint."""
    from stream_pegasos.learners.loading import load_with_progress

    learner = model_for(Stream("-", stream), load, model)
    if names:
        keep_names(learner)
    progress = None if load is None else load_with_progress(load, model.vectors)[1]
    with writing(save):
        learner.snapshot(progress).write(save)
    print_lines(f"saved {save}, a model that has learned {learner.n_learned:,} messages")
