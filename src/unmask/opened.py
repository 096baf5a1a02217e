"""A run as Python sees it: open it, score it, look into it. Never writes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import msgspec

from unmask.ask.plan import Ask, Settings, plan
from unmask.conclude import Bill, outcomes, spent
from unmask.definition import Definition
from unmask.errors import UsageError
from unmask.folder import Folder, load_seen
from unmask.records import Choice, Outcome, Scenario, Slot
from unmask.repeat import judge_command, run_command
from unmask.resolve.presets import Preset
from unmask.score import Score, score
from unmask.seen import Seen


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

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        return self._folder.scenarios()

    def judge_file(self, judge: str | None = None) -> str | None:
        return self._folder.judge(judge, self.definition)

    def rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """What each scenario shows."""
        file = self.judge_file(judge)
        return list(outcomes(self.scenarios, self._seen(file), self._settings(file, preset)))

    def score(self, *, preset: Preset | str | None = None, judge: str | None = None) -> Score:
        """Every measure. Nothing is asked or read: what is missing makes scenarios undecided."""
        file = self.judge_file(judge)
        settings, seen = self._settings(file, preset), self._seen(file)
        found = list(outcomes(self.scenarios, seen, settings))
        return score(
            found,
            preset=settings.preset,
            takes=settings.takes,
            run=msgspec.to_builtins(self.definition),
            spent=spent(self._bill(file), self.scenarios, seen, found, settings),
            complete_with=self._completing(file, settings, seen, found),
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

    # --- inside

    def _seen(self, judge: str | None) -> list[Seen]:
        return load_seen(self._folder, judge, self.scenarios)

    def _seen_of(self, scenario_id: str, judge: str | None) -> Seen:
        wanted = self.scenario(scenario_id)
        return self._seen(judge)[self.scenarios.index(wanted)]

    def _settings(self, judge: str | None, preset: Preset | str | None) -> Settings:
        return self.definition.settings(judge, preset=Preset(preset) if preset else None)

    def _bill(self, judge: str | None) -> Bill:
        bill = Bill()
        for asked in self._folder.asked():
            bill.add("subject", asked)
        for judged in self._folder.judged(judge):
            bill.add("judge", judged)
        return bill

    def _completing(self, judge: str | None, settings: Settings, seen: list[Seen], found: list[Outcome]) -> str | None:
        """The command that asks what is missing: the judge alone where that is enough, else the whole run again."""
        missing = [
            work
            for scenario, held, row in zip(self.scenarios, seen, found, strict=True)
            if row.undecided
            for work in plan(scenario, held, settings)
        ]
        if not missing:
            return None
        asks = any(isinstance(work, Ask) for work in missing)
        make = run_command if asks else judge_command
        return make(self.definition, self.path, judge=judge, preset=settings.preset)


def open_run(path: str | Path) -> Run:
    """A run folder made by `unmask run`."""
    return Run(path)
