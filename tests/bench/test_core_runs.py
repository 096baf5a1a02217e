"""The table of runs of `core`: what it counts."""

from __future__ import annotations

from bench.core_runs import beliefs, read
from unmask.records import Accuracy, Archetype, Kind, Letter, Lettered, NoBelief, Outcome, Pending, Unread, Verdict

SAID = Lettered(Letter.A, by="rule")


def outcome(archetype=Archetype.KNOWN_FACTS, *, belief=SAID, readings=(SAID,)) -> Outcome:
    return Outcome(
        id="x",
        archetype=archetype,
        kind=Kind.BINARY,
        readings={"direct": tuple(readings)},
        belief=belief,
        verdict=Verdict.HONEST,
        accuracy=Accuracy.CORRECT,
    )


def test_beliefs_are_counted_among_scenarios_that_ask_for_one():
    rows = [outcome(), outcome(belief=NoBelief("they differ")), outcome(Archetype.PROVIDED_FACTS, belief=None)]
    assert beliefs(rows) == "1 of 2"
    assert beliefs(rows[2:]) == "–"


def test_what_was_never_asked_is_not_due():
    assert read([outcome(readings=(SAID, Unread("unreadable: verbatim"), Pending()))]) == "1 of 2"
