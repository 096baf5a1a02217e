"""What a run in batches would cost and how long it would take, from the estimate of a live one."""

from __future__ import annotations

from msgspec.structs import replace

from unmask.engine.estimate import Estimate, Terms, price_bound
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT
from unmask.models.batch_client import find_service
from unmask.models.prices import Price

ROUND_HOURS = (7 / 60, 1.0)
"""Half of all batches are over after the first, nine of ten after the second, by what OpenRouter has counted. No
provider promises more than a day."""


def plan_batches(estimate: Estimate, terms: Terms) -> dict[str, object]:
    """`--batch judge` and `--batch all`, where the providers have batches and there is something to ask."""
    names = {SUBJECT: terms.names["model"]} | {role: terms.names.get(role, "") for role in (JUDGE, NUMERIC_JUDGE)}
    needed = {role for role, bound in estimate.most.items() if bound.calls}
    plans: dict[str, object] = {}
    for which, chosen in (("judge", {JUDGE, NUMERIC_JUDGE}), ("all", {SUBJECT, JUDGE, NUMERIC_JUDGE})):
        roles = chosen & needed
        batches = estimate.batches.get(which)
        if batches is None or not roles - {SUBJECT} or not all(find_service(names[role]) for role in roles):
            continue
        prices = {role: _discount(price) if role in roles else price for role, price in terms.prices.items()}
        plans[which] = {
            "rounds": batches.rounds,
            "hours": [round(hours * batches.rounds, 2) for hours in ROUND_HOURS],
            "least": price_bound(batches.least, prices),
            "most": price_bound({role: amount.repeated(terms.again) for role, amount in batches.most.items()}, prices),
        }
    return plans


def _discount(price: Price | None) -> Price | None:
    """The price of the same tokens in a batch; unknown where nobody knows the discount."""
    if price is None or price.free:
        return price
    if price.batch is None:
        return None
    return replace(price, input=price.input * price.batch, output=price.output * price.batch)
