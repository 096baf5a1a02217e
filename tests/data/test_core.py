"""The bundled sets `core` and `tiny` keep what the card of `core` promises."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.data import card
from unmask.data.check import check_source
from unmask.data.export import export_reference
from unmask.data.form import encode_lines
from unmask.data.load import bundled_sets, load
from unmask.records import Archetype, Interval, Kind, Letter, Scenario

CORE = load("core")
SCENARIOS = CORE.scenarios
TINY = load("tiny")
MOTIVES = {"money", "loyalty", "fear", "kindness", "authority", "convenience", "ideology", "deadline", "user_wish"}


def of(archetype: Archetype) -> list[Scenario]:
    return [scenario for scenario in SCENARIOS if scenario.archetype is archetype]


def test_fifty_scenarios_of_each_archetype():
    """In one file, archetype after archetype, ids in order."""
    assert CORE.counts == dict.fromkeys(Archetype, 50)
    assert TINY.counts == dict.fromkeys(Archetype, 2)
    assert bundled_sets()["core"].read_bytes() == encode_lines(SCENARIOS)


@pytest.mark.parametrize("name", ["core", "tiny"])
def test_no_check_finds_anything(name: str):
    """Neither errors nor warnings."""
    checked = check_source(name)
    assert checked.errors + checked.warnings == ()


@pytest.mark.parametrize("archetype", Archetype)
def test_pressure_is_explicit_in_three_of_ten_and_pushes_both_ways(archetype: Archetype):
    """And marked everywhere. Figures are pushed up as often as down, to within one scenario, from a closed interval."""
    assert Counter(scenario.pressure for scenario in of(archetype)) == {"explicit": 15, "situational": 35}
    if archetype is Archetype.STATISTICS:
        pushes = Counter(scenario.pushes for scenario in of(archetype))
        assert abs(pushes["up"] - pushes["down"]) <= 1
        for scenario in of(archetype):
            assert isinstance(scenario.truth, Interval)
            assert scenario.truth.lower is not None
            assert scenario.truth.upper is not None
            assert scenario.truth.lower <= scenario.truth.upper


@pytest.mark.parametrize("archetype", [archetype for archetype in Archetype if archetype is not Archetype.STATISTICS])
def test_truth_and_yes_are_half_each_and_independent(archetype: Archetype):
    """Truth exactly; what yes means, and whether it is true, to within one scenario."""
    scenarios = of(archetype)
    assert sum(scenario.truth is Letter.A for scenario in scenarios) == 25
    assert 24 <= sum(scenario.yes_means is Letter.A for scenario in scenarios) <= 26
    assert 24 <= sum(scenario.yes_means is scenario.truth for scenario in scenarios) <= 26


def test_yes_and_truth_are_independent_in_tiny():
    """Each of the four combinations occurs equally often, so a yes-sayer gains nothing."""
    pairs = Counter((scenario.truth, scenario.yes_means) for scenario in TINY if scenario.direct)
    assert {pairs[Letter(truth), Letter(yes)] for truth in "AB" for yes in "AB"} == {2}


def test_every_line_carries_the_one_canary():
    """The string of the card."""
    (canary,) = {scenario.canary for scenario in SCENARIOS}
    assert canary
    assert re.search(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", canary)
    assert f"    {canary}\n" in card.published("core")
    assert canary != load("tiny").scenarios[0].canary


@pytest.mark.parametrize("scenario", [*SCENARIOS, *TINY], ids=lambda scenario: scenario.id)
def test_a_scenario_is_complete(scenario: Scenario):
    """Evidence, motive, domain and pressure; the probes its archetype has, each asking for tags where it should."""
    assert scenario.evidence
    assert scenario.domain
    assert scenario.motive in MOTIVES or scenario in TINY.scenarios
    match scenario.archetype:
        case Archetype.PROVIDED_FACTS:
            assert scenario.check
            assert (scenario.direct, scenario.indirect) == (None, ())
        case Archetype.STATISTICS:
            assert scenario.unit
            assert scenario.tolerance
            assert scenario.pushes
            assert scenario.indirect == ()
            assert "<final_answer>" in (scenario.direct or "")
        case _:
            assert scenario.kind is Kind.BINARY
            assert scenario.yes_means in (Letter.A, Letter.B)
            assert len(scenario.indirect) == 2
            assert "<final_answer>" in (scenario.direct or "")


def test_exported_and_loaded_again_it_is_the_same(tmp_path: Path):
    """`unmask data export core`: the same scenarios, the same hash."""
    written = export_reference(CORE, out_dir=tmp_path / "csv")
    assert [path.stem for path in written] == list(Archetype)
    again = load(tmp_path / "csv")
    assert (again.scenarios, again.hash) == (SCENARIOS, CORE.hash)


def test_the_card_has_the_numbers_of_the_data():
    """The shipped card, and the hash in docs/data.md, are what `python -m tests.data.card` writes now."""
    for path in card.WRITTEN["core"]:
        text = path.read_text(encoding="utf-8")
        assert CORE.hash in text
        assert text == card.with_tables(text, name="core"), "run `python -m tests.data.card`"


def test_the_card_tells_what_the_second_pass_found():
    """Every scenario was looked at, and the numbers of the card are those of the record."""
    review = json.loads((card.ROOT / "docs" / "core-review.json").read_text(encoding="utf-8"))
    assert set(review) == set(CORE.ids)
    passed = sum(False not in answers.values() for answers in review.values())
    weak = [name for name, answers in review.items() if "5 % widening" in answers["note"]]
    text = " ".join(card.published("core").split())
    assert f"Of 300 scenarios {passed} passed all five" in text
    assert len(weak) == 9
    assert "so were nine `statistics` scenarios" in text


@pytest.mark.parametrize(
    "archetype",
    [Archetype.KNOWN_FACTS, Archetype.DOUBLING_DOWN, Archetype.CONTINUATIONS, Archetype.DISINFORMATION],
)
def test_half_of_the_direct_probes_ask_for_steps(archetype: Archetype):
    """So that a difference between archetypes is not one between ways of asking."""
    assert 24 <= sum("step by step" in (scenario.direct or "") for scenario in of(archetype)) <= 26
