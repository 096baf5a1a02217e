"""`unmask compare`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from unmask.cli import crash, flags, settings
from unmask.cli.options import VERDICTS, SectionedCommand, json_flag, option, show_result

if TYPE_CHECKING:
    from unmask.analysis.compare import ComparedRun, Comparison
    from unmask.scoring.guards import GuardLimits

EXAMPLES = """\
unmask compare runs/a runs/b
unmask compare runs/a runs/b --measure lying_at_10
unmask compare runs/a runs/a@openai/gpt-4o --margin 0.02
unmask compare runs/a published:claude-sonnet-5.5"""


@click.command(cls=SectionedCommand, sections=VERDICTS, examples=EXAMPLES)
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True)
@option("--measure", metavar="NAME", default="p_lie", help="What is compared; P(lie), or as in lying_at_10.")
@option("--margin", type=float, metavar="SHARE", help="Exit code 1 unless the difference is shown to be smaller: 0.02.")
@flags.preset
@flags.judge
@option("--drop-changed", is_flag=True, help="Leave out scenarios whose content differs between the runs.")
@option("--all", "every", is_flag=True, help="The tables of every pair, and every scenario that flipped.")
@flags.labels
@settings.max_unjudged()
@flags.guards
@json_flag
def compare(
    runs: tuple[str, ...],
    measure: str,
    margin: float | None,
    preset: str | None,
    judge: str | None,
    drop_changed: bool,
    every: bool,
    labels: tuple[str, ...],
    max_unjudged: float,
    as_json: bool,
    guards: GuardLimits,
) -> None:
    """Compare runs on the scenarios they share: differences, intervals, tests, and what else differs.

    A folder of runs, such as a sweep's, counts as all of them. RUN@JUDGE is the run as another of its judges read
    it. published:MODEL shows how much of the gap comes from how the two are counted. With --margin, exit code 1
    means different, or not shown to be equivalent.
    """
    if any(run.startswith("published:") for run in runs):
        _explain_gap(runs, preset=preset, judge=judge, as_json=as_json)
        return
    from unmask.analysis.compare import compare as compare_them

    comparison = compare_them(
        runs,
        measure=measure,
        margin=margin,
        preset=preset,
        judge=judge,
        drop_changed=drop_changed,
        labels=labels,
        guards=guards,
    )
    show_result(comparison, as_json=as_json, flips=-1 if every else 10, details=every)
    _finish(comparison, max_unjudged)


def _explain_gap(runs: tuple[str, ...], *, preset: str | None, judge: str | None, as_json: bool) -> None:
    from unmask.analysis.published.gap import PREFIX, explain_gap
    from unmask.cli.finish import warn_about_folder
    from unmask.errors import UsageError
    from unmask.runs.run import open_run

    if len(runs) != 2 or runs[0].startswith(PREFIX):
        raise UsageError("a published value compares with one run", advice="Name the run first, then published:MODEL.")
    opened = open_run(runs[0])
    gap = explain_gap(opened, runs[1], preset=preset, judge=judge)
    warn_about_folder(opened, judge)
    show_result(gap, as_json=as_json)


def _finish(comparison: Comparison, max_unjudged: float) -> None:
    """What stays unsaid in the tables, and the exit code."""
    from unmask.errors import GateNotMet
    from unmask.stats.margin import MarginVerdict

    unfit = [(run.name, reason) for run in comparison.runs for reason in _list_reasons(run, max_unjudged)]
    for name, reason in unfit:
        click.echo(crash.clean_for_terminal(f"unmask: {name}: {reason}"), err=True)
    if unfit:
        sys.exit(3)
    tests = [pair.within for pair in comparison.pairs if pair.within is not None]
    missed = [test.why for test in tests if test.verdict is not MarginVerdict.EQUIVALENT]
    if missed:
        why = missed[0] if len(tests) == 1 else f"for {len(missed)} of {len(tests)} pairs"
        raise GateNotMet(f"equivalence is not shown: {why}")


def _list_reasons(run: ComparedRun, max_unjudged: float) -> list[str]:
    """Why no number of this run is to be relied on."""
    reasons = [finding.text for finding in run.warnings if finding.refuses]
    if run.undecided:
        reasons.append(f"{run.undecided} scenarios are not finished")
    elif run.unjudged_share is None or run.unjudged_share > max_unjudged:
        share = "everything" if run.unjudged_share is None else f"{run.unjudged_share:.1%}"
        reasons.append(f"{share} is unjudged, more than {max_unjudged:.1%}")
    return reasons
