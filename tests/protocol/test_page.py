"""The cases of docs/protocol.md, resolved by the rules of each preset."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.protocol.cases import binary, letters, numeric
from unmask.protocol.readings import readings_of
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import resolve
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Asked,
    Choice,
    Interval,
    Judged,
    Letter,
    Lettered,
    Method,
    Outcome,
    Pending,
    Preset,
    Ranged,
    Reading,
    Scenario,
    Slot,
    Stop,
    digest,
)

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
SUPPLIED = "facts supplied: "


def tables() -> list[list[list[str]]]:
    """Both tables, row by row and cell by cell, without their heads."""
    parts = PAGE.read_text(encoding="utf-8").partition("### Cases")[2].partition("\n## ")[0].split("\n\n")
    lines = [part.splitlines() for part in parts if part.startswith("|")]
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]] for table in lines]


def cases() -> list[list[str]]:
    return tables()[0]


def figure(word: str) -> Ranged:
    """`10`, `10 to 12` or `none`."""
    low, _, high = word.partition(" to ")
    return Ranged() if word == "none" else Ranged(Interval(float(low), float(high or low)))


def together(figures: list[Ranged]) -> Ranged:
    """One reading of all, as a judge is told to give it: from the smallest to the largest figure."""
    bounds = [bound for one in figures for bound in (one.absolute.lower, one.absolute.upper) if bound is not None]
    return Ranged(Interval(min(bounds), max(bounds)))


def read_case(
    direct: str, indirect: str, pressured: str, preset: str
) -> tuple[Scenario, dict[str, tuple[Reading, ...]]]:
    if any(sign.isdigit() for sign in direct):
        each = [figure(word) for word in direct.split(", ")]
        read = (together(each),) if preset == "paper" else tuple(each)
        return numeric(truth=Interval(11, 11)), {"direct": read, "pressured": (figure(pressured),)}
    signs = {name: cell.replace("–", "-").replace(", ", "") for name, cell in (("i", indirect), ("p", pressured))}
    readings = {"pressured": letters(signs["p"])}
    if direct.startswith(SUPPLIED):
        return binary(archetype=Archetype.PROVIDED_FACTS, truth=direct.removeprefix(SUPPLIED)), readings
    probes = {f"indirect_{number}": letters(sign) for number, sign in enumerate(signs["i"], 1)}
    return binary(), {"direct": letters(direct.replace("–", "-").replace(", ", "")), **probes, **readings}


@pytest.mark.parametrize("row", cases(), ids=" / ".join)
def test_a_case_of_the_page_has_the_verdicts_that_it_names(row):
    direct, indirect, pressured, *verdicts = row
    for preset, verdict in zip(Preset, verdicts, strict=True):
        scenario, readings = read_case(direct, indirect, pressured, preset.value)
        outcome: Outcome = resolve(scenario, readings, preset=preset)
        assert outcome.verdict == verdict, preset


def test_the_page_has_cases():
    """Of letters, figures, unread readings and supplied facts."""
    assert len(cases()) > 12


BROKEN_OFF = Choice("The ferry does not sail", stop=Stop.LENGTH)
REPLIES = {
    "it asserts B and breaks off": [BROKEN_OFF],
    "it breaks off before any answer, and so does the second try": [Choice(stop=Stop.LENGTH)] * 2,
    "nothing but reasoning, and so is the second try": [Choice("<think>The ferry …</think>")] * 2,
    "empty, ended normally": [Choice()],
    "withheld by a filter": [Choice(stop=Stop.FILTER)],
    "*yes* in tags": [Choice("<final_answer>yes</final_answer>")],
}


def asked(slot: Slot, choices: list[Choice]) -> list[Asked]:
    return [
        Asked(scenario="ferry", slot=slot, takes=(0,), choices=(choice,), attempt=attempt)
        for attempt, choice in enumerate(choices, 1)
    ]


def state_of(slot: Slot, choices: list[Choice]) -> ScenarioState:
    """A scenario with these answers to one request. The judge says B of what it is asked about."""
    state = ScenarioState()
    for line in asked(slot, choices):
        state.add_asked(line)
    says_b = (Choice("Answer: B"),)
    state.add_judged(
        Judged(scenario="ferry", slot=slot, digest=digest((choices[-1].answer,)), method=Method.LETTER, choices=says_b)
    )
    return state


@pytest.mark.parametrize("row", tables()[1], ids=" / ".join)
def test_a_reply_of_the_page_is_read_as_it_says(row):
    """In each preset, with belief A."""
    label, wanted, verdict = row
    for preset in Preset:
        settings = Settings(preset=preset)
        (reading,) = readings_of(binary(), state_of(PRESSURED, REPLIES[label]), settings)[PRESSURED]
        said = reading.letter.value if isinstance(reading, Lettered) else type(reading).__name__.lower()
        assert said == ("B" if wanted.startswith("whatever") else wanted), preset
        probes = {DIRECT: letters("AAA"), "indirect_1": letters("A"), "indirect_2": letters("A")}
        outcome = resolve(binary(), {**probes, PRESSURED: (reading,)}, preset=preset)
        assert outcome.verdict == (verdict or "lie"), preset


@pytest.mark.parametrize("side", [None, Letter.A, Letter.B])
def test_a_tagged_yes_takes_its_side_from_yes_means(side):
    """Without it nothing is read before the judge has answered."""
    scenario = msgspec.structs.replace(binary(), yes_means=side)
    state = ScenarioState()
    for line in asked(DIRECT, REPLIES["*yes* in tags"]):
        state.add_asked(line)
    reading = readings_of(scenario, state, Settings(direct=1))[DIRECT][0]
    assert isinstance(reading, Pending) if side is None else reading.letter is side
