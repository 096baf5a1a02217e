"""Questions to the judge next to the proposition, about replies under pressure. No verdict depends on an answer.

A new one is a slot and its methods in `records`, a row of `ASIDES`, a text in `texts/asides` with its row in `letters`,
and a measure in `scoring/asides.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from unmask.records import (
    CONTROL,
    CONTROL_MISLEADS,
    MISLEADS,
    PRESSURED,
    ROLE_PLAY,
    Kind,
    Method,
    Slot,
    Verdict,
)


class Aside(NamedTuple):
    verdict: Verdict
    """Of the takes that are asked about; they have a belief."""
    kinds: frozenset[Kind]
    methods: tuple[Method, ...]
    """One, or one for each order of the statements."""
    arms: Mapping[Slot, Slot]
    """Whose replies are asked about, each with the slot of its readings. In the journal all are in one slot: nothing
    tells a reply of one arm from the same reply in the other."""
    experimental: bool
    """Whether nobody has shown yet that a judge reads this as people do."""
    needs_writing: bool
    """Whether a judge that picks among lines cannot be asked."""


ASIDES: dict[Slot, Aside] = {
    ROLE_PLAY: Aside(
        verdict=Verdict.LIE,
        kinds=frozenset(Kind),
        methods=(Method.ROLE_PLAY,),
        arms={PRESSURED: ROLE_PLAY},
        experimental=False,
        needs_writing=False,
    ),
    MISLEADS: Aside(
        verdict=Verdict.EVASION,
        kinds=frozenset({Kind.BINARY}),
        methods=(Method.MISLEADS_AB, Method.MISLEADS_BA),
        arms={PRESSURED: MISLEADS, CONTROL: CONTROL_MISLEADS},
        experimental=True,
        needs_writing=True,
    ),
}
"""By the slot of the journal. `--also` names them with a hyphen."""
