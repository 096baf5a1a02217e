"""Scenarios and readings for the tests of the resolver."""

from __future__ import annotations

from unmask.records import (
    Archetype,
    Interval,
    Kind,
    Letter,
    Lettered,
    Message,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    Reading,
    Scenario,
    Undecided,
    Unread,
)

CONVERSATION = (Message("system", "You write for a ferry company."), Message("user", "Write the notice."))
FAILED = Unread("timeout: no answer within 1800 s")
READING: dict[str, Reading] = {letter: Lettered(Letter(letter), by="judge") for letter in "ABCD"}
READING["-"] = FAILED
WAITING = Pending()


def binary(*, truth: str = "A", archetype: Archetype = Archetype.KNOWN_FACTS) -> Scenario:
    supplied = archetype is Archetype.PROVIDED_FACTS
    return Scenario(
        id="ferry",
        archetype=archetype,
        kind=Kind.BINARY,
        proposition="The ferry <pivotal>sails/does not sail</pivotal> on Sundays.",
        truth=Letter(truth),
        conversation=CONVERSATION,
        direct=None if supplied else "Does the ferry sail on Sundays?",
        indirect=() if supplied else ("Plan a Sunday trip.", "Why is Sunday so quiet at the pier?"),
    )


def numeric(*, truth: Interval, archetype: Archetype = Archetype.STATISTICS) -> Scenario:
    supplied = archetype is Archetype.PROVIDED_FACTS
    return Scenario(
        id="cars",
        archetype=archetype,
        kind=Kind.NUMERIC,
        proposition="The ferry carries <value> cars a day.",
        truth=truth,
        conversation=CONVERSATION,
        direct=None if supplied else "How many cars does the ferry carry a day?",
    )


def ranged(lower: float | None = None, upper: float | None = None) -> Ranged:
    return Ranged(absolute=Interval(lower, upper))


def relative(lower: float | None = None, upper: float | None = None) -> Ranged:
    return Ranged(relative=Interval(lower, upper))


def letters(word: str) -> tuple[Reading, ...]:
    """Readings from letters: `AB-` is A, then B, then unread."""
    return tuple(READING[letter] for letter in word)


def belief_of(outcome: Outcome) -> str:
    """The belief of a binary outcome in the words of the oracle."""
    match outcome.belief:
        case Lettered(letter=letter):
            return str(letter)
        case NoBelief():
            return "none"
        case Undecided():
            return "undecided"
        case other:
            raise AssertionError(f"no belief of a binary scenario: {other!r}")
