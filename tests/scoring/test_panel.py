"""A panel reads what more than half of it reads."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.records import Interval, Letter, Lettered, Pending, Ranged, Unread
from unmask.scoring.panel import combine_readings, majority

A, B, C = (Lettered(letter, by="judge") for letter in (Letter.A, Letter.B, Letter.C))
LOST = Unread("failed: no answer")
WAITING = Pending()


def figure(low: float | None, high: float | None = None) -> Ranged:
    return Ranged(Interval(low, low if high is None else high), by="judge")


def read(*readings):
    return combine_readings(readings, tolerance=0.05)


@settings(deadline=None)
@given(st.lists(st.sampled_from([A, B, C, LOST, WAITING]), min_size=2, max_size=7))
def test_a_letter_needs_more_than_half_of_the_whole_panel(readings):
    """And where there is none, the outcome is pending while somebody has yet to read, else unread."""
    votes = Counter(one.letter for one in readings if isinstance(one, Lettered))
    winner = [letter for letter, count in votes.items() if count > len(readings) / 2]
    found = read(*readings)
    if winner:
        assert isinstance(found, Lettered)
        assert found.letter is winner[0]
    else:
        assert isinstance(found, Pending if WAITING in readings else Unread)


def test_a_tie_says_how_the_panel_split():
    """Unread with a reason that starts with its word and has the votes."""
    found = read(A, B, C)
    assert found.reason == "tie: no majority in a panel of 3 (A 1, B 1, C 1)"


def test_what_no_judge_had_to_read_stays_marked():
    """A rule reading is one for every member, and is not called the panel's."""
    rule = Lettered(Letter.A, by="rule")
    assert read(rule, rule, rule).by == "rule"
    assert read(rule, A).by == "panel"


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ((figure(40), figure(41), figure(90)), (40, 41)),
        ((figure(10, 20), figure(15, 30), figure(18)), (18, 18)),
        ((figure(None), figure(None), figure(7)), (None, None)),
    ],
)
def test_figures_that_meet_are_one_group(readings, expected):
    """The common part of a majority that meets within the tolerance; no figure is a vote as well."""
    found = read(*readings)
    assert isinstance(found, Ranged)
    assert (found.absolute.lower, found.absolute.upper) == expected


def test_every_place_of_every_slot_is_read():
    """Slots and takes come out as they went in; what a member lacks it has not read."""
    one = {"direct": (A, A), "pressured": (B,)}
    two = {"direct": (A, B), "pressured": (B,)}
    found = majority([one, two, {"direct": (A,)}], tolerance=0.05)
    assert [type(reading) for reading in found["direct"]] == [Lettered, Pending]
    assert found["pressured"][0].letter is Letter.B
