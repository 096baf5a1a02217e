"""`unmask mitigate`: a table of the ways to change a local model, and of the account of what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import click

from unmask.cli.main import CommandEntry, LazyGroup

if TYPE_CHECKING:
    import msgspec

Settings = TypeVar("Settings", bound="msgspec.Struct")

COMMANDS = {
    "steer": CommandEntry(
        "unmask.cli.mitigate_steer:steer", "Find a direction of honesty to add while a model writes."
    ),
    "lorra": CommandEntry(
        "unmask.cli.mitigate_lorra:lorra", "Train an adapter that moves activations towards honesty."
    ),
    "report": CommandEntry("unmask.cli.mitigate_report:report", "What a treatment gains, and what it costs."),
}


@click.group(cls=LazyGroup, sections={"Commands": COMMANDS})
def mitigate() -> None:
    """Make a local model more honest, and say what that costs.

    `steer` and `lorra` write what `hf:PATH+steer=FILE@COEFFICIENT` and `hf:PATH+adapter=DIR` apply; `report` compares
    runs with and without it.
    """


def parse_settings(pairs: Iterable[str], record: type[Settings], **flags: object) -> Settings:
    """The record of `--set NAME=VALUE`, repeated, and of what has a flag. An unknown name, or a value of another kind,
    is a usage error."""
    import msgspec

    from unmask.errors import UsageError
    from unmask.text import refuse_unknown

    given = dict(pair.partition("=")[::2] for pair in pairs)
    refuse_unknown(given, [name for name in record.__struct_fields__ if name not in {*flags, "shuffled"}])
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, record, strict=False)
        except msgspec.ValidationError as error:
            raise UsageError(f"--set {name}={value}: {error}") from None
    return msgspec.convert(given | flags, record, strict=False)


def parse_layers(text: object) -> tuple[int, ...] | None:
    """`8-20` or `8,10,12` as numbers; nothing given means the command's own choice."""
    if text is None:
        return None
    layers: set[int] = set()
    for part in str(text).split(","):
        match = re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(f"{text} names no layers; write 8-20, or 8,10,12", param_hint="--layers")
        layers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(layers))
