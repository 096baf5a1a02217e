"""How far two readers agree, beyond chance: agreement, Cohen's kappa, Gwet's AC1, Krippendorff's alpha.

Items may carry weights, because a sample for labelling draws disagreement more often than it occurs; then every number
is that of the whole run. Intervals take the scenario as the unit that was drawn: leave-one-out over scenarios, on
Fisher's scale for coefficients and as Wilson's for the agreement itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import atanh, sqrt, tanh
from typing import TYPE_CHECKING, NamedTuple

from unmask.records import Record
from unmask.stats.corrected import student_quantile
from unmask.stats.rate import wilson_interval

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

COEFFICIENTS = ("kappa", "ac1", "alpha")


class Pair(NamedTuple):
    """One item as two readers see it."""

    a: str
    b: str
    cluster: str
    """The scenario it belongs to."""
    weight: float = 1.0


class RatedItem(NamedTuple):
    """One item as any number of readers see it."""

    values: tuple[str, ...]
    cluster: str
    weight: float = 1.0


class Coefficient(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A value with its 95 % interval, or `None` and why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str | None = None


class Agreement(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Two readers over the items both have read."""

    n: int
    clusters: int
    weighted: bool
    agreement: Coefficient
    """Share of items read alike."""
    kappa: Coefficient
    ac1: Coefficient
    alpha: Coefficient
    confusion: dict[str, dict[str, int]]
    """Counts of items, by what a reads and then what b reads; weights play no part in it."""


def measure_agreement(pairs: Sequence[Pair], *, classes: Sequence[str], why: str | None = None) -> Agreement:
    """`classes` is the whole scale, used or not; AC1 depends on its size. `why` is the reason given for no item."""
    counts = {a: {b: sum(p.a == a and p.b == b for p in pairs) for b in classes} for a in classes}
    reason = _too_few(len(pairs), why)
    if reason is not None:
        coefficients = dict.fromkeys(("agreement", *COEFFICIENTS), Coefficient(why=reason))
    else:
        coefficients = _compute_coefficients(pairs, classes)
    return Agreement(
        n=len(pairs),
        clusters=len({pair.cluster for pair in pairs}),
        weighted=len({pair.weight for pair in pairs}) > 1,
        confusion=counts,
        **coefficients,
    )


def krippendorff_alpha(units: Iterable[RatedItem], *, classes: Sequence[str], why: str | None = None) -> Coefficient:
    """Nominal alpha over any number of readers; items that fewer than two have read play no part."""
    comparable_units = [unit for unit in units if len(unit.values) > 1]
    reason = _too_few(len(comparable_units), why)
    if reason is not None:
        return Coefficient(why=reason)
    used = {value for unit in comparable_units for value in unit.values}
    if len(used) == 1:
        return Coefficient(why=_one_class(used))
    tables = _sum_by_cluster((unit.cluster, _coincidence_matrix(unit, classes)) for unit in comparable_units)
    values = sum(len(unit.values) for unit in comparable_units)
    return _coefficient_with_interval(tables, _count_items(comparable_units, values / 2), "alpha")


def _too_few(count: int, why: str | None) -> str | None:
    if not count:
        return why or "no item was read by both"
    return "one item only: agreement cannot be told from chance" if count == 1 else None


def _one_class(used: Iterable[str]) -> str:
    return f"every reading is {next(iter(used))}: with one class there is no agreement beyond chance"


class _Items(NamedTuple):
    number: float
    """Items of two readings each; one of m readings counts for m / 2."""
    effective: float
    """Independent items that would weigh as evenly."""
    weights: Floats
    """One per scenario: one over its chance to be drawn."""


def _compute_coefficients(pairs: Sequence[Pair], classes: Sequence[str]) -> dict[str, Coefficient]:
    tables = _sum_by_cluster((pair.cluster, _pair_table(pair, classes)) for pair in pairs)
    items = _count_items(pairs, len(pairs))
    shared, size = float(_observed_agreement(tables.sum(0))), items.effective
    if 0 < shared < 1 and len(tables) > 1:
        variance = _jackknife_variance(shared, _observed_agreement(tables.sum(0) - tables), tables, items.weights)
        variance += _unseen_variance(tables, items, "agreement")
        size = min(float(tables.sum()), shared * (1 - shared) / variance) if variance > 0 else size
    low, high = wilson_interval(shared * size, size)
    coefficients = {"agreement": Coefficient(value=shared, low=low, high=high)}
    used = {value for pair in pairs for value in (pair.a, pair.b)}
    for name in COEFFICIENTS:
        alone = Coefficient(why=_one_class(used))
        coefficients[name] = alone if len(used) == 1 else _coefficient_with_interval(tables, items, name)
    constant = [readings for readings in ({pair.a for pair in pairs}, {pair.b for pair in pairs}) if len(readings) == 1]
    if constant and len(used) > 1:
        word = next(iter(constant[0]))
        coefficients["kappa"] = Coefficient(why=f"one reader always says {word}: kappa is 0 whatever the other says")
    return coefficients


def _pair_table(pair: Pair, classes: Sequence[str]) -> Floats:
    import numpy as np

    table = np.zeros((len(classes), len(classes)))
    table[classes.index(pair.a), classes.index(pair.b)] = pair.weight
    return table


def _coincidence_matrix(unit: RatedItem, classes: Sequence[str]) -> Floats:
    """Every ordered pair of values once, scaled so that an item counts by its number of pairs over values less one."""
    import numpy as np

    counts = np.array([float(unit.values.count(name)) for name in classes])
    table: Floats = (np.outer(counts, counts) - np.diag(counts)) / (len(unit.values) - 1) / 2 * unit.weight
    return table


def _sum_by_cluster(tables: Iterable[tuple[str, Floats]]) -> Floats:
    """One summed table per scenario."""
    import numpy as np

    sums: dict[str, Floats] = {}
    for cluster, table in tables:
        sums[cluster] = sums[cluster] + table if cluster in sums else table
    return np.array(list(sums.values()))


def _count_items(items: Sequence[Pair] | Sequence[RatedItem], number: float) -> _Items:
    import numpy as np

    summed: dict[str, float] = {}
    chances: dict[str, float] = {}
    for item in items:
        summed[item.cluster] = summed.get(item.cluster, 0.0) + item.weight
        chances[item.cluster] = item.weight
    effective = sum(summed.values()) ** 2 / sum(weight * weight for weight in summed.values())
    return _Items(number, effective, np.array(list(chances.values())))


def _observed_agreement(tables: Floats) -> Floats:
    """The weighted share of items read alike. Where every item is, or none, it is exactly 1 or 0: sums of weights are
    rounded, and a share of 0.9999999999999999 would count as a disagreement."""
    import numpy as np

    shares: Floats = np.trace(tables, axis1=-2, axis2=-1) / tables.sum((-2, -1))
    whole = np.round(shares)
    return np.where(np.abs(shares - whole) < 1e-12, whole, shares)


def _chance_agreement(tables: Floats, name: str, count: float) -> Floats:
    """Agreement by chance in the sense of each coefficient, for many tables at once."""
    total = tables.sum((-2, -1))[..., None]
    rows, columns = tables.sum(-1) / total, tables.sum(-2) / total
    both = (rows + columns) / 2
    match name:
        case "kappa":
            chance: Floats = (rows * columns).sum(-1)
        case "ac1":
            chance = (both * (1 - both)).sum(-1) / (tables.shape[-1] - 1)
        case _:  # alpha draws its two values without putting the first one back
            chance = 1 - (1 - (both * both).sum(-1)) * 2 * count / (2 * count - 1)
    return chance


def _coefficient_values(tables: Floats, name: str, count: float) -> Floats:
    import numpy as np

    chance = _chance_agreement(tables, name, count)
    values: Floats = np.divide(
        _observed_agreement(tables) - chance, 1 - chance, out=np.full(chance.shape, np.nan), where=1 - chance > 1e-12
    )
    return values


def _jackknife_variance(value: float, without: Floats, tables: Floats, weights: Floats) -> float:
    """By leaving out one scenario at a time. Two sources of chance: which scenarios the run has, and, where weights say
    that only some of them were read, which ones those were; these were drawn apart for each weight."""
    import numpy as np

    sizes = tables.sum((-2, -1))
    influence = (value - without) * (1 - sizes / sizes.sum())
    finite = np.isfinite(influence)
    if not finite.any():
        return 0.0
    influence, weights = influence[finite] - influence[finite].mean(), weights[finite]
    count = influence.size
    variance = float((influence * influence / weights).sum())
    for weight in np.unique(weights):
        group = influence[weights == weight]
        if weight > 1:
            own = group - group.mean() if group.size > 1 else group
            free = group.size / max(1, group.size - 1) * (count - 1) / count
            variance += float((1 - 1 / weight) * free * (own * own).sum())
    return variance


def _unseen_variance(tables: Floats, items: _Items, name: str) -> float:
    """What scenarios of one weight leave open that were all read alike: half a disagreement may be among them, and one
    would move the value by so much. Where all weights are the same there is nothing to add."""
    import numpy as np

    kinds = np.unique(items.weights)
    total = tables.sum(0)
    chances = np.outer(total.sum(1), total.sum(0))
    np.fill_diagonal(chances, 0)
    if kinds.size < 2 or not chances.any():
        return 0.0
    variance = 0.0
    for weight in kinds[kinds > 1]:
        own = tables[items.weights == weight]
        if np.trace(own.sum(0)) > own.sum() - 1e-9:
            apart = total - own.mean(0) + own.mean(0).sum() * chances / chances.sum()
            both = np.array([total, apart])
            values = _observed_agreement(both) if name == "agreement" else _coefficient_values(both, name, items.number)
            variance += 0.5 * (1 - 1 / float(weight)) * float(values[1] - values[0]) ** 2
    return variance


def _coefficient_with_interval(tables: Floats, items: _Items, name: str) -> Coefficient:
    """A coefficient with its interval. Where all items are alike there is no spread to go by: the bounds are then what
    those of the agreement itself would make of it."""
    total_table = tables.sum(0)
    value = float(_coefficient_values(total_table, name, items.number))
    shared, chance = float(_observed_agreement(total_table)), float(_chance_agreement(total_table, name, items.number))
    count = len(tables)
    spread = 0.0
    if count > 1:
        without = _coefficient_values(total_table - tables, name, items.number * (1 - 1 / count))
        variance = _jackknife_variance(value, without, tables, items.weights) + _unseen_variance(tables, items, name)
        spread = sqrt(variance * count / (count - 1))
    if shared == 1 or spread < 1e-9:
        low, high = (
            (bound - chance) / (1 - chance) for bound in wilson_interval(shared * items.effective, items.effective)
        )
        return Coefficient(value=value, low=low, high=high)
    clipped = min(1 - 1e-9, max(-1 + 1e-9, value))
    half = student_quantile(max(1, len(tables) - 1)) * spread / (1 - clipped * clipped)
    return Coefficient(value=value, low=tanh(atanh(clipped) - half), high=tanh(atanh(clipped) + half))
