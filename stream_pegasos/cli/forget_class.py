"""The command `forget-class`."""

from dataclasses import dataclass
from pathlib import Path

from stream_pegasos.cli.command import argument, command
from stream_pegasos.cli.console import check_outputs, listed, naming, print_lines
from stream_pegasos.cli.models import chosen_label, load_with_progress, save_model
from stream_pegasos.cli.options import model_argument, must_save_field, vectors_field
from stream_pegasos.common.display import printable


@dataclass(frozen=True)
class ForgetClassOptions:
    model: Path = model_argument()
    label: str = argument("LABEL", "The label of the class, such as a typo.")
    save: Path = must_save_field(help="Write the model here; MODEL itself is fine.")
    vectors: str | None = vectors_field()


@command(ForgetClassOptions)
def forget_class(arguments: ForgetClassOptions) -> None:
    """Remove a class from a model, such as a typo.

    The class is not predicted any more; if its label comes again, it is new.
    The other classes keep what its messages taught them. A checkpoint keeps its
    position in the stream, and run or serve go on from it; stop them first.
    --labels keeps such labels out.

    \b
    Examples:
      stream-pegasos forget-class mail.safetensors Spam --save mail.safetensors
    """
    check_outputs(save=arguments.save, load=arguments.model, keeps_progress=True)
    learner, progress = load_with_progress(arguments.model, None, arguments.vectors)
    with naming(arguments.model):
        learner.forget_class(chosen_label(learner, arguments.label, "LABEL"))
    save_model(learner, arguments.save, progress)
    print_lines(f"removed {printable(arguments.label)}; left are {listed(learner.classes)}; saved {arguments.save}")
