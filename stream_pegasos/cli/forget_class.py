"""The command `forget-class`."""

from pathlib import Path

import click

from stream_pegasos.cli.command import PATH, Command, argument
from stream_pegasos.cli.console import Failure, check_outputs, listed, print_lines, printable, writing
from stream_pegasos.cli.models import chosen_label, load_model
from stream_pegasos.cli.options import force_option, model_argument, result_option, vectors_option


@click.command(cls=Command)
@model_argument
@argument("label", "LABEL", "The label of the class, such as one that a typo brought.")
@result_option(
    "--save OUT",
    "Write the model here; MODEL itself is fine.",
    required=True,
    type=PATH,
    brief=True,
    shown="none, it must be given",
)
@force_option
@vectors_option
def forget_class(model: Path, label: str, save: Path, force: bool, vectors: str | None) -> None:
    """Remove a class from a model, such as one that a typo brought.

    The class is not predicted any more; if its label comes again, it is new.
    What its messages taught the other classes stays. A checkpoint keeps its
    position in the stream, and run or serve go on from it; stop them first.
    --labels keeps such labels out.

    \b
    Examples:
      stream-pegasos forget-class mail.safetensors Spam --save mail.safetensors
    """
    from stream_pegasos.learners.loading import load_with_progress
    from stream_pegasos.operation.checkpoints import Checkpoints

    check_outputs(save=save, force=force)
    checkpoints = Checkpoints(save)
    checkpoints.claim()
    try:
        learner = load_model(model, None, vectors)
        _, progress = load_with_progress(model, vectors)
        try:
            learner.forget_class(chosen_label(learner, label, "LABEL"))
        except TypeError as error:
            raise Failure(f"{model}: {error}") from None
        with writing(save):
            learner.snapshot(progress).write(save)
    finally:
        checkpoints.release()
    print_lines(f"removed {printable(label)}; left are {listed(learner.classes)}; saved {save}")
