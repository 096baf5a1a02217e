"""A run as Python sees it: open it, score it, look into it. Never writes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.ask.plan import Ask, Settings, plan
from unmask.conclude import Bill, by_panel, outcomes, spent
from unmask.definition import Definition
from unmask.errors import UsageError
from unmask.folder import Folder, load_seen
from unmask.frames import Per, Source, Table, headline_html, table, to_pandas, to_polars
from unmask.read.panel import PANEL
from unmask.records import Choice, Outcome, Scenario, Slot
from unmask.repeat import judge_command, run_command
from unmask.resolve.presets import Preset
from unmask.score import Score, score
from unmask.seen import Seen


class _Member(NamedTuple):
    """A judge of the run: its file, how it reads, and what it has read."""

    file: str | None
    settings: Settings
    seen: list[Seen]


class Run:
    """A run folder. Everything is recomputed from its journal, under the preset and judge asked for."""

    def __init__(self, path: str | Path) -> None:
        self._folder = Folder(path)
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
        return self._folder.scenarios()

    def judge_file(self, judge: str | None = None) -> str | None:
        """The file name of a judge, or `panel:` and those of its members."""
        if judge is None or not judge.startswith(PANEL):
            return self._folder.judge(judge, self.definition)
        return PANEL + ",".join(self._members(judge))

    def rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """What each scenario shows."""
        return self._rows(self._panel(judge, preset))

    def score(self, *, preset: Preset | str | None = None, judge: str | None = None) -> Score:
        """Every measure. Nothing is asked or read: what is missing makes scenarios undecided."""
        panel = self._panel(judge, preset)
        settings, seen, found = panel[0].settings, panel[0].seen, self._rows(panel)
        return score(
            found,
            preset=settings.preset,
            takes=settings.takes,
            run=msgspec.to_builtins(self.definition) | {"judge": self.judge_file(judge)},
            spent=spent(self._bill(member.file for member in panel), self.scenarios, seen, found, settings),
            complete_with=next(filter(None, (self._completing(member, found) for member in panel)), None),
        )

    def replies(self, scenario_id: str) -> dict[tuple[Slot, int], Choice]:
        return dict(self._seen_of(scenario_id, None).choices())

    def outcome(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> Outcome:
        self.scenario(scenario_id)
        return next(row for row in self.rows(preset=preset, judge=judge) if row.id == scenario_id)

    def scenario(self, scenario_id: str) -> Scenario:
        for scenario in self.scenarios:
            if scenario.id == scenario_id:
                return scenario
        from difflib import get_close_matches

        near = get_close_matches(scenario_id, [scenario.id for scenario in self.scenarios], n=3)
        advice = f"Did you mean {', '.join(near)}?" if near else f"unmask score {self.path} --rows lists them."
        raise UsageError(f"the run has no scenario {scenario_id!r}", advice=advice)

    def seen(self, judge: str | None = None) -> list[Seen]:
        """What the journal holds, scenario by scenario; of a panel only the replies."""
        file = self.judge_file(judge)
        return self._seen(None if file is not None and file.startswith(PANEL) else file)

    def table(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Table:
        """The run as a flat table: a row per scenario and take, per scenario, or per reply."""
        source = Source(
            definition=self.definition,
            judge=self.judge_file(judge),
            preset=str(preset or self.definition.preset),
            scenarios=self.scenarios,
            seen=self.seen(judge),
            outcomes=self.rows(preset=preset, judge=judge),
        )
        return table(source, Per(per))

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
        return [_Member(file, self._settings(file, preset), self._seen(file)) for file in files]

    def _rows(self, panel: list[_Member]) -> list[Outcome]:
        if len(panel) == 1:
            return list(outcomes(self.scenarios, panel[0].seen, panel[0].settings))
        members = [(member.settings, member.seen) for member in panel]
        return list(by_panel(self.scenarios, members, panel[0].settings.rules))

    def _seen(self, judge: str | None) -> list[Seen]:
        return load_seen(self._folder, judge, self.scenarios)

    def _seen_of(self, scenario_id: str, judge: str | None) -> Seen:
        wanted = self.scenario(scenario_id)
        return self._seen(judge)[self.scenarios.index(wanted)]

    def _settings(self, judge: str | None, preset: Preset | str | None) -> Settings:
        return self.definition.settings(judge, preset=Preset(preset) if preset else None)

    def _bill(self, judges: Iterable[str | None]) -> Bill:
        bill = Bill()
        for asked in self._folder.asked():
            bill.add("subject", asked)
        for judge in judges:
            for judged in self._folder.judged(judge):
                bill.add("judge", judged)
        return bill

    def _completing(self, member: _Member, found: list[Outcome]) -> str | None:
        """The command that asks what is missing: the judge alone where that is enough, else the whole run again."""
        missing = [
            work
            for scenario, held, row in zip(self.scenarios, member.seen, found, strict=True)
            if row.undecided
            for work in plan(scenario, held, member.settings)
        ]
        if not missing:
            return None
        asks = any(isinstance(work, Ask) for work in missing)
        make = run_command if asks else judge_command
        return make(self.definition, self.path, judge=member.file, preset=member.settings.preset)


def open_run(path: str | Path) -> Run:
    """A run folder made by `unmask run`."""
    return Run(path)
