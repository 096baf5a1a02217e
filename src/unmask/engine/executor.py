"""Works through the scenarios of a run: opens them in order, sends what they ask for, writes down what comes back.

It knows nothing about beliefs. At most four scenarios a connection are open at a time, so that most scenarios of a run
that was stopped are finished ones; limiters send the longest remaining chains first, so that the tail of a run is one
request, not five.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from unmask.engine.scenario import Sending, ask_scenarios
from unmask.engine.work import Job, Workload
from unmask.errors import FatalModelError, IncompleteError, Interrupted, ModelError, RequestRefusedError, UnmaskError
from unmask.models.base import Model
from unmask.models.limiter import Limiter
from unmask.records import Completion, Request

OPEN_PER_CONNECTION = 4

MOST_FAILURES_IN_A_ROW = 25
"""Requests to one model that fail in a row, after all retries and with no success between, before the run stops by
itself."""

_RAISE_LIMIT = "Raise the limit and run the same command again: it continues."


@dataclass(frozen=True)
class Route:
    """The model of one role, and the limiter of its endpoint."""

    model: Model
    limiter: Limiter


class Executor:
    """Works through the scenarios of a workload. One use, one event loop."""

    def __init__(self, workload: Workload, routes: dict[str, Route]) -> None:
        self.workload = workload
        self.routes = routes
        self.total = len(workload.scenarios)
        self.stopping: UnmaskError | None = None
        self.interrupted = False
        self.in_flight = 0
        """Requests under way, those between two tries included."""
        self.tick: Callable[[], None] = lambda: None
        self._groups = workload.groups
        self._crash: BaseException | None = None
        self._limiters = tuple({id(route.limiter): route.limiter for route in routes.values()}.values())
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = 0
        """Groups that are being worked on."""
        self._changed = asyncio.Event()
        self._failed_in_a_row = Counter[str]()
        """By role: a judge that refuses everything is found out while the subject answers."""

    @property
    def limiters(self) -> Sequence[Limiter]:
        return self._limiters

    async def run(self, *, grace: float) -> None:
        """Until everything is done, or after `stop` until what is in flight has come back: it is paid for. When a user
        interrupts, or after a crash, that may take `grace` seconds more."""
        for limiter in self._limiters:
            limiter.users += 1
        try:
            await self._run_to_end(grace)
        finally:
            for limiter in self._limiters:
                limiter.users -= 1

    async def _run_to_end(self, grace: float) -> None:
        self._start(self._open_scenarios())
        while self._tasks and not self.is_stopping:
            await self._await_change()
        if not self.is_stopping:
            return
        while self._tasks and not self.interrupted and self._crash is None:  # each has a time-out of its own
            await self._await_change()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            self.abandon()
            if late:
                await asyncio.wait(late)
        failure = self._crash or self.stopping
        assert failure is not None
        raise failure

    def stop(self, why: UnmaskError) -> None:
        """Send nothing more, nor anything again. The first reason stands."""
        self.stopping = self.stopping or why
        self.interrupted = self.interrupted or isinstance(why, Interrupted)
        self._send_no_more()

    def abandon(self) -> None:
        """Give up what is in flight as well."""
        for task in self._tasks:
            task.cancel()

    def look_again(self) -> None:
        """Money may have come back to a purse that other sessions share."""
        for limiter in self._limiters:
            limiter.admit_soon()

    # --- tasks ------------------------------------------------------------------------------------------------

    @property
    def is_stopping(self) -> bool:
        return self.stopping is not None or self._crash is not None

    def _send_no_more(self) -> None:
        for limiter in self._limiters:
            limiter.stop(self)
        self._changed.set()

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, UnmaskError):  # the disk is full, the folder is gone, a line of the journal is damaged
            self.stop(error)
        elif error is not None:
            self._crash = self._crash or error
            self._send_no_more()
        if not self._tasks or self.is_stopping:
            self._changed.set()

    async def _await_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # --- scenarios --------------------------------------------------------------------------------------------

    async def _open_scenarios(self) -> None:
        for group in self._groups:
            while self._open >= self._window() and not self.is_stopping:
                await self._await_change()
            if self.is_stopping:
                return
            self._open += 1
            self._start(self._work_on(group))

    async def _work_on(self, group: Sequence[int]) -> None:
        try:
            await ask_scenarios(group, self)
        finally:
            self._open -= 1
            self._changed.set()
            self.tick()

    def _window(self) -> int:
        """Scenarios that may be open. Of connections that several runs share each run has its part."""
        shares = (OPEN_PER_CONNECTION * limiter.limit // limiter.users for limiter in self._limiters)
        return max(shares, default=0) or 1

    def send(self, job: Job) -> Sending:
        """Queue a request of a scenario."""
        sending, route = Sending(job), self.routes[job.role]
        sending.call = route.limiter.queue(route.model, lambda: self._prepare(sending), depth=job.depth, user=self)
        return sending

    def keep(self, sending: Sending) -> None:
        """Write down the answer of a request, or why there is none."""
        job, answer = sending.job, sending.call.result
        if sending.sent is not None:
            self.in_flight -= 1
            self.workload.settle(job)
        if answer.cancelled():  # the run is stopping
            return
        error = answer.exception()
        if isinstance(error, FatalModelError | IncompleteError):
            self.stop(error)
            return
        if error is not None and not isinstance(error, ModelError):
            raise error
        result, sent, lost = error or answer.result(), sending.sent, sending.call.lost
        assert sent is not None
        try:
            if self.workload.asks_with_less(job.role, result, room := sent.sampling.max_tokens):
                return
            self._count_failure(job, result)
            most_usd = self.workload.most_usd(job.role, sent) if lost else None
            self.workload.keep(job, result, room=room, lost=lost, most_usd=most_usd)
        except UnmaskError as failure:  # the disk is full, the folder is gone
            self.stop(failure)
            return
        self.tick()
        if self.workload.purse.limit is not None:
            self.look_again()

    def _prepare(self, sending: Sending) -> Request | None:
        """The request, where it can be paid for now. Limiters call this: an error stops the run and not them."""
        if self.is_stopping:
            return None
        try:
            return self._build_affordable(sending)
        except UnmaskError as error:
            self.stop(error)
        except Exception as error:
            self._crash = self._crash or error
            self._send_no_more()
        return None

    def _build_affordable(self, sending: Sending) -> Request | None:
        """Raises where nothing can be paid for any more, and no answer under way will change that."""
        if (reason := self.workload.halt()) is not None:
            raise IncompleteError(reason, advice=_RAISE_LIMIT)
        request = self.workload.request(sending.job)
        if not self.workload.afford(sending.job, request):
            if self.workload.purse.is_waited_for:
                return None
            reason = f"{self.workload.describe_empty_purse()}: the next request may cost more than is left"
            raise IncompleteError(reason, advice=_RAISE_LIMIT)
        sending.sent = request
        self.in_flight += 1
        return request

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
