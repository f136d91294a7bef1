"""Commands of click with a help that fits a screen, and options as fields of dataclasses."""

import functools
import inspect
import math
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import Field, field, fields
from pathlib import Path
from typing import Any

import click

from stream_pegasos.cli.console import note

HELP_ALL = "--help-all"
N_EXAMPLES = 3  # in the short help
NO_BREAK = "\u2011"  # a hyphen without a line break
PATH = click.Path(path_type=Path)
ENDS_CLAUSE = re.compile(r"[.:;](?: |$)")


class _Earlier(click.Option):
    """An older spelling, which still works, with a note that names the current one."""

    def __init__(self, flag: str, **parameters: Any) -> None:
        super().__init__([f"earlier{flag}".replace("-", "_"), flag], hidden=True, expose_value=False, **parameters)


class _Option(click.Option):
    def __init__(
        self, names: list[str], group: str, brief: str = "", earlier: Sequence[str] = (), **parameters: Any
    ) -> None:
        super().__init__(names, **parameters)
        self.group, self.brief = group, brief
        # The older spelling is also a flag, or may be repeated, if the option is or may.
        alike = {"is_flag": True} if self.is_flag else {"multiple": self.multiple}
        self.earlier = [_Earlier(flag, **alike) for flag in earlier]

    def handle_parse_result(self, ctx: click.Context, opts: Any, args: list[str]) -> Any:
        _take_earlier(self, ctx, opts, lambda value: f"{self.opts[0]} {value}".rstrip())
        return super().handle_parse_result(ctx, opts, args)


class _Argument(click.Argument):
    group = "Arguments"

    def __init__(
        self, names: list[str], metavar: str, about: str, required: bool, earlier: Sequence[str] = (), **parameters: Any
    ) -> None:
        super().__init__(names, required, metavar=metavar if required else f"[{metavar}]", **parameters)
        self.record = metavar, f"{about}{'  [required]' * required}"
        self.earlier = [_Earlier(flag) for flag in earlier]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.record

    def handle_parse_result(self, ctx: click.Context, opts: Any, args: list[str]) -> Any:
        arguments = [argument for argument in ctx.command.params if isinstance(argument, click.Argument)]
        behind = arguments[arguments.index(self) + 1 :]
        value = opts.get(self.name)
        is_one = isinstance(value, str) and behind and not _is_given(behind[0], opts)
        is_named = any(_is_given(argument, opts) for argument in self.earlier)
        if is_one and self.metavar == "[MODEL]" and (is_named or not _is_model(str(value))):
            opts[behind[0].name] = opts.pop(self.name)  # the value is that of the argument after MODEL
        others_shown = "".join(f" {argument.metavar}" for argument in behind)
        _take_earlier(self, ctx, opts, lambda value: f"{ctx.command_path} {value}{others_shown}")
        return super().handle_parse_result(ctx, opts, args)


def _is_given(parameter: click.Parameter, opts: Mapping[str, Any]) -> bool:
    value = opts.get(parameter.name)
    return value is True or isinstance(value, str) or (isinstance(value, list) and len(value) > 0)


def _take_earlier(
    parameter: "_Option | _Argument", ctx: click.Context, opts: MutableMapping[str, Any], now: Callable[[str], str]
) -> None:
    """Take the value of an older spelling, and print the current spelling."""
    for name in parameter.earlier:
        if _is_given(name, opts):
            if _is_given(parameter, opts):
                raise click.UsageError(f"{parameter.metavar} is given twice, the second time as {name.opts[0]}", ctx)
            value = opts[parameter.name] = opts[name.name]
            shown = "" if value is True else value[-1] if isinstance(value, list) else value
            note(f"{f'{name.opts[0]} {shown}'.rstrip()} is now written {now(shown)}")


def _is_model(name: str) -> bool:
    """Whether an argument that may be a model is one, by the content of its file, or else by its name."""
    from stream_pegasos.learners.files import begins_as_model

    return begins_as_model(name) if os.path.isfile(name) else name.endswith(".safetensors")


def shared(flag: str, help: str, *, group: str, default: object = None, **parameters: Any) -> Any:
    """An option as a field of a dataclass: its flag with, after a space, a placeholder of its value, and its text in
    --help-all. `brief` is its text in --help, `True` for the first clause of `help`; without it only --help-all lists
    the option. `shown` is the default in the help, if it is neither the value itself nor "none". Other parameters are
    for click; the type is that of the field.
    """
    return field(default=default, metadata={"flag": flag, "help": help, "group": group, **parameters})


def argument(metavar: str, help: str, **parameters: Any) -> Any:
    """An argument, which has no flag, as a field of a dataclass. It is required unless it has a default."""
    return field(default=parameters.get("default"), metadata={"metavar": metavar, "about": help, **parameters})


def bundled(without: tuple[str, ...] = ()) -> Any:
    """A field that is a dataclass of options; all of them are offered, except those in `without`."""
    return field(default=None, metadata={"without": without})


def command(options: type[Any], cls: "type[Command] | None" = None) -> Callable[[Callable[[Any], None]], click.Command]:
    """Make a command from a function that takes its options as one dataclass."""

    def decorate(function: Callable[[Any], None]) -> click.Command:
        @functools.wraps(function)
        def run(**values: Any) -> None:
            function(_made(options, values))

        return click.command(function.__name__.replace("_", "-"), cls or Command, params=[*_parameters(options)])(run)

    return decorate


def _offered(options: type[Any], without: tuple[str, ...] = ()) -> Iterator[tuple["Field[Any]", bool]]:
    """The offered fields, and whether each is a dataclass of options."""
    return ((option, "without" in option.metadata) for option in fields(options) if option.name not in without)


def _kind(field: "Field[Any]") -> type[Any]:
    assert isinstance(field.type, type), "this module takes the types of fields as they are, so none may be a string"
    return field.type


def _parameters(options: type[Any], without: tuple[str, ...] = ()) -> Iterator[click.Parameter]:
    for option, is_bundle in _offered(options, without):
        if is_bundle:
            yield from _parameters(_kind(option), **option.metadata)
            continue
        parameters = {"type": TYPES.get(option.type), **option.metadata}
        if "flag" not in parameters:
            parameter: _Argument | _Option = _Argument(
                [option.name], required="default" not in parameters, **parameters
            )
            yield from (parameter, *parameter.earlier)
            continue
        flag, _, metavar = parameters.pop("flag").partition(" ")
        shown = parameters.pop("shown", None) or option.default or ("none" if metavar else "off")
        if parameters.get("brief") is True:
            brief = ENDS_CLAUSE.split(parameters["help"])[0]
            parameters["brief"] = f"{brief} [default: {shown}]" if option.default else f"{brief}."
        parameters["help"] += f" [default: {shown}]"
        parameters |= {"is_flag": True} if option.type in (bool, bool | None) and "/" not in flag else {}
        parameters |= {"multiple": True} if option.type == tuple[str, ...] else {}
        if not parameters.get("required"):  # click does not require a value with a default, even None
            parameters["default"] = option.default
        parameter = _Option([option.name, flag], metavar=metavar or None, **parameters)
        yield from (parameter, *parameter.earlier)


def _made(options: type[Any], values: dict[str, Any], without: tuple[str, ...] = ()) -> Any:
    """Make a dataclass of options from their values."""
    parsed_values = {
        field.name: _made(_kind(field), values, **field.metadata) if is_bundle else values[field.name]
        for field, is_bundle in _offered(options, without)
    }
    return options(**parsed_values)


def number(
    kind: type[int] | type[float], low: float = -math.inf, high: float = math.inf, word: str | None = None
) -> Callable[[str | float], Any]:
    """A converter to a number in a range, or to a certain word; its error names the allowed values."""
    expected = "a whole number" if kind is int else "a number"
    if low > -math.inf:
        expected += f" of at least {low}" if high == math.inf else f" from {low} to {high}"

    if word is not None:
        expected += f" or {word}"

    def convert(value: str | float) -> Any:
        if value == word:
            return value
        try:
            parsed_value = kind(value)
        except ValueError:
            parsed_value = math.nan
        if not low <= parsed_value <= high:
            raise click.BadParameter(f"{value!r} is not {expected}")
        return parsed_value

    return convert


# The types of click for types of fields; without them click guesses from the default.
TYPES: dict[Any, Any] = {int | None: number(int), float | None: number(float), Path: PATH, Path | None: PATH}


def _show_all(ctx: click.Context, _: click.Parameter, is_set: bool) -> None:
    if is_set:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Command(click.Command):
    """A command whose help fits a screen; --help-all shows every option, in groups, with full names."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        about = "Show all options and details."
        help_all = click.Option(
            [HELP_ALL], is_flag=True, expose_value=False, is_eager=True, callback=_show_all, help=about
        )
        return [*super().get_params(ctx), help_all]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from stream_pegasos.cli.suggestions import option_advice

            group = ctx.find_root().command
            assert isinstance(group, click.Group)
            siblings = [command for name in group.list_commands(ctx) if (command := group.get_command(ctx, name))]
            raise click.UsageError(f"{error.message} {option_advice(error.option_name, self, siblings)}", ctx) from None

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except BrokenPipeError:
            # The reader of the output has closed it.
            raise click.exceptions.Exit from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(128 + signal.SIGINT) from None

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if HELP_ALL in ctx.meta:
            super().format_help_text(ctx, formatter)
            return
        first, *_, examples = inspect.cleandoc(self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(first)
        formatter.write_paragraph()
        for example in examples.splitlines()[2 : 2 + N_EXAMPLES]:
            formatter.write(f"{example}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if HELP_ALL in ctx.meta:
                group = parameter.group if isinstance(parameter, _Option | _Argument) else "Options"
                text = text.replace("-", NO_BREAK)
            else:
                group, text = "Options", parameter.brief if isinstance(parameter, _Option) else text
            if text:
                groups.setdefault(group, []).append((name, text))
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)
        formatter.buffer = [part.replace(NO_BREAK, "-") for part in formatter.buffer]
