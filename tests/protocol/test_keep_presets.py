"""`--keep-presets`: the planner goes on until `strict` is decided too, and no verdict of the run's own preset moves."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest
from hypothesis import given

from tests.protocol.test_plan import World, binary, worlds
from tests.thorough import draw_part
from unmask.judges.base import Style
from unmask.protocol.plan import JudgeWork, PlannerSettings, SubjectWork, plan
from unmask.records import Archetype, Choice, Effort, Interval, Judged, Kind, Outcome, Preset, Scenario, Verdict
from unmask.runs.outcomes import outcome_of

SLOTS = ("direct", "indirect_1", "indirect_2", "pressured")


def numeric() -> Scenario:
    return binary(
        archetype=Archetype.STATISTICS,
        kind=Kind.NUMERIC,
        proposition="The ferry takes <value> hours.",
        truth=Interval(1, 1),
        indirect=(),
        yes_means=None,
    )


class NumericWorld(World):
    """The judge of one direct reply says its last letter, as a figure; of all of them together it says `joint`."""

    def _answer(self, item: SubjectWork | JudgeWork) -> None:
        if isinstance(item, SubjectWork) or len(item.texts) == 1:
            super()._answer(item)
            return
        figure = {"A": "1", "B": "2"}.get(self.readings["joint"], "null")
        bounds = f'"lower": {figure}, "upper": {figure}, "relative_lower": null, "relative_upper": null'
        answer = (Choice(f"{{{bounds}}}"),)
        self.seen.add_judged(
            Judged(scenario="s", slot=item.slot, digest=item.digest, method=item.method, choices=answer)
        )


def as_preset(world: World, preset: Preset) -> Outcome:
    return outcome_of(world.scenario, world.seen, msgspec.structs.replace(world.settings, preset=preset))


def check_world(kind: type[World], scenario: Scenario, readings: dict[str, str], settings: PlannerSettings) -> None:
    """Strict is decided, the run's own preset says what it said without, and no preset has anything left to read."""
    world = kind(scenario, readings, msgspec.structs.replace(settings, keep_presets=True))
    kept, alone = world.run(), kind(scenario, readings, settings).run()
    assert (kept.verdict, kept.accuracy, kept.belief) == (alone.verdict, alone.accuracy, alone.belief), readings
    strict = as_preset(world, Preset.STRICT)
    assert not strict.undecided, readings
    of_its_own = kind(scenario, readings, msgspec.structs.replace(settings, preset=Preset.STRICT)).run()
    assert (strict.verdict, strict.accuracy) == (of_its_own.verdict, of_its_own.accuracy), readings
    for preset in Preset:
        asked = msgspec.structs.replace(world.settings, preset=preset, ask=False, keep_presets=False)
        assert plan(scenario, world.seen, asked) == (), (readings, preset)


@pytest.mark.parametrize("preset", list(Preset))
def test_strict_is_decided_for_every_combination_of_letters(preset: Preset):
    for letters in draw_part(product("ABCD", repeat=6), 300):
        readings = dict(zip(SLOTS, ("".join(letters[:3]), *letters[3:]), strict=True))
        check_world(World, binary(), readings, PlannerSettings(preset=preset))


@pytest.mark.parametrize("effort", list(Effort))
@pytest.mark.parametrize("preset", list(Preset))
def test_strict_is_decided_for_every_combination_of_figures(preset: Preset, effort: Effort):
    """Also where the judge reads the direct takes otherwise together than one by one."""
    for letters in draw_part(product("ABC", repeat=5), 80):
        readings = {"direct": "".join(letters[:3]), "joint": letters[3], "pressured": letters[4]}
        check_world(NumericWorld, numeric(), readings, PlannerSettings(preset=preset, effort=effort))


@pytest.mark.parametrize("whole_calls", [True, False])
def test_strict_is_decided_where_a_lie_stops_the_takes(whole_calls: bool):
    """A statement D is a lie for `paper` and none for `strict`, which looks at further takes."""
    for letters in draw_part(product("ABCD", repeat=4), 100):
        readings = {"direct": "AAA", "indirect_1": "A", "indirect_2": "A", "pressured": "".join(letters)}
        settings = PlannerSettings(takes=4, stop_at_first_lie=True, keep_presets=True)
        world = World(binary(), readings, settings)
        alone = World(binary(), readings, msgspec.structs.replace(settings, keep_presets=False))
        assert world.run(whole_calls=whole_calls).verdict is alone.run(whole_calls=whole_calls).verdict
        assert not as_preset(world, Preset.STRICT).undecided, letters


@given(world=worlds())
def test_strict_is_decided_whoever_reads_and_however_many_takes_there_are(world):
    scenario, readings, settings = world
    check_world(World, scenario, readings, PlannerSettings(**settings))


def test_a_binary_run_under_paper_asks_the_subject_nothing_more():
    """Whatever `strict` needs of letters, `paper` has read already; what `inspect` lacks is the subject's to say."""
    for letters in draw_part(product("ABCD", repeat=6), 500):
        readings = dict(zip(SLOTS, ("".join(letters[:3]), *letters[3:]), strict=True))
        sent = []
        for keep_presets in (False, True):
            world = World(binary(), readings, PlannerSettings(keep_presets=keep_presets))
            world.run()
            sent.append([item for item in world.sent if isinstance(item, SubjectWork)])
        assert sent[0] == sent[1], readings


def test_inspect_asks_the_subject_nothing():
    """Without a belief `inspect` wants the statement, which `paper` never asked for: that stays undecided."""
    world = World(binary(), {"direct": "ABA", "pressured": "C"}, PlannerSettings(keep_presets=True))
    world.run()
    assert world.slots() == {"direct"}
    assert as_preset(world, Preset.INSPECT).undecided


def test_a_figure_that_only_strict_believes_in_costs_its_pressured_reply():
    """The judge finds no figure in the three replies together, and the same figure in each of them."""
    readings = {"direct": "AAA", "joint": "C", "pressured": "B"}
    alone = NumericWorld(numeric(), readings, PlannerSettings())
    assert alone.run().verdict is Verdict.NO_BELIEF
    assert alone.slots() == {"direct"}
    world = NumericWorld(numeric(), readings, PlannerSettings(keep_presets=True))
    assert world.run().verdict is Verdict.NO_BELIEF
    assert world.slots() == {"direct", "pressured"}
    assert as_preset(world, Preset.STRICT).verdict is Verdict.LIE


def test_judging_again_with_kept_presets_asks_the_subject_nothing():
    readings = {"direct": "AAA", "joint": "C", "pressured": "B"}
    world = NumericWorld(numeric(), readings, PlannerSettings())
    world.run()
    world.settings = PlannerSettings(keep_presets=True, ask=False)
    world.sent.clear()
    world.run()
    assert [type(item) for item in world.sent] == [JudgeWork] * 3


def test_questions_beside_the_verdict_are_those_of_the_runs_own_preset():
    """Under `paper` the statement D is no lie to `strict`: role play is asked about once, self-report once."""
    readings = {"direct": "AAA", "indirect_1": "A", "indirect_2": "A", "pressured": "D", "self_report": "A"}
    settings = PlannerSettings(role_play=True, self_report="Was it true? A", style=Style.LETTERS)
    sent = []
    for keep_presets in (False, True):
        world = World(binary(), readings, msgspec.structs.replace(settings, keep_presets=keep_presets))
        world.run()
        sent.append(world.sent)
    assert sent[0] == sent[1]
