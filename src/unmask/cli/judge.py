"""`unmask judge`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import RUN, SectionedCommand, json_flag, option


@click.command(
    cls=SectionedCommand,
    sections=RUN,
    examples="unmask judge runs/gpt-4o --judge anthropic/claude-sonnet-4-5 --max-cost 5",
)
@click.argument("run", metavar="RUN")
@option("--judge", "judge_model", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@settings.numeric_judge
@option("--preset", type=settings.PRESETS, help="The rules to make readings for; the run's own unless given.")
@settings.reading_again
@settings.limits
@settings.ending
@json_flag
def judge(
    run: str, judge_model: str, preset: str | None, quiet: bool, as_json: bool, max_unjudged: float, **options: Any
) -> None:
    """Read the replies of a run with another judge, or complete its readings. The subject is not asked."""
    from unmask.cli.defaults import say_addresses
    from unmask.cli.finish import finish_run
    from unmask.engine.run import judge as judge_it
    from unmask.render.terminal.progress import show_progress
    from unmask.runs.definition import judge_file

    chosen = {name: value for name, value in (*options.items(), ("preset", preset)) if value is not None}
    name = chosen.get("judge_name") or judge_file(judge_model)
    say_addresses(None, judge_model, options)
    with show_progress(quiet=quiet) as progress:
        done = judge_it(run, judge=judge_model, progress=progress, **chosen)
    finish_run(done, judge=name, preset=preset, as_json=as_json, max_unjudged=max_unjudged)
