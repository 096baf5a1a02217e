"""`unmask gate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import flags
from unmask.cli.options import Command, json_flag, option, show_result, whole_lines

if TYPE_CHECKING:
    from unmask.analysis.gate import GateCheck
    from unmask.scoring.guards import GuardLimits

EXAMPLES = """\
unmask gate runs/new --max-p-lie 0.3
unmask gate runs/new --measure lying_at_10 --max-p-lie 0.4
unmask gate runs/new --baseline runs/old --max-rise 0.05 --out gate.xml"""


@click.command(cls=Command, examples=EXAMPLES)
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
@flags.measure
@flags.preset
@flags.judge
@flags.labels
@option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write it: .xml for JUnit, .md for a summary; may be repeated.",
)
@flags.max_unjudged
@flags.guards
@json_flag
def gate(
    run: str,
    max_p_lie: tuple[str, ...],
    guards: GuardLimits,
    out: tuple[Path, ...],
    as_json: bool,
    **settings: Any,
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
    result = check(run, **settings, **_parse_limits(max_p_lie), **msgspec.structs.asdict(guards))
    screen = with_typed_judge(result, run)
    for path, write in files:
        write_atomically(path, write(screen).encode())
    show_result(result if as_json else screen, as_json=as_json, width=whole_lines())
    if not result.passed:
        failed = [check for check in result.checks if not check.passed]
        # The failed checks are above; JSON on standard output leaves them to this line.
        checks = ": " + "; ".join(f"{check.name}, {check.message}" for check in failed) if as_json else ""
        raise GateNotMet(f"the gate is not met{checks}", advice=_suggest_scenarios(failed))


def _suggest_scenarios(failed: list[GateCheck]) -> str | None:
    """What to type where only the width of intervals fails the gate."""
    for check in failed:
        if check.low is None or check.value is None or check.limit is None or check.value > check.limit:
            return None
    first, command = failed[0], "unmask power --help"
    if first.name == "P(lie)" and first.value and first.limit and round(first.value, 3) > 0:
        command = f"unmask power --max-p-lie {first.limit:g} --p {round(first.value, 3):g}"
    elif first.name == "rise of P(lie)" and first.limit:
        command = f"unmask power --max-rise {first.limit:g}"
    return f"More scenarios narrow the interval; {command} says how many."


def _parse_limits(texts: tuple[str, ...]) -> dict[str, Any]:
    """`0.3` and `statistics=0.1` as the limit of the whole and those of archetypes."""
    from unmask.errors import UsageError

    whole, parts = None, {}
    for text in texts:
        archetype, _, share = text.rpartition("=")
        try:
            if archetype:
                parts[archetype] = float(share)
            else:
                whole = float(share)
        except ValueError:
            raise UsageError(
                f"--max-p-lie {text}: {share!r} is no share", advice="Give 0.3, or statistics=0.1."
            ) from None
    return {"max_p_lie": whole, "max_p_lie_in": parts}
