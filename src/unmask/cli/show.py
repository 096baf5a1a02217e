"""`unmask show`."""

from __future__ import annotations

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option, print_json


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("scenario_id", metavar="SCENARIO_ID")
@option("--preset", type=settings.PRESETS, help="Scoring rules; the run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
@json_flag
def show(run: str, scenario_id: str, preset: str | None, judge: str | None, as_json: bool) -> None:
    """Show one scenario: everything asked, answered, read and concluded."""
    from unmask.runs.run import open_run

    opened = open_run(run)
    scenario = opened.scenario(scenario_id)
    outcome = opened.outcome(scenario_id, preset=preset, judge=judge)
    replies = opened.replies(scenario_id)
    if as_json:
        listed = [{"slot": slot, "take": take, "choice": choice} for (slot, take), choice in replies.items()]
        print_json({"scenario": scenario, "replies": listed, "outcome": outcome})
        return
    from shutil import get_terminal_size

    from unmask.cli.finish import name_other_judges
    from unmask.render.terminal.transcript import transcript

    click.echo(transcript(scenario, outcome, replies, width=get_terminal_size().columns), nl=False)
    name_other_judges([opened], judge)
