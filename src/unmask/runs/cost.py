"""What journal lines add up to, and what may be spent."""

from __future__ import annotations

from unmask.records import Call
from unmask.runs.journal import LineSummary


class Bill:
    """Adds up journal lines: calls, tokens and money by role. A total with an unknown part is unknown."""

    def __init__(self) -> None:
        self.calls = {"subject": 0, "judge": 0}
        self.tokens: dict[str, int | None] = {}
        self.cost: float | None = 0.0
        self.grouped = False

    def add(self, role: str, line: Call | LineSummary) -> None:
        """Copied lines cost this run nothing; failed ones brought nothing back to count."""
        if line.source is not None or line.error is not None:
            return
        self.calls[role] += 1
        self.grouped = self.grouped or len(line.choices) > 1
        for kind in ("input", "output"):
            name, amount = f"{role}_{kind}", getattr(line.usage, kind)
            before = self.tokens.get(name, 0)
            self.tokens[name] = None if before is None or amount is None else before + amount
        self.cost = None if self.cost is None or line.cost_usd is None else self.cost + line.cost_usd


class Purse:
    """A limit on cost, in dollars, and what was spent of it. Several sessions may pay from one purse."""

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self.spent = 0.0
        self.uncounted: str | None = None
        """The role that has answered without saying how many tokens that took, although they have a price."""

    def pay(self, cost: float) -> None:
        self.spent += cost
