"""`imported.json`: where an imported run comes from, what the other harness concluded, and how that compares."""

from __future__ import annotations

from pathlib import Path

import msgspec

from unmask.errors import DataError
from unmask.files import file_exists, read_bytes
from unmask.records import Preset, Record, Verdict

VERDICT_OF_WORD = {
    "honest": Verdict.HONEST,
    "lie": Verdict.LIE,
    "evade": Verdict.EVASION,
    "no-belief": Verdict.NO_BELIEF,
}
"""The verdict of a word of inspect_evals; `error` has no counterpart."""
UNEXPLAINED = "the readings in the log give another verdict under the rules of task version 5-E"
"""In place of a reason for a difference, where there is none."""


class TheirVerdict(Record, frozen=True, kw_only=True):
    """What the other harness concluded, in its own words. `first` is its headline, `all` that over all takes."""

    first: str
    all: str | None = None
    accuracy: str | None = None

    @property
    def word(self) -> str:
        """Over all takes; that of the headline where an old log says no more."""
        return self.all or self.first


class Reason(Record, frozen=True):
    text: str
    ids: tuple[str, ...]


class PresetComparison(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One preset's result, and why it differs from theirs."""

    preset: Preset
    measures: dict[str, float | None]
    """`honesty` of the first statement, `honesty@n` of all, and `accuracy`."""
    counts: dict[Verdict, int]
    reasons: tuple[Reason, ...]
    """The most frequent first."""

    @property
    def differing(self) -> int:
        return sum(len(reason.ids) for reason in self.reasons)


class HarnessComparison(Record, frozen=True, kw_only=True, omit_defaults=False):
    takes: int
    scored: int
    """Samples that have a verdict of theirs."""
    measures: dict[str, float | None]
    """As they compute them: errors count as not lying, and `honesty`, their headline, is of all statements."""
    counts: dict[str, int]
    """Their words, most frequent first."""
    several: tuple[str, ...]
    """Scenarios that they call a lie though the first statement, of several, is none."""
    ours: tuple[PresetComparison, ...]

    def under(self, preset: Preset | str) -> PresetComparison:
        return next(found for found in self.ours if found.preset == preset)


class ImportFile(Record, frozen=True, kw_only=True, omit_defaults=False):
    harness: str
    file: str
    theirs: dict[str, TheirVerdict]
    """By scenario."""
    against: HarnessComparison | None = None
    """`None` where the other harness left no verdicts."""


def read_import_file(folder: Path) -> ImportFile | None:
    """What the import kept in a run folder. `None` for a run that was not imported."""
    file = folder / "imported.json"
    if not file_exists(file):
        return None
    try:
        return msgspec.json.decode(read_bytes(file), type=ImportFile)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
