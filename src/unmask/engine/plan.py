"""`unmask run --plan`: what a run will cost, in calls, tokens, money and time. Sends nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec
from msgspec.structs import replace

from unmask.data.dataset import Dataset, is_open
from unmask.engine.baseline import Baseline, check_baseline
from unmask.engine.estimate import MOST_READ, Amount, DoneScenario, DryRun, Estimate, measure_price
from unmask.engine.grow import describe_growth, find_run, fit_data, grow_run
from unmask.engine.prepare import Order, prepare_run
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, count_together
from unmask.judges.base import Tags
from unmask.models.base import Model
from unmask.models.batch_client import find_service
from unmask.models.own import AnyModel
from unmask.models.prices import Price, price_of
from unmask.models.tiers import BATCH, FLEX
from unmask.protocol.probes import find_homes
from unmask.protocol.state import ScenarioState
from unmask.records import Call, Kind, Record, Result, Scenario
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder
from unmask.runs.options import RunSettings

TOKENS_PER_SECOND = 50.0
"""How fast one answer of a provider is assumed to be written, after `SECONDS_TO_BEGIN`."""
SECONDS_TO_BEGIN = 1.0
STEPS = 2
"""How often a scenario waits for the subject, and then for the judge: what it believes, what it says."""
ENOUGH_ANSWERS = 20
"""So many answers in a run folder say better how fast a model is."""
ROUND_HOURS = (7 / 60, 1.0)
"""Half of all batches are over after the first, nine of ten after the second, by what OpenRouter has counted. No
provider promises more than a day."""


class Bound(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One end of an estimate, or its likely value. Money and time are `None` where they are unknown."""

    subject: Amount
    judge: Amount
    numeric_judge: Amount | msgspec.UnsetType = msgspec.UNSET
    """A second judge, which reads figures; absent where there is none."""
    calls: int
    cost_usd: float | None
    seconds: float | None


class Range(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The same calls paid for in another way. `rounds` are those of batches, one after another at most, with the hours
    that they usually take."""

    least: Bound
    likely: Bound
    most: Bound
    rounds: int | msgspec.UnsetType = msgspec.UNSET
    hours: tuple[float, float] | msgspec.UnsetType = msgspec.UNSET


class RunPlan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What a run would still send."""

    scenarios: int
    data: str
    model: str
    judge: str
    numeric_judge: str | msgspec.UnsetType = msgspec.UNSET
    """The judge that reads figures in the place of the other; absent where there is none."""
    least: Bound
    """For a subject without beliefs and short replies; after a pilot the lower end of what that leaves."""
    likely: Bound
    """For one that believes most things, with replies of the usual length; after a pilot their mean."""
    most: Bound
    """For a subject that believes everything and long replies; after a pilot the upper end."""
    connections: int
    pace_measured: bool
    tokens_per_second: float = TOKENS_PER_SECOND
    pilot: int | None = None
    """The scenarios of the run folder that are done, where the estimate is made from what they took."""
    flex: Range | None = None
    """At the tier flex, where their providers have it; `None` where none has."""
    batch: dict[str, Range] = msgspec.field(default_factory=dict)
    """With `--batch judge` and `--batch all`, for those that the providers have."""
    left_out: str | None = None
    """Which scenarios are left out because the judge reads no figures."""
    annotating_saves: int = 0
    """Questions to the judge that `unmask data annotate` would save this run at most."""
    may_reason: bool = False
    """Whether replies may get longer than this: no limit is set, and the subject has not shown whether it reasons."""


class Pace(NamedTuple):
    """How long one call takes: `begin` seconds and then `each` for every token of the answer."""

    endpoint: str
    begin: float
    each: float = 0.0
    measured: bool = False


class Terms(NamedTuple):
    """What a run pays and waits for, by role. A price or a pace that nobody knows is `None`."""

    prices: Mapping[str, Price | None]
    paces: Mapping[str, Pace | None]
    connections: int
    requests_per_minute: int | None = None


# --- a command, and what it finds in its folder -----------------------------------------------------------------


def estimate_run(
    *,
    data: str | Path | Dataset | None,
    model: str | AnyModel | None,
    judge: str | AnyModel | None,
    out: str | Path | None,
    numeric_judge: str | AnyModel | None = None,
    lent: bool = False,
    **settings: Unpack[RunSettings],
) -> tuple[Estimate, Terms]:
    """What `run` with the same arguments would still send, the prices it would pay and how fast answers come. No key
    is needed. With `lent` another run, which need not be there yet, lends the probes."""
    models = {"model": model, "judge": judge, "numeric_judge": numeric_judge}
    folder = None if out is None else Folder(out)
    return estimate_order(prepare_run(folder, data, models, dict(settings), asks_for_key=False), lent=lent)


def estimate_order(order: Order, *, lent: bool = False) -> tuple[Estimate, Terms]:
    folder, wanted, options = order.folder, order.wanted, order.options
    old = None if folder is None else find_run(folder)
    asked = {SUBJECT: order.subject, **order.judge.asked}
    prices = {
        role: Price(0.0, 0.0)
        if isinstance(model, str)
        else price_of(model.name, endpoint=model.endpoint, text=options.of(role).price)
        for role, model in asked.items()
    }
    dry_run = DryRun(
        wanted.settings(),
        count_together(order.subject, options.subject.takes_per_call),
        wanted.developer_prompt,
        numeric=wanted.settings(kind=Kind.NUMERIC) if order.judge.spec.numeric else None,
        lent=lent,
        sharing=frozenset(find_homes(order.dataset.scenarios)),
    )
    pilot: list[DoneScenario] = []
    answered: dict[str, list[Call]] = {}
    if folder is not None and old is not None:
        pilot = list(islice(dry_run.read_pilot(folder, wanted.judge, prices), MOST_READ))
        for role, _, call in folder.journal().calls([wanted.judge]):
            answered.setdefault(role, []).append(call)
    found = dry_run.estimate(_list_states(order, old), pilot=pilot, prices=prices)
    if found.pilot is not None:
        prices = {
            role: measure_price(price, [done.took[role] for done in pilot if role in done.took])
            for role, price in prices.items()
        }
    return found, Terms(
        prices=prices,
        paces={role: _find_pace(model, answered.get(role, ())) for role, model in asked.items()},
        connections=options.max_connections,
        requests_per_minute=options.requests_per_minute,
    )


def _list_states(order: Order, old: Definition | None) -> Iterator[tuple[Scenario, ScenarioState]]:
    """All scenarios as a run would start from them: with what its folder holds and its baseline lends, without
    failures. Raises where the run would be refused."""
    folder, wanted, dataset = order.folder, order.wanted, order.dataset
    states = {scenario.id: (scenario, ScenarioState()) for scenario in dataset.scenarios}
    if folder is None or old is None:
        if wanted.beliefs_from is not None:
            check_baseline(wanted, dataset)
    else:
        fitted = grow_run(folder, old, wanted, dataset).data
        journal = folder.journal()
        stored = {name: (one, journal.state_of(name, wanted.judge)) for name, one in journal.scenarios.items()}
        states = stored if fitted == old.data else states | stored
    baseline = Baseline(wanted)
    for scenario, state in states.values():
        asked, judged = baseline.missing_lines(scenario, state)
        for reply in asked:
            state.add_asked(reply)
        for reading in judged:
            state.add_judged(reading)
        state.forget_errors()
        yield scenario, state


def _find_pace(model: Model | str, answered: Iterable[Call]) -> Pace | None:
    """How fast the model has answered in this run folder; else a usual pace for what answers over HTTP. How fast a
    model on this machine is, nobody knows before it has answered."""
    if isinstance(model, str) or model.endpoint.startswith("scripted"):
        return Pace("this process", 0.0)
    latencies = [line.latency for line in answered if line.latency is not None and line.source is None]
    if len(latencies) >= ENOUGH_ANSWERS:
        return Pace(model.endpoint, sum(latencies) / len(latencies), measured=True)
    if model.endpoint.startswith("http"):
        return Pace(model.endpoint, SECONDS_TO_BEGIN, 1 / TOKENS_PER_SECOND)
    return None


# --- money and time ---------------------------------------------------------------------------------------------


def plan(
    *,
    data: str | Path | Dataset | None = None,
    model: str | AnyModel | None = None,
    judge: str | AnyModel | None = None,
    out: str | Path | None = None,
    numeric_judge: str | AnyModel | None = None,
    **settings: Unpack[RunSettings],
) -> RunPlan:
    """What `run` with the same arguments would cost, in calls, tokens, money and time. Nothing is sent, and no key is
    needed. Of a run folder `out` that exists, only what is missing is counted."""
    models = {"model": model, "judge": judge, "numeric_judge": numeric_judge}
    folder = None if out is None else Folder(out)
    return _plan_order(prepare_run(folder, data, models, dict(settings), asks_for_key=False))


def _plan_order(order: Order) -> RunPlan:
    (found, terms), wanted, numeric = estimate_order(order), order.wanted, order.judge.spec.numeric
    live, prices = price_range(found, terms, terms.prices), terms.prices
    flex = {role: price and (price if price.flex is None else _discount(price, FLEX)) for role, price in prices.items()}
    return RunPlan(
        scenarios=found.scenarios,
        data=wanted.data.name,
        model=wanted.subject.model,
        judge=order.judge.spec.model,
        numeric_judge=numeric.model if numeric else msgspec.UNSET,
        least=live.least,
        likely=live.likely,
        most=live.most,
        connections=terms.connections,
        pace_measured=any(pace is not None and pace.measured for pace in terms.paces.values()),
        pilot=found.pilot,
        flex=None if flex == prices else price_range(found, terms, flex),
        batch=dict(_price_batches(order, found, terms)),
        left_out=order.news or None,
        annotating_saves=_count_saved(order),
        may_reason=order.options.subject.max_tokens is None and found.pilot is None,
    )


def plan_growth(
    *, out: str | Path, data: str | Path | Dataset | None = None, **command: Any
) -> tuple[str, RunPlan] | None:
    """How a command makes the run of its folder larger, as in `from 1 to 3 takes`, and what that costs."""
    folder = Folder(out)
    if not folder.exists or (old := find_run(folder)) is None:
        return None
    models = {name: command.pop(name, None) for name in ("model", "judge", "numeric_judge")}
    order = prepare_run(folder, data, models, command, asks_for_key=False)
    fitted, _ = fit_data(folder, old.data, order.wanted.data, order.dataset)
    growth = describe_growth(old, replace(order.wanted, data=fitted))
    return (growth, _plan_order(order)) if growth else None


def _count_saved(order: Order) -> int:
    """Questions to the judge that a new run would be spared at most, if it were known of all scenarios which side yes
    means."""
    is_new = order.folder is None or not order.folder.exists
    if not is_new or order.wanted.tags is not Tags.RULE or not order.judge.models:
        return 0
    return order.wanted.direct * sum(map(is_open, order.dataset.scenarios))


def price_range(found: Estimate, terms: Terms, prices: Mapping[str, Price | None]) -> Range:
    """Money is that of all roles, and unknown where that of one is."""
    bounds: list[Bound] = []
    for end in (found.least, found.likely, found.most):
        amounts = {role: amount.priced(prices[role]) for role, amount in end.items()}
        seconds = estimate_seconds(amounts, terms)
        calls, costs = sum(amount.calls for amount in amounts.values()), [each.cost_usd for each in amounts.values()]
        cost = None if None in costs else round(sum(cost or 0.0 for cost in costs), 6)
        seconds = None if seconds is None else round(seconds, 1)
        bounds.append(Bound(**amounts, calls=calls, cost_usd=cost, seconds=seconds))
    least, likely, most = bounds
    return Range(least=least, likely=likely, most=most)


def _price_batches(order: Order, found: Estimate, terms: Terms) -> Iterator[tuple[str, Range]]:
    """`--batch judge` and `--batch all`, where the providers have batches and there is something to ask."""
    models = {SUBJECT: order.subject, **order.judge.models}
    for which, chosen in (("judge", {JUDGE, NUMERIC_JUDGE}), ("all", {SUBJECT, JUDGE, NUMERIC_JUDGE})):
        roles = {role for role, amount in found.most.items() if amount.calls and role in chosen & models.keys()}
        if roles - {SUBJECT} and all(find_service(models[role].name, models[role].endpoint) for role in roles):
            prices = {
                role: _discount(price, BATCH) if price and role in roles else price
                for role, price in terms.prices.items()
            }
            low, high = (round(hours * found.rounds[which], 2) for hours in ROUND_HOURS)
            yield which, replace(price_range(found, terms, prices), rounds=found.rounds[which], hours=(low, high))


def _discount(price: Price, tier: str) -> Price | None:
    """The price of the same tokens at a tier; unknown where nobody knows the discount."""
    part = 1.0 if price.free else {FLEX: price.flex, BATCH: price.batch}[tier]
    return None if part is None else replace(price, input=price.input * part, output=price.output * part)


def estimate_seconds(amounts: Mapping[str, Amount], terms: Terms) -> float | None:
    """How long the calls take: those to one endpoint share its connections and its requests a minute, those to two
    endpoints run side by side, and no scenario is faster than its own steps. `None` where a pace is unknown."""
    totals, calls, steps = defaultdict[str, float](float), Counter[str](), 0.0
    for role, amount in amounts.items():
        if not amount.calls:
            continue
        pace = terms.paces.get(role)
        if pace is None:
            return None
        seconds = amount.calls * pace.begin + amount.output * pace.each
        totals[pace.endpoint] += seconds
        calls[pace.endpoint] += amount.calls
        steps += STEPS * seconds / amount.calls
    waits = [seconds / terms.connections for seconds in totals.values()]
    if terms.requests_per_minute:
        waits += [count * 60 / terms.requests_per_minute for count in calls.values()]
    return max(waits, default=0.0) + steps
