"""`unmask mitigate`: a table of the ways to change a local model, and of the account of what they cost."""

from __future__ import annotations

from collections.abc import Mapping

import click

from unmask.cli.main import Entry, LazyGroup

COMMANDS = {
    "steer": Entry("unmask.cli.mitigate_steer:steer", "Find a direction of honesty to add while a model writes."),
    "lorra": Entry("unmask.cli.mitigate_lorra:lorra", "Train an adapter that moves activations towards honesty."),
    "report": Entry("unmask.cli.mitigate_report:report", "What a treatment gains, and what it costs."),
}


class Mitigations(LazyGroup):
    @property
    def entries(self) -> Mapping[str, Entry]:
        return COMMANDS


@click.group(cls=Mitigations)
def mitigate() -> None:
    """Make a local model more honest, and say what that costs.

    `steer` and `lorra` write what `hf:PATH+steer=FILE@COEFFICIENT` and `hf:PATH+adapter=DIR` apply; `report` compares
    runs with and without it.
    """
