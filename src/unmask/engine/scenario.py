"""One coroutine per scenario: plan, start what is new, await the first answer, write it down, plan again.

It knows nothing about beliefs. At most four scenarios a connection are open at a time, so that most scenarios of a run
that was stopped are finished ones; limiters send the longest remaining chains first, so that the tail of a run is one
request, not five.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from unmask.engine.work import Job, Workload
from unmask.errors import FatalModelError, IncompleteError, Interrupted, ModelError, RequestRefusedError, UnmaskError
from unmask.models.base import Model
from unmask.models.limiter import Limiter, QueuedCall
from unmask.records import Completion, Request

OPEN_PER_CONNECTION = 4

MOST_FAILURES_IN_A_ROW = 25
"""Requests to one model that fail in a row, after all retries and with no success between, before the run stops by
itself."""

Key = tuple[int, tuple[object, ...], int]
"""A scenario, what is asked of it, and how deep: what waits for its turn is queued anew where its depth changes."""


class Route(NamedTuple):
    """The model of one role, and the limiter of its endpoint."""

    model: Model
    limiter: Limiter


class Executor:
    """Works through the scenarios of a workload, as far as their roles have routes."""

    def __init__(self, workload: Workload, routes: dict[str, Route]) -> None:
        self.workload = workload
        self.routes = routes
        self.total = len(workload.scenarios)
        self.limiters = list({id(route.limiter): route.limiter for route in routes.values()}.values())
        self.stopping: Exception | None = None
        """Why nothing more is sent: the first reason."""
        self.interrupted = False
        self.in_flight = 0
        """Requests under way, those between two tries included."""
        self.tick: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._failed_in_a_row = Counter[str]()
        """By role: a judge that refuses everything is found out while the subject answers."""

    async def run(self, *, grace: float) -> None:
        """Until everything is done, or after `stop` until what is in flight has come back: it is paid for. When a user
        interrupts, or after a bug, that may take `grace` seconds more."""
        for limiter in self.limiters:
            limiter.users += 1
        try:
            await asyncio.sleep(0)  # so that each of several runs that begin together knows of the others
            groups = iter(list(self.workload.groups.values()))
            while True:
                self._changed.clear()
                while self.stopping is None and len(self._tasks) < self._window() and (group := next(groups, None)):
                    task = asyncio.create_task(self._ask(group))
                    self._tasks.add(task)
                    task.add_done_callback(self._close)
                if not self._tasks or self.interrupted or not isinstance(self.stopping, UnmaskError | None):
                    break
                await self._changed.wait()
            if self._tasks:
                _, late = await asyncio.wait(self._tasks, timeout=grace)
                self.abandon()
                if late:
                    await asyncio.wait(late)
        finally:
            for limiter in self.limiters:
                limiter.users -= 1
        if self.stopping is not None:
            raise self.stopping

    def _window(self) -> int:
        """Scenarios that may be open. Of connections that several runs share each run has its part."""
        shares = (OPEN_PER_CONNECTION * limiter.limit // limiter.users for limiter in self.limiters)
        return max(shares, default=0) or 1

    def _close(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):  # a bug; or the disk is full, the folder is gone, its journal is damaged
            self.stop(error)
        self._changed.set()
        self.tick()

    def stop(self, why: Exception) -> None:
        """Send nothing more, nor anything again."""
        self.stopping = self.stopping or why
        self.interrupted = self.interrupted or isinstance(why, Interrupted)
        for limiter in self.limiters:
            limiter.stop(self)
        self._changed.set()

    def abandon(self) -> None:
        """Give up what is in flight as well."""
        for task in self._tasks:
            task.cancel()

    def look_again(self) -> None:
        """Money may have come back to a purse that other sessions share."""
        for limiter in self.limiters:
            limiter.admit_soon()

    # --- one scenario -----------------------------------------------------------------------------------------

    async def _ask(self, group: Sequence[int]) -> None:
        """Ask everything about scenarios that share their probes, usually one: plan, start what is new, await the first
        answer, write it down, plan again.

        What waits for its turn and is no longer wanted is not sent. What is under way is awaited, also when the run is
        stopping: it is paid for. The connection of an answer is given back when what follows from it is queued.
        """
        calls: dict[Key, tuple[Job, QueuedCall]] = {}
        answered: list[tuple[Job, QueuedCall]] = []
        try:
            while True:
                wanted = self._list_wanted(group, calls)
                sendable = {} if self.stopping else {key: job for key, job in wanted.items() if job.role in self.routes}
                for key in [key for key, (_, call) in calls.items() if not call.request and key not in sendable]:
                    _drop(calls.pop(key)[1])
                for key, job in sendable.items():
                    if key not in calls:
                        (model, limiter), prepare = self.routes[job.role], partial(self._prepare, job)
                        calls[key] = job, limiter.queue(model, prepare, depth=job.depth, user=self)
                while answered:
                    answered.pop()[1].release()
                if not calls:
                    break
                results = [call.result for _, call in calls.values()]
                await asyncio.wait(results, return_when=asyncio.FIRST_COMPLETED)
                answered = [calls.pop(key) for key, (_, call) in list(calls.items()) if call.result.done()]
                for job, call in answered:
                    self._keep(job, call)
        finally:
            for _, call in (*calls.values(), *answered):
                _drop(call)
        if not wanted:
            self.workload.finished(group)

    def _list_wanted(self, group: Sequence[int], calls: dict[Key, tuple[Job, QueuedCall]]) -> dict[Key, Job]:
        """What is not under way."""
        wanted: dict[Key, Job] = {}
        for scenario in group:
            sent = [job for job, call in calls.values() if job.scenario == scenario and call.request]
            busy = {key for job in sent for key in job.keys}
            wanted |= {(scenario, job.keys, job.depth): job for job in self.workload.jobs(scenario, busy)}
        return wanted

    def _prepare(self, job: Job) -> Request | None:
        """The request, where it can be paid for now. Limiters call this: an error stops the run and not them."""
        if self.stopping is not None:
            return None
        try:
            request = self.workload.request(job)
            if not self.workload.afford(job, request):
                return None
        except Exception as error:
            self.stop(error)
            return None
        self.in_flight += 1
        return request

    def _keep(self, job: Job, call: QueuedCall) -> None:
        """Write down the answer of a request, or why there is none."""
        if call.request is not None:
            self.in_flight -= 1
            self.workload.purse.give_back(id(job))  # what it cost is paid for
        if call.result.cancelled():  # the run is stopping
            return
        error = call.result.exception()
        if isinstance(error, FatalModelError | IncompleteError):
            self.stop(error)
            return
        if error is not None and not isinstance(error, ModelError):
            raise error
        assert call.request is not None
        result, room = error or call.result.result(), call.request.sampling.max_tokens
        if self.workload.asks_with_less(job.role, result, room):
            return
        self._count_failure(job, result)
        most_usd = self.workload.most_usd(job.role, call.request) if call.lost else None
        self.workload.keep(job, result, room=room, lost=call.lost, most_usd=most_usd)
        self.tick()
        if self.workload.purse.limit is not None:
            self.look_again()

    def _count_failure(self, job: Job, result: Completion | ModelError) -> None:
        """Stop a run whose requests all fail. One that is refused for itself says nothing of the others."""
        if isinstance(result, RequestRefusedError) and (not result.may_be_all or self.workload.has_failed_before(job)):
            return
        failed = self._failed_in_a_row[job.role] + 1 if isinstance(result, ModelError) else 0
        self._failed_in_a_row[job.role] = failed
        if failed >= MOST_FAILURES_IN_A_ROW:
            self.stop(
                IncompleteError(
                    f"{failed} requests in a row failed, the last with: {result}",
                    advice="What was answered is kept. Run the same command again once the endpoint is well: it "
                    "continues.",
                )
            )


def _drop(call: QueuedCall) -> None:
    call.cancel()
    call.release()
