"""`unmask data`: look into scenario sets, and write them for other programs."""

from __future__ import annotations

import click

from unmask.cli.main import CommandEntry, LazyGroup

SECTIONS = {
    "Look": {
        "list": CommandEntry(
            "unmask.cli.data.look:list_sets", "The sets that ship with unmask, or the ids of one set."
        ),
        "check": CommandEntry("unmask.cli.data.look:check", "Look for everything wrong with a set."),
        "stats": CommandEntry("unmask.cli.data.look:stats", "Counts, lengths and balance of a set."),
        "show": CommandEntry("unmask.cli.data.look:show", "One scenario, as it would be asked."),
    },
    "Write": {
        "annotate": CommandEntry("unmask.cli.data.annotate:annotate", "Ask a judge which side yes means."),
        "export": CommandEntry("unmask.cli.data.export:export", "Write a set in the reference code's layout."),
    },
}


@click.group(cls=LazyGroup, sections=SECTIONS)
def data() -> None:
    """List, check, look into, annotate and export scenario sets.

    A set is a folder in the reference or hub layout, a .jsonl file, cais/MASK, or the name of a bundled set.
    """
