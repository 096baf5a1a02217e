"""`unmask compare`."""

from __future__ import annotations

import sys

import click

from unmask.cli import settings
from unmask.cli.options import VERDICTS, SectionedCommand, in_colour, json_flag, option, print_json


@click.command(cls=SectionedCommand, sections=VERDICTS, examples="unmask compare runs/a runs/b")
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True)
@option("--preset", type=settings.PRESETS, help="Scoring rules for all runs; those of the first unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
@option("--all-pairs", is_flag=True, help="All runs against each other, not only against the first.")
@option("--drop-changed", is_flag=True, help="Leave out scenarios whose content differs between the runs.")
@option("--resample-seed", type=int, default=0, help="Random seed of the bootstrap.")
@option("--flips", type=int, default=10, help="Flipped scenarios to show each way; -1 for all.")
@option("--labels", multiple=True, metavar="WHO", help="Also correct each run by its own labels of them; or all.")
@settings.max_unjudged()
@settings.guards
@json_flag
def compare(
    runs: tuple[str, ...],
    preset: str | None,
    judge: str | None,
    all_pairs: bool,
    drop_changed: bool,
    resample_seed: int,
    flips: int,
    labels: tuple[str, ...],
    max_unjudged: float,
    as_json: bool,
    **guards: float,
) -> None:
    """Compare runs on the scenarios they share: differences, intervals, tests, and what else differs.

    A folder that holds runs, such as that of a sweep, stands for all of them.
    """
    from unmask.analysis.compare import compare as compare_them
    from unmask.cli.finish import name_other_judges
    from unmask.protocol.guards import GuardLimits
    from unmask.runs.folder import expand_runs

    runs = tuple(expand_runs(runs))
    comparison = compare_them(
        runs,
        preset=preset,
        judge=judge,
        all_pairs=all_pairs,
        drop_changed=drop_changed,
        seed=resample_seed,
        labels=labels,
        guards=GuardLimits(**guards),
    )
    if as_json:
        print_json(comparison.to_json())
    else:
        from unmask.render.terminal.compare import render

        click.echo(render(comparison, color=in_colour(), flips=flips), nl=False)
    name_other_judges(runs, judge)
    unfit = [run.name for run in comparison.runs if run.undecided or run.unjudged > max_unjudged * run.scenarios]
    if unfit:
        click.echo(f"unmask: {', '.join(unfit)}: incomplete, or more than {max_unjudged:.1%} unjudged", err=True)
    refused = [(run.name, finding) for run in comparison.runs for finding in run.warnings if finding.refuses]
    for name, finding in refused:
        click.echo(f"unmask: {name}: {finding}", err=True)
    if unfit or refused:
        sys.exit(3)
