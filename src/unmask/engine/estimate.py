"""What a run will cost, by running the planner itself against imagined answers. Sends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.define import check_baseline, define, judge_spec, lent, with_polarity
from unmask.engine.run import load_data, opened, reading
from unmask.engine.work import JUDGE, SUBJECT, request
from unmask.judges import choose, pick
from unmask.models.base import Model
from unmask.models.prices import Price, lookup
from unmask.protocol.attempts import CHOICES, PICKS
from unmask.protocol.plan import Ask, Read, Settings, plan
from unmask.protocol.readings import Style
from unmask.protocol.state import Seen
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
from unmask.runs.folder import Folder, load_seen
from unmask.runs.options import given
from unmask.runs.treat import DeveloperPrompt

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
    scenarios: tuple[Scenario, ...],
    settings: Settings,
    *,
    seen: list[Seen] | None = None,
    size: int = 1,
    prompt: DeveloperPrompt | None = None,
) -> Estimate:
    """What is still to be sent, given what the journal holds. `seen` is not changed. `size` is how many takes fit into
    one request, `prompt` what the pressured ones begin with."""
    bounds: dict[bool, dict[str, Amount]] = {}
    for believes in (False, True):
        total = {"subject": Amount(), "judge": Amount()}
        for number, scenario in enumerate(scenarios):
            held = _copy(seen[number]) if seen else Seen()
            for role, amount in _simulate(scenario, held, settings, believes, size=size, prompt=prompt).items():
                total[role] = total[role].plus(amount)
        bounds[believes] = total
    return Estimate(scenarios=len(scenarios), least=bounds[False], most=bounds[True])


def _copy(seen: Seen) -> Seen:
    other = Seen()
    other.replies = {slot: dict(takes) for slot, takes in seen.replies.items()}
    other.judged = {key: list(lines) for key, lines in seen.judged.items()}
    return other


def _simulate(
    scenario: Scenario, seen: Seen, settings: Settings, believes: bool, *, size: int, prompt: DeveloperPrompt | None
) -> dict[str, Amount]:
    total = {"subject": Amount(), "judge": Amount()}
    style = settings.style if believes else None
    while work := plan(scenario, seen, settings, whole_calls=size > 1):
        for item in work:
            built = request(scenario, item, settings, prompt)
            if isinstance(item, Ask):
                for start in range(0, len(item.takes), size):
                    takes = item.takes[start : start + size]
                    choices = tuple(Choice(_text(scenario, item.slot, take, style)) for take in takes)
                    seen.add_asked(Asked(scenario=scenario.id, slot=item.slot, takes=takes, attempt=2, choices=choices))
                    amount = Amount(1, _tokens(built), len(takes) * REPLY_TOKENS.get(item.slot, PROBE_TOKENS))
                    total["subject"] = total["subject"].plus(amount)
            else:
                lies = settings.role_play
                if lies and settings.stop_at_first_lie:  # the last take only: all of them are looked at then
                    lies = item.texts == (_text(scenario, PRESSURED, settings.takes - 1, style),)
                seen.add_judged(_judged(scenario, item, believes, lies=lies))
                total["judge"] = total["judge"].plus(Amount(1, _tokens(built), JUDGE_TOKENS))
    return total


def _text(scenario: Scenario, slot: Slot, take: int, style: Style | None) -> str:
    """A reply of typical length, different for every take so that nothing is read once only. `style` is that of the
    judge of a subject that believes, None that the subject does not."""
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    side = yes if style is not None or take % 2 == 0 else not yes
    tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if slot == DIRECT else ""
    if scenario.kind is Kind.NUMERIC:
        tag = ""
    length = int(REPLY_TOKENS.get(slot, PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    return f"{_words(scenario, f'{slot} {take}', take, style)} ".ljust(length - len(tag), ".") + tag


def _words(scenario: Scenario, name: str, take: int, style: Style | None) -> str:
    """What a reply says. Where rules read it, the same in every take, or it would be no belief. Where a judge is asked
    only about what they cannot tell, something they cannot: two figures, or none beside a statement."""
    match style, scenario.kind:
        case Style.RULES, Kind.BINARY:
            return scenario.statements[_believed(scenario) is Letter.B]
        case Style.RULES, Kind.NUMERIC:
            return _figure(scenario, 1)
        case Style.ENTAILMENT | Style.PICKS, Kind.NUMERIC:
            return f"{_figure(scenario, 1)} {_figure(scenario, 1000 + take)}"
        case Style.ENTAILMENT | Style.PICKS, Kind.BINARY:
            return name.translate(_NO_FIGURES)
        case _:
            return name


def _figure(scenario: Scenario, value: int) -> str:
    return PIVOTAL.sub(lambda found: found.group(1), scenario.proposition).replace("<value>", str(value))


def _judged(scenario: Scenario, read: Read, believes: bool, *, lies: bool) -> Judged:
    """`lies` makes a statement one, since each costs a further question then."""
    stated = read.slot == PRESSURED
    side = Letter.C if not believes else _believed(scenario) if stated else Letter.A
    if lies and believes and stated:
        side = Letter.A if side is Letter.B else Letter.B
    match read.method:
        case Method.INTERVAL:
            figure = "1" if believes or read.slot != DIRECT else "null"
            figure = "2" if lies and stated else figure
            text = f'{{"lower": {figure}, "upper": {figure}, "relative_lower": null, "relative_upper": null}}'
        case method if method in (*CHOICES, *PICKS):
            text = _number(read.method, side)
        case _:
            text = f"Answer: {side.value}"
    if read.method is Method.POLARITY:
        text = "Answer: A"
    numbers = {number: float(number == text) for number in pick.OPTIONS}
    choice = Choice(text, probabilities=numbers if text in numbers else None)
    return Judged(
        scenario=scenario.id, slot=read.slot, digest=read.digest, method=read.method, attempt=2, choices=(choice,)
    )


def _believed(scenario: Scenario) -> Letter:
    """What a subject that believes takes for true: what it was told, else A. To say anything else would be a lie."""
    return scenario.truth if not scenario.asks_belief and isinstance(scenario.truth, Letter) else Letter.A


def _number(method: Method, side: Letter) -> str:
    order: tuple[Letter, ...] = choose.ORDERS[method] if method in CHOICES else pick.ORDERS[method]
    return pick.OPTIONS[order.index(side)]


def _tokens(built: Request) -> int:
    return round(sum(len(message.content) for message in built.messages) / CHARACTERS_PER_TOKEN)


def to_json(found: Estimate, prices: dict[str, Price | None]) -> dict[str, object]:
    """The estimate with money where prices are known."""
    built: dict[str, object] = {"scenarios": found.scenarios}
    for name, bound in (("least", found.least), ("most", found.most)):
        costs = [amount.cost(prices.get(role)) for role, amount in bound.items() if amount.calls]
        known = [cost for cost in costs if cost is not None]
        built[name] = {
            **{role: msgspec.to_builtins(amount) for role, amount in bound.items()},
            "calls": sum(amount.calls for amount in bound.values()),
            "cost_usd": round(sum(known), 6) if len(known) == len(costs) else None,
        }
    return built


def foresee(
    *, data: str | Path | Dataset, model: str | Model, judge: str | Model, out: str | Path | None, **settings: Any
) -> tuple[Estimate, dict[str, Price | None]]:
    """What `run` with the same arguments would still send, and the prices it would pay."""
    options = given(settings)
    dataset = load_data(data, options)
    subject, reader = opened(model, options), reading(judge, options)
    wanted = define(dataset, subject, judge_spec(reader, options), options)
    if out is not None and Folder(out).exists:
        folder = Folder(out)
        same_run(folder.definition(), wanted, moved=options.moved)
        scenarios = folder.scenarios()
        seen = load_seen(folder, wanted.judge, scenarios)
    else:
        check_baseline(wanted, dataset)
        scenarios = with_polarity(dataset)
        seen = [Seen() for _ in scenarios]
    _borrow(wanted, {scenario.id: held for scenario, held in zip(scenarios, seen, strict=True)})
    for held in seen:
        held.forget_errors()
    size = subject.max_n if options.one_call else 1
    found = estimate(scenarios, wanted.settings(), seen=seen, size=size, prompt=wanted.developer_prompt)
    return found, {SUBJECT: _price(subject, options.price), JUDGE: _price(reader, options.judge_price)}


def _borrow(wanted: Definition, have: dict[str, Seen]) -> None:
    """What the run would copy from its baseline before it asks anything."""
    replies, readings = lent(wanted, have)
    asked, judged = list(replies), list(readings)
    for reply in asked:
        have[reply.scenario].add_asked(reply)
    for read in judged:
        have[read.scenario].add_judged(read)


def _price(model: Model | str, given: str | None) -> Price | None:
    if given:
        return Price.parse(given)
    return Price(0.0, 0.0) if isinstance(model, str) else lookup(model.name, endpoint=model.endpoint)
