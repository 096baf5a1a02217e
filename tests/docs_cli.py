"""Writes the commands in docs/reference.md from the commands themselves: `python -m tests.docs_cli`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from unmask.cli import main
from unmask.cli.options import RareOption

PATH = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
SHARED = 3
"""A flag that so many commands have, the same in each, is listed once; one of `unmask run` stays there if only so many
have it."""
SHARED_HEADING = "Flags of many commands"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, those of groups included."""
    with click.Context(main.cli, info_name="unmask") as context:
        for name in main.COMMANDS:
            command = main.cli.get_command(context, name)
            assert command is not None
            yield f"unmask {name}", command
            yield from ((f"unmask {name} {inner}", found) for inner, found in inner_commands(command, context))


def inner_commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group in its own order; of a command that is no group, none."""
    yield from getattr(command, "commands", {}).items()


def flags_of(command: click.Command) -> dict[str, str]:
    """The line of each flag by its names, in the order of `--help`."""
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    return {names(option): line(option) for option in sorted(options, key=lambda flag: isinstance(flag, RareOption))}


@cache
def shared() -> dict[str, str]:
    """The flags that many commands have in common."""
    counts = Counter(found for _, command in commands() for found in flags_of(command).items())
    of_run = flags_of_run().items()
    return dict(found for found, count in counts.items() if count >= SHARED + (found in of_run))


@cache
def flags_of_run() -> dict[str, str]:
    return flags_of(dict(commands())["unmask run"])


def section(name: str, command: click.Command) -> Iterator[str]:
    """Heading, usage, first paragraph of the help and flags. A flag with a line elsewhere is only named."""
    yield from (f"### {name}", "")
    with click.Context(command, info_name=name) as context:
        pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    if pieces and not isinstance(command, click.Group):
        yield from (f"`{' '.join([name, *pieces])}`", "")
    yield " ".join((command.help or "").split("\n\n")[0].split())
    flags = flags_of(command)
    common = {flag for flag, said in flags.items() if shared().get(flag) == said}
    of_run = {flag for flag, said in flags.items() if flags_of_run().get(flag) == said} - common
    if name == "unmask run":
        of_run = set()
    if own := [said for flag, said in flags.items() if flag not in common | of_run]:
        yield from ("", *own)
    for words, places in (("As in [unmask run](#unmask-run)", of_run), ("Also", common)):
        if places:
            yield from ("", f"{words}: {', '.join(flag for flag in flags if flag in places)}.")
    yield ""


def names(option: click.Option) -> str:
    return ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))


def line(option: click.Option) -> str:
    value = "" if option.is_flag else f" {shown_value(option)}"
    unless_given = f" ({found})" if (found := default(option)) else ""
    return f"- {names(option)}{value}{unless_given}: {option.help or ''}"


def shown_value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice) and not option.metavar:
        return ", ".join(str(choice) for choice in option.type.choices)
    return str(option.metavar or option.type.name.upper()).replace("|", " or ")


def default(option: click.Option) -> str:
    if option.required:
        return "required"
    value = option.to_info_dict()["default"]
    if option.is_flag:
        return "on" if value is True else ""
    return f"{value:g}" if isinstance(value, float) else "" if value is None or option.multiple else str(value)


def overview() -> Iterator[str]:
    """The commands by heading, as `unmask --help` has them."""
    yield from ("| | commands |", "|---|---|")
    for heading, entries in main.SECTIONS.items():
        links = ", ".join(f"[{name}](#unmask-{name})" for name in entries)
        yield f"| {heading} | {links} |"


def replace_part(page: str, name: str, lines: list[str]) -> str:
    """The page with the part between the two comments of this name written anew."""
    first, last = f"<!-- {name}: written by make docs -->", f"<!-- end of {name} -->"
    part = re.compile(f"{re.escape(first)}.*?{re.escape(last)}", re.DOTALL)
    assert part.search(page), f"{PATH} has no part {name}"
    body = "\n".join(lines).strip()
    return part.sub(lambda _: f"{first}\n\n{body}\n\n{last}", page)


def text() -> str:
    """The page, with the commands as they are."""
    page = replace_part(PATH.read_text(encoding="utf-8"), "overview", list(overview()))
    lines = [f"### {SHARED_HEADING}", "", *shared().values(), ""]
    lines += [found for name, command in commands() for found in section(name, command)]
    return replace_part(page, "commands", lines)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
