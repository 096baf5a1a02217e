"""The executor: order, limits and what stops it. Scripted models, a real event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from tests.patience import PATIENCE
from unmask.engine.scenario import OPEN_PER_CONNECTION, Executor, Route
from unmask.engine.work import Job
from unmask.errors import IncompleteError, Interrupted, JournalError, ModelError, TransientModelError
from unmask.models.base import Capabilities
from unmask.models.limiter import Limiter, Limits
from unmask.protocol.plan import SubjectWork
from unmask.records import Choice, Completion, Message, Request
from unmask.runs.cost import Purse


class Answers:
    """A model that answers at once, after `wait` if there is one."""

    name, endpoint, capabilities = "test/answers", "test", Capabilities()

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        await self.wait(self.calls)
        return Completion((Choice("ok"),))

    async def wait(self, number: int) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass


class Chains:
    """Scenarios that are chains of calls of given lengths; records what was sent and finished, in order."""

    def __init__(self, *lengths: int) -> None:
        self.left = self.scenarios = list(lengths)
        self.sent: list[int] = []
        self.ended: list[int] = []
        self.failed: list[ModelError] = []
        self.most_sent = 1e9
        self.purse = Purse()
        self.groups = {number: [number] for number in range(len(self.left))}

    def job(self, scenario: int, depth: int, key: object = "call") -> Job:
        return Job(scenario=scenario, role="subject", depth=depth, keys=(key,), work=SubjectWork("direct", (0,)))

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        if self.left[scenario] and not busy:
            yield self.job(scenario, self.left[scenario])

    def request(self, job: Job) -> Request:
        self.sent.append(job.scenario)
        return Request((Message("user", "?"),))

    def afford(self, job: Job, request: Request) -> bool:
        if len(self.sent) > self.most_sent:
            raise IncompleteError("budget")
        return True

    def keep(self, job: Job, outcome: Completion | ModelError, **_: object) -> None:
        self.left[job.scenario] -= 1
        if isinstance(outcome, ModelError):
            self.failed.append(outcome)
            self.left[job.scenario] = 0

    def finished(self, group: Sequence[int]) -> None:
        self.ended += group

    def asks_with_less(self, *_: object) -> bool:
        return False

    def has_failed_before(self, job: Job) -> bool:
        return False


Act = Callable[[Executor], Any]


def drive(course: Chains, model: Answers, *, connections: int = 4, act: Act | None = None, **limits: Any) -> Limiter:
    """Run to the end, while `act` does something to it."""

    async def go() -> Limiter:
        limiter = Limiter("test", Limits(max_connections=connections, **{"tries": 1, **limits}))
        executor = Executor(course, {"subject": Route(model, limiter)})  # type: ignore[arg-type]
        acting = None if act is None else asyncio.create_task(act(executor))
        try:
            await asyncio.wait_for(executor.run(grace=0.0), PATIENCE)
        finally:
            if acting is not None:
                acting.cancel()
        return limiter

    return asyncio.run(go())


def test_the_longest_remaining_chain_goes_first():
    """With one connection the order shows it: after every answer the longest chain is served, to its end."""
    course = Chains(1, 3, 0, 2)
    drive(course, Answers(), connections=1)
    lengths = [1, 3, 0, 2]
    for scenario in course.sent:
        assert lengths[scenario] == max(lengths)
        lengths[scenario] -= 1
    assert (sorted(course.ended), lengths) == ([0, 1, 2, 3], [0] * 4)


class Instant(Answers):
    async def wait(self, number: int) -> None:
        """Never."""


@pytest.mark.parametrize("course", [Chains(*[1] * 2000), Chains(*[0] * 10_000, 1, 1)], ids=["new", "continued"])
def test_a_model_that_never_waits_and_finished_scenarios_leave_the_loop_its_turns(course: Chains):
    """Else no signal would be heard and no progress shown until the end. A turn is one answer a connection."""
    turns, shown = [], []

    async def count(executor: Executor) -> None:
        executor.tick = lambda: shown.append(len(course.ended))
        while True:
            turns.append(len(course.ended))
            await asyncio.sleep(0)

    drive(course, Instant(), connections=500, act=count)
    assert len(course.ended) == len(course.left)
    for seen in (turns, shown):
        assert max(after - before for before, after in pairwise(seen)) <= OPEN_PER_CONNECTION * 500


def test_a_long_run_that_is_continued_can_be_stopped_before_anything_is_sent():
    """A signal is heard while finished scenarios are looked at."""
    course = Chains(*[0] * 10_000, 1)

    async def stop(executor: Executor) -> None:
        executor.stop(Interrupted("interrupted"))

    with pytest.raises(Interrupted):
        drive(course, Answers(), act=stop)
    assert (course.sent, len(course.ended) < 1000) == ([], True)


def test_runs_that_share_an_endpoint_have_four_scenarios_a_connection_open_together():
    """Eight runs of a sweep, with the memory of one; a run that ends leaves its part to the others."""

    class Held(Answers):
        async def wait(self, number: int) -> None:
            await held.wait()

    class Watched(Chains):
        def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
            opened.add((id(self), scenario))
            return super().jobs(scenario, busy)

    held, opened = asyncio.Event(), set[tuple[int, int]]()
    courses = [Watched(*[1] * 100) for _ in range(8)]

    async def go() -> None:
        limiter, model = Limiter("test", Limits(max_connections=10)), Held()
        executors = [Executor(course, {"subject": Route(model, limiter)}) for course in courses]  # type: ignore[arg-type]
        running = asyncio.gather(*(executor.run(grace=1) for executor in executors))
        await asyncio.sleep(0.05)
        assert 10 <= len(opened) <= OPEN_PER_CONNECTION * 10
        held.set()
        await asyncio.wait_for(running, PATIENCE)

    asyncio.run(go())
    assert all(len(course.ended) == 100 for course in courses)


class Sisters(Chains):
    """Scenarios of three requests that can all be sent at once; the first answer makes the others unnecessary."""

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        for number in range(3 if self.left[scenario] > 0 else 0):
            if number not in busy:
                yield self.job(scenario, 9 - number, number)


def test_what_an_answer_makes_unnecessary_is_not_sent_and_not_kept():
    """Requests that still wait for a connection are forgotten when the planner names them no more."""
    course = Sisters(*[1] * 5)
    limiter = drive(course, Answers(), connections=1)
    assert sorted(course.sent) == sorted(course.ended) == [0, 1, 2, 3, 4]
    assert not limiter._calls


class Doubtful(Chains):
    """Two requests a scenario. The second goes last of all until the first is answered, then before every first."""

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        answered = 2 - self.left[scenario]
        for number in range(answered, 2):
            if number not in busy:
                yield self.job(scenario, 5 if number == 0 else 9 * answered, number)


def test_a_request_that_waits_goes_by_its_depth_as_it_is_now():
    course = Doubtful(2, 2, 2)
    drive(course, Answers(), connections=1)
    assert course.sent == [0, 0, 1, 1, 2, 2]


class Flaky(Answers):
    """All requests but the first fail."""

    async def wait(self, number: int) -> None:
        await asyncio.sleep(0)
        if number > 1:
            raise TransientModelError("broken")


def test_what_waits_for_another_try_is_not_sent_after_the_stop():
    """It is no failure either, and nobody waits for it: the next run asks it again."""
    model, course = Flaky(), Chains(*[1] * 4)

    async def stop(executor: Executor) -> None:
        await asyncio.sleep(0.1)
        executor.stop(Interrupted("enough"))

    with pytest.raises(Interrupted):
        drive(course, model, act=stop, tries=3, backoff_base=1e6, backoff_cap=1e6)
    assert (model.calls, course.failed, course.ended) == (4, [], [course.sent[0]])


def test_an_interruption_ends_the_wait_of_a_run_that_stopped_by_itself():
    """With the reason for which it stopped. Until then it waits for what is in flight."""
    course, sent = Chains(*[1] * 50), asyncio.Event()
    course.most_sent = 4

    class Slow(Answers):
        async def wait(self, number: int) -> None:
            if number == 4:
                sent.set()
            await (sent.wait() if number == 1 else asyncio.Event().wait())

    async def interrupt(executor: Executor) -> None:
        await asyncio.sleep(0.1)
        assert (type(executor.stopping), executor.in_flight) == (IncompleteError, 3)
        executor.stop(Interrupted("interrupted"))

    with pytest.raises(IncompleteError, match="budget"):
        drive(course, Slow(), act=interrupt)
    assert len(course.ended) == 1


@pytest.mark.parametrize("place", ["request", "answer", "journal"])
def test_a_bug_and_a_damaged_journal_end_the_run_with_that_error(place: str):
    """Nothing hangs, and nothing more is sent: the event loop would only log what is raised in its own calls."""

    class Broken(Chains):
        def request(self, job: Job) -> Request:
            if job.scenario == 20 and place == "request":
                raise ZeroDivisionError("bug")
            return super().request(job)

        def keep(self, job: Job, outcome: Completion | ModelError, **fields: object) -> None:
            if job.scenario == 20 and place == "journal":
                raise JournalError("damaged")
            super().keep(job, outcome, **fields)

    class Failing(Answers):
        async def wait(self, number: int) -> None:
            await asyncio.sleep(0)
            if number > 3 and place == "answer":
                raise ZeroDivisionError("bug")

    course, model = Broken(*[1] * 200), Failing()
    with pytest.raises(JournalError if place == "journal" else ZeroDivisionError):
        drive(course, model)
    assert model.calls <= 30
