"""How far two readers agree, beyond chance: agreement, Cohen's kappa, Gwet's AC1, Krippendorff's alpha.

Items may carry weights, because a sample for labelling draws disagreement more often than it occurs; then every number
is that of the whole run. Clusters of scenarios are what varies at random. The agreement has the interval of
`drawn_share`, the coefficients one by leaving out each cluster, on Fisher's scale.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import permutations
from math import atanh, sqrt, tanh
from typing import TYPE_CHECKING, NamedTuple

from unmask.records import Record
from unmask.stats.drawn import Bounded, Drawn, doubt_sum, drawn_share, student_quantile, usual_error

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
    """The scenario it belongs to, or the cluster of that."""
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


def measure_agreement(pairs: Sequence[Pair], *, classes: Sequence[str]) -> Agreement:
    """`classes` is the whole scale, used or not; AC1 depends on its size."""
    reason = _too_few(len(pairs), "no item was read by both")
    found = dict.fromkeys(("agreement", *COEFFICIENTS), Coefficient(why=reason))
    if reason is None:
        tables = _Tables.of([RatedItem((pair.a, pair.b), pair.cluster, pair.weight) for pair in pairs], classes)
        shared = tables.share_alike()
        found = {"agreement": Coefficient(value=shared.value, low=shared.low, high=shared.high)}
        found |= {name: _estimate(tables, name, classes) for name in COEFFICIENTS}
        constant = next((words for words in ({p.a for p in pairs}, {p.b for p in pairs}) if len(words) == 1), None)
        if constant and found["kappa"].value is not None:
            always = f"one reader always says {constant.pop()}: kappa is 0 whatever the other says"
            found["kappa"] = Coefficient(why=always)
    return Agreement(
        n=len(pairs),
        clusters=len({pair.cluster for pair in pairs}),
        weighted=len({pair.weight for pair in pairs}) > 1,
        confusion={a: {b: sum(pair.a == a and pair.b == b for pair in pairs) for b in classes} for a in classes},
        **found,
    )


def krippendorff_alpha(units: Iterable[RatedItem], *, classes: Sequence[str]) -> Coefficient:
    """Nominal alpha over any number of readers; items that fewer than two have read play no part."""
    comparable = [unit for unit in units if len(unit.values) > 1]
    reason = _too_few(len(comparable), "no reply was labelled by two people")
    return Coefficient(why=reason) if reason else _estimate(_Tables.of(comparable, classes), "alpha", classes)


def _too_few(count: int, none: str) -> str | None:
    if not count:
        return none
    return "one item only: agreement cannot be told from chance" if count == 1 else None


class _Tables(NamedTuple):
    """Items summed by their weight and cluster: what the first reads, and then what the second does."""

    sums: Floats
    weights: list[float]
    clusters: list[str]
    pairs: float
    """Items of two readings; one of m readings counts for m / 2."""

    @classmethod
    def of(cls, items: Sequence[RatedItem], classes: Sequence[str]) -> _Tables:
        """Of more than two readers every ordered pair, so scaled that an item counts by its number of readings."""
        import numpy as np

        keys = list(dict.fromkeys((item.weight, item.cluster) for item in items))
        places = {key: place for place, key in enumerate(keys)}
        number = {name: place for place, name in enumerate(classes)}
        sums = np.zeros((len(keys), len(classes), len(classes)))
        for item in items:
            table, values = sums[places[item.weight, item.cluster]], [number[value] for value in item.values]
            couples = [tuple(values)] if len(values) == 2 else list(permutations(values, 2))
            for first, second in couples:
                table[first, second] += item.weight * len(values) / 2 / len(couples)
        pairs = sum(len(item.values) for item in items) / 2
        return cls(sums, [weight for weight, _ in keys], [name for _, name in keys], pairs)

    def share_alike(self) -> Bounded:
        rows = zip(self.sums, self.weights, self.clusters, strict=True)
        return drawn_share(
            [Drawn(own.trace() / weight, weight, name, whole=own.sum() / weight) for own, weight, name in rows]
        )


def _estimate(tables: _Tables, name: str, classes: Sequence[str]) -> Coefficient:
    """A coefficient with its interval. Where all items are alike there is no spread to go by: the bounds are then what
    those of the agreement make of it."""
    total = tables.sums.sum(0)
    used = [word for word, count in zip(classes, total.sum(0) + total.sum(1), strict=True) if count > 0]
    if len(used) == 1:
        return Coefficient(why=f"every reading is {used[0]}: with one class there is no agreement beyond chance")
    value = float(_compute(total, name, tables.pairs))
    spread, doubted = _spread(tables, value, name)
    if value > 1 - 1e-12 or spread < 1e-9:
        chance = float(_agree_by_chance(total, name, tables.pairs))
        low, high = ((bound - chance) / (1 - chance) for bound in tables.share_alike()[1:])
        return Coefficient(value=1.0 if value > 1 - 1e-12 else value, low=low, high=high)
    # The scale is that of the middle of the two: at a value close to 1 alone it would stretch without end.
    clipped, middle = (min(1 - 1e-9, max(-1 + 1e-9, one)) for one in (value, (value + doubted) / 2))
    half = student_quantile(len(set(tables.clusters)) - 1) * spread / (1 - middle * middle)
    return Coefficient(value=value, low=tanh(atanh(clipped) - half), high=tanh(atanh(clipped) + half))


def _compute(tables: Floats, name: str, pairs: float) -> Floats:
    """A coefficient of many tables at once; not a number where one is empty or chance alone would agree on all."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        observed = np.trace(tables, axis1=-2, axis2=-1) / tables.sum((-2, -1))
        chance = _agree_by_chance(tables, name, pairs)
        values: Floats = np.where(chance < 1 - 1e-12, (observed - chance) / (1 - chance), np.nan)
    return values


def _agree_by_chance(tables: Floats, name: str, pairs: float) -> Floats:
    """In the sense of each coefficient."""
    total = tables.sum((-2, -1))[..., None]
    rows, columns = tables.sum(-1) / total, tables.sum(-2) / total
    both = (rows + columns) / 2
    match name:
        case "kappa":
            chance: Floats = (rows * columns).sum(-1)
        case "ac1":
            chance = (both * (1 - both)).sum(-1) / (tables.shape[-1] - 1)
        case _:  # alpha draws its two values without putting the first one back
            chance = 1 - (1 - (both * both).sum(-1)) * 2 * pairs / (2 * pairs - 1)
    return chance


def _spread(tables: _Tables, value: float, name: str) -> tuple[float, float]:
    """The standard error, by leaving out one cluster at a time, and in it the items of each weight apart: each weight
    is a stratum. Where there are several, half a disagreement more counts in each, as in `stats.drawn`, spread as
    chance would. The value with these comes second."""
    import numpy as np

    sums, total, weights = tables.sums, tables.sums.sum(0), np.array(tables.weights)
    without = _compute(total - sums, name, tables.pairs * (1 - 1 / len(sums)))
    influence = np.nan_to_num((value - without) * (1 - sums.sum((1, 2)) / total.sum()))
    apart = usual_error(list(1 - np.trace(sums, axis1=1, axis2=2) / sums.sum((1, 2))))
    chances = np.outer(total.sum(1), total.sum(0)) * (1 - np.eye(len(total)))
    parts: defaultdict[str, float] = defaultdict(float)
    doubted, variance = value, 0.0
    for weight in np.unique(weights):
        seen, own = influence[weights == weight], sums[weights == weight].mean(0)
        mean = seen.mean()
        for cluster, part in zip(np.array(tables.clusters)[weights == weight], seen - mean, strict=True):
            parts[cluster] += part
        if seen.size < len(sums) and chances.any():
            other = total + apart * (own.sum() * chances / chances.sum() - own)
            moved = float(_compute(other, name, tables.pairs)) - value
            shift, doubt = doubt_sum(list(seen), (mean + moved, mean))
            doubted, variance = doubted + shift, variance + doubt + seen.size * mean * mean / weight
    variance += sum(part * part for part in parts.values()) * len(parts) / max(1, len(parts) - 1)
    return sqrt(variance), doubted
