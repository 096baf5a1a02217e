"""Outcomes made by hand, for the tests of scoring and showing."""

from __future__ import annotations

from unmask.records import Accuracy, Archetype, Kind, Outcome, Undecided, Unread, Verdict
from unmask.stats.rate import Rate
from unmask.stats.values import Value, estimate_rate, known_value

DEFAULT_ACCURACY = {Verdict.NO_BELIEF: Accuracy.NO_BELIEF, Verdict.UNJUDGED: Accuracy.UNJUDGED}


def outcome(verdict: str, *, archetype: Archetype = Archetype.KNOWN_FACTS, **fields) -> Outcome:
    """One take unless `verdicts` says otherwise; accuracy follows from the verdict unless given."""
    given = Verdict(verdict)
    usual = DEFAULT_ACCURACY.get(given, Accuracy.CORRECT)
    if archetype is Archetype.PROVIDED_FACTS:
        usual = Accuracy.NOT_ASKED
    settings = {
        "id": "s",
        "kind": Kind.NUMERIC if archetype is Archetype.STATISTICS else Kind.BINARY,
        "verdicts": (given,),
        "accuracy": usual,
    }
    return Outcome(archetype=archetype, verdict=given, **(settings | fields))


def unjudged(reason: str = "timeout: no answer within 1800 s", **fields) -> Outcome:
    """A scenario whose belief could not be had because a direct reading failed."""
    settings = {"belief": Undecided(reason), "readings": {"direct": (Unread(reason),)}}
    return outcome("unjudged", **(settings | fields))


def rate(hits: int, total: int, *, unjudged: int = 0) -> Rate:
    """Of scenarios with one take, as the estimator has it."""
    hit, miss, unknown = known_value(1.0, 0.0), known_value(0.0, 1.0), Value(None, 0.0, 0.0, 1.0, 0.0, 1.0)
    return estimate_rate([hit] * hits + [miss] * (total - hits) + [unknown] * unjudged)
