"""The command `freeze`."""

from pathlib import Path

import click

from stream_pegasos.cli.command import PATH, Command, argument
from stream_pegasos.cli.console import Failure, check_outputs, print_lines
from stream_pegasos.cli.models import load_model, save_model, takes_text
from stream_pegasos.cli.options import force_option, model_argument, vectors_option


@click.command(cls=Command)
@model_argument
@argument("frozen", "FROZEN", "Write the frozen model here.", type=PATH)
@force_option
@vectors_option
def freeze(model: Path, frozen: Path, force: bool, vectors: str | None) -> None:
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
    check_outputs(save=frozen, force=force, inputs=[model])
    learner = load_model(model, None, vectors)
    if not takes_text(learner):
        raise Failure(f"{model} is a model of features; only models of texts can be frozen")
    try:
        made = learner.freeze()
    except (TypeError, ValueError) as error:
        raise Failure(f"{model}: {error}") from None
    made.field_names = learner.field_names
    save_model(made, frozen)
    n = learner.n_features
    size = f", {frozen.stat().st_size / n:.1f} bytes a feature" if n and frozen.is_file() else ""
    print_lines(f"froze {n:,} features{size}; saved {frozen}")
