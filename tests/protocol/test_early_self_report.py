"""The planner for batches: the self-report is asked for while the pressured reply is still being read."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from tests.protocol.test_plan import World, binary, key
from tests.thorough import draw_part
from unmask.protocol.plan import JudgeWork, PlannerSettings, SubjectWork, plan, plan_rounds
from unmask.records import (
    DIRECT,
    PRESSURED,
    SELF_REPORT,
    Archetype,
    Asked,
    Choice,
    Effort,
    Judged,
    Preset,
    Stop,
    Verdict,
    indirect,
)

TAGGED = {"A": "<final_answer>yes</final_answer>", "B": "<final_answer>no</final_answer>", "C": "maybe C"}
SIDES = {Verdict.HONEST, Verdict.LIE}
QUESTION = "Was that true?"


class RoundsOfWork(World):
    """Answers all that is planned at once, round by round, as batches do."""

    def __init__(self, readings: dict[str, str], told: bool = False, **settings: object) -> None:
        facts = {"archetype": Archetype.PROVIDED_FACTS, "direct": None, "indirect": (), "yes_means": None}
        planned = PlannerSettings(self_report=QUESTION, **settings)  # type: ignore[arg-type]
        super().__init__(binary(**facts if told else {}), readings, planned)
        self.rounds: list[list[tuple[object, ...]]] = []
        self.spoiled: tuple[str, type] | None = None

    def run_rounds(self) -> None:
        for work in plan_rounds(self.scenario, self.seen, self.settings):
            self.rounds.append([part for item in work for part in key(item)])
            self.answer_all(work)

    def answer_all(self, work: Iterable[SubjectWork | JudgeWork]) -> None:
        for item in work:
            self.sent.append(item)
            if item.attempt == 1 and (item.slot, type(item)) == self.spoiled:
                self._spoil(item)
            else:
                self._answer(item)

    def _spoil(self, item: SubjectWork | JudgeWork) -> None:
        nothing = Choice("<think>", stop=Stop.LENGTH)
        if isinstance(item, SubjectWork):
            self.seen.add_asked(
                Asked(scenario="s", slot=item.slot, takes=item.takes, choices=(nothing,) * len(item.takes))
            )
        else:
            fields = {"slot": item.slot, "digest": item.digest, "method": item.method}
            self.seen.add_judged(Judged(scenario="s", choices=(Choice("Hard to say."),), **fields))

    def requests(self, role: type) -> set[tuple[object, ...]]:
        return {part for item in self.sent if isinstance(item, role) for part in key(item)}


def read_of(letters: tuple[str, ...]) -> dict[str, str]:
    direct, first, second, stated, report = letters
    return {
        "direct": direct * 2 + first,
        "indirect_1": first,
        "indirect_2": second,
        "pressured": stated * 2,
        "self_report": report,
    }


@pytest.mark.parametrize("takes", [1, 2])
@pytest.mark.parametrize("preset", list(Preset))
@pytest.mark.parametrize("told", [False, True])
def test_an_early_report_changes_no_outcome_for_every_combination(preset, told, takes):
    """The product of readings (a part of it; all in a thorough run): the same outcome, the same questions to the judge,
    at most the report besides."""
    for letters in draw_part(product("ABC", "ABC", "ABC", "ABCD", "ABC"), 100):
        live, early = (
            RoundsOfWork(
                read_of(letters), told=told, preset=preset, takes=takes, role_play=True, early_self_report=when
            )
            for when in (False, True)
        )
        outcomes = live.run(), early.run()
        assert outcomes[0] == outcomes[1], letters
        assert live.requests(JudgeWork) == early.requests(JudgeWork), letters
        more = early.requests(SubjectWork) - live.requests(SubjectWork)
        assert live.requests(SubjectWork) <= early.requests(SubjectWork)
        assert more <= {(SELF_REPORT, 0, 1)}
        assert not more or outcomes[0].verdicts[0] not in SIDES


@pytest.mark.parametrize(("early", "rounds"), [(False, 8), (True, 7)])
@pytest.mark.parametrize("role_play", [False, True])
def test_an_early_report_takes_one_round_less(early, rounds, role_play):
    """Six without a report; the question about role play stands beside its reading."""
    asked = RoundsOfWork(read_of(("A", "A", "A", "B", "B")), early_self_report=early, role_play=role_play)
    asked.run_rounds()
    assert len(asked.rounds) == rounds
    reading = next(number for number, work in enumerate(asked.rounds) if any(part[0] == PRESSURED for part in work)) + 1
    asking = next(number for number, work in enumerate(asked.rounds) if (SELF_REPORT, 0, 1) in work)
    assert asking == reading + (not early)


STEPS = tuple(product((DIRECT, indirect(1), PRESSURED, SELF_REPORT), (SubjectWork, JudgeWork)))


@pytest.mark.parametrize(("slot", "role"), STEPS)
def test_a_second_try_adds_one_round_wherever_it_is_needed(slot, role):
    """A reply that was cut off before its answer, or an answer of the judge that nobody can read."""
    asked = RoundsOfWork(read_of(("A", "A", "A", "B", "B")), early_self_report=True)
    asked.spoiled = slot, role
    asked.run_rounds()
    assert len(asked.rounds) == 8
    assert [item.attempt for item in asked.sent if item.attempt > 1 and isinstance(item, role)]


def test_where_nothing_can_be_a_lie_no_early_report_is_asked():
    """Under inspect the pressured request is sent without a belief; no reading of it makes it honest or a lie."""
    asked = RoundsOfWork(read_of(("A", "B", "A", "A", "A")), preset=Preset.INSPECT, early_self_report=True)
    asked.run_rounds()
    assert PRESSURED in asked.slots()
    assert SELF_REPORT not in asked.slots()


def test_full_effort_is_the_same_early_or_not():
    """It asks for every report as soon as there is a reply."""
    rounds = []
    for early in (False, True):
        asked = RoundsOfWork(read_of(("A", "A", "A", "C", "B")), effort=Effort.FULL, early_self_report=early)
        asked.run_rounds()
        rounds.append(asked.rounds)
    assert rounds[0] == rounds[1]
    assert len(rounds[0]) == 3


@pytest.mark.parametrize("early_first", [False, True])
def test_a_run_that_changes_between_early_and_late_ends_as_any_other(early_first):
    """Begun in batches and continued live, or the other way round, after every round: the outcome of a live run."""
    first, then = (
        PlannerSettings(self_report=QUESTION, early_self_report=early) for early in (early_first, not early_first)
    )
    for stated, report, switch in product("ABCD", "ABC", range(9)):
        readings = read_of(("A", "A", "A", stated, report))
        mixed = RoundsOfWork(readings)
        for _ in range(switch):
            mixed.answer_all(plan(mixed.scenario, mixed.seen, first))
        for work in plan_rounds(mixed.scenario, mixed.seen, then):
            mixed.answer_all(work)
        asked = [part for item in mixed.sent for part in key(item)]
        assert len(asked) == len(set(asked))
        assert mixed.run() == RoundsOfWork(readings).run(), (stated, report, switch)


@pytest.mark.parametrize("letter", "ABC")
def test_a_report_in_tags_on_a_reply_that_asserts_nothing_counts_for_nothing(letter):
    """Not as a reading by rule either, and not as an empty or cut-off reply."""
    readings = read_of(("A", "A", "A", "C", letter)) | {SELF_REPORT: (TAGGED[letter],)}
    live, early = (RoundsOfWork(readings, early_self_report=when) for when in (False, True))  # type: ignore[arg-type]
    assert live.run() == early.run()
    assert SELF_REPORT in early.slots() - live.slots()
