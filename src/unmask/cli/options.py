"""How a command declares its flags: flag = argument = `UNMASK_…` variable."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def flag_variable(flag: str) -> str:
    """The environment variable of a flag: `--max-cost` is `UNMASK_MAX_COST`, `--rows/--no-rows` is `UNMASK_ROWS`."""
    return "UNMASK_" + flag.partition("/")[0].lstrip("-").replace("-", "_").upper()


def option(*declarations: str, **settings: Any) -> Callable[[Command], Command]:
    """`click.option` whose value can also come from the variable of its long flag. A flag given wins."""
    long = next((word for word in declarations if word.startswith("--")), None)
    if long is None:
        raise ValueError(f"an option needs a long flag, got {declarations!r}")
    return click.option(*declarations, **{"envvar": flag_variable(long), "show_default": True, **settings})


class NamedChoice(click.Choice[str]):
    """One of a closed set of names. A message about another name says which one may have been meant."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from unmask.text import suggest_names

            near = suggest_names(str(value), map(str, self.choices))
            self.fail(f"{error.message} {near}" if near else error.message, param, ctx)


def choice_of(names: type[StrEnum]) -> NamedChoice:
    """One of a closed set. Help and messages show the values, in the order of the set."""
    return NamedChoice([member.value for member in names])


def print_json(value: object) -> None:
    from unmask.cli.finish import encode_json

    click.echo(encode_json(value))


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


json_flag = option("--json", "as_json", is_flag=True, show_default=False, help="Print JSON instead of a table.")
