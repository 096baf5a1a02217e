"""The loaded scenarios as one frozen value, and the hash that names their content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from unmask.errors import UsageError
from unmask.records import Archetype, Kind, Record, Scenario, call_renderer
from unmask.text import suggest_names

REPOSITORY = "cais/MASK"
"""The data of the authors on the hub; any case of the name is understood."""


class LoadOptions(Record, frozen=True, kw_only=True):
    """What to load and which part of it to use. The defaults use everything and refuse bad rows."""

    skip_bad_rows: bool = False
    archetypes: tuple[Archetype, ...] = ()
    ids: tuple[str, ...] = ()
    limit: int | None = None
    """At most this many scenarios, spread over the archetypes in proportion."""
    seed: int = 0
    """Decides which scenarios a limit keeps."""
    shard: str | None = None
    """`3/16`: only the third of sixteen equal parts of what all of this chooses."""

    @property
    def takes_all(self) -> bool:
        """Whether every scenario is used."""
        return not self.archetypes and not self.ids and self.limit is None and self.shard is None


class ShardSpec(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Which part of a selection a shard is, and what names the selection as a whole."""

    number: int
    """From 1."""
    of: int
    scenarios: int
    """Of all shards together."""
    hash: str
    """Of all shards together."""

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.of:
            raise ValueError(f"`number` is {self.number}, not from 1 to {self.of}")

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Dataset(Record, frozen=True, kw_only=True):
    """Scenarios in canonical order: by archetype, then id, whatever the order of rows and files."""

    name: str
    source: str
    """What the user typed, without credentials."""
    scenarios: tuple[Scenario, ...]
    """After selection."""
    hash: str
    """Of `scenarios`. The same rows as CSV, parquet or JSONL, in any order, give the same hash, whether it is known
    which side *yes* means or not."""
    full_hash: str
    """Of everything that was loaded, before selection."""
    revision: str | None = None
    skipped: tuple[str, ...] = ()
    """One line per row left out by `skip_bad_rows`."""
    shard: ShardSpec | None = None
    """Where `scenarios` are one of several equal parts of a selection."""

    @property
    def counts(self) -> dict[Archetype, int]:
        """Selected scenarios per archetype, in the order of `Archetype`, without the absent ones."""
        return count_by_archetype(self.scenarios)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(scenario.id for scenario in self.scenarios)

    @property
    def yes_means(self) -> str | None:
        """The hash of which side *yes* means, see `hash_sides`."""
        return hash_sides(self.scenarios)

    def __len__(self) -> int:
        return len(self.scenarios)

    def __iter__(self) -> Iterator[Scenario]:
        return iter(self.scenarios)

    def __getitem__(self, key: int | str) -> Scenario:
        """A scenario by its id or its place."""
        if isinstance(key, int):
            return self.scenarios[key]
        for scenario in self.scenarios:
            if scenario.id == key:
                return scenario
        advice = suggest_names(key, self.ids, "The property `ids` lists them.")
        raise UsageError(f"{self.name} has no scenario {key!r}", advice=advice)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {len(self)} scenarios, {len(self.counts)} archetypes)"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(call_renderer("dataset_html", self))


def count_by_archetype(scenarios: Iterable[Scenario]) -> dict[Archetype, int]:
    counts = Counter(scenario.archetype for scenario in scenarios)
    return {archetype: counts[archetype] for archetype in Archetype if counts[archetype]}


def in_order(scenarios: Iterable[Scenario]) -> tuple[Scenario, ...]:
    order = list(Archetype)
    return tuple(sorted(scenarios, key=lambda scenario: (order.index(scenario.archetype), scenario.id)))


def group_by_fact(scenarios: Iterable[Scenario]) -> list[tuple[Scenario, ...]]:
    """The rungs of each ladder together, the lowest first; a scenario that is in no ladder alone."""
    groups: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in scenarios:
        key = ("id", scenario.id) if scenario.fact is None else ("fact", scenario.fact)
        groups.setdefault(key, []).append(scenario)
    return [tuple(sorted(group, key=lambda scenario: scenario.rung or 0)) for group in groups.values()]


def without_side(scenario: Scenario) -> Scenario:
    """The scenario as it is where nobody knows which side *yes* means."""
    if scenario.yes_means is None:
        return scenario
    return msgspec.structs.replace(scenario, yes_means=None, yes_means_by=None)


def content_hash(scenarios: Iterable[Scenario]) -> str:
    """Names the scenarios by what they say. Order does not count, nor does which side *yes* means, which may come later
    than the data."""
    encode = msgspec.json.Encoder().encode
    rows = [hashlib.blake2b(encode(without_side(scenario)), digest_size=16).digest() for scenario in scenarios]
    return _hash_rows(rows)


def _hash_rows(rows: Iterable[bytes]) -> str:
    return hashlib.blake2b(b"".join(sorted(rows)), digest_size=16).hexdigest()


def is_open(scenario: Scenario) -> bool:
    """Whether it asks a yes/no question, and nobody has said which side *yes* means."""
    asks = scenario.direct is not None or scenario.check is not None
    return asks and scenario.kind is Kind.BINARY and scenario.yes_means is None


def hash_sides(scenarios: Iterable[Scenario]) -> str | None:
    """Names which side *yes* means in each of these scenarios where that is known; `None` where it is in none."""
    sides = [(scenario.id, scenario.yes_means) for scenario in scenarios if scenario.yes_means is not None]
    return _hash_rows(map(msgspec.json.encode, sides)) if sides else None
