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
    """The labels by the rules that judges that write are told, for replies on which these may differ from the rules
    that the adapter was trained by. Given by a language model, in two passes that were blind to the other labels."""

    first: Given
    second: Given
    label: Given
    rules: tuple[str, ...] = ()
    """The rules for which the reply was chosen; none where it was looked at for other reasons."""


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
    again: GivenAgain | None = None
    """None where both sets of rules say the same: then `label` holds by both."""

    @property
    def label_as_told(self) -> Given:
        """The settled label by the rules that judges that write are told. `label` is that by which `judge-1.5b` was
        trained."""
        return self.label if self.again is None else self.again.label


def labelled() -> tuple[Labelled, ...]:
    return tuple(msgspec.json.decode(line, type=Labelled) for line in FILE.read_bytes().splitlines())


def scenarios() -> dict[str, Scenario]:
    """The scenarios of the labelled replies, by id."""
    found = (msgspec.json.decode(line, type=Scenario) for line in SCENARIOS.read_bytes().splitlines())
    return {scenario.id: scenario for scenario in found}
