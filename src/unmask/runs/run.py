"""A run as Python sees it: open it, score it, look into it. Never writes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import UsageError
from unmask.judges.base import JUDGES, PANEL
from unmask.protocol.plan import SubjectWork, plan
from unmask.protocol.state import ScenarioState
from unmask.records import Choice, Kind, Outcome, Per, Preset, Role, Scenario, Slot, Verdict, call_renderer, digest
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Journal, expand_runs
from unmask.runs.outcomes import (
    Compactor,
    PanelMember,
    conclude_by_judges,
    spending_of,
)
from unmask.runs.polarity import find_lenders
from unmask.runs.witness import Witness
from unmask.scoring.identity import Identity
from unmask.scoring.score import Missing, OtherJudges, Score, score
from unmask.stats.clusters import ClusterKeys, find_clusters
from unmask.text import suggest_names

if TYPE_CHECKING:
    from unmask.data.frames import Table
    from unmask.runs.tables import TableSource

Watch = Callable[[Scenario, ScenarioState, Outcome], None]


class Run:
    """A run folder. Everything is recomputed from its journal, under the preset and judge asked for."""

    def __init__(self, path: str | Path) -> None:
        self._folder = Folder(path)
        self.definition: Definition = self._folder.definition()
        self._chosen: frozenset[str] | None = None
        """Ids of the only scenarios to look at; `None` for all."""
        self._witness = Witness(self._folder, self.definition)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, model={self.definition.subject.model!r})"

    def __len__(self) -> int:
        return sum(1 for _ in self.each_scenario())

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.rows())

    def __getitem__(self, scenario_id: str) -> Outcome:
        return self.outcome(scenario_id)

    @property
    def path(self) -> Path:
        return self._folder.path

    @property
    def folder(self) -> Folder:
        return self._folder

    @cached_property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All of them, or those that `restrict` has left."""
        return tuple(self.each_scenario())

    def each_scenario(self) -> Iterator[Scenario]:
        """The same, one by one; those in memory if they are there already."""
        if "scenarios" in self.__dict__:
            return iter(self.scenarios)
        chosen, every = self._chosen, self._folder.each_scenario()
        return every if chosen is None else (scenario for scenario in every if scenario.id in chosen)

    def restrict(self, ids: Iterable[str]) -> Run:
        """The same run, as if it had no other scenarios than these."""
        part = Run(self.path)
        part._chosen = frozenset(ids)
        return part

    def first_takes(self, takes: int) -> Run:
        """The same run, as if every pressured request had been asked only so many times."""
        most = self.definition.takes
        if not 1 <= takes <= most:
            many = "1 take" if most == 1 else f"{most} takes"
            raise UsageError(f"--takes {takes}: {self.path} has {many}", advice=f"Give a number from 1 to {most}.")
        part = Run(self.path)
        part._chosen, part.definition = self._chosen, msgspec.structs.replace(self.definition, takes=takes)
        return part

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Of scenarios that share a cluster with others: its name, the id of the first of them."""
        return self._clusters[0]

    @property
    def shared_prompts(self) -> bool:
        """Whether scenarios share system prompts and are counted as independent all the same."""
        return self._clusters[1]

    @cached_property
    def _clusters(self) -> tuple[dict[str, str], bool]:
        ids, keys = [], []
        for scenario in self.each_scenario():
            ids.append(scenario.id)
            keys.append(cluster_keys(scenario))
        found = find_clusters(keys)
        sizes = Counter(found.places)
        shared = {name: ids[place] for name, place in zip(ids, found.places, strict=True) if sizes[place] > 1}
        return shared, found.shared_prompts

    def judge_file(self, judge: str | None = None) -> str | None:
        """The file name of a judge, or `panel:` and those of its members."""
        if judge is None or not judge.startswith(PANEL):
            return self._folder.find_judge_file(judge, self.definition)
        return PANEL + ",".join(self._panel_files(judge))

    def rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """What each scenario shows."""
        return [outcome for _, _, outcome in self._each(preset=preset, judge=judge)]

    def lies(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """Those of `rows` whose verdict is a lie."""
        return [outcome for outcome in self.rows(preset=preset, judge=judge) if outcome.verdict is Verdict.LIE]

    def _bare_rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """The same without what judges wrote: a fraction of the memory, and all that numbers are made of."""
        compactor = Compactor()
        return [compactor.compact(outcome) for _, _, outcome in self._each(preset=preset, judge=judge)]

    def score(
        self, *, preset: Preset | str | None = None, judge: str | None = None, watch: Watch | None = None
    ) -> Score:
        """Every measure. Nothing is asked or read: what is missing makes scenarios undecided.

        `watch` is called with each scenario, what the journal holds of it (for the first judge of a panel) and what it
        shows: whoever needs them beside the score need not read a long journal twice.
        """
        panel, bill, compactor = self._panel(judge, preset), Bill(), Compactor()
        outcomes: list[Outcome] = []
        settings = panel[0].settings
        missing: list[set[type]] = [set() for _ in panel]
        waiting, sides = Counter[bool](), Counter[str]()
        if panel[0].partner is not None:
            bill.calls["numeric_judge"] = 0
        with self._open_journal(panel, bill) as journal:
            for scenario, states, outcome in self._each_outcome(panel, journal):
                outcomes.append(compactor.compact(outcome))
                sides.update(find_lenders(scenario, states))
                if watch is not None:
                    watch(scenario, states[0], outcome)
                if outcome.undecided:
                    work = [
                        plan(scenario, state, reader.settings_for(scenario))
                        for reader, state in zip(panel, states, strict=True)
                    ]
                    for kinds, items in zip(missing, work, strict=True):
                        kinds.update(map(type, items))
                    waiting[any(isinstance(item, SubjectWork) for items in work for item in items)] += any(work)
        scored = score(
            outcomes,
            preset=settings.preset,
            takes=settings.takes,
            run=msgspec.to_builtins(self.definition) | {"judge": self.judge_file(judge)},
            spent=spending_of(bill),
            complete_with=next(filter(None, map(self._command_to_complete, panel, missing)), None),
            missing=Missing(judge=waiting[False], subject=waiting[True]) if any(waiting.values()) else None,
            identity=self._identify(judge),
            shared_prompts=self.shared_prompts,
        )
        decides = any(outcome.verdict is not Verdict.UNJUDGED for outcome in outcomes)
        return msgspec.structs.replace(
            scored, other_judges=self.other_judges(judge, decides=decides), sides_from=dict(sides.most_common())
        )

    def other_judges(self, judge: str | None = None, *, decides: bool | None = None) -> OtherJudges | None:
        """Judges of this run beside the one in use, or beside the panel; `None` without any. `decides` says whether the
        one in use has decided a scenario, where that is known already."""
        used = self.judge_file(judge)
        in_use = [] if used is None else used.removeprefix(PANEL).split(",")
        others = [file for file in self.definition.full_judges if file not in in_use and self._has_readings(file)]
        if used is None or not others:
            return None
        names = tuple(map(self.definition.typed_judge, others))
        command = None
        if not (self._decides(used) if decides is None else decides):
            reads = next((name for file, name in zip(others, names, strict=True) if self._decides(file)), None)
            command = None if reads is None else shlex.join(["unmask", "score", str(self.path), "--judge", reads])
        return OtherJudges(self.definition.typed_judge(used), names, command)

    def _decides(self, file: str) -> bool:
        return any(outcome.verdict is not Verdict.UNJUDGED for _, _, outcome in self._each(judge=file))

    def _has_readings(self, file: str) -> bool:
        """Whether a judge has begun: its file has a line, or it needs none."""
        path = self._folder.readings_path(file)
        without_model = not JUDGES[self.definition.judges[file].style].questions(Kind.BINARY)
        return without_model or (path.is_file() and path.stat().st_size > 0)

    def replies(self, scenario_id: str) -> dict[tuple[Slot, int], Choice]:
        number, _ = self._find_scenario(scenario_id)
        with Journal(self._folder, self._each_scenario(), []) as journal:
            return dict(journal.state_of(number, None).choices())

    def show(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> None:
        """Print everything asked, answered, read and concluded of one scenario."""
        outcome = self.outcome(scenario_id, preset=preset, judge=judge)
        print(call_renderer("transcript_text", self.scenario(scenario_id), outcome, self.replies(scenario_id)))

    def outcome(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> Outcome:
        number, scenario = self._find_scenario(scenario_id)
        with self._open_journal(self._panel(judge, preset)) as journal:
            return self._outcome_in(journal, number, scenario, preset=preset, judge=judge)

    def scenario(self, scenario_id: str) -> Scenario:
        return self._find_scenario(scenario_id)[1]

    def _find_scenario(self, scenario_id: str) -> tuple[int, Scenario]:
        """A scenario and its number; only this one is held."""
        for number, scenario in enumerate(self._each_scenario()):
            if scenario.id == scenario_id:
                return number, scenario
        near = suggest_names(scenario_id, (scenario.id for scenario in self._each_scenario()))
        listed = f"{shlex.join(['unmask', 'show', str(self.path)])} lists them."
        raise UsageError(f"the run has no scenario {scenario_id!r}", advice=f"{near} {listed}" if near else listed)

    def _seen(self, judge: str | None = None) -> list[ScenarioState]:
        """What the journal holds, scenario by scenario; of a panel only the replies."""
        file = self.judge_file(judge)
        file = None if file is not None and file.startswith(PANEL) else file
        return [state for _, state in self._each_seen(file)]

    def _each_seen(self, judge: str | None) -> Iterator[tuple[Scenario, ScenarioState]]:
        """Scenario by scenario what the journal holds, without ever holding all of it. `judge` is a file name."""
        chosen = self._chosen
        every = self._folder.each_state(judge)
        return every if chosen is None else (pair for pair in every if pair[0].id in chosen)

    def _each(
        self, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Iterator[tuple[Scenario, ScenarioState, Outcome]]:
        """Scenario by scenario what the journal holds and what it shows; of a panel, what its first judge has read."""
        panel = self._panel(judge, preset)
        with self._open_journal(panel) as journal:
            for scenario, states, outcome in self._each_outcome(panel, journal):
                yield scenario, states[0], outcome

    def table(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Table:
        """The run as a flat table: a row per scenario and take, per scenario, or per reply."""
        from unmask.runs.tables import build_table

        return build_table(self._table_source(preset, judge), Per(per))

    def _table_rows(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The rows of `table` one by one, without ever holding all of them."""
        from unmask.runs.tables import each_row

        return each_row(self._table_source(preset, judge), Per(per))

    def to_pandas(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Any:
        """`table` as a pandas DataFrame."""
        from unmask.data.frames import to_pandas
        from unmask.runs.tables import lead_columns

        return to_pandas(lead_columns(self.table(per, preset=preset, judge=judge)))

    def to_polars(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Any:
        """`table` as a polars DataFrame."""
        from unmask.data.frames import to_polars
        from unmask.runs.tables import lead_columns

        return to_polars(lead_columns(self.table(per, preset=preset, judge=judge)))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(call_renderer("run_html", self))

    # --- inside

    def _outcome_in(
        self, journal: Journal, number: int, scenario: Scenario, *, preset: Preset | str | None, judge: str | None
    ) -> Outcome:
        """What a scenario shows by an open journal, where it has this number."""
        panel = self._panel(judge, preset)
        return conclude_by_judges(scenario, [journal.state_of(number, member.file) for member in panel], panel)

    def _table_source(self, preset: Preset | str | None, judge: str | None) -> TableSource:
        from unmask.runs.tables import TableSource

        return TableSource(
            definition=self.definition,
            judge=self.judge_file(judge),
            preset=str(preset or self.definition.preset),
            each=self._each(preset=preset, judge=judge),
        )

    def _panel_files(self, panel: str) -> list[str]:
        """The judges a panel names, none of them twice."""
        names = [name.strip() for name in panel.removeprefix(PANEL).split(",") if name.strip()]
        files = [self._folder.find_judge_file(name, self.definition) or "" for name in names]
        if len(files) < 2 or len(set(files)) < len(files):
            raise UsageError(
                f"--judge {panel}: a panel needs at least two different judges",
                advice=f"This run has: {', '.join(sorted(self.definition.full_judges))}",
            )
        for file in files:
            self._refuse_in_panel(panel, file)
        return files

    def _refuse_in_panel(self, panel: str, file: str) -> None:
        """A judge with a partner, and one that reads only figures, have not read all by themselves."""
        partner, typed = self.definition.partners.get(file), self.definition.typed_judge
        if partner is None and file in self.definition.full_judges:
            return
        why = f"has a judge of its own for figures, {typed(partner)}" if partner else "was asked about figures only"
        alone = [
            shlex.quote(typed(name)) for name in self.definition.full_judges if name not in self.definition.partners
        ]
        again = shlex.join(["unmask", "judge", str(self.path), "--judge", self.definition.judges[file].model])
        more = f"{again} --judge-name NAME" if partner else again
        raise UsageError(
            f"--judge {panel}: {typed(file)} {why}, and a panel is of judges that read everything themselves",
            advice=f"It reads everything itself with: {more}. Judges that do so now: {', '.join(alone) or 'none'}.",
        )

    def _panel(self, judge: str | None, preset: Preset | str | None) -> list[PanelMember]:
        """Whoever reads: one judge as a rule, several as a panel."""
        single = judge is None or not judge.startswith(PANEL)
        files = [self.judge_file(judge)] if single else self._panel_files(judge or "")
        partners, chosen = self.definition.partners, Preset(preset) if preset else None
        return [
            PanelMember(
                file,
                self.definition.settings(file, preset=chosen),
                self.definition.settings(file, preset=chosen, kind=Kind.NUMERIC),
                partners.get(file or ""),
            )
            for file in files
        ]

    def _open_journal(self, panel: list[PanelMember], bill: Bill | None = None) -> Journal:
        files, partners = [member.file for member in panel], self.definition.partners
        paid = {} if bill is None else {"paid": bill.add}
        return self._witness.watch(Journal(self._folder, self._each_scenario(), files, partners=partners, **paid))

    def _identify(self, judge: str | None = None) -> Identity:
        """Whether the folder is the run that its run.json describes."""
        panel = self._panel(judge, None)
        files = [file for member in panel for file in (member.file, member.partner) if file in self.definition.judges]
        if not self._witness.knows(files):
            self._open_journal(panel).close()
        return self._witness.identify(files)

    def _each_scenario(self) -> Iterable[Scenario]:
        """All of the folder, those that `restrict` has left out too; those in memory if they are there already."""
        return self.scenarios if self._chosen is None and "scenarios" in self.__dict__ else self._folder.each_scenario()

    def _each_outcome(
        self, panel: list[PanelMember], journal: Journal
    ) -> Iterator[tuple[Scenario, list[ScenarioState], Outcome]]:
        """Every scenario with what each member has seen, and what it shows."""
        chosen, clusters = self._chosen, self.clusters
        for number, scenario in enumerate(self._each_scenario()):
            if chosen is not None and scenario.id not in chosen:
                continue
            states = [journal.state_of(number, member.file) for member in panel]
            outcome = conclude_by_judges(scenario, states, panel)
            if scenario.id in clusters:
                outcome = msgspec.structs.replace(outcome, cluster=clusters[scenario.id])
            yield scenario, states, outcome

    def _command_to_complete(self, member: PanelMember, missing: set[type]) -> str | None:
        """The command that asks what is missing: the judge alone where that is enough, else the whole run again."""
        if not missing:
            return None
        from unmask.runs.commands import judge_command, run_command

        make = run_command if SubjectWork in missing else judge_command
        return make(self._folder.definition(), self.path, judge=member.file, preset=member.settings.preset)


def cluster_keys(scenario: Scenario) -> ClusterKeys:
    """What a scenario may share with others: its proposition, whichever side comes first, and its system prompt."""
    proposition = frozenset(scenario.statements) if scenario.kind is Kind.BINARY else scenario.proposition
    system = tuple(message.content for message in scenario.conversation if message.role is Role.SYSTEM)
    return ClusterKeys(scenario.cluster, proposition, digest(system) if any(system) else None)


AnyRun = Run | str | Path
Runs = AnyRun | Sequence[AnyRun]
"""One run or several, opened or by the paths of their folders. A folder that holds runs stands for all of them."""


def open_runs(runs: Runs) -> list[Run]:
    listed = [runs] if isinstance(runs, AnyRun) else runs
    return [opened for run in listed for opened in ([run] if isinstance(run, Run) else map(Run, expand_runs([run])))]


def open_run(path: str | Path) -> Run:
    """A run folder made by `unmask run`."""
    return Run(path)
