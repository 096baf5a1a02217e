"""What a set consists of: archetype × domain × pressure × where the pressure pushes, and lengths. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from unmask.data.dataset import Dataset, count_by_archetype
from unmask.records import Archetype, Kind, Letter, Record, Scenario

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


class Stats(Record, frozen=True, kw_only=True, omit_defaults=False):
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


# --- as tables --------------------------------------------------------------------------------------------

Table = tuple[tuple[str, ...], ...]
"""A header and rows of text, for a terminal or a page."""

WAYS = {
    "yes/up": (Push.YES, Push.UP),
    "no/down": (Push.NO, Push.DOWN),
    "other": (Push.ANY, Push.UNSAID),
}
RUNG_WAYS = (Push.YES, Push.NO, Push.UP, Push.DOWN)
PRESSURES = ("situational", "explicit")
_SHORT = {"situational": "sit.", "explicit": "expl."}
_COLUMNS = ("n", "truth A", "truth B", *(f"{_SHORT[pressure]} {name}" for pressure in PRESSURES for name in WAYS))


def make_tables(stats: Stats) -> tuple[Table, ...]:
    """All of them, from the widest view to the closest. Only ladders have a table by rung."""
    by_rung = (rung_table(stats),) if any(cell.rung is not None for cell in stats.cells) else ()
    return balance_table(stats), *by_rung, motive_table(stats), length_table(stats), domain_table(stats)


def balance_table(stats: Stats) -> Table:
    """One row per archetype and one for all: size, truth, pressure, and where each pressure pushes."""
    rows = [
        (archetype.value, *_count_columns([c for c in stats.cells if c.archetype is archetype]))
        for archetype in dict.fromkeys(cell.archetype for cell in stats.cells)
    ]
    return (("archetype", *_COLUMNS), *rows, ("all", *_count_columns(stats.cells)))


def rung_table(stats: Stats) -> Table:
    """One row per rung: truth, and the way that the pressure pushes on its upper rungs."""
    rows = []
    for rung in sorted({cell.rung for cell in stats.cells if cell.rung is not None}):
        cells = [cell for cell in stats.cells if cell.rung == rung]
        groups = [cells, *([cell for cell in cells if cell.truth == letter] for letter in "AB")]
        groups += ([cell for cell in cells if cell.push is way] for way in RUNG_WAYS)
        rows.append((str(rung), *_sizes(groups)))
    return (("rung", "n", "truth A", "truth B", *(way.value for way in RUNG_WAYS)), *rows)


def domain_table(stats: Stats) -> Table:
    """One row per archetype and domain, with the same columns."""
    keys = dict.fromkeys((cell.archetype, cell.domain) for cell in stats.cells)
    rows = [
        (
            archetype.value,
            domain,
            *_count_columns([c for c in stats.cells if (c.archetype, c.domain) == (archetype, domain)]),
        )
        for archetype, domain in keys
    ]
    return (("archetype", "domain", *_COLUMNS), *rows)


def length_table(stats: Stats) -> Table:
    """Words of each kind of text: least, median, most."""
    names = ("system", "user", "direct", "indirect")
    rows = [
        (entry.archetype.value, *(str(getattr(entry, name) or UNSAID) for name in names)) for entry in stats.lengths
    ]
    return (("archetype", *names), *rows)


def motive_table(stats: Stats) -> Table:
    return (("motive", "scenarios"), *((motive, str(number)) for motive, number in stats.motives.items()))


def _count_columns(cells: Sequence[Stratum]) -> tuple[str, ...]:
    """The numbers under `_COLUMNS`."""
    groups = [cells, *([cell for cell in cells if cell.truth == letter] for letter in "AB")]
    groups += (
        [cell for cell in cells if cell.pressure == pressure and cell.push in pushes]
        for pressure in PRESSURES
        for pushes in WAYS.values()
    )
    return _sizes(groups)


def _sizes(groups: Iterable[Sequence[Stratum]]) -> tuple[str, ...]:
    numbers = (sum(cell.scenarios for cell in group) for group in groups)
    return tuple(str(number) if number else UNSAID for number in numbers)


def format_markdown(table: Table) -> str:
    """The table for a page; numbers are set to the right."""
    header, *rows = table
    right = [all(row[place].isdigit() or row[place] == UNSAID for row in rows) for place in range(len(header))]
    rule = ["--:" if side else "---" for side in right]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, rule, *rows)
    )
