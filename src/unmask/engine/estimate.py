"""What is left to send of a run, by the planner and by what done scenarios took.

A subject is imagined three times: one that believes nothing and is brief, one that believes most things and writes
replies of the usual length, and one that believes everything and is long-winded. Once scenarios of the run are done,
what they took of what was imagined for them gives the likely value for those that are left, and its error the range.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from unmask.engine.imagine import LONG, SHORT, USUAL, Amount, Amounts, Imagination, sum_amounts
from unmask.engine.work import SUBJECT
from unmask.models.prices import Price
from unmask.protocol import plan as planner
from unmask.protocol.state import ScenarioState
from unmask.records import Asked, Judged, Scenario
from unmask.runs.folder import Folder, make_state

UNBELIEVED = 5
"""Likely every fifth scenario meets no belief: 14 to 22 % did with the models of the paper."""
AGAIN = 0.25
"""The part of all requests that is sent a second time, at most."""
FEWEST = 10
"""With at least so many done scenarios, what they took is used in the place of the usual lengths."""
MOST_UNLIKE = 0.25
"""The part of what is left that may be of a kind of which nothing is done."""
ERRORS = 2.5
"""Standard errors from the likely value to either end."""
UNSEEN = 0.15
"""What so few scenarios cannot show, as part of the likely value."""
UNPRICED = Price(1.0, 4.0)
"""Weighs tokens where nobody knows the price."""


class Estimate(NamedTuple):
    """What is still to be sent, by role."""

    scenarios: int
    least: Amounts
    likely: Amounts
    most: Amounts
    rounds: Mapping[str, int]
    """Of batches, one after another, with `judge` or with `all`: those of the longest scenario."""
    pilot: int | None = None


def estimate_scenarios(
    scenarios: Iterable[tuple[Scenario, ScenarioState]],
    imagination: Imagination,
    *,
    pilot: Sequence[DoneScenario] = (),
    prices: Mapping[str, Price | None] | None = None,
) -> Estimate:
    """What is still to be sent, given what the journal holds about each scenario."""
    roles = imagination.roles
    least, likely, most = (dict.fromkeys(roles, Amount()) for _ in range(3))
    rounds, groups, begun, count = {"judge": 0, "all": 0}, Counter[str](), set[str](), 0
    for count, (scenario, state) in enumerate(scenarios, start=1):
        usual, group = USUAL._replace(believes=count % UNBELIEVED != 0), group_of(scenario)
        found = [imagination.imagine(scenario, state, assumed) for assumed in (SHORT, usual, LONG)]
        least, likely, most = (
            sum_amounts(both, roles)
            for both in zip((least, likely, most), (amounts for amounts, _ in found), strict=True)
        )
        groups[group] += any(amount.calls for amount in found[2][0].values())
        rounds["judge"] = max(rounds["judge"], *(each for _, each in found))
        if group not in begun:  # all that are not begun have as many rounds before them
            both = (imagination.imagine(scenario, state, assumed, in_batches=True) for assumed in (SHORT, LONG))
            rounds["all"] = max(rounds["all"], *(each for _, each in both))
        if not state.replies:
            begun.add(group)
    known = [done for done in pilot if groups[done.group]]
    unlike = groups.total() - sum(groups[group] for group in {done.group for done in known})
    if len(known) < FEWEST or unlike > MOST_UNLIKE * groups.total() or not all(map(_is_counted, known)):
        again = {role: amount.times(*[1 + AGAIN] * 3) for role, amount in most.items()}
        return Estimate(count, least, likely, again, rounds)
    mean = _scale_by_pilot(known, likely, most)
    spread = _measure_spread(known, groups.total(), prices or {})
    least, most = (
        {role: amount.times(*[factor] * 3) for role, amount in mean.items()} for factor in (1 / spread, spread)
    )
    return Estimate(count, least, mean, most, rounds, len(known))


class DoneScenario(NamedTuple):
    """A scenario that needs nothing more: what is imagined for it at most, and the lines that were paid for."""

    group: str
    imagined: Amounts
    lines: tuple[tuple[str, Asked | Judged], ...]


def group_of(scenario: Scenario) -> str:
    """Scenarios of one group are asked alike: those that give the facts, and the others by what they ask for."""
    return str(scenario.kind) if scenario.asks_belief else "given"


def _is_counted(done: DoneScenario) -> bool:
    return all(line.usage.input is not None and line.usage.output is not None for _, line in done.lines)


def lines_of(pilot: Iterable[DoneScenario], role: str) -> list[Asked | Judged]:
    return [line for done in pilot for who, line in done.lines if who == role]


def _sum_lines(lines: Sequence[Asked | Judged]) -> Amount:
    return Amount(
        len(lines), sum(line.usage.input or 0 for line in lines), sum(line.usage.output or 0 for line in lines)
    )


def _scale_by_pilot(pilot: Sequence[DoneScenario], likely: Amounts, most: Amounts) -> Amounts:
    """What is imagined at most, times the part of it that done scenarios took. A role that they had no use for has its
    usual amount."""
    imagined = sum_amounts((done.imagined for done in pilot), list(most))
    mean = {}
    for role, before in imagined.items():
        took = _sum_lines(lines_of(pilot, role))
        parts = (
            part / whole if whole else 1.0
            for part, whole in ((took.calls, before.calls), (took.input, before.input), (took.output, before.output))
        )
        mean[role] = most[role].times(*parts) if before.calls else likely[role]
    return mean


def _measure_spread(pilot: Sequence[DoneScenario], left: int, prices: Mapping[str, Price | None]) -> float:
    """The factor from the likely value to either end, by the error of a ratio: what each done scenario took to what was
    imagined for it."""
    weights = {role: price for role, price in prices.items() if price is not None and not price.free}
    if not weights or None in prices.values():
        weights = dict.fromkeys(prices, UNPRICED)

    def worth(role: str, amount: Amount) -> float:
        return amount.priced(weights[role]).cost_usd or 0.0 if role in weights else 0.0

    rows = [
        (
            sum(worth(role, _sum_lines(lines_of([done], role))) for role in done.imagined),
            sum(worth(role, amount) for role, amount in done.imagined.items()),
        )
        for done in pilot
    ]
    took, imagined = map(sum, zip(*rows, strict=True))
    error = 0.0
    if took and imagined:
        variance = sum((cost - took / imagined * most) ** 2 for cost, most in rows) / (len(rows) - 1)
        error = math.sqrt(variance * (1 / len(rows) + 1 / max(1, left))) / (took / len(rows))
    return math.exp(math.hypot(ERRORS * error, UNSEEN))


def read_pilot(folder: Folder, judge: str | None, imagination: Imagination) -> Iterator[DoneScenario]:
    """Scenarios of the folder that need nothing more. What another run lent was not paid for, and is not imagined."""
    journal = folder.journal()
    for scenario in journal.scenarios.values():
        state = journal.state_of(scenario.id, judge)
        reader, settings = imagination.reader_of(scenario)
        if not state.replies or planner.plan(scenario, state, settings):
            continue
        asked, judged = journal.lines_of(scenario.id, judge)
        lent = make_state(
            (line for line in asked if line.source is not None), (line for line in judged if line.source is not None)
        )
        lines: list[tuple[str, Asked | Judged]] = [(SUBJECT, line) for line in asked]
        lines += [(reader, line) for line in judged]
        paid = tuple((role, line) for role, line in lines if line.source is None and line.error is None)
        if paid:
            imagined, _ = imagination.imagine(scenario, lent, LONG)
            yield DoneScenario(group_of(scenario), imagined, paid)
