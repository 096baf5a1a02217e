"""`unmask merge`."""

from __future__ import annotations

import sys

import click

from unmask.cli import crash
from unmask.cli.options import json_flag, option, print_json


@click.command()
@click.argument("shards", metavar="SHARD...", nargs=-1, required=True)
@option("--out", required=True, metavar="RUN", help="The run to make, a new folder.")
@json_flag
def merge(shards: tuple[str, ...], out: str, as_json: bool) -> None:
    """Make one run of the shards of `unmask run --shard`, without a model call. It scores as one run over everything.

    A folder of shards counts as all of them. The shards are only read. Exit code 3: a shard is missing.
    """
    import shlex

    import msgspec

    from unmask.analysis.merge import merge_shards
    from unmask.runs.commands import completing_command
    from unmask.runs.folder import expand_runs
    from unmask.runs.run import open_run

    merged = merge_shards(expand_runs(shards), out=out)
    missing = (merged.selected or 0) - merged.scenarios
    if as_json:
        print_json(msgspec.to_builtins(merged))
    else:
        clean = crash.clean_for_terminal
        click.echo(clean(f"merged {merged.shards} runs with {merged.scenarios} scenarios into {merged.run}"))
        if missing <= 0:
            click.echo(clean(f"{shlex.join(['unmask', 'score', merged.run])} prints the measures."))
    if missing > 0:
        numbers = ", ".join(map(str, merged.missing_shards))
        run = open_run(merged.run)
        click.echo(f"unmask: {missing} of {merged.selected} scenarios are missing: those of shard {numbers}", err=True)
        rest = crash.clean_for_terminal(completing_command(run.definition, run.path))
        click.echo(f"  Merge all into another folder once it is there, or ask the rest in this one: {rest}", err=True)
        sys.exit(3)
