"""`unmask run`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option


@click.command()
@settings.subject
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--out", required=True, metavar="DIR", help="The run folder. An existing run is continued.")
@option("--preset", type=settings.PRESETS, default="paper", help="The rules that make verdicts of readings.")
@settings.reading
@settings.selection
@settings.limits
@option("--stop-when", metavar="RULE", help='End the run once the data show it: "p_lie < 0.05", or with >.')
@settings.ending
@json_flag
def run(
    data: str, model: str, judge: str, out: str, quiet: bool, as_json: bool, max_unjudged: float, **options: Any
) -> None:
    """Ask, read and score. The same command again continues where it stopped and asks nothing twice."""
    from unmask.cli.finish import finish
    from unmask.engine.run import run as run_it
    from unmask.render.terminal.progress import ProgressLine

    done = run_it(
        data=data,
        model=model,
        judge=judge,
        out=out,
        progress=None if quiet else ProgressLine(),
        max_unjudged=max_unjudged,
        **options,
    )
    finish(done.score(), as_json=as_json, max_unjudged=max_unjudged)
