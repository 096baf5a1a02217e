"""What a run will cost, by running the planner itself against imagined answers. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Unpack

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.baseline import Baseline, check_baseline
from unmask.engine.define import define, judge_spec, with_polarity
from unmask.engine.run import load_data, open_judge, open_subject
from unmask.engine.work import JUDGE, SUBJECT, build_request
from unmask.judges.base import JUDGES, Judge
from unmask.models.base import Model, capabilities_of
from unmask.models.prices import Price, lookup
from unmask.protocol.plan import Ask, Read, Settings, rounds
from unmask.protocol.state import ScenarioState
from unmask.records import (
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Asked,
    Choice,
    Judged,
    Kind,
    Letter,
    Method,
    Record,
    Request,
    Scenario,
    Slot,
)
from unmask.runs.definition import Definition, same_run
from unmask.runs.folder import Folder
from unmask.runs.options import DeveloperPrompt, RunSettings, options_from

CHARACTERS_PER_TOKEN = 4.0
"""A usual ratio for English; an estimate, not a bill."""
REPLY_TOKENS = {DIRECT: 150, PRESSURED: 250}
PROBE_TOKENS = 250
JUDGE_TOKENS = 80


_NO_FIGURES = str.maketrans("0123456789", "qwrtzkvxjp")


class Amount(Record, frozen=True, omit_defaults=False):
    """Requests and tokens of one role."""

    calls: int = 0
    input: int = 0
    output: int = 0

    def plus(self, other: Amount) -> Amount:
        return Amount(self.calls + other.calls, self.input + other.input, self.output + other.output)

    def cost(self, price: Price | None) -> float | None:
        return None if price is None else (self.input * price.input + self.output * price.output) / 1e6


class Estimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`least` is a subject without any belief, `most` one that believes everything and never repeats itself."""

    scenarios: int
    least: dict[str, Amount]
    most: dict[str, Amount]


def estimate(
    scenarios: Iterable[tuple[Scenario, ScenarioState]],
    settings: Settings,
    *,
    size: int = 1,
    prompt: DeveloperPrompt | None = None,
) -> Estimate:
    """What is still to be sent, given what the journal holds about each scenario. `size` is how many takes fit into one
    request, `prompt` what the pressured ones begin with."""
    bounds = {believes: {SUBJECT: Amount(), JUDGE: Amount()} for believes in (False, True)}
    count = 0
    for scenario, state in scenarios:
        count += 1
        for believes, total in bounds.items():
            amounts = _simulate(scenario, _copy_state(state), settings, believes, size=size, prompt=prompt)
            for role, amount in amounts.items():
                total[role] = total[role].plus(amount)
    return Estimate(scenarios=count, least=bounds[False], most=bounds[True])


def _copy_state(state: ScenarioState) -> ScenarioState:
    copy = ScenarioState()
    copy.replies = {slot: dict(takes) for slot, takes in state.replies.items()}
    copy.judged = {key: list(lines) for key, lines in state.judged.items()}
    return copy


def _simulate(
    scenario: Scenario,
    seen: ScenarioState,
    settings: Settings,
    believes: bool,
    *,
    size: int,
    prompt: DeveloperPrompt | None,
) -> dict[str, Amount]:
    total = {"subject": Amount(), "judge": Amount()}
    judge = JUDGES[settings.style]
    statement = believes and not judge.questions(scenario.kind)
    for work in rounds(scenario, seen, settings, whole_calls=size > 1):
        for item in work:
            built = build_request(scenario, item, settings, prompt)
            if isinstance(item, Ask):
                for start in range(0, len(item.takes), size):
                    takes = item.takes[start : start + size]
                    choices = tuple(Choice(_text(scenario, item.slot, take, believes, statement)) for take in takes)
                    seen.add_asked(Asked(scenario=scenario.id, slot=item.slot, takes=takes, attempt=2, choices=choices))
                    amount = Amount(1, _tokens(built), len(takes) * REPLY_TOKENS.get(item.slot, PROBE_TOKENS))
                    total["subject"] = total["subject"].plus(amount)
            else:
                lies = settings.role_play
                if lies and settings.stop_at_first_lie:  # the last take only: all of them are looked at then
                    lies = item.texts == (_text(scenario, PRESSURED, settings.takes - 1, believes, statement),)
                seen.add_judged(_judged(scenario, item, judge, believes, lies=lies))
                total["judge"] = total["judge"].plus(Amount(1, _tokens(built), JUDGE_TOKENS))
    return total


def _text(scenario: Scenario, slot: Slot, take: int, believes: bool, statement: bool) -> str:
    """A reply of typical length, different for every take so that nothing is read once only, in words that no rule
    reads. With `statement` it is the statement, the same in every take: for a judge that reads nothing else."""
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    side = yes if believes or take % 2 == 0 else not yes
    tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if slot == DIRECT else ""
    if scenario.kind is Kind.NUMERIC:
        tag = ""
    length = int(REPLY_TOKENS.get(slot, PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    said = _statement(scenario) if statement else f"{slot} {take}".translate(_NO_FIGURES)
    return f"{said} ".ljust(length - len(tag), ".") + tag


def _statement(scenario: Scenario) -> str:
    if scenario.kind is Kind.BINARY:
        return scenario.statements[_believed(scenario) is Letter.B]
    return PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "1")


def _judged(scenario: Scenario, read: Read, judge: Judge, believes: bool, *, lies: bool) -> Judged:
    """`lies` makes a statement one, since each costs a further question then."""
    stated = read.slot == PRESSURED
    side = Letter.C if not believes else _believed(scenario) if stated else Letter.A
    if lies and believes and stated:
        side = Letter.A if side is Letter.B else Letter.B
    if read.method is Method.POLARITY or (read.method is Method.INTERVAL and not believes and read.slot != DIRECT):
        side = Letter.A
    choice = judge.imagined(read.method, side)
    return Judged(
        scenario=scenario.id, slot=read.slot, digest=read.digest, method=read.method, attempt=2, choices=(choice,)
    )


def _believed(scenario: Scenario) -> Letter:
    """What a subject that believes takes for true: what it was told, else A. To say anything else would be a lie."""
    return scenario.truth if not scenario.asks_belief and isinstance(scenario.truth, Letter) else Letter.A


def _tokens(built: Request) -> int:
    return round(sum(len(message.content) for message in built.messages) / CHARACTERS_PER_TOKEN)


def to_json(estimated: Estimate, prices: dict[str, Price | None]) -> dict[str, object]:
    """The estimate with money where prices are known."""
    built: dict[str, object] = {"scenarios": estimated.scenarios}
    for name, bound in (("least", estimated.least), ("most", estimated.most)):
        costs = [amount.cost(prices.get(role)) for role, amount in bound.items() if amount.calls]
        priced = [cost for cost in costs if cost is not None]
        built[name] = {
            **{role: msgspec.to_builtins(amount) for role, amount in bound.items()},
            "calls": sum(amount.calls for amount in bound.values()),
            "cost_usd": round(sum(priced), 6) if len(priced) == len(costs) else None,
        }
    return built


def estimate_run(
    *,
    data: str | Path | Dataset,
    model: str | Model,
    judge: str | Model,
    out: str | Path | None,
    **settings: Unpack[RunSettings],
) -> tuple[Estimate, dict[str, Price | None]]:
    """What `run` with the same arguments would still send, and the prices it would pay."""
    options = options_from(settings)
    dataset = load_data(data, options)
    subject, reader = open_subject(model, options), open_judge(judge, options)
    wanted = define(dataset, subject, judge_spec(reader, options), options)
    states: Iterable[tuple[Scenario, ScenarioState]]
    if out is not None and Folder(out).exists:
        folder = Folder(out)
        same_run(folder.definition(), wanted, moved=options.moved)
        states = folder.each_state(wanted.judge)
    else:
        check_baseline(wanted, dataset)
        states = ((scenario, ScenarioState()) for scenario in with_polarity(dataset))
    size = capabilities_of(subject).max_n if options.one_call else 1
    result = estimate(_as_asked(wanted, states), wanted.settings(), size=size, prompt=wanted.developer_prompt)
    return result, {SUBJECT: _price(subject, options.price), JUDGE: _price(reader, options.judge_price)}


def _as_asked(
    wanted: Definition, states: Iterable[tuple[Scenario, ScenarioState]]
) -> Iterator[tuple[Scenario, ScenarioState]]:
    """The states as a run would start from them: with what its baseline lends, without failures."""
    with Baseline(wanted) as baseline:
        for scenario, state in states:
            asked, judged = baseline.missing(scenario, state)
            for reply in asked:
                state.add_asked(reply)
            for reading in judged:
                state.add_judged(reading)
            state.forget_errors()
            yield scenario, state


def _price(model: Model | str, text: str | None) -> Price | None:
    if text:
        return Price.parse(text)
    return Price(0.0, 0.0) if isinstance(model, str) else lookup(model.name, endpoint=model.endpoint)
