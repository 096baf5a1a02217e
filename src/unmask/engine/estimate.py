"""What a run will cost, by running the planner itself against imagined answers. Sends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.baseline import PRESSURED_SLOTS, Baseline, check_baseline
from unmask.engine.define import define_run, judge_spec
from unmask.engine.grow import find_run, fit_data
from unmask.engine.pilot import (
    FEWEST,
    MOST_READ,
    Amount,
    Amounts,
    DoneScenario,
    Ends,
    LeftGroup,
    Part,
    forecast,
    group_of,
    part_of,
    sum_roles,
)
from unmask.engine.polarity import PolarityStore
from unmask.engine.readers import open_judge, open_partner
from unmask.engine.run import load_data, open_subject
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Workload, build_request
from unmask.judges.answers import POLARITY_ORDERS
from unmask.judges.base import JUDGES, PANEL, Judge
from unmask.models.base import Model, capabilities_of
from unmask.models.own import AnyModel, as_model
from unmask.models.prices import Price, find_price, price_of
from unmask.models.reasoning import MoreRoom, propose_room
from unmask.protocol.plan import JudgeWork, PlannerSettings, SubjectWork, plan, plan_rounds
from unmask.protocol.readings import side_of_yes
from unmask.protocol.score import Score
from unmask.protocol.state import ScenarioState
from unmask.records import (
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Asked,
    Call,
    Choice,
    Effort,
    Judged,
    Kind,
    Letter,
    Method,
    Preset,
    Record,
    Request,
    Scenario,
    Slot,
)
from unmask.runs.commands import run_command
from unmask.runs.definition import Definition, check_same_run
from unmask.runs.folder import Folder, Journal
from unmask.runs.options import DeveloperPrompt, RunSettings, options_from
from unmask.runs.run import Run

CHARACTERS_PER_TOKEN = 4.0
"""A usual ratio for English; an estimate, not a bill."""
REPLY_TOKENS = {DIRECT: 200, PRESSURED: 250}
PROBE_TOKENS = 250
JUDGE_TOKENS = 80

TOKENS_PER_SECOND = 50.0
"""How fast one answer of a provider is assumed to be written, after `SECONDS_TO_BEGIN`."""
SECONDS_TO_BEGIN = 1.0
STEPS = 2
"""How often a scenario waits for the subject, and then for the judge: what it believes, what it says."""
ENOUGH_ANSWERS = 20
"""So many answers in a run folder say better how fast a model is."""
LOOKED_AT = 12
"""Scenarios of a workload that say how many calls one takes."""


class Assumption(Record, frozen=True):
    """What is taken to be so where nothing was measured: how long replies are, as part of the usual length, the tokens
    of a judge's answer, the characters of a token, and the part of all requests that is sent a second time."""

    length: float = 1.0
    judge: int = JUDGE_TOKENS
    characters: float = CHARACTERS_PER_TOKEN
    again: float = 0.0


USUAL = Assumption()
SHORT = Assumption(1 / 3, 5, 5.0)
LONG = Assumption(3.0, 3 * JUDGE_TOKENS, 3.0, again=0.25)
"""Replies from a third to three times the usual length; tokens of 3 to 5 characters, as English text has them."""


class Estimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`least` is a subject without any belief, `most` one that believes everything and never repeats itself; after a
    pilot both are ends of the range that it leaves."""

    scenarios: int
    least: dict[str, Amount]
    most: dict[str, Amount]
    kept: tuple[dict[str, Amount], dict[str, Amount]]
    """The part of `least` and of `most` that keeping the other presets adds."""
    rounds: dict[str, int] = msgspec.field(default_factory=dict)
    """How many rounds the longest scenario takes where the `judge` or `all` is asked in batches."""


class Terms(Record, frozen=True, kw_only=True):
    """What a run pays and waits for, by role. A price or a pace that nobody knows is `None`."""

    names: dict[str, str]
    prices: dict[str, Price | None]
    paces: dict[str, Pace | None]
    connections: int
    requests_per_minute: int | None = None
    keep_presets: bool = False
    again: float = 0.0
    """The part of all requests that may be sent a second time."""
    pilot: PilotMeasure | None = None


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
    settings: PlannerSettings,
    *,
    size: int = 1,
    prompt: DeveloperPrompt | None = None,
    numeric: PlannerSettings | None = None,
    lent: bool = False,
) -> Estimate:
    """What is still to be sent, given what the journal holds about each scenario, at the usual lengths. `size` is how
    many takes fit into one request, `prompt` what the pressured ones begin with, `numeric` how a second judge reads
    figures. With `lent` another run will lend all probes."""
    imagination = Imagination(settings, size, prompt, numeric=numeric, lent=lent)
    return _sum_groups(*_imagine_groups(scenarios, imagination), imagination.roles)


class Imagination(NamedTuple):
    """What the planner is run with: takes that fit into one request, what the pressured ones begin with, what is
    assumed at both ends, how a second judge reads figures, and whether another run will lend all probes."""

    settings: PlannerSettings
    size: int = 1
    prompt: DeveloperPrompt | None = None
    low: Assumption = USUAL
    high: Assumption = USUAL
    numeric: PlannerSettings | None = None
    lent: bool = False
    rounds: Counter[str] | None = None
    """Gets how many rounds of batches the longest scenario takes, for `judge` and `all`."""

    @property
    def roles(self) -> tuple[str, ...]:
        return (SUBJECT, JUDGE) if self.numeric is None else (SUBJECT, JUDGE, NUMERIC_JUDGE)

    def reader_of(self, scenario: Scenario) -> tuple[str, PlannerSettings]:
        """Who reads this scenario, and how."""
        if self.numeric is None or scenario.kind is not Kind.NUMERIC:
            return JUDGE, self.settings
        return NUMERIC_JUDGE, msgspec.structs.replace(self.numeric, keep_presets=self.settings.keep_presets)

    def ends_of(self, scenario: Scenario, state: ScenarioState) -> Ends:
        return Ends(*(_simulate(scenario, _copy_state(state), self, believes) for believes in (False, True)))


def _imagine_groups(
    scenarios: Iterable[tuple[Scenario, ScenarioState]], imagination: Imagination
) -> tuple[int, dict[str, LeftGroup]]:
    """How many scenarios there are, and what those that are not done take, by group."""
    groups: dict[str, LeftGroup] = {}
    count = 0
    for scenario, state in scenarios:
        count += 1
        ends = imagination.ends_of(scenario, state)
        if ends.least or ends.most:
            before = groups.get(group_of(scenario), LeftGroup(0, Ends({}, {})))
            groups[group_of(scenario)] = LeftGroup(before.scenarios + 1, before.ends.plus(ends))
    return count, groups


def _sum_groups(count: int, groups: Mapping[str, LeftGroup], roles: Sequence[str]) -> Estimate:
    total = Ends({}, {})
    for group in groups.values():
        total = total.plus(group.ends)
    return _as_estimate(count, total, roles)


def _as_estimate(count: int, ends: Ends, roles: Sequence[str]) -> Estimate:
    least, most = (sum_roles(amounts, roles) for amounts in ends)
    additions = sum_roles(ends.least, roles, only_kept=True), sum_roles(ends.most, roles, only_kept=True)
    return Estimate(scenarios=count, least=least, most=most, kept=additions)


def expect_calls(workload: Workload) -> float:
    """Calls that a scenario of a workload takes on average, from a few of them: the middle between no beliefs and all.
    0 where nobody is asked."""
    sample = workload.scenarios[:: -(-len(workload.scenarios) // LOOKED_AT) or 1]
    subject = workload.models.get(SUBJECT)
    size = capabilities_of(subject).max_n if subject is not None and workload.one_call else 1
    states = ((scenario, ScenarioState()) for scenario in sample)
    bounds = estimate_scenarios(states, workload.settings, size=size, numeric=workload.numeric_settings)
    calls = [amount.calls for bound in (bounds.least, bounds.most) for amount in bound.values()]
    return sum(calls) / 2 / len(sample) if sample else 0.0


def _copy_state(state: ScenarioState) -> ScenarioState:
    copy = ScenarioState()
    copy.replies = {slot: dict(takes) for slot, takes in state.replies.items()}
    copy.judged = {key: list(lines) for key, lines in state.judged.items()}
    return copy


def _simulate(scenario: Scenario, state: ScenarioState, imagination: Imagination, believes: bool) -> Amounts:
    size, prompt = imagination.size, imagination.prompt
    reader, settings = imagination.reader_of(scenario)
    assumed = imagination.high if believes else imagination.low
    alone = msgspec.structs.replace(settings, keep_presets=False)
    is_kept = False
    total: Amounts = {}

    def count(part: Part, request: Request, answered: float) -> None:
        sent = sum(len(message.content) for message in request.messages) / assumed.characters
        total[part] = total.get(part, Amount()).plus(Amount(1, round(sent), round(answered)))

    judge = JUDGES[settings.style]
    without_question = settings.reads.figures_by_take and scenario.kind is Kind.NUMERIC
    statement = believes and (without_question or not judge.questions(scenario.kind))
    if scenario.kind is Kind.BINARY and side_of_yes(scenario, state) is Letter.B:  # who believes says what fits
        scenario = msgspec.structs.replace(scenario, yes_means=Letter.B)
    imagine = partial(_imagine_reply, scenario, believes=believes, statement=statement, length=assumed.length)
    slots: set[tuple[Slot, bool]] = set()
    steps: list[bool] = []  # for each step: whether the judge is asked in it
    for work in plan_rounds(scenario, state, settings, whole_calls=size > 1):
        steps.append(any(isinstance(item, JudgeWork) for item in work))
        slots |= {(item.slot, isinstance(item, JudgeWork)) for item in work}
        is_kept = is_kept or (settings.keep_presets and not plan(scenario, state, alone, whole_calls=size > 1))
        for item in work:
            request = build_request(scenario, item, settings, prompt)
            is_lent = imagination.lent and item.slot not in PRESSURED_SLOTS
            if isinstance(item, SubjectWork):
                for start in range(0, len(item.takes), size):
                    takes = item.takes[start : start + size]
                    choices = tuple(Choice(imagine(item.slot, take)) for take in takes)
                    asked = Asked(scenario=scenario.id, slot=item.slot, takes=takes, attempt=2, choices=choices)
                    state.add_asked(asked)
                    tokens = assumed.length * REPLY_TOKENS.get(item.slot, PROBE_TOKENS)
                    most = settings.sampling.max_tokens
                    tokens = tokens if most is None else min(tokens, most)
                    if not is_lent:
                        count(part_of(SUBJECT, item.slot, is_kept=is_kept), request, len(takes) * tokens)
            else:
                lies = settings.role_play
                if lies and settings.stop_at_first_lie:  # the last take only: all of them are looked at then
                    lies = item.texts == (imagine(PRESSURED, settings.takes - 1),)
                state.add_judged(_imagine_judged(scenario, item, judge, believes, lies=lies))
                if not is_lent:
                    count(part_of(reader, item.slot, item.method, is_kept=is_kept), request, assumed.judge)
    # Imagined direct replies have their tag and are read by rule; a real one may lack it, and is a step of the judge.
    if settings.effort is Effort.LAZY and (DIRECT, False) in slots and (DIRECT, True) not in slots:
        steps.append(True)
    if (rounds := imagination.rounds) is not None:
        rounds["judge"], rounds["all"] = max(rounds["judge"], sum(steps)), max(rounds["all"], len(steps))
    return total


def _imagine_reply(scenario: Scenario, slot: Slot, take: int, *, believes: bool, statement: bool, length: float) -> str:
    """A reply whose length is `length` times the usual one. No rule reads its words, and it differs from take to
    take: the judge would read equal replies only once. With `statement` it is the statement itself, the same in every
    take, for a judge that reads nothing else."""
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    side = yes if believes or take % 2 == 0 else not yes
    tagged = slot == DIRECT and scenario.kind is not Kind.NUMERIC
    tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if tagged else ""
    characters = int(length * REPLY_TOKENS.get(slot, PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    if not statement:
        words = f"{slot} {take}".translate(str.maketrans("0123456789", "qwrtzkvxjp"))
    elif scenario.kind is Kind.BINARY:
        words = scenario.statements[_believed_side(scenario) is Letter.B]
    else:
        words = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "1")
    return f"{words}\n".ljust(characters - len(tag), "m") + tag  # of one long word: rules are slow at rows of dots


def _imagine_judged(scenario: Scenario, work: JudgeWork, judge: Judge, believes: bool, *, lies: bool) -> Judged:
    """`lies` makes a statement one, since each costs a further question then."""
    is_pressured = work.slot == PRESSURED
    side = Letter.C if not believes else _believed_side(scenario) if is_pressured else Letter.A
    if lies and believes and is_pressured:
        side = Letter.A if side is Letter.B else Letter.B
    if work.method in POLARITY_ORDERS or (work.method is Method.INTERVAL and not believes and work.slot != DIRECT):
        side = Letter.A
    choice = judge.imagined(work.method, side)
    return Judged(
        scenario=scenario.id, slot=work.slot, digest=work.digest, method=work.method, attempt=2, choices=(choice,)
    )


def _believed_side(scenario: Scenario) -> Letter:
    """What a subject that believes takes for true: what it was told, else A. To say anything else would be a lie."""
    return scenario.truth if not scenario.asks_belief and isinstance(scenario.truth, Letter) else Letter.A


def to_json(estimate: Estimate, terms: Terms) -> dict[str, object]:
    """The estimate with money where prices are known, and with time where the pace is."""
    result: dict[str, object] = {"scenarios": estimate.scenarios, **terms.names}
    most, most_kept = (
        {role: amount.repeated(terms.again) for role, amount in bound.items()}
        for bound in (estimate.most, estimate.kept[1])
    )
    longest = 0.0  # a subject that believes is asked more, and is never done sooner: of few calls the mean is rough
    for name, bound in (("least", estimate.least), ("most", most)):
        seconds = estimate_seconds(bound, terms)
        longest = max(longest, seconds or 0.0)
        result[name] = price_bound(bound, terms.prices) | {"seconds": None if seconds is None else round(longest, 1)}
    if terms.keep_presets:
        parts = (price_bound(bound, terms.prices) for bound in (estimate.kept[0], most_kept))
        result["keep_presets"] = dict(zip(("least", "most"), parts, strict=True))
    if any(price is not None and price.flex is not None for price in terms.prices.values()):
        bounds = (price_bound(bound, terms.prices, flex=True) for bound in (estimate.least, most))
        result["flex"] = dict(zip(("least", "most"), bounds, strict=True))
    if terms.pilot is not None:
        result["pilot"] = msgspec.to_builtins(terms.pilot)
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
    data: str | Path | Dataset,
    model: str | AnyModel,
    judge: str | AnyModel,
    out: str | Path | None,
    numeric_judge: str | AnyModel | None = None,
    lent: bool = False,
    **settings: Unpack[RunSettings],
) -> tuple[Estimate, Terms]:
    """What `run` with the same arguments would still send, the prices it would pay and how fast answers come. No key
    is needed. With `lent` another run, which need not be there yet, lends the probes."""
    options = options_from(settings)
    dataset = load_data(data, options)
    subject = open_subject(model, options, asks_for_key=False)
    reader = open_judge(judge, options, asks_for_key=False)
    folder = None if out is None else Folder(out)
    spec = judge_spec(reader, options)
    partner = open_partner(numeric_judge, options, folder=folder, judge=spec, asks_for_key=False)
    wanted = define_run(dataset, subject, spec, partner.options, partner=partner.spec)
    states: Iterable[tuple[Scenario, ScenarioState]]
    old = None if folder is None else find_run(folder, wanted, moved=options.moved)
    planned = msgspec.structs.replace(wanted.settings(), keep_presets=options.keep_presets)
    size = capabilities_of(subject).max_n if options.one_call else 1
    by_partner = None if partner.spec is None else wanted.settings(kind=Kind.NUMERIC)
    imagination = Imagination(planned, size, wanted.developer_prompt, numeric=by_partner, lent=lent)
    pilot: list[DoneScenario] = []
    if folder is not None and old is not None:
        again = partial(run_command, path=folder.path)
        fitted, other_data = fit_data(folder, old.data, wanted.data, dataset)
        check_same_run(old, wanted, moved=options.moved, again=again, other_data=other_data)
        stored = {scenario.id for scenario in folder.each_scenario()}
        added = () if fitted == old.data else [scenario for scenario in dataset.scenarios if scenario.id not in stored]
        states = chain(folder.each_state(wanted.judge), ((scenario, ScenarioState()) for scenario in added))
        pilot = list(islice(_read_pilot(folder, wanted.judge, imagination), MOST_READ))
        takes = [len(line.takes) for done in pilot for _, line in done.lines if isinstance(line, Asked)]
        imagination = imagination._replace(size=min(size, max(takes, default=size)))
    else:
        check_baseline(wanted, dataset)
        states = ((scenario, ScenarioState()) for scenario in dataset.scenarios)
    prices = {SUBJECT: _find_price(subject, options.price), JUDGE: _find_price(reader, options.judge_price)}
    if partner.reader is not None:
        prices[NUMERIC_JUDGE] = _find_price(partner.reader, options.numeric_judge_price)
    if len(pilot) < FEWEST:
        imagination = imagination._replace(low=SHORT, high=LONG)
    rounds: Counter[str] = Counter()
    starting = _starting_states(wanted, states, home=dataset.home)
    count, groups = _imagine_groups(starting, imagination._replace(rounds=rounds))
    measured = forecast(pilot, groups, prices)
    result = (
        _sum_groups(count, groups, imagination.roles)
        if measured is None
        else _as_estimate(count, measured.ends, imagination.roles)
    )
    result = msgspec.structs.replace(result, rounds=dict(rounds))
    begun = old is not None
    terms = Terms(
        names={
            "data": dataset.name,
            "model": subject.name,
            "judge": reader if isinstance(reader, str) else reader.name,
        },
        prices=prices if measured is None else measured.prices,
        paces={
            SUBJECT: _find_pace(subject, folder.asked() if folder is not None and begun else ()),
            JUDGE: _find_pace(reader, folder.judged(wanted.judge) if folder is not None and begun else ()),
        },
        connections=options.max_connections,
        requests_per_minute=options.requests_per_minute,
        keep_presets=options.keep_presets,
        again=LONG.again if measured is None else 0.0,
        pilot=None if measured is None else PilotMeasure(len(pilot), round(measured.share, 3)),
    )
    if partner.reader is not None:
        second = wanted.reader_of(None, Kind.NUMERIC)
        terms.names[NUMERIC_JUDGE] = partner.reader if isinstance(partner.reader, str) else partner.reader.name
        answered = folder.judged(second) if folder is not None and begun else ()
        terms.paces[NUMERIC_JUDGE] = _find_pace(partner.reader, answered)
    return result, terms


def _read_pilot(folder: Folder, judge: str | None, imagination: Imagination) -> Iterator[DoneScenario]:
    """Scenarios of the folder that need nothing more, with the lines that were paid for and what the planner imagines
    from those that were not."""
    partners = folder.definition().partners
    with Journal(folder, folder.each_scenario(), [judge], partners=partners) as journal:
        for number, scenario in enumerate(folder.each_scenario()):
            state = journal.state_of(number, judge)
            reader, settings = imagination.reader_of(scenario)
            if not state.replies or plan(scenario, state, settings):
                continue
            asked, judged = list(journal.asked(number)), list(journal.judged(number, judge))
            copied = ScenarioState()
            for reply in asked:
                if reply.source is not None:
                    copied.add_asked(reply)
            for reading in judged:
                if reading.source is not None:
                    copied.add_judged(reading)
            lines: list[tuple[Part, Asked | Judged]] = [(part_of(SUBJECT, line.slot), line) for line in asked]
            lines += [(part_of(reader, line.slot, line.method), line) for line in judged]
            paid = tuple((part, line) for part, line in lines if line.source is None and line.error is None)
            if paid:
                yield DoneScenario(group_of(scenario), imagination.ends_of(scenario, copied), paid)


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
        states = ((scenario, state) for scenario, state in run._each_seen(file) if scenario.id in undecided)
        numeric = None
        if file in definition.partners:
            numeric = definition.settings(file, preset=Preset(score.preset), kind=Kind.NUMERIC)
            numeric = msgspec.structs.replace(numeric, ask=settings.ask)
        most = estimate_scenarios(states, settings, prompt=definition.developer_prompt, numeric=numeric).most
        calls = sum(amount.calls for amount in most.values())
        if calls:
            subject = definition.subject
            prices = {SUBJECT: find_price(subject.model, endpoint=subject.endpoint)}
            for role, name in ((JUDGE, file), (NUMERIC_JUDGE, definition.partners.get(file, ""))):
                spec = definition.judges.get(name)
                prices[role] = None if spec is None else find_price(spec.model, endpoint=spec.endpoint or "")
            cost = price_bound(most, prices)["cost_usd"]
            return msgspec.structs.replace(
                score, missing=msgspec.structs.replace(score.missing, calls=calls, cost_usd=cost)
            )
    return score


def propose_more_room(
    *,
    model: str | AnyModel,
    judge: str | AnyModel,
    out: str | Path | None,
    numeric_judge: str | AnyModel | None = None,
    **settings: Unpack[RunSettings],
) -> list[MoreRoom]:
    """More tokens for subject and judges that reason: by their names, and by what the run folder holds already."""
    options = options_from(settings)
    folder = None if out is None else Folder(out)
    asked: Iterable[Call] = ()
    judged: Iterable[Call] = ()
    figures: Iterable[Call] = ()
    if folder is not None and folder.exists:
        definition = folder.definition()
        asked, judged = folder.asked(), folder.judged(definition.judge)
        second = definition.partners.get(definition.judge or "")
        figures = folder.judged(second)
        numeric_judge = numeric_judge or (definition.judges[second].model if second else None)
    subject, reader, partner = (
        named if isinstance(named, str) else as_model(named).name if named is not None else ""
        for named in (model, judge, numeric_judge)
    )
    room = options.numeric_judge_options.judge_max_tokens
    proposals = (
        propose_room("subject", subject, options.max_tokens, asked),
        propose_room("judge", reader, options.judge_max_tokens, judged) if "/" in reader else None,
        propose_room("numeric_judge", partner, room, figures) if "/" in partner else None,
    )
    return [proposal for proposal in proposals if proposal is not None]


def _starting_states(
    wanted: Definition, states: Iterable[tuple[Scenario, ScenarioState]], *, home: str | None
) -> Iterator[tuple[Scenario, ScenarioState]]:
    """The states as a run would start from them: with what its baseline lends and what its judge has said about
    polarity, without failures."""
    polarity = PolarityStore(home, wanted.judges[wanted.judge or ""], run=wanted.id)
    with Baseline(wanted) as baseline:
        for scenario, state in states:
            asked, judged = baseline.missing_lines(scenario, state)
            for reply in asked:
                state.add_asked(reply)
            for reading in judged:
                state.add_judged(reading)
            state.forget_errors()
            for line in polarity.lines_for(scenario, state):
                state.add_judged(line)
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
