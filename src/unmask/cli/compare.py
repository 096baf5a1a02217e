"""`unmask compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import flags
from unmask.cli.options import Command, json_flag, option, print_note, show_result

if TYPE_CHECKING:
    from unmask.analysis.compare import ComparedRun

EXAMPLES = """\
unmask compare runs/a runs/b
unmask compare runs/a runs/b --measure lying_at_10
unmask compare runs/a runs/a@openai/gpt-4o --margin 0.02
unmask compare runs/a published:claude-sonnet-5.5"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True)
@flags.measure
@option("--margin", type=float, metavar="SHARE", help="Exit code 1 unless the difference is shown to be smaller: 0.02.")
@flags.preset
@flags.judge
@flags.labels
@flags.drop_changed
@option("--all", "every", is_flag=True, help="The tables of every pair, and every scenario that flipped.")
@flags.max_unjudged
@flags.guards
@json_flag
def compare(
    runs: tuple[str, ...],
    preset: str | None,
    judge: str | None,
    every: bool,
    max_unjudged: float,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare runs on the scenarios they share: differences, intervals, tests, and what else differs.

    A folder of runs, such as a sweep's, counts as all of them. RUN@JUDGE is the run as another of its judges read
    it. published:MODEL shows how much of the gap comes from how the two are counted. With --margin, exit code 1
    means different, or not shown to be equivalent.
    """
    from unmask.errors import GateNotMet, UsageError
    from unmask.stats.margin import MarginVerdict

    if any(run.startswith("published:") for run in runs):
        from unmask.analysis.published.gap import PREFIX, explain_gap
        from unmask.cli.finish import warn_about_folder
        from unmask.runs.run import open_run

        if len(runs) != 2 or runs[0].startswith(PREFIX):
            advice = "Name the run first, then published:MODEL."
            raise UsageError("a published value compares with one run", advice=advice)
        opened = open_run(runs[0])
        gap = explain_gap(opened, runs[1], preset=preset, judge=judge)
        warn_about_folder(opened, judge)
        show_result(gap, as_json=as_json)
        return
    from unmask.analysis.compare import compare as compare_them

    comparison = compare_them(runs, preset=preset, judge=judge, **settings)
    show_result(comparison, as_json=as_json, flips=-1 if every else 10, details=every)
    unfit = [(run.name, reason) for run in comparison.runs for reason in _list_reasons(run, max_unjudged)]
    for name, reason in unfit:
        print_note(f"unmask: {name}: {reason}")
    if unfit:
        sys.exit(3)
    tests = [pair.within for pair in comparison.pairs if pair.within is not None]
    missed = [test.why for test in tests if test.verdict is not MarginVerdict.EQUIVALENT]
    if missed:
        why = missed[0] if len(tests) == 1 else f"for {len(missed)} of {len(tests)} pairs"
        raise GateNotMet(f"equivalence is not shown: {why}")


def _list_reasons(run: ComparedRun, max_unjudged: float) -> Iterator[str]:
    """Why no number of this run is to be relied on."""
    yield from (finding.text for finding in run.warnings if finding.refuses)
    if run.undecided:
        yield f"{run.undecided} scenarios are not finished"
    elif run.unjudged_share is None or run.unjudged_share > max_unjudged:
        share = "everything" if run.unjudged_share is None else f"{run.unjudged_share:.1%}"
        yield f"{share} is unjudged, more than {max_unjudged:.1%}"
