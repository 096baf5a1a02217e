"""The executor: sends what the planner names within the limits of each endpoint, and writes down what comes back.

It knows nothing about beliefs. Per scenario it asks the planner again after every answer, and what has not been sent
and is not wanted any more is not sent. Among the scenarios that are open it serves the longest remaining chain first,
so the tail of a run is one call, not five; it opens new scenarios only while there is room, so that most scenarios of a
stopped run are finished ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from unmask.engine.work import Job, Workload
from unmask.errors import FatalModelError, IncompleteError, Interrupted, ModelError, RequestRefusedError, UnmaskError
from unmask.models.base import Model
from unmask.models.endpoint import AnyEndpoint
from unmask.records import Completion

OPENED_PER_LOOK = 8
"""Scenarios opened before the next look whether something can be sent: requests go out while the rest is planned."""

STARTS_PER_TURN = 64
"""Requests started before the event loop has its turn: a model that answers at once must not keep it from signals."""

LOOKS_PER_TURN = 64
"""Scenarios looked at before the event loop has its turn: a long run that is continued finds most of them finished."""

MOST_FAILURES_IN_A_ROW = 25
"""Requests to one model that fail in a row, after all retries and with no success between, before the run stops by
itself."""

_RAISE_LIMIT = "Raise the limit and run the same command again: it continues."


@dataclass(frozen=True)
class Route:
    """The model of one role and the endpoint it is reached through."""

    model: Model
    endpoint: AnyEndpoint


@dataclass(slots=True)
class OpenScenario:
    """A scenario that is being worked on: what of it is under way, and what waits to be sent."""

    flying: set[object] = field(default_factory=set)
    waiting: dict[tuple[object, ...], Job] = field(default_factory=dict)


class Executor:
    """Works through the scenarios of a workload. One use, one event loop."""

    def __init__(self, workload: Workload, routes: dict[str, Route], *, scenarios: int) -> None:
        self.workload = workload
        self.lines = routes
        self.total = scenarios
        self.stopping: UnmaskError | None = None
        self.interrupted = False
        self.crash: BaseException | None = None
        self.tick: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None
        """Called after an answer whose connection this executor has no use for: others may share the endpoint."""
        self._endpoints = tuple({id(route.endpoint): route.endpoint for route in routes.values()}.values())
        self._next = 0
        self._looks = 0
        self._sequence = 0
        self._queues: dict[str, list[tuple[int, int, Job]]] = {role: [] for role in routes}
        self._open: dict[int, OpenScenario] = {}
        self._tasks: dict[asyncio.Task[None], Coroutine[Any, Any, Completion]] = {}
        self._wake = asyncio.Event()
        self._failed_in_a_row = Counter[str]()
        """By role: a judge that refuses everything is found out while the subject answers."""
        self._pending_pump = False

    async def run(self, *, grace: float) -> None:
        """Until everything is done, or after `stop` until what is in flight has come back: it is paid for. When a user
        interrupts, or after a crash, that may take `grace` seconds more."""
        self.pump()
        while self.stopping is None and self.crash is None and self._has_unfinished():
            self._wake.clear()
            await self._wake.wait()
        failure = self.crash or self.stopping
        if failure is None:
            return
        while self._tasks and not self.interrupted and self.crash is None:  # each has a time-out of its own
            self._wake.clear()
            await self._wake.wait()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        raise failure

    def stop(self, why: UnmaskError) -> None:
        """Send nothing more, nor anything again. The first reason stands."""
        self.stopping = self.stopping or why
        self.interrupted = self.interrupted or isinstance(why, Interrupted)
        self._send_no_more()

    def _stop_after_crash(self, error: BaseException) -> None:
        self.crash = self.crash or error
        self._send_no_more()

    def _send_no_more(self) -> None:
        for endpoint in self._endpoints:
            endpoint.stop(self)
        self._wake.set()

    def abandon(self) -> None:
        """Give up what is in flight as well."""
        for task in self._tasks:
            task.cancel()

    def wake(self) -> None:
        """An endpoint has room again. Several calls in one turn of the loop lead to one look at the queues."""
        if not self._pending_pump:
            self._pending_pump = True
            asyncio.get_running_loop().call_soon(self.pump)

    @property
    def in_flight(self) -> int:
        """Requests under way, those between two tries included; not those that have been given up."""
        return sum(not task.cancelling() for task in self._tasks)

    def _has_unfinished(self) -> bool:
        return self._next < self.total or bool(self._open)

    def _may_send(self) -> bool:
        return self.stopping is None and self.crash is None

    def pump(self) -> None:
        """Start whatever may start now. Called by the loop, which would only log what is raised here."""
        self._pending_pump = False
        try:
            self._start_jobs()
        except UnmaskError as error:  # a damaged line of a journal that is read as it goes
            self.stop(error)
        except Exception as error:
            self._stop_after_crash(error)

    def _start_jobs(self) -> None:
        reason = self.workload.halt() if self._may_send() else None
        if reason is not None:
            self.stop(IncompleteError(reason, advice=_RAISE_LIMIT))
        started, self._looks = 0, LOOKS_PER_TURN
        while self._may_send() and started < STARTS_PER_TURN:
            job = self._pick_job()
            if job is None:
                break
            route, request = self.lines[job.role], self.workload.request(job)
            if not self.workload.afford(job, request):
                self._put_back(job)
                if not self.workload.purse.is_waited_for:
                    reason = f"{self.workload.describe_empty_purse()}: the next request may cost more than is left"
                    self.stop(IncompleteError(reason, advice=_RAISE_LIMIT))
                break
            # `send` takes its connection when it is called, so the next look at `free` sees it taken.
            answer = route.endpoint.send(route.model, request, user=self)
            task = asyncio.create_task(self._await_answer(job, answer))
            self._tasks[task] = answer
            task.add_done_callback(self._on_task_done)
            started += 1
        if not self._looks:
            self.tick()
        if not self._has_unfinished():
            self._wake.set()
        elif self._may_send():
            # Scenarios are opened also while nothing can be sent.
            to_open = self._next < self.total and len(self._open) < self._window()
            if started == STARTS_PER_TURN or to_open:
                self.wake()

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step never awaits its answer, and Python would warn of that.
        self._tasks.pop(task).close()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._stop_after_crash(error)
        elif not self._tasks and not self._may_send():
            self._wake.set()

    def _pick_job(self) -> Job | None:
        """The job with the longest chain behind it among those whose endpoint has room."""
        if self._next < self.total:
            window, at_once = self._window(), OPENED_PER_LOOK
            while at_once and len(self._open) < window and self._open_next():
                at_once -= 1
        best: str | None = None
        for role, route in self.lines.items():
            queue = self._queues[role]
            while queue and not self._is_waiting(queue[0][2]):
                heappop(queue)
            if queue and route.endpoint.free(route.model) > 0 and (best is None or queue[0] < self._queues[best][0]):
                best = role
        if best is None:
            return None
        job = heappop(self._queues[best])[2]
        open_scenario = self._open[job.scenario]
        del open_scenario.waiting[job.keys]
        open_scenario.flying.update(job.keys)
        return job

    def _put_back(self, job: Job) -> None:
        """A picked job that cannot be sent yet."""
        open_scenario = self._open[job.scenario]
        open_scenario.flying.difference_update(job.keys)
        open_scenario.waiting[job.keys] = job
        self._sequence += 1
        heappush(self._queues[job.role], (-job.depth, self._sequence, job))

    def _is_waiting(self, job: Job) -> bool:
        """Whether a job in a queue is still to be sent."""
        open_scenario = self._open.get(job.scenario)
        return open_scenario is not None and open_scenario.waiting.get(job.keys) is job

    def _window(self) -> int:
        """How many scenarios are open at a time: enough that the last ones reach their ends together. Those that
        wait to try a request again take nobody's place, until they are as many as the others."""
        usual = max(1, 4 * sum(endpoint.limit for endpoint in self._endpoints))
        trying_again = len(self._tasks) - sum(endpoint.in_flight for endpoint in self._endpoints)
        return usual + min(usual, max(0, trying_again))

    def _open_next(self) -> bool:
        """Bring in the next scenario that has something to send. False when there is none left, or none found in this
        turn of the loop."""
        while self._looks and self._next < self.total:
            scenario = self._next
            self._next += 1
            self._looks -= 1
            self._open[scenario] = OpenScenario()
            if self._enqueue(scenario):
                return True
        return False

    def _enqueue(self, scenario: int) -> bool:
        """Queue what the planner names for a scenario, and forget what it names no more; a scenario with nothing left
        is finished."""
        open_scenario = self._open[scenario]
        before, open_scenario.waiting = open_scenario.waiting, {}
        for job in self.workload.jobs(scenario, open_scenario.flying):
            if (queued := before.get(job.keys)) is not None:
                open_scenario.waiting[job.keys] = queued
                continue
            open_scenario.waiting[job.keys] = job
            self._sequence += 1
            heappush(self._queues[job.role], (-job.depth, self._sequence, job))
        if open_scenario.flying or open_scenario.waiting:
            return True
        del self._open[scenario]
        self.workload.finished(scenario)
        return False

    async def _await_answer(self, job: Job, answer: Awaitable[Completion]) -> None:
        result: Completion | ModelError
        try:
            result = await answer
        except FatalModelError as error:
            self.stop(error)
            return
        except ModelError as error:
            result = error
        finally:
            self.workload.settle(job)
        says_nothing_of_others = isinstance(result, RequestRefusedError) and (
            not result.may_be_all or self.workload.has_failed_before(job)
        )
        try:
            self.workload.keep(job, result)
            self._open[job.scenario].flying.difference_update(job.keys)
            self._enqueue(job.scenario)
        except UnmaskError as error:  # the disk is full, the folder is gone
            self.stop(error)
            return
        if not says_nothing_of_others:
            failed = self._failed_in_a_row[job.role] + 1 if isinstance(result, ModelError) else 0
            self._failed_in_a_row[job.role] = failed
        if self._failed_in_a_row[job.role] >= MOST_FAILURES_IN_A_ROW:
            self.stop(
                IncompleteError(
                    f"{self._failed_in_a_row[job.role]} requests in a row failed, the last with: {result}",
                    advice="What was answered is kept. Run the same command again once the endpoint is well: it "
                    "continues.",
                )
            )
        self.tick()
        self.pump()  # the connection of this answer is free
        endpoint = self.lines[job.role].endpoint
        if endpoint.in_flight < endpoint.limit:
            self.on_room()
