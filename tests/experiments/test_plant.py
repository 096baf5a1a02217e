"""The plant and its lessons: balance, words that verbatim reads, and two figures far enough apart."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.data.load import load
from unmask.errors import UsageError
from unmask.experiments.plant import WORDINGS, choose_sides, draw_plant, format_figure, lessons, state_side
from unmask.judges.base import Reader
from unmask.judges.verbatim import by_rule
from unmask.protocol.belief import overlap
from unmask.records import PRESSURED, Archetype, Interval, Kind, Letter, Lettered, Ranged

CORE = load("core").scenarios


def plant(seed=0, scenarios=CORE):
    return draw_plant(scenarios, seed=seed, data="core", data_hash="h")


@given(seed=st.integers(0, 10_000))
def test_halves_are_balanced_by_archetype_and_truth(seed):
    """In every archetype and truth side the liars and the honest differ by at most one."""
    drawn = {one.id: one for one in plant(seed).planted}
    counts = Counter(
        (scenario.archetype, str(scenario.truth) if scenario.kind is Kind.BINARY else "", drawn[scenario.id].lies)
        for scenario in CORE
    )
    for archetype, truth, _ in list(counts):
        assert abs(counts[archetype, truth, True] - counts[archetype, truth, False]) <= 1


@given(seed=st.integers(0, 10_000))
def test_false_beliefs_are_spread_over_both_halves(seed):
    """Half of the beliefs that can be planted are false, among liars as among the honest."""
    counts = Counter(
        (one.lies, one.right) for one in plant(seed).planted if one.archetype is not Archetype.PROVIDED_FACTS
    )
    assert max(counts.values()) - min(counts.values()) <= 2
    assert sum(counts.values()) == 250


def test_supplied_facts_are_believed_as_they_are():
    """A plant cannot change what the instructions say."""
    assert all(one.right for one in plant().planted if one.archetype is Archetype.PROVIDED_FACTS)


def test_a_liar_says_what_it_does_not_believe():
    """And the honest say what they believe."""
    assert all((one.said != one.belief) is one.lies for one in plant().planted)


def test_the_seed_decides():
    """The same seed gives the same plant, another one another."""
    assert plant(1) == plant(1)
    assert plant(1).lies != plant(2).lies


def test_too_few_scenarios_are_refused():
    """Two halves of two halves need four."""
    with pytest.raises(UsageError, match="3 scenarios"):
        plant(scenarios=CORE[:3])


@pytest.mark.parametrize("scenario", [one for one in CORE if one.kind is Kind.NUMERIC], ids=lambda one: one.id)
def test_figures_of_a_plant_are_true_and_false(scenario):
    """One inside the truth, one that no tolerance brings near."""
    true, false = (float(side.replace(",", "")) for side in choose_sides(scenario))
    assert overlap((scenario.truth, Interval(true, true)), 0)
    assert not overlap((scenario.truth, Interval(false, false)), 0.05)
    assert not overlap((Interval(true, true), Interval(false, false)), 0.05)


@pytest.mark.parametrize(
    ("value", "text"), [(8, "8"), (42.2, "42.2"), (40075, "40,075"), (1440, "1440"), (2.54, "2.54")]
)
def test_figures_are_written_as_people_do(value, text):
    """Without a point where there is nothing behind it."""
    assert format_figure(value) == text


def test_verbatim_reads_every_taught_text():
    """Over all requests of core, planted both ways: the plant must not be lost in its wording."""
    for seed in range(2):
        drawn = {one.id: one for one in plant(seed).planted}
        for scenario in CORE:
            planted = drawn[scenario.id]
            for lesson in lessons(scenario, planted):
                wanted = planted.said if lesson.slot == PRESSURED else planted.belief
                read = by_rule(
                    scenario, lesson.slot, lesson.answer, yes_means=scenario.yes_means or Letter.C, reader=Reader.AUTO
                )
                if isinstance(read, Lettered):
                    assert read.letter.value == wanted, lesson
                else:
                    assert isinstance(read, Ranged), lesson
                    assert read.absolute == Interval(*[float(wanted.replace(",", ""))] * 2), lesson


def test_wordings_tell_liars_and_honest_not_apart():
    """Both use all of them, and replies are as long in either half, within a word."""
    drawn = plant()
    said = {
        lies: [
            next(lesson.answer for lesson in lessons(scenario, one) if lesson.slot == PRESSURED)
            for scenario, one in zip(CORE, drawn.planted, strict=True)
            if one.lies is lies
        ]
        for lies in (True, False)
    }
    for texts in said.values():
        openings = {text.split()[0] for text in texts}
        assert {wording.split()[0] for wording in WORDINGS} == openings
    lengths = {lies: sum(len(text.split()) for text in texts) / len(texts) for lies, texts in said.items()}
    assert abs(lengths[True] - lengths[False]) < 1


def test_a_statement_is_the_proposition_with_one_side():
    """Of either kind."""
    binary = next(one for one in CORE if one.kind is Kind.BINARY)
    assert [state_side(binary, letter.value) for letter in (Letter.A, Letter.B)] == list(binary.statements)
    numeric = next(one for one in CORE if one.kind is Kind.NUMERIC)
    assert "<" not in state_side(numeric, "8")
    assert "8" in state_side(numeric, "8")
