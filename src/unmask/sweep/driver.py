"""The driver of a sweep: one process and one event loop for all units. It keeps journals, limits and purse.

Every unit is a session of its own on its own run folder. They share the limiters of their endpoints, one purse and the
wish to stop. A unit that fails leaves the others alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import msgspec

from unmask.engine.define import NO_MODEL, define_run, judge_spec
from unmask.engine.loop import on_signals, run_blocking
from unmask.engine.prepare import open_asked
from unmask.engine.run import IMPATIENCE, open_judge_workload, open_run_workload
from unmask.engine.scenario import Executor
from unmask.engine.session import Interruption, Limiters, run_session
from unmask.engine.work import JUDGE, SUBJECT, Workload, price_for
from unmask.errors import IncompleteError, Interrupted, MissingError, UnmaskError
from unmask.files import Lock
from unmask.models.base import Model
from unmask.models.keys import Target
from unmask.models.limiter import Limits
from unmask.models.settings import ModelSettings, Role
from unmask.records import Record, Result, Verdict, digest
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.runs.options import Options
from unmask.sweep.grid import Grid, ModelRow, refuse_grid
from unmask.sweep.placement import Group, Placement, group_servers
from unmask.sweep.servers.base import Pool
from unmask.sweep.state import choose_lenders, describe_changes, locate_units, sum_costs
from unmask.sweep.units import Expansion, Unit, file_of_judge

SERVERS = "servers"
"""The folder of a sweep that has the logs of its servers."""

OPEN_UNITS = 8
"""Units that ask one endpoint at the same time. More would hold files and memory, and send nothing sooner."""

Opened = dict[tuple[Role, str], Model | str | None]
"""The model of each row, by its role and name. `None` is one that the sweep serves."""


class UnitResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What became of one unit, by its first judge."""

    unit: str
    title: str
    done: int = 0
    total: int = 0
    lies: int = 0
    unjudged: int = 0
    failed: int = 0
    """Requests that came to nothing."""
    calls: int = 0
    """Of this start, to the subject and all judges."""
    cost_usd: float | None = 0.0
    error: str | None = None
    """Why it is not complete."""

    @property
    def is_complete(self) -> bool:
        return self.error is None and self.done >= self.total


class SweepResult(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What became of all units."""

    out: str
    units: tuple[UnitResult, ...]
    spent_usd: float
    """By all units, as far as prices are known."""


class SweepWatch(Protocol):
    """Shows how far a sweep is."""

    def show(self, driver: Driver) -> None:
        """Called after every answer, and every second."""

    def tell(self, line: str) -> None:
        """Something to be shown once."""


def run_sweep(expansion: Expansion, out: Path, *, watch: SweepWatch | None = None) -> SweepResult:
    """Make or continue all units. Raises before anything is sent where the grid cannot work, and `Interrupted` when it
    was stopped; the result says what failed later."""
    if expansion.grid.ray is not None and find_spec("ray") is None:
        raise MissingError("[ray] needs the package ray", advice="pip install 'unmask[ray]'")
    models = open_models(expansion)
    advice = "Wait for it to finish, or choose another --out. `--status` may look meanwhile."
    with Lock(out / "sweep.lock", advice=advice):
        driver = Driver(expansion, out, models, watch=watch)
        for line in (*describe_changes(expansion, out), *expansion.notes):
            driver.tell(line)
        run_blocking(driver.run)
    return SweepResult(out=str(out), units=tuple(driver.results.values()), spent_usd=driver.purse.spent)


def open_models(expansion: Expansion) -> Opened:
    """The models of all rows, checked as far as that sends nothing. One error names all that is wrong with them."""
    judges, problems, opened = expansion.grid.judges, [], Opened()
    firsts = {unit.subject.name: unit for unit in reversed(expansion.units)}
    rows: list[tuple[Role, ModelRow, Options]] = [
        *(("subject", unit.subject, expansion.options(unit, judges[0])) for unit in firsts.values()),
        *(("judge", judge, expansion.options(expansion.units[0], judge)) for judge in judges),
    ]
    for role, row, options in rows:
        try:
            if role == "judge" and row.model == NO_MODEL:
                opened[role, row.name] = NO_MODEL
                continue
            model = open_asked(options.of(role), role, asks_for_key=row.serve is None, key_variable=row.key)
            price_for(model, role, options)
            opened[role, row.name] = None if row.serve is not None else model
        except UnmaskError as error:
            problems.append(f"{role} {row.name}: {' '.join(str(error).split())}")
    refuse_grid(expansion.grid.path, problems)
    return opened


class Driver:
    """One start of a sweep. Its folder is locked."""

    def __init__(self, expansion: Expansion, out: Path, models: Opened, *, watch: SweepWatch | None) -> None:
        self.expansion, self.out, self.models = expansion, out, models
        self.judges = expansion.grid.judges
        self.folders = locate_units(expansion, out)
        self.lenders = choose_lenders(expansion, self.folders)
        self.results = {
            unit.digest: UnitResult(
                unit=self.folders[unit.digest].name, title=unit.title, total=len(expansion.datasets[unit.data])
            )
            for unit in expansion.units
        }
        self.purse = Purse(expansion.grid.sweep.max_cost, payer="sweep")
        self.at_work: dict[tuple[str, str], tuple[Workload, Executor]] = {}
        """By unit and file of the judge."""
        self.ended = 0
        """Units that all judges have come to the end of."""
        self._watch = watch
        self._ended = {
            (unit.digest, place): asyncio.Event() for unit in expansion.units for place in range(len(self.judges))
        }
        """Set when a judge has come to the end of a unit, or to where it cannot go on."""
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._opening = asyncio.Lock()
        self._interruption = Interruption()
        self._idle: set[asyncio.Task[None] | None] = set()
        """Units that wait for something other than answers."""
        self._crash: Exception | None = None

    def tell(self, line: str) -> None:
        if self._watch is not None:
            self._watch.tell(line)

    async def run(self) -> None:
        _raise_file_limit()
        grid, units = self.expansion.grid, self.expansion.units
        self.purse.pay(await asyncio.to_thread(sum_costs, self.out))
        self._limiters = Limiters(self._limits_of(None))
        models = self._assign_limiters()
        subjects = {unit.subject.name: unit.subject for unit in units}.values()
        groups, self._find_groups = group_servers(tuple(subjects), self.judges, grid.folder, timeout=self._timeout_of)
        for unit in units:
            for place in range(len(self.judges)):
                for group in self._find_groups(unit.subject, place):
                    group.users += 1
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._close_models, models)
            if groups:
                placement = Placement(open_pool(grid, self.out / SERVERS), groups, tell=self.tell)
                stack.push_async_callback(placement.close)
                placement.start()
            with on_signals(self._interruption.request), self._interruption.listen(self._stop_waiting):
                await asyncio.gather(*map(self._run_unit, units))
        if self._crash is not None:
            raise self._crash
        if self._interruption.requests:
            raise Interrupted(
                "interrupted", advice="Everything answered is kept: run the same command again to continue."
            )

    async def _close_models(self, models: list[Model]) -> None:
        for model in models:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(model.close(), IMPATIENCE if self._interruption.requests > 1 else None)

    def _limits_of(self, row: ModelRow | None) -> Limits:
        options = self.expansion.options(self.expansion.units[0], self.judges[0])
        own = {} if row is None else row.settings
        return Limits(
            max_connections=(row and row.max_connections) or options.max_connections,
            requests_per_minute=(row and row.requests_per_minute) or options.requests_per_minute,
            wait_for_server=own.get("wait_for_server", self.expansion.grid.options.wait_for_server or 0.0),
            give_up_after=own.get("give_up_after", self.expansion.grid.options.give_up_after or Limits().give_up_after),
        )

    def _timeout_of(self, row: ModelRow) -> float:
        return row.timeout or self.expansion.grid.options.timeout or ModelSettings().timeout

    def _assign_limiters(self) -> list[Model]:
        """One limiter for each address and key."""
        rows: dict[tuple[Role, str], ModelRow] = {("judge", judge.name): judge for judge in self.judges}
        rows |= {("subject", unit.subject.name): unit.subject for unit in self.expansion.units}
        models = []
        for place, model in self.models.items():
            if model is not None and not isinstance(model, str):
                target: Target | None = getattr(model, "target", None)
                name = f"{model.endpoint} {digest(tuple(target.headers.values())) if target else ''}"
                self._limiters.assign(model, name, self._limits_of(rows[place]))
                models.append(model)
        return models

    def _stop_waiting(self) -> None:
        if self._interruption.requests == 1:
            self.tell("stopping: answers in flight come in; Ctrl-C again leaves them")
        for task in self._idle:
            if task is not None:
                task.cancel()

    async def _run_unit(self, unit: Unit) -> None:
        """All judges of a unit, the first together with the subject. A failure ends the unit and no other."""
        for place in range(len(self.judges)):
            reason = self.results[unit.digest].error
            try:
                if reason is None:
                    await self._run_stage(unit, place)
                    reason = "interrupted" if self._interruption.requests else None
            except (Interrupted, asyncio.CancelledError):
                reason = "interrupted"
            except UnmaskError as error:
                reason = str(error)
                if not isinstance(error, IncompleteError) or self.purse.limit is None:
                    self.tell(f"{unit.title}: {error}")
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                self._crash = self._crash or error
            self.results[unit.digest] = msgspec.structs.replace(self.results[unit.digest], error=reason)
            self._ended[unit.digest, place].set()
            for group in self._find_groups(unit.subject, place):
                group.release()
        self.ended += 1

    async def _run_stage(self, unit: Unit, place: int) -> None:
        """One session: the subject and the first judge, or one further judge."""
        lender = self.lenders.get(unit.digest)
        if lender is not None:
            with self._waiting():
                await self._ended[lender, place].wait()
            if (lent := self.results[lender]).error is not None:
                raise IncompleteError(f"{lent.title}, which lends its probes, is not complete: {lent.error}")
        groups = self._find_groups(unit.subject, place)
        judge = await self._await_model("judge", self.judges[place], groups)
        subject = None if place else await self._await_model("subject", unit.subject, groups)
        assert not isinstance(subject, str)
        if self.judges[place].batch:  # it mostly waits, and the others go on meanwhile
            await self._run_session(unit, place, subject, judge)
            return
        model = subject or judge
        endpoint = model if isinstance(model, str) else model.endpoint
        slots = self._slots.setdefault(endpoint, asyncio.Semaphore(OPEN_UNITS))
        with self._waiting():
            await slots.acquire()
        try:
            await self._run_session(unit, place, subject, judge)
        finally:
            slots.release()

    async def _await_model(self, role: Role, row: ModelRow, groups: list[Group]) -> Model | str:
        """The model of a row; one of a server once its group is ready."""
        if (opened := self.models[role, row.name]) is not None:
            return opened
        group = next(group for group in groups if row.name in group.models)
        with self._waiting():
            model = await group.get_model(row.name)
        self._limiters.assign(model, f"{model.endpoint} {id(model)}", self._limits_of(row))
        return model

    async def _run_session(self, unit: Unit, place: int, subject: Model | None, judge: Model | str) -> None:
        row = self.judges[place]
        lender, file = self.lenders.get(unit.digest), file_of_judge(row)
        options = self.expansion.options(unit, row, beliefs_from=None if lender is None else self.folders[lender])
        spec, folder = judge_spec(judge, options.judge), Folder(self.folders[unit.digest])
        readers: dict[str, Model] = {} if isinstance(judge, str) else {JUDGE: judge}

        def open_it() -> AbstractContextManager[Workload]:
            if subject is None:
                return open_judge_workload(folder, spec, options, readers, borrows=True)
            dataset = self.expansion.datasets[unit.data]
            wanted = define_run(dataset, subject, spec, options)
            return open_run_workload(folder, wanted, dataset, options, {SUBJECT: subject, **readers})

        def show(workload: Workload, executor: Executor) -> None:
            if workload.news:
                self.tell(f"{unit.title}: {workload.news}")
                workload.news = ""
            self.at_work[unit.digest, file] = workload, executor
            if self._watch is not None:
                self._watch.show(self)

        async with contextlib.AsyncExitStack() as stack:
            async with self._opening:  # long journals take seconds to open, and other units go on meanwhile
                if self._interruption.requests:
                    raise asyncio.CancelledError
                workload = await asyncio.to_thread(lambda: stack.enter_context(open_it()))
            try:
                await run_session(
                    workload,
                    limiters=self._limiters,
                    purse=self.purse,
                    interruption=self._interruption,
                    progress=show,
                    is_paid=True,
                )
            finally:
                self._add_result(unit, place, workload)
                self.at_work.pop((unit.digest, file), None)

    def _add_result(self, unit: Unit, place: int, workload: Workload) -> None:
        before = self.results[unit.digest]
        changes: dict[str, object] = {
            "calls": before.calls + sum(workload.calls.values()),
            "failed": before.failed + sum(workload.failed.values()),
        }
        if place == 0:
            changes |= {
                "done": workload.done,
                "total": len(workload.scenarios),
                "lies": workload.verdicts[Verdict.LIE],
                "unjudged": workload.verdicts[Verdict.UNJUDGED],
                "cost_usd": workload.bill.cost,
            }
        else:
            costs = before.cost_usd, workload.bill.costs.get("judge", 0.0)
            changes["cost_usd"] = None if costs[0] is None or costs[1] is None else costs[0] + costs[1]
        self.results[unit.digest] = msgspec.structs.replace(before, **changes)

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        """While this unit waits for something that an interruption need not wait for."""
        if self._interruption.requests:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        self._idle.add(task)
        try:
            yield
        finally:
            self._idle.discard(task)


def open_pool(grid: Grid, folder: Path) -> Pool:
    if grid.ray is not None:
        from unmask.sweep.servers.ray import RayPool

        return RayPool(grid.ray.address, folder=folder, gpus=grid.ray.gpus)
    from unmask.sweep.servers.local import LocalPool

    return LocalPool(grid.local.gpus if grid.local else (), folder)


def _raise_file_limit() -> None:
    """Every unit holds a handful of files, and every request a connection."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 65_536)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
