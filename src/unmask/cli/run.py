"""`unmask run`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import Command, choice_of, json_flag, option, show_result
from unmask.records import Preset

EXAMPLES = """\
unmask run openai/gpt-4o-mini --judge openai/gpt-4o --max-cost 10
unmask run openai/mine --base-url http://localhost:8000/v1 \\
    --judge embedded/judge-1.5b --limit 30 --out runs/mine
unmask run --out runs/mine"""


@click.command(cls=Command, examples=EXAMPLES)
@option("--judge", metavar="NAME", help="The judge, or `verbatim`; one is proposed unless given.")
@option("--out", metavar="DIR", help="The run folder, runs/NAME unless given.")
@option("--plan", "only_plan", is_flag=True, help="Say what it will cost; send nothing.")
@option("--preset", type=choice_of(Preset), default="paper", help="How readings become verdicts.")
@settings.subject
@settings.reading
@settings.selection
@settings.limits
@settings.quiet
@json_flag
def run(model: str | None, out: str | None, only_plan: bool, quiet: bool, as_json: bool, **flags: Any) -> None:
    """Ask, judge and score. The same command again continues where it stopped and asks nothing twice; so does
    `unmask run --out DIR`, with the settings that the folder has."""
    from unmask.cli import defaults
    from unmask.cli.finish import finish_run
    from unmask.engine.plan import plan
    from unmask.engine.run import run as run_it
    from unmask.render.progress import show_progress

    defaults.say_variables()
    given = defaults.given_flags()
    if model is None and "data" not in given and out is not None:
        chosen = {**given, "out": out}
    else:
        chosen = {**defaults.complete_new_run(model, flags, out), **given}
    if only_plan:
        if "model" in chosen and "judge" not in chosen:
            chosen["judge"] = defaults.find_judge(chosen["out"]) or defaults.propose_judge(chosen["model"])
        show_result(plan(**chosen), as_json=as_json)
        return
    if "model" in chosen and "judge" not in chosen:
        chosen["judge"] = defaults.ask_for_judge(chosen)
    else:
        defaults.say_addresses(chosen)
    defaults.announce_growth(chosen)
    with show_progress(quiet=quiet) as progress:
        done = run_it(**chosen, progress=progress)
    finish_run(done, as_json=as_json)
