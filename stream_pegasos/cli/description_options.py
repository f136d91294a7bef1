"""The option with descriptions of labels, which a model learns before its messages."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream_pegasos.cli.console import Failure, naming, note
from stream_pegasos.cli.models import takes_text
from stream_pegasos.cli.options import model_field, read_json
from stream_pegasos.common.display import printable

if TYPE_CHECKING:
    from stream_pegasos.learners.label_policy import Label, LabelPolicy
    from stream_pegasos.learners.model import Model


NAMES = "names"  # instead of a file


@dataclass(frozen=True)
class DescriptionOptions:
    describe: str | None = model_field(
        "--describe FILE",
        "The meaning of labels, learned before the messages: lines of a label, a tab and a text, or a JSON object of "
        "labels, each with a text, a list of texts, or null for its name. The word names, in place of a file, means "
        "the names of the labels: of --labels, of the loaded model or of those compared.",
    )

    def read(
        self, model: "Model", allowed: "tuple[Label, ...] | None", known_labels: "Iterable[Label]" = ()
    ) -> "dict[Label, Any]":
        """The descriptions by label, if the option is given; `known_labels` are labels beside those of the model."""
        from stream_pegasos.learners.label_policy import LabelPolicy

        if self.describe is None:
            return {}
        policy = LabelPolicy([*model.classes, *known_labels], allowed=allowed)
        if self.describe != NAMES:
            with naming(self.describe):
                return read_descriptions(Path(self.describe), policy)
        named: dict[Any, Any] = dict.fromkeys(
            [*model.classes, *known_labels] if allowed is None else map(policy.read, allowed)
        )
        if not named:
            raise click.BadParameter("the labels are not known: name them by --labels", param_hint="--describe")
        return named

    def learn(self, model: "Model", descriptions: "dict[Label, Any]") -> None:
        """Let a model learn the descriptions of labels."""
        if not descriptions:
            return
        if not takes_text(model):
            raise Failure("descriptions are texts, but the model learns from features")
        try:
            lessons = model.make_lessons(descriptions)
            model.learn_many(lessons.X, lessons.y, lessons.w)
        except (TypeError, ValueError) as error:
            raise Failure(f"{self.describe}: {error}") from None
        if lessons.warning is not None:
            note(lessons.warning)


def read_descriptions(path: Path, policy: "LabelPolicy") -> dict[Any, Any]:
    """The texts of each label in a file; `None` stands for its name. `policy` reads a text's label."""
    from stream_pegasos.streams.encoding import marked_encoding

    written = path.read_bytes()
    content = written.decode(marked_encoding(written) or "utf-8-sig")
    descriptions: dict[Any, Any] = {}
    if content.lstrip().startswith("{"):
        for name, texts in read_json(content, as_pairs=True):
            label = _label(name, policy)
            if label is None:
                raise ValueError(f"a label must be written here, got {name!r}")
            if label in descriptions:
                raise ValueError(f"label {printable(label)} must be described once, got it twice")
            descriptions[label] = texts
        return descriptions
    for number, line in enumerate(content.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        name, _, text = line.partition("\t")
        label = _label(name, policy)
        if label is None:
            if line.strip():
                raise ValueError(f"line {number} has no label before its first tab")
            continue
        texts = descriptions.setdefault(label, [])
        if text.strip():
            texts.append(text)
    return {label: texts or None for label, texts in descriptions.items()}


def _label(name: str, policy: "LabelPolicy") -> Any:
    from stream_pegasos.streams.example import good_label

    label = good_label(policy.read(name))
    return None if label is None else good_label(policy.refusal(label, printable) or label)
