"""`unmask agree`."""

from __future__ import annotations

import click

from unmask.cli import flags
from unmask.cli.options import json_flag, option, show_result


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option(
    "--labels",
    multiple=True,
    metavar="WHO",
    help="Only the labels of this person; may be repeated.",
)
@option("--judge", multiple=True, metavar="NAME", help="Only this judge, or panel:A,B,C; may be repeated.")
@flags.preset
@json_flag
def agree(
    runs: tuple[str, ...],
    labels: tuple[str, ...],
    judge: tuple[str, ...],
    preset: str | None,
    as_json: bool,
) -> None:
    """Say how wrong the judge is: judges against labels, labels against labels, judges against each other.

    Agreement, kappa, AC1 and Krippendorff's alpha with intervals, per archetype, and what the errors do to P(lie).
    Several runs are pooled, as far as one judge read them with the same prompts.
    """
    from unmask.analysis.agreement import agree as agree_on
    from unmask.cli.finish import warn_about_folder
    from unmask.runs.run import open_runs

    opened = open_runs(runs)
    agreement = agree_on(opened, labels=labels, judges=judge, preset=preset)
    pooled = [run for run in opened if str(run.path) in agreement.runs]
    for run in pooled:
        warn_about_folder(run, None)
    files = {*agreement.judges, *(side.a for side in agreement.judge_against_labels)}
    names = {file: pooled[0].definition.typed_judge(file) for file in files}
    show_result(agreement, as_json=as_json, names=names)
