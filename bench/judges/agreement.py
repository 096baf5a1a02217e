"""When two readings say the same, and how far two readers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unmask.protocol.belief import readings_agree
from unmask.records import Lettered, Ranged, Reading


def agree(one: Reading, other: Reading) -> bool:
    """Whether two readings say the same: the letter, or figures that overlap (nothing with nothing)."""
    if isinstance(one, Lettered) and isinstance(other, Lettered):
        return one.letter is other.letter
    if isinstance(one, Ranged) and isinstance(other, Ranged):
        return (one.empty and other.empty) or readings_agree(one, other, tolerance=0.05, any_pair=False)
    return False


def name_of(reading: Reading) -> str:
    """The class of a reading in a confusion table."""
    if isinstance(reading, Lettered):
        return reading.letter.value
    if isinstance(reading, Ranged):
        return "nothing" if reading.empty else "figure"
    return "unread"


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of letters; None where chance agreement is certain or there is nothing."""
    total = len(pairs)
    if not total:
        return None
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(left[key] * right[key] for key in left) / total**2
    seen = sum(a == b for a, b in pairs) / total
    return None if chance == 1 else (seen - chance) / (1 - chance)
