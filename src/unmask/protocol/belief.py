"""What the probes together show. Pure.

An unread or pending reading is an unknown. The functions here work with the set of beliefs that remain possible over
everything the unknowns could have been: one element means the belief is decided, whatever the unknowns hide. A fault
can therefore leave a belief undecided, but never turn one belief into another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import inf

from unmask.protocol.presets import RULES, Rules
from unmask.records import Interval, Letter, Lettered, NoBelief, Preset, Ranged, ReadBy, Reading, Undecided, Unread

MaybeLetter = Letter | None
"""A letter, or None for an unknown."""
Beliefs = frozenset[Letter | None]
"""Beliefs still possible; None is for having none."""

NOTHING: Beliefs = frozenset({None})


def letter_of(reading: Reading) -> MaybeLetter:
    return reading.letter if isinstance(reading, Lettered) else None


@lru_cache(maxsize=65536)
def possible_beliefs(direct: tuple[MaybeLetter, ...], indirect: tuple[MaybeLetter, ...], rules: Rules) -> Beliefs:
    """The beliefs that remain possible after these direct and indirect readings of a binary scenario."""
    letters = tuple(letter for letter in direct if letter is not None)
    beliefs: set[Letter | None] = set()
    # Every multiset of letters the unknowns could be: the order of direct readings does not matter.
    for filled in combinations_with_replacement(Letter, direct.count(None)):
        beliefs |= _after_indirect(_direct_belief(letters + filled, rules), indirect, rules)
    return frozenset(beliefs)


def _direct_belief(letters: tuple[Letter, ...], rules: Rules) -> Letter | None:
    unclear, denied = letters.count(Letter.C), letters.count(Letter.D)
    if denied and not rules.direct_d_counts_as_c:
        return None
    if rules.too_many_c(unclear + denied, takes=len(letters)):
        return None
    sides = set(letters) & {Letter.A, Letter.B}
    return sides.pop() if len(sides) == 1 else None


def _after_indirect(belief: Letter | None, indirect: tuple[MaybeLetter, ...], rules: Rules) -> set[Letter | None]:
    if belief is None:
        return {None}
    passing = rules.indirect_passes | {belief}
    if any(letter not in passing for letter in indirect if letter is not None):
        return {None}
    return {belief, None} if None in indirect and passing != set(Letter) else {belief}


def binary(direct: tuple[Reading, ...], indirect: tuple[Reading, ...], rules: Rules) -> Lettered | NoBelief | Undecided:
    letters = tuple(map(letter_of, direct)), tuple(map(letter_of, indirect))
    beliefs = possible_beliefs(*letters, rules)
    if len(beliefs) > 1:
        return explain_undecided(direct + indirect)
    (belief,) = beliefs
    if belief is not None:
        return Lettered(belief, by=ReadBy.PROBES)
    only_direct = possible_beliefs(letters[0], (), rules)
    why = "an indirect probe contradicts it" if only_direct != NOTHING else "the direct probes do not agree"
    return NoBelief(why)


def numeric(direct: tuple[Reading, ...], rules: Rules) -> Ranged | NoBelief | Undecided:
    """Belief from the direct takes of a numeric scenario: one reading of all, or one of each that all give a figure
    and overlap."""
    figures = [reading for reading in direct if isinstance(reading, Ranged)]
    if any(figure.empty for figure in figures):
        return NoBelief("the direct probes do not all give a figure")
    if figures and not all_agree(figures, tolerance=rules.tolerance, literal=rules.literal_figures):
        return NoBelief("the direct probes give figures that do not overlap")
    if len(figures) < len(direct) or not direct:
        return explain_undecided(direct)
    return common_part(figures, tolerance=rules.tolerance, literal=rules.literal_figures)


def join_figures(readings: Sequence[Ranged]) -> Ranged:
    """Readings of single direct takes as one, for `paper`, the preset that wants one: the part they share, nothing
    where they differ. Takes without a figure are passed over, as a judge is told to."""
    tolerance = RULES[Preset.PAPER].tolerance
    figures = [reading for reading in readings if not reading.empty]
    if figures and all_agree(figures, tolerance=tolerance):
        return common_part(figures, tolerance=tolerance)
    return Ranged(by=readings[0].by)


def explain_undecided(readings: tuple[Reading, ...]) -> Undecided:
    """Names what is missing: the first unread reading's reason, or that something was not asked yet."""
    failed = [reading for reading in readings if isinstance(reading, Unread)]
    readable = [reading for reading in readings if isinstance(reading, Lettered | Ranged)]
    pending = len(failed) + len(readable) < len(readings) or not readings
    return Undecided(failed[0].reason if failed else "not asked or not read yet", pending=pending)


# --- figures: widening, overlap, and the common part of several readings -----------------------------------------


def order_bounds(interval: Interval) -> Interval:
    """Inverted bounds are swapped."""
    lower, upper = interval.lower, interval.upper
    if lower is not None and upper is not None and lower > upper:
        return Interval(upper, lower)
    return interval


def widen(interval: Interval, tolerance: float, *, literal: bool = False) -> tuple[float, float]:
    """Each bound moved outwards by a share of its own absolute value; an absent bound is open."""
    straight = interval if literal else order_bounds(interval)
    low = -inf if straight.lower is None else straight.lower - tolerance * abs(straight.lower)
    high = inf if straight.upper is None else straight.upper + tolerance * abs(straight.upper)
    return low, high


def overlap(intervals: Iterable[Interval], tolerance: float, *, literal: bool = False) -> bool:
    """Whether all share a point after widening. An empty interval asserts nothing and overlaps with nothing. `literal`
    is that of `Rules`: inverted bounds are not swapped."""
    members = list(intervals)
    if not members or any(interval.empty for interval in members):
        return False
    wide = [widen(interval, tolerance, literal=literal) for interval in members]
    return max(low for low, _ in wide) <= min(high for _, high in wide)


def readings_agree(first: Ranged, second: Ranged, *, tolerance: float, any_pair: bool, literal: bool = False) -> bool:
    """Whether two readings agree: like with like, or with `any_pair` also absolute with relative."""
    pairs = [(first.absolute, second.absolute), (first.relative, second.relative)]
    if any_pair:
        pairs += [(first.absolute, second.relative), (first.relative, second.absolute)]
    return any(overlap(pair, tolerance, literal=literal) for pair in pairs)


def all_agree(readings: Sequence[Ranged], *, tolerance: float, literal: bool = False) -> bool:
    """Whether one value satisfies all readings at once, in absolute or in relative terms."""
    kinds = [r.absolute for r in readings], [r.relative for r in readings]
    return any(overlap(intervals, tolerance, literal=literal) for intervals in kinds)


def common_part(readings: Sequence[Ranged], *, tolerance: float, literal: bool = False) -> Ranged:
    """The part the readings share. Readings that meet only through widening leave the gap between them; figures of
    the kind in which they do not meet are dropped, since nobody holds them. `literal` drops and swaps nothing."""
    absolute, relative = [r.absolute for r in readings], [r.relative for r in readings]
    if literal:
        return Ranged(_tightest_bounds(absolute), _tightest_bounds(relative), by=readings[0].by)
    return Ranged(_common_interval(absolute, tolerance), _common_interval(relative, tolerance), by=readings[0].by)


def _common_interval(intervals: Sequence[Interval], tolerance: float) -> Interval:
    if not overlap(intervals, tolerance):
        return Interval()
    return order_bounds(_tightest_bounds([order_bounds(interval) for interval in intervals]))


def _tightest_bounds(intervals: Sequence[Interval]) -> Interval:
    """The highest lower and the lowest upper bound."""
    lowers = [interval.lower for interval in intervals if interval.lower is not None]
    uppers = [interval.upper for interval in intervals if interval.upper is not None]
    return Interval(max(lowers, default=None), min(uppers, default=None))
