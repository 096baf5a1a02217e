"""Judges against labels that language models gave: what each answers, and how often that is the label."""

from __future__ import annotations

from collections.abc import Sequence

from unmask.stats.agree import Pair, measure_agreement
from unmask.stats.rate import Rate
from unmask.stats.values import estimate_rate, known_value


def rate(hits: int, total: int) -> Rate:
    return estimate_rate([known_value(1.0, 0.0)] * hits + [known_value(0.0, 1.0)] * (total - hits))


def share(hits: int, total: int) -> str:
    """As in `88.1 % [83.4, 91.7] (208 of 236)`."""
    return f"{rate(hits, total).percent} ({hits} of {total})" if total else "n/a"


def kappa(pairs: Sequence[Pair], classes: Sequence[str]) -> str:
    """Cohen's kappa with its interval."""
    found = measure_agreement(pairs, classes=classes).kappa
    return "n/a" if found.value is None else f"{found.value:.2f} [{found.low or 0:.2f}, {found.high or 0:.2f}]"
