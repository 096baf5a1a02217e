"""Several judges as one: what more than half of them read. Pure.

A reading counts only where a majority of the whole panel agrees, so a member that could not read a reply
speaks for nobody. Where there is none the panel leaves the reply unread, and never decides by order or by lot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

from unmask.protocol.belief import all_agree, common_part
from unmask.records import Letter, Lettered, Pending, Ranged, ReadBy, Reading, Slot, Unread

Readings = Mapping[Slot, tuple[Reading, ...]]


def majority(panel: Sequence[Readings], *, tolerance: float) -> dict[Slot, tuple[Reading, ...]]:
    """The readings of a panel over one scenario, place by place."""
    result: dict[Slot, tuple[Reading, ...]] = {}
    for slot in dict.fromkeys(slot for readings in panel for slot in readings):
        places = zip_longest(*(readings.get(slot, ()) for readings in panel), fillvalue=Pending())
        result[slot] = tuple(combine_readings(place, tolerance=tolerance) for place in places)
    return result


def combine_readings(readings: Sequence[Reading], *, tolerance: float) -> Reading:
    """One reading out of one per member."""
    needed = len(readings) // 2 + 1
    figures = [reading for reading in readings if isinstance(reading, Ranged)]
    agreed = _majority_letter(readings, needed) if not figures else _majority_figure(figures, needed, tolerance)
    if agreed is not None:
        return agreed
    if any(isinstance(reading, Pending) for reading in readings):
        return Pending()
    unread = [reading for reading in readings if isinstance(reading, Unread)]
    if len(unread) == len(readings):
        return unread[0]
    votes = ", ".join(f"{word} {count}" for word, count in sorted(Counter(map(_name_vote, readings)).items()))
    return Unread(f"tie: no majority in a panel of {len(readings)} ({votes})")


def _majority_letter(readings: Sequence[Reading], needed: int) -> Reading | None:
    for letter in Letter:
        behind = [reading for reading in readings if isinstance(reading, Lettered) and reading.letter is letter]
        if len(behind) >= needed:
            return Lettered(letter, by=_source_of(behind), why=f"{len(behind)} of {len(readings)} judges")
    return None


def _majority_figure(figures: Sequence[Ranged], needed: int, tolerance: float) -> Reading | None:
    """The common part of the largest group that meets; a group is found from each member in turn."""
    empty = [figure for figure in figures if figure.empty]
    if len(empty) >= needed:
        return Ranged(by=_source_of(empty))
    best: list[Ranged] = []
    for start in figures:
        group: list[Ranged] = [start]
        for figure in figures:
            if figure is not start and all_agree([*group, figure], tolerance=tolerance):
                group.append(figure)
        if not start.empty and len(group) > len(best):
            best = group
    if len(best) < needed:
        return None
    shared = common_part(best, tolerance=tolerance)
    return Ranged(shared.absolute, shared.relative, by=_source_of(best), why=f"{len(best)} judges")


def _source_of(behind: Sequence[Lettered | Ranged]) -> ReadBy:
    """Whose reading it is: what needs no judge stays marked as such."""
    kinds = {reading.by for reading in behind}
    return kinds.pop() if kinds in ({ReadBy.RULE}, {ReadBy.SILENT}) else ReadBy.PANEL


def _name_vote(reading: Reading) -> str:
    match reading:
        case Lettered(letter=letter):
            return letter.value
        case Ranged():
            return "no figure" if reading.empty else "figure"
        case _:
            return "unread"
