"""Options shared by commands of mail; in a small module, because mail-filter starts once for each mail."""

import functools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stream_pegasos.cli.command import number, shared

if TYPE_CHECKING:
    from stream_pegasos.mail.verdict import Verdicts

mail_field = functools.partial(shared, group="Mail")
vectors_field = functools.partial(
    shared,
    "--vectors NAME_OR_PATH",
    "The word vectors or the encoder of the model: its file names a file, a folder or a server, but never opens it.",
    group="Model",
    shown="those of an installed package, or in the file of the model",
)


@dataclass(frozen=True)
class VerdictOptions:
    """Options for the verdicts spam, ham and unsure; named as the parameters of `Verdicts`."""

    spam_threshold: float = mail_field(
        "--spam-threshold P", "A mail is spam from this probability.", type=number(float, 0, 1), default=0.9, brief=True
    )
    ham_threshold: float = mail_field(
        "--ham-threshold P",
        "A mail is ham below this probability of spam; between the two it is unsure.",
        type=number(float, 0, 1),
        default=0.1,
    )

    def verdicts(self) -> "Verdicts":
        from stream_pegasos.mail.verdict import Verdicts

        try:
            return Verdicts(self.spam_threshold, self.ham_threshold)
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error)) from None


def header_advice(name: str) -> str:
    """Advice about a header that reveals the label."""
    ignored = json.dumps({"ignored_headers": [name]})
    return f"if no sender wrote it, new mails will not have it: train with --features '{ignored}'"
