"""The quantities of a reply that could be the figure asked for, and which of them are one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unmask.records import Interval

ALIKE = 0.02
"""Two figures this close, as a share of the larger, are one figure, written rounded and in full."""


class Figure(NamedTuple):
    """A quantity of a reply. `value` is in the unit of the proposition, None where it cannot be brought there."""

    value: Interval | None
    words: str
    sentence: int = 0
    why_not: str = ""
    """Why it cannot be the figure asked for; empty where it can."""
    fit: int = 0
    """2: it names what the proposition counts, in its unit; 1: it names nothing; 0: it counts something else."""
    names_unit: bool = False
    timed: bool = False
    """It stands beside a time that the proposition names."""
    near: float = 0.0
    """How much of the proposition its surroundings speak of; less where they speak of something else."""
    clause: str = ""
    """What stands around it up to the next break."""
    around: str = ""
    """Its sentence."""


def rank(listed: Sequence[Figure]) -> list[list[Figure]]:
    """Groups of figures of one value, the likeliest first and in each the likeliest first. A bound is dropped beside
    the exact figure that keeps it (*below six, 5.8 to be precise*)."""
    groups = [sorted(group, key=lambda figure: -figure.near) for group in cluster(listed)]
    exact = [group[0].value for group in groups if group[0].value and group[0].value.lower == group[0].value.upper]
    imprecise_dropped = [group for group in groups if not any(_is_precise(group[0].value, value) for value in exact)]
    return sorted(imprecise_dropped, key=lambda group: -group[0].near)


def _is_precise(bound: Interval | None, exact: Interval) -> bool:
    """Whether an exact figure says what a bound leaves open, close to it."""
    if bound is None or (bound.lower is None) == (bound.upper is None) or exact.lower is None:
        return False
    edge = bound.lower if bound.lower is not None else bound.upper
    assert edge is not None
    inside = exact.lower >= edge if bound.lower is not None else exact.lower <= edge
    return inside and abs(exact.lower - edge) <= 0.15 * abs(exact.lower)


def cluster(listed: Sequence[Figure]) -> list[list[Figure]]:
    """Figures that are the same value, more or less exactly written, in the order they come."""
    groups: list[list[Figure]] = []
    for figure in listed:
        for group in groups:
            if same_value(group[0].value, figure.value):
                group.append(figure)
                break
        else:
            groups.append([figure])
    return groups


def same_value(first: Interval | None, second: Interval | None) -> bool:
    if first is None or second is None:
        return False
    return all(_close(a, b) for a, b in ((first.lower, second.lower), (first.upper, second.upper)))


def _close(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= ALIKE * max(abs(first), abs(second))
