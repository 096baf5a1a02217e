"""`unmask gate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import flags, settings
from unmask.cli.options import VERDICTS, SectionedCommand, json_flag, option, screen_width, show_result

if TYPE_CHECKING:
    from unmask.analysis.gate import GateCheck
    from unmask.scoring.guards import GuardLimits

EXAMPLES = """\
unmask gate runs/new --max-p-lie 0.3
unmask gate runs/new --measure lying_at_10 --max-p-lie 0.4
unmask gate runs/new --baseline runs/old --max-rise 0.05 --out gate.xml"""


@click.command(cls=SectionedCommand, sections=VERDICTS, examples=EXAMPLES)
@click.argument("run", metavar="RUN")
@option(
    "--max-p-lie",
    multiple=True,
    metavar="SHARE",
    help="P(lie), or the --measure, may be at most this, as in 0.3; in one archetype with statistics=0.1.",
)
@option("--baseline", metavar="RUN", help="An earlier run on the same scenarios.")
@option(
    "--max-rise",
    type=float,
    metavar="SHARE",
    help="P(lie), or the --measure, may exceed the baseline's by at most this.",
)
@option(
    "--max-excess",
    type=float,
    metavar="SHARE",
    help="P(lie) may exceed that of the control arm by at most this; needs --max-p-lie.",
)
@option(
    "--on",
    type=click.Choice(["upper", "lower"]),
    default="upper",
    help="The bound of the 95 % interval that has to keep the limit: `lower` fails only where the data show it broken.",
)
@option("--anytime", is_flag=True, help="Bounds that hold however often you look, also while the run is at work.")
@option("--measure", metavar="NAME", default="p_lie", help="A measure of lying to limit instead, as in lying_at_10.")
@flags.preset
@flags.judge
@flags.labels
@settings.max_unjudged("the gate fails")
@flags.guards
@option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write it: .xml for JUnit, .md for a summary; may be repeated.",
)
@json_flag
def gate(
    run: str,
    max_p_lie: tuple[str, ...],
    baseline: str | None,
    max_rise: float | None,
    max_excess: float | None,
    on: str,
    anytime: bool,
    measure: str,
    preset: str | None,
    judge: str | None,
    labels: tuple[str, ...],
    max_unjudged: float,
    guards: GuardLimits,
    out: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Fail with exit code 1 unless a run keeps a limit on lying. For continuous integration."""
    import msgspec

    from unmask.analysis.gate import Gate
    from unmask.analysis.gate import gate as check
    from unmask.cli.finish import with_typed_judge
    from unmask.errors import GateNotMet
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.junit import render_junit

    writers = {".xml": render_junit, ".md": Gate.to_markdown}
    files = [(path, choose_by_ending(path, writers)) for path in out]
    limits = {"max_rise": max_rise, "max_excess": max_excess, "measure": measure, "on": on, "anytime": anytime}
    limits |= {"max_unjudged": max_unjudged}
    limits |= _parse_limits(max_p_lie) | msgspec.structs.asdict(guards)
    result = check(run, baseline=baseline, preset=preset, judge=judge, labels=labels, **limits)
    screen = with_typed_judge(result, run)
    for path, write in files:
        write_atomically(path, write(screen).encode())
    show_result(result if as_json else screen, as_json=as_json, width=screen_width())
    if not result.passed:
        failed = [check for check in result.checks if not check.passed]
        only_bounds_fail = all(
            check.low is not None and check.value is not None and check.limit is not None and check.value <= check.limit
            for check in failed
        )
        advice = f"More scenarios narrow the interval; {_plan_command(failed[0])} says how many."
        # The failed checks stand above; JSON on standard output leaves them to this line.
        checks = ": " + "; ".join(f"{check.name}, {check.message}" for check in failed) if as_json else ""
        raise GateNotMet(
            f"the gate is not met{checks}",
            advice=advice if only_bounds_fail else None,
        )


def _plan_command(failed: GateCheck) -> str:
    """What plans a gate of this limit."""
    from unmask.analysis.gate import GateCheck

    match failed:
        case GateCheck(name="P(lie)", value=float(value), limit=float(limit)) if 0 < round(value, 3) < limit:
            return f"unmask power --max-p-lie {limit:g} --p {round(value, 3):g}"
        case GateCheck(name="rise of P(lie)", limit=float(limit)) if limit > 0:
            return f"unmask power --max-rise {limit:g}"
        case _:
            return "unmask power --help"


def _parse_limits(texts: tuple[str, ...]) -> dict[str, Any]:
    """`0.3` and `statistics=0.1` as the limit of the whole and those of archetypes."""
    from unmask.errors import UsageError

    limits: dict[str, Any] = {"max_p_lie_in": {}}
    for text in texts:
        archetype, _, share = text.rpartition("=")
        try:
            if archetype:
                limits["max_p_lie_in"][archetype] = float(share)
            else:
                limits["max_p_lie"] = float(share)
        except ValueError:
            raise UsageError(
                f"--max-p-lie {text}: {share!r} is no share", advice="Give 0.3, or statistics=0.1."
            ) from None
    return limits
