"""How fast one endpoint is asked, and what happens when it says no.

A limiter owns the requests that wait for one endpoint, and admits those first that have the longest chain of requests
behind them. Two kinds of trouble are told apart. A request that failed by itself (500, a broken body, a time-out)
waits by itself, with full jitter, and occupies no connection. An endpoint that is overloaded or gone makes all
requests wait: new ones would only meet the same refusal.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from unmask.errors import FatalModelError, IncompleteError, ModelError, TransientModelError
from unmask.models.base import Model, awaits_server, sends_key
from unmask.records import Completion, Record, Request

LONGEST_PAUSE = 600.0
"""Seconds that are waited at most, whatever a Retry-After says."""

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
        self.error: FatalModelError | None = None
        """Why nothing more is sent to it."""
        self.first: QueuedCall | None = None
        """The request that goes alone."""
        self.alone_until = 0.0
        self.waiting_since: float | None = None
        """When its server was first found not to be up."""

    @property
    def awaits_server(self) -> bool:
        is_waited_for = self.waiting_since is not None and not self.works and self.error is None
        return is_waited_for or awaits_server(self.model)


class QueuedCall:
    """One request, over all its tries. Its `result` is the answer, or what `Model.complete` raises: a
    TransientModelError only when no try is left. The connection is kept until `release`, so that the planner
    can queue what follows from the answer first."""

    __slots__ = (
        *("begun", "connected", "depth", "failed", "health", "limiter", "lost", "number", "prepare", "request"),
        *("result", "seen", "turn", "under_way", "user"),
    )
    result: asyncio.Task[Completion]

    def __init__(
        self,
        limiter: Limiter,
        health: ModelHealth,
        prepare: Callable[[], Request | None],
        *,
        depth: int,
        number: int,
        user: object,
    ) -> None:
        self.limiter, self.health, self.depth, self.number, self.user = limiter, health, depth, number, user
        self.prepare: Callable[[], Request | None] | None = prepare
        self.request: Request | None = None
        self.turn: asyncio.Future[None] | None = None
        self.connected = self.under_way = False
        self.begun: float | None = None
        """When it was last sent."""
        self.failed = self.seen = 0
        """Tries that count; successes of the endpoint when it last failed, or was first sent."""
        self.lost = 0
        """Answers that came and could not be used."""

    def __lt__(self, other: QueuedCall) -> bool:
        """What has been tried goes first, then what has the longest chain behind it, then what came first."""
        return (self.begun is None, -self.depth, self.number) < (other.begun is None, -other.depth, other.number)

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

    def release(self) -> None:
        """Give the connection back. Does nothing where there is none."""
        self.limiter.release(self)
        self.prepare = None


class Limiter:
    """Sends the requests to one endpoint. Belongs to one event loop.

    `limit`, `in_flight`, `retries`, `throttles`, `last_error`, `pause`, `stalled` and `awaits_server` are for the
    progress display.
    """

    def __init__(self, name: str, limits: Limits, *, rng: random.Random | None = None) -> None:
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
        self._limit = float(max(1, limits.max_connections))
        # Up to a second of lateness is made good, and still no minute sees more than its number.
        self._gap = 61 / limits.requests_per_minute if limits.requests_per_minute else 0.0
        self._next_at = self._paused_until = self._eased_at = float("-inf")
        self._troubles = 0
        self._successes = 0
        self._failing_since: float | None = None
        """When the first try failed since the last success, waits that the endpoint asked for left out."""
        self._numbers = count()
        self._calls: set[QueuedCall] = set()
        self._queue: list[QueuedCall] = []
        self._stopped: set[object] = set()
        self._looks = False
        """Whether the queue will be looked at in the next turn of the loop."""
        self._timer: asyncio.TimerHandle | None = None
        """Of the next look, where all wait for a time."""
        self._healths: dict[int, ModelHealth] = {}
        """By the `id` of a model; each keeps its model, so that no other one gets the same."""

    @property
    def limit(self) -> int:
        """Connections used at most at the moment: what the user allowed, less what overload has taken away."""
        return int(self._limit)

    @property
    def pause(self) -> float:
        """Seconds for which nothing is sent, because the endpoint is overloaded or asked for it."""
        return max(0.0, self._paused_until - _now())

    @property
    def stalled(self) -> float:
        """Seconds for which every try has failed; 0 after an answer."""
        return 0.0 if self._failing_since is None else max(0.0, _now() - self._failing_since)

    @property
    def awaits_server(self) -> bool:
        """Whether a server is not up and is waited for."""
        return any(health.awaits_server for health in self._healths.values())

    def queue(
        self, model: Model, prepare: Callable[[], Request | None], *, depth: int = 0, user: object = None
    ) -> QueuedCall:
        """Let a request wait for its turn. `prepare` is called right before it is sent for the first time; while it
        returns None the request waits, and all that come after it. Several users may share an endpoint: each can `stop`
        its own requests."""
        call = QueuedCall(self, self._health_of(model), prepare, depth=depth, number=next(self._numbers), user=user)
        self._calls.add(call)
        call.result = asyncio.get_running_loop().create_task(self._ask(call))
        return call

    async def send(self, model: Model, request: Request) -> Completion:
        """Send one request, and wait for its answer."""
        call = self.queue(model, lambda: request)
        try:
            return await call.result
        finally:
            call.cancel()
            call.release()

    def stop(self, user: object = None) -> None:
        """Send nothing more of this user, or of anybody. What waits for another try or a turn is cancelled; what is on
        its way goes on."""
        self._stopped.add(user)
        for call in list(self._calls):
            if self._is_stopped(call) and (not call.under_way or awaits_server(call.health.model)):
                call.cancel()

    def release(self, call: QueuedCall) -> None:
        self._calls.discard(call)
        if call.health.first is call:
            call.health.first = None
            self.admit_soon()
        self._disconnect(call)

    def admit_soon(self) -> None:
        """Once those have had their say who run in this turn of the loop: they may queue what goes first."""
        if not self._looks:
            self._looks = True
            asyncio.get_running_loop().call_soon(self._admit_waiting)

    # --- turns ------------------------------------------------------------------------------------------------

    def _health_of(self, model: Model) -> ModelHealth:
        health = self._healths.get(id(model))
        if health is None:
            health = self._healths[id(model)] = ModelHealth(model)
        return health

    def _is_stopped(self, call: QueuedCall) -> bool:
        return None in self._stopped or call.user in self._stopped

    async def _await_turn(self, call: QueuedCall) -> None:
        """Until it has a connection. Once stopped nobody gets a turn, and nobody is to blame."""
        if self._is_stopped(call):
            raise asyncio.CancelledError
        if call.health.error is None:
            call.turn = asyncio.get_running_loop().create_future()
            heappush(self._queue, call)
            self.admit_soon()
            await call.turn
        if call.health.error is not None:
            raise call.health.error

    def _admit_waiting(self) -> None:
        """Let in as many as there is room for, in their order."""
        self._looks = False
        held_back: list[QueuedCall] = []
        while self._queue and self.in_flight < int(self._limit):
            now = _now()
            if (wait := max(self._paused_until, self._next_at) - now) > 0:
                self._look_in(wait)
                break
            call = heappop(self._queue)
            if call.turn is None or call.turn.done():  # it was cancelled
                continue
            if (wait := self._held_for(call.health, now)) > 0:
                held_back.append(call)
                self._look_in(wait)
            elif not call.is_ready():
                held_back.append(call)
                break
            else:
                self._admit(call, now)
        for call in held_back:
            heappush(self._queue, call)

    def _held_for(self, health: ModelHealth, now: float) -> float:
        """Seconds until another look: another request to the same model goes alone, or its server is being started."""
        if awaits_server(health.model):
            self._failing_since = None  # what comes is another server
            return PLACING_INTERVAL
        return 0.0 if health.works or health.first is None else health.alone_until - now

    def _admit(self, call: QueuedCall, now: float) -> None:
        health = call.health
        if not health.works and health.first is None:
            health.first = call
            health.alone_until = now + (self.limits.head_start if sends_key(health.model) else 0.0)
        self.in_flight += 1
        if self._gap:
            self._next_at = max(self._next_at, now - 1.0) + self._gap
        if call.begun is None:
            call.seen = self._successes
        call.connected, call.begun = True, now
        assert call.turn is not None
        call.turn.set_result(None)

    def _disconnect(self, call: QueuedCall) -> None:
        if call.connected:
            call.connected = False
            self.in_flight -= 1
            self.admit_soon()

    def _look_in(self, seconds: float) -> None:
        """Look at the queue again then, or before if that was wanted already."""
        if self._timer is not None:
            if self._timer.when() <= _now() + seconds:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        self._admit_waiting()

    # --- tries ------------------------------------------------------------------------------------------------

    async def _ask(self, call: QueuedCall) -> Completion:
        """Ask until there is an answer. Between two tries the request has no connection."""
        health = call.health
        while True:
            await self._await_turn(call)
            assert call.request is not None
            call.under_way = True
            try:
                completion = await health.model.complete(call.request)
                self._learn_from_answer(health)
                return completion
            except TransientModelError as error:
                call.lost += error.paid
                delay = self._learn_from_failure(error, call)
            except ModelError as error:
                call.lost += error.paid
                if isinstance(error, FatalModelError):
                    self._give_up(health, error)
                raise health.error or error from None
            finally:
                call.under_way = False
            self.retries += 1
            self._disconnect(call)
            await asyncio.sleep(delay)

    def _give_up(self, health: ModelHealth, error: FatalModelError) -> FatalModelError:
        """Nothing more is sent to this model: what waits or comes later gets the same error."""
        health.error = health.error or error
        for call in self._queue:
            if call.health is health and call.turn is not None and not call.turn.done():
                call.turn.set_result(None)
        return health.error

    # --- what answers teach -----------------------------------------------------------------------------------

    def _learn_from_answer(self, health: ModelHealth) -> None:
        self._successes += 1
        self._troubles = 0
        self._failing_since = None
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
        if not health.works:
            if error.starting and self.limits.wait_for_server > 0:
                self._wait_for_server(error, health)
                return 0.0
            if error.unreachable or error.web_page:
                raise self._give_up(health, FatalModelError(str(error), advice=error.advice)) from None
        now, longest = _now(), self.limits.give_up_after
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since >= longest:
            raise IncompleteError(
                f"every try at {self.name} has failed for {longest:g} s, the last with: {error}",
                advice="What was answered is kept. Run the same command again once the endpoint works: it continues.",
            ) from None
        stuck, call.seen = self._successes == call.seen, self._successes
        call.failed += stuck or not error.throttled
        shared = self._slow_down(error, begun=call.begun or 0.0, stuck=stuck)
        if call.failed >= self.limits.tries:
            raise error
        return 0.0 if shared else self._backoff_delay(call.failed)

    def _wait_for_server(self, error: TransientModelError, health: ModelHealth) -> None:
        """Pause until the next look at a server that is not up; an error once it was waited for long enough."""
        longest, now = self.limits.wait_for_server, _now()
        if health.waiting_since is None:
            health.waiting_since = now
        left = health.waiting_since + longest - now
        if left <= 0:
            message = f"{error}; waited {longest:g} s for the server"
            advice = f"See that {self.name} comes up, or wait longer: --set wait_for_server={2 * longest:g}"
            raise self._give_up(health, FatalModelError(message, advice=advice)) from None
        self._pause_for(min(max(SERVER_INTERVAL, error.retry_after or 0.0), left))

    def _slow_down(self, error: TransientModelError, *, begun: float, stuck: bool) -> bool:
        """Make all requests wait if the trouble is everybody's. Answers to requests sent before the last time this was
        done say nothing new, so connections are halved at most once a round trip. A Retry-After of nothing is not
        believed while nothing gets through: all tries would be used up in a moment."""
        self.throttles += error.throttled
        if error.retry_after is not None:
            added = self._pause_for(error.retry_after)
            if self._failing_since is not None:
                self._failing_since += added
        if not (error.throttled or error.unreachable):
            return False
        if begun >= self._eased_at:
            self._eased_at = _now()
            self._troubles += 1
            if error.throttled:
                self._limit = float(max(1, int(self._limit) // 2))
            if error.retry_after is None or stuck:
                self._pause_for(self._backoff_delay(self._troubles))
        return True

    def _pause_for(self, seconds: float) -> float:
        """Send nothing for so long; a longer pause already under way stays. Returns how much was added to it."""
        now = _now()
        until = now + min(seconds, LONGEST_PAUSE)
        added = max(0.0, until - max(now, self._paused_until))
        self._paused_until = max(self._paused_until, until)
        return added

    def _backoff_delay(self, failed: int) -> float:
        most = self.limits.backoff_base * 2.0 ** min(failed - 1, 30)
        return self._rng.uniform(0.0, min(self.limits.backoff_cap, most))


def _now() -> float:
    return asyncio.get_running_loop().time()
