"""`unmask run`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option
from unmask.cli.sections import RUN, SectionedCommand

EXAMPLES = """\
unmask run --data core --model openai/gpt-4o \\
    --judge openai/gpt-4o --max-cost 10 --out runs/gpt-4o
unmask run --data core --limit 30 --model openai/mine \\
    --base-url http://localhost:8000/v1 \\
    --judge embedded/judge-1.5b --out runs/mine"""


@click.command(cls=SectionedCommand, sections=RUN, examples=EXAMPLES)
@settings.subject
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--out", required=True, metavar="DIR", help="The run folder. An existing run is continued.")
@option("--preset", type=settings.PRESETS, default="paper", help="Scoring rules: how readings become verdicts.")
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
