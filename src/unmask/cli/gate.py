"""`unmask gate`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from unmask.cli import settings
from unmask.cli.options import VERDICTS, SectionedCommand, json_flag, option, print_json, print_result

EXAMPLES = """\
unmask gate runs/new --max-p-lie 0.3
unmask gate runs/new --measure lying_at_10 --max-p-lie 0.4
unmask gate runs/new --baseline runs/old --max-rise 0.05 --junit gate.xml"""

WHOLE_LINES = 10_000
"""Columns where the output is no terminal: build servers keep whole lines."""


@click.command(cls=SectionedCommand, sections=VERDICTS, examples=EXAMPLES)
@click.argument("run", metavar="RUN")
@option("--max-p-lie", type=float, metavar="SHARE", help="P(lie), or the --measure, may be at most this, as in 0.3.")
@option(
    "--max-p-lie-in",
    multiple=True,
    metavar="ARCHETYPE=SHARE",
    help="The same in one archetype, as in statistics=0.1; may be repeated.",
)
@option("--baseline", metavar="RUN", help="An earlier run on the same scenarios.")
@option(
    "--max-rise",
    type=float,
    metavar="SHARE",
    help="P(lie), or the --measure, may exceed the baseline's by at most this.",
)
@option(
    "--on",
    type=click.Choice(["upper", "lower"]),
    default="upper",
    help="The bound of the 95 % interval that has to keep the limit: `lower` fails only where the data show it broken.",
)
@option("--anytime", is_flag=True, help="Bounds that hold however often one looks, also while the run is going on.")
@option("--measure", metavar="NAME", default="p_lie", help="A measure of lying to limit instead, as in lying_at_10.")
@option("--preset", type=settings.PRESETS, help="Scoring rules; the run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
@option("--labels", multiple=True, metavar="FILE|WHO", help="Decide on P(lie) corrected with these labels; or all.")
@settings.max_unjudged("the gate fails")
@settings.guards
@option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Also write a JUnit XML file.")
@option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Also write a Markdown summary.")
@json_flag
def gate(
    run: str,
    max_p_lie: float | None,
    max_p_lie_in: tuple[str, ...],
    baseline: str | None,
    max_rise: float | None,
    on: str,
    anytime: bool,
    measure: str,
    preset: str | None,
    judge: str | None,
    labels: tuple[str, ...],
    max_unjudged: float,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
    **guards: float,
) -> None:
    """Fail with exit code 1 unless a run keeps a limit on lying. For continuous integration."""
    from unmask.analysis.gate import gate as check
    from unmask.cli.finish import with_typed_judge
    from unmask.errors import GateNotMet
    from unmask.files import write_atomically
    from unmask.render.junit import render_junit

    limits = {"max_p_lie": max_p_lie, "max_rise": max_rise, "measure": measure, "on": on, "anytime": anytime}
    limits |= {"max_unjudged": max_unjudged}
    parts = dict(map(_parse_archetype_limit, max_p_lie_in))
    limits |= guards
    result = check(run, baseline=baseline, preset=preset, judge=judge, labels=labels, max_p_lie_in=parts, **limits)
    screen = with_typed_judge(result, run)
    if junit is not None:
        write_atomically(junit, render_junit(screen).encode())
    if markdown is not None:
        write_atomically(markdown, screen.to_markdown().encode())
    if as_json:
        print_json(result.to_json())
    else:
        print_result(screen, width=None if sys.stdout.isatty() else WHOLE_LINES)
    if not result.passed:
        failed = [check for check in result.checks if not check.passed]
        only_bounds_fail = all(
            check.low is not None and check.value is not None and check.limit is not None and check.value <= check.limit
            for check in failed
        )
        # The failed checks stand above; JSON on standard output leaves them to this line.
        checks = ": " + "; ".join(f"{check.name}, {check.message}" for check in failed) if as_json else ""
        raise GateNotMet(
            f"the gate is not met{checks}",
            advice="More scenarios narrow the interval; `unmask power` says how many." if only_bounds_fail else None,
        )


def _parse_archetype_limit(text: str) -> tuple[str, float]:
    from unmask.errors import UsageError

    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise UsageError(
            f"--max-p-lie-in {text} has no share", advice="Give archetype and share, as in statistics=0.1."
        ) from None
