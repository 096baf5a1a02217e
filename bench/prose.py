"""Invented text of realistic length, the same for the same seed.

Nothing here means anything: the mock endpoint recognises a text by the mark inside it. The length matters, because
what a client pays for a call grows with the bytes of it.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

PEOPLE = (
    "the harbour master",
    "a junior auditor",
    "the museum's registrar",
    "our site engineer",
    "the night editor",
    "the grant officer",
    "a visiting chemist",
    "the fleet planner",
    "the parish clerk",
    "the station vet",
)
PLACES = (
    "Aldmoor",
    "Brennick",
    "Castlewater",
    "Dunharrow",
    "Eskerby",
    "Fenwold",
    "Garsdale",
    "Hollin Quay",
    "Ingersby",
    "Joyford",
    "Kelmarsh",
    "Lowestry",
)
THINGS = (
    "the pumping station",
    "the west gallery",
    "the ferry timetable",
    "the seed archive",
    "the tram depot",
    "the water survey",
    "the copper roof",
    "the evening ledger",
    "the test reactor",
    "the old toll bridge",
)
DEEDS = (
    "inspected",
    "repainted",
    "insured",
    "sold to the council",
    "closed for repairs",
    "moved to the new site",
    "certified",
    "photographed",
    "connected to the grid",
    "listed as a monument",
)
SENTENCES = (
    "{Person} in {place} keeps a file on {thing}, and its pages for {year} have been read by three people since.",
    "When {thing} was {deed}, the minutes were copied by hand and a carbon sheet went to {place}.",
    "Nobody asks about {thing} without a reason, so {person} wrote down who called and at what hour.",
    "The weather in {place} was mild that week; deliveries arrived late, and {person} signed for them alone.",
    "Two letters from {year} mention {thing}, one of them in pencil and without a sender.",
    "A budget of {number} crowns had been set aside in {place}, most of it for work that no one has described.",
    "After the meeting {person} said that the numbers for {year} would be checked again before printing.",
    "{Person} remembers the smell of paint and a queue of {number} visitors in front of {thing}.",
    "The insurers want a short answer by Friday, the readers want a long one, and both of them will quote it.",
    "In {place} such a record is kept for {number} days, then it goes to the basement with the others.",
    "There are photographs of {thing}, taken by {person}, which show the north side and part of the yard.",
    "Please keep the tone friendly, stay with what can be used in print, and leave out the names of the staff.",
)
MARK = re.compile(rb"\(ref ([a-z]{2}-\d+) (\w+)\)")
"""How the endpoint recognises what it is asked: the last such mark in a request is the question."""
TOKEN = re.compile(rb"\[reply ([a-z]{2}-\d+) (\w+) (\d+)\]")
"""How it recognises what it answered: scenario, slot and take, inside every reply."""
THOUGHT = b"[thought "
"""Opens every text that a judge must never be shown."""


class Fact(NamedTuple):
    """The invented proposition of a scenario, in its two forms."""

    before: str
    after: str
    year: int


def mark(scenario: str, slot: str) -> str:
    return f"(ref {scenario} {slot})"


def token(scenario: str, slot: str, take: int) -> str:
    return f"[reply {scenario} {slot} {take}]"


def paragraph(rng: random.Random, words: int) -> str:
    """Sentences until there are at least `words` words."""
    parts: list[str] = []
    count = 0
    while count < words:
        person = rng.choice(PEOPLE)
        parts.append(
            rng.choice(SENTENCES).format(
                person=person,
                Person=person[0].upper() + person[1:],
                place=rng.choice(PLACES),
                thing=rng.choice(THINGS),
                deed=rng.choice(DEEDS),
                year=rng.randint(1890, 2020),
                number=rng.randint(12, 9000),
            )
        )
        count += len(parts[-1].split())
    return " ".join(parts)


def fact(rng: random.Random, scenario: str) -> Fact:
    year = rng.randint(1890, 2020)
    before = f"In {rng.choice(PLACES)}, {rng.choice(THINGS)} (number {scenario})"
    return Fact(before, f"{rng.choice(DEEDS)} before {year}.", year)
