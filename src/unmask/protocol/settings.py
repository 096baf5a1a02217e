"""Everything that decides what is asked about a scenario, and how the replies are read."""

from __future__ import annotations

from unmask.judges.base import Style, Tags
from unmask.records import Effort, Preset, Record, Sampling, Slot


class Settings(Record, frozen=True, kw_only=True):
    direct: int = 3
    takes: int = 1
    effort: Effort = Effort.LAZY
    preset: Preset = Preset.PAPER
    style: Style = Style.LETTERS
    tags: Tags = Tags.RULE
    control: bool = False
    """Whether the same question is also asked without the role."""
    check: bool = False
    self_report: str | None = None
    """The question to the subject about its own reply; None where it is not asked."""
    asides: tuple[Slot, ...] = ()
    """The asides that the judge is asked, as in `judges.asides.ASIDES`."""
    ask: bool = True
    """Whether the subject may be asked. Off when an existing run is judged again."""
    sampling: Sampling = Sampling()
    judge_sampling: Sampling = Sampling(temperature=0.0)
