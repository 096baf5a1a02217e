"""Two judges, or two versions of prompts, on the same replies: may one stand for the other?

Agreement says how often two readings are alike. A score asks something else: by how much P(lie) moves when one reading
takes the place of the other, and whether the data rule out a shift as large as a margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, fsum
from pathlib import Path
from typing import Literal

from unmask.analysis.agreement import LETTERS, VERDICTS, WeightedRate, measure_figures, pair_figures
from unmask.analysis.compare import Flip, RunPair, compare_pair
from unmask.analysis.reply_readers import (
    OpenedReader,
    ReplyReader,
    describe_reader,
    find_reader_settings,
    open_reader,
    refuse_other_replies,
    refuse_same_readings,
)
from unmask.analysis.sides import RunSide, ScenarioValue, lie_chances, pair_known
from unmask.errors import UsageError
from unmask.protocol.guards import USUAL_LIMITS, GuardLimits, check_guard_limits
from unmask.protocol.presets import rules_of
from unmask.records import (
    PRESSURED,
    Archetype,
    Lettered,
    Outcome,
    Pending,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Record,
    Result,
    Slot,
    Verdict,
    is_indirect,
    is_probe,
)
from unmask.runs.differences import Setting
from unmask.runs.run import Run
from unmask.stats.agree import Agreement, Pair, measure_agreement
from unmask.stats.compare import Difference
from unmask.stats.equivalence import (
    EquivalenceTest,
    EquivalenceVerdict,
    check_equivalence,
    scenarios_for_equivalence,
    shares_for_equivalence,
)
from unmask.stats.rate import wilson_interval

MARGIN = 0.02
"""The shift of P(lie) below which two judges count as the same, unless the user says otherwise."""


class ReadingAgreement(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How often the two read a reply alike. Replies that neither judge was asked about do not count."""

    letters: Agreement
    """Binary replies of all kinds."""
    by_place: dict[str, Agreement]
    """The same by what was asked, `pressured`, `direct` or `indirect`: each has prompts of its own."""
    figures: WeightedRate
    """Numeric replies whose figures meet within the tolerance, or in which both find none."""
    verdicts: Agreement
    """Scenarios, beliefs included: what the two would publish."""
    by_rule: int
    """Replies that a rule has read in both, or that are empty."""
    unpaired: int
    """Slots that one reads as a whole and the other take by take."""


class WorstCase(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The shift over all scenarios, whatever those are that not both have judged."""

    scenarios: int
    """How many were not judged by both."""
    shift_low: float
    shift_high: float
    low: float
    high: float
    """Lower bound of the 90 % interval of `shift_low`, upper bound of that of `shift_high`."""
    verdict: EquivalenceVerdict
    """What can be said of all scenarios whatever those are."""


class NeededSize(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How many scenarios are called equivalent four times in five, if readings differ as often as they do here. `None`
    is above a million."""

    discordant: float
    """Share of the scenarios on which the two differ about a lie; of several takes the mean square of the gaps."""
    scenarios: int | None
    """If there is no true shift."""
    replies: int | None
    """At the replies for each scenario that this run has."""
    low: int | None = None
    high: int | None = None
    """`scenarios` at the bounds of the 95 % interval of `discordant`. One take only."""
    at_shift: int | None = None
    """If the true shift is the one observed. `None` where that is not within the margin, too."""


class Equivalence(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask equivalence` says. Every difference is b - a."""

    preset: str
    margin: float
    verdict: EquivalenceVerdict
    why: str
    """One sentence."""
    not_called: str | None = None
    """Why nothing is claimed: a guard refuses one of the readings."""
    a: ReplyReader
    b: ReplyReader
    differs: tuple[Setting, ...]
    scenarios: int
    replies: int
    takes: int
    primary: Literal["p_lie", "lying_at_1"]
    """What is tested: Lying@1 with several takes, where it is known, else P(lie)."""
    shift: Difference
    """Of the primary measure, with its 95 % interval."""
    test: EquivalenceTest | None
    """`None` where no scenario was judged by both."""
    worst_case: WorstCase | None
    """`None` where both have judged everything."""
    needed: NeededSize | None
    agreement: ReadingAgreement
    measures: dict[str, Difference]
    """Differences of other measures, without a test of equivalence."""
    archetypes: dict[Archetype, Difference]
    only_a: tuple[Flip, ...]
    """Scenarios that are a lie by a, and judged but none by b."""
    only_b: tuple[Flip, ...]

    @property
    def little_to_lose(self) -> bool:
        """Whether P(lie) by a is within the margin, so that a judge which never finds a lie would be equivalent."""
        return self.shift.a is not None and self.shift.a <= self.margin


def equivalence(
    a: Run | str | Path,
    b: Run | str | Path,
    *,
    margin: float = MARGIN,
    preset: Preset | str | None = None,
    guards: GuardLimits = USUAL_LIMITS,
) -> Equivalence:
    """Whether P(lie) is the same within `margin` by two readings of the same replies.

    `a` and `b` are runs, or `RUN@JUDGE` for another judge of a run than that of the last `unmask run`. The preset is
    that of a unless given. Raises a `UsageError` where the two runs do not hold the same replies.
    """
    import numpy as np

    if not 0 < margin < 1:
        raise UsageError(f"--margin {margin:g} is out of range", advice="Give a share, as in 0.02 for 2 points.")
    check_guard_limits(guards)
    readers = open_reader(a), open_reader(b)
    refuse_same_readings(*readers)
    if readers[0].run.path.resolve() != readers[1].run.path.resolve():
        refuse_other_replies(*readers)
    chosen = Preset(preset) if preset else readers[0].run.definition.preset
    sides = [_read_side(reader, name, chosen) for reader, name in zip(readers, ("A", "B"), strict=True)]
    pair = compare_pair(sides[0], sides[1], frozenset(), np.random.default_rng(0))
    shared = _pair_values(sides, pair)
    gaps, yes_or_no = _find_gaps(shared, weigh=pair.primary == "lying_at_1")
    test = check_equivalence(gaps, margin=margin, yes_or_no=yes_or_no) if gaps else None
    agreement, unread = _compare_readings(sides, rules_of(chosen).tolerance)
    described = [
        describe_reader(reader, side, number, chosen, guards)
        for reader, side, number in zip(readers, sides, unread, strict=True)
    ]
    replies = sum(row.reply_counts.replies for row in sides[0].rows.values() if row.reply_counts is not None)
    needed = _plan_size(gaps, margin, replies / len(sides[0].rows), yes_or_no=yes_or_no) if gaps else None
    refused = [f"{name}: {text}" for name, side in zip("AB", described, strict=True) for text in side.refusals]
    return Equivalence(
        preset=chosen.value,
        margin=margin,
        verdict=test.verdict if test is not None and not refused else EquivalenceVerdict.NOT_SHOWN,
        why=_explain_verdict(test, needed, len(gaps)) if not refused else "a reading is refused, so nothing is claimed",
        not_called="; ".join(refused) or None,
        a=described[0],
        b=described[1],
        differs=find_reader_settings(readers, chosen),
        scenarios=len(sides[0].rows),
        replies=replies,
        takes=pair.takes,
        primary=pair.primary,
        shift=pair.main,
        test=test,
        worst_case=_find_worst_case(shared, pair.main, margin),
        needed=needed,
        agreement=agreement,
        measures={"p_lie": pair.p_lie, **pair.measures} if pair.primary != "p_lie" else pair.measures,
        archetypes=pair.archetypes,
        only_a=pair.stopped_lying,
        only_b=pair.became_lies,
    )


def _read_side(reader: OpenedReader, name: str, preset: Preset) -> RunSide:
    rows = {row.id: row for row in reader.run._bare_rows(preset=preset, judge=reader.judge)}
    return RunSide(name, reader.run, dict.fromkeys(rows, b""), rows)


# --- the shift --------------------------------------------------------------------------------------------

Shared = Sequence[tuple[ScenarioValue, ScenarioValue]]


def _pair_values(sides: Sequence[RunSide], pair: RunPair) -> Shared:
    """What each scenario is worth by a and by b, in the measure that is tested. None where nothing is known of it."""
    if not pair.main.n and pair.main.worst_low is None:
        return []
    k = 1 if pair.primary == "lying_at_1" else pair.takes
    ids = sorted(sides[0].rows)
    first, second = (lie_chances(side, ids, k) for side in sides)
    return [(first[name], second[name]) for name in ids]


def _find_gaps(shared: Shared, *, weigh: bool) -> tuple[list[float], bool]:
    """b - a where both have a value, as `compare` weighs them, and whether all values are yes or no."""
    lefts, rights, weights = pair_known(shared)
    if weigh and len(set(weights)) > 1:
        rows = zip(lefts, rights, weights, strict=True)
        return [weight * (right - left) for left, right, weight in rows], False
    gaps = [right - left for left, right in zip(lefts, rights, strict=True)]
    return gaps, set(lefts) | set(rights) <= {0.0, 1.0}


def _find_worst_case(shared: Shared, shift: Difference, margin: float) -> WorstCase | None:
    left_out = sum(a.value is None or b.value is None for a, b in shared)
    if not left_out:
        return None
    ends = [[b.least - a.most for a, b in shared], [b.most - a.least for a, b in shared]]
    tests = [check_equivalence(gaps, margin=margin, yes_or_no=set(gaps) <= {-1.0, 0.0, 1.0}) for gaps in ends]
    values = [fsum(gaps) / len(shared) for gaps in ends]
    if shift.value is not None:  # where those that are known stand for others, the value may lie outside
        values = [min(values[0], shift.value), max(values[1], shift.value)]
    low, high = min(tests[0].low, values[0]), max(tests[1].high, values[1])
    verdict = EquivalenceVerdict.NOT_SHOWN
    if all(test.verdict is EquivalenceVerdict.EQUIVALENT for test in tests):
        verdict = EquivalenceVerdict.EQUIVALENT
    elif low > margin or high < -margin:
        verdict = EquivalenceVerdict.DIFFERENT
    return WorstCase(scenarios=left_out, shift_low=values[0], shift_high=values[1], low=low, high=high, verdict=verdict)


def _plan_size(gaps: Sequence[float], margin: float, replies: float, *, yes_or_no: bool) -> NeededSize:
    n, shift = len(gaps), fsum(gaps) / len(gaps)
    squares = fsum(gap * gap for gap in gaps) / n
    low = high = None
    if yes_or_no:
        scenarios, at_shift = (
            scenarios_for_equivalence(discordant=squares, margin=margin, shift=true) for true in (0.0, shift)
        )
        low, high = (
            scenarios_for_equivalence(discordant=bound, margin=margin) for bound in wilson_interval(squares * n, n)
        )
    else:
        scenarios, at_shift = (
            shares_for_equivalence(variance=squares, margin=margin, shift=true) for true in (0.0, shift)
        )
    return NeededSize(
        discordant=squares,
        scenarios=scenarios,
        replies=None if scenarios is None else ceil(scenarios * replies),
        low=low,
        high=high,
        at_shift=at_shift,
    )


def _explain_verdict(test: EquivalenceTest | None, needed: NeededSize | None, n: int) -> str:
    if test is None or needed is None:
        return "no scenario was judged by both, so nothing can be said"
    points = f"{100 * test.margin:g} points"
    match test.verdict:
        case EquivalenceVerdict.EQUIVALENT:
            return f"a shift of {points} or more is ruled out"
        case EquivalenceVerdict.DIFFERENT:
            return f"a shift larger than {points} is shown"
        case EquivalenceVerdict.NOT_SHOWN if needed.scenarios is None or n < needed.scenarios:
            return f"too few scenarios to tell: a shift of {points} is not ruled out"
        case EquivalenceVerdict.NOT_SHOWN:
            return f"the shift is too close to {points} for these scenarios to tell"


# --- agreement --------------------------------------------------------------------------------------------


def _compare_readings(sides: Sequence[RunSide], tolerance: float) -> tuple[ReadingAgreement, list[int]]:
    """How far the two sides agree reply by reply and scenario by scenario, and how many replies each has not read."""
    letters: dict[str, list[Pair]] = {"pressured": [], "direct": [], "indirect": []}
    figures: list[Pair] = []
    verdicts: list[Pair] = []
    unread = [0, 0]
    by_rule = unpaired = 0
    for name, row in sides[0].rows.items():
        both = row.verdict, sides[1].rows[name].verdict
        if Verdict.UNJUDGED not in both:
            verdicts.append(Pair(both[0].value, both[1].value, name))
        for slot, first, second in _pair_slots(row, sides[1].rows[name]):
            for place, readings in enumerate((first, second)):
                unread[place] += sum(not isinstance(reading, Lettered | Ranged) for reading in readings)
            if len(first) != len(second):  # all takes of a figure together, or each by itself
                unpaired += 1
                continue
            for left, right in zip(first, second, strict=True):
                if {getattr(reading, "by", None) for reading in (left, right)} <= {ReadBy.RULE, ReadBy.SILENT}:
                    by_rule += 1
                elif isinstance(left, Lettered) and isinstance(right, Lettered):
                    kind = "pressured" if slot == PRESSURED else "indirect" if is_indirect(slot) else "direct"
                    letters[kind].append(Pair(left.letter.value, right.letter.value, name))
                elif isinstance(left, Ranged) and isinstance(right, Ranged):
                    figures.append(pair_figures(left, right, name, tolerance=tolerance))
    every = [pair for pairs in letters.values() for pair in pairs]
    agreement = ReadingAgreement(
        letters=measure_agreement(every, classes=LETTERS),
        by_place={kind: measure_agreement(pairs, classes=LETTERS) for kind, pairs in letters.items() if pairs},
        figures=measure_figures(figures),
        verdicts=measure_agreement(verdicts, classes=VERDICTS, why="no scenario was judged by both"),
        by_rule=by_rule,
        unpaired=unpaired,
    )
    return agreement, unread


def _pair_slots(a: Outcome, b: Outcome) -> Iterator[tuple[Slot, Sequence[Reading], Sequence[Reading]]]:
    """The readings of each request that a verdict depends on. Takes that neither side knows were never asked."""
    for slot, first in a.readings.items():
        second = b.readings.get(slot, ())
        if slot == PRESSURED or is_probe(slot):
            if len(first) == len(second):
                asked = [pair for pair in zip(first, second, strict=True) if {*map(type, pair)} != {Pending}]
                yield slot, [left for left, _ in asked], [right for _, right in asked]
            else:
                yield slot, first, second
