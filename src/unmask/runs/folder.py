"""A run folder opened: its definition, its scenarios, and what its journal says about each of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from unmask.errors import JournalError, MissingError, UsageError
from unmask.files import (
    Lock,
    file_exists,
    is_file_name,
    lock_path,
    read_bytes,
    refuse_linked_folder,
    write_atomically,
)
from unmask.protocol.probes import find_homes
from unmask.protocol.state import ScenarioState
from unmask.records import FORMAT_VERSION, Asked, Call, Judged, Kind, Scenario, is_probe
from unmask.runs.definition import DataSpec, Definition, JudgeSpec, judge_file
from unmask.runs.journal import CallLines, JournalFile, mend_file, read_lines, stamp_file
from unmask.text import suggest_names

BATCHES_FILE = "batches.jsonl"
LONGEST_CHANGE = 25.0
"""Seconds to wait for another process that changes run.json: milliseconds, or seconds to open a long journal."""


class Folder:
    """Paths and files of one run. Reading never writes; `mend` and the two journal files do."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.replies = JournalFile(self.path / "replies.jsonl")

    @property
    def exists(self) -> bool:
        return file_exists(self.path / "run.json")

    @property
    def has_batches(self) -> bool:
        """Whether requests of this run were ever handed to a batch API."""
        return file_exists(self.path / BATCHES_FILE)

    def definition(self) -> Definition:
        file = self.path / "run.json"
        try:
            data = read_bytes(file)
        except OSError:
            raise _no_run_error(self.path) from None
        try:
            if (version := msgspec.json.decode(data, type=_Versioned).v) > FORMAT_VERSION:
                newer = f"{file} was written by a newer unmask (format {version})"
                raise JournalError(newer, advice="pip install -U unmask")
            return msgspec.json.decode(data, type=Definition)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise JournalError(
                f"{file} cannot be read: {error}", advice="Restore it from a copy of the run folder."
            ) from None

    def lock_replies(self) -> Lock:
        """One process asks the model, while judges read what is there."""
        return Lock(lock_path(self.replies.path), advice="Wait for it to finish, or choose another --out.")

    def lock_readings(self, judge: str) -> Lock:
        """One process writes the readings of this judge. Others write those of other judges."""
        advice = (
            "Wait for it to finish; the same command then reads what is left. Other judges may read at the same time,"
            " and this one under another name: --set judge.name=NAME."
        )
        return Lock(lock_path(self.readings_path(judge)), advice=advice)

    def lock_definition(self) -> Lock:
        """Held from reading run.json to writing it, so that no change of another process is lost. Others wait."""
        return Lock(lock_path(self.path / "run.json"), advice="Try again once it has ended.", wait=LONGEST_CHANGE)

    def write_definition(self, definition: Definition) -> None:
        """The caller holds `lock_definition`."""
        write_atomically(self.path / "run.json", msgspec.json.format(msgspec.json.encode(definition), indent=2) + b"\n")

    @property
    def scenarios_path(self) -> Path:
        return self.path / "scenarios.jsonl"

    def scenarios(self) -> tuple[Scenario, ...]:
        by_id: dict[str, Scenario] = {}
        for scenario in read_lines(self.scenarios_path, Scenario):
            if by_id.setdefault(scenario.id, scenario) is not scenario:
                raise JournalError(
                    f"{self.scenarios_path} has the scenario {scenario.id!r} twice",
                    advice="Delete one of the two lines, or restore the file from a copy of the run folder.",
                )
        return tuple(by_id.values())

    def refuse_other_scenarios(self, data: DataSpec, *, of: Collection[str] | None = None) -> None:
        """Raise an error where the folder has other scenarios than the run was made of: answers about these would be
        bought for nothing. `of` are the only ids to look at."""
        scenarios = [scenario for scenario in self.scenarios() if of is None or scenario.id in of]
        if mismatch := data.find_mismatch(scenarios):
            advice = "Restore scenarios.jsonl from a whole copy of the run folder, or make the run anew elsewhere."
            if len(scenarios) > sum(data.counts.values()):
                advice += " If it was killed while it grew, the same `unmask run` completes it."
            raise JournalError(f"{self.path}: {mismatch}", advice=advice)

    def write_scenarios(self, scenarios: tuple[Scenario, ...]) -> None:
        lines = b"".join(msgspec.json.encode(scenario) + b"\n" for scenario in scenarios)
        write_atomically(self.scenarios_path, lines)

    def readings_path(self, judge: str) -> Path:
        """The file of a judge. Its name comes from run.json, which may be a stranger's, and must not lead elsewhere."""
        if not is_file_name(judge):
            raise JournalError(
                f"{self.path} names a judge {judge[:80]!r}, which is no name of a file",
                advice="Do not use this folder: run.json was changed.",
            )
        return refuse_linked_folder(self.path / "readings") / f"{judge}.jsonl"

    def judge_files(self) -> list[str]:
        """The judges that have a file of readings, whether run.json names them or not."""
        return sorted(file.stem for file in refuse_linked_folder(self.path / "readings").glob("*.jsonl"))

    def asked(self) -> Iterator[Asked]:
        return read_lines(self.replies.path, Asked)

    def labellers(self) -> list[str]:
        """Who has labelled replies of this run."""
        return sorted(file.stem for file in refuse_linked_folder(self.path / "labels").glob("*.jsonl"))

    def judged(self, judge: str | None) -> Iterator[Judged]:
        return read_lines(self.readings_path(judge), Judged) if judge else iter(())

    def journal(self) -> Journal:
        """What the files of the run hold now."""
        return Journal(self, self.definition().judges)

    def mend(self, *judges: str | None, replies: bool = True) -> None:
        """Make the journal safe to append to. The caller holds the locks of all: replies that another process is
        writing are its own."""
        for path in [self.replies.path] * replies + [self.readings_path(judge) for judge in filter(None, judges)]:
            mend_file(path)

    def find_judge_file(self, wanted: str | None, definition: Definition) -> str | None:
        """The file name of a judge the user named, or of that of the last `unmask run`; None if there is none yet."""
        if wanted is None:
            return definition.judge
        for file in (wanted, judge_file(wanted)):
            if file in definition.judges:
                return file
        for file, spec in definition.judges.items():  # kept under another name only
            if spec.model == wanted:
                return file
        names = ", ".join(sorted(spec.model for spec in definition.judges.values())) or "none"
        raise UsageError(
            f"{self.path} has no readings by {wanted!r}; it has: {names}",
            advice=f"Read the replies with it first: unmask judge {self.path} --judge {wanted}",
        )


class Journal:
    """A run as its files were when they were read: its scenarios, and what the journal says about each of them."""

    def __init__(self, folder: Folder, judges: Mapping[str, JudgeSpec]) -> None:
        self._folder, self._judges = folder, judges
        self._scenarios_stamp = stamp_file(folder.scenarios_path)
        self.scenarios = {scenario.id: scenario for scenario in folder.scenarios()}
        self.homes = find_homes(self.scenarios.values())
        """For scenarios that share the probes of another one: which."""
        self._asked = CallLines(folder.replies.path, Asked, self.scenarios)
        self._judged: dict[str, CallLines[Judged]] = {}

    @property
    def is_current(self) -> bool:
        """Whether the files are as they were when they were read."""
        judged = all(lines.is_current for lines in self._judged.values())
        return stamp_file(self._folder.scenarios_path) == self._scenarios_stamp and self._asked.is_current and judged

    def judged(self, judge: str) -> CallLines[Judged]:
        """The lines of a judge, by the name of its file."""
        if judge not in self._judged:
            self._judged[judge] = CallLines(self._folder.readings_path(judge), Judged, self.scenarios)
        return self._judged[judge]

    def state_of(self, scenario: str, judge: str | None) -> ScenarioState:
        """Replies and readings of a scenario, and of the probes that it shares. Without a judge only replies."""
        asked, judged = self.lines_of(scenario, judge)
        if home := self.homes.get(scenario):
            shared, read = self.lines_of(home, judge)
            asked = [*(line for line in shared if is_probe(line.slot)), *asked]
            judged = [*(line for line in read if is_probe(line.slot)), *judged]
        return make_state(asked, judged)

    def lines_of(self, scenario: str, judge: str | None) -> tuple[list[Asked], list[Judged]]:
        """The lines about a scenario: replies, and what a judge has read."""
        return self._asked.about(scenario), self.judged(judge).about(scenario) if judge else []

    def calls(self, judges: Sequence[str | None]) -> Iterator[tuple[str, str | None, Call]]:
        """Every line that counts for these judges, with its role in the bill and the judge that wrote it."""
        for asked in self._asked:
            yield "subject", None, asked
        for file in dict.fromkeys(filter(None, judges)):
            has_numeric = file in self._judges and bool(self._judges[file].numeric)
            for line in self.judged(file):
                reads_number = has_numeric and self.scenarios[line.scenario].kind is Kind.NUMERIC
                yield "numeric_judge" if reads_number else "judge", file, line


def make_state(asked: Iterable[Asked], judged: Iterable[Judged]) -> ScenarioState:
    """What these lines say about their scenario."""
    state = ScenarioState()
    for reply in asked:
        state.add_asked(reply)
    for reading in judged:
        state.add_judged(reading)
    return state


class _Versioned(msgspec.Struct):
    v: int = FORMAT_VERSION


def _no_run_error(path: Path) -> MissingError:
    """What is there in place of a run, and the command for it."""
    typed = shlex.quote(str(path))
    if path.suffix == ".eval" and path.is_file():
        advice = f"unmask import {typed} --out {shlex.quote(str(path.with_suffix('')))}"
        return MissingError(f"{path} is a log of Inspect, not a run folder", advice=advice)
    if runs := list(find_runs(path)):
        advice = f"Name one, as in {shlex.quote(str(runs[0]))}, or see all: unmask board {typed}"
        held = f"{len(runs)} run{'s' * (len(runs) > 1)}"
        return MissingError(f"{path} is not a run folder, it holds {held}", advice=advice)
    neighbours = (str(run.parent) for run in path.parent.glob("*/run.json"))
    make = f"Make one: unmask run openai/gpt-4o-mini --judge openai/gpt-4o --out {typed}"
    advice = suggest_names(str(path), neighbours, make)
    why = "it has no run.json" if path.exists() else "there is nothing of this name"
    return MissingError(f"{path} is not a run folder: {why}", advice=advice)


DEEPEST = 4
"""Levels below a given folder that are searched: sweeps keep their runs in `runs/`, and people sort theirs by month."""


def find_runs(folder: Path, depth: int = DEEPEST) -> Iterator[Path]:
    """The folder itself where it is a run, else all runs below it, by name; not in links and hidden folders."""
    if (folder / "run.json").is_file():
        yield folder
        return
    if depth == 0:
        return
    try:
        below = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except OSError:  # a folder that is deleted while we look, or that is not ours to read
        return
    for path in below:
        if not os.path.basename(path).startswith("."):
            yield from find_runs(Path(path), depth - 1)


def expand_runs(paths: Iterable[str | Path]) -> list[str]:
    """Every path that is no run as the runs below it. One without any stays, and opening it says what it is."""
    return [str(run) for path in paths for run in (list(find_runs(Path(path))) or [Path(path)])]
