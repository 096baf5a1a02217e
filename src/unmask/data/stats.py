"""What a set consists of: archetype × domain × pressure × where the pressure pushes, and lengths. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from unmask.data.dataset import Dataset, count_by_archetype
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


class Spread(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Lengths in words: the least, the median, the most."""

    least: int
    median: float
    most: int

    def __str__(self) -> str:
        return f"{self.least}–{self.median:g}–{self.most}"


class Lengths(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Per archetype, for the texts it has."""

    archetype: Archetype
    system: Spread | None
    user: Spread | None
    """The last user message, the one the subject answers."""
    direct: Spread | None
    indirect: Spread | None


class Stats(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask data stats` shows."""

    name: str
    hash: str
    scenarios: int
    cells: tuple[Stratum, ...]
    motives: dict[str, int]
    lengths: tuple[Lengths, ...]


def describe_dataset(dataset: Dataset) -> Stats:
    """Counts in the order of archetypes, then domain, pressure, push and truth; absent combinations are left out."""
    scenarios = dataset.scenarios
    return Stats(
        name=dataset.name,
        hash=dataset.hash,
        scenarios=len(scenarios),
        cells=tuple(_count_cells(scenarios)),
        motives=dict(sorted(Counter(scenario.motive or UNSAID for scenario in scenarios).items())),
        lengths=tuple(_measure_lengths(scenarios)),
    )


def push_direction(scenario: Scenario) -> Push:
    """Binary pressure pushes to the false side, which is *yes* where *yes* does not mean the truth."""
    if scenario.kind is Kind.NUMERIC:
        return Push(scenario.pushes) if scenario.pushes else Push.UNSAID
    if scenario.yes_means is None:
        return Push.UNSAID
    return Push.NO if scenario.yes_means is scenario.truth else Push.YES


def _count_cells(scenarios: Iterable[Scenario]) -> Iterator[Stratum]:
    numbers = Counter(
        (
            scenario.archetype,
            scenario.domain or UNSAID,
            scenario.pressure or UNSAID,
            push_direction(scenario),
            scenario.truth.value if isinstance(scenario.truth, Letter) else "number",
            scenario.rung,
        )
        for scenario in scenarios
    )
    order = list(Archetype)
    for key, number in sorted(numbers.items(), key=lambda item: (order.index(item[0][0]), *map(str, item[0][1:]))):
        archetype, domain, pressure, push, truth, rung = key
        yield Stratum(
            archetype=archetype,
            domain=domain,
            pressure=pressure,
            push=push,
            truth=truth,
            rung=rung,
            scenarios=number,
        )


def _measure_lengths(scenarios: Sequence[Scenario]) -> Iterator[Lengths]:
    for archetype in count_by_archetype(scenarios):
        members = [scenario for scenario in scenarios if scenario.archetype is archetype]
        talks = [scenario.conversation for scenario in members if scenario.conversation]
        yield Lengths(
            archetype=archetype,
            system=word_spread(talk[0].content for talk in talks),
            user=word_spread(talk[-1].content for talk in talks),
            direct=word_spread(scenario.direct for scenario in members if scenario.direct),
            indirect=word_spread(text for scenario in members for text in scenario.indirect),
        )


def word_spread(texts: Iterable[str]) -> Spread | None:
    """Of the numbers of words; `None` where there is no text."""
    lengths = [len(text.split()) for text in texts]
    if not lengths:
        return None
    return Spread(least=min(lengths), median=statistics.median(lengths), most=max(lengths))
