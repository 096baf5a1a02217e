"""A run folder opened: its definition, its scenarios, and what its journal says about each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from unmask.errors import JournalError, MissingError, UsageError
from unmask.files import is_file_name, read, subfolder, there, write_whole
from unmask.protocol.state import ScenarioState
from unmask.records import FORMAT_VERSION, Asked, Judged, Scenario
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition, judge_file
from unmask.runs.journal import Index, Lines, Paid, mend, read_lines

V = TypeVar("V")


class Held(NamedTuple):
    """What the journal of a run says about its replies and one judge, in memory of whoever has just written it."""

    judge: str
    scenarios: tuple[Scenario, ...]
    seen: list[ScenarioState]
    bill: Bill
    size: tuple[int, int]
    """Bytes of the two files when this was so; a journal only grows."""

    def __repr__(self) -> str:
        # asyncio writes down the result of its main task when it puts the handler of Ctrl-C back.
        return f"Held({self.judge!r}, {len(self.scenarios)} scenarios)"


class Folder:
    """Paths and files of one run. Reading never writes; `mend` and the two `Lines` do."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.replies = Lines(self.path / "replies.jsonl", reserve=True)

    @property
    def exists(self) -> bool:
        return there(self.path / "run.json")

    def definition(self) -> Definition:
        file = self.path / "run.json"
        try:
            data = read(file)
        except OSError:
            raise MissingError(
                f"{self.path} is not a run folder: it has no run.json", advice="Make one with `unmask run … --out DIR`."
            ) from None
        try:
            return msgspec.json.decode(data, type=Definition)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(file, data, error) from None

    def write(self, definition: Definition) -> None:
        write_whole(self.path / "run.json", msgspec.json.format(msgspec.json.encode(definition), indent=2) + b"\n")

    def scenarios(self) -> tuple[Scenario, ...]:
        return tuple(self.each_scenario())

    def each_scenario(self) -> Iterator[Scenario]:
        return read_lines(self.path / "scenarios.jsonl", Scenario)

    def write_scenarios(self, scenarios: tuple[Scenario, ...]) -> None:
        lines = b"".join(msgspec.json.encode(scenario) + b"\n" for scenario in scenarios)
        write_whole(self.path / "scenarios.jsonl", lines)

    def readings(self, judge: str) -> Path:
        """The file of a judge. Its name comes from run.json, which may be a stranger's, and must not lead elsewhere."""
        if not is_file_name(judge):
            raise JournalError(
                f"{self.path} names a judge {judge[:80]!r}, which is no name of a file",
                advice="Do not use this folder: run.json was changed.",
            )
        return subfolder(self.path / "readings") / f"{judge}.jsonl"

    def size(self, judge: str) -> tuple[int, int]:
        """Bytes of replies and of this judge's readings."""
        first, second = (
            path.stat().st_size if there(path) else 0 for path in (self.replies.path, self.readings(judge))
        )
        return first, second

    def asked(self) -> Iterator[Asked]:
        return read_lines(self.replies.path, Asked)

    def judged(self, judge: str | None) -> Iterator[Judged]:
        return read_lines(self.readings(judge), Judged) if judge else iter(())

    def mend(self, judge: str | None) -> tuple[Path, ...]:
        """Make the journal safe to append to. Returns the files of which a torn line was set aside."""
        files: list[tuple[Path, type[msgspec.Struct]]] = [(self.replies.path, Asked)]
        if judge:
            files.append((self.readings(judge), Judged))
        return tuple(path for path, kind in files if mend(path, kind) is not None)

    def judge(self, wanted: str | None, definition: Definition) -> str | None:
        """The file name of a judge the user named, or of that of the last `unmask run`; None if there is none yet."""
        if wanted is None:
            return definition.judge
        for file in (wanted, judge_file(wanted)):
            if file in definition.judges:
                return file
        for file, spec in definition.judges.items():  # kept under another name only
            if spec.model == wanted:
                return file
        known = ", ".join(sorted(spec.model for spec in definition.judges.values())) or "none"
        raise UsageError(
            f"{self.path} has no readings by {wanted!r}; it has: {known}",
            advice=f"Read the replies with it first: unmask judge {self.path} --judge {wanted}",
        )


def load_seen(folder: Folder, judge: str | None, scenarios: tuple[Scenario, ...]) -> list[ScenarioState]:
    """What the journal holds, scenario by scenario. Lines about other scenarios are an error: the folder was mixed."""
    seen = {scenario.id: ScenarioState() for scenario in scenarios}
    for asked in folder.asked():
        _of(seen, asked.scenario, folder).add_asked(asked)
    for judged in folder.judged(judge):
        _of(seen, judged.scenario, folder).add_judged(judged)
    return [seen[scenario.id] for scenario in scenarios]


class OneByOne:
    """What the journal holds, one scenario at a time: a run of millions of replies takes the memory of one scenario and
    of the places where the lines stand. `paid` is told about every line, subject's or judge's, in file order."""

    def __init__(
        self,
        folder: Folder,
        ids: Sequence[str],
        judges: Sequence[str | None],
        *,
        paid: Callable[[str, Paid], None] = lambda role, line: None,
    ) -> None:
        numbers = {name: number for number, name in enumerate(ids)}

        def placed(role: str) -> Callable[[Paid], int]:
            def place(line: Paid) -> int:
                paid(role, line)
                return _of(numbers, line.scenario, folder)

            return place

        self._asked = Index(folder.replies.path, Asked, scenarios=len(ids), place=placed("subject"))
        self._judged = {
            judge: Index(folder.readings(judge), Judged, scenarios=len(ids), place=placed("judge"))
            for judge in judges
            if judge
        }

    def seen(self, scenario: int, judge: str | None) -> ScenarioState:
        found = ScenarioState()
        for asked in self._asked.of(scenario):
            found.add_asked(asked)
        if judge:
            for judged in self._judged[judge].of(scenario):
                found.add_judged(judged)
        return found

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._asked.close()
        for index in self._judged.values():
            index.close()


def _of(seen: dict[str, V], scenario: str, folder: Folder) -> V:
    if scenario not in seen:
        raise JournalError(
            f"the journal in {folder.path} has a line about scenario {scenario!r}, which the run does not contain",
            advice="The folder holds files of two runs. Restore it from a copy.",
        )
    return seen[scenario]


def _unreadable(file: Path, data: bytes, error: Exception) -> JournalError:
    try:
        version = msgspec.json.decode(data, type=dict).get("v")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        version = None
    if isinstance(version, int) and version > FORMAT_VERSION:
        return JournalError(f"{file} was written by a newer unmask (format {version})", advice="pip install -U unmask")
    return JournalError(f"{file} cannot be read: {error}", advice="Restore it from a copy of the run folder.")
