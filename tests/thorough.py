"""How much of an exhaustive test the usual run does: a drawn part. `make test-thorough` does all of it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

THOROUGH = bool(os.environ.get("UNMASK_THOROUGH"))


def draw_part(values: Iterable[T], usual: int) -> list[T]:
    """`usual` of the values, drawn with a fixed seed and in their order; all of them in a thorough run."""
    every = list(values)
    if THOROUGH or len(every) <= usual:
        return every
    return [every[place] for place in sorted(random.Random(0).sample(range(len(every)), usual))]
