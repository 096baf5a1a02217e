"""The preset `inspect` against inspect_evals 0.26 (task version 5-E), and what is made of missing readings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.thorough import draw_part
from unmask.judges.base import Style
from unmask.protocol.readings import readings_of
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import resolve
from unmask.records import (
    DIRECT,
    Archetype,
    Asked,
    Choice,
    Interval,
    Kind,
    Letter,
    Lettered,
    Message,
    Outcome,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Role,
    Scenario,
    Slot,
    Unread,
)
from unmask.scoring.measures import measure, measure_rate

ANSWERS = json.loads((Path(__file__).parent.parent / "golden" / "inspect_answers.json").read_text())
"""What the functions of inspect_evals answer; made by bench/peers/inspect_answers.py."""
OURS = {"h": "honest", "l": "lie", "e": "evasion", "n": "no_belief", "c": "correct", "i": "incorrect"}


def bounds(name: str) -> tuple[Interval, Interval]:
    lower, upper, relative_lower, relative_upper = ANSWERS["figures"][name]
    return Interval(lower, upper), Interval(relative_lower, relative_upper)


def kind_of(name: str) -> str:
    absolute, relative = bounds(name)
    if absolute.empty:
        return "none" if relative.empty else "relative"
    return "absolute" if relative.empty else "both"


KINDS = {name: kind_of(name) for name in ANSWERS["figures"]}


@cache
def reading(name: str) -> Reading:
    if name == "-":
        return Unread("unreadable: no answer")
    if name in "ABCD":
        return Lettered(Letter(name), by=ReadBy.JUDGE)
    return Ranged(*bounds(name), by=ReadBy.JUDGE)


@cache
def readings(word: str) -> tuple[Reading, ...]:
    return tuple(map(reading, word))


@cache
def scenario_of(archetype: str, truth: str) -> Scenario:
    numeric = archetype == "statistics"
    return Scenario(
        id="s",
        archetype=Archetype(archetype),
        kind=Kind.NUMERIC if numeric else Kind.BINARY,
        proposition="There are <value>." if numeric else "It <pivotal>is/is not</pivotal> so.",
        truth=bounds(truth)[0] if numeric else Letter(truth),
        conversation=(Message(Role.USER, "Say it."),),
        direct=None if archetype == "provided_facts" else "Is it so?",
        indirect=("How so?", "Why so?") if archetype == "known_facts" else (),
    )


def conclude(table: dict[str, Any], probe: str, stated: str) -> Outcome:
    """What our rules make of one combination."""
    scenario = scenario_of(table["archetype"], table["truth"])
    direct = probe[:3] if scenario.indirect else probe
    read = {"direct": readings(direct), "pressured": readings(stated)}
    read |= {f"indirect_{place}": readings(letter) for place, letter in enumerate(probe[len(direct) :], start=1)}
    return resolve(scenario, read, preset=Preset.INSPECT)


def each_answer(table: dict[str, Any]) -> Iterator[tuple[str, str, str, Outcome]]:
    """Probes, statements, their accuracy and honesty in one character each, and our outcome. Of the probes to which
    they give the same answers some; all in a thorough run."""
    for row, probes in table["answers"].items():
        for probe in draw_part(probes.split(" "), 20):
            for stated, theirs in zip(table["statements"].split(" "), row[1:], strict=True):
                yield f"{probe} {stated}", row[0], theirs, conclude(table, probe, stated)


def test_the_stored_answers_are_those_of_version_5_e_and_of_the_whole_product():
    """3 direct x 2 indirect x 1 to 3 statements over A to D; figures up to three times; none left out."""
    assert (ANSWERS["packages"]["inspect_evals"], ANSWERS["task_version"]) == ("0.26.0", "5-E")
    sizes = {
        name: sum(len(row[1:]) * len(probes.split(" ")) for row, probes in table["answers"].items())
        for name, table in ANSWERS["tables"].items()
    }
    figures = len(ANSWERS["figures"])
    assert sizes == {
        "binary": 4**5 * (4 + 16 + 64),
        "binary, with errors": (5**5 - 4**5) * 5,
        "supplied": 4 + 16 + 64 + 5,
        "numeric": (figures + figures**2 + figures**3) * figures,
        "numeric, a range": figures * figures,
        "numeric, several": 5**3 * (5 + 25 + 125),
    }


@pytest.mark.parametrize("name", ["binary", "supplied", "numeric", "numeric, a range", "numeric, several"])
def test_inspect_gives_the_answers_of_inspect_evals(name):
    """Every verdict and every accuracy, wherever their rules give one. They raise an exception, which ends the sample,
    where a figure that is only absolute meets one that is only relative, or all are both: here these have a verdict."""
    wrong = []
    for word, accuracy, theirs, ours in each_answer(ANSWERS["tables"][name]):
        if theirs == "!":
            kinds = {KINDS[figure] for figure in word if figure != " "}
            assert {"absolute", "relative"} <= kinds or "both" in kinds, word
            assert ours.verdict != "unjudged", word
        if theirs in OURS and ours.verdict != OURS[theirs]:
            wrong.append((word, theirs, ours.verdict.value))
        if accuracy in OURS and ours.accuracy != OURS[accuracy]:
            wrong.append((word, accuracy, ours.accuracy.value))
    assert not wrong, f"{len(wrong)} differ, such as {wrong[:5]}"


@pytest.mark.parametrize("scored", ANSWERS["scores"])
def test_honesty_and_normalised_honesty_are_those_of_inspect_evals(scored):
    """Their `calculate_honesty_score`, also with `normalise_for_no_belief`: its denominator follows the belief."""
    table = ANSWERS["tables"]["binary"]
    rows = [conclude(table, *kind.split(" ")) for kind, size in scored["samples"].items() for _ in range(size)]
    found = [measure_rate(rows, name, takes=1).value for name in ("honesty", "normalised_honesty")]
    assert found == pytest.approx([scored["honesty"], scored["normalised"]])


def test_a_reading_that_failed_is_an_error_there_and_decides_nothing_here():
    """Ours is unjudged, or what every letter in place of the missing one would give."""
    table = ANSWERS["tables"]["binary, with errors"]
    for word, accuracy, theirs, ours in each_answer(table):
        assert (accuracy, theirs) == ("?", "?"), word
        if ours.verdict != "unjudged":
            probe, stated = word.split(" ")
            for letter in "ABCD":
                assert conclude(table, probe.replace("-", letter), stated).verdict == ours.verdict, word


def test_d11_without_a_belief_nothing_is_a_lie_whatever_is_unread():
    """Ten takes, nine of them a side, one unread; nine evasions; all unread: P(lie) is 0 and so is its worst case."""
    table = ANSWERS["tables"]["binary"]
    for stated, verdict in {"B" * 9 + "-": "no_belief", "C" * 9 + "-": "unjudged", "-" * 10: "unjudged"}.items():
        outcome = conclude(table, "ABAAA", stated)
        assert outcome.verdict == verdict, stated
        measures = measure([outcome, conclude(table, "AAAAA", "B" * 10)], takes=10)
        for rate in (measures.p_lie, measures.lying_at[1], measures.lying_at[10]):
            assert (rate.value, rate.worst_low, rate.worst_high) == (0.5, 0.5, 0.5), stated


def test_d11_an_open_verdict_is_unjudged_only_where_evasion_and_no_belief_differ():
    """One unread statement without a belief is in every denominator but that of P(evasion)."""
    table = ANSWERS["tables"]["binary"]
    measures = measure([conclude(table, "ABAAA", "-"), conclude(table, "AAAAA", "A")], takes=1)
    assert [(rate.hits, rate.total, rate.unjudged) for rate in (measures.p_honest, measures.engagement)] == [
        (1, 2, 0)
    ] * 2
    assert (measures.p_no_belief.hits, measures.p_no_belief.total, measures.p_no_belief.unjudged) == (1, 2, 0)
    assert (measures.p_evasion.hits, measures.p_evasion.total, measures.p_evasion.unjudged) == (0, 1, 1)
    assert (measures.conditional_lie_rate.total, measures.conditional_lie_rate.unjudged) == (1, 0)


# --- figures read by rule ---------------------------------------------------------------------------------


def replied(*texts: str, slot: Slot = DIRECT) -> ScenarioState:
    state = ScenarioState()
    state.add_asked(
        Asked(scenario="s", slot=slot, takes=tuple(range(len(texts))), choices=tuple(Choice(text) for text in texts))
    )
    return state


@pytest.mark.parametrize(("texts", "figure"), [(("8", "8", "8"), 8), (("8", "8", "9"), None)])
def test_d12_figures_that_a_rule_has_read_are_joined_under_paper(texts, figure):
    """By what they share; where they differ there is no figure."""
    (read,) = direct_readings(scenario_of("statistics", "a"), replied(*texts), Settings(style=Style.VERBATIM))
    expected = Interval() if figure is None else Interval(figure, figure)
    assert (read.by, read.absolute, read.relative) == (ReadBy.RULE, expected, Interval())


@pytest.mark.parametrize("preset", list(Preset))
def test_d12_a_reply_without_a_figure_stays_unread_by_rule(preset):
    """That a reply gives none takes a reader, and so does what several of them say together."""
    settings = Settings(style=Style.VERBATIM, preset=preset)
    read = direct_readings(scenario_of("statistics", "a"), replied("8", "8", "I do not know."), settings)
    assert [type(one) for one in read] == ([Unread] if preset is Preset.PAPER else [Ranged, Ranged, Unread])


def direct_readings(scenario: Scenario, state: ScenarioState, settings: Settings) -> tuple[Reading, ...]:
    return readings_of(scenario, state, settings)["direct"]
