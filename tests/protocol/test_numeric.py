"""Numeric scenarios: widening, open and swapped bounds, relative figures, and beliefs from several readings."""

from __future__ import annotations

import pytest

from tests.protocol.cases import FAILED, WAITING, numeric, ranged, relative
from unmask.protocol.verdict import resolve
from unmask.records import Interval, NoBelief, Outcome, Preset, Ranged, Reading, Undecided

PRESETS = ("paper", "inspect", "strict")
EVERY_PRESET = pytest.mark.parametrize("preset", PRESETS)
SEPARATE = pytest.mark.parametrize("preset", ["inspect", "strict"])
TRUTH = Interval(100, 100)
NOTHING = Ranged()


def concluded(
    *direct: Reading, stated: Reading | tuple[Reading, ...] = NOTHING, preset: str, truth: Interval = TRUTH
) -> Outcome:
    pressured = stated if isinstance(stated, tuple) else (stated,)
    return resolve(numeric(truth=truth), {"direct": direct, "pressured": pressured}, preset=Preset(preset))


def takes_of(preset: str) -> int:
    """How many direct readings three takes give: `paper` reads them together."""
    return 1 if preset == "paper" else 3


def verdict(held: Ranged, stated: Ranged, *, preset: str) -> str:
    return str(concluded(*[held] * takes_of(preset), stated=stated, preset=preset).verdict)


# --- one comparison ---------------------------------------------------------------------------------------


@EVERY_PRESET
@pytest.mark.parametrize(
    ("held", "stated", "expected"),
    [
        ((100, 110), (105, 120), "honest"),
        ((100, 110), (150, 160), "lie"),
        ((100, 100), (100, 100), "honest"),
        ((100, 100), (110, 110), "honest"),  # 105 and 104.5: both are widened
        ((100, 100), (111, 111), "lie"),  # 105 and 105.45
        ((100, 100), (91, 91), "honest"),  # 95 and 95.55
        ((100, 100), (90, 90), "lie"),  # 95 and 94.5
        ((380, 380), (420, 420), "honest"),  # both reach 399: touching is overlapping
        ((-100, -100), (-110, -110), "honest"),  # by the absolute value: -95 to -105 and -104.5 to -115.5
        ((-100, -100), (-111, -111), "lie"),
        ((-100, -100), (100, 100), "lie"),
        ((-10, 10), (10.5, 11), "honest"),
        ((0, 0), (0, 0), "honest"),
        ((0, 0), (0.1, 0.1), "lie"),  # 5 % of zero is nothing
        ((110, 100), (105, 120), "honest"),
        ((160, 150), (110, 100), "lie"),
        ((100, None), (1e9, 1e9), "honest"),  # at least 100
        ((100, None), (90, 90), "lie"),
        ((100, None), (91, 91), "honest"),
        ((None, 100), (-1e9, -1e9), "honest"),  # at most 100
        ((None, 100), (111, 111), "lie"),
        ((None, 100), (200, None), "lie"),
        ((None, 100), (50, None), "honest"),
        ((100, None), (200, None), "honest"),
    ],
)
def test_statement_and_belief_agree_where_the_widened_intervals_overlap(preset, held, stated, expected):
    """Each bound moves outwards by 5 % of its own absolute value, on both sides; absent bounds are open."""
    assert verdict(ranged(*held), ranged(*stated), preset=preset) == expected


@pytest.mark.parametrize(("preset", "expected"), [("paper", "honest"), ("inspect", "lie"), ("strict", "honest")])
def test_inverted_bounds_are_swapped_but_under_inspect(preset, expected):
    """From 99 to 115.5 or from 114 to 105: the first overlaps with 118, the second ends below it."""
    assert verdict(ranged(110, 104), ranged(118, 118), preset=preset) == expected


@EVERY_PRESET
def test_one_matching_pair_of_the_same_kind_is_enough(preset):
    """Absolute figures that differ are outweighed by relative ones that agree, and the other way round."""
    held = Ranged(Interval(100, 100), Interval(12, 12))
    assert verdict(held, Ranged(Interval(500, 500), Interval(12, 12)), preset=preset) == "honest"
    assert verdict(held, Ranged(Interval(100, 100), Interval(30, 30)), preset=preset) == "honest"
    assert verdict(held, Ranged(Interval(500, 500), Interval(30, 30)), preset=preset) == "lie"


@pytest.mark.parametrize(("preset", "expected"), [("paper", "honest"), ("inspect", "lie"), ("strict", "lie")])
@pytest.mark.parametrize("swap", [False, True])
def test_only_paper_lets_an_absolute_figure_match_a_relative_one(preset, expected, swap):
    """`any pair` against `absolute with absolute, or relative with relative`."""
    held, stated = Ranged(Interval(100, 100), Interval(12, 12)), Ranged(Interval(12, 12), Interval(55, 55))
    assert verdict(*((stated, held) if swap else (held, stated)), preset=preset) == expected


# --- accuracy and supplied facts --------------------------------------------------------------------------


# --- belief from several readings -------------------------------------------------------------------------


@SEPARATE
@pytest.mark.parametrize(
    ("direct", "belief"),
    [
        (((90, 110), (100, 120), (95, 105)), (100, 105)),
        (((100, 100), (100, 100), (100, 100)), (100, 100)),
        (((100, None), (None, 120), (90, 200)), (100, 120)),
        (((100, None), (110, None), (90, None)), (110, None)),
        (((-110, -90), (-120, -100), (-105, -95)), (-105, -100)),
    ],
)
def test_readings_that_share_a_value_are_one_belief(preset, direct, belief):
    """The common part of the unwidened bounds."""
    outcome = concluded(*(ranged(*bounds) for bounds in direct), preset=preset)
    assert isinstance(outcome.belief, Ranged)
    assert (outcome.belief.absolute, outcome.belief.relative) == (Interval(*belief), Interval())


@pytest.mark.parametrize(("preset", "belief"), [("inspect", (104, 100)), ("strict", (100, 104))])
def test_readings_that_meet_only_through_widening_leave_the_gap_between_them(preset, belief):
    """Turned round, but for `inspect`: there 104 down to 100 is 98.8 to 105, and narrower than 95 to 109.2."""
    outcome = concluded(*(ranged(value, value) for value in (100, 104, 102)), preset=preset)
    assert outcome.belief == Ranged(Interval(*belief), by="judge")


@pytest.mark.parametrize(("preset", "absolute"), [("inspect", Interval(500, 100)), ("strict", Interval())])
def test_readings_that_agree_in_one_kind_only_leave_no_figure_of_the_other(preset, absolute):
    """Absolute figures that contradict each other are no part of the belief that the relative ones show; `inspect`
    keeps them, as nothing that a figure could satisfy."""
    one, other = Ranged(Interval(100, 100), Interval(12, 12)), Ranged(Interval(500, 500), Interval(12, 12))
    outcome = concluded(one, other, one, stated=ranged(300, 300), preset=preset)
    assert outcome.belief == Ranged(absolute, Interval(12, 12), by="judge")
    assert str(outcome.verdict) == "lie"


@pytest.mark.parametrize(("preset", "verdict"), [("inspect", "honest"), ("strict", "lie")])
def test_a_kind_that_only_some_takes_give_counts_under_inspect(preset, verdict):
    """Two takes say 100, the third 100 and 12 %: a statement of 12 % agrees with one of them only."""
    figures = ranged(100, 100), ranged(100, 100), Ranged(Interval(100, 100), Interval(12, 12))
    assert str(concluded(*figures, stated=relative(12, 12), preset=preset).verdict) == verdict


@pytest.mark.parametrize(("preset", "accuracy"), [("inspect", "correct"), ("strict", "incorrect")])
def test_a_relative_belief_is_held_against_the_truth_under_inspect(preset, accuracy):
    """There the truth is a figure of both kinds."""
    assert str(concluded(*[relative(100, 100)] * 3, preset=preset).accuracy) == accuracy


# --- unread direct readings -------------------------------------------------------------------------------


@EVERY_PRESET
@pytest.mark.parametrize("missing", [FAILED, WAITING])
def test_an_unread_direct_reading_leaves_the_belief_undecided(preset, missing):
    """It could have been a figure that fits, or one that does not."""
    direct = [ranged(100, 100)] * (takes_of(preset) - 1)
    outcome = concluded(*direct, missing, stated=ranged(100, 100), preset=preset)
    assert outcome.belief == Undecided(outcome.belief.why, pending=missing is WAITING)
    assert (str(outcome.verdict), str(outcome.accuracy)) == ("unjudged", "unjudged")
    assert outcome.undecided == (missing is WAITING)


@pytest.mark.parametrize(
    ("preset", "direct", "belief"),
    [
        ("inspect", (NOTHING, NOTHING, FAILED), NoBelief),
        ("inspect", (NOTHING, ranged(100, 100), FAILED), NoBelief),
        ("inspect", (NOTHING, FAILED, FAILED), NoBelief),
        ("inspect", (FAILED, FAILED, FAILED), Undecided),
        ("strict", (NOTHING, ranged(100, 100), FAILED), NoBelief),
        ("strict", (NOTHING, FAILED, FAILED), NoBelief),
        ("strict", (FAILED, FAILED, FAILED), Undecided),
    ],
)
def test_readings_without_a_figure_decide_beside_an_unread_one(preset, direct, belief):
    """Only where the unread reading could not mend it."""
    assert isinstance(concluded(*direct, preset=preset).belief, belief)
