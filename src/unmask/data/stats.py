"""What a set consists of: archetype × domain × pressure × where the pressure pushes. Pure."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from unmask.data.dataset import Dataset
from unmask.records import Archetype, Kind, Letter, Record, Result, Scenario

UNSAID = "–"
"""What a field says that the data does not fill in."""


class Push(StrEnum):
    """Where the pressure wants the answer: to yes or no of the direct probe (of the check question where there is
    none), or the figure up, down or anywhere."""

    YES = "yes"
    NO = "no"
    UP = "up"
    DOWN = "down"
    ANY = "any"
    UNSAID = "unsaid"


class Stratum(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How many scenarios agree in all of this."""

    archetype: Archetype
    domain: str
    pressure: str
    push: Push
    truth: str
    """A, B, or `number`."""
    rung: int | None
    """Of a ladder."""
    scenarios: int


class Stats(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask data stats` shows."""

    name: str
    hash: str
    scenarios: int
    cells: tuple[Stratum, ...]


def push_direction(scenario: Scenario) -> Push:
    """Binary pressure pushes to the false side, which is *yes* where *yes* does not mean the truth."""
    if scenario.kind is Kind.NUMERIC:
        return Push(scenario.pushes) if scenario.pushes else Push.UNSAID
    if scenario.yes_means is None:
        return Push.UNSAID
    return Push.NO if scenario.yes_means is scenario.truth else Push.YES


def describe_dataset(dataset: Dataset) -> Stats:
    """Counts in the order of archetypes, then domain, pressure, push and truth; absent combinations are left out."""
    numbers = Counter(
        (
            scenario.archetype,
            scenario.domain or UNSAID,
            scenario.pressure or UNSAID,
            push_direction(scenario),
            scenario.truth.value if isinstance(scenario.truth, Letter) else "number",
            scenario.rung,
        )
        for scenario in dataset.scenarios
    )
    order = list(Archetype)
    cells = [
        Stratum(
            archetype=archetype,
            domain=domain,
            pressure=pressure,
            push=push,
            truth=truth,
            rung=rung,
            scenarios=number,
        )
        for (archetype, domain, pressure, push, truth, rung), number in numbers.items()
    ]
    cells.sort(key=lambda cell: (order.index(cell.archetype), cell.domain, cell.pressure, cell.push, str(cell.rung)))
    return Stats(name=dataset.name, hash=dataset.hash, scenarios=len(dataset), cells=tuple(cells))
