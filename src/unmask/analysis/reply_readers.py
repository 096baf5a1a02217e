"""Two readings of the same replies, opened: who reads, by which settings, and that both have read the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from unmask.analysis.sides import RunSide, scenario_content
from unmask.errors import UsageError
from unmask.files import file_exists
from unmask.protocol.guards import GuardFinding, GuardLimits, find_warnings
from unmask.records import (
    PRESSURED,
    Preset,
    Record,
    Slot,
    Verdict,
    is_probe,
)
from unmask.runs.differences import Setting, differing_settings, settings_of
from unmask.runs.polarity import describe_disputes, find_sides
from unmask.runs.run import Run

READER_SETTINGS = (
    "judge",
    "judge endpoint",
    "judge style",
    "judge prompts",
    "judge temperature",
    "judge max tokens",
    "judge parameters",
    "judge headers",
    "reader",
    "polarity",
)
"""The settings in which two readings of the same replies can differ."""


class ReplyReader(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One of the two readings."""

    run: str
    judge: str | None
    """The file of its readings, or `panel:` and several."""
    model: str
    prompts: str
    """The hash of its prompts. Of an imported run the harness whose prompts they are."""
    unread: int
    """Replies that it has not read."""
    unjudged: int
    """Scenarios without a verdict."""
    undecided: int
    """Of these, the ones that need something that was not asked or not read yet."""
    complete_with: str | None = None
    """The command that asks or reads what is missing."""
    warnings: tuple[GuardFinding, ...] = ()

    @property
    def refusals(self) -> list[str]:
        """The warnings because of which nothing is claimed."""
        return [finding.text for finding in self.warnings if finding.refuses]


class OpenedReader(NamedTuple):
    """A run, one of its judges as the user named it, and what the user typed."""

    run: Run
    judge: str | None
    typed: str

    @property
    def file(self) -> str | None:
        return self.run.judge_file(self.judge)


def open_reader(named: Run | str | Path) -> OpenedReader:
    """A run, or a run and a judge behind an `@`. A folder whose own name has an `@` is found as it is."""
    if isinstance(named, Run):
        return OpenedReader(named, None, str(named.path))
    text = str(named)
    places = [place for place, sign in enumerate(text) if sign == "@"]
    for end in (len(text), *places):
        if file_exists(Path(text[:end]) / "run.json"):
            judge = text[end + 1 :]
            if end < len(text) and not judge:
                raise UsageError(f"{text} names no judge", advice=f"Write {text}NAME, or leave out the @.")
            return OpenedReader(Run(text[:end]), judge or None, text)
    return OpenedReader(Run(text[: places[0]] if places else text), None, text)  # raises: there is no such run


def refuse_same_readings(a: OpenedReader, b: OpenedReader) -> None:
    if a.run.path.resolve() != b.run.path.resolve() or a.file != b.file:
        return
    judges, typed = sorted(a.run.definition.full_judges), a.run.definition.typed_judge
    second = next((typed(name) for name in judges if name != a.file), "NAME")
    advice = f"Name two judges of it: unmask equivalence {a.run.path}@{typed(a.file or 'NAME')} {a.run.path}@{second}"
    if len(judges) < 2:
        advice = f"It has one reading. Make another: unmask judge {a.run.path} --judge PROVIDER/NAME --judge-name NAME"
    raise UsageError(f"{a.typed} and {b.typed} are the same readings of {a.run.path}", advice=advice)


def refuse_other_replies(a: OpenedReader, b: OpenedReader) -> None:
    """Two folders have to hold the same answers to the same scenarios, as a copy or a second import does."""
    first, second = (dict(_digest_replies(reader.run)) for reader in (a, b))
    if first == second and {s.id for s in a.run.each_scenario()} == {s.id for s in b.run.each_scenario()}:
        return
    same = sum(second.get(place) == text for place, text in first.items())
    raise UsageError(
        f"{a.run.path} and {b.run.path} do not hold the same replies: {same} are the same, of {len(first)} in the first"
        f" and {len(second)} in the second",
        advice=f"Read one run with both judges: unmask judge {a.run.path} --judge PROVIDER/NAME, then"
        f" unmask equivalence {a.run.path} {a.run.path}@PROVIDER/NAME. Two sets of replies are for unmask compare.",
    )


def _digest_replies(run: Run) -> Iterator[tuple[tuple[str, Slot, int], bytes]]:
    """What a judge is shown of each reply, and of the scenario it belongs to."""
    for scenario, state in run._each_seen(None):
        content = msgspec.json.encode(scenario_content(scenario))
        for (slot, take), choice in state.choices():
            if slot == PRESSURED or is_probe(slot):
                text = choice.answer.encode(errors="surrogatepass")
                yield (scenario.id, slot, take), hashlib.blake2b(content + b"\0" + text, digest_size=16).digest()


def describe_reader(
    reader: OpenedReader, side: RunSide, unread: int, preset: Preset, guards: GuardLimits
) -> ReplyReader:
    rows, judges = list(side.rows.values()), reader.run.definition.judges
    settings = settings_of(reader.run.definition, judge=reader.file, preset=preset)
    spec = judges.get(reader.file or "")
    undecided = sum(row.undecided for row in rows)
    command = reader.run.score(preset=preset, judge=reader.judge).complete_with if undecided else None
    return ReplyReader(
        run=str(reader.run.path),
        judge=reader.file,
        model=settings["judge"] or "none",
        prompts=spec.prompts if spec is not None else settings["judge prompts"] or "none",
        unread=unread,
        unjudged=sum(row.verdict is Verdict.UNJUDGED for row in rows),
        undecided=undecided,
        complete_with=command,
        warnings=find_warnings(rows, guards, of_run=reader.run._identify(reader.judge).findings),
    )


def find_reader_settings(readers: Sequence[OpenedReader], preset: Preset) -> tuple[Setting, ...]:
    polarity = describe_disputes([find_sides(reader.run.folder, reader.file) for reader in readers])
    settings = [
        settings_of(reader.run.definition, judge=reader.file, preset=preset, polarity=disputed)
        for reader, disputed in zip(readers, polarity, strict=True)
    ]
    return tuple(setting for setting in differing_settings(settings) if setting.name in READER_SETTINGS)
