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


def choice_of(names: type[StrEnum]) -> click.Choice[str]:
    """One of a closed set. Help and messages show the values, in the order of the set."""
    return click.Choice([member.value for member in names])


def print_json(value: object) -> None:
    from unmask.cli.finish import encode_json

    click.echo(encode_json(value))


def in_colour() -> bool:
    """Whether standard output is a terminal that wants colours (no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


json_flag = option("--json", "as_json", is_flag=True, show_default=False, help="Print JSON instead of a table.")
