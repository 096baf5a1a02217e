"""Service tiers: the same tokens for less, for whoever can wait. `--tier flex`, `--tier flex,default`."""

from __future__ import annotations

import re
import time
from typing import Any

from unmask.errors import FatalModelError, UsageError
from unmask.models.failures import ProviderProblem
from unmask.models.keys import Target
from unmask.models.providers import PROVIDERS, provider_of

SERVICE_TIER = "service_tier"
FLEX, STANDARD = "flex", "default"
TIERS = (FLEX, f"{FLEX},{STANDARD}", STANDARD)
"""What a user may ask for."""

MOST_REFUSALS = 4
"""Of flex in a row before `flex,default` goes on at the standard tier: some 15 s of pauses, and fewer than a request
has tries."""

_STANDARD_NAMES = frozenset({"", "auto", "default", "standard", "on_demand"})
_ABOUT_TIER = re.compile(r"service[ _]tier|\bflex\b", re.IGNORECASE)


def check_tier(tier: str | None, model: object, *, flag: str) -> None:
    """Refuse a tier that nobody has, or that the provider of this model does not have. A model that is no name has
    none."""
    if tier is None or tier == STANDARD:
        return
    if tier not in TIERS:
        raise UsageError(f"{flag} {tier!r} is unknown", advice=f"Choose from: {'; '.join(TIERS)}")
    name = model if isinstance(model, str) else "a model of a Python program"
    row = PROVIDERS.get(provider_of(name) or "")
    if row is None or row.flex is None:
        names = ", ".join(provider for provider, row in PROVIDERS.items() if row.flex is not None)
        raise UsageError(
            f"{flag} {tier}: {name} has no such tier", advice=f"Leave {flag} out. Providers with flex: {names}."
        )


def read_tier(tier: Any) -> str | None:
    """The tier that an answer names; `None` for the standard one, whatever the provider calls it, and for no word."""
    return None if not isinstance(tier, str) or tier.lower() in _STANDARD_NAMES else tier[:40].lower()


class TierChoice:
    """Which tier the requests to one model ask for. Where flex has no room, or is refused, `flex,default` goes on at
    the standard tier, until the run is continued."""

    def __init__(self, wanted: str | None = None) -> None:
        self._asks_flex = wanted in (FLEX, f"{FLEX},{STANDARD}")
        self._may_fall_back = wanted == f"{FLEX},{STANDARD}"
        self._refusals = 0
        self._counted_at = float("-inf")
        self._notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, str]:
        return {SERVICE_TIER: FLEX} if self._asks_flex else {}

    @property
    def notes(self) -> tuple[str, ...]:
        """For every answer at another tier than was wanted."""
        return self._notes

    def count_answer(self) -> None:
        self._refusals = 0

    def falls_back(self, problem: ProviderProblem, target: Target, *, started: float) -> bool:
        """Whether the refused request is to be sent again at once, at the standard tier. `started` is when it was sent
        (`time.monotonic`): of those that were under way together one refusal counts."""
        if not self._asks_flex:
            return False
        is_unknown = problem.status in (400, 422) and (
            problem.param == SERVICE_TIER or bool(_ABOUT_TIER.search(problem.message))
        )
        if is_unknown and not self._may_fall_back:
            raise FatalModelError(
                f"{target.name} at {target.shown} refuses the tier flex: {target.scrub(problem.message)}",
                advice="Leave the tier out, or let it be tried: flex,default",
            )
        if problem.lacks_room and started >= self._counted_at:
            self._counted_at = time.monotonic()
            self._refusals += 1
        if not self._may_fall_back or not (is_unknown or (problem.lacks_room and self._refusals >= MOST_REFUSALS)):
            return False
        self._asks_flex = False
        self._notes = (f"{SERVICE_TIER}: {FLEX} refused, sent at the standard tier",)
        return True
