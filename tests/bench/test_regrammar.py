"""Kept readings of figures under the present grammar: what stays, what becomes unread, what needs the judge."""

from __future__ import annotations

import pytest

from bench.judges.labelled import labelled, scenarios
from bench.judges.regrammar import regrammar
from bench.judges.sources import load_kept
from tests.judges.examples import numeric
from unmask.errors import UsageError
from unmask.records import Interval, Ranged, ReadBy, Unread

FERRIES = numeric(proposition="In 2018 about <value> ferries were built in Lind.", unit="ferries")
PLAIN = "In 2018 about 41 ferries were built in Lind."


def by_judge(value):
    return Ranged(Interval(value, value), by=ReadBy.JUDGE)


def test_what_the_judge_confirmed_stays():
    """The question is the one that it was asked."""
    assert regrammar(FERRIES, "direct", PLAIN, by_judge(41)) == by_judge(41)


def test_what_the_judge_left_open_stays_unread():
    """A stricter grammar does not answer for the judge."""
    assert regrammar(FERRIES, "direct", PLAIN, Unread("unsure")) == Unread("unsure")


def test_what_the_grammar_doubts_becomes_unread():
    """Whatever the judge said of it."""
    text = "In 2018 about 41 ferries were sold in Lind."
    assert regrammar(FERRIES, "direct", text, by_judge(41)) == Unread("unsure")


def test_a_figure_that_the_judge_was_not_asked_about_is_refused():
    """Another figure would need another question."""
    with pytest.raises(UsageError, match="was not asked"):
        regrammar(FERRIES, "direct", PLAIN, by_judge(40))


def test_the_kept_readings_are_those_of_the_present_grammar():
    """Whoever changes the grammar brings them up to it."""
    kept, of = load_kept("hf:judge-1.5b"), scenarios()
    items = [item for item in labelled() if item.id in kept.readings]
    assert all(regrammar(of[i.scenario], i.slot, i.text, kept.readings[i.id]) == kept.readings[i.id] for i in items)
