"""What commands are made of: click's, with a help that fits a screen, and options that several commands share."""

import functools
import inspect
import math
import signal
from collections.abc import Callable
from dataclasses import field, fields
from pathlib import Path
from typing import Any

import click

HELP_ALL = "--help-all"
N_EXAMPLES = 3  # in the help of one screen
NO_BREAK = "\u2011"  # a hyphen at which no line ends
PATH = click.Path(path_type=Path)

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


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


def option(
    flag: str,
    help: str,
    *,
    group: str,
    name: str | None = None,
    brief: str | bool = "",
    shown: str | None = None,
    **given: Any,
) -> Decorator:
    """An option of click's, as "--limit N", in a group of --help-all. `brief` is what --help says of it, `True` for all
    of its help; without one, only --help-all has it. `shown` is the default as it is shown, where it is not the value
    itself.
    """
    flag, _, metavar = flag.partition(" ")
    default = shown or given.get("default") or "off"
    if brief is True:
        brief = f"{help.rstrip('.')} [default: {default}]" if given.get("default") else help
    return click.option(
        *filter(None, (name, flag)),
        cls=_Option,
        group=group,
        brief=brief,
        help=f"{help} [default: {default}]",
        metavar=metavar or None,
        **given,
    )


def argument(name: str, metavar: str, help: str, **given: Any) -> Decorator:
    """The same for what has no flag."""
    return click.argument(name, cls=_Argument, metavar=metavar, about=help, required="default" not in given, **given)


def shared(flag: str, help: str, default: Any = None, **given: Any) -> Any:
    """An option as a field of a dataclass, which `bundled` makes options of a command."""
    return field(default=default, metadata={"flag": flag, "help": help, **given})


def bundled(name: str, kind: type[Any], without: tuple[str, ...] = ()) -> Decorator:
    """The options that are the fields of a dataclass, but for those `without` which the command has a use; the command
    takes them as one parameter of that name.
    """
    offered = [each for each in fields(kind) if each.name not in without]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**values: Any) -> None:
            function(**{name: kind(**{each.name: values.pop(each.name) for each in offered}), **values})

        made: Callable[..., None] = run
        for each in reversed(offered):
            given = {"type": TYPES.get(each.type), **each.metadata}
            if each.type in (bool, bool | None) and "/" not in given["flag"]:
                given["is_flag"] = True
            made = option(name=each.name, default=each.default, **given)(made)
        return made

    return decorate


def number(kind: type[int] | type[float], low: float = -math.inf, high: float = math.inf) -> Callable[[Any], float]:
    """A number in a range, of which a mistake says what is wanted."""
    wanted = "a whole number" if kind is int else "a number"
    if low > -math.inf:
        wanted += f" of at least {low}" if high == math.inf else f" from {low} to {high}"

    def convert(value: Any) -> float:
        try:
            found = kind(value)
        except ValueError:
            found = math.nan
        if not low <= found <= high:
            raise click.BadParameter(f"{value!r} is not {wanted}")
        return found

    return convert


# Of the fields that name none.
TYPES: dict[Any, Any] = {int | None: number(int), float | None: number(float), Path | None: PATH}


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


class Command(click.Command):
    """A command whose help fits a screen; --help-all has every option, in groups, with whole names."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        about = "Show every option, and what else there is to know."
        help_all = click.Option(
            [HELP_ALL], is_flag=True, expose_value=False, is_eager=True, callback=_show_all, help=about
        )
        return [*super().get_params(ctx), help_all]

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
        except BrokenPipeError:
            # The reader of the output has had enough.
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
                group, text = getattr(parameter, "group", "Options"), text.replace("-", NO_BREAK)
            else:
                group, text = "Options", getattr(parameter, "brief", text)
            if text:
                groups.setdefault(group, []).append((name, text))
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)
        formatter.buffer = [part.replace(NO_BREAK, "-") for part in formatter.buffer]
