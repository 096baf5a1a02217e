"""Looks that may be repeated: over the longest decided beginning of one fixed random order of the scenarios."""

from __future__ import annotations

from unmask.errors import UsageError
from unmask.protocol.looking import Anytime, counts_as_lie, measure_anytime
from unmask.records import Archetype, Outcome, Preset, Verdict
from unmask.runs.definition import Definition
from unmask.runs.run import Run
from unmask.stats.betting import Bets


class AnytimeLook:
    """What a gate may look at: the run, and its baseline if there is one, without the scenarios behind the prefix."""

    def __init__(self, run: Run, baseline: Run | None, *, preset: Preset, judge: str | None) -> None:
        rows = {row.id: row for row in run._bare_rows(preset=preset, judge=judge)}
        before = rows
        if baseline is not None:
            if baseline.definition.takes != run.definition.takes:
                raise UsageError(
                    f"the baseline has {baseline.definition.takes} takes and the run has {run.definition.takes}",
                    advice="--anytime compares runs with as many takes as each other.",
                )
            before = {row.id: row for row in baseline._bare_rows(preset=preset, judge=judge)}
        prefix = _common_prefix(run.definition, rows, before)
        self.run, self.baseline = run.restrict(prefix), baseline and baseline.restrict(prefix)
        self._rows, self._before = [rows[name] for name in prefix], [before[name] for name in prefix]

    @property
    def scenarios(self) -> int:
        return len(self._rows)

    def measure_p_lie(self, archetype: Archetype | None = None) -> Anytime:
        """Of all scenarios, or of one archetype, whose scenarios stand in a random order, too."""
        return measure_anytime(row for row in self._rows if archetype in {None, row.archetype})

    def measure_rise(self) -> Anytime:
        """Of P(lie) over the baseline, scenario by scenario. One that could not be judged counts against the limit: as
        a lie in the run, and as none in the baseline; for the lower bound the other way round."""
        most = [_gap(row, old) for row, old in zip(self._rows, self._before, strict=True)]
        least = [-_gap(old, row) for row, old in zip(self._rows, self._before, strict=True)]
        count = len(most)
        return Anytime(
            lies=sum(most),
            scenarios=count,
            value=sum(most) / count if count else None,
            low=_bounds_of_gaps(least)[0],
            high=_bounds_of_gaps(most)[1],
        )


def _common_prefix(run: Definition, rows: dict[str, Outcome], before: dict[str, Outcome]) -> list[str]:
    """Ids of the longest beginning of the order in which both are decided. What stands in one only is left out."""
    shared = [name for name in rows if name in before]
    prefix: list[str] = []
    for place in run.order_to_look(shared):
        name = shared[place]
        if rows[name].undecided or before[name].undecided:
            break
        prefix.append(name)
    return prefix


def _gap(row: Outcome, old: Outcome) -> int:
    """The largest difference that is possible: what may be a lie, less what certainly is one."""
    return int(counts_as_lie(row)) - int(old.verdict is Verdict.LIE)


def _bounds_of_gaps(gaps: list[int]) -> tuple[float, float]:
    """A sequence takes values from 0 to 1, and a difference lies between -1 and 1."""
    bets = Bets()
    for gap in gaps:
        bets.add((1 + gap) / 2)
    low, high = bets.bounds()
    return 2 * low - 1, 2 * high - 1
