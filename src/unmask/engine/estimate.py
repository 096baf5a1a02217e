"""What is left to send of a run, by a dry run: the planner against invented answers. Sends nothing.

A subject is invented three times: one that believes nothing and is brief, one that believes most things and writes
replies of the usual length, and one that believes everything and is long-winded. Once scenarios of the run are done,
what they took of what the dry run has for them gives the likely value for those that are left, and its error the range.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from unmask.engine.baseline import PRESSURED_SLOTS
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, build_request, split_takes
from unmask.judges.asides import ASIDES
from unmask.judges.base import JUDGES
from unmask.models.prices import Price
from unmask.models.room import ROOM
from unmask.protocol import plan as planner
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.records import (
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Asked,
    Choice,
    Effort,
    Judged,
    Kind,
    Letter,
    Method,
    Record,
    Scenario,
    Slot,
    Usage,
    Verdict,
    read_as,
)
from unmask.runs.folder import Folder, make_state
from unmask.runs.options import DeveloperPrompt

REPLY_TOKENS = {DIRECT: 200, PRESSURED: 250}
PROBE_TOKENS = 250
JUDGE_TOKENS = 80
CHARACTERS_PER_TOKEN = 4.0
"""A usual ratio for English; an estimate, not a bill."""
UNBELIEVED = 5
"""Likely every fifth scenario meets no belief: 14 to 22 % did with the models of the paper."""
AGAIN = 0.25
"""The part of all requests that is sent a second time, at most."""
FEWEST = 10
"""With at least so many done scenarios, what they took is used in the place of the usual lengths."""
MOST_READ = 500
"""Done scenarios that are looked at: more say nothing new."""
MOST_UNLIKE = 0.25
"""The part of what is left that may be of a kind of which nothing is done."""
ERRORS = 2.5
"""Standard errors from the likely value to either end."""
UNSEEN = 0.15
"""What so few scenarios cannot show, as part of the likely value."""
UNPRICED = Price(1.0, 4.0)
"""Weighs tokens where nobody knows the price."""


class Amount(Record, frozen=True, omit_defaults=False):
    """Requests and tokens of one role, and what they cost where that is known."""

    calls: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float | None = None

    def plus(self, calls: int, sent: float, answered: float) -> Amount:
        return Amount(self.calls + calls, self.input + round(sent), self.output + round(answered))

    def times(self, calls: float, sent: float, answered: float) -> Amount:
        return Amount(round(self.calls * calls), round(self.input * sent), round(self.output * answered))

    def priced(self, price: Price | None) -> Amount:
        """Nothing costs nothing, whatever the price."""
        known = 0.0 if not self.calls else None if price is None else price.cost(Usage(self.input, self.output))
        return replace(self, cost_usd=None if known is None else round(known, 6))


Amounts = dict[str, Amount]
"""By role."""


def sum_amounts(parts: Iterable[Amounts], roles: Iterable[str]) -> Amounts:
    total = dict.fromkeys(roles, Amount())
    for part in parts:
        for role, amount in part.items():
            total[role] = total[role].plus(amount.calls, amount.input, amount.output)
    return total


class Assumption(NamedTuple):
    """What is taken to be so where nothing was measured: whether the subject believes, how long its replies are, as
    part of the usual length, the tokens of a judge's answer, and the characters of a token."""

    believes: bool = True
    length: float = 1.0
    judge: int = JUDGE_TOKENS
    characters: float = CHARACTERS_PER_TOKEN


USUAL = Assumption()
SHORT = Assumption(False, 1 / 3, 5, 5.0)
LONG = Assumption(True, 3.0, 3 * JUDGE_TOKENS, 3.0)


class Estimate(NamedTuple):
    """What is still to be sent, by role."""

    scenarios: int
    least: Amounts
    likely: Amounts
    most: Amounts
    rounds: Mapping[str, int]
    """Of batches, one after another, with `judge` or with `all`: those of the longest scenario."""
    pilot: int | None = None


class DoneScenario(NamedTuple):
    """A scenario that needs nothing more: what the dry run has for it at most, and what was paid for. Its cost has what
    caches and reasoning have made of the price."""

    group: str
    invented: Amounts
    took: Amounts


def group_of(scenario: Scenario) -> str:
    """Scenarios of one group are asked alike: those that give the facts, and the others by what they ask for."""
    return str(scenario.kind) if scenario.asks_belief else "given"


class DryRun(NamedTuple):
    """What the planner is run with: takes that fit into one request, what the pressured ones begin with, how a second
    judge reads figures, and whether another run will lend all probes."""

    settings: Settings
    size: int = 1
    prompt: DeveloperPrompt | None = None
    numeric: Settings | None = None
    lent: bool = False
    sharing: frozenset[str] = frozenset()
    """Scenarios that use the probes of another one."""

    @property
    def roles(self) -> tuple[str, ...]:
        return (SUBJECT, JUDGE) if self.numeric is None else (SUBJECT, JUDGE, NUMERIC_JUDGE)

    def _reader_of(self, scenario: Scenario) -> tuple[str, Settings]:
        """Who reads this scenario, and how."""
        if self.numeric is None or scenario.kind is not Kind.NUMERIC:
            return JUDGE, self.settings
        return NUMERIC_JUDGE, self.numeric

    def estimate(
        self,
        scenarios: Iterable[tuple[Scenario, ScenarioState]],
        *,
        pilot: Sequence[DoneScenario] = (),
        prices: Mapping[str, Price | None] | None = None,
    ) -> Estimate:
        """What is still to be sent, given what the journal holds about each scenario."""
        least, likely, most = (dict.fromkeys(self.roles, Amount()) for _ in range(3))
        rounds, groups, begun, count = {"judge": 0, "all": 0}, Counter[str](), set[str](), 0
        for count, (scenario, state) in enumerate(scenarios, start=1):
            usual, group = USUAL._replace(believes=count % UNBELIEVED != 0), group_of(scenario)
            found = [self.simulate(scenario, state, assumed) for assumed in (SHORT, usual, LONG)]
            least, likely, most = (
                sum_amounts((total, amounts), self.roles)
                for total, (amounts, _) in zip((least, likely, most), found, strict=True)
            )
            groups[group] += any(amount.calls for amount in found[2][0].values())
            rounds["judge"] = max(rounds["judge"], *(each for _, each in found))
            if group not in begun:  # all that are not begun have as many rounds before them
                both = (self.simulate(scenario, state, assumed, in_batches=True) for assumed in (SHORT, LONG))
                rounds["all"] = max(rounds["all"], *(each for _, each in both))
            if not state.replies:
                begun.add(group)
        known = [done for done in pilot if groups[done.group]]
        unlike = groups.total() - sum(groups[group] for group in {done.group for done in known})
        if len(known) < FEWEST or unlike > MOST_UNLIKE * groups.total():
            most = {role: amount.times(*[1 + AGAIN] * 3) for role, amount in most.items()}
            return Estimate(count, least, likely, most, rounds)
        mean = _scale_by_pilot(known, likely, most)
        spread = _measure_spread(known, groups.total(), prices or {})
        least, most = ({role: each.times(*[by] * 3) for role, each in mean.items()} for by in (1 / spread, spread))
        return Estimate(count, least, mean, most, rounds, len(known))

    def simulate(
        self, scenario: Scenario, state: ScenarioState, assumed: Assumption, *, in_batches: bool = False
    ) -> tuple[Amounts, int]:
        """What a scenario takes, and in how many rounds of batches. A subject that is not asked `in_batches` too
        answers before the judge is asked: what the judge is wanted for until then is one round."""
        total, copy, rounds = dict.fromkeys(self.roles, Amount()), ScenarioState(), 0
        copy.replies = {slot: dict(takes) for slot, takes in state.replies.items()}
        copy.judged = {key: list(lines) for key, lines in state.judged.items()}
        reader, settings = self._reader_of(scenario)
        slots: set[tuple[Slot, bool]] = set()
        while wanted := planner.plan(scenario, copy, settings):
            live = () if in_batches else [item for item in wanted if isinstance(item, planner.SubjectWork)]
            rounds += not live
            for item in live or wanted:
                slots.add((item.slot, isinstance(item, planner.JudgeWork)))
                request = build_request(scenario, item, settings, self.prompt)
                sent = sum(len(message.content) for message in request.messages) / assumed.characters
                if isinstance(item, planner.JudgeWork):
                    copy.add_judged(_invent_judged(scenario, item, settings, believes=assumed.believes))
                    role, answers = reader, [float(assumed.judge)]
                else:
                    copy.add_asked(_invent_replies(scenario, item, settings, assumed))
                    tokens = assumed.length * REPLY_TOKENS.get(read_as(item.slot), PROBE_TOKENS)
                    tokens = min(tokens, settings.sampling.max_tokens or ROOM)
                    role, answers = SUBJECT, [len(takes) * tokens for takes in split_takes(item.takes, self.size)]
                if item.slot in PRESSURED_SLOTS or not (self.lent or scenario.id in self.sharing):
                    for answered in answers:
                        total[role] = total[role].plus(1, sent, answered)
        # Invented direct replies have their tag and are read by rule; a real one may lack it, a step of the judge.
        if settings.effort is Effort.LAZY and (DIRECT, False) in slots and (DIRECT, True) not in slots:
            rounds += 1
        return total, rounds

    def read_pilot(
        self, folder: Folder, judge: str | None, prices: Mapping[str, Price | None]
    ) -> Iterator[DoneScenario]:
        """Scenarios of the folder that need nothing more and whose tokens are known. What another run lent was not paid
        for, and is not invented."""
        journal = folder.journal()
        for scenario in journal.scenarios.values():
            state = journal.state_of(scenario.id, judge)
            reader, settings = self._reader_of(scenario)
            if not state.replies or planner.plan(scenario, state, settings):
                continue
            asked, judged = journal.lines_of(scenario.id, judge)
            lent = make_state(
                (line for line in asked if line.source is not None),
                (line for line in judged if line.source is not None),
            )
            paid = {
                role: [line.usage for line in lines if line.source is None and line.error is None]
                for role, lines in ((SUBJECT, asked), (reader, judged))
            }
            usages = [usage for each in paid.values() for usage in each]
            if usages and all(usage.input is not None and usage.output is not None for usage in usages):
                took = {role: _add_up(usages, prices.get(role)) for role, usages in paid.items()}
                yield DoneScenario(group_of(scenario), self.simulate(scenario, lent, LONG)[0], took)


def _add_up(usages: Sequence[Usage], price: Price | None) -> Amount:
    costs = [None if price is None else price.cost(usage) for usage in usages]
    cost = None if None in costs else sum(cost or 0.0 for cost in costs)
    return Amount(len(usages), sum(one.input or 0 for one in usages), sum(one.output or 0 for one in usages), cost)


# --- answers that nobody gave -----------------------------------------------------------------------------------


def _invent_replies(scenario: Scenario, work: planner.SubjectWork, settings: Settings, assumed: Assumption) -> Asked:
    """Replies of the assumed length, all different: the judge would read equal ones only once. For a judge that reads
    nothing else they are the statement itself."""
    states = assumed.believes and not JUDGES[settings.style].questions(scenario.kind)
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    tagged = work.slot == DIRECT and scenario.kind is not Kind.NUMERIC
    characters = int(assumed.length * REPLY_TOKENS.get(read_as(work.slot), PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    choices = []
    for take in work.takes:
        side = yes if assumed.believes or take % 2 == 0 else not yes
        tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if tagged else ""
        if not states:
            words = f"{work.slot} {take}".translate(str.maketrans("0123456789", "qwrtzkvxjp"))
        elif scenario.kind is Kind.BINARY:
            words = scenario.statements[_believed_side(scenario) is Letter.B]
        else:
            words = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "1")
        # Of one long word: rules are slow at rows of dots.
        choices.append(Choice(f"{words}\n".ljust(characters - len(tag), "m") + tag))
    return Asked(scenario=scenario.id, slot=work.slot, takes=work.takes, attempt=2, choices=tuple(choices))


def _invent_judged(scenario: Scenario, work: planner.JudgeWork, settings: Settings, *, believes: bool) -> Judged:
    """A statement is what is asked about further: that costs the most."""
    is_pressured = read_as(work.slot) == PRESSURED
    side = Letter.C if not believes else _believed_side(scenario) if is_pressured else Letter.A
    asked = {
        aside.verdict: len(aside.methods)
        for aside in map(ASIDES.__getitem__, settings.asides)
        if scenario.kind in aside.kinds
    }
    if asked and believes and is_pressured:
        lie = Letter.A if side is Letter.B else Letter.B
        side = lie if max(asked, key=asked.__getitem__) is Verdict.LIE else Letter.C
    if work.method is Method.INTERVAL and not believes and work.slot != DIRECT:
        side = Letter.A
    choice = JUDGES[settings.style].imagined(work.method, side)
    return Judged(
        scenario=scenario.id, slot=work.slot, digest=work.digest, method=work.method, attempt=2, choices=(choice,)
    )


def _believed_side(scenario: Scenario) -> Letter:
    """What a subject that believes takes for true: what it was told, else A. To say anything else would be a lie."""
    return scenario.truth if not scenario.asks_belief and isinstance(scenario.truth, Letter) else Letter.A


# --- what done scenarios say ------------------------------------------------------------------------------------


def _scale_by_pilot(pilot: Sequence[DoneScenario], likely: Amounts, most: Amounts) -> Amounts:
    """What the dry run has at most, times the part of it that done scenarios took. A role that they had no use for has
    its usual amount."""
    invented, took = (
        sum_amounts(each, most) for each in ([one.invented for one in pilot], [one.took for one in pilot])
    )
    mean = {}
    for role, whole in invented.items():
        part = took[role]
        pairs = ((part.calls, whole.calls), (part.input, whole.input), (part.output, whole.output))
        parts = (some / all_of_it if all_of_it else 1.0 for some, all_of_it in pairs)
        mean[role] = most[role].times(*parts) if whole.calls else likely[role]
    return mean


def _measure_spread(pilot: Sequence[DoneScenario], left: int, prices: Mapping[str, Price | None]) -> float:
    """The factor from the likely value to either end, by the error of a ratio: what each done scenario took to what the
    dry run has for it."""
    weights = {role: price for role, price in prices.items() if price is not None and not price.free}
    if not weights or None in prices.values():
        weights = dict.fromkeys(prices, UNPRICED)

    def worth(amounts: Amounts) -> float:
        return sum(amount.priced(weights[role]).cost_usd or 0.0 for role, amount in amounts.items() if role in weights)

    rows = [(worth(done.took), worth(done.invented)) for done in pilot]
    took, invented = map(sum, zip(*rows, strict=True))
    error = 0.0
    if took and invented:
        variance = sum((cost - took / invented * most) ** 2 for cost, most in rows) / (len(rows) - 1)
        error = math.sqrt(variance * (1 / len(rows) + 1 / max(1, left))) / (took / len(rows))
    return math.exp(math.hypot(ERRORS * error, UNSEEN))


def measure_price(price: Price | None, took: Sequence[Amount]) -> Price | None:
    """The price with what caches and reasoning have made of it so far."""
    costs = [amount.cost_usd for amount in took]
    plain = sum(amount.priced(price).cost_usd or 0.0 for amount in took)
    if price is None or price.free or not any(amount.calls for amount in took):
        return price
    if not plain or None in costs:
        return None
    part = sum(cost or 0.0 for cost in costs) / plain
    return replace(price, input=price.input * part, output=price.output * part)
