"""A run as Python sees it: open it, score it, look into it. Never writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.errors import UsageError
from unmask.protocol.panel import PANEL
from unmask.protocol.plan import Ask, Settings, plan
from unmask.protocol.score import Score, score
from unmask.protocol.state import Seen
from unmask.records import Choice, Outcome, Per, Preset, Scenario, Slot
from unmask.runs.commands import judge_command, run_command
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Held, OneByOne, load_seen
from unmask.runs.outcomes import Bare, Saved, by_panel, outcome, spent
from unmask.runs.tables import Source, Table, headline_html, rows, table, to_pandas, to_polars

Watch = Callable[[Scenario, Seen, Outcome], None]


class _Member(NamedTuple):
    """A judge of the run: its file, and how it reads."""

    file: str | None
    settings: Settings


class _AllAtOnce:
    """What OneByOne gives, from memory."""

    def __init__(self, seen: list[Seen]) -> None:
        self._seen = seen

    def __enter__(self) -> _AllAtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def seen(self, number: int, judge: str | None) -> Seen:
        return self._seen[number]


class Run:
    """A run folder. Everything is recomputed from its journal, under the preset and judge asked for."""

    def __init__(self, path: str | Path, held: Held | None = None) -> None:
        self._folder = Folder(path)
        self._held = held
        self.definition: Definition = self._folder.definition()

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, model={self.definition.subject.model!r})"

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def folder(self) -> Folder:
        return self._folder

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        return self._folder.scenarios() if self._held is None else self._held.scenarios

    def judge_file(self, judge: str | None = None) -> str | None:
        """The file name of a judge, or `panel:` and those of its members."""
        if judge is None or not judge.startswith(PANEL):
            return self._folder.judge(judge, self.definition)
        return PANEL + ",".join(self._members(judge))

    def rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """What each scenario shows."""
        panel = self._panel(judge, preset)
        with self._one_by_one(panel) as journal:
            return [row for _, _, row in self._concluded(panel, journal)]

    def bare_rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """The same without what judges wrote: a fraction of the memory, and all that numbers are made of."""
        panel, bare = self._panel(judge, preset), Bare()
        with self._one_by_one(panel) as journal:
            return [bare(row) for _, _, row in self._concluded(panel, journal)]

    def score(
        self, *, preset: Preset | str | None = None, judge: str | None = None, watch: Watch | None = None
    ) -> Score:
        """Every measure. Nothing is asked or read: what is missing makes scenarios undecided.

        `watch` is called with each scenario, what the journal holds of it (for the first judge of a panel) and what it
        shows: whoever needs them beside the score need not read a long journal twice.
        """
        panel, bill, bare, found = self._panel(judge, preset), Bill(), Bare(), []
        settings = panel[0].settings
        missing: list[set[type]] = [set() for _ in panel]
        with self._one_by_one(panel, bill) as journal:
            saved = Saved(settings, grouped=bill.grouped)
            for scenario, seen, row in self._concluded(panel, journal):
                found.append(bare(row))
                saved.add(scenario, seen[0], row)
                if watch is not None:
                    watch(scenario, seen[0], row)
                if row.undecided:
                    for kinds, member, held in zip(missing, panel, seen, strict=True):
                        kinds.update(map(type, plan(scenario, held, member.settings)))
        return score(
            found,
            preset=settings.preset,
            takes=settings.takes,
            run=msgspec.to_builtins(self.definition) | {"judge": self.judge_file(judge)},
            spent=spent(bill, saved),
            complete_with=next(filter(None, map(self._completing, panel, missing)), None),
        )

    def replies(self, scenario_id: str) -> dict[tuple[Slot, int], Choice]:
        number, _ = self._found(scenario_id)
        with self._one_by_one([_Member(None, self._settings(None, None))]) as journal:
            return dict(journal.seen(number, None).choices())

    def outcome(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> Outcome:
        number, scenario = self._found(scenario_id)
        panel = self._panel(judge, preset)
        with self._one_by_one(panel) as journal:
            return _conclude(scenario, [journal.seen(number, member.file) for member in panel], panel)

    def scenario(self, scenario_id: str) -> Scenario:
        return self._found(scenario_id)[1]

    def _found(self, scenario_id: str) -> tuple[int, Scenario]:
        """A scenario and its number; only this one is held."""
        for number, scenario in enumerate(self._each_scenario()):
            if scenario.id == scenario_id:
                return number, scenario
        from difflib import get_close_matches

        near = get_close_matches(scenario_id, [scenario.id for scenario in self._each_scenario()], n=3)
        advice = f"Did you mean {', '.join(near)}?" if near else f"unmask score {self.path} --rows lists them."
        raise UsageError(f"the run has no scenario {scenario_id!r}", advice=advice)

    def seen(self, judge: str | None = None) -> list[Seen]:
        """What the journal holds, scenario by scenario; of a panel only the replies."""
        file = self.judge_file(judge)
        return self._seen(None if file is not None and file.startswith(PANEL) else file)

    def each_seen(self, judge: str | None) -> Iterator[tuple[Scenario, Seen]]:
        """Scenario by scenario what the journal holds, without ever holding all of it. `judge` is a file name."""
        ids = [scenario.id for scenario in self._each_scenario()]
        with OneByOne(self._folder, ids, [judge]) as journal:
            for number, scenario in enumerate(self._each_scenario()):
                yield scenario, journal.seen(number, judge)

    def each(
        self, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Iterator[tuple[Scenario, Seen, Outcome]]:
        """Scenario by scenario what the journal holds and what it shows; of a panel, what its first judge has read."""
        panel = self._panel(judge, preset)
        with self._one_by_one(panel) as journal:
            for scenario, seen, row in self._concluded(panel, journal):
                yield scenario, seen[0], row

    def table(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Table:
        """The run as a flat table: a row per scenario and take, per scenario, or per reply."""
        return table(self._source(preset, judge), Per(per))

    def table_rows(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The rows of `table` one by one, without ever holding all of them."""
        return rows(self._source(preset, judge), Per(per))

    def to_pandas(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Any:
        """`table` as a pandas DataFrame."""
        return to_pandas(self.table(per, preset=preset, judge=judge))

    def to_polars(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Any:
        """`table` as a polars DataFrame."""
        return to_polars(self.table(per, preset=preset, judge=judge))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return headline_html(self.definition, self.score())

    # --- inside

    def _source(self, preset: Preset | str | None, judge: str | None) -> Source:
        return Source(
            definition=self.definition,
            judge=self.judge_file(judge),
            preset=str(preset or self.definition.preset),
            each=self.each(preset=preset, judge=judge),
        )

    def _members(self, panel: str) -> list[str]:
        """The judges a panel names, none of them twice."""
        names = [name.strip() for name in panel.removeprefix(PANEL).split(",") if name.strip()]
        files = [self._folder.judge(name, self.definition) or "" for name in names]
        if len(files) < 2 or len(set(files)) < len(files):
            raise UsageError(
                f"--judge {panel}: a panel needs at least two different judges",
                advice=f"This run has: {', '.join(sorted(self.definition.judges))}",
            )
        return files

    def _panel(self, judge: str | None, preset: Preset | str | None) -> list[_Member]:
        """Whoever reads: one judge as a rule, several as a panel."""
        single = judge is None or not judge.startswith(PANEL)
        files = [self.judge_file(judge)] if single else self._members(judge or "")
        return [_Member(file, self._settings(file, preset)) for file in files]

    def _one_by_one(self, panel: list[_Member], bill: Bill | None = None) -> OneByOne | _AllAtOnce:
        held = self._still_held()
        if held is not None and [member.file for member in panel] == [held.judge]:
            if bill is not None:
                bill.include(held.bill)
            return _AllAtOnce(held.seen)
        ids = [scenario.id for scenario in self._each_scenario()]
        paid = {} if bill is None else {"paid": bill.add}
        return OneByOne(self._folder, ids, [member.file for member in panel], **paid)

    def _each_scenario(self) -> Iterable[Scenario]:
        """Those in memory if they are there already; a long run need not hold them all."""
        return self.__dict__.get("scenarios") or self._folder.each_scenario()

    def _concluded(
        self, panel: list[_Member], journal: OneByOne | _AllAtOnce
    ) -> Iterator[tuple[Scenario, list[Seen], Outcome]]:
        """Every scenario with what each member has seen, and what it shows."""
        for number, scenario in enumerate(self._each_scenario()):
            seen = [journal.seen(number, member.file) for member in panel]
            yield scenario, seen, _conclude(scenario, seen, panel)

    def _seen(self, judge: str | None) -> list[Seen]:
        held = self._still_held()
        if held is not None and held.judge == judge:
            return held.seen
        return load_seen(self._folder, judge, self.scenarios)

    def _still_held(self) -> Held | None:
        held = self._held
        return held if held is not None and held.size == self._folder.size(held.judge) else None

    def _settings(self, judge: str | None, preset: Preset | str | None) -> Settings:
        return self.definition.settings(judge, preset=Preset(preset) if preset else None)

    def _completing(self, member: _Member, missing: set[type]) -> str | None:
        """The command that asks what is missing: the judge alone where that is enough, else the whole run again."""
        if not missing:
            return None
        make = run_command if Ask in missing else judge_command
        return make(self.definition, self.path, judge=member.file, preset=member.settings.preset)


def _conclude(scenario: Scenario, seen: list[Seen], panel: list[_Member]) -> Outcome:
    first = panel[0].settings
    if len(panel) == 1:
        return outcome(scenario, seen[0], first)
    read = [(member.settings, held) for member, held in zip(panel, seen, strict=True)]
    return by_panel(scenario, read, first.rules)


def open_run(path: str | Path) -> Run:
    """A run folder made by `unmask run`."""
    return Run(path)
