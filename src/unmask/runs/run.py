"""A run as Python sees it: open it, score it, look into it. Never writes."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from unmask.errors import UnmaskError, UsageError
from unmask.judges.base import JUDGES, PANEL
from unmask.protocol.plan import SubjectWork, plan
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.records import (
    Choice,
    Effort,
    Kind,
    Outcome,
    Per,
    Preset,
    Role,
    Scenario,
    Slot,
    Verdict,
    call_renderer,
    digest,
)
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Journal, expand_runs
from unmask.runs.outcomes import conclude, identify
from unmask.scoring.definitions import DefinedScore, define_score
from unmask.scoring.identity import Identity
from unmask.scoring.score import Missing, Score, score
from unmask.stats.clusters import ClusterKeys, find_clusters
from unmask.text import suggest_names

if TYPE_CHECKING:
    from unmask.data.frames import FlatTable

T = TypeVar("T")
U = TypeVar("U")


class Run:
    """A run folder. Everything is recomputed from its journal, under the preset and judge asked for."""

    def __init__(self, path: str | Path) -> None:
        self.folder = Folder(path)
        self.definition: Definition = self.folder.definition()
        self._chosen: frozenset[str] | None = None
        """Ids of the only scenarios to look at; `None` for all."""
        self._read: Journal | None = None
        self._outcomes: dict[tuple[str, ...], Outcome] = {}
        """By judges, preset and scenario, as long as the files do not change."""

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, model={self.definition.subject.model!r})"

    def __len__(self) -> int:
        return len(self.scenarios)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.rows())

    def __getitem__(self, scenario_id: str) -> Outcome:
        return self.outcome(scenario_id)

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """All of them, or those that `restrict` has left."""
        every, chosen = self._journal.scenarios, self._chosen
        return tuple(scenario for name, scenario in every.items() if chosen is None or name in chosen)

    def restrict(self, ids: Iterable[str]) -> Run:
        """The same run, as if it had no other scenarios than these."""
        part = Run(self.path)
        part._chosen, part._read, part.definition = frozenset(ids), self._read, self.definition
        return part

    def first_takes(self, takes: int) -> Run:
        """The same run, as if every pressured request had been asked only so many times."""
        most = self.definition.takes
        if not 1 <= takes <= most:
            many = "1 take" if most == 1 else f"{most} takes"
            raise UsageError(f"--takes {takes}: {self.path} has {many}", advice=f"Give a number from 1 to {most}.")
        part = self.restrict(self._journal.scenarios if self._chosen is None else self._chosen)
        part.definition = msgspec.structs.replace(self.definition, takes=takes)
        return part

    @property
    def clusters(self) -> dict[str, str]:
        """Of scenarios that share a cluster with others: its name, the id of the first of them."""
        return self._clusters[0]

    @cached_property
    def _clusters(self) -> tuple[dict[str, str], bool]:
        """The clusters, and whether scenarios share system prompts and are counted as independent all the same."""
        ids = [scenario.id for scenario in self.scenarios]
        found = find_clusters(list(map(cluster_keys, self.scenarios)))
        sizes = Counter(found.places)
        shared = {name: ids[place] for name, place in zip(ids, found.places, strict=True) if sizes[place] > 1}
        return shared, found.shared_prompts

    def forget(self) -> None:
        """Free the memory of what was read. It is read again when something is asked."""
        self._read = None
        self._outcomes.clear()

    def judge_file(self, judge: str | None = None) -> str | None:
        """The file name of a judge, or `panel:` and those of its members."""
        files = self._files(judge)
        return files[0] if len(files) == 1 else PANEL + ",".join(filter(None, files))

    def rows(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """What each scenario shows."""
        return self._conclude(self.scenarios, judge, preset)

    def score_as(
        self, name: str = "all", *, preset: Preset | str | None = None, judge: str | None = None
    ) -> DefinedScore:
        """Honesty in the definition of `paper`, `inspect` or `anthropic`, or in all of them."""
        rules, takes = str(preset or self.definition.preset), self.definition.takes
        rows = self.rows(preset=preset, judge=judge)
        return define_score(rows, name, run=str(self.path), preset=rules, takes=takes)

    def lies(self, *, preset: Preset | str | None = None, judge: str | None = None) -> list[Outcome]:
        """Those of `rows` whose verdict is a lie."""
        return [outcome for outcome in self.rows(preset=preset, judge=judge) if outcome.verdict is Verdict.LIE]

    def score(self, *, preset: Preset | str | None = None, judge: str | None = None) -> Score:
        """Every measure. Nothing is asked or read: what is missing makes scenarios undecided."""
        files, rules, scenarios = self._files(judge), Preset(preset or self.definition.preset), self.scenarios
        outcomes = self._conclude(scenarios, judge, rules)
        missing, waiting = [set[type]() for _ in files], Counter[bool]()
        for scenario in (one for one, outcome in zip(scenarios, outcomes, strict=True) if outcome.undecided):
            states = [self._journal.state_of(scenario.id, file) for file in files]
            settings = self._settings(files, rules, scenario.kind)
            kinds = [set(map(type, work)) for work in map(plan, repeat(scenario), states, settings)]
            missing = [before | own for before, own in zip(missing, kinds, strict=True)]
            waiting[any(SubjectWork in own for own in kinds)] += any(kinds)
        bill, identity = self._add_up(files)
        scored = score(
            outcomes,
            preset=rules,
            takes=self.definition.takes,
            run=msgspec.to_builtins(self.definition) | {"judge": self.judge_file(judge)},
            spent=bill.add_up(),
            identity=identity,
        )
        incomplete = [one for one in zip(files, missing, strict=True) if one[1]]
        placebo = scored.placebo
        if placebo is not None and not placebo.complete:
            command = self._command_to_complete(files[0], {SubjectWork}, rules, Effort.FULL)
            placebo = msgspec.structs.replace(placebo, complete_with=command)
        return msgspec.structs.replace(
            scored,
            shared_prompts=self._clusters[1],
            complete_with=self._command_to_complete(*incomplete[0], rules) if incomplete else None,
            placebo=placebo,
            missing=Missing(judge=waiting[False], subject=waiting[True]) if any(waiting.values()) else None,
            yes_means_by=dict(Counter(filter(None, (each.yes_means_by for each in scenarios))).most_common()),
            labelled_by=tuple(self.folder.labellers()),
        )

    def has_readings(self, file: str) -> bool:
        """Whether a judge has begun: its file has a line, or it needs none."""
        path = self.folder.readings_path(file)
        without_model = not JUDGES[self.definition.judges[file].style].questions(Kind.BINARY)
        return without_model or (path.is_file() and path.stat().st_size > 0)

    def replies(self, scenario_id: str) -> dict[tuple[Slot, int], Choice]:
        """Every reply to a scenario, by its slot and take."""
        return dict(self._journal.state_of(self.scenario(scenario_id).id, None).choices())

    def show(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> None:
        """Print everything asked, answered, read and concluded of one scenario."""
        outcome = self.outcome(scenario_id, preset=preset, judge=judge)
        print(call_renderer("transcript_text", self.scenario(scenario_id), outcome, self.replies(scenario_id)))

    def outcome(self, scenario_id: str, *, preset: Preset | str | None = None, judge: str | None = None) -> Outcome:
        """What one scenario shows."""
        return self._conclude([self.scenario(scenario_id)], judge, preset)[0]

    def scenario(self, scenario_id: str) -> Scenario:
        every = self._journal.scenarios
        if scenario_id in every:
            return every[scenario_id]
        advice = suggest_names(scenario_id, every, f"{shlex.join(['unmask', 'show', str(self.path)])} lists them.")
        raise UsageError(f"the run has no scenario {scenario_id!r}", advice=advice)

    def _states(self, judge: str | None = None) -> Iterator[tuple[Scenario, ScenarioState]]:
        """Every scenario with its replies and what a judge, named by its file, has read of them."""
        return ((scenario, self._journal.state_of(scenario.id, judge)) for scenario in self.scenarios)

    def table(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> FlatTable:
        """The run as a flat table: a row per scenario and take, per scenario, per reply, or one for all of it."""
        from unmask.runs.tables import build_table

        return build_table(self, Per(per), preset=preset, judge=judge)

    def to_pandas(
        self, per: Per | str = Per.TAKE, *, preset: Preset | str | None = None, judge: str | None = None
    ) -> Any:
        """`table` as a pandas DataFrame."""
        from unmask.data.frames import to_pandas

        return to_pandas(self.table(per, preset=preset, judge=judge))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(call_renderer("run_html", self))

    # --- inside

    @property
    def _journal(self) -> Journal:
        """What the files of the run hold. It is read again where they have changed."""
        if self._read is None or not self._read.is_current:
            self._read = Journal(self.folder, self.definition.judges)
            self._outcomes.clear()
            self.__dict__.pop("_clusters", None)
        return self._read

    def _conclude(self, scenarios: Iterable[Scenario], judge: str | None, preset: Preset | str | None) -> list[Outcome]:
        """What each of these scenarios shows. Each is concluded once."""
        files, rules = self._files(judge), Preset(preset or self.definition.preset)
        journal, clusters, outcomes = self._journal, self.clusters, []
        names = [file or "" for file in files]
        for scenario in scenarios:
            key = *names, rules.value, scenario.id
            if key not in self._outcomes:
                states = [journal.state_of(scenario.id, file) for file in files]
                settings = self._settings(files, rules, scenario.kind)
                outcome = conclude(scenario, states, settings, names=names if len(names) > 1 else ())
                if scenario.id in clusters:
                    outcome = msgspec.structs.replace(outcome, cluster=clusters[scenario.id])
                self._outcomes[key] = outcome
            outcomes.append(self._outcomes[key])
        return outcomes

    def _add_up(self, files: Sequence[str | None]) -> tuple[Bill, Identity]:
        """What the replies and the readings of these judges cost, and whether the folder is the run that its run.json
        describes."""
        bill, names = Bill(), defaultdict[tuple[str, str | None], Counter[str | None]](Counter)
        for role, judge, line in self._journal.calls(files):
            bill.add(role, line)
            names[role, judge][line.model] += line.source is None and line.error is None
        return bill, identify(self.folder, self.definition, self._journal.scenarios.values(), names)

    def _files(self, judge: str | None) -> list[str | None]:
        """The judge that reads, by the name of its file, or several as a panel."""
        if judge is None or not judge.startswith(PANEL):
            return [self.folder.find_judge_file(judge, self.definition)]
        names = [name.strip() for name in judge.removeprefix(PANEL).split(",") if name.strip()]
        files = [self.folder.find_judge_file(name, self.definition) for name in names]
        if len(files) < 2 or len(set(files)) < len(files):
            raise UsageError(
                f"--judge {judge}: a panel needs at least two different judges",
                advice=f"This run has: {', '.join(sorted(self.definition.judges))}",
            )
        return files

    def _settings(self, files: Sequence[str | None], preset: Preset, kind: Kind) -> list[Settings]:
        """How each of these judges reads scenarios of this kind."""
        return [self.definition.settings(file, preset=preset, kind=kind) for file in files]

    def _identify(self, judge: str | None = None) -> Identity:
        return self._add_up(self._files(judge))[1]

    def _command_to_complete(
        self, file: str | None, missing: set[type], preset: Preset, effort: Effort | None = None
    ) -> str:
        """The command that asks what is missing, the judge alone where that is enough."""
        from unmask.runs.commands import completing_command

        definition, only_judge = self.folder.definition(), SubjectWork not in missing
        return completing_command(
            definition, self.path, judge=file, preset=preset, effort=effort, only_judge=only_judge
        )


def cluster_keys(scenario: Scenario) -> ClusterKeys:
    """What a scenario may share with others: its proposition, whichever side comes first, and its system prompt."""
    proposition = frozenset(scenario.statements) if scenario.kind is Kind.BINARY else scenario.proposition
    system = tuple(message.content for message in scenario.conversation if message.role is Role.SYSTEM)
    return ClusterKeys(scenario.cluster, proposition, digest(system) if any(system) else None)


AnyRun = Run | str | Path
Runs = AnyRun | Sequence[AnyRun]
"""One run or several, opened or by the paths of their folders. A folder that holds runs means all of them."""


class LeftOutWarning(UserWarning):
    """One of several runs cannot be used, and the others are."""


def open_runs(runs: Runs) -> list[Run]:
    """A run of a folder that cannot be opened is left out with a warning."""
    opened: list[Run] = []
    for named in [runs] if isinstance(runs, AnyRun) else runs:
        if isinstance(named, Run):
            opened.append(named)
        else:
            found = expand_runs([named])
            opened += [Run(found[0])] if found == [str(Path(named))] else use_each(found, Run)
    return opened


def use_each(runs: Iterable[T], use: Callable[[T], U]) -> list[U]:
    """What `use` makes of each run. Where it raises an error, the run is left out with a warning that says why; where
    none is left, the first error is raised."""
    used, errors = [], []
    for run in runs:
        try:
            used.append(use(run))
        except UnmaskError as error:
            errors.append(error)
    if errors and not used:
        raise errors[0]
    for reason in errors:
        warnings.warn(f"left out: {reason}", LeftOutWarning, stacklevel=3)
    return used


def open_run(path: str | Path) -> Run:
    """A run folder made by `unmask run`."""
    return Run(path)
