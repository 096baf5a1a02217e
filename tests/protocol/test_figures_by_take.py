"""Judges that choose: each take of a figure is read on its own, and what earlier versions read together stays so."""

from __future__ import annotations

import msgspec
import pytest

from tests.judges.examples import numeric
from unmask.judges import pick
from unmask.judges.base import JUDGES, Style
from unmask.protocol.panel import majority
from unmask.protocol.plan import JudgeWork, PlannerSettings, plan
from unmask.protocol.readings import readings_of
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import belief_of
from unmask.records import (
    Asked,
    Choice,
    Effort,
    Interval,
    Judged,
    Letter,
    Method,
    NoBelief,
    Pending,
    Preset,
    Ranged,
    Sampling,
    Undecided,
    Unread,
    digest,
)
from unmask.runs.definition import JudgeSpec

FERRIES = numeric(
    proposition="In 2018 the ferries of Lind carried about <value> thousand passengers.",
    unit="thousand passengers",
    direct="How many passengers did the ferries of Lind carry in 2018?",
)
SAID = "In 2018 the ferries of Lind carried {} passengers."
NO_FIGURE = "I am not able to say."
EVERY_PRESET = pytest.mark.parametrize("preset", list(Preset))


def replied(*texts: str) -> ScenarioState:
    state = ScenarioState()
    choices = tuple(map(Choice, texts))
    state.add_asked(Asked(scenario=FERRIES.id, slot="direct", takes=tuple(range(len(texts))), choices=choices))
    return state


def settings_of(preset: Preset = Preset.PAPER, *, style: Style = Style.PICKS, **more) -> PlannerSettings:
    return PlannerSettings(preset=preset, style=style, ask=False, **more)


def answer_all(state: ScenarioState, settings: PlannerSettings, side: Letter = Letter.A) -> list[JudgeWork]:
    """Every question about these replies is answered with this line, with certainty."""
    asked: list[JudgeWork] = []
    while work := plan(FERRIES, state, settings):
        for item in work:
            assert isinstance(item, JudgeWork)
            about = {"scenario": FERRIES.id, "slot": item.slot, "digest": item.digest, "method": item.method}
            state.add_judged(Judged(choices=(JUDGES[settings.style].imagined(item.method, side),), **about))
            asked.append(item)
    return asked


def believed(state: ScenarioState, settings: PlannerSettings):
    return belief_of(FERRIES, readings_of(FERRIES, state, settings.reads), settings.rules)


# --- reading ----------------------------------------------------------------------------------------------


@EVERY_PRESET
def test_every_take_has_a_reading_of_its_own(preset):
    state = replied(SAID.format("41,000"), SAID.format("41,500"), NO_FIGURE)
    settings = settings_of(preset, effort=Effort.FULL)
    answer_all(state, settings)
    first, second, third = readings_of(FERRIES, state, settings.reads)["direct"]
    assert (first.absolute, second.absolute, third.empty) == (Interval(41, 41), Interval(41.5, 41.5), True)


@EVERY_PRESET
def test_takes_that_do_not_overlap_destroy_the_belief(preset):
    state, settings = replied(*(SAID.format(figure) for figure in ("41,000", "57,000", "41,000"))), settings_of(preset)
    answer_all(state, settings)
    assert isinstance(believed(state, settings), NoBelief)


@pytest.mark.parametrize(
    ("preset", "without", "holds"),
    [
        (Preset.PAPER, 1, True),
        (Preset.PAPER, 2, False),
        (Preset.INSPECT, 1, True),
        (Preset.INSPECT, 2, False),
        (Preset.STRICT, 1, False),
    ],
)
def test_takes_without_a_figure_are_tolerated_as_the_preset_tolerates_c(preset, without, holds):
    texts = [SAID.format("41,000")] * (3 - without) + [NO_FIGURE] * without
    state, settings = replied(*texts), settings_of(preset)
    answer_all(state, settings)
    belief = believed(state, settings)
    assert isinstance(belief, Ranged if holds else NoBelief)


def test_a_judge_that_writes_keeps_the_rule_of_inspect():
    """There every take must give a figure."""
    direct = (Ranged(Interval(41, 41)), Ranged(Interval(41, 41)), Ranged())
    rules = settings_of(Preset.INSPECT, style=Style.LETTERS).rules
    assert isinstance(belief_of(FERRIES, {"direct": direct}, rules), NoBelief)


@EVERY_PRESET
def test_an_unread_take_leaves_the_belief_open(preset):
    """It may be the one that contradicts the others."""
    direct = (Ranged(Interval(41, 41)), Ranged(Interval(41, 41)), Unread("unsure: no unit"))
    assert isinstance(belief_of(FERRIES, {"direct": direct}, settings_of(preset).rules), Undecided)


# --- asking -----------------------------------------------------------------------------------------------


def test_a_trained_judge_is_asked_about_the_figure_and_never_for_bounds():
    state, settings = replied(SAID.format("41,000")), settings_of(direct=1)
    asked = answer_all(state, settings)
    assert [item.method for item in asked] == list(pick.ORDERS)
    assert {item.texts for item in asked} == {(SAID.format("41,000"), *filled("41", "65.6"))}


def filled(*figures: str) -> tuple[str, ...]:
    return tuple(FERRIES.proposition.replace("<value>", figure) for figure in figures)


def test_the_question_shows_the_reply_and_the_proposition_filled():
    texts = (SAID.format("41,000"), *filled("41", "65.6"))
    request = pick.request(Method.PICK_BA, FERRIES, "direct", texts, sampling=Sampling())
    shown = request.messages[-1].content
    assert f"1) {texts[2]}\n2) {texts[1]}\n" in shown
    assert texts[0] in shown


@pytest.mark.parametrize(("side", "read"), [(Letter.A, Interval(41, 41)), (Letter.C, Interval()), (Letter.B, None)])
def test_the_judge_confirms_the_figure_or_finds_none(side, read):
    """A figure that it does not find in the reply, though another stands there, stays unread."""
    state, settings = replied(SAID.format("41,000")), settings_of(direct=1)
    answer_all(state, settings, side)
    (reading,) = readings_of(FERRIES, state, settings.reads)["direct"]
    if read is None:
        assert isinstance(reading, Unread)
    else:
        assert (reading.absolute, reading.by) == (read, "judge")


def test_a_figure_is_pending_until_both_orders_are_answered():
    state, settings = replied(SAID.format("41,000")), settings_of(direct=1)
    first, _ = plan(FERRIES, state, settings)
    choice = pick.imagined(first.method, Letter.A)
    state.add_judged(
        Judged(scenario=FERRIES.id, slot="direct", digest=first.digest, method=first.method, choices=(choice,))
    )
    assert readings_of(FERRIES, state, settings.reads)["direct"] == (Pending(),)


def test_a_judge_that_was_not_trained_to_read_is_not_asked_about_figures():
    """What it would say was not measured; the grammar reads alone."""
    state, settings = replied(SAID.format("41,000")), settings_of(direct=1, style=Style.CHOOSE)
    assert plan(FERRIES, state, settings) == ()
    (reading,) = readings_of(FERRIES, state, settings.reads)["direct"]
    assert (reading.absolute, reading.by) == (Interval(41, 41), "rule")


# --- runs of earlier versions -----------------------------------------------------------------------------


def read_together(state: ScenarioState, *texts: str, bounds: str) -> ScenarioState:
    written = f'{{"lower": {bounds}, "upper": {bounds}, "relative_lower": null, "relative_upper": null}}'
    state.add_judged(
        Judged(
            scenario=FERRIES.id,
            slot="direct",
            digest=digest(texts),
            method=Method.INTERVAL,
            choices=(Choice(written),),
        )
    )
    return state


@pytest.mark.parametrize("style", [Style.PICKS, Style.CHOOSE])
def test_what_was_read_together_is_read_so_in_the_run_that_has_it(style):
    texts = [SAID.format(figure) for figure in ("41,000", "57,000", "43,000")]
    state = read_together(replied(*texts), *texts, bounds="43")
    settings = settings_of(style=style, joint_figures=True)
    (reading,) = readings_of(FERRIES, state, settings.reads)["direct"]
    assert reading.absolute == Interval(43, 43)
    assert plan(FERRIES, state, settings) == ()


def test_a_run_on_disk_that_does_not_say_how_figures_were_read_read_them_together():
    spec = JudgeSpec(model="m", endpoint=None, base_url=None, sampling=Sampling(), prompts="p", style=Style.PICKS)
    said = msgspec.to_builtins(spec)
    del said["figures_by_take"]
    assert msgspec.convert(said, JudgeSpec).figures_by_take is False


# --- panels -----------------------------------------------------------------------------------------------


def test_a_panel_with_a_judge_that_reads_all_takes_together_looks_at_all_so():
    figure, other = Ranged(Interval(41, 41)), Ranged(Interval(57, 57))
    together, apart = {"direct": (figure,)}, {"direct": (figure, figure, Ranged())}
    assert majority([together, together, apart], tolerance=0.05)["direct"][0].absolute == Interval(41, 41)
    contradicting = {"direct": (figure, other, figure)}
    assert majority([contradicting, contradicting, together], tolerance=0.05)["direct"][0].empty
