"""A run folder opened: its definition, its scenarios, and what its journal says about each of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec

from unmask.data.dataset import Content
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
from unmask.protocol.state import ScenarioState
from unmask.records import Asked, Judged, Kind, Scenario
from unmask.runs.definition import DataSpec, Definition, judge_file
from unmask.runs.journal import JournalFile, LineIndex, LineSummary, mend_file, read_lines, refuse_newer

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
            raise MissingError(
                f"{self.path} is not a run folder: it has no run.json", advice="Make one with `unmask run … --out DIR`."
            ) from None
        refuse_newer(file, data)
        try:
            return msgspec.json.decode(data, type=Definition)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise JournalError(
                f"{file} cannot be read: {error}", advice="Restore it from a copy of the run folder."
            ) from None

    @contextmanager
    def lock_replies(self) -> Iterator[None]:
        """One process asks the model, while judges read what is there."""
        advice = "Wait for it to finish, or choose another --out."
        with Lock(lock_path(self.replies.path), advice=advice):
            yield

    @contextmanager
    def lock_readings(self, judge: str) -> Iterator[None]:
        """One process writes the readings of this judge. Others write those of other judges."""
        advice = (
            "Wait for it to finish; the same command then reads what is left. Other judges may read at the same time,"
            " and this one under another name: --judge-name NAME."
        )
        with Lock(lock_path(self.readings_path(judge)), advice=advice):
            yield

    def lock_definition(self) -> Lock:
        """Held from reading run.json to writing it, so that no change of another process is lost. Others wait."""
        return Lock(lock_path(self.path / "run.json"), advice="Try again once it has ended.", wait=LONGEST_CHANGE)

    def write_definition(self, definition: Definition) -> None:
        """The caller holds `lock_definition`."""
        write_atomically(self.path / "run.json", msgspec.json.format(msgspec.json.encode(definition), indent=2) + b"\n")

    def scenarios(self) -> tuple[Scenario, ...]:
        return tuple(self.each_scenario())

    def each_scenario(self) -> Iterator[Scenario]:
        file, ids = self.path / "scenarios.jsonl", set[str]()
        for scenario in read_lines(file, Scenario):
            if scenario.id in ids:
                raise JournalError(
                    f"{file} has the scenario {scenario.id!r} twice",
                    advice="Delete one of the two lines, or restore the file from a copy of the run folder.",
                )
            ids.add(scenario.id)
            yield scenario

    def refuse_other_scenarios(self, data: DataSpec, *, of: Collection[str] | None = None) -> None:
        """Raise an error where the folder has other scenarios than the run was made of: answers about these would be
        bought for nothing. `of` are the only ids to look at."""
        content = Content()
        for scenario in self.each_scenario():
            if of is None or scenario.id in of:
                content.add(scenario)
        if mismatch := data.find_mismatch(content):
            advice = "Restore scenarios.jsonl from a whole copy of the run folder, or make the run anew elsewhere."
            if sum(content.counts.values()) > sum(data.counts.values()):
                advice += " If it was killed while it grew, the same `unmask run` completes it."
            raise JournalError(f"{self.path}: {mismatch}", advice=advice)

    def write_scenarios(self, scenarios: tuple[Scenario, ...]) -> None:
        lines = b"".join(msgspec.json.encode(scenario) + b"\n" for scenario in scenarios)
        write_atomically(self.path / "scenarios.jsonl", lines)

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

    def judged(self, judge: str | None) -> Iterator[Judged]:
        return read_lines(self.readings_path(judge), Judged) if judge else iter(())

    def each_state(self, judge: str | None) -> Iterator[tuple[Scenario, ScenarioState]]:
        """Every scenario with what the journal holds about it. Only one of them is in memory at a time."""
        partners = self.definition().partners
        with Journal(self, self.each_scenario(), [judge], partners=partners) as journal:
            for number, scenario in enumerate(self.each_scenario()):
                yield scenario, journal.state_of(number, judge)

    def mend(self, *judges: str | None, replies: bool = True) -> tuple[Path, ...]:
        """Make the journal safe to append to. Returns the files of which a torn line was set aside. The caller holds
        the locks of all: replies that another process is writing are its own."""
        files: list[tuple[Path, type[msgspec.Struct]]] = [(self.replies.path, Asked)] if replies else []
        files += [(self.readings_path(judge), Judged) for judge in judges if judge]
        return tuple(path for path, kind in files if mend_file(path, kind) is not None)

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
    """What the journal of a run says about one scenario at a time.

    A run of millions of replies takes the memory of one scenario and of the places where the lines stand. Lines that
    were added since the journal was opened are not seen. `paid` is called with every line that counts, in file order.
    Of a judge with one of the `partners` the lines about figures are those of the partner, and only those count.

    `content` is of the scenarios. `answers` has the names of models that answers of this run carry, and how often, by
    the file of a judge, and for the subject under `None`; a name that an answer does not carry is `None`.
    """

    def __init__(
        self,
        folder: Folder,
        scenarios: Iterable[Scenario],
        judges: Sequence[str | None],
        *,
        partners: Mapping[str, str] | None = None,
        paid: Callable[[str, LineSummary], None] = lambda role, line: None,
    ) -> None:
        numbers: dict[str, int] = {}
        self.content = Content()
        self._partners = {judge: partner for judge, partner in (partners or {}).items() if judge in judges}
        self._numeric: set[int] = set()
        for number, scenario in enumerate(scenarios):
            numbers[scenario.id] = number
            self.content.add(scenario)
            if self._partners and scenario.kind is Kind.NUMERIC:
                self._numeric.add(number)

        def number_line(role: str, judge: str | None, line: LineSummary) -> int:
            number = numbers.get(line.scenario)
            if role == "subject" or not self._partners or (role == "numeric_judge") == (number in self._numeric):
                paid(role, line)
                self.answers[judge][line.model] += line.source is None and line.error is None
            if number is None:
                raise JournalError(
                    f"the journal in {folder.path} has a line about scenario {line.scenario!r}, which the run does not"
                    " contain",
                    advice="The folder holds files of two runs. Restore it from a copy.",
                )
            return number

        count, of_subject = len(numbers), partial(number_line, "subject", None)
        roles = dict.fromkeys(self._partners.values(), "numeric_judge") | dict.fromkeys(filter(None, judges), "judge")
        self.answers: dict[str | None, Counter[str | None]] = {judge: Counter() for judge in (None, *roles)}
        self._asked = LineIndex(folder.replies.path, Asked, scenarios=count, place=of_subject)
        self._judged = {
            judge: LineIndex(
                folder.readings_path(judge), Judged, scenarios=count, place=partial(number_line, role, judge)
            )
            for judge, role in roles.items()
        }

    def state_of(self, scenario: int, judge: str | None) -> ScenarioState:
        """Replies and readings of the scenario with this number in `ids`. Without a judge only replies."""
        state = ScenarioState()
        for asked in self.asked(scenario):
            state.add_asked(asked)
        for judged in self.judged(scenario, judge):
            state.add_judged(judged)
        return state

    def asked(self, scenario: int) -> Iterator[Asked]:
        return self._asked.records_of(scenario)

    def judged(self, scenario: int, judge: str | None) -> Iterator[Judged]:
        if judge is not None and scenario in self._numeric:
            judge = self._partners.get(judge, judge)
        return self._judged[judge].records_of(scenario) if judge else iter(())

    def lines_of(self, scenario: int) -> Iterator[tuple[Path, Iterator[bytes]]]:
        """Each file with its own lines about a scenario."""
        yield self._asked.path, self._asked.texts_of(scenario)
        yield from ((index.path, index.texts_of(scenario)) for index in self._judged.values())

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._asked.close()
        for index in self._judged.values():
            index.close()


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
    """Every path that is no run as the runs below it. One without any stays, and whoever opens it says what it is."""
    return [str(run) for path in paths for run in (list(find_runs(Path(path))) or [Path(path)])]
