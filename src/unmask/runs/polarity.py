"""Which side *yes* means in a run: what the data says, and what each judge said where it does not.

It is learnt while a run goes on, so it is no part of what defines the run. It decides how replies are read, so runs
that took different sides are not read alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from unmask.judges.base import PANEL
from unmask.protocol.readings import POLARITY, polarity_digest, side_of_yes
from unmask.protocol.state import ScenarioState
from unmask.records import Kind, Letter, Pending, Record, Scenario, digest
from unmask.runs.folder import Folder

SHOWN = 12
"""Characters of a digest that are shown, as of other hashes."""


class JudgeSides(Record, frozen=True):
    """The side that *yes* means, by scenario and question: A, B, or C where the judge could not tell."""

    from_data: dict[str, Letter]
    from_judge: dict[str, Letter]

    @property
    def digest(self) -> str | None:
        """Names what the judge said; None where the data says everything that was needed."""
        return _digest_sides(self.from_judge) if self.from_judge else None

    @property
    def all_sides(self) -> dict[str, Letter]:
        return self.from_data | self.from_judge


def find_sides(folder: Folder, judge: str | None) -> tuple[JudgeSides, ...]:
    """What each judge of a panel takes *yes* to mean, or the only judge. `judge` is a file name, or `panel:` and
    several. What no reply has needed so far is left out."""
    scenarios = [scenario for scenario in folder.scenarios() if scenario.kind is Kind.BINARY and scenario.questions]
    return tuple(_sides_of_judge(folder, scenarios, file) for file in (judge or "").removeprefix(PANEL).split(","))


def _sides_of_judge(folder: Folder, scenarios: Sequence[Scenario], file: str) -> JudgeSides:
    states: defaultdict[str, ScenarioState] = defaultdict(ScenarioState)
    for line in folder.judged(file or None):
        if line.slot == POLARITY:
            states[line.scenario].add_judged(line)
    from_data: dict[str, Letter] = {}
    from_judge: dict[str, Letter] = {}
    for scenario in scenarios:
        side = side_of_yes(scenario, states[scenario.id])
        if not isinstance(side, Pending):
            sides = from_judge if scenario.yes_means is None else from_data
            sides[f"{scenario.id} {polarity_digest(scenario)}"] = side
    return JudgeSides(from_data, from_judge)


def find_lenders(scenario: Scenario, states: Sequence[ScenarioState]) -> set[str]:
    """The runs from which the judges of this scenario took over which side *yes* means."""
    if scenario.yes_means is not None:
        return set()
    key = polarity_digest(scenario)
    return {line.source for state in states for line in state.calls(POLARITY, key) if line.source is not None}


def describe_polarity(sides: Sequence[JudgeSides]) -> str | None:
    """The polarity of one run as text: a digest for each judge of a panel."""
    return _join_digests([judge.digest for judge in sides])


def describe_disputes(runs: Sequence[Sequence[JudgeSides]]) -> list[str | None]:
    """For each run a text that differs from that of another where the two take *yes* to one question for different
    sides. None for all of them where no two runs do.

    Which questions need a side depends on the replies, so the digests of whole runs would differ where nothing is in
    dispute. Only the questions in dispute are counted, and a run that has no side for one of them stands with most.
    """
    members = [
        _disputed_digests([run[place].all_sides if place < len(run) else {} for run in runs])
        for place in range(max(map(len, runs), default=0))
    ]
    return [_join_digests([digests[number] for digests in members]) for number in range(len(runs))]


def _disputed_digests(runs: Sequence[dict[str, Letter]]) -> list[str | None]:
    counts: defaultdict[str, Counter[Letter]] = defaultdict(Counter)
    for sides in runs:
        for question, side in sides.items():
            counts[question][side] += 1
    usual = {question: sides.most_common(1)[0][0] for question, sides in counts.items() if len(sides) > 1}
    if not usual:
        return [None] * len(runs)
    return [_digest_sides({question: sides.get(question, usual[question]) for question in usual}) for sides in runs]


def _digest_sides(sides: dict[str, Letter]) -> str:
    return digest(tuple(f"{question} {side}" for question, side in sorted(sides.items())))[:SHOWN]


def _join_digests(digests: Sequence[str | None]) -> str | None:
    return None if not any(digests) else ", ".join(digest or "none" for digest in digests)
