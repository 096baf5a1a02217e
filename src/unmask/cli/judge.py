"""`unmask judge`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import Command, choice_of, json_flag, option
from unmask.records import Preset


@click.command(cls=Command, examples="unmask judge runs/gpt-4o --judge anthropic/claude-sonnet-4-5 --max-cost 5")
@click.argument("run", metavar="RUN")
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--preset", type=choice_of(Preset), help="The rules to make readings for; the run's own unless given.")
@settings.reading
@settings.limits
@settings.quiet
@json_flag
def judge(run: str, judge: str, preset: str | None, quiet: bool, as_json: bool, **_: Any) -> None:
    """Judge the replies of a run with another judge, or complete its readings. The subject is not asked.

    What is not given is as the run has recorded it of this judge. For a second reading by the same judge name the file
    of its readings: --set judge.name=NAME."""
    from unmask.cli import defaults
    from unmask.cli.finish import finish_run
    from unmask.engine.run import judge as judge_it
    from unmask.render.progress import show_progress
    from unmask.runs.definition import judge_file

    defaults.say_variables()
    chosen = defaults.given_flags()
    defaults.say_addresses(chosen | {"path": run})
    with show_progress(quiet=quiet) as progress:
        done = judge_it(run, **chosen, progress=progress)
    name = chosen.get("set", {}).get("judge.name") or judge_file(judge)
    finish_run(done, judge=name, preset=preset, as_json=as_json)
