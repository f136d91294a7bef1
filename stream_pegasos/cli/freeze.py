"""The command `freeze`."""

from dataclasses import dataclass
from pathlib import Path

from stream_pegasos.cli.command import argument, command
from stream_pegasos.cli.console import check_outputs, naming, print_lines
from stream_pegasos.cli.models import check_takes_text, load_model, save_model
from stream_pegasos.cli.options import force_field, model_argument, vectors_field


@dataclass(frozen=True)
class FreezeOptions:
    model: Path = model_argument()
    frozen: Path = argument("FROZEN", "Write the frozen model here.")
    force: bool = force_field()
    vectors: str | None = vectors_field()


@command(FreezeOptions)
def freeze(given: FreezeOptions) -> None:
    """Write what a model needs to predict, for many machines.

    A frozen model has a fifth of the size, or less. It predicts as the model
    does, up to rounding, and cannot learn. predict, test, explain and serve
    take it. All processes of a machine that use the file share one copy in
    memory.

    \b
    Examples:
      stream-pegasos freeze mail.safetensors frozen.safetensors
      stream-pegasos predict frozen.safetensors new.jsonl
    """
    check_outputs(save=given.frozen, force=given.force, inputs=[given.model])
    learner = load_model(given.model, None, given.vectors)
    check_takes_text(learner, given.model)
    with naming(given.model):
        made = learner.freeze()
    made.field_names = learner.field_names
    save_model(made, given.frozen)
    n = learner.n_features
    size = f", {given.frozen.stat().st_size / n:.1f} bytes a feature" if n and given.frozen.is_file() else ""
    print_lines(f"froze {n:,} features{size}; saved {given.frozen}")
