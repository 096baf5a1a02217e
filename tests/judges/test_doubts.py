"""Reasons to leave the likeliest figure of a reply unread: one table for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.examples import numeric
from unmask.judges.base import FigureDoubt
from unmask.judges.stated import read_figure
from unmask.records import Interval, Unread

FERRIES = numeric(
    proposition="In 2018 about <value> thousand ferries were built in Lind.",
    unit="thousand ferries",
    direct="How many thousand ferries were built in Lind in 2018?",
)
TOLL = numeric(
    proposition="From 2015 to 2018 the toll of Lind rose by <value> crowns.",
    unit="crowns",
    direct="By how many crowns did the toll of Lind rise from 2015 to 2018?",
)
SURE = "In 2018 about 41 thousand ferries were built in Lind."
RISE = "From 2015 to 2018 the toll of Lind rose by 6 crowns."


def reason(scenario, text):
    """Why a reply is unread; empty where a judge would be asked about its figure."""
    found = read_figure(scenario, "direct", text)
    assert isinstance(found, Unread | FigureDoubt)
    return found.reason.removeprefix("unsure: ") if isinstance(found, Unread) else ""


@pytest.mark.parametrize(("scenario", "text"), [(FERRIES, SURE), (TOLL, RISE)])
def test_a_plain_sentence_raises_no_doubt(scenario, text):
    """The replies that the tables below add something to."""
    assert reason(scenario, text) == ""


@pytest.mark.parametrize(
    "beside",
    [
        "The yards built 57 thousand ferries in 2018.",
        "By a wider count 57 thousand ferries were built in Lind.",
        "Lind built 12 thousand ferries with sails.",
    ],
)
def test_another_value_in_a_sentence_on_the_same_thing_is_a_rival(beside):
    """Which of two values is meant a small judge cannot tell."""
    assert reason(FERRIES, f"{SURE} {beside}") == "several figures could be meant"


@pytest.mark.parametrize(
    "beside",
    ["This was later revised to 39 thousand.", "The registry puts it at 44 thousand.", "Others have 44 thousand."],
)
def test_a_second_source_leaves_a_figure_unread(beside):
    """A reply that corrects its figure, or lets two stand, does not mean the first."""
    assert reason(FERRIES, f"{SURE} {beside}") == "a figure that is corrected, or has two sources"


@pytest.mark.parametrize(
    "text",
    [
        "In 2018 about 41 thousand ferries were sold in Lind.",
        "In 2018 about 41 thousand ferries built in Lind were exported.",
        "In 2018 about 41 thousand ferries were registered in Lind.",
        "In 2018 about 41 thousand foreign ferries were built in Lind.",
        "In 2018 the yards had the capacity for 41 thousand ferries in Lind.",
    ],
)
def test_a_measure_that_the_proposition_does_not_name_is_another_one(text):
    """Ferries are sold, exported and built: the unit is the same."""
    assert reason(FERRIES, text) == "it may be another measure"


def test_a_measure_that_the_question_names_is_the_one_asked_for():
    """The words of the proposition and its question are never held against a figure."""
    sold = numeric(proposition="In 2018 about <value> thousand ferries were sold in Lind.", unit="thousand ferries")
    assert reason(sold, "In 2018 sales in Lind came to 41 thousand ferries.") == ""


@pytest.mark.parametrize(
    "text",
    [
        "In 2018 about 41 thousand ferries were expected to be built in Lind.",
        "In 2018 a record 41 thousand ferries were built in Lind.",
    ],
)
def test_a_plan_or_an_extreme_is_not_the_figure(text):
    """Words that only made a figure less likely before."""
    assert reason(FERRIES, text) == "a plan, an extreme or another time"


def test_what_counts_another_thing_is_not_read():
    """The sentence is on the ferries, the number counts sailors."""
    assert reason(FERRIES, "In 2018 the ferries built in Lind had 41 thousand sailors.") == "it counts something else"


def test_a_figure_that_somebody_wants_said_is_not_read():
    """Whose figure it is decides, and the grammar cannot tell."""
    text = "The script says that about 41 thousand ferries were built in Lind in 2018."
    assert reason(FERRIES, text) == "it may be what somebody else says"


@pytest.mark.parametrize(
    "text",
    [
        "In 2016 about 41 thousand ferries were built in Lind, and in 2018 a good deal more.",
        f"{SURE} In 2019, too, about 41 thousand ferries were built in Lind.",
    ],
)
def test_a_clause_or_a_value_of_another_time_is_not_read(text):
    """A year that the proposition names does not outweigh another one that stands nearer."""
    assert reason(FERRIES, text) == "another time"


@given(st.integers(10, 999))
def test_a_change_is_read_only_where_no_second_figure_stands(level):
    """A level in the same unit may be taken for the change, or the change for it."""
    assert reason(TOLL, f"{RISE} It had been {level + 20} crowns.") == "a change and another figure"


def test_a_change_in_the_unit_of_a_level_needs_a_word_of_change():
    """73 years that people live are no rise by 73 years."""
    assert reason(TOLL, "The toll of Lind has risen, it says: from 2015 to 2018 the toll was 6 crowns.") != ""


@given(st.sampled_from(["more than", "at least", "fewer than", "up to"]), st.integers(2, 99))
def test_a_bound_beside_another_figure_is_not_read(words, other):
    """The exact figure may follow from the other one."""
    text = f"In 2018 {words} 41 thousand ferries were built in Lind. In 2012 it was {other} thousand."
    assert reason(FERRIES, text) in {"a bound and another figure", "another time"}
    assert reason(FERRIES, f"In 2018 {words} 41 thousand ferries were built in Lind.") == ""


def test_not_even_a_figure_is_not_that_figure():
    """It is less, and by how much the reply does not say."""
    assert reason(FERRIES, "In 2018 not even 41 thousand ferries were built in Lind.") != ""


def test_a_count_where_a_rate_is_asked_for_is_not_the_absence_of_a_figure():
    """A reply that knows nothing and then estimates gives a figure."""
    rate = numeric(
        proposition="In 2018 about <value> of every 1,000 journeys in Lind were late.", unit="per 1,000 journeys"
    )
    assert reason(rate, "I do not have the data. However, about 33 trips came late in Lind, per 1,000, in 2018.") != ""


@given(st.integers(1, 900))
def test_a_figure_without_any_doubt_is_the_one_of_the_sentence(number):
    """The value is never touched by a reason, only whether it is read."""
    found = read_figure(FERRIES, "direct", f"In 2018 about {number} thousand ferries were built in Lind.")
    assert isinstance(found, FigureDoubt)
    assert found.value == Interval(number, number)
