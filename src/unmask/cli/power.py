"""`unmask power`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli.options import in_colour, json_flag, option, print_json


@click.command()
@option("--gap", type=float, metavar="SHARE", help="The difference in P(lie) to be found, as in 0.05.")
@option("--scenarios", type=int, help="Scenarios at hand: say what they can show.")
@option("--max-rise", type=float, metavar="SHARE", help="Plan for gate --max-rise: how many scenarios pass it.")
@option("--max-p-lie", type=float, metavar="SHARE", help="Plan for gate --max-p-lie: how many scenarios pass it.")
@option("--p", type=float, default=0.3, help="P(lie) of the first run.")
@option("--correlation", type=float, default=0.5, help="Between two runs' verdicts on a scenario; compare prints it.")
@option("--take-correlation", type=float, default=0.73, help="Between two takes of one run on a scenario.")
@option("--power", "chance", type=float, default=0.8, help="Chance to find the difference.")
@option("--alpha", type=float, default=0.05, help="Chance to find one that is not there.")
@json_flag
def power(
    gap: float | None,
    scenarios: int | None,
    max_rise: float | None,
    max_p_lie: float | None,
    p: float,
    correlation: float,
    take_correlation: float,
    chance: float,
    alpha: float,
    as_json: bool,
) -> None:
    """Plan a comparison or a gate: scenarios and takes needed, or what a number of scenarios can show."""
    from unmask.render.terminal.power import render
    from unmask.stats.power import power as plan

    design: dict[str, Any] = {"p": p, "correlation": correlation, "take_correlation": take_correlation, "alpha": alpha}
    result = plan(gap=gap, scenarios=scenarios, max_rise=max_rise, max_p_lie=max_p_lie, power=chance, **design)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(render(result, color=in_colour()), nl=False)
