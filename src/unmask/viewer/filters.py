"""Which scenarios of a run a page shows: what the address asks for, and how it is written back into addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

from unmask.errors import UsageError
from unmask.records import Archetype, Outcome, Preset, Unread, UnreadReason, Verdict
from unmask.render.words import NAMES

V = TypeVar("V")

PENDING = "pending"
"""The reason of what is not asked or not read so far."""
REASONS = (*(reason.value for reason in UnreadReason), PENDING)
PRESSURES = ("situational", "explicit", "unknown")
LONGEST_QUERY = 500
"""Characters of a text that is searched for."""


class Filter(NamedTuple):
    """What an address asks for. `judge` and `preset` choose how verdicts are made, all others which of them."""

    judge: str | None = None
    preset: Preset | None = None
    archetype: Archetype | None = None
    verdict: Verdict | None = None
    pressure: str | None = None
    reason: str | None = None
    q: str = ""

    @property
    def chooses(self) -> bool:
        """Whether scenarios are left out."""
        return any(self[2:])

    def query(self, **changes: object) -> str:
        """The part of an address behind `?`; `changes` are other fields, or further names."""
        values = {**self._asdict(), **changes}
        return urlencode({name: str(value) for name, value in values.items() if value})

    def admits(self, outcome: Outcome) -> bool:
        """Whether an outcome is one of those asked for, its texts aside."""
        return (
            (self.verdict is None or outcome.verdict is self.verdict)
            and (self.archetype is None or outcome.archetype is self.archetype)
            and (self.pressure is None or (outcome.pressure or "unknown") == self.pressure)
            and (self.reason is None or self.reason in unread_reasons(outcome))
        )

    def describe(self) -> str:
        """What was chosen, in words: for whoever is sent only these scenarios."""
        return "; ".join(self._describe_choices())

    def _describe_choices(self) -> Iterator[str]:
        if self.archetype is not None:
            yield f"archetype {self.archetype.traits.title}"
        if self.verdict is not None:
            yield f"verdict {NAMES[self.verdict]}"
        if self.pressure is not None:
            yield f"pressure {self.pressure}"
        if self.reason is not None:
            yield f"unread because {self.reason}"
        if self.q:
            yield f"containing “{self.q}”"


def read_filter(params: Mapping[str, str]) -> Filter:
    """The filter that an address asks for. A value may be that of the files or the one that people are shown."""
    archetypes = {name: archetype for archetype in Archetype for name in (archetype.value, archetype.traits.title)}
    verdicts = {name: verdict for verdict, title in NAMES.items() for name in (verdict.value, title)}
    return Filter(
        judge=params.get("judge") or None,
        preset=_read_choice(params, "preset", {preset.value: preset for preset in Preset}),
        archetype=_read_choice(params, "archetype", archetypes),
        verdict=_read_choice(params, "verdict", verdicts),
        pressure=_read_choice(params, "pressure", dict(zip(PRESSURES, PRESSURES, strict=True))),
        reason=_read_choice(params, "reason", dict(zip(REASONS, REASONS, strict=True))),
        q=params.get("q", "").strip()[:LONGEST_QUERY],
    )


def read_number(params: Mapping[str, str], name: str, default: int = 1) -> int:
    """A small whole number of an address, from 1 on; `default` where there is none or no such number."""
    text = params.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else default


def unread_reasons(outcome: Outcome) -> set[str]:
    """Why readings of a scenario are missing."""
    reasons = {
        reading.reason.partition(":")[0]
        for readings in outcome.readings.values()
        for reading in readings
        if isinstance(reading, Unread)
    }
    return reasons | {PENDING} if outcome.undecided else reasons


def _read_choice(params: Mapping[str, str], name: str, values: Mapping[str, V]) -> V | None:
    text = params.get(name, "")
    if not text:
        return None
    if text not in values:
        raise UsageError(f"there is no {name} {text[:80]!r}", advice=f"Choose one of: {', '.join(values)}.")
    return values[text]
