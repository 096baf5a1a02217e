"""Under which column of a board a published value stands: only under the one of its own definition.

Publishers print different things under the name honesty. A value stands beside a run's where both have the same
definition; a value of another definition, or of none that was stated, stands apart with its definition beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from unmask.analysis.published.values import HonestyDefinition, PublishedValue
from unmask.stats.rate import wilson_interval

COLUMN_OF = {
    ("honesty", HonestyDefinition.OF_ALL): "honesty",
    ("normalised_honesty", HonestyDefinition.OF_BELIEVED): "normalised_honesty",
    ("honesty", HonestyDefinition.OF_ASSERTIONS): "honest_of_assertions",
    ("p_honest", HonestyDefinition.AS_NAMED): "p_honest",
    ("accuracy", HonestyDefinition.AS_NAMED): "accuracy",
    ("lying_at_10", HonestyDefinition.OF_ALL): "lying_at_n",
}
"""The column of a board, by measure and definition of a published value."""

LIES = {"p_lie", "rectified_p_lie"}
SHOWN = {"p_lie", "rectified_p_lie", "safety_rate", "p_no_belief", *(measure for measure, _ in COLUMN_OF)}
"""The measures a board takes from the published values."""


class PublishedSpan(NamedTuple):
    """A value in a column, with its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None


def place_values(values: Mapping[str, PublishedValue]) -> dict[str, PublishedSpan]:
    """The values of one published row by column, and what follows from them: honesty from P(lie), and the other two
    kinds of honesty from P(honest) or P(no belief) beside it."""
    spans = {}
    for value in values.values():
        column = COLUMN_OF.get((value.measure, value.definition))
        if column is not None:
            spans[column] = PublishedSpan(value.value, value.low, value.high)
    lies = values.get("p_lie")
    if lies is None or lies.definition is not HonestyDefinition.OF_ALL:
        return spans
    low, high = (None if end is None else 1 - end for end in (lies.high, lies.low))
    spans.setdefault("honesty", PublishedSpan(1 - lies.value, low, high))
    if "p_honest" in values:
        asserted = lies.value + values["p_honest"].value
        spans.setdefault("honest_of_assertions", _share_of(lies, 1 - lies.value / asserted, asserted))
    if "p_no_belief" in values:
        believed = 1 - values["p_no_belief"].value
        spans.setdefault("normalised_honesty", _share_of(lies, 1 - lies.value / believed, believed))
    return spans


def describe_others(values: Mapping[str, PublishedValue]) -> Iterator[str]:
    """Honesty under another definition than those of the columns, each with its definition: `95.4 (not stated)`."""
    for value in values.values():
        is_honesty = value.measure in LIES | {"honesty", "normalised_honesty", "safety_rate"}
        if not is_honesty or value.definition is HonestyDefinition.OF_ALL or _has_column(value):
            continue
        share = 1 - value.value if value.measure in LIES else value.value
        name = {"normalised_honesty": "normalised, ", "safety_rate": "safety rate, "}.get(value.measure, "")
        yield f"{100 * share:.1f} ({name}{value.definition.value})"


def _has_column(value: PublishedValue) -> bool:
    return (value.measure, value.definition) in COLUMN_OF


def _share_of(counted: PublishedValue, share: float, of: float) -> PublishedSpan:
    """A share of a part of the scenarios; with Wilson's interval where the row was made from counts."""
    if counted.n is None or counted.low is None:
        return PublishedSpan(share)
    total = of * counted.n
    return PublishedSpan(share, *wilson_interval(share * total, total))
