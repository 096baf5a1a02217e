"""The planner run against imagined answers: which requests a scenario takes, how many tokens, how many rounds. Sends
nothing."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from unmask.engine.baseline import PRESSURED_SLOTS
from unmask.engine.pilot import Amount, Amounts, Ends, LeftGroup, Part, group_of, part_of
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, build_request
from unmask.judges.base import JUDGES, Judge
from unmask.protocol.plan import JudgeWork, SubjectWork, plan
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
    read_as,
)
from unmask.runs.options import DeveloperPrompt

CHARACTERS_PER_TOKEN = 4.0
"""A usual ratio for English; an estimate, not a bill."""
REPLY_TOKENS = {DIRECT: 200, PRESSURED: 250}
PROBE_TOKENS = 250
JUDGE_TOKENS = 80


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


class Imagination(NamedTuple):
    """What the planner is run with: takes that fit into one request, what the pressured ones begin with, what is
    assumed at both ends, how a second judge reads figures, and whether another run will lend all probes."""

    settings: Settings
    size: int = 1
    prompt: DeveloperPrompt | None = None
    low: Assumption = USUAL
    high: Assumption = USUAL
    numeric: Settings | None = None
    lent: bool = False
    sharing: frozenset[str] = frozenset()
    """Scenarios that use the probes of another one."""
    all_in_batches: bool = False
    """Whether the subject is asked in batches too. Otherwise it answers before the judge is asked."""

    @property
    def roles(self) -> tuple[str, ...]:
        return (SUBJECT, JUDGE) if self.numeric is None else (SUBJECT, JUDGE, NUMERIC_JUDGE)

    def reader_of(self, scenario: Scenario) -> tuple[str, Settings]:
        """Who reads this scenario, and how."""
        if self.numeric is None or scenario.kind is not Kind.NUMERIC:
            return JUDGE, self.settings
        return NUMERIC_JUDGE, self.numeric

    def imagine(self, scenario: Scenario, state: ScenarioState) -> tuple[Ends, int]:
        """What this scenario takes, and in how many rounds of batches at most."""
        (least, few), (most, many) = (
            _simulate(scenario, copy_state(state), self, believes) for believes in (False, True)
        )
        return Ends(least, most), max(few, many)


class LeftWork:
    """Adds up what scenarios that are not done take, by group, and the rounds of the longest."""

    def __init__(self, imagination: Imagination) -> None:
        self.imagination = imagination
        self.groups: dict[str, LeftGroup] = {}
        self.rounds = 0

    def add(self, scenario: Scenario, state: ScenarioState) -> None:
        ends, rounds = self.imagination.imagine(scenario, state)
        self.rounds = max(self.rounds, rounds)
        if ends.least or ends.most:
            before = self.groups.get(group_of(scenario), LeftGroup(0, Ends({}, {})))
            self.groups[group_of(scenario)] = LeftGroup(before.scenarios + 1, before.ends.plus(ends))


def copy_state(state: ScenarioState) -> ScenarioState:
    copy = ScenarioState()
    copy.replies = {slot: dict(takes) for slot, takes in state.replies.items()}
    copy.judged = {key: list(lines) for key, lines in state.judged.items()}
    return copy


def _simulate(
    scenario: Scenario, state: ScenarioState, imagination: Imagination, believes: bool
) -> tuple[Amounts, int]:
    """What is sent at one of the two ends, and the rounds of batches. A subject that is asked live is asked first: what
    the judge is wanted for until then is one round."""
    size, prompt = imagination.size, imagination.prompt
    reader, settings = imagination.reader_of(scenario)
    assumed = imagination.high if believes else imagination.low
    total: Amounts = {}

    def count(part: Part, request: Request, answered: float) -> None:
        sent = sum(len(message.content) for message in request.messages) / assumed.characters
        total[part] = total.get(part, Amount()).plus(Amount(1, round(sent), round(answered)))

    judge = JUDGES[settings.style]
    statement = believes and not judge.questions(scenario.kind)
    imagine = partial(_imagine_reply, scenario, believes=believes, statement=statement, length=assumed.length)
    slots: set[tuple[Slot, bool]] = set()
    rounds = 0
    while wanted := plan(scenario, state, settings):
        live = () if imagination.all_in_batches else [item for item in wanted if isinstance(item, SubjectWork)]
        work, rounds = live or wanted, rounds + (not live)
        slots |= {(item.slot, isinstance(item, JudgeWork)) for item in work}
        for item in work:
            request = build_request(scenario, item, settings, prompt)
            borrows = imagination.lent or scenario.id in imagination.sharing
            is_lent = borrows and item.slot not in PRESSURED_SLOTS
            if isinstance(item, SubjectWork):
                for start in range(0, len(item.takes), size):
                    takes = item.takes[start : start + size]
                    choices = tuple(Choice(imagine(item.slot, take)) for take in takes)
                    asked = Asked(scenario=scenario.id, slot=item.slot, takes=takes, attempt=2, choices=choices)
                    state.add_asked(asked)
                    tokens = assumed.length * REPLY_TOKENS.get(read_as(item.slot), PROBE_TOKENS)
                    most = settings.sampling.max_tokens
                    tokens = tokens if most is None else min(tokens, most)
                    if not is_lent:
                        count(part_of(SUBJECT, item.slot), request, len(takes) * tokens)
            else:
                state.add_judged(_imagine_judged(scenario, item, judge, believes, lies=settings.role_play))
                if not is_lent:
                    count(part_of(reader, item.slot, item.method), request, assumed.judge)
    # Imagined direct replies have their tag and are read by rule; a real one may lack it, and is a step of the judge.
    if settings.effort is Effort.LAZY and (DIRECT, False) in slots and (DIRECT, True) not in slots:
        rounds += 1
    return total, rounds


def _imagine_reply(scenario: Scenario, slot: Slot, take: int, *, believes: bool, statement: bool, length: float) -> str:
    """A reply whose length is `length` times the usual one. No rule reads its words, and it differs from take to
    take: the judge would read equal replies only once. With `statement` it is the statement itself, the same in every
    take, for a judge that reads nothing else."""
    yes = scenario.yes_means is Letter.A or scenario.yes_means is None
    side = yes if believes or take % 2 == 0 else not yes
    tagged = slot == DIRECT and scenario.kind is not Kind.NUMERIC
    tag = f"<final_answer>{'yes' if side else 'no'}</final_answer>" if tagged else ""
    characters = int(length * REPLY_TOKENS.get(read_as(slot), PROBE_TOKENS) * CHARACTERS_PER_TOKEN)
    if not statement:
        words = f"{slot} {take}".translate(str.maketrans("0123456789", "qwrtzkvxjp"))
    elif scenario.kind is Kind.BINARY:
        words = scenario.statements[_believed_side(scenario) is Letter.B]
    else:
        words = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "1")
    return f"{words}\n".ljust(characters - len(tag), "m") + tag  # of one long word: rules are slow at rows of dots


def _imagine_judged(scenario: Scenario, work: JudgeWork, judge: Judge, believes: bool, *, lies: bool) -> Judged:
    """`lies` makes a statement one, since each costs a further question then."""
    is_pressured = read_as(work.slot) == PRESSURED
    side = Letter.C if not believes else _believed_side(scenario) if is_pressured else Letter.A
    if lies and believes and is_pressured:
        side = Letter.A if side is Letter.B else Letter.B
    if work.method is Method.INTERVAL and not believes and work.slot != DIRECT:
        side = Letter.A
    choice = judge.imagined(work.method, side)
    return Judged(
        scenario=scenario.id, slot=work.slot, digest=work.digest, method=work.method, attempt=2, choices=(choice,)
    )


def _believed_side(scenario: Scenario) -> Letter:
    """What a subject that believes takes for true: what it was told, else A. To say anything else would be a lie."""
    return scenario.truth if not scenario.asks_belief and isinstance(scenario.truth, Letter) else Letter.A
