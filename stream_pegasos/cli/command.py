"""Commands as functions: each parameter is annotated with what the command line and the help call it."""

import functools
import inspect
import math
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import click


@dataclass(frozen=True)
class Option:
    """How a parameter is called on the command line, and what the help says of it."""

    flag: str  # with that for the opposite behind a slash
    help: str
    default: str
    group: str
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    hidden: bool = False
    brief: str = ""  # what --help says of it, in a line; without one, only --help-all has it

    def of_click(self, name: str, kind: Any, given: dict[str, Any]) -> click.Option:
        is_flag = kind is bool
        return _Option(
            [self.flag, name],
            group=self.group,
            brief=self.brief,
            help=f"{self.help} [default: {self.default}]",
            metavar=self.metavar,
            type=None if is_flag else _type_of_click(kind, self.min, self.max),
            is_flag=is_flag,
            hidden=self.hidden,
            **given,
        )


@dataclass(frozen=True)
class Argument:
    """The same for what has no flag."""

    metavar: str
    help: str

    def of_click(self, name: str, kind: Any, given: dict[str, Any]) -> click.Argument:
        return _Argument([name], about=self.help, metavar=self.metavar, type=_type_of_click(kind), **given)


def _type_of_click(kind: Any, low: float | None = None, high: float | None = None) -> Any:
    if kind is Path:
        return click.Path(path_type=Path)
    return _Number(kind, low, high) if kind in (int, float) else kind


class _Number(click.ParamType):  # type: ignore[type-arg]  # which older ones do not have
    """A number in a range, of which a mistake says what is wanted."""

    name = "number"

    def __init__(self, kind: type[int] | type[float], low: float | None, high: float | None) -> None:
        self._kind, self._low, self._high = kind, low, high
        self._wanted = "a whole number" if kind is int else "a number"
        if low is not None:
            self._wanted += f" of at least {low}" if high is None else f" from {low} to {high}"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        try:
            number = self._kind(value)
        except ValueError:
            number = None
        if number is None or not (self._low is None or self._low <= number <= (self._high or math.inf)):
            self.fail(f"{value!r} is not {self._wanted}", parameter, context)
        return number


class _Option(click.Option):
    def __init__(self, names: list[str], group: str, brief: str, **given: Any) -> None:
        super().__init__(names, **given)
        self.group, self.brief = group, brief


class _Argument(click.Argument):
    group = "Arguments"

    def __init__(self, names: list[str], metavar: str, about: str, required: bool, **given: Any) -> None:
        super().__init__(names, required, metavar=metavar if required else f"[{metavar}]", **given)
        self.record = metavar, f"{about}{'  [required]' * required}"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.record


def _brief_record(parameter: click.Parameter, ctx: click.Context) -> tuple[str, str] | None:
    record = parameter.get_help_record(ctx)
    if record is not None and isinstance(parameter, _Option):
        return (record[0], parameter.brief) if parameter.brief else None
    return record


NO_BREAK = "\u2011"  # a hyphen at which no line ends


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = "--help-all"
N_EXAMPLES = 3  # in the help of one screen


class _Command(click.Command):
    """A command whose help fits a screen; --help-all has every option, in groups, with whole names."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        about = "Show every option, and what else there is to know."
        help_all = click.Option(
            [HELP_ALL], is_flag=True, expose_value=False, is_eager=True, callback=_show_all, help=about
        )
        return [*super().get_params(ctx), help_all]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if HELP_ALL in ctx.meta:
            super().format_help_text(ctx, formatter)
            return
        first, *_, examples = (self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(first)
        formatter.write_paragraph()
        for example in examples.splitlines()[2 : 2 + N_EXAMPLES]:
            formatter.write(f"{example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if HELP_ALL not in ctx.meta:
            parameters = self.get_params(ctx)
            records = [found for parameter in parameters if (found := _brief_record(parameter, ctx)) is not None]
            with formatter.section("Options"):
                formatter.write_dl(records)
            return
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                name, text = record
                group = groups.setdefault(getattr(parameter, "group", "Options"), [])
                group.append((name, text.replace("-", NO_BREAK)))  # or lines would end within names of options
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)
        formatter.buffer = [part.replace(NO_BREAK, "-") for part in formatter.buffer]


def parameters_of(function: Callable[..., None]) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and default of each parameter; those that a parameter stands for that is a dataclass."""
    for parameter in inspect.signature(function).parameters.values():
        if is_dataclass(parameter.annotation):
            yield from ((field.name, field.type, field.default) for field in fields(parameter.annotation))
        else:
            yield parameter.name, parameter.annotation, parameter.default


def command_of(function: Callable[..., None]) -> click.Command:
    """The command that a function is."""
    parameters: list[click.Parameter] = []
    for name, annotation, default in parameters_of(function):
        kind, declared = get_args(annotation)
        (kind,) = set(get_args(kind) or (kind,)) - {NoneType}
        given = {"required": True} if default is inspect.Parameter.empty else {"default": default, "required": False}
        parameters.append(declared.of_click(name, kind, given))
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in inspect.signature(function).parameters.values()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        try:
            function(**values)
        except BrokenPipeError:
            # The reader of the output has had enough.
            raise click.exceptions.Exit from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(128 + signal.SIGINT) from None

    return _Command(function.__name__.replace("_", "-"), callback=run, params=parameters, help=inspect.getdoc(function))
