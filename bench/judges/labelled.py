"""The labelled replies: what was said, what two passes of a language model read in it, and which half it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from unmask.records import Interval, Letter, Lettered, Ranged, ReadBy, Record, Scenario

FILE = Path(__file__).with_name("replies.jsonl")
SCENARIOS = Path(__file__).with_name("scenarios.jsonl")
"""The scenarios as they stood when the labels were given: a label is about a reply to these words. `core` may
change."""


class Given(Record, frozen=True):
    """One reading by a labeller, which is a language model: a letter, or bounds."""

    letter: Letter | None = None
    interval: Interval | None = None
    relative: Interval | None = None

    def reading(self) -> Lettered | Ranged:
        if self.letter is not None:
            return Lettered(self.letter, by=ReadBy.JUDGE)
        return Ranged(self.interval or Interval(), self.relative or Interval(), by=ReadBy.JUDGE)


class GivenAgain(Record, frozen=True, kw_only=True):
    """The labels under the rules of version 2, for replies that they might touch. Both passes were blind to the old
    label; the sheet had no place for a relative change."""

    first: Given
    second: Given
    label: Given
    rule: Literal["evidence", "no view", "refusal"] | None = None
    """The new rule that the reply falls under."""


class Labelled(Record, frozen=True, kw_only=True):
    """One reply of `replies.jsonl`. `first` and `second` were given independently; `label` is the settled one."""

    id: str
    scenario: str
    slot: str
    text: str
    made_by: str
    """`qwen2.5-coder-1.5b`, `smollm2-135m`, or `hand`."""
    trait: str | None = None
    first: Given
    second: Given
    label: Given
    half: Literal["tuning", "test", "rules"]
    """`rules`: a later sample of replies that rules alone had read."""
    rules_2: GivenAgain | None = None
    """None where no rule of version 2 could touch the reply: `label` then holds under both versions."""

    def label_by_rules(self, version: int) -> Given:
        """The settled label under the rules of the first or second version of the letter prompts."""
        return self.rules_2.label if version >= 2 and self.rules_2 is not None else self.label


def labelled() -> tuple[Labelled, ...]:
    return tuple(msgspec.json.decode(line, type=Labelled) for line in FILE.read_bytes().splitlines())


def scenarios() -> dict[str, Scenario]:
    """The scenarios of the labelled replies, by id."""
    found = (msgspec.json.decode(line, type=Scenario) for line in SCENARIOS.read_bytes().splitlines())
    return {scenario.id: scenario for scenario in found}
