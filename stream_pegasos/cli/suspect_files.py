"""The file of messages with labels that look wrong."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream_pegasos.cli.answer_formats import to_json
from stream_pegasos.cli.console import check_replaceable, note, writing

if TYPE_CHECKING:
    from stream_pegasos.evaluation.label_errors import LabelErrors

BEGINS = re.compile(rb'(\xef\xbb\xbf)?number,id,text,label,|\{"number": \d+, "id": ')


def check_suspects(path: Path | None) -> None:
    """Fail before the work begins if the file has another extension, or other content."""
    if path is not None and path.suffix.lower() not in (".csv", ".jsonl"):
        raise click.BadParameter(f"{path} must end in .csv or .jsonl", param_hint="--suspects")
    check_replaceable(path, BEGINS, "file of suspects")


def write_suspects(errors: "LabelErrors", path: Path) -> None:
    """Write the suspects, as CSV for a spreadsheet or as JSON lines; print their number."""
    from stream_pegasos.evaluation.label_errors import Suspect
    from stream_pegasos.runtime.wrong_answers import as_csv

    records = [suspect._asdict() for suspect in errors.suspects()]
    if path.suffix.lower() == ".csv":
        data = as_csv(records, Suspect._fields).encode("utf-8-sig", "replace")
    else:
        data = "".join(f"{to_json(record)}\n" for record in records).encode("utf-8", "backslashreplace")
    with writing(path):
        path.write_bytes(data)
    note(f"{path} has the {len(records):,} most suspicious labels{f'; {errors}' if str(errors) else ''}")
