"""`unmask plan`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option, print_json


@click.command()
@settings.subject
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--out", metavar="DIR", help="A run folder that may exist: only what is still missing is counted.")
@option("--preset", type=settings.PRESETS, default="paper", help="The rules that make verdicts of readings.")
@settings.reading
@settings.selection
@settings.limits
@settings.ending
@json_flag
def plan(data: str, model: str, judge: str, out: str | None, as_json: bool, quiet: bool, **options: Any) -> None:
    """Say what a run will cost, in calls, tokens, money and time, before anything is sent. No key is needed."""
    from unmask.engine.forecast import plan as plan_run
    from unmask.render.terminal.plan import render

    planned = plan_run(data=data, model=model, judge=judge, out=out, **options)
    if as_json:
        print_json(planned.to_json())
    else:
        click.echo(render(planned), nl=False)
