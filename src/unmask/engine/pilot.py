"""What the done scenarios of a run say about those that are left: how long answers are, how often a request is sent
again, how many requests a scenario takes. Pure.

The planner gives two ends for every scenario: a subject without beliefs, and one that believes everything. Measured
lengths give both ends their price. What the done scenarios have cost says where between the ends the others come out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from unmask.models.prices import Price
from unmask.models.tiers import FLEX
from unmask.records import Asked, Judged, Record, Scenario, Slot, Usage, is_indirect

FEWEST = 10
"""With at least so many done scenarios, what they took is used in the place of the usual lengths."""
MOST_READ = 500
"""Done scenarios that are looked at: more say nothing new."""
DRAWS = 4000
TAIL = 0.001
"""The part of the draws that lies below the range, and above it."""
MARGIN = 1.1
"""What both ends are widened by: the tails that so few scenarios show are too short."""
WIDEST = 1.99
"""The upper end is at most so many times the lower one: nearly two, because tokens are rounded to whole numbers."""
UNPRICED = Price(1.0, 4.0)
"""Weighs tokens where nobody knows the price."""


class Amount(Record, frozen=True, omit_defaults=False):
    """Requests and tokens of one role."""

    calls: int = 0
    input: int = 0
    output: int = 0

    def plus(self, amount: Amount) -> Amount:
        return Amount(self.calls + amount.calls, self.input + amount.input, self.output + amount.output)

    def minus(self, amount: Amount) -> Amount:
        return Amount(self.calls - amount.calls, self.input - amount.input, self.output - amount.output)

    def repeated(self, part: float) -> Amount:
        """With that part of it sent a second time."""
        return self.times(1 + part, 1 + part, 1 + part)

    def times(self, calls: float, sent: float, answered: float) -> Amount:
        return Amount(round(self.calls * calls), round(self.input * sent), round(self.output * answered))

    def cost(self, price: Price | None, *, flex: bool = False) -> float | None:
        """With `flex` at that tier, where the provider has it."""
        if price is None:
            return None
        return price.cost(Usage(self.input, self.output), FLEX if flex and price.flex is not None else None)


class Part(NamedTuple):
    """Requests that are alike: of one role, about one slot, by one method of judging."""

    role: str
    slot: str
    method: str = ""


Amounts = dict[Part, Amount]


class Ends(NamedTuple):
    """What scenarios take: without any belief, and with all of them."""

    least: Amounts
    most: Amounts

    def plus(self, ends: Ends) -> Ends:
        return Ends(_add(self.least, ends.least), _add(self.most, ends.most))


class DoneScenario(NamedTuple):
    """A scenario that needs nothing more: what the planner imagines for it, and the lines that were paid for."""

    group: str
    ends: Ends
    lines: tuple[tuple[Part, Asked | Judged], ...]
    unasked: Mapping[Part, Amount] = MappingProxyType({})
    """Requests, as imagined, that the run would have made besides, as it goes on now."""


class LeftGroup(NamedTuple):
    """Scenarios of one group that are not done."""

    scenarios: int
    ends: Ends


class PilotRange(NamedTuple):
    """The range for what is left. `prices` are those that tokens have really had, caches and reasoning in them, and
    `share` is the part of the draws that lies in the range."""

    ends: Ends
    prices: dict[str, Price | None]
    share: float


def group_of(scenario: Scenario) -> str:
    """Scenarios of one group are asked alike: those that give the facts, and the others by what they ask for."""
    return str(scenario.kind) if scenario.asks_belief else "given"


def part_of(role: str, slot: Slot, method: object = "") -> Part:
    return Part(role, "indirect" if is_indirect(slot) else str(slot), str(method))


def _add(*amounts: Amounts) -> Amounts:
    total: Amounts = {}
    for each in amounts:
        for part, amount in each.items():
            total[part] = total.get(part, Amount()).plus(amount)
    return total


def sum_roles(amounts: Amounts, roles: Iterable[str]) -> dict[str, Amount]:
    total = dict.fromkeys(roles, Amount())
    for part, amount in amounts.items():
        total[part.role] = total[part.role].plus(amount)
    return total


def forecast(
    pilot: Sequence[DoneScenario], left: Mapping[str, LeftGroup], prices: Mapping[str, Price | None]
) -> PilotRange | None:
    """The range for the groups that are left. `None` where nothing is, where too few scenarios are done, or where an
    endpoint does not say what its answers take."""
    lines = [(part, line) for done in pilot for part, line in done.lines]
    if (
        not left
        or len(pilot) < FEWEST
        or any(line.usage.input is None or line.usage.output is None for _, line in lines)
    ):
        return None
    factors = _Factors(pilot, tuple(prices))
    paid = {role: _measure_price(prices[role], [line for part, line in lines if part.role == role]) for role in prices}
    stated = [price for price in paid.values() if price is not None]
    is_priced = len(stated) == len(paid) and not all(price.free for price in stated)
    weights = paid if is_priced else dict.fromkeys(paid, UNPRICED)

    def worth(amounts: Amounts) -> float:
        return sum(amount.cost(weights[role]) or 0.0 for role, amount in sum_roles(amounts, weights).items())

    draws: Any = 0.0
    middle: Amounts = {}
    for number, (group, remaining) in enumerate(sorted(left.items())):
        least, most = (factors.apply(amounts) for amounts in remaining.ends)
        rows = [
            (worth(_add(_sum_lines(done), factors.apply(done.unasked))), worth(factors.apply(done.ends.most)))
            for done in pilot
            if done.group == group
        ]
        bounds = worth(least), worth(most)
        drawn = _draw_costs(rows, bounds, scenarios=remaining.scenarios, seed=number)
        draws = draws + drawn
        place = (float(drawn.mean()) - bounds[0]) / (bounds[1] - bounds[0]) if bounds[1] > bounds[0] else 1.0
        place = min(1.0, max(0.0, place))
        middle = _add(middle, _scale(least, 1 - place), _scale(most, place))
    lower, upper, share = _find_range(draws)
    level = worth(middle) or 1.0
    return PilotRange(Ends(_scale(middle, lower / level), _scale(middle, upper / level)), paid, share)


class _Factors:
    """What was measured over what was imagined: requests, and the tokens sent and answered. A part that no done
    scenario had is like the others of its role, sent once."""

    def __init__(self, pilot: Sequence[DoneScenario], roles: Sequence[str]) -> None:
        imagined = _add(*(done.ends.most for done in pilot))
        measured: dict[Part, list[Asked | Judged]] = defaultdict(list)
        for done in pilot:
            for part, line in done.lines:
                if part in imagined:
                    measured[part].append(line)
        self._by_part = {part: _divide(lines, imagined[part]) for part, lines in measured.items()}
        self._by_role = {}
        for role in roles:
            before = sum_roles({part: imagined[part] for part in measured}, roles)[role]
            after = sum_roles(self.apply({part: imagined[part] for part in measured}), roles)[role]
            self._by_role[role] = 1.0, _ratio(after.input, before.input), _ratio(after.output, before.output)

    def apply(self, amounts: Mapping[Part, Amount]) -> Amounts:
        return {
            part: amount.times(*self._by_part.get(part) or self._by_role[part.role]) for part, amount in amounts.items()
        }


def _divide(lines: Sequence[Asked | Judged], imagined: Amount) -> tuple[float, float, float]:
    """Requests that were sent again, and the tokens of one request."""
    first_tries = sum(line.attempt == 1 for line in lines)
    again = len(lines) / max(1, first_tries)
    each = again * imagined.calls / len(lines)
    sent = each * sum(line.usage.input or 0 for line in lines)
    answered = each * sum(line.usage.output or 0 for line in lines)
    return again, _ratio(sent, imagined.input), _ratio(answered, imagined.output)


def _ratio(measured: float, imagined: float) -> float:
    return measured / imagined if imagined else 1.0


def _measure_price(price: Price | None, lines: Sequence[Asked | Judged]) -> Price | None:
    """The price with what caches and reasoning have made of it so far."""
    if price is None or price.free:
        return price
    costs = [price.cost(line.usage) for line in lines]
    plain = sum(price.cost(Usage(line.usage.input, line.usage.output)) or 0.0 for line in lines)
    if not plain or None in costs:
        return price if not lines else None
    part = sum(cost or 0.0 for cost in costs) / plain
    return replace(price, input=price.input * part, output=price.output * part)


def _sum_lines(done: DoneScenario) -> Amounts:
    return _add(*({part: Amount(1, line.usage.input or 0, line.usage.output or 0)} for part, line in done.lines))


def _scale(amounts: Amounts, factor: float) -> Amounts:
    return {part: amount.times(factor, factor, factor) for part, amount in amounts.items()}


def _draw_costs(rows: Sequence[tuple[float, float]], bounds: tuple[float, float], *, scenarios: int, seed: int) -> Any:
    """What scenarios of one group may cost together, drawn `DRAWS` times. A row has what a done scenario has cost and
    what it would at most.

    A Bayesian bootstrap of the ratio of the two: each draw weighs the rows anew. Half a row at either end stands for
    what the rows do not show, as in the rule of Jeffreys for a share. Scenarios that are left scatter as the rows do.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    least, most = bounds
    ends = [(least / scenarios, most / scenarios), (most / scenarios, most / scenarios)]
    cost, dearest = np.array([*rows, *ends]).T
    weights = rng.gamma([1.0] * len(rows) + [0.5, 0.5], size=(DRAWS, len(cost)))
    weights /= weights.sum(axis=1, keepdims=True)
    ratio = (weights @ cost) / np.maximum(weights @ dearest, 1e-300)
    scatter = weights @ cost**2 - 2 * ratio * (weights @ (cost * dearest)) + ratio**2 * (weights @ dearest**2)
    return most * ratio + np.sqrt(scenarios * np.maximum(scatter, 0.0)) * rng.standard_normal(DRAWS)


def _find_range(draws: Any) -> tuple[float, float, float]:
    """Lower and upper end, and the part of the draws between them. Where the draws lie wider apart than `WIDEST`, the
    range is the one of that width that holds most of them."""
    import numpy as np

    draws = np.sort(np.maximum(draws, 0.0))
    lower, upper = (float(end) for end in np.quantile(draws, (TAIL, 1 - TAIL)))
    lower, upper = lower / MARGIN, upper * MARGIN
    if upper > WIDEST * lower:
        counts = np.searchsorted(draws, WIDEST * draws, side="right") - np.arange(len(draws))
        lower = float(np.median(draws[counts == counts.max()]))
        upper = WIDEST * lower
    return lower, upper, float(np.mean((draws >= lower) & (draws <= upper)))
