"""The driver of a sweep: one process and one event loop for all units. It keeps journals, limits and purse.

Every unit is a session of its own on its own run folder. They share the gates of their endpoints, one purse and the
wish to stop. A unit that fails leaves the others alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from unmask.engine.define import define_run, judge_spec
from unmask.engine.executor import Executor
from unmask.engine.loop import on_signals, run_blocking
from unmask.engine.run import IMPATIENCE, open_judge_workload, open_run_workload
from unmask.engine.session import Interruption, Limiters, run_session
from unmask.engine.work import JUDGE, SUBJECT, Workload
from unmask.errors import IncompleteError, Interrupted, MissingError, UnmaskError
from unmask.files import Lock
from unmask.models.base import Model
from unmask.models.keys import Role
from unmask.models.limiter import Limits
from unmask.models.providers import key_of_model
from unmask.models.settings import ModelSettings
from unmask.records import Record, Result, Verdict, digest
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.sweep.grid import Grid, ModelRow
from unmask.sweep.placement import Group, Placement, group_servers
from unmask.sweep.rows import OpenedRow, open_rows
from unmask.sweep.servers.base import Pool
from unmask.sweep.state import (
    choose_lenders,
    describe_changes,
    file_of_judge,
    locate_units,
    sum_costs,
)
from unmask.sweep.units import Expansion, Unit

SERVERS = "servers"
"""The folder of a sweep that has the logs of its servers."""

T = TypeVar("T")

OPEN_UNITS = 8
"""Units that ask one endpoint at the same time. More would hold files and memory, and send nothing sooner."""


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

    def follow(self, unit: Unit, judge: str, workload: Workload, executor: Executor) -> None:
        """Called after every answer of a unit, and every second."""

    def leave(self, unit: Unit, judge: str) -> None:
        """A judge has come to the end of a unit."""

    def end(self, unit: Unit) -> None:
        """All judges have."""

    def tell(self, line: str) -> None:
        """Something to be said once."""


def run_sweep(expansion: Expansion, out: Path, *, watch: SweepWatch | None = None) -> SweepResult:
    """Make or continue all units. Raises before anything is sent where the grid cannot work, and `Interrupted` when it
    was stopped; what failed later stands in the result."""
    if expansion.grid.ray is not None and find_spec("ray") is None:
        raise MissingError("[ray] needs the package ray", advice="pip install 'unmask[ray]'")
    subjects, judges = open_rows(expansion)
    advice = "Wait for it to finish, or choose another --out. `--status` may look meanwhile."
    with Lock(out / "sweep.lock", advice=advice):
        folders = locate_units(expansion, out)
        for line in (*describe_changes(expansion, out), *expansion.notes):
            if watch is not None:
                watch.tell(line)
        driver = Driver(expansion, out, folders, subjects=subjects, judges=judges, watch=watch)
        run_blocking(driver.run)
    return SweepResult(
        out=str(out), units=tuple(driver.results[unit.digest] for unit in expansion.units), spent_usd=driver.spent()
    )


class Driver:
    """One start of a sweep. Its folder is locked."""

    def __init__(
        self,
        expansion: Expansion,
        out: Path,
        folders: dict[str, Path],
        *,
        subjects: dict[str, OpenedRow],
        judges: list[OpenedRow],
        watch: SweepWatch | None,
    ) -> None:
        self.expansion, self.out, self.folders = expansion, out, folders
        self.subjects, self.judges, self.watch = subjects, judges, watch
        self.lenders = choose_lenders(expansion, folders)
        self.results = {
            unit.digest: UnitResult(
                unit=folders[unit.digest].name, title=unit.title, total=len(expansion.datasets[unit.data])
            )
            for unit in expansion.units
        }
        self._crash: BaseException | None = None
        self._waiting: set[asyncio.Task[None]] = set()
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._opening = asyncio.Lock()
        self._stages = {
            (unit.digest, place): asyncio.Event() for unit in expansion.units for place in range(len(judges))
        }
        """Set when a judge has come to the end of a unit, or to where it cannot go on."""
        self._failures: dict[tuple[str, int], str] = {}
        """Why that was so, for those that were not complete then."""
        self._purse = Purse(expansion.grid.sweep.max_cost, payer="sweep")
        self._interruption = Interruption()

    def spent(self) -> float:
        return self._purse.spent

    async def run(self) -> None:
        _raise_file_limit()
        grid = self.expansion.grid
        self._purse.pay(await asyncio.to_thread(sum_costs, self.out))
        self._limiters = Limiters(self._limits_of(None))
        models = self._assign_limiters()
        subjects = [opened.row for opened in self.subjects.values()]
        judges = [opened.row for opened in self.judges]
        groups, self._find_groups = group_servers(subjects, judges, grid.folder, timeout=self._timeout_of)
        for unit in self.expansion.units:
            for place in range(len(judges)):
                for group in self._find_groups(unit.subject, place):
                    group.users += 1
        placement = Placement(open_pool(grid, self.out / SERVERS), groups, tell=self._show_line) if groups else None
        try:
            if placement is not None:
                placement.start()
            with on_signals(self._interruption.request), self._interruption.listen(self._stop_waiting):
                await self._run_units()
        finally:
            if placement is not None:
                await placement.close()
            for model in models:
                closing = model.close()
                with contextlib.suppress(TimeoutError):
                    await (closing if self._interruption.requests < 2 else asyncio.wait_for(closing, IMPATIENCE))
        if self._crash is not None:
            raise self._crash
        if self._interruption.requests:
            raise Interrupted(
                "interrupted", advice="Everything answered is kept: run the same command again to continue."
            )

    def _show_line(self, line: str) -> None:
        if self.watch is not None:
            self.watch.tell(line)

    def _limits_of(self, row: ModelRow | None) -> Limits:
        options = self.expansion.options(self.expansion.units[0], self.expansion.grid.judges[0])
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
        models = []
        rows: list[tuple[Role, OpenedRow]] = [("subject", opened) for opened in self.subjects.values()]
        for role, opened in (*rows, *(("judge", opened) for opened in self.judges)):
            if opened.model is None or isinstance(opened.model, str):
                continue
            key = key_of_model(opened.row.model, role=role, key_variable=opened.row.key)
            name = f"{opened.model.endpoint} {digest((key.value,)) if key else ''}"
            self._limiters.assign(opened.model, name, self._limits_of(opened.row))
            models.append(opened.model)
        return models

    def _stop_waiting(self) -> None:
        for task in self._waiting:
            task.cancel()

    async def _run_units(self) -> None:
        """All units at the same time, as far as their servers and their endpoints let them."""
        tasks = [asyncio.create_task(self._run_unit(unit)) for unit in self.expansion.units]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _run_unit(self, unit: Unit) -> None:
        """All judges of a unit, the first together with the subject. A failure ends the unit and no other."""
        complete = True
        for place in range(len(self.judges)):
            try:
                if complete:
                    await self._run_stage(unit, place)
                    complete = not self._interruption.requests
            except (Interrupted, asyncio.CancelledError):
                complete = False
                self._set_error(unit, "interrupted")
            except UnmaskError as error:
                complete = False
                self._set_error(unit, str(error))
                if not isinstance(error, IncompleteError) or self._purse.limit is None:
                    self._show_line(f"{unit.title}: {error}")
            except Exception as error:
                complete = False
                self._set_error(unit, f"{type(error).__name__}: {error}")
                self._crash = self._crash or error
            finally:
                if not complete:
                    self._failures[unit.digest, place] = self.results[unit.digest].error or "interrupted"
                self._stages[unit.digest, place].set()
                for group in self._find_groups(unit.subject, place):
                    group.release()
        if self.watch is not None:
            self.watch.end(unit)

    def _set_error(self, unit: Unit, reason: str) -> None:
        self.results[unit.digest] = msgspec.structs.replace(self.results[unit.digest], error=reason)

    async def _run_stage(self, unit: Unit, place: int) -> None:
        """One session: the subject and the first judge, or one further judge."""
        lender = self.lenders.get(unit.digest)
        if lender is not None:
            await self._await_interruptibly(self._stages[lender, place].wait)
            if (reason := self._failures.get((lender, place))) is not None:
                title = self.results[lender].title
                raise IncompleteError(f"{title}, which lends its probes, is not complete: {reason}")
        groups = self._find_groups(unit.subject, place)
        judge = await self._await_model(self.judges[place], groups)
        subject = None if place else await self._await_model(self.subjects[unit.subject.name], groups)
        assert not isinstance(subject, str)
        if self.judges[place].row.batch:  # it mostly waits, and the others go on meanwhile
            await self._run_session(unit, place, subject, judge)
            return
        model = subject or judge
        async with self._take_slot(model if isinstance(model, str) else model.endpoint):
            await self._run_session(unit, place, subject, judge)

    async def _await_model(self, opened: OpenedRow, groups: list[Group]) -> Model | str:
        """The model of a row; one of a server once its group is ready."""
        if opened.model is not None:
            return opened.model
        group = next(group for group in groups if opened.row.name in group.models)
        model = await self._await_interruptibly(lambda: group.get_model(opened.row.name))
        self._limiters.assign(model, f"{model.endpoint} {id(model)}", self._limits_of(opened.row))
        self._limiters.limiter_of(model).mark_working(model)  # its supervisor has had an answer
        return model

    async def _run_session(self, unit: Unit, place: int, subject: Model | None, judge: Model | str) -> None:
        row = self.judges[place].row
        lender = self.lenders.get(unit.digest)
        options = self.expansion.options(unit, row, beliefs_from=None if lender is None else self.folders[lender])
        spec, folder = judge_spec(judge, options.judge), Folder(self.folders[unit.digest])

        readers: dict[str, Model] = {} if isinstance(judge, str) else {JUDGE: judge}

        def open_it() -> AbstractContextManager[Workload | None]:
            if subject is None:
                return open_judge_workload(folder, spec, options, readers, borrows=True)
            dataset = self.expansion.datasets[unit.data]
            wanted = define_run(dataset, subject, spec, options)
            return open_run_workload(folder, wanted, dataset, options, {SUBJECT: subject, **readers})

        async with contextlib.AsyncExitStack() as stack:
            async with self._opening:  # long journals take seconds to open, and other units go on meanwhile
                if self._interruption.requests:
                    raise asyncio.CancelledError
                workload = await asyncio.to_thread(lambda: stack.enter_context(open_it()))
            if workload is None:
                return
            file = file_of_judge(row)
            try:
                await run_session(
                    workload,
                    limiters=self._limiters,
                    purse=self._purse,
                    interruption=self._interruption,
                    progress=self._make_progress(unit, file),
                    is_paid=True,
                )
            finally:
                self._add_result(unit, place, workload)
                if self.watch is not None:
                    self.watch.leave(unit, file)

    def _make_progress(self, unit: Unit, file: str) -> Callable[[Workload, Executor], None] | None:
        watch = self.watch
        return None if watch is None else lambda workload, executor: watch.follow(unit, file, workload, executor)

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

    @contextlib.asynccontextmanager
    async def _take_slot(self, endpoint: str) -> AsyncIterator[None]:
        slots = self._slots.setdefault(endpoint, asyncio.Semaphore(OPEN_UNITS))
        await self._await_interruptibly(slots.acquire)
        try:
            yield
        finally:
            slots.release()

    async def _await_interruptibly(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Wait for something that an interruption need not wait for."""
        task = asyncio.current_task()
        if self._interruption.requests or task is None:
            raise asyncio.CancelledError
        self._waiting.add(task)
        try:
            return await begin()
        finally:
            self._waiting.discard(task)


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
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65_536), hard)
        )
