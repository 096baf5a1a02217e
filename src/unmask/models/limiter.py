"""How fast one endpoint is asked, and what happens when it says no.

A limiter owns the requests that wait for one endpoint, and admits those first that have the longest chain of requests
behind them. Two kinds of trouble are told apart. A request that failed by itself (500, a broken body, a time-out)
waits by itself, with full jitter, and occupies no connection. An endpoint that is overloaded or gone makes all
requests wait: new ones would only meet the same refusal.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from itertools import count

from unmask.errors import FatalModelError, IncompleteError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.base import Model, awaits_server, sends_key
from unmask.models.user_params import suspect_additions
from unmask.records import Completion, Record, Request

LONGEST_PAUSE = 600.0
"""What is left of an absurd Retry-After, in seconds."""

HOPELESS = {TransientModelError: 3, RequestRefusedError: 20}
"""Requests that may come to nothing before any has worked; then it is the setting, not the request."""

MOST_WEB_PAGES = 2
"""HTML pages in place of an answer, before any answer, that make the address a wrong one."""

SERVER_INTERVAL = 2.0
"""Seconds between two tries at a server that is not up yet."""
PLACING_INTERVAL = 0.5
"""Seconds between two looks whether a server of our own is up."""


class Limits(Record, frozen=True):
    """What the user allows. `tries` counts the first one; a try refused for overload counts only if nothing else
    got through meanwhile.

    The first request to a model that is asked with a key goes alone until it is answered, or for `head_start` seconds:
    a wrong key or name is found out by one request. A server that is not up yet (it refuses connections, or answers
    503) is waited for up to `wait_for_server` seconds before its first answer. An endpoint of which every try has
    failed for `give_up_after` seconds, not counting waits that it asked for, ends the run.
    """

    max_connections: int = 50
    requests_per_minute: int | None = None
    tries: int = 8
    backoff_base: float = 1.0
    backoff_cap: float = 60.0
    give_up_after: float = 600.0
    head_start: float = 2.0
    wait_for_server: float = 0.0


class ModelHealth:
    """What the limiter knows about one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.works = False
        """Whether it has answered."""
        self.worked_before = False
        """Whether it has in another session."""
        self.error: FatalModelError | None = None
        """Why nothing more is sent to it."""
        self.failures: dict[type[ModelError], int] = {}
        """Requests that came to nothing, by kind of error."""
        self.first: QueuedCall | None = None
        """The request that goes alone."""
        self.alone_until = 0.0
        self.waiting_since: float | None = None
        """When its server was first found not to be up."""
        self.web_pages = 0
        """Answers before the first real one that were HTML."""


class QueuedCall:
    """One request, over all its tries. Its `result` is the answer, or what `Model.complete` raises: a
    TransientModelError only when no try is left. The connection is kept until `release`, so that whoever plans by the
    answer can queue what follows from it first."""

    __slots__ = (
        *("begun", "connected", "depth", "failed", "health", "limiter", "lost", "number", "prepare", "ready_at"),
        *("request", "result", "seen", "task", "tried", "user"),
    )

    def __init__(
        self,
        limiter: Limiter,
        model: Model,
        request: Request | Callable[[], Request | None],
        *,
        depth: int,
        number: int,
        user: object,
    ) -> None:
        self.limiter, self.depth, self.number, self.user = limiter, depth, number, user
        self.health = limiter.health_of(model)
        self.request = request if isinstance(request, Request) else None
        self.prepare = None if isinstance(request, Request) else request
        self.result: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None
        """Set while the request is under way."""
        self.connected = False
        """Whether it holds a connection."""
        self.tried = False
        self.ready_at = float("-inf")
        """When it has waited by itself for long enough."""
        self.begun = 0.0
        """When it was last sent."""
        self.failed = 0
        self.lost = 0
        """Answers that came and could not be used."""
        self.seen = 0
        """Successes of the endpoint when this request last failed, or began."""

    def __lt__(self, other: QueuedCall) -> bool:
        """What has been tried goes first, then what has the longest chain behind it, then what came first."""
        return (not self.tried, -self.depth, self.number) < (not other.tried, -other.depth, other.number)

    def is_ready(self) -> bool:
        """Whether there is a request that may be sent."""
        if self.request is None and self.prepare is not None:
            self.request = self.prepare()
            if self.request is not None:
                self.prepare = None  # it knows its call: nothing would be freed before a look for cycles
        return self.request is not None

    def cancel(self) -> None:
        """Give up a request that has no answer yet."""
        self.result.cancel()
        if self.task is not None:
            self.task.cancel()

    def release(self) -> None:
        """Give the connection back. Does nothing where there is none."""
        self.limiter.release(self)
        self.prepare = None


class MinuteRate:
    """Requests a minute as a bucket that holds one second's worth, so that no minute sees more than its number."""

    def __init__(self, per_minute: int, now: float) -> None:
        self.size = max(1.0, float(per_minute // 60))
        self.per_second = (per_minute - self.size if self.size > 1 else per_minute) / 60
        self.level = self.size
        self.at = now

    def seconds_to_next(self, now: float) -> float:
        self.level = min(self.size, self.level + (now - self.at) * self.per_second)
        self.at = now
        # A hair's breadth of rounding must not cost a whole further wait.
        return 0.0 if self.level + 1e-6 >= 1 else (1 - self.level) / self.per_second


class Limiter:
    """Sends the requests to one endpoint. Belongs to one event loop; `close` it when the run is over.

    `limit`, `in_flight`, `retries`, `throttles`, `last_error`, `pause`, `stalled` and `awaits_server` are for whoever
    shows progress.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        *,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.limits = limits
        self.in_flight = 0
        self.users = 0
        """Runs that send through this limiter now."""
        self.retries = 0
        self.throttles = 0
        self.last_error: str | None = None
        """Why a request had to be tried again, the last time one had to."""
        self._rng = rng or random.Random()
        self.clock = clock
        self._sleep = sleep
        self._limit = float(max(1, limits.max_connections))
        self._rate = MinuteRate(limits.requests_per_minute, clock()) if limits.requests_per_minute else None
        self._paused_until = float("-inf")
        self._eased_at = float("-inf")
        self._troubles = 0
        self._successes = 0
        self._failing_since: float | None = None
        """When the first try failed since the last success."""
        self._excused = 0.0
        """Seconds since then for which the endpoint asked to be left alone."""
        self._starting = False
        self._numbers = count()
        self._calls: set[QueuedCall] = set()
        self._queue: list[QueuedCall] = []
        self._stopped: set[object] = set()
        self._looks = False
        """Whether the queue will be looked at in the next turn of the loop."""
        self._healths: dict[int, ModelHealth] = {}
        """By the `id` of a model; each keeps its model, so that no other one gets the same."""
        self._waker: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")

    @property
    def limit(self) -> int:
        """Connections used at most at the moment: what the user allowed, less what overload has taken away."""
        return int(self._limit)

    @property
    def pause(self) -> float:
        """Seconds for which nothing is sent, because the endpoint is overloaded or asked for it."""
        return max(0.0, self._paused_until - self.clock())

    @property
    def stalled(self) -> float:
        """Seconds for which every try has failed; 0 after an answer."""
        return 0.0 if self._failing_since is None else self.clock() - self._failing_since

    @property
    def awaits_server(self) -> bool:
        """Whether a server is not up and is waited for."""
        return self._starting or any(awaits_server(health.model) for health in self._healths.values())

    def queue(
        self,
        model: Model,
        request: Request | Callable[[], Request | None],
        *,
        depth: int = 0,
        user: object = None,
    ) -> QueuedCall:
        """Let a request wait for its turn. A function is called right before it is sent for the first time; while it
        returns None the request waits, and all that come after it. Several users may share an endpoint: each can `stop`
        its own requests."""
        call = QueuedCall(self, model, request, depth=depth, number=next(self._numbers), user=user)
        self._calls.add(call)
        self._enter(call)
        return call

    async def send(self, model: Model, request: Request) -> Completion:
        """Send one request, and wait for its answer."""
        call = self.queue(model, request)
        try:
            return await call.result
        finally:
            call.cancel()
            call.release()

    def mark_working(self, model: Model) -> None:
        """This model has answered in another session: requests that come to nothing are no sign of a wrong setting. A
        wrong key still is, and is still found out by one request."""
        self.health_of(model).worked_before = True

    def stop(self, user: object = None) -> None:
        """Send nothing more of this user, or of anybody. What waits for another try or a turn is cancelled; what is on
        its way goes on."""
        self._stopped.add(user)
        for call in list(self._calls):
            if not self._is_stopped(call.user):
                continue
            if call.task is None or awaits_server(call.health.model):
                call.cancel()

    async def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()

    def _is_stopped(self, user: object) -> bool:
        return None in self._stopped or user in self._stopped

    def health_of(self, model: Model) -> ModelHealth:
        health = self._healths.get(id(model))
        if health is None:
            health = self._healths[id(model)] = ModelHealth(model)
        return health

    # --- turns ------------------------------------------------------------------------------------------------

    def _enter(self, call: QueuedCall) -> None:
        """Into the queue. Once stopped nobody gets a turn, and nobody is to blame."""
        if self._is_stopped(call.user):
            call.result.cancel()
        elif call.health.error is not None:
            call.result.set_exception(call.health.error)
        else:
            heappush(self._queue, call)
            self.admit_soon()

    async def _try(self, call: QueuedCall) -> None:
        """Ask, and write down the answer or whether to ask again."""
        assert call.request is not None
        if self._is_stopped(call.user):  # between its turn and this step
            call.result.cancel()
            call.task = None
            return
        try:
            completion = await call.health.model.complete(call.request)
        except TransientModelError as error:
            call.lost += error.paid
            self._try_again(call, error)
        except RequestRefusedError as error:
            call.lost += error.paid
            self._fail(call, self._judge_lost_request(error, call.health, call.request))
        except FatalModelError as error:
            self._fail(call, self._give_up_model(call.health, error))
        except asyncio.CancelledError:
            call.result.cancel()
            raise
        except Exception as bug:
            self._fail(call, bug)
        else:
            self._learn_from_answer(call.health)
            if not call.result.done():
                call.result.set_result(completion)
        finally:
            call.task = None

    def _try_again(self, call: QueuedCall, error: TransientModelError) -> None:
        """Into the queue again, where it waits by itself first, unless that is hopeless."""
        try:
            delay = self._learn_from_failure(error, call)
        except (ModelError, IncompleteError) as final:
            self._fail(call, final)
            return
        self.retries += 1
        call.task = None
        call.ready_at = self.clock() + delay
        self._disconnect(call)
        self._enter(call)

    def _fail(self, call: QueuedCall, error: Exception) -> None:
        if not call.result.done():
            call.result.set_exception(error)

    def release(self, call: QueuedCall) -> None:
        self._calls.discard(call)
        if call.health.first is call:
            call.health.first = None
            self.admit_soon()
        self._disconnect(call)

    def _disconnect(self, call: QueuedCall) -> None:
        if call.connected:
            call.connected = False
            self.in_flight -= 1
            self.admit_soon()

    def admit_soon(self) -> None:
        """Once those have had their say who run in this turn of the loop: they may queue what goes first."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._admit_waiting)

    def _admit_waiting(self) -> None:
        """Let in as many as there is room for, in their order."""
        self._looks = False
        held_back: list[QueuedCall] = []
        while self._queue and self.in_flight < int(self._limit):
            now = self.clock()
            wait = max(self._paused_until - now, 0.0 if self._rate is None else self._rate.seconds_to_next(now))
            if wait > 0:
                self._wake_in(wait)
                break
            call = heappop(self._queue)
            if call.result.done():
                continue
            if (held := self._held_for(call, now)) > 0:
                held_back.append(call)
                self._wake_in(held)
            elif not call.is_ready():
                held_back.append(call)
                break
            else:
                self._admit(call, now)
        for call in held_back:
            if not call.result.done():
                heappush(self._queue, call)

    def _held_for(self, call: QueuedCall, now: float) -> float:
        """Seconds until another look: it waits by itself, another request to the same model goes alone, or its server
        is being started."""
        health = call.health
        if call.ready_at > now:
            return call.ready_at - now
        if awaits_server(health.model):
            self._failing_since, self._excused = None, 0.0  # what comes is another server
            return PLACING_INTERVAL
        if health.works or health.first is None or health.first is call:
            return 0.0
        return health.alone_until - now

    def _admit(self, call: QueuedCall, now: float) -> None:
        health = call.health
        if not health.works and health.first is None:
            health.first = call
            health.alone_until = now + (self.limits.head_start if sends_key(health.model) else 0.0)
        self.in_flight += 1
        if self._rate is not None:
            self._rate.level -= 1
        if not call.tried:
            call.tried, call.seen = True, self._successes
        call.connected, call.begun = True, now
        call.task = asyncio.get_running_loop().create_task(self._try(call))

    def _wake_in(self, seconds: float) -> None:
        """Look at the queue again then, or before if that was wanted already."""
        at = self.clock() + seconds
        if self._waker is not None and self._wakes_at <= at:
            return
        if self._waker is not None:
            self._waker.cancel()
        self._wakes_at = at
        self._waker = asyncio.get_running_loop().create_task(self._wake_later(min(seconds, LONGEST_PAUSE)))

    async def _wake_later(self, seconds: float) -> None:
        await self._sleep(seconds)
        self._waker = None
        self._admit_waiting()

    def _pause_for(self, seconds: float, *, asked: bool) -> None:
        """Send nothing for so long; a longer pause already under way stays."""
        now = self.clock()
        until = now + min(seconds, LONGEST_PAUSE)
        if asked:
            self._excused += max(0.0, until - max(now, self._paused_until))
        self._paused_until = max(self._paused_until, until)

    # --- what answers teach -----------------------------------------------------------------------------------

    def _learn_from_answer(self, health: ModelHealth) -> None:
        self._successes += 1
        self._troubles = 0
        self._starting = False
        self._failing_since, self._excused = None, 0.0
        health.works, health.first = True, None
        most = max(1, self.limits.max_connections)
        if self._limit < most:
            # Additive: a sixteenth of the whole for every round trip of all connections.
            self._limit = min(float(most), self._limit + max(1.0, most / 16) / self._limit)

    def _learn_from_failure(self, error: TransientModelError, call: QueuedCall) -> float:
        """Seconds this request has to wait by itself; raises when it is not to be tried again."""
        health = call.health
        if health.error is not None:
            raise health.error from None
        self.last_error = str(error)
        self._starting = False
        if not health.works:
            if error.starting and self.limits.wait_for_server > 0:
                self._wait_for_server(error, health)
                return 0.0
            health.web_pages += error.web_page
            if error.unreachable or (health.web_pages >= MOST_WEB_PAGES and not health.worked_before):
                raise self._give_up_model(health, FatalModelError(str(error), advice=error.advice)) from None
        self._count_failing(error)
        stuck, call.seen = self._successes == call.seen, self._successes
        call.failed += stuck or not error.throttled
        shared = self._slow_down(error, started=call.begun, stuck=stuck)
        if call.failed >= self.limits.tries:
            raise self._judge_lost_request(error, health)
        return 0.0 if shared else self._backoff_delay(call.failed)

    def _count_failing(self, error: TransientModelError) -> None:
        """End the run where nothing but failures has come back for too long."""
        now = self.clock()
        if self._failing_since is None:
            self._failing_since = now
        longest = self.limits.give_up_after
        if now - self._failing_since - self._excused >= longest:
            raise IncompleteError(
                f"every try at {self.name} has failed for {longest:g} s, the last with: {error}",
                advice="What was answered is kept. Run the same command again once the endpoint works: it continues.",
            ) from None

    def _wait_for_server(self, error: TransientModelError, health: ModelHealth) -> None:
        """Pause until the next look at a server that is not up; an error once it was waited for long enough."""
        longest, now = self.limits.wait_for_server, self.clock()
        if health.waiting_since is None:
            health.waiting_since = now
        left = health.waiting_since + longest - now
        if left <= 0:
            message = f"{error}; waited {longest:g} s for the server"
            advice = f"See that {self.name} comes up, or wait longer: --set wait_for_server={2 * longest:g}"
            raise self._give_up_model(health, FatalModelError(message, advice=advice)) from None
        self._starting = True
        self._pause_for(min(max(SERVER_INTERVAL, error.retry_after or 0.0), left), asked=True)

    def _slow_down(self, error: TransientModelError, *, started: float, stuck: bool) -> bool:
        """Make all requests wait if the trouble is everybody's. Answers to requests sent before the last time this was
        done say nothing new, so connections are halved at most once a round trip. A Retry-After of nothing is not
        believed while nothing gets through: all tries would be used up in a moment."""
        self.throttles += error.throttled
        if error.retry_after is not None:
            self._pause_for(error.retry_after, asked=True)
        if not (error.throttled or error.unreachable):
            return False
        if started >= self._eased_at:
            self._eased_at = self.clock()
            self._troubles += 1
            if error.throttled:
                self._limit = float(max(1, int(self._limit) // 2))
            if error.retry_after is None or stuck:
                self._pause_for(self._backoff_delay(self._troubles), asked=False)
        return True

    def _backoff_delay(self, failed: int) -> float:
        most = self.limits.backoff_base * 2.0 ** min(failed - 1, 30)
        return self._rng.uniform(0.0, min(self.limits.backoff_cap, most))

    def _judge_lost_request(
        self, error: TransientModelError | RequestRefusedError, health: ModelHealth, request: Request | None = None
    ) -> ModelError:
        """What a request came to that has no answer. A model that has never answered is given up when it has lost too
        many, or one for which the user's own parameters may be the reason."""
        if health.error is not None:
            return health.error
        if health.worked_before or health.works:
            return error
        if isinstance(error, RequestRefusedError) and request is not None:
            suspicion = suspect_additions(request.sampling, error, model=health.model.name)
            if suspicion is not None:
                return self._give_up_model(health, suspicion)
        kind = type(error)
        lost = health.failures[kind] = health.failures.get(kind, 0) + 1
        if lost < HOPELESS.get(kind, 3):
            return error
        message = f"{lost} requests to {health.model.name} and not one answer; the last: {error}"
        advice = error.advice or f"see that {self.name} works, then run the same command again"
        return self._give_up_model(health, FatalModelError(message, advice=advice))

    def _give_up_model(self, health: ModelHealth, error: FatalModelError) -> FatalModelError:
        """Nothing more is sent to this model: what waits or comes later gets the same error."""
        health.error = health.error or error
        for call in self._queue:
            if call.health is health and not call.result.done():
                call.result.set_exception(error)
        return error
