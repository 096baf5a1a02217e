"""`unmask data`: look into scenario sets, and make them."""

from __future__ import annotations

import click

from unmask.cli.data import look, make, sealed


@click.group()
def data() -> None:
    """List, check and make scenario sets.

    A set is a folder in the reference or hub layout, a .jsonl file, a sealed one, cais/MASK, or the name of a bundled
    set.
    """


for command in (look.list_sets, look.check, look.stats, look.show, make.new, make.export, sealed.seal, sealed.open_):
    data.add_command(command)
