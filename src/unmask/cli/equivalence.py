"""`unmask equivalence`."""

from __future__ import annotations

import sys

import click

from unmask.cli import crash, settings
from unmask.cli.options import in_colour, json_flag, option, print_json


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@option(
    "--margin", type=float, default=0.02, metavar="SHARE", help="The shift of P(lie) to rule out; 0.02 is 2 points."
)
@option("--preset", type=settings.PRESETS, help="Scoring rules; those of A unless given.")
@settings.max_unjudged()
@settings.guards
@json_flag
def equivalence(
    a: str, b: str, margin: float, preset: str | None, max_unjudged: float, as_json: bool, **guards: float
) -> None:
    """Test whether two judges, or two versions of prompts, give the same P(lie) on the same replies.

    A and B are run folders that hold the same replies, or RUN@JUDGE for one of several judges of a run. Exit code 0:
    equivalent. 1: a larger shift is shown, or there are too few replies to tell. 3: incomplete.
    """
    from unmask.analysis.equivalence import equivalence as test_equivalence
    from unmask.errors import GateNotMet
    from unmask.protocol.guards import GuardLimits
    from unmask.stats.equivalence import EquivalenceVerdict

    result = test_equivalence(a, b, margin=margin, preset=preset, guards=GuardLimits(**guards))
    if as_json:
        print_json(result.to_json())
    else:
        from msgspec.structs import replace

        from unmask.cli.finish import with_typed_judge
        from unmask.render.terminal.equivalence import render

        first, second = (with_typed_judge(side, side.run) for side in (result.a, result.b))
        click.echo(render(replace(result, a=first, b=second), color=in_colour()), nl=False)
    unfit = False
    for name, side in (("A", result.a), ("B", result.b)):
        reasons = list(side.refusals)
        if side.undecided:
            reasons.append(f"{side.undecided} scenarios are not finished")
        elif side.unjudged > max_unjudged * result.scenarios:
            reasons.append(f"more than {max_unjudged:.1%} of the scenarios are unjudged")
        for reason in reasons:
            click.echo(f"unmask: {name}: {crash.clean_for_terminal(reason)}", err=True)
        if side.complete_with:
            click.echo(f"  Finish with: {crash.clean_for_terminal(side.complete_with)}", err=True)
        unfit = unfit or bool(reasons)
    if unfit:
        sys.exit(3)
    if result.verdict is not EquivalenceVerdict.EQUIVALENT:
        raise GateNotMet(f"equivalence is not shown: {result.why}")
