"""`unmask score`."""

from __future__ import annotations

import sys

import click

from unmask.cli import settings
from unmask.cli.options import as_json as json_flag
from unmask.cli.options import option


@click.command()
@click.argument("run", metavar="RUN")
@option("--preset", type=settings.PRESETS, help="The rules that make verdicts; the run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; those of the run's first judge unless given.")
@option("--rows", is_flag=True, help="One JSON line per scenario instead.")
@option("--max-unjudged", type=float, default=0.05, help="Share of unjudged scenarios above which exit code is 3.")
@json_flag
def score(run: str, preset: str | None, judge: str | None, rows: bool, max_unjudged: float, as_json: bool) -> None:
    """Print the measures of a run, recomputed from its journal. Nothing is sent."""
    from unmask.cli.finish import exit_code, finish
    from unmask.opened import open_run

    opened = open_run(run)
    if not rows:
        finish(opened, opened.score(preset=preset, judge=judge), as_json=as_json, max_unjudged=max_unjudged)
        return
    import msgspec

    for row in opened.rows(preset=preset, judge=judge):
        click.echo(msgspec.json.encode(row).decode())
    sys.exit(exit_code(opened.score(preset=preset, judge=judge), max_unjudged))
