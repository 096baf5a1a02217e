"""What a run will cost, by running the planner itself against imagined answers. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import msgspec

from unmask.data.dataset import Dataset, is_open
from unmask.engine.baseline import Baseline, check_baseline
from unmask.engine.grow import find_run, fit_data
from unmask.engine.pilot import (
    FEWEST,
    MOST_READ,
    Amount,
    DoneScenario,
    Ends,
    LeftGroup,
    Part,
    PilotRange,
    forecast,
    group_of,
    part_of,
    sum_roles,
)
from unmask.engine.prepare import Order, prepare_run
from unmask.engine.simulation import LONG, SHORT, Imagination, LeftWork
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Workload, count_together
from unmask.judges.base import PANEL, Tags
from unmask.models.base import Model
from unmask.models.keys import Role
from unmask.models.own import AnyModel, name_of
from unmask.models.prices import Price, price_of
from unmask.models.reasoning import MoreRoom, propose_room
from unmask.protocol.plan import plan
from unmask.protocol.probes import find_homes
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.records import Asked, Call, Judged, Kind, Letter, Preset, Record, Scenario
from unmask.runs.commands import run_command
from unmask.runs.definition import Definition, JudgeSpec, SubjectSpec, check_same_run
from unmask.runs.folder import Folder, Journal, make_state
from unmask.runs.options import DeveloperPrompt, RunSettings
from unmask.runs.run import Run
from unmask.scoring.score import Score

TOKENS_PER_SECOND = 50.0
"""How fast one answer of a provider is assumed to be written, after `SECONDS_TO_BEGIN`."""
SECONDS_TO_BEGIN = 1.0
STEPS = 2
"""How often a scenario waits for the subject, and then for the judge: what it believes, what it says."""
ENOUGH_ANSWERS = 20
"""So many answers in a run folder say better how fast a model is."""
LOOKED_AT = 12
"""Scenarios of a workload that say how many calls one takes."""


class Estimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`least` is a subject without any belief, `most` one that believes everything and never repeats itself; after a
    pilot both are ends of the range that it leaves."""

    scenarios: int
    least: dict[str, Amount]
    most: dict[str, Amount]
    batches: dict[str, BatchEstimate] = msgspec.field(default_factory=dict)
    """The same with the `judge` or with `all` in batches."""


class BatchEstimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A run in batches: the rounds of its longest scenario, and what is sent. With `all` that may be more than live:
    self-reports are asked for before it is known which of them count."""

    rounds: int
    least: dict[str, Amount]
    most: dict[str, Amount]


class Terms(Record, frozen=True, kw_only=True):
    """What a run pays and waits for, by role. A price or a pace that nobody knows is `None`."""

    names: dict[str, str]
    prices: dict[str, Price | None]
    paces: dict[str, Pace | None]
    connections: int
    requests_per_minute: int | None = None
    again: float = 0.0
    """The part of all requests that may be sent a second time."""
    pilot: PilotMeasure | None = None
    left_out: str = ""
    """A line about scenarios that no judge of the run reads."""
    annotating_saves: int = 0
    """Questions to the judge that a new run would be spared at most, were all sides of yes known."""


class PilotMeasure(Record, frozen=True, omit_defaults=False):
    """The number of done scenarios that an estimate is made from, and the share of the simulated bills that lie in its
    range."""

    scenarios: int
    share: float


class Pace(Record, frozen=True):
    """How long one call takes: `begin` seconds and then `each` for every token of the answer."""

    endpoint: str
    begin: float
    each: float = 0.0
    measured: bool = False

    def seconds(self, amount: Amount) -> float:
        """Of all calls, one after another."""
        return amount.calls * self.begin + amount.output * self.each


def estimate_scenarios(
    scenarios: Iterable[tuple[Scenario, ScenarioState]],
    settings: Settings,
    *,
    size: int = 1,
    prompt: DeveloperPrompt | None = None,
    numeric: Settings | None = None,
) -> Estimate:
    """What is still to be sent, given what the journal holds about each scenario, at the usual lengths. `size` is how
    many takes fit into one request, `prompt` what the pressured ones begin with, `numeric` how a second judge reads
    figures."""
    imagination = Imagination(settings, size, prompt, numeric=numeric)
    left, count = LeftWork(imagination), 0
    for scenario, state in scenarios:
        left.add(scenario, state)
        count += 1
    return _as_estimate(count, _sum_groups(left.groups), imagination.roles)


def _sum_groups(groups: Mapping[str, LeftGroup]) -> Ends:
    total = Ends({}, {})
    for group in groups.values():
        total = total.plus(group.ends)
    return total


def _as_estimate(count: int, ends: Ends, roles: Sequence[str]) -> Estimate:
    least, most = (sum_roles(amounts, roles) for amounts in ends)
    return Estimate(scenarios=count, least=least, most=most)


def expect_calls(workload: Workload) -> float:
    """Calls that a scenario of a workload takes on average, from a few of them: the middle between no beliefs and all.
    0 where nobody is asked."""
    sample = workload.scenarios[:: -(-len(workload.scenarios) // LOOKED_AT) or 1]
    subject = workload.models.get(SUBJECT)
    size = count_together(subject, workload.takes_per_call)
    states = ((scenario, ScenarioState()) for scenario in sample)
    bounds = estimate_scenarios(states, workload.settings, size=size, numeric=workload.numeric_settings)
    calls = [amount.calls for bound in (bounds.least, bounds.most) for amount in bound.values()]
    return sum(calls) / 2 / len(sample) if sample else 0.0


def to_json(estimate: Estimate, terms: Terms) -> dict[str, object]:
    """The estimate with money where prices are known, and with time where the pace is."""
    result: dict[str, object] = {"scenarios": estimate.scenarios, **terms.names}
    most = {role: amount.repeated(terms.again) for role, amount in estimate.most.items()}
    longest = 0.0  # a subject that believes is asked more, and is never done sooner: of few calls the mean is rough
    for name, bound in (("least", estimate.least), ("most", most)):
        seconds = estimate_seconds(bound, terms)
        longest = max(longest, seconds or 0.0)
        result[name] = price_bound(bound, terms.prices) | {"seconds": None if seconds is None else round(longest, 1)}
    if any(price is not None and price.flex is not None for price in terms.prices.values()):
        bounds = (price_bound(bound, terms.prices, flex=True) for bound in (estimate.least, most))
        result["flex"] = dict(zip(("least", "most"), bounds, strict=True))
    if terms.pilot is not None:
        result["pilot"] = msgspec.to_builtins(terms.pilot)
    if terms.left_out:
        result["left_out"] = terms.left_out
    if terms.annotating_saves:
        result["annotating_saves"] = round(terms.annotating_saves * (1 + terms.again))
    measured = [pace is not None and pace.measured for pace in terms.paces.values()]
    return result | {
        "connections": terms.connections,
        "pace_measured": any(measured),
        "tokens_per_second": TOKENS_PER_SECOND,
    }


def price_bound(bound: dict[str, Amount], prices: dict[str, Price | None], *, flex: bool = False) -> dict[str, Any]:
    """Calls, tokens and money by role and in all. Money is `None` where a price is not known."""
    costs = {role: amount.cost(prices.get(role), flex=flex) if amount.calls else 0.0 for role, amount in bound.items()}
    priced = [cost for cost in costs.values() if cost is not None]
    return {
        **{
            role: msgspec.to_builtins(amount) | {"cost_usd": _round_cost(costs[role])} for role, amount in bound.items()
        },
        "calls": sum(amount.calls for amount in bound.values()),
        "cost_usd": _round_cost(sum(priced)) if len(priced) == len(costs) else None,
    }


def _round_cost(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)


def estimate_seconds(bound: dict[str, Amount], terms: Terms) -> float | None:
    """How long the calls take: those to one endpoint share its connections and its requests a minute, those to two
    endpoints run side by side, and no scenario is faster than its own steps. `None` where a pace is unknown."""
    totals: dict[str, float] = {}
    calls: dict[str, int] = {}
    steps = 0.0
    for role, amount in bound.items():
        if not amount.calls:
            continue
        pace = terms.paces.get(role)
        if pace is None:
            return None
        seconds = pace.seconds(amount)
        totals[pace.endpoint] = totals.get(pace.endpoint, 0.0) + seconds
        calls[pace.endpoint] = calls.get(pace.endpoint, 0) + amount.calls
        steps += STEPS * seconds / amount.calls
    waits = [seconds / terms.connections for seconds in totals.values()]
    if terms.requests_per_minute:
        waits += [count * 60 / terms.requests_per_minute for count in calls.values()]
    return max(waits, default=0.0) + steps


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
    order = prepare_run(folder, data, models, dict(settings), asks_for_key=False)
    return estimate_order(order, lent=lent)


def estimate_order(order: Order, *, lent: bool = False) -> tuple[Estimate, Terms]:
    """What an order would still send, the prices it would pay and how fast answers come."""
    folder, wanted, dataset, options = order.folder, order.wanted, order.dataset, order.options
    subject, opened = order.subject, order.judge
    old = None if folder is None else find_run(folder, wanted)
    size = count_together(subject, options.subject.takes_per_call)
    by_partner = wanted.settings(kind=Kind.NUMERIC) if opened.spec.numeric else None
    sharing = frozenset(find_homes(dataset.scenarios))
    imagination = Imagination(
        wanted.settings(), size, wanted.developer_prompt, numeric=by_partner, lent=lent, sharing=sharing
    )
    pilot: list[DoneScenario] = []
    if folder is not None and old is not None:
        states = _continued_states(folder, old, wanted, dataset)
        pilot = list(islice(_read_pilot(folder, wanted.judge, imagination), MOST_READ))
        takes = [len(line.takes) for done in pilot for _, line in done.lines if isinstance(line, Asked)]
        imagination = imagination._replace(size=min(size, max(takes, default=size)))
    else:
        check_baseline(wanted, dataset)
        states = ((scenario, ScenarioState()) for scenario in dataset.scenarios)
    asked: dict[str, Model | str] = {SUBJECT: subject, JUDGE: opened.reader}
    asked |= {} if opened.numeric is None else {NUMERIC_JUDGE: opened.numeric}
    prices = {role: _find_price(model, options.of(role).price) for role, model in asked.items()}
    if len(pilot) < FEWEST:
        imagination = imagination._replace(low=SHORT, high=LONG)
    starting = _starting_states(wanted, states)
    result, measured = _imagine_run(starting, imagination, pilot, prices)
    saved = 0
    if old is None and wanted.settings().tags is Tags.RULE and any(map(is_open, dataset.scenarios)):
        annotated = ((scenario, ScenarioState()) for scenario in assume_sides(dataset.scenarios))
        spared, _ = _imagine_run(_starting_states(wanted, annotated), imagination, [], prices)
        saved = result.most[JUDGE].calls - spared.most[JUDGE].calls
    answered: dict[str, list[Call]] = {}
    if folder is not None and old is not None:
        for role, _, line in Journal(folder, wanted.judges).calls([wanted.judge]):
            answered.setdefault(role, []).append(line)
    terms = Terms(
        names={"data": dataset.name} | {_TITLES.get(role, role): name_of(model) for role, model in asked.items()},
        prices=prices if measured is None else measured.prices,
        paces={role: _find_pace(model, answered.get(role, ())) for role, model in asked.items()},
        connections=options.max_connections,
        requests_per_minute=options.requests_per_minute,
        again=LONG.again if measured is None else 0.0,
        pilot=None if measured is None else PilotMeasure(len(pilot), round(measured.share, 3)),
        left_out=order.news,
        annotating_saves=saved,
    )
    return result, terms


_TITLES = {SUBJECT: "model"}


def assume_sides(scenarios: Iterable[Scenario]) -> Iterable[Scenario]:
    """The scenarios as they are once somebody has said which side *yes* means."""
    return (msgspec.structs.replace(one, yes_means=Letter.A) if is_open(one) else one for one in scenarios)


def _continued_states(
    folder: Folder, old: Definition, wanted: Definition, dataset: Dataset
) -> Iterable[tuple[Scenario, ScenarioState]]:
    """What a run folder holds, with the scenarios that the command adds. Raises where it would be refused."""
    again = partial(run_command, path=folder.path)
    fitted, other_data = fit_data(folder, old.data, wanted.data, dataset)
    check_same_run(old, wanted, again=again, other_data=other_data)
    stored, states = folder.scenarios(), folder.states(wanted.judge)
    added = () if fitted == old.data else [scenario for scenario in dataset.scenarios if scenario.id not in states]
    return [*((scenario, states[scenario.id]) for scenario in stored), *((each, ScenarioState()) for each in added)]


def _imagine_run(
    starting: Iterable[tuple[Scenario, ScenarioState]],
    imagination: Imagination,
    pilot: Sequence[DoneScenario],
    prices: Mapping[str, Price | None],
) -> tuple[Estimate, PilotRange | None]:
    """The estimate with the rounds of both kinds of batches, and the range that a pilot leaves."""
    left = {which: LeftWork(imagination._replace(all_in_batches=which == "all")) for which in ("judge", "all")}
    count = 0
    for scenario, state in starting:
        count += 1
        for work in left.values():
            work.add(scenario, state)
    groups = left["judge"].groups
    measured = forecast(pilot, groups, prices)
    ends = _sum_groups(groups) if measured is None else measured.ends
    estimate = _as_estimate(count, ends, imagination.roles)
    batches = {
        which: BatchEstimate(rounds=work.rounds, least=estimate.least, most=estimate.most)
        for which, work in left.items()
    }
    return msgspec.structs.replace(estimate, batches=batches), measured


def _read_pilot(folder: Folder, judge: str | None, imagination: Imagination) -> Iterator[DoneScenario]:
    """Scenarios of the folder that need nothing more, with the lines that were paid for and what the planner imagines
    from those that were not."""
    journal = Journal(folder, folder.definition().judges)
    for scenario in journal.scenarios.values():
        state = journal.state_of(scenario.id, judge)
        reader, settings = imagination.reader_of(scenario)
        if not state.replies or plan(scenario, state, settings):
            continue
        asked, judged = journal.lines_of(scenario.id, judge)
        copied = make_state(
            (line for line in asked if line.source is not None), (line for line in judged if line.source is not None)
        )
        lines: list[tuple[Part, Asked | Judged]] = [(part_of(SUBJECT, line.slot), line) for line in asked]
        lines += [(part_of(reader, line.slot, line.method), line) for line in judged]
        paid = tuple((part, line) for part, line in lines if line.source is None and line.error is None)
        if paid:
            ends, _ = imagination.imagine(scenario, copied)
            yield DoneScenario(group_of(scenario), ends, paid)


def price_missing(run: Run, score: Score, *, judge: str | None = None) -> Score:
    """The score with what completes its undecided scenarios, in calls and money: an upper bound, as if no two takes
    shared a request. Of a panel it is the first judge that lacks something, as in the command."""
    if score.missing is None:
        return score
    definition, undecided = run.definition, frozenset(score.undecided)
    judge_files = (run.judge_file(judge) or "").removeprefix(PANEL).split(",")
    for file in judge_files:
        settings = definition.settings(file, preset=Preset(score.preset))
        settings = msgspec.structs.replace(settings, ask=score.missing.subject > 0)
        states = ((scenario, state) for scenario, state in run._states(file) if scenario.id in undecided)
        numeric = None
        asked_of: dict[str, SubjectSpec | JudgeSpec] = {SUBJECT: definition.subject}
        asked_of |= dict(
            zip(
                (JUDGE, NUMERIC_JUDGE),
                definition.judges[file].models if file in definition.judges else (),
                strict=False,
            )
        )
        if NUMERIC_JUDGE in asked_of:
            numeric = definition.settings(file, preset=Preset(score.preset), kind=Kind.NUMERIC)
            numeric = msgspec.structs.replace(numeric, ask=settings.ask)
        most = estimate_scenarios(states, settings, prompt=definition.developer_prompt, numeric=numeric).most
        calls = sum(amount.calls for amount in most.values())
        if calls:
            prices = {
                role: price_of(spec.model, endpoint=spec.endpoint or "", text=spec.price)
                for role, spec in asked_of.items()
            }
            cost = price_bound(most, prices)["cost_usd"]
            return msgspec.structs.replace(
                score, missing=msgspec.structs.replace(score.missing, calls=calls, cost_usd=cost)
            )
    return score


def propose_more_room(order: Order) -> tuple[MoreRoom, ...]:
    """More tokens for subject and judges that reason: by their names, and by what the run folder holds already."""
    calls: dict[str, list[Call]] = {}
    if order.folder is not None and order.folder.exists:
        definition = order.folder.definition()
        for role, _, line in Journal(order.folder, definition.judges).calls([definition.judge]):
            calls.setdefault(role, []).append(line)
    asked: dict[Role, Model | str | None] = {
        SUBJECT: order.subject,
        JUDGE: order.judge.reader,
        NUMERIC_JUDGE: order.judge.numeric,
    }
    names = {role: name_of(model) for role, model in asked.items() if model is not None}
    proposals = (
        propose_room(role, name, order.options.of(role).max_tokens, calls.get(role, ()))
        for role, name in names.items()
        if role == SUBJECT or "/" in name
    )
    return tuple(proposal for proposal in proposals if proposal is not None)


def _starting_states(
    wanted: Definition, states: Iterable[tuple[Scenario, ScenarioState]]
) -> Iterator[tuple[Scenario, ScenarioState]]:
    """The states as a run would start from them: with what its baseline lends, without failures."""
    baseline = Baseline(wanted)
    for scenario, state in states:
        asked, judged = baseline.missing_lines(scenario, state)
        for reply in asked:
            state.add_asked(reply)
        for reading in judged:
            state.add_judged(reading)
        state.forget_errors()
        yield scenario, state


def _find_price(model: Model | str, text: str | None) -> Price | None:
    if isinstance(model, str):
        return Price.parse(text) if text else Price(0.0, 0.0)
    return price_of(model.name, endpoint=model.endpoint, text=text)


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
