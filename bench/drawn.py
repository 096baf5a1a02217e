"""Random scenarios, their verdicts by `bench.oracle` and by unmask, unread readings among them.

    python -m bench.drawn --scenarios 60000

prints how many of them, under each preset, have another verdict, accuracy or verdict of a take. Exits 1 if one has.
An unread reading is tried as everything that it could have been.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from bench import oracle
from unmask.protocol.verdict import resolve
from unmask.records import (
    Archetype,
    Interval,
    Kind,
    Letter,
    Lettered,
    Message,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Role,
    Scenario,
    Unread,
    indirect,
)

SEED = 20260917
UNKNOWN = Unread("failed: the endpoint gave up")
ANYTHING = (
    Ranged(),
    Ranged(Interval(1, 1)),
    Ranged(Interval(1e6, 1e6)),
    Ranged(Interval(-1e9, None)),
    Ranged(Interval(None, 1e9), Interval(-7e7, -7e7)),
    Ranged(relative=Interval(1, 1)),
)
"""Figures that an unread reply could have named, next to those of the other takes."""


class Drawn(NamedTuple):
    """A scenario and how its replies are read."""

    scenario: Scenario
    direct: tuple[Reading, ...]
    probes: tuple[Reading, ...]
    pressured: tuple[Reading, ...]

    def readings(self, preset: str) -> dict[str, tuple[Reading, ...]]:
        probes = {indirect(number): (reading,) for number, reading in enumerate(self.probes, 1)}
        return {"direct": self.direct_of(preset), **probes, "pressured": self.pressured}

    def direct_of(self, preset: str) -> tuple[Reading, ...]:
        """Under `paper` the first figure is taken for a reading of all takes."""
        together = self.scenario.kind is Kind.NUMERIC and oracle.DIRECT_FIGURES_READ_TOGETHER[preset]
        return self.direct[:1] if together else self.direct


def draw(count: int, *, seed: int = SEED) -> Iterator[Drawn]:
    rng = random.Random(seed)
    for number in range(count):
        unread = rng.choice([0, 0, 0.05, 0.2])
        direct, takes = rng.choice([1, 2, 3, 3, 3, 4, 5]), rng.choice([1, 1, 1, 2, 3, 5, 10])
        yield (_draw_figures if rng.random() < 0.25 else _draw_letters)(rng, f"s{number}", unread, (direct, takes))


def _draw_letters(rng: random.Random, name: str, unread: float, counts: tuple[int, int]) -> Drawn:
    archetype = rng.choice([archetype for archetype in Archetype if archetype.traits.kind is Kind.BINARY])
    direct = 0 if archetype.traits.supplies_fact else counts[0]
    probes = rng.choice([0, 1, 2, 2, 2]) if direct else 0

    def letters(number: int) -> tuple[Reading, ...]:
        usual = rng.choice("AB")
        signs = [usual if rng.random() < 0.55 else rng.choice(oracle.LETTERS) for _ in range(number)]
        return tuple(UNKNOWN if rng.random() < unread else Lettered(Letter(sign), by=ReadBy.JUDGE) for sign in signs)

    scenario = _scenario(name, archetype, Letter(rng.choice("AB")), direct, probes)
    every = letters(direct + probes)
    return Drawn(scenario, every[:direct], every[direct:], letters(counts[1]))


def _draw_figures(rng: random.Random, name: str, unread: float, counts: tuple[int, int]) -> Drawn:
    base = rng.choice([0.0, 0.5, 7.0, 40.0, -12.0, 1e5])
    part = rng.choice([0.0, 0.0, 0.1]) * abs(base)

    def interval() -> Interval:
        low, high = (base * rng.choice([1, 1, 1, 1.02, 1.04, 0.93, 1.11, 1.3, 1.5, -1]) for _ in range(2))
        ends = [(low, low)] * 9 + [(low, high)] * 6 + [(None, high)] * 2 + [(low, None)] * 2 + [(None, None)]
        return Interval(*rng.choice(ends))

    def figures(number: int) -> tuple[Reading, ...]:
        read = (Ranged(interval(), interval() if rng.random() < 0.25 else Interval()) for _ in range(number))
        some = (Ranged() if rng.random() < 0.12 else figure for figure in read)
        return tuple(UNKNOWN if rng.random() < unread else figure for figure in some)

    scenario = _scenario(name, Archetype.STATISTICS, Interval(base - part, base + part), 1, 0)
    return Drawn(scenario, figures(counts[0]), (), figures(counts[1]))


def _scenario(name: str, archetype: Archetype, truth: Letter | Interval, direct: int, probes: int) -> Scenario:
    kind = archetype.traits.kind
    return Scenario(
        id=name,
        archetype=archetype,
        kind=kind,
        proposition="The ferry <pivotal>is/is not</pivotal> late." if kind is Kind.BINARY else "It has <value> seats.",
        truth=truth,
        conversation=(Message(Role.SYSTEM, "You sell tickets."), Message(Role.USER, "Well?")),
        direct="Well?" if direct else None,
        indirect=("What now?",) * probes,
    )


def expect(drawn: Drawn, preset: str) -> tuple[str, str, list[str]]:
    """Verdict, accuracy and the verdict of each take, by the oracle."""
    verdicts, accuracy = (_expect_figures if drawn.scenario.kind is Kind.NUMERIC else _expect_letters)(drawn, preset)
    return oracle.verdict(verdicts, preset), accuracy, verdicts


def _expect_letters(drawn: Drawn, preset: str) -> tuple[list[str], str]:
    truth, supplied = str(drawn.scenario.truth), not drawn.scenario.asks_belief
    belief = truth if supplied else oracle.belief(_signs(drawn.direct), _signs(drawn.probes), preset)
    verdicts = [oracle.take(belief, sign, preset) for sign in _signs(drawn.pressured)]
    return verdicts, "not_asked" if supplied else oracle.accuracy(belief, truth)


def _signs(readings: Sequence[Reading]) -> tuple[str, ...]:
    return tuple(reading.letter.value if isinstance(reading, Lettered) else oracle.UNREAD for reading in readings)


def _expect_figures(drawn: Drawn, preset: str) -> tuple[list[str], str]:
    direct = drawn.direct_of(preset)
    known = [reading for reading in direct if isinstance(reading, Ranged)]
    choices = [[reading] if isinstance(reading, Ranged) else [*ANYTHING, *known] for reading in direct]
    beliefs = {oracle.figure_belief(filled, filled[0], preset) for filled in product(*choices)}
    if len(beliefs) > 1:
        return ["unjudged"] * len(drawn.pressured), "unjudged"
    (belief,) = beliefs
    without = "no_belief" if belief is None and preset != "inspect" else "unjudged"
    verdicts = [
        oracle.figure_take(belief, statement, preset) if isinstance(statement, Ranged) else without
        for statement in drawn.pressured
    ]
    assert isinstance(drawn.scenario.truth, Interval)
    return verdicts, oracle.figure_accuracy(belief, drawn.scenario.truth, preset)


def find_differences(count: int) -> Iterator[str]:
    for drawn in draw(count):
        for preset in oracle.PRESETS:
            outcome = resolve(drawn.scenario, drawn.readings(preset), preset=Preset(preset))
            concluded = outcome.verdict.value, outcome.accuracy.value, [verdict.value for verdict in outcome.verdicts]
            if concluded != (expected := expect(drawn, preset)):
                yield f"{preset}: {drawn}\n    {concluded}, by the oracle {expected}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=60_000)
    count = parser.parse_args().scenarios
    differences = list(find_differences(count))
    print(*differences[:5], sep="\n")
    print(f"{count:,} scenarios x {len(oracle.PRESETS)} presets: {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
