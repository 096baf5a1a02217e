"""The planner run against imagined answers: which requests a scenario takes, how many tokens, how many rounds. Sends
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
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
    Request,
    Scenario,
    Slot,
    Usage,
    Verdict,
    read_as,
)
from unmask.runs.options import DeveloperPrompt

REPLY_TOKENS = {DIRECT: 200, PRESSURED: 250}
PROBE_TOKENS = 250
JUDGE_TOKENS = 80
CHARACTERS_PER_TOKEN = 4.0
"""A usual ratio for English; an estimate, not a bill."""


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


def sum_amounts(parts: Iterable[Amounts], roles: Sequence[str]) -> Amounts:
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


class Imagination(NamedTuple):
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

    def reader_of(self, scenario: Scenario) -> tuple[str, Settings]:
        """Who reads this scenario, and how."""
        if self.numeric is None or scenario.kind is not Kind.NUMERIC:
            return JUDGE, self.settings
        return NUMERIC_JUDGE, self.numeric

    def imagine(
        self, scenario: Scenario, state: ScenarioState, assumed: Assumption, *, in_batches: bool = False
    ) -> tuple[Amounts, int]:
        """What a scenario takes, and in how many rounds of batches. A subject that is not asked `in_batches` too
        answers before the judge is asked: what the judge is wanted for until then is one round."""
        total, copy, rounds = dict.fromkeys(self.roles, Amount()), _copy_state(state), 0
        _, settings = self.reader_of(scenario)
        slots: set[tuple[Slot, bool]] = set()
        while wanted := planner.plan(scenario, copy, settings):
            live = () if in_batches else [item for item in wanted if isinstance(item, planner.SubjectWork)]
            rounds += not live
            for item in live or wanted:
                slots.add((item.slot, isinstance(item, planner.JudgeWork)))
                for role, request, answered in self._answer(scenario, copy, item, assumed):
                    sent = sum(len(message.content) for message in request.messages) / assumed.characters
                    total[role] = total[role].plus(1, sent, answered)
        # Imagined direct replies have their tag and are read by rule; a real one may lack it, a step of the judge.
        if settings.effort is Effort.LAZY and (DIRECT, False) in slots and (DIRECT, True) not in slots:
            rounds += 1
        return total, rounds

    def _answer(
        self, scenario: Scenario, state: ScenarioState, item: planner.Work, assumed: Assumption
    ) -> list[tuple[str, Request, float]]:
        """Put imagined answers into the state, and list the requests that this run would send for them: role, request
        and tokens of the answer."""
        reader, settings = self.reader_of(scenario)
        request, judge = build_request(scenario, item, settings, self.prompt), JUDGES[settings.style]
        if isinstance(item, planner.JudgeWork):
            state.add_judged(_imagine_judged(scenario, item, settings, believes=assumed.believes))
            sent = [(reader, request, float(assumed.judge))]
        else:
            states = assumed.believes and not judge.questions(scenario.kind)
            imagine = partial(_imagine_reply, scenario, item.slot, assumed, states=states)
            parts = split_takes(item.takes, self.size)
            choices = tuple(Choice(imagine(take)) for take in item.takes)
            state.add_asked(Asked(scenario=scenario.id, slot=item.slot, takes=item.takes, attempt=2, choices=choices))
            tokens = assumed.length * REPLY_TOKENS.get(read_as(item.slot), PROBE_TOKENS)
            tokens = min(tokens, settings.sampling.max_tokens or ROOM)
            sent = [(SUBJECT, request, len(takes) * tokens) for takes in parts]
        is_lent = (self.lent or scenario.id in self.sharing) and item.slot not in PRESSURED_SLOTS
        return [] if is_lent else sent


def _copy_state(state: ScenarioState) -> ScenarioState:
    copy = ScenarioState()
    copy.replies = {slot: dict(takes) for slot, takes in state.replies.items()}
    copy.judged = {key: list(lines) for key, lines in state.judged.items()}
    return copy


def _imagine_reply(scenario: Scenario, slot: Slot, assumed: Assumption, take: int, *, states: bool) -> str:
    """A reply. No rule reads its words, and it differs from take to take: the judge would read equal replies only once.
    One that `states` is the statement itself, the same in every take, for a judge that reads nothing else."""
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    side = yes if assumed.believes or take % 2 == 0 else not yes
    tagged = slot == DIRECT and scenario.kind is not Kind.NUMERIC
    tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if tagged else ""
    characters = int(assumed.length * REPLY_TOKENS.get(read_as(slot), PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    if not states:
        words = f"{slot} {take}".translate(str.maketrans("0123456789", "qwrtzkvxjp"))
    elif scenario.kind is Kind.BINARY:
        words = scenario.statements[_believed_side(scenario) is Letter.B]
    else:
        words = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "1")
    return f"{words}\n".ljust(characters - len(tag), "m") + tag  # of one long word: rules are slow at rows of dots


def _imagine_judged(scenario: Scenario, work: planner.JudgeWork, settings: Settings, *, believes: bool) -> Judged:
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
