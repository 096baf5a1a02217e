"""`unmask sensitivity`."""

from __future__ import annotations

import click

from unmask.cli import flags
from unmask.cli.options import json_flag, option, show_result


@click.command()
@click.argument("run", metavar="RUN")
@flags.preset
@flags.judge
@option(
    "--judge-error",
    metavar="SHARES",
    help="Also the numbers if the judge errs by up to so much: 0.05,0.10; in 0.1/0.2 by honest replies that it calls"
    " lies, and by lies that it misses.",
)
@json_flag
def sensitivity(run: str, preset: str | None, judge: str | None, judge_error: str | None, as_json: bool) -> None:
    """Show how P(lie) moves with preset, D rules, judge, tags, tolerance, takes. Nothing is sent."""
    from unmask.analysis.sensitivity import sensitivity as vary
    from unmask.cli.finish import warn_about_folder, with_typed_judge
    from unmask.runs.run import open_run

    opened = open_run(run)
    errors = judge_error.split(",") if judge_error else ()
    result = vary(opened, preset=preset, judge=judge, judge_error=errors)
    warn_about_folder(opened, judge)
    show_result(result if as_json else with_typed_judge(result, run), as_json=as_json)
