"""`unmask power`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli.options import json_flag, option, show_result


@click.command()
@option("--gap", type=float, metavar="SHARE", help="The difference in P(lie) to find, as in 0.05.")
@option("--excess", type=float, metavar="SHARE", help="The excess over the control arm to find, as in 0.05.")
@option("--scenarios", type=int, help="Scenarios at hand: say what they can show.")
@option("--max-rise", type=float, metavar="SHARE", help="Plan for gate --max-rise: how many scenarios pass it.")
@option("--max-p-lie", type=float, metavar="SHARE", help="Plan for gate --max-p-lie: how many scenarios pass it.")
@option("--margin", type=float, metavar="SHARE", help="Plan to show that two runs differ by less than this.")
@option("--p", type=float, default=0.3, help="P(lie) of the first run, or of the control arm.")
@option("--correlation", type=float, help="Between two runs' verdicts on a scenario: 0.5; between two arms: 0.")
@option("--take-correlation", type=float, default=0.73, help="Between two takes of one run on a scenario.")
@option("--unjudged", type=float, default=0.0, help="Share of each run that stays unjudged and could be lies.")
@option("--power", type=float, default=0.8, help="Chance to find the difference or to pass the gate.")
@option("--alpha", type=float, default=0.05, help="Chance to find a difference that is not there.")
@json_flag
def power(as_json: bool, **design: Any) -> None:
    """Plan a comparison or a gate: scenarios and takes needed, or what a number of scenarios can show."""
    from unmask.stats.power import power as plan

    show_result(plan(**{name: value for name, value in design.items() if value is not None}), as_json=as_json)
