"""How a command declares its flags (flag = argument = `UNMASK_…` variable), and the headings under which the help of a
command with many flags, and docs/reference.md, list them.

A table of headings is for several commands: a flag that a command lacks is passed over. A flag that no table names
stands under `OTHER`, so a new one is shown before anybody has thought of its place.
"""

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


def print_blocks(blocks: Iterable[Block], *, width: int | None = None) -> None:
    from unmask.render.blocks import to_terminal

    click.echo(to_terminal(blocks, width=width, color=in_colour()), nl=False)


WHOLE_LINES = 10_000
"""Columns where the output is no terminal: build servers and programs want whole lines."""


def screen_width() -> int | None:
    return None if sys.stdout.isatty() else WHOLE_LINES


def print_result(result: Result, *, width: int | None = None, **settings: Any) -> None:
    """What a result says; `settings` are those of the function that describes it."""
    from unmask.render.describe.results import describe

    print_blocks(describe(result, **settings), width=width)


def show_result(result: Result, *, as_json: bool, **settings: Any) -> None:
    """What a command says: JSON, or blocks with these `settings`."""
    if as_json:
        print_json(result.to_json())
    else:
        print_result(result, **settings)


json_flag = option("--json", "as_json", is_flag=True, show_default=False, help="Print JSON instead of a table.")


# --- headings ---------------------------------------------------------------------------------------------------

Sections = Mapping[str, str]
"""Flags without their dashes, by heading."""

OTHER = "More"
RARE = "Rarely needed"
"""Comes last in the help: the rest of it fits a screen."""
OUTPUT = "Output"

RUN: Sections = {
    "What to run": "data judge out plan preset takes limit",
    "The models": "base-url judge-base-url temperature max-tokens",
    "Cost": "max-cost batch",
    RARE: "set param header judge-param judge-header numeric-judge tags also direct effort developer-prompt"
    " beliefs-from seed archetype ids sample-seed shard max-connections requests-per-minute no-wait",
}
"""`run` and `judge`."""

LABEL: Sections = {
    "Who and which": "who size in-all sample-seed probes",
    "As a file": "export import",
}

TRAINING: Sections = {
    "What to train": "model out",
    "Which facts": "facts limit evaluated",
    "How it is trained": "layers set seed",
}
"""The mitigations that train."""

VERDICTS: Sections = {
    "The limit": "max-p-lie baseline max-rise max-excess on anytime",
    "Which verdicts": "measure margin preset judge labels drop-changed with-published",
    OUTPUT: "all out",
    RARE: "compute max-unjudged guards",
}
"""Commands that hold finished runs against each other or against a limit."""


class SectionedCommand(click.Command):
    """A command whose help lists its flags under headings, and ends in examples: command lines to copy."""

    def __init__(self, *arguments: Any, sections: Sections, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections
        self.examples = examples

    def group_options(self, context: click.Context) -> dict[str, list[click.Option]]:
        """The flags by heading, in the order of the table; what every command has stands last."""
        places = {
            f"--{flag}": (100 if heading == RARE else number, order, heading)
            for number, (heading, flags) in enumerate(self.sections.items())
            for order, flag in enumerate(flags.split())
        }
        places |= {f"--{flag}": (99, 99, OUTPUT) for flag in ("quiet", "json", "help")}
        options = [parameter for parameter in self.get_params(context) if isinstance(parameter, click.Option)]
        placed_options = [
            (next((places[flag] for flag in option.opts if flag in places), (98, 0, OTHER)), option)
            for option in options
        ]
        groups: dict[str, list[click.Option]] = {}
        for (_, _, heading), option in sorted(placed_options, key=lambda pair: pair[0][:2]):
            groups.setdefault(heading, []).append(option)
        return groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {
            heading: [record for option in options if (record := option.get_help_record(ctx))]
            for heading, options in self.group_options(ctx).items()
        }
        write_sections(formatter, groups)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples.splitlines()))


def write_sections(formatter: click.HelpFormatter, groups: Mapping[str, list[tuple[str, str]]]) -> None:
    """A definition list under each heading, all with the same left column."""
    widest = min(30, max((len(name) for rows in groups.values() for name, _ in rows), default=0))
    for heading, rows in groups.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(widest), meaning) for name, meaning in rows])
