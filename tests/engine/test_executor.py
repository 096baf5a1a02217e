"""The executor: order, limits and what stops it. Scripted models, a real event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise

import pytest

from tests.patience import PATIENCE
from unmask.engine.executor import MOST_FAILURES_IN_A_ROW, OPEN_PER_CONNECTION, Executor, Route
from unmask.engine.work import Job
from unmask.errors import (
    IncompleteError,
    Interrupted,
    JournalError,
    ModelError,
    TransientModelError,
)
from unmask.models.base import Capabilities
from unmask.models.limiter import Limiter, Limits
from unmask.records import Choice, Completion, Message, Request
from unmask.runs.cost import Purse


class Answers:
    """A model that answers at once, or raises what it is told to."""

    name, endpoint, capabilities = "test/answers", "test", Capabilities()

    def __init__(self, failure: Exception | None = None, after: int = 0) -> None:
        self.failure, self.after, self.calls = failure, after, 0

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(0)
        if self.failure is not None and number > self.after:
            raise self.failure
        return Completion((Choice("ok"),))

    async def close(self) -> None:
        pass


class Chains:
    """Scenarios that are chains of calls of given lengths; records what was sent and finished, in order."""

    def __init__(self, *lengths: int) -> None:
        self.left = list(lengths)
        self.sent: list[int] = []
        self.ended: list[int] = []
        self.failed: list[ModelError] = []
        self.budget: int | None = None
        self.purse = Purse()

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        if self.left[scenario] and not busy:
            yield Job(scenario=scenario, role="subject", depth=self.left[scenario], keys=("call",), work=None)

    def request(self, job: Job) -> Request:
        self.sent.append(job.scenario)
        return Request((Message("user", "?"),))

    def asks_with_less(self, role: str, outcome: Completion | ModelError, room: int | None) -> bool:
        return False

    def keep(self, job: Job, outcome: Completion | ModelError, **_: object) -> None:
        self.left[job.scenario] -= 1
        if isinstance(outcome, ModelError):
            self.failed.append(outcome)
            self.left[job.scenario] = 0

    def finished(self, group: Sequence[int]) -> None:
        self.ended += group

    @property
    def scenarios(self) -> list[int]:
        return self.left

    @property
    def groups(self) -> list[tuple[int]]:
        return [(number,) for number in range(len(self.left))]

    def afford(self, job: Job, request: Request) -> bool:
        return True

    def settle(self, job: Job) -> None:
        pass

    def has_failed_before(self, job: Job) -> bool:
        return False

    def halt(self) -> str | None:
        return "budget" if self.budget is not None and len(self.sent) >= self.budget else None


def drive(course: Chains, model: Answers, *, connections: int = 4) -> None:
    async def go() -> None:
        limiter = Limiter("test", Limits(max_connections=connections, tries=1))
        executor = Executor(course, {"subject": Route(model, limiter)})
        await asyncio.wait_for(executor.run(grace=1), PATIENCE)

    asyncio.run(go())


def test_every_scenario_is_brought_to_its_end():
    """Chains of any length finish, also empty ones."""
    course = Chains(3, 0, 1, 7, 2)
    drive(course, Answers())
    assert sorted(course.ended) == [0, 1, 2, 3, 4]
    assert len(course.sent) == 13


def test_the_longest_remaining_chain_goes_first():
    """With one connection the order shows it: after every answer the longest chain is served."""
    course = Chains(1, 3, 2)
    drive(course, Answers(), connections=1)
    assert course.sent[0] == 1
    lengths, order = [1, 3, 2], []
    for scenario in course.sent:
        order.append(lengths[scenario])
        assert lengths[scenario] == max(lengths)
        lengths[scenario] -= 1


class Instant(Answers):
    """A model that never waits."""

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        return Completion((Choice("ok"),))


async def turns_of(executor: Executor, course: Chains) -> list[int]:
    """Runs to the end; gives how many scenarios had ended at each turn of the loop that was left to others."""
    turns: list[int] = []

    async def count() -> None:
        while True:
            turns.append(len(course.ended))
            await asyncio.sleep(0)

    counting = asyncio.get_running_loop().create_task(count())
    await asyncio.wait_for(executor.run(grace=1), PATIENCE)
    counting.cancel()
    return turns


def test_a_model_that_never_waits_leaves_the_loop_its_turns():
    """Else no signal would be heard and no progress shown until the end. A turn is one answer a connection."""
    course, turns = Chains(*[1] * 2000), []

    async def go() -> None:
        limiter = Limiter("test", Limits(max_connections=500))
        executor = Executor(course, {"subject": Route(Instant(), limiter)})
        turns.extend(await turns_of(executor, course))

    asyncio.run(go())
    assert len(course.ended) == 2000
    assert max(after - before for before, after in pairwise(turns)) <= 500


def test_a_long_run_that_is_continued_leaves_the_loop_its_turns():
    """Ten thousand finished scenarios are looked at some at a time, and progress is shown; then the rest is asked."""
    course, turns, shown = Chains(*[0] * 10_000, 1, 1), [], []

    async def go() -> None:
        limiter = Limiter("test", Limits())
        executor = Executor(course, {"subject": Route(Answers(), limiter)})
        executor.tick = lambda: shown.append(len(course.ended))
        turns.extend(await turns_of(executor, course))

    asyncio.run(go())
    assert (len(course.ended), len(course.sent)) == (10_002, 2)
    together = OPEN_PER_CONNECTION * Limits().max_connections
    for seen in (turns, shown):
        assert max(later - earlier for earlier, later in pairwise(seen)) <= together


def test_a_long_run_that_is_continued_can_be_stopped_before_anything_is_sent():
    """A signal is heard while finished scenarios are looked at."""
    course = Chains(*[0] * 10_000, 1)

    async def go() -> None:
        limiter = Limiter("test", Limits())
        executor = Executor(course, {"subject": Route(Answers(), limiter)})
        asyncio.get_running_loop().call_soon(executor.stop, Interrupted("interrupted"))
        with pytest.raises(Interrupted):
            await asyncio.wait_for(executor.run(grace=1), PATIENCE)

    asyncio.run(go())
    assert (course.sent, len(course.ended) < 1000) == ([], True)


def test_runs_that_share_an_endpoint_have_four_scenarios_a_connection_open_together():
    """Eight runs of a sweep, with the memory of one; a run that ends leaves its part to the others."""

    class Holding(Answers):
        async def complete(self, request: Request) -> Completion:
            await held.wait()
            return await super().complete(request)

    class Watched(Chains):
        def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
            opened.add((id(self), scenario))
            return super().jobs(scenario, busy)

    held, opened = asyncio.Event(), set[tuple[int, int]]()
    courses = [Watched(*[1] * 100) for _ in range(8)]

    async def go() -> None:
        limiter, model = Limiter("test", Limits(max_connections=10)), Holding()
        executors = [Executor(course, {"subject": Route(model, limiter)}) for course in courses]
        running = asyncio.gather(*(executor.run(grace=1) for executor in executors))
        await asyncio.sleep(0.05)
        assert 10 <= len(opened) <= OPEN_PER_CONNECTION * 10
        held.set()
        await asyncio.wait_for(running, PATIENCE)

    asyncio.run(go())
    assert all(len(course.ended) == 100 for course in courses)


class Sisters(Chains):
    """Scenarios of three requests that can all be sent at once; the first answer makes the others unnecessary."""

    def __init__(self, scenarios: int) -> None:
        super().__init__(*[1] * scenarios)

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        for number in range(3 if self.left[scenario] > 0 else 0):
            if number not in busy:
                yield Job(scenario=scenario, role="subject", depth=9 - number, keys=(number,), work=None)


def test_what_an_answer_makes_unnecessary_is_not_sent():
    """Requests that still wait for a connection are forgotten when the planner names them no more."""
    course = Sisters(5)
    drive(course, Answers(), connections=1)
    assert sorted(course.sent) == sorted(course.ended) == [0, 1, 2, 3, 4]


class Doubtful(Chains):
    """Two requests a scenario. The second goes last of all until the first is answered, then before every first."""

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        answered = 2 - self.left[scenario]
        for number in range(answered, 2):
            if number not in busy:
                depth = 5 if number == 0 else 9 * answered
                yield Job(scenario=scenario, role="subject", depth=depth, keys=(number,), work=None)


def test_a_request_that_waits_goes_by_its_depth_as_it_is_now():
    course = Doubtful(2, 2, 2)
    drive(course, Answers(), connections=1)
    assert course.sent == [0, 0, 1, 1, 2, 2]


def test_what_is_under_way_is_waited_for_though_it_is_unnecessary():
    """With room for all three, all three are sent, and the scenario ends once, after the last."""
    course = Sisters(1)
    drive(course, Answers(), connections=3)
    assert course.sent[0] == 0
    assert course.ended == [0]


class Flaky(Answers):
    """The first `count` requests fail once each, with a long wait before the second try."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(0)
        if 1 < number <= 1 + self.count:
            raise TransientModelError("broken")
        return Completion((Choice("ok"),))


@pytest.mark.parametrize("crash", [False, True])
def test_what_waits_for_another_try_is_not_sent_after_the_stop(crash: bool):
    """It is no failure either, and nobody waits for it: the next run asks it again."""

    async def go() -> tuple[Flaky, Chains]:
        limits = Limits(max_connections=4, tries=3, backoff_base=1e6, backoff_cap=1e6)
        limiter, model, course = Limiter("test", limits), Flaky(3), Chains(*[1] * 4)
        executor = Executor(course, {"subject": Route(model, limiter)})
        working = asyncio.create_task(executor.run(grace=1e6))
        for _ in range(100):
            await asyncio.sleep(0.001)
        if crash:
            executor._start(fail_by_a_bug())
        else:
            executor.stop(Interrupted("enough"))
        with pytest.raises(ZeroDivisionError if crash else Interrupted):
            await asyncio.wait_for(working, PATIENCE)
        assert executor.in_flight == 0
        return model, course

    model, course = asyncio.run(go())
    assert (model.calls, course.failed, course.ended) == (4, [], [course.sent[0]])


async def fail_by_a_bug() -> None:
    raise ZeroDivisionError("bug")


def test_an_endpoint_that_only_fails_stops_the_run_by_itself():
    """After many failures in a row nothing more is sent, and the error says how to continue."""
    model = Answers(TransientModelError("down"), after=1)
    with pytest.raises(IncompleteError, match="in a row failed") as caught:
        drive(Chains(*[1] * 200), model)
    assert model.calls <= MOST_FAILURES_IN_A_ROW + 10
    assert "same command again" in (caught.value.advice or "")


class Slow(Answers):
    """The first two requests are answered at once, by the second the others are on their way; those are answered when
    `let` is set, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()
        self.others = asyncio.Event()

    async def complete(self, request: Request) -> Completion:
        self.calls += 1
        match self.calls:
            case 1:
                pass
            case 2:
                await self.others.wait()
            case 5:
                self.others.set()
                await self.let.wait()
            case _:
                await self.let.wait()
        return Completion((Choice("ok"),))


async def stopped_by_itself(course: Chains, model: Slow, scene: Callable[[Executor], Awaitable[None]]) -> None:
    """A run with four requests in flight of which one is answered, whereupon the run stops with three on their way."""
    limiter = Limiter("test", Limits(max_connections=4, tries=1))
    executor = Executor(course, {"subject": Route(model, limiter)})
    working = asyncio.create_task(executor.run(grace=0.0))
    await asyncio.wait_for(model.others.wait(), PATIENCE)
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert executor.stopping is not None
    assert (executor.in_flight, len(course.ended), working.done()) == (3, 2, False)
    await scene(executor)
    with pytest.raises(IncompleteError, match="budget"):
        await asyncio.wait_for(working, PATIENCE)


def test_an_interruption_ends_the_wait_of_a_run_that_stopped_by_itself():
    """After the grace time, and with the reason for which it stopped."""
    course = Chains(*[1] * 50)
    course.budget = 5

    async def go() -> None:
        async def interrupted(executor: Executor) -> None:
            executor.stop(Interrupted("interrupted"))

        await stopped_by_itself(course, Slow(), interrupted)

    asyncio.run(go())
    assert (len(course.ended), len(course.sent)) == (2, 5)


def test_a_bug_in_a_task_ends_the_run_with_that_error():
    """Nothing hangs when something unexpected is raised."""
    with pytest.raises(ZeroDivisionError):
        drive(Chains(1, 1), Answers(ZeroDivisionError("bug")))


def test_after_a_bug_nothing_more_is_sent():
    """What is under way is waited for; no new request joins it."""
    model = Answers(ZeroDivisionError("bug"), after=3)
    with pytest.raises(ZeroDivisionError):
        drive(Chains(*[1] * 200), model)
    assert model.calls <= 12


class Unplannable(Chains):
    """The second look at a scenario fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__(*[1] * 40)
        self.error = error

    def request(self, job: Job) -> Request:
        if job.scenario == 20:
            raise self.error
        return super().request(job)


@pytest.mark.parametrize("error", [ZeroDivisionError("bug"), JournalError("damaged")])
def test_what_is_raised_while_requests_are_started_ends_the_run(error):
    """The event loop calls that code and would only log it: the run must not wait for ever."""
    with pytest.raises(type(error)):
        drive(Unplannable(error), Answers())


def test_nothing_is_left_of_requests_that_were_not_wanted_any_more():
    """A long run would keep them all."""
    course = Sisters(5)

    async def go() -> int:
        limiter = Limiter("test", Limits(max_connections=1))
        await Executor(course, {"subject": Route(Answers(), limiter)}).run(grace=1)
        return len(limiter._calls)

    assert asyncio.run(go()) == 0
