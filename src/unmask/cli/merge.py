"""`unmask merge`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from unmask.cli.options import json_flag, option, print_json, print_note


@click.command()
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True)
@option("--out", required=True, metavar="RUN", help="The run to make, a new folder.")
@json_flag
def merge(shards: tuple[str, ...], out: str, as_json: bool) -> None:
    """Make one run of the shards of `unmask run --shard`, without a model call. It scores as one run over everything.

    A folder of shards counts as all of them. The shards are only read. Exit code 3: a shard is missing.
    """
    from unmask.analysis.merge import merge_shards
    from unmask.runs.commands import completing_command
    from unmask.runs.folder import expand_runs
    from unmask.runs.run import open_run

    merged = merge_shards(expand_runs(shards), out=out)
    missing = (merged.selected or 0) - merged.scenarios
    if as_json:
        print_json(merged)
    else:
        click.echo(f"merged {merged.shards} runs with {merged.scenarios} scenarios into {merged.run}")
        if missing <= 0:
            click.echo(f"{shlex.join(['unmask', 'score', merged.run])} prints the measures.")
    if missing > 0:
        numbers = ", ".join(map(str, merged.missing_shards))
        rest = completing_command(open_run(merged.run).definition, Path(merged.run))
        print_note(f"unmask: {missing} of {merged.selected} scenarios are missing: those of shard {numbers}")
        print_note(f"  Merge all into another folder once it is there, or ask the rest in this one: {rest}")
        sys.exit(3)
