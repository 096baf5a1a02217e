"""The flags that commands share which look at finished runs: each is spelled, and means, the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from unmask.cli.options import choice_of, option
from unmask.records import Preset

if TYPE_CHECKING:
    from unmask.scoring.guards import GuardLimits

MAX_UNJUDGED = 0.05
"""The largest share of unjudged takes, where nobody gives another."""

preset = option("--preset", type=choice_of(Preset), help="Scoring rules; each run's own unless given.")

judge = option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")

labels = option(
    "--labels",
    multiple=True,
    metavar="WHO",
    help="Correct P(lie) for the judge's errors by labels of this person; or all.",
)

measure = option(
    "--measure", metavar="NAME", default="p_lie", help="What counts: P(lie), or another measure, as in lying_at_10."
)

drop_changed = option("--drop-changed", is_flag=True, help="Leave out scenarios that differ between the runs.")

max_unjudged = option(
    "--max-unjudged",
    type=click.FloatRange(0, 1),
    default=MAX_UNJUDGED,
    rare=True,
    help="Fail where a larger share of the takes is unjudged.",
)


def _parse_guards(context: click.Context, parameter: click.Parameter, value: str) -> GuardLimits:
    from unmask.scoring.guards import parse_limits

    return parse_limits(value)


guards = option(
    "--guards",
    default="default",
    metavar="off|NAME=SHARE,…",
    callback=_parse_guards,
    rare=True,
    help="Other limits of what a run has to keep: belief=0.25, engagement=0.2, empty=0.05, capped=0.05, renamed=0.",
)
"""The limits of `scoring/guards.py`, for every command that refuses a run which does not keep them."""
