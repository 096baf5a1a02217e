"""How fast one endpoint may be asked, and what happens when it says no.

An Endpoint is shared by every model with the same `Model.endpoint`. The executor asks `free` how many requests may
start and calls `send` for each; retries, pauses and the number of connections are nobody else's business.

Two kinds of trouble are told apart. A request that failed by itself (500, a broken body, a time-out) waits by itself,
with full jitter, and occupies no connection while it does. An endpoint that is overloaded or gone makes everybody
wait: new requests too, because they would only meet the same refusal. Requests that have waited go first.
"""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from math import isfinite
from typing import Any, Protocol

from unmask.errors import FatalModelError, RequestRefusedError, TransientModelError
from unmask.models.base import Model
from unmask.models.user_params import suspect_additions
from unmask.records import Completion, Record, Request

LONGEST_PAUSE = 600.0
"""What is left of an absurd Retry-After, in seconds."""

HOPELESS = {TransientModelError: 3, RequestRefusedError: 20}
"""Requests that may come to nothing before any has worked; then it is the setting, not the request."""

MOST_WEB_PAGES = 2
"""HTML pages in place of an answer, before any answer, that make the address a wrong one."""

SERVER_INTERVAL = 2.0
"""Seconds between two looks whether a server that is waited for is up."""


class Limits(Record, frozen=True):
    """What the user allows. `tries` counts the first one; a try refused for overload counts only if nothing else
    got through meanwhile. No request is tried again `give_up_after` seconds after its first try.

    For `head_start` seconds the first request to a model goes alone: a wrong key or name is refused at once, and a
    server that takes longer is at work on the answer, so that the rest need not wait for it.

    A server that is not up yet (it refuses connections, or answers 503) is waited for up to `wait_for_server` seconds
    before its first answer."""

    max_connections: int = 50
    requests_per_minute: int | None = None
    tries: int = 8
    backoff_base: float = 1.0
    backoff_cap: float = 60.0
    give_up_after: float = 3600.0
    head_start: float = 0.02
    wait_for_server: float = 0.0


class ModelState(Enum):
    """How far a model has come at its endpoint."""

    UNTRIED = auto()
    """Nothing was sent yet, or nothing that is still under way."""
    PROBING = auto()
    """The first request is under way and goes alone."""
    STARTED = auto()
    """The first request is under way and its head start is over, so that others may go."""
    PROVEN = auto()
    """It has answered."""
    CONDEMNED = auto()
    """Its setting is wrong. Nothing more is sent to it."""


class _Standing:
    """What the endpoint knows about one model."""

    __slots__ = ("error", "fruitless", "model", "starter", "state", "vouched", "waiting_since", "web_pages")

    def __init__(self, model: Model) -> None:
        self.model = model
        self.state = ModelState.UNTRIED
        self.vouched = False
        """Whether it has answered in another session."""
        self.error: FatalModelError | None = None
        """Why it is condemned."""
        self.fruitless: dict[type[Exception], int] = {}
        """Requests that came to nothing, by kind of error."""
        self.starter: asyncio.Task[None] | None = None
        """Ends the head start."""
        self.waiting_since: float | None = None
        """When its server was first found not to be up."""
        self.web_pages = 0
        """Answers before the first real one that were HTML."""

    @property
    def first_under_way(self) -> bool:
        return self.state in (ModelState.PROBING, ModelState.STARTED)

    def end_head_start_timer(self) -> None:
        if self.starter is not None:
            self.starter.cancel()
            self.starter = None


class _CallState:
    """One request on its way through the gate, over all its tries."""

    __slots__ = ("begun", "failed", "probe", "seen", "standing", "start", "user")

    def __init__(self, standing: _Standing, now: float, user: object) -> None:
        self.standing = standing
        self.user = user
        self.begun = self.start = now
        self.failed = 0
        self.seen = 0
        """Successes of the endpoint when this request last failed, or began."""
        self.probe = False
        """Whether this is the request that goes alone, before the model has answered for the first time."""


class _Budget:
    """Requests per minute as a bucket that holds one second's worth, so that no minute sees more than its number."""

    def __init__(self, per_minute: int, now: float) -> None:
        self.size = max(1.0, float(per_minute // 60))
        self.rate = (per_minute - self.size if self.size > 1 else per_minute) / 60
        self.level = self.size
        self.at = now

    def count_ready(self, now: float) -> int:
        self.level = min(self.size, self.level + (now - self.at) * self.rate)
        self.at = now
        # A hair's breadth of rounding must not cost a whole further wait.
        return int(self.level + 1e-6)

    def seconds_to_next(self) -> float:
        """Seconds until the next request, counted from the last `ready`."""
        return max(0.0, (1 - self.level) / self.rate)


class AnyEndpoint(Protocol):
    """What stands between an executor and a model: an `Endpoint`, or several behind one face."""

    limits: Limits
    last_error: str | None

    @property
    def limit(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def retries(self) -> int: ...
    @property
    def throttles(self) -> int: ...
    @property
    def pause(self) -> float: ...
    @property
    def awaits_server(self) -> bool: ...
    @property
    def name(self) -> str: ...

    def free(self, model: Model) -> int: ...
    def send(self, model: Model, request: Request, *, user: object = None) -> Coroutine[Any, Any, Completion]: ...
    def vouch(self, model: Model) -> None: ...
    def stop(self, user: object = None) -> None: ...
    async def close(self) -> None: ...


class GatedModel(ABC):
    """A model that brings its own gate: it has several servers, with an `Endpoint` for each."""

    on_free: Callable[[], None] | None = None
    """Called whenever one of them has room."""

    @property
    @abstractmethod
    def gate(self) -> AnyEndpoint: ...


class Endpoint:
    """The gate in front of one endpoint. Belongs to one event loop; `close` it when the run is over.

    `limit`, `in_flight`, `retries`, `throttles`, `last_error` and `awaits_server` are there to be shown. `on_free` is
    called whenever a request could
    start that could not before, except by an answer: who gets that knows by itself, and a second look would cost a turn
    of the event loop for every call.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        *,
        rng: random.Random | None = None,
        on_free: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.limits = limits
        self.in_flight = 0
        self.retries = 0
        self.throttles = 0
        self.last_error: str | None = None
        """Why a request had to be tried again, the last time one had to."""
        self.awaits_server = False
        """Whether the server is not up and is waited for."""
        self.on_free = on_free
        self._rng = rng or random.Random()
        self._clock = clock
        self._sleep = sleep
        self._limit = float(max(1, limits.max_connections))
        self._budget = _Budget(limits.requests_per_minute, clock()) if limits.requests_per_minute else None
        self._paused_until: float | None = None
        self._eased_at = float("-inf")
        self._troubles = 0
        self._successes = 0
        self._waiting: deque[tuple[asyncio.Future[None], _CallState]] = deque()
        self._stopped: set[object] = set()
        self._held: dict[asyncio.Task[Any] | None, object] = {}
        """Tasks that send nothing at the moment, with their users: they wait for their next try or their turn."""
        self._standings: dict[int, _Standing] = {}
        """By the `id` of a model; each keeps its model, so that no other one gets the same."""
        self._waker: asyncio.Task[None] | None = None

    @property
    def limit(self) -> int:
        """Connections used at most at the moment: what the user allowed, less what overload has taken away."""
        return int(self._limit)

    @property
    def pause(self) -> float:
        """Seconds for which nothing is sent, because the endpoint is overloaded or asked for it."""
        left = 0.0 if self._paused_until is None else self._paused_until - self._clock()
        if left <= 0:
            self._paused_until = None
        return max(0.0, left)

    def free(self, model: Model) -> int:
        """How many requests to `model` may start now. The first has a head start, so that a wrong key or name is
        found out by one request; none while the endpoint has asked for a pause. One to a model whose setting is wrong:
        `send` raises the reason and sends nothing."""
        state = self._standing_of(model).state
        if self.has_refused(model) and None not in self._stopped:
            return 1
        room = int(self._limit) - self.in_flight
        if room <= 0 or None in self._stopped or self.pause > 0 or state is ModelState.PROBING:
            return 0
        if self._budget is not None:
            room = min(room, self._budget_left(self._budget))
        room = max(0, room - len(self._waiting))
        return min(room, 1) if state is ModelState.UNTRIED else room

    def send(self, model: Model, request: Request, *, user: object = None) -> Coroutine[Any, Any, Completion]:
        """Send `request`, again if that helps. The connection is taken at the call, not when the coroutine first
        runs, so that `free` is right again at once; the coroutine must therefore be awaited or made a task. Several
        users may share an endpoint: each can `stop` its own requests.

        Raises what `Model.complete` raises, a TransientModelError only when no try is left.
        """
        call = _CallState(self._standing_of(model), self._clock(), user)
        taken = not self.has_refused(model) and self.free(model) > 0
        if taken:
            self._take_connection(call)
        return self._send_with_retries(call, request, taken=taken)

    def has_refused(self, model: Model) -> bool:
        """Whether nothing more is sent to `model`, because its setting is wrong."""
        return self._standing_of(model).error is not None

    def vouch(self, model: Model) -> None:
        """This model has answered before, in another session: requests that come to nothing are no sign of a wrong
        setting. A wrong key still is, and still found out by one request."""
        self._standing_of(model).vouched = True

    def stop(self, user: object = None) -> None:
        """Send nothing more of this user, or of anybody. What waits for another try or a turn is cancelled; what is on
        its way goes on."""
        self._stopped.add(user)
        for task, owner in self._held.items():
            if task is not None and (user is None or owner is user):
                task.cancel()

    async def close(self) -> None:
        """Forget the timers that would have called `on_free`."""
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None
        for standing in self._standings.values():
            standing.end_head_start_timer()

    def _standing_of(self, model: Model) -> _Standing:
        standing = self._standings.get(id(model))
        if standing is None:
            standing = self._standings[id(model)] = _Standing(model)
        return standing

    async def _send_with_retries(self, call: _CallState, request: Request, *, taken: bool) -> Completion:
        standing = call.standing
        try:
            if not taken:
                await self._await_turn(call)
                call.begun = call.start = self._clock()
            call.seen = self._successes
            while True:
                answered = False
                try:
                    completion = await standing.model.complete(request)
                    self._count_success(standing)
                    answered = True
                    return completion
                except TransientModelError as error:
                    delay = self._retry_delay(error, call)
                except RequestRefusedError as error:
                    self._count_lost_request(error, standing, request)
                    raise
                except FatalModelError as error:
                    self._condemn(standing, error)
                    raise
                finally:
                    self._release_connection(tell=not answered)
                self.retries += 1
                if call.probe and standing.first_under_way:
                    # Not at work on an answer: the others go on waiting, unless there have been answers before.
                    standing.state = ModelState.STARTED if standing.vouched else ModelState.PROBING
                await self._await_turn(call, after=delay)
                call.start = self._clock()
                if call.probe and standing.first_under_way:
                    self._start_probe(standing)
        finally:
            if call.probe:
                if standing.first_under_way:
                    standing.state = ModelState.UNTRIED
                self._wake_waiting()

    # --- connections ------------------------------------------------------------------------------------------

    def _take_connection(self, call: _CallState) -> None:
        self.in_flight += 1
        if self._budget is not None:
            self._budget.level -= 1
        if call.standing.state is ModelState.UNTRIED:
            call.probe = True
            self._start_probe(call.standing)

    def _release_connection(self, *, tell: bool = True) -> None:
        self.in_flight -= 1
        self._wake_waiting(tell=tell)

    def _wake_waiting(self, *, tell: bool = True) -> None:
        """Let those in who have waited, then tell the executor if there is room for more."""
        if self._waiting:
            self._admit_waiting()
        if tell and self.on_free is not None and int(self._limit) - self.in_flight > len(self._waiting):
            self.on_free()

    async def _await_turn(self, call: _CallState, *, after: float = 0.0) -> None:
        """Wait so many seconds, then for a connection. Once stopped nobody gets one, and nobody is to blame."""
        if None in self._stopped or call.user in self._stopped:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        self._held[task] = call.user
        try:
            if after > 0:
                await self._sleep(after)
            if call.standing.error is not None:
                raise call.standing.error
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((future, call))
            self._admit_waiting()
            try:
                await future
            except asyncio.CancelledError:
                # Let in, but not noticed yet; otherwise `_admit_waiting` drops the entry when it comes to it.
                if not future.cancelled():
                    self._release_connection()
                raise
        finally:
            self._held.pop(task, None)

    def _admit_waiting(self) -> None:
        if None in self._stopped or self.pause > 0:
            return
        passed_over = []
        while self._waiting and self.in_flight < int(self._limit):
            if self._budget is not None and self._budget_left(self._budget) < 1:
                break
            entry = self._waiting.popleft()
            future, call = entry
            if future.done():
                continue
            if call.probe or call.standing.state is not ModelState.PROBING:
                self._take_connection(call)
                future.set_result(None)
            else:
                passed_over.append(entry)
        self._waiting.extendleft(reversed(passed_over))

    def _start_probe(self, standing: _Standing) -> None:
        """The first request to this model is on its way."""
        standing.state = ModelState.PROBING
        standing.end_head_start_timer()
        if isfinite(self.limits.head_start):
            standing.starter = asyncio.get_running_loop().create_task(self._end_head_start(standing))

    async def _end_head_start(self, standing: _Standing) -> None:
        await self._sleep(self.limits.head_start)
        if standing.first_under_way:
            standing.state = ModelState.STARTED
            self._wake_waiting()

    # --- time -------------------------------------------------------------------------------------------------

    def _budget_left(self, budget: _Budget) -> int:
        ready = budget.count_ready(self._clock())
        if ready < 1:
            self._wake_in(budget.seconds_to_next())
        return ready

    def _begin_pause(self, seconds: float) -> None:
        """Send nothing for so long; a longer pause already under way stays."""
        until = self._clock() + min(seconds, LONGEST_PAUSE)
        self._paused_until = max(until, self._paused_until or until)
        self._wake_in(seconds)

    def _wake_in(self, seconds: float) -> None:
        if self._waker is None:
            self._waker = asyncio.get_running_loop().create_task(self._wake_later(seconds))

    async def _wake_later(self, seconds: float) -> None:
        while (seconds := max(seconds, self.pause)) > 0:  # a pause may have become longer
            await self._sleep(min(seconds, LONGEST_PAUSE))
            seconds = 0.0
        self._waker = None
        self._wake_waiting()

    # --- what answers teach -----------------------------------------------------------------------------------

    def _count_success(self, standing: _Standing) -> None:
        self._successes += 1
        self._troubles = 0
        self.awaits_server = False
        if standing.state not in (ModelState.PROVEN, ModelState.CONDEMNED):
            standing.state = ModelState.PROVEN
            standing.end_head_start_timer()
        most = max(1, self.limits.max_connections)
        if self._limit < most:
            # Additive: a sixteenth of the whole for every round trip of all connections.
            self._limit = min(float(most), self._limit + max(1.0, most / 16) / self._limit)

    def _retry_delay(self, error: TransientModelError, call: _CallState) -> float:
        """Seconds this request has to wait by itself; raises when it is not to be tried again."""
        standing = call.standing
        if standing.error is not None:
            raise standing.error from None
        self.last_error = str(error)
        self.awaits_server = False
        if standing.state is not ModelState.PROVEN:
            if error.starting and self.limits.wait_for_server > 0:
                self._wait_for_server(error, standing)
                call.begun = self._clock()  # the wait takes nothing from the time that its tries have
                return 0.0
            standing.web_pages += error.web_page
            if error.unreachable or (standing.web_pages >= MOST_WEB_PAGES and not standing.vouched):
                raise self._condemn(standing, FatalModelError(str(error), advice=error.advice)) from None
        stuck, call.seen = self._successes == call.seen, self._successes
        call.failed += stuck or not error.throttled
        shared = self._slow_down(error, started=call.start, stuck=stuck)
        if call.failed >= self.limits.tries or self._clock() - call.begun >= self.limits.give_up_after:
            self._count_lost_request(error, standing)
            raise error
        return 0.0 if shared else self._backoff_delay(call.failed)

    def _wait_for_server(self, error: TransientModelError, standing: _Standing) -> None:
        """Pause for all until the next look at a server that is not up; an error once it was waited for long enough."""
        longest, now = self.limits.wait_for_server, self._clock()
        if standing.waiting_since is None:
            standing.waiting_since = now
        left = standing.waiting_since + longest - now
        if left <= 0:
            message = f"{error}; waited {longest:g} s for the server"
            advice = f"See that {self.name} comes up, or wait longer: --set wait_for_server={2 * longest:g}"
            raise self._condemn(standing, FatalModelError(message, advice=advice)) from None
        self.awaits_server = True
        self._begin_pause(min(max(SERVER_INTERVAL, error.retry_after or 0.0), left))

    def _slow_down(self, error: TransientModelError, *, started: float, stuck: bool) -> bool:
        """Make everybody wait if the trouble is everybody's. Answers to requests sent before the last time this was
        done say nothing new, so connections are halved at most once a round trip. A Retry-After of nothing is not
        believed while nothing gets through: all tries would be used up in a moment."""
        self.throttles += error.throttled
        if error.retry_after is not None:
            self._begin_pause(error.retry_after)
        if not (error.throttled or error.unreachable):
            return False
        if started >= self._eased_at:
            self._eased_at = self._clock()
            self._troubles += 1
            if error.throttled:
                self._limit = float(max(1, int(self._limit) // 2))
            if error.retry_after is None or stuck:
                self._begin_pause(self._backoff_delay(self._troubles))
        return True

    def _backoff_delay(self, failed: int) -> float:
        most = self.limits.backoff_base * 2.0 ** min(failed - 1, 30)
        return self._rng.uniform(0.0, min(self.limits.backoff_cap, most))

    def _count_lost_request(
        self, error: TransientModelError | RequestRefusedError, standing: _Standing, request: Request | None = None
    ) -> None:
        """Count a lost request of a model that has never answered, and stop the run when it has lost too many: one
        where the user's own parameters may be the reason."""
        if standing.vouched or standing.state in (ModelState.PROVEN, ModelState.CONDEMNED):
            return
        if isinstance(error, RequestRefusedError) and request is not None:
            suspicion = suspect_additions(request.sampling, error, model=standing.model.name)
            if suspicion is not None:
                raise self._condemn(standing, suspicion) from None
        kind = type(error)
        lost = standing.fruitless[kind] = standing.fruitless.get(kind, 0) + 1
        if lost >= HOPELESS.get(kind, 3):
            message = f"{lost} requests to {standing.model.name} and not one answer; the last: {error}"
            advice = error.advice or f"see that {self.name} works, then run the same command again"
            raise self._condemn(standing, FatalModelError(message, advice=advice)) from None

    def _condemn(self, standing: _Standing, error: FatalModelError) -> FatalModelError:
        """Nothing more is sent to this model: whoever waits or comes later gets the same error."""
        standing.state, standing.error = ModelState.CONDEMNED, error
        for entry in [entry for entry in self._waiting if entry[1].standing is standing]:
            self._waiting.remove(entry)
            if not entry[0].done():
                entry[0].set_exception(error)
        if self.on_free is not None:
            self.on_free()  # those who have not asked yet wait for room that will never come
        return error
