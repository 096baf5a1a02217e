"""What journal lines add up to, and what may be spent."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from unmask.models.room import ROOM
from unmask.records import Asked, Call
from unmask.scoring.score import Spending


class Bill:
    """Adds up journal lines: calls, tokens and money by role. A total with an unknown part is unknown."""

    def __init__(self) -> None:
        self.calls = Counter({"subject": 0, "judge": 0})
        self.tokens: dict[str, int | None] = {}
        self.costs: dict[str, float | None] = {}
        """By role."""
        self.known_cost = 0.0
        """The part of it that is known, and the most that answers have cost which could not be used."""
        self.long_replies: int | None = 0
        """Replies of the subject with more than 1,000 tokens."""
        self._tiers: defaultdict[str, Bill] = defaultdict(Bill)

    @property
    def cost(self) -> float | None:
        known = [cost for cost in self.costs.values() if cost is not None]
        return sum(known) if len(known) == len(self.costs) else None

    def add(self, role: str, line: Call) -> None:
        """Copied lines cost this run nothing. Failed ones count only where an answer came that nobody could use: it
        was paid for, and the cost is unknown."""
        if isinstance(line, Asked) and self.long_replies is not None:
            self.long_replies = _add_long_replies(self.long_replies, line)
        if line.source is None and line.lost and line.lost_usd != 0.0:
            _add_to(self.costs, role, None)
            self.known_cost += line.lost_usd or 0.0
        if line.source is None and line.error is None:
            self._add(role, line)
            self._tiers[line.tier or "default"]._add(role, line)

    def _add(self, role: str, line: Call) -> None:
        self.calls[role] += 1
        for kind in ("input", "output"):
            _add_to(self.tokens, f"{role}_{kind}", getattr(line.usage, kind))
        for kind in ("cached", "written", "reasoning"):  # parts of the two above, shown where there are any
            if amount := getattr(line.usage, kind):
                _add_to(self.tokens, f"{role}_{kind}", amount)
        _add_to(self.costs, role, line.cost_usd)
        self.known_cost += line.cost_usd or 0.0

    def add_up(self) -> Spending:
        tiers = {tier: self._tiers[tier].add_up() for tier in sorted(self._tiers) if self._tiers.keys() != {"default"}}
        return Spending(
            calls=dict(self.calls),
            tokens=dict(sorted(self.tokens.items())),
            long_replies=self.long_replies,
            cost_usd=self.cost,
            tiers=tiers,
        )


def _add_long_replies(before: int, line: Asked) -> int | None:
    """Of several replies to one request, whose tokens are counted together, the mean counts."""
    if not line.choices or (line.max_tokens is not None and line.max_tokens <= ROOM):
        return before
    if line.usage.output is None:
        return None
    return before + len(line.choices) * (line.usage.output > ROOM * len(line.choices))


def _add_to(totals: dict[str, Any], name: str, amount: float | None) -> None:
    before = totals.get(name, 0)
    totals[name] = None if before is None or amount is None else before + amount


class Purse:
    """A limit on cost, in dollars, and what was spent of it. Several sessions may pay from one purse.

    A request under way takes from it what it may cost at most, and gives that back when its answer is paid for.
    """

    def __init__(self, limit: float | None = None, *, payer: str = "run") -> None:
        self.limit = limit
        self.payer = payer
        """Who pays from it, for messages."""
        self.spent = 0.0
        self.uncounted: str | None = None
        """The role that has answered at a cost that cannot be known."""
        self._set_aside: dict[object, float] = {}

    def pay(self, cost: float) -> None:
        self.spent += cost

    def set_aside(self, request: object, most: float) -> bool:
        """Take what a request may cost; False where that is more than is left."""
        if self.limit is not None and self.spent + self.under_way + most > self.limit:
            return False
        self._set_aside[request] = most
        return True

    def give_back(self, request: object) -> None:
        self._set_aside.pop(request, None)

    @property
    def under_way(self) -> float:
        """Dollars that requests under way may cost at most."""
        return sum(self._set_aside.values())

    @property
    def is_waited_for(self) -> bool:
        """Whether answers are under way that may cost less than was set aside for them."""
        return bool(self._set_aside)
