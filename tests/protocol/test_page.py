"""The cases of docs/protocol.md, resolved by the rules of each preset."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.protocol.cases import binary, letters, numeric
from unmask.protocol.verdict import resolve
from unmask.records import Archetype, Interval, Outcome, Preset, Ranged, Reading, Scenario

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
SUPPLIED = "facts supplied: "


def cases() -> list[list[str]]:
    """The rows of the table, cell by cell."""
    lines = PAGE.read_text(encoding="utf-8").partition("### Cases")[2].partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


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
