"""The options of a teacher that labels messages."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from stream_pegasos.cli.command import bundled, number, shared
from stream_pegasos.cli.console import Failure, note
from stream_pegasos.cli.description_options import DescriptionOptions
from stream_pegasos.cli.models import takes_several, takes_text

if TYPE_CHECKING:
    from stream_pegasos.learners.label_policy import Label
    from stream_pegasos.learners.model import Model
    from stream_pegasos.runtime.teaching import Teaching

teacher_field = partial(shared, group="Teacher")


@dataclass(frozen=True)
class TeacherOptions:
    teacher: str | None = teacher_field(
        "--teacher URL",
        "A language model that labels messages of which the model is unsure: the address of a server with OpenAI's "
        "protocol, as http://127.0.0.1:8080/v1/chat/completions#MODEL. Its key is in STREAM_PEGASOS_TEACHER_KEY, for "
        "the host in STREAM_PEGASOS_TEACHER_HOST.",
        shown="no teacher",
    )
    ask_share: float | None = teacher_field(
        "--ask-share P",
        "With --teacher: ask about at most this share of any 1,000 messages.",
        type=number(float, 0.001, 1.0),
        shown="0.05",
    )
    ask_per_day: int | None = teacher_field(
        "--ask-per-day N",
        "With --teacher: ask about at most this many messages in any 24 hours.",
        type=number(int, 1, 1_000_000),
        shown="no limit",
    )
    descriptions: DescriptionOptions = bundled()

    def teaching(self, model: "Model", listed: "tuple[Label, ...] | None", begin: str) -> "Teaching | None":
        """The teaching by a teacher, if one is named; a new model first learns the descriptions of labels."""
        describe = self.descriptions.describe
        if self.teacher is None:
            for flag, value in (
                ("--ask-share", self.ask_share),
                ("--ask-per-day", self.ask_per_day),
                ("--describe", describe),
            ):
                if value is not None:
                    raise click.BadParameter("it goes with --teacher", param_hint=flag)
            return None
        from stream_pegasos.common.host_addresses import is_address
        from stream_pegasos.runtime.questions import Questions
        from stream_pegasos.runtime.teacher import Teacher
        from stream_pegasos.runtime.teaching import Teaching

        if not is_address(self.teacher):
            reason = f"must be an address such as http://…, got {self.teacher!r}"
            raise click.BadParameter(reason, param_hint="--teacher")
        if not takes_text(model):
            raise Failure(f"--teacher reads texts, but {begin} learns from features")
        if takes_several(model):
            raise Failure(f"--teacher: {begin} must have one label a message, got a model of several")
        descriptions = self.descriptions.read(model, listed)
        labels = {**dict.fromkeys(listed or model.classes), **descriptions}
        if len(labels) < 2:
            raise click.BadParameter("the labels are not known: name them by --labels", param_hint="--teacher")
        try:
            model.check_labels([*labels])
            teacher = Teacher(self.teacher, labels)
        except (TypeError, ValueError) as error:
            raise click.BadParameter(str(error), param_hint="--teacher") from None
        except ImportError as error:
            raise Failure(str(error)) from None
        if not model.n_learned:
            self.descriptions.learn(model, descriptions)
        questions = Questions(self.ask_share or 0.05, self.ask_per_day, labels)
        return Teaching(teacher, questions, note, model.features.shown)
