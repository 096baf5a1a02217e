from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.loopback import Canned, loopback, request
from tests.models.virtual import now, run_virtually, settle
from unmask.errors import FatalModelError, IncompleteError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.base import Capabilities
from unmask.models.limiter import LONGEST_PAUSE, Limiter, Limits, QueuedCall
from unmask.models.providers import open_model
from unmask.models.scripted import Scripted
from unmask.records import Choice, Completion, Request

DONE = Completion((Choice("done"),))


class Gated:
    """A model that answers when the test says so: `waiting` has one future per request on its way."""

    name = endpoint = "gated/model"
    capabilities = Capabilities()

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[Completion]] = []

    async def complete(self, request: Request) -> Completion:
        future: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return await future

    async def close(self) -> None: ...

    async def answer(self, *outcomes: Completion | Exception) -> None:
        """Finish the oldest requests with these outcomes."""
        for outcome in outcomes:
            future = self.waiting.pop(0)
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
        await settle()


class Keyed(Gated):
    """One that is asked with a key."""

    target = SimpleNamespace(key_source="OPENAI_API_KEY")


def made(**limits: Any) -> Limiter:
    return Limiter("here", Limits(**limits), rng=random.Random(7))


def failing(*outcomes: Exception | str) -> Scripted:
    """A model with these outcomes in a row; the last repeats."""
    left = list(outcomes)

    def reply(_: Request) -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Scripted(reply)


def start(limiter: Limiter, model: Gated, count: int) -> list[asyncio.Task[Completion]]:
    return [asyncio.create_task(limiter.send(model, request())) for _ in range(count)]


async def proven(limiter: Limiter, model: Gated) -> None:
    """Let the model answer for the first time."""
    start(limiter, model, 1)
    await settle()
    await model.answer(DONE)


def overload(**more: Any) -> TransientModelError:
    return TransientModelError("overloaded", throttled=True, **more)


BROKEN = TransientModelError("500")
GONE = TransientModelError("gone", unreachable=True, advice="is it running?")
REFUSED = TransientModelError("refused", unreachable=True, starting=True)
PAGE = TransientModelError("an HTML page came back", web_page=True, advice="is that the API?")


# --- first contact --------------------------------------------------------------------------------------------


def test_the_first_request_with_a_key_goes_alone_until_it_is_answered():
    """A wrong key is found out by one request, not by fifty."""

    async def go() -> None:
        limiter, model = made(), Keyed()
        tasks = start(limiter, model, 10)
        await settle()
        assert len(model.waiting) == 1
        await model.answer(FatalModelError("wrong key"))
        assert [type(task.exception()) for task in tasks] == [FatalModelError] * 10
        assert (len(model.waiting), limiter.in_flight) == (0, 0)

    run_virtually(go)


def test_the_first_answer_lets_the_others_of_that_model_go():
    """A judge that works says nothing about the subject at the same address."""

    async def go() -> None:
        limiter, model, other = made(), Keyed(), Keyed()
        start(limiter, model, 10)
        await settle()
        await model.answer(DONE)
        start(limiter, other, 5)
        await settle()
        assert (len(model.waiting), len(other.waiting)) == (9, 1)

    run_virtually(go)


@pytest.mark.parametrize("trouble", [None, BROKEN])
def test_two_seconds_let_the_others_go(trouble: TransientModelError | None):
    """A server that is at work on a long answer, or that fails for a moment, has not refused the key."""

    async def go() -> None:
        limiter, model = made(backoff_base=1e6, backoff_cap=1e6), Keyed()
        start(limiter, model, 10)
        await settle()
        if trouble is not None:
            await model.answer(trouble)
        await asyncio.sleep(1.99)
        assert len(model.waiting) == (trouble is None)
        await asyncio.sleep(0.02)
        assert len(model.waiting) == 10 - (trouble is not None)

    run_virtually(go)


def test_without_a_key_nobody_waits_for_the_first_answer():
    async def go() -> None:
        limiter, model = made(), Gated()
        start(limiter, model, 10)
        await settle()
        assert len(model.waiting) == 10

    run_virtually(go)


def test_after_a_fatal_error_nothing_more_is_sent():
    """Requests that wait or come later get the same error without a call. Other models go on."""

    async def go() -> None:
        limiter, model, other = made(max_connections=2), Gated(), Gated()
        tasks = start(limiter, model, 5)
        await settle()
        await model.answer(FatalModelError("wrong key"))
        results = await asyncio.gather(*tasks[:1], *tasks[2:], limiter.send(model, request()), return_exceptions=True)
        assert [type(result) for result in results] == [FatalModelError] * 5
        start(limiter, other, 1)
        await settle()
        assert (len(model.waiting), len(other.waiting)) == (1, 1)

    run_virtually(go)


@pytest.mark.parametrize(
    ("error", "limits"),
    [(GONE, {}), (PAGE, {}), (TransientModelError("no such host", unreachable=True), {"wait_for_server": 60})],
)
def test_an_address_where_nobody_answers_is_fatal_at_first_contact(error, limits):
    """With the advice that came with it. A server that starts later has a name before: only a refused connection or a
    503 is waited for."""

    async def go() -> None:
        model = failing(error, "up")
        with pytest.raises(FatalModelError, match=str(error)) as caught:
            await made(**limits).send(model, request())
        assert (caught.value.advice, model.calls) == (error.advice, 1)

    run_virtually(go)


@pytest.mark.parametrize("error", [GONE, PAGE])
def test_the_same_from_an_address_that_has_answered_is_passing_trouble(error: TransientModelError):
    """Servers restart, and gateways are repaired."""

    async def go() -> None:
        limiter, model = made(), failing("one", error, error, "two")
        await limiter.send(model, request())
        assert (await limiter.send(model, request())).choices[0].text == "two"

    run_virtually(go)


# --- trying again ---------------------------------------------------------------------------------------------


def test_a_request_that_waits_occupies_no_connection_and_then_goes_first():
    """Others use the connection meanwhile; the place in the queue is not given away again."""

    async def go() -> None:
        limiter, model = made(max_connections=1), Gated()
        first = start(limiter, model, 1)[0]
        await settle()
        await model.answer(BROKEN)
        assert limiter.in_flight == 0
        second, third = start(limiter, model, 2)
        await asyncio.sleep(1)
        await model.answer(DONE)
        assert (second.done(), first.done(), third.done()) == (True, False, False)
        await model.answer(DONE)
        assert (first.done(), third.done()) == (True, False)

    run_virtually(go)


def test_an_endpoint_of_which_every_try_fails_ends_the_run():
    """After ten minutes, with the last reason and how to go on; no try is left out of it for want of news."""

    async def go() -> None:
        limiter, model = made(tries=10_000), failing("one", TransientModelError("gone"))
        await limiter.send(model, request())
        begin = now()
        with pytest.raises(IncompleteError, match="has failed for 600 s, the last with: gone") as caught:
            await limiter.send(model, request())
        assert 600 <= now() - begin < 700
        assert "Run the same command again" in (caught.value.advice or "")

    run_virtually(go)


def test_an_answer_ends_the_stall():
    """Nine minutes without an answer, one answer, nine minutes without: nothing is given up."""

    async def go() -> None:
        begin = now()

        def reply(_: Request) -> str:
            if 0 < (now() - begin) % 540 < 539 and now() - begin < 1600:
                raise BROKEN
            return "x"

        limiter, model = made(tries=10_000, backoff_cap=0.5), Scripted(reply)
        while now() - begin < 1600:
            await limiter.send(model, request())
            await asyncio.sleep(0.1)
        assert limiter.stalled == 0

    run_virtually(go)


def test_waits_that_the_endpoint_asked_for_are_no_stall():
    """It says when to come back: nobody gives up before."""

    async def go() -> None:
        limiter = made(give_up_after=60)
        model = failing("one", *[overload(retry_after=50.0)] * 5, "two")
        await limiter.send(model, request())
        assert (await limiter.send(model, request())).choices[0].text == "two"

    run_virtually(go)


def test_waiting_for_a_server_that_is_being_started_is_no_stall():
    """A server of a sweep breaks down, another takes long to load, and its first answer fails as well."""

    async def go() -> None:
        limiter, model = made(give_up_after=60, backoff_cap=0.1), failing("one", BROKEN, BROKEN, "two")
        await limiter.send(model, request())

        async def start_another() -> None:
            await asyncio.sleep(0.001)
            model.awaits_server = True  # type: ignore[attr-defined]
            await asyncio.sleep(600)
            assert limiter.stalled == 0
            model.awaits_server = False  # type: ignore[attr-defined]

        answer, _ = await asyncio.gather(limiter.send(model, request()), start_another())
        assert answer.choices[0].text == "two"

    run_virtually(go)


def test_passing_trouble_is_tried_again_until_it_passes():
    """The answer is that of the last try, and the tries are counted for the progress line."""

    async def go() -> None:
        limiter, model = made(), failing(BROKEN, BROKEN, BROKEN, "at last")
        answer = await limiter.send(model, request())
        assert answer.choices[0].text == "at last"
        assert (model.calls, limiter.retries, limiter.in_flight) == (4, 3, 0)

    run_virtually(go)


@pytest.mark.parametrize(
    ("error", "calls"), [(BROKEN, 5), (overload(), 5), (RequestRefusedError("too long"), 1), (FatalModelError("no"), 1)]
)
def test_when_no_try_is_left_the_error_itself_comes_out(error: ModelError, calls: int):
    """After exactly as many calls as allowed; a refused request can never work."""

    async def go() -> None:
        model = failing(error)
        with pytest.raises(ModelError) as caught:
            await made(tries=5).send(model, request())
        assert caught.value is error
        assert model.calls == calls

    run_virtually(go)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_waits_have_full_jitter_below_a_doubling_bound(seed):
    """Each lies between nothing and the bound, which doubles up to the cap."""

    async def go() -> None:
        sent: list[float] = []

        def reply(_: Request) -> str:
            sent.append(now())
            raise BROKEN

        limiter = Limiter("x", Limits(tries=9, backoff_cap=20.0), rng=random.Random(seed))
        with pytest.raises(TransientModelError):
            await limiter.send(Scripted(reply), request())
        waits = [later - earlier for earlier, later in pairwise(sent)]
        assert len(waits) == 8
        assert all(0 <= wait <= min(20.0, 2.0**n) + 1e-6 for n, wait in enumerate(waits))

    run_virtually(go)


# --- overload -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("throttled", "connections"), [(True, 25), (False, 50)])
def test_retry_after_pauses_the_whole_endpoint(throttled: bool, connections: int):
    """Nothing is sent, by anybody, until it is over; then the refused request goes again. A 500 may name its time as
    well, and then the number of connections stays."""

    async def go() -> None:
        limiter, model = made(), Gated()
        start(limiter, model, 1)
        await settle()
        await model.answer(TransientModelError("busy", throttled=throttled, retry_after=17.0))
        start(limiter, model, 3)
        await asyncio.sleep(16.9)
        assert (len(model.waiting), limiter.limit) == (0, connections)
        assert limiter.pause == pytest.approx(0.1, abs=1e-3)
        await asyncio.sleep(2)
        assert len(model.waiting) == 4

    run_virtually(go)


@pytest.mark.parametrize("asked", [0.0, 0.006])
@pytest.mark.parametrize("throttled", [True, False])
def test_a_retry_after_of_next_to_nothing_does_not_use_up_all_tries_at_once(asked: float, throttled: bool):
    """Some seconds in which a server says "now" and refuses: everything in flight is answered after them."""

    async def go() -> None:
        begin = now()

        def reply(_: Request) -> str:
            if 1 <= now() - begin < 4:
                raise TransientModelError("busy", throttled=throttled, retry_after=asked)
            return "x"

        limiter, model = made(max_connections=20), Scripted(reply)
        await limiter.send(model, request())
        await asyncio.sleep(1)
        answers = await asyncio.gather(*(limiter.send(model, request()) for _ in range(20)))
        assert len(answers) == 20

    run_virtually(go)


def test_an_absurd_retry_after_is_cut():
    """Nobody waits for a year."""

    async def go() -> None:
        limiter, model = made(), failing("one", overload(retry_after=3.0e7), "two")
        await limiter.send(model, request())
        begin = now()
        await limiter.send(model, request())
        assert now() - begin <= LONGEST_PAUSE + 1

    run_virtually(go)


def test_overload_halves_the_connections_once_a_round_trip():
    """Forty refusals of requests sent together are one piece of news."""

    async def go() -> None:
        limiter, model = made(max_connections=40), Gated()
        await proven(limiter, model)
        start(limiter, model, 40)
        await asyncio.sleep(1)
        await model.answer(*[overload(retry_after=5.0)] * 40)
        assert (limiter.limit, limiter.throttles) == (20, 40)
        await asyncio.sleep(7)
        assert len(model.waiting) == 20
        await model.answer(*[overload(retry_after=5.0)] * 20)
        assert limiter.limit == 10

    run_virtually(go)


def test_connections_come_back_by_themselves():
    """After overload, answers raise the limit step by step to what the user allowed and no further."""

    async def go() -> None:
        limiter, model = made(max_connections=16), failing("one", overload(), overload(), "fine")
        await limiter.send(model, request())
        await limiter.send(model, request())
        seen = [limiter.limit]
        for _ in range(300):
            await limiter.send(model, request())
            seen.append(limiter.limit)
        assert seen[0] < 8
        assert seen[-1] == 16
        assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(seen))

    run_virtually(go)


def test_a_busy_endpoint_does_not_use_up_the_tries_of_those_it_turns_away():
    """A server that takes ten a minute and otherwise just says 429 answers all sixty in the end."""

    async def go() -> None:
        taken: list[float] = []

        def reply(_: Request) -> str:
            if sum(moment > now() - 60 for moment in taken) >= 10:
                raise overload()
            taken.append(now())
            return "x"

        limiter, model = made(), Scripted(reply)
        answers = await asyncio.gather(*(limiter.send(model, request()) for _ in range(60)))
        assert len(answers) == 60
        assert model.calls < 4 * 60

    run_virtually(go)


def test_being_turned_away_while_others_get_through_uses_up_no_try():
    """Refused ten times with three tries, and answered in the end, because the endpoint was never at a standstill."""

    async def go() -> None:
        refusals = 0

        def reply(one: Request) -> str:
            nonlocal refusals
            if one.messages[-1].content == "unlucky" and refusals < 10:
                refusals += 1
                raise overload()
            return "x"

        async def ask_others() -> None:
            for _ in range(100):
                await limiter.send(model, request())

        limiter, model = made(max_connections=8, tries=3), Scripted(reply)
        await limiter.send(model, request())
        others = asyncio.gather(*(ask_others() for _ in range(8)))
        unlucky = asyncio.ensure_future(limiter.send(model, request("unlucky")))
        await others
        assert ((await unlucky).choices[0].text, refusals) == ("x", 10)

    run_virtually(go)


@pytest.mark.parametrize("rate", [1, 7, 59, 60, 119, 120, 300])
def test_requests_per_minute_are_never_exceeded(rate):
    """In no window of sixty seconds are there more, and a longer run comes close to the number."""

    async def go() -> None:
        starts: list[float] = []
        limiter, model = made(requests_per_minute=rate), Scripted(lambda _: starts.append(now()) or "x")
        await asyncio.gather(*(limiter.send(model, request()) for _ in range(2 * rate + 1)))
        assert all(sum(begin <= other < begin + 59.999 for other in starts) <= rate for begin in starts)
        assert starts[-1] - starts[0] < 1.1 * 120

    run_virtually(go)


# --- turns and the end ----------------------------------------------------------------------------------------


def test_the_longest_chain_goes_first_and_a_connection_is_kept_until_what_follows_is_queued():
    async def go() -> None:
        limiter, model, order = made(max_connections=1), Gated(), []

        def queue(depth: int) -> QueuedCall:
            return limiter.queue(model, lambda: order.append(depth) or request(), depth=depth)

        calls = {depth: queue(depth) for depth in (5, 1, 9, 3)}
        await settle()
        await model.answer(DONE)
        assert order == [9]
        calls[7] = queue(7)
        calls[9].release()
        await settle()
        assert order == [9, 7]
        for call in calls.values():
            call.cancel()

    run_virtually(go)


def test_what_may_not_be_sent_yet_waits_and_keeps_its_place():
    async def go() -> None:
        limiter, model, may = made(), Gated(), []
        call = limiter.queue(model, lambda: request() if may else None)
        await settle()
        assert len(model.waiting) == 0
        may.append(1)
        limiter.admit_soon()
        await settle()
        await model.answer(DONE)
        assert call.result.done()

    run_virtually(go)


def test_a_cancelled_request_gives_its_connection_back():
    """On its way, waiting for a try, or waiting for its turn."""

    async def go() -> None:
        limiter, model = made(max_connections=2), Gated()
        tasks = start(limiter, model, 5)
        await settle()
        await model.answer(BROKEN)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0
        start(limiter, model, 5)
        await settle()
        assert limiter.in_flight == 2

    run_virtually(go)


async def just_let_in(limiter: Limiter, model: Gated, then: Callable[[Any], object]) -> list[asyncio.Task[Completion]]:
    """Two requests over one connection. Something happens between the turn of the second and its first step."""
    await proven(limiter, model)
    first, second = start(limiter, model, 2)
    await settle()
    model.waiting.pop(0).set_result(DONE)
    for _ in range(20):
        await asyncio.sleep(0)
        if first.done() and limiter.in_flight == 1:
            break
    assert model.waiting == []
    then(second)
    await asyncio.gather(first, second, return_exceptions=True)
    return [first, second]


def test_a_request_just_let_in_when_all_is_stopped_is_not_sent():
    """It has its connection, and has not noticed."""

    async def go() -> None:
        limiter, model = made(max_connections=1), Gated()
        first, second = await just_let_in(limiter, model, lambda _: limiter.stop())
        assert (first.result(), second.cancelled()) == (DONE, True)
        assert (len(model.waiting), limiter.in_flight) == (0, 0)

    run_virtually(go)


def test_once_stopped_what_waits_is_cancelled_and_what_is_on_its_way_is_answered():
    """Between two tries, in line behind a pause, in line for a connection; one that fails later is not tried again, and
    nothing new is sent."""

    async def go() -> None:
        limiter, model = made(max_connections=4), Gated()
        await proven(limiter, model)
        tasks = start(limiter, model, 6)
        await settle()
        await model.answer(overload(retry_after=9.0), BROKEN)
        limiter.stop()
        await model.answer(DONE, BROKEN)
        await asyncio.sleep(100)
        assert [task.cancelled() for task in tasks] == [True, True, False, True, True, True]
        assert tasks[2].result() == DONE
        assert (len(model.waiting), limiter.in_flight) == (0, 0)
        with pytest.raises(asyncio.CancelledError):
            await limiter.send(model, request())
        assert len(model.waiting) == 0

    run_virtually(go)


@given(st.lists(st.sampled_from(["ok", "500", "429", "429+", "gone"]), min_size=1, max_size=60), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_the_limit_is_kept_and_everything_ends(outcomes, connections):
    """Whatever the server does: never more at a time than allowed, every request ends, nothing stays taken."""

    async def go() -> None:
        busy = most = 0
        left = ["ok", *outcomes]
        raised = {"500": BROKEN, "429": overload(), "429+": overload(retry_after=3.0), "gone": GONE}

        async def complete(_: Request) -> Completion:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(1.0)
            busy -= 1
            if (outcome := left.pop(0) if left else "ok") in raised:
                raise raised[outcome]
            return DONE

        model = Scripted(lambda _: "")
        model.complete = complete  # type: ignore[method-assign]
        limiter = made(max_connections=connections, tries=4)
        sends = [limiter.send(model, request()) for _ in range(30)]
        results = await asyncio.gather(*sends, return_exceptions=True)
        assert all(isinstance(result, Completion | TransientModelError) for result in results)
        assert most <= connections
        assert limiter.in_flight == 0

    run_virtually(go)


def test_against_a_real_server_with_a_wrong_key_one_request_is_sent(monkeypatch):
    """It answers after 0.2 s, as over a network. Fifty requests wait, one is refused, and the error is fatal."""
    monkeypatch.setenv("UNMASK_API_KEY", "k-wrong-1")

    async def go() -> tuple[int, list[Any]]:
        async with loopback(Canned({"error": {"message": "bad key"}}, 401, delay=0.2)) as server:
            model = open_model("openai/m", base_url=server.url)
            limiter = Limiter(model.endpoint, Limits())
            sends = (limiter.send(model, request()) for _ in range(50))
            results = await asyncio.gather(*sends, return_exceptions=True)
            await model.close()
            return len(server.sent), results

    sent, errors = asyncio.run(go())
    assert sent == 1
    assert [type(error) for error in errors] == [FatalModelError] * 50
