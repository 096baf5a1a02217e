"""Is a difference smaller than a margin? Two one-sided tests, one against each end of the margin (Schuirmann 1987).

That no difference is larger than chance shows nothing: few scenarios never show one. Here the data have to rule out a
difference as large as the margin, upwards and downwards, whatever is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from enum import StrEnum
from math import fsum, sqrt

from unmask.records import Record
from unmask.stats.estimate import ALPHA, ROUNDING, Difference
from unmask.stats.rate import binomial_tail
from unmask.stats.values import Value, compare_values, sum_fills

LEVEL = 1 - 2 * ALPHA
"""Of the interval that has to lie inside the margin: each of its bounds is right in 95 % of cases."""


class MarginVerdict(StrEnum):
    """What can be said about a difference and a margin."""

    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    NOT_SHOWN = "not_shown"


class MarginTest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Whether a difference is smaller than a margin, larger, or neither is shown."""

    margin: float
    verdict: MarginVerdict
    why: str
    """One sentence."""
    level: float = LEVEL
    low: float | None = None
    """Of the interval of this level, whatever is not known."""
    high: float | None = None


def check_margin(
    a: Sequence[Value], b: Sequence[Value], clusters: Sequence[Hashable] | None, takes: int, margin: float
) -> MarginTest:
    """*Equivalent* where the 90 % interval lies inside the margin and both one-sided tests reject. *Different* where
    the 95 % interval lies beyond one end; that of 90 % does in up to 7 % of cases in which the difference is as large
    as the margin. Both hold for everything that the unknown could be."""
    narrow, wide = (compare_values(a, b, clusters, takes, level) for level in (LEVEL, 0.95))
    low, high = narrow.worst_lower, narrow.worst_upper
    rises, falls = (sum_fills(a, b, clusters, up=up) for up in (True, False))
    points = f"{100 * margin:g} points"
    if (
        _is_inside(low, high, margin)
        and margin_p_value(*rises, margin) <= ALPHA
        and margin_p_value([-one for one in falls[0]], falls[1], margin) <= ALPHA
    ):
        verdict, why = MarginVerdict.EQUIVALENT, f"a difference of {points} or more is ruled out"
    elif _is_beyond(wide.worst_lower, wide.worst_upper, margin):
        verdict, why = MarginVerdict.DIFFERENT, f"a difference of more than {points} is shown"
    else:
        verdict, why = MarginVerdict.NOT_SHOWN, _explain_doubt(narrow, wide, margin, points)
    return MarginTest(margin=margin, verdict=verdict, why=why, low=low, high=high)


def _explain_doubt(narrow: Difference, wide: Difference, margin: float, points: str) -> str:
    """Why neither is shown: what was judged would show it alone, or is too little, or too near to the margin."""
    if narrow.low is None or narrow.high is None:
        return str(narrow.why)
    inside = _is_inside(narrow.low, narrow.high, margin)
    if narrow.worst_low != narrow.worst_high and (inside or _is_beyond(wide.low, wide.high, margin)):
        return "it depends on what was not judged"
    if inside or narrow.high - narrow.low > 2 * margin:
        return f"too few scenarios to tell: a difference of {points} is not ruled out"
    return f"the difference is too close to {points} for these scenarios to tell"


def _is_inside(low: float | None, high: float | None, margin: float) -> bool:
    return low is not None and high is not None and -margin < low and high < margin


def _is_beyond(low: float | None, high: float | None, margin: float) -> bool:
    return (low is not None and low > margin) or (high is not None and high < -margin)


def margin_p_value(sums: Sequence[float], sizes: Sequence[float], margin: float) -> float:
    """Chance of a mean of the clusters as small as this one or smaller, if the true one is the margin.

    The score test with the likeliest distribution that has this mean: that of the clusters, tilted, and what is left
    over at the largest difference there can be (Owen 1988). For yes or no it is Tango's test. The variance that was
    seen says too little where few clusters differ: with it, 8 to 14 % of differences as large as the margin pass where
    takes of a scenario are all read in another way. Where hardly a cluster differs, the binomial test says more.
    """
    from scipy.special import stdtr

    count = len(sums)
    rows = Counter(one - margin * size for one, size in zip(sums, sizes, strict=True))
    mean = fsum(number * gap for gap, number in rows.items()) / count
    if count < 2 or mean >= 0:
        return 1.0
    furthest = max(*rows, (1 - margin) * max(sizes))
    low, high = 0.0, 1 / furthest
    for _ in range(60):
        tilt = (low + high) / 2
        below = fsum(number * gap / (1 - tilt * gap) for gap, number in rows.items()) < 0
        low, high = (tilt, high) if below else (low, tilt)
    chances = {gap: number / count / (1 - low * gap) for gap, number in rows.items()}
    unseen = max(0.0, 1 - fsum(chances.values()))
    variance = fsum(chance * gap * gap for gap, chance in chances.items()) + unseen * furthest**2
    p_score = float(stdtr(count - 1, mean / sqrt(variance / count)))
    return max(p_score, binomial_tail(int((fsum(sums) + ROUNDING) // 1), count, margin))
