"""`unmask plan`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import RUN, SectionedCommand, json_flag, option, print_json


@click.command(
    cls=SectionedCommand,
    sections=RUN,
    examples="unmask plan --data core --model openai/gpt-4o-mini --judge openai/gpt-4o",
)
@settings.subject
@option(
    "--judge", metavar="NAME", help="The judge, as provider/name, or `verbatim`; the one `run` proposes unless given."
)
@settings.numeric_judge
@option(
    "--out",
    metavar="DIR",
    help="A run folder that may exist: only what is still missing is counted, by what was measured.",
)
@option("--preset", type=settings.PRESETS, default="paper", help="Scoring rules: how readings become verdicts.")
@settings.reading
@settings.selection
@settings.limits
@settings.ending
@json_flag
def plan(
    subject: str | None,
    data: str,
    model: str | None,
    judge: str | None,
    out: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Say what a run will cost, in calls, tokens, money and time, before anything is sent. No key is needed.

    `plan MODEL` counts what `run MODEL` would send: where runs/NAME holds that run, only what is still missing.
    """
    from unmask.cli.defaults import default_folder, find_judge, name_subject, propose_judge, say_defaults
    from unmask.engine.forecast import plan as plan_run
    from unmask.render.terminal.plan import render

    name = name_subject(subject, model)
    folder = out or (default_folder(name, options["shard"]) if subject else None)
    say_defaults(data=data, folder=None if out else folder)
    judge = judge or find_judge(folder) or propose_judge(name)
    planned = plan_run(data=data, model=name, judge=judge, out=folder, **options)
    if as_json:
        print_json(planned.to_json())
    else:
        click.echo(render(planned), nl=False)
