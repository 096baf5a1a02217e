"""How commands declare their flags (flag = argument = `UNMASK_…` variable), list them in their help, and print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from unmask.records import Result
    from unmask.render.blocks import Block

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

RARE = "Rarely needed"
"""The heading of the last part of a help; what comes before fits a screen."""


class RareOption(click.Option):
    """A flag that the help lists under `RARE`."""


def option(*declarations: str, rare: bool = False, **settings: Any) -> Callable[[Decorated], Decorated]:
    """`click.option` whose value can also come from the variable of its flag: `--max-cost` is `UNMASK_MAX_COST`. A flag
    given wins."""
    flag = next(word for word in declarations if word.startswith("--"))
    variable = "UNMASK_" + flag.lstrip("-").replace("-", "_").upper()
    kind = RareOption if rare else click.Option
    return click.option(*declarations, cls=kind, **{"envvar": variable, "show_default": True, **settings})


def choice_of(names: type[StrEnum]) -> click.Choice[str]:
    return click.Choice([member.value for member in names])


json_flag = option("--json", "as_json", is_flag=True, show_default=False, help="Print JSON instead of a table.")


class Command(click.Command):
    """A command whose help has its rare flags at the end, and then examples: command lines to copy."""

    def __init__(self, *arguments: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {"Options": [], RARE: []}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)):
                groups[RARE if isinstance(parameter, RareOption) else "Options"].append(record)
        write_sections(formatter, groups)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples.splitlines()))


def write_sections(formatter: click.HelpFormatter, groups: Mapping[str, list[tuple[str, str]]]) -> None:
    """A definition list under each heading, all with the same left column."""
    widest = min(30, max((len(name) for rows in groups.values() for name, _ in rows), default=0))
    for heading, rows in groups.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), meaning) for name, meaning in rows])


# --- printing ---------------------------------------------------------------------------------------------------


def encode_json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_json(value: object) -> None:
    click.echo(encode_json(value))


def print_note(text: str) -> None:
    """A line on standard error; parts of it may be a stranger's."""
    from unmask.cli.crash import clean_for_terminal

    click.echo(clean_for_terminal(text), err=True)


def print_paged(text: str) -> None:
    """Print, a screen at a time where the terminal has too few lines for all of it: by `PAGER`, else by less."""
    from shutil import get_terminal_size

    if sys.stdout.isatty() and sys.stdin.isatty() and text.count("\n") >= get_terminal_size().lines:
        os.environ.setdefault("LESS", "-FRX")  # colours as they are, and the text stays on the screen
        click.echo_via_pager(text.removesuffix("\n"), color=in_colour())
    else:
        click.echo(text, nl=False)


def in_colour() -> bool:
    """Whether standard output is a terminal that wants colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_blocks(blocks: Iterable[Block], *, width: int | None = None) -> None:
    from unmask.render.blocks import to_terminal

    click.echo(to_terminal(blocks, width=width, color=in_colour()), nl=False)


def whole_lines() -> int | None:
    """The width for output that build servers read: no line is broken where the output is no terminal."""
    return None if sys.stdout.isatty() else 10_000


def show_result(result: Result, *, as_json: bool, width: int | None = None, **settings: Any) -> None:
    """What a command says: JSON, or blocks with these `settings` of the function that describes the result."""
    from unmask.render.describe.results import describe

    if as_json:
        print_json(result.to_json())
    else:
        print_blocks(describe(result, **settings), width=width)
