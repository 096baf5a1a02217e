"""`unmask run`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import RUN, SectionedCommand, json_flag, option

EXAMPLES = """\
unmask run --data core --model openai/gpt-4o-mini \\
    --judge openai/gpt-4o --max-cost 10 --out runs/gpt-4o-mini
unmask run --data core --limit 30 --model openai/mine \\
    --base-url http://localhost:8000/v1 \\
    --judge embedded/judge-1.5b --out runs/mine"""


@click.command(cls=SectionedCommand, sections=RUN, examples=EXAMPLES)
@settings.subject
@option("--judge", metavar="NAME", help="The judge, as provider/name, or `verbatim`; one is proposed unless given.")
@settings.numeric_judge
@option("--out", metavar="DIR", help="The run folder, runs/NAME unless given. An existing run is continued.")
@option("--preset", type=settings.PRESETS, default="paper", help="Scoring rules: how readings become verdicts.")
@settings.reading
@settings.selection
@settings.limits
@settings.ending
@json_flag
def run(
    subject: str | None,
    data: str,
    model: str | None,
    judge: str | None,
    out: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Ask, read and score. The same command again continues where it stopped and asks nothing twice."""
    from unmask.cli.defaults import ask_for_judge, default_folder, name_subject, say_addresses, say_defaults
    from unmask.cli.finish import finish_run

    name = name_subject(subject, model)
    folder = out or default_folder(name, options["shard"])
    say_defaults(data=data, folder=None if out else folder)
    if not judge:
        judge = ask_for_judge(data=data, model=name, out=folder, **options)
    else:
        say_addresses(name, judge, options)

    from unmask.engine.run import run as run_it
    from unmask.render.terminal.progress import show_progress

    with show_progress(quiet=quiet) as progress:
        done = run_it(data=data, model=name, judge=judge, out=folder, progress=progress, **options)
    finish_run(done, as_json=as_json, max_unjudged=options["max_unjudged"])
