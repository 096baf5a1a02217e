"""Writes docs/cli.md from the commands themselves: `python -m tests.docs_cli`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from unmask.cli import main
from unmask.cli.options import SectionedCommand

PATH = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

INTRODUCTION = """# Commands

Written by `make docs` from the commands themselves. `unmask COMMAND --help` shows the same.

Every flag can also be set by a variable: `--max-cost` is `UNMASK_MAX_COST`. A flag given wins. Flags that may be
repeated take several values from their variable, separated by spaces. Keys come from the environment or `.env` only,
see [models.md](models.md); exit codes are in [errors.md](errors.md).

`python -m unmask` is the same as `unmask`. In bash the Tab key completes commands, flags and their values after this
line, which may stand in `~/.bashrc`; for zsh and fish write `zsh_source` or `fish_source`:

```sh
eval "$(_UNMASK_COMPLETE=bash_source unmask)"
```
"""


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
    names = command.entries if isinstance(command, main.LazyGroup) else getattr(command, "commands", ())
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        yield name, found


def section(name: str, command: click.Command) -> Iterator[str]:
    """Heading, usage, help and table of flags of one command."""
    yield f"## {name}"
    yield ""
    with click.Context(command, info_name=name) as context:
        pieces = " ".join(command.collect_usage_pieces(context))
    yield f"    {name} {pieces}"
    for paragraph in (command.help or "").split("\n\n"):
        yield ""
        yield " ".join(paragraph.split())
    for heading, options in grouped(command).items():
        if options:
            yield from ("", f"{heading}:", "") if heading else ("",)
            yield from ("| flag | default | meaning |", "|---|---|---|", *map(row, options))
    if isinstance(command, SectionedCommand) and command.examples:
        yield from ("", "```sh", *command.examples.splitlines(), "```")
    yield ""


def grouped(command: click.Command) -> dict[str, list[click.Option]]:
    """Flags by heading, as `--help` has them; those of a command without headings under none."""
    if not isinstance(command, SectionedCommand):
        return {"": [parameter for parameter in command.params if isinstance(parameter, click.Option)]}
    with click.Context(command) as context:
        groups = command.group_options(context)
    return {heading: [flag for flag in options if flag in command.params] for heading, options in groups.items()}


def row(option: click.Option) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f" {shown_value(option)}"
    cells = (f"{flags}{value}", default(option), (option.help or "").replace("|", "\\|"))
    return "| " + " | ".join(cells) + " |"


def shown_value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
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
    for heading, entries in main.SECTIONS.items():
        yield from ("", f"**{heading}**", "", "| command | |", "|---|---|")
        yield from (f"| [{name}](#unmask-{name}) | {entry.help} |" for name, entry in entries.items())
    yield ""


def text() -> str:
    lines = [*overview(), *(line for name, command in commands() for line in section(name, command))]
    return INTRODUCTION + "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
