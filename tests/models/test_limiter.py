from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.loopback import Canned, loopback, request
from tests.models.virtual import Virtual
from unmask.errors import FatalModelError, IncompleteError, RequestRefusedError, TransientModelError
from unmask.models.base import Capabilities
from unmask.models.limiter import HOPELESS, LONGEST_PAUSE, Limiter, Limits, QueuedCall
from unmask.models.providers import open_model
from unmask.models.scripted import Scripted
from unmask.records import Choice, Completion, Request

DONE = Completion((Choice("done"),))
DEFAULT = Limits()


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


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Keyed(Gated):
    """One that is asked with a key."""

    target = SimpleNamespace(key_source="OPENAI_API_KEY")


def made(time: Virtual, limits: Limits = DEFAULT) -> Limiter:
    return Limiter("here", limits, rng=random.Random(7), clock=time.clock, sleep=time.sleep)


def failing(*outcomes: Exception | str) -> Scripted:
    """A model with these outcomes in a row; the last repeats."""
    left = list(outcomes)

    def reply(_: Request) -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Scripted(reply)


def run(test: Callable[[Virtual], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test(Virtual()))


def start(limiter: Limiter, model: Gated, count: int) -> list[asyncio.Task[Completion]]:
    return [asyncio.get_running_loop().create_task(limiter.send(model, request())) for _ in range(count)]


async def proven(limiter: Limiter, model: Gated) -> None:
    """Let the model answer for the first time."""
    start(limiter, model, 1)
    await settle()
    await model.answer(DONE)


def overload(**more: Any) -> TransientModelError:
    return TransientModelError("overloaded", throttled=True, **more)


# --- first contact --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("worked", [False, True])
def test_the_first_request_with_a_key_goes_alone_until_it_is_answered(worked: bool):
    """A wrong key is found out by one request, not by fifty, also where it was right in another session."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), Keyed()
        if worked:
            limiter.mark_working(model)
        tasks = start(limiter, model, 10)
        await settle()
        assert len(model.waiting) == 1
        await model.answer(FatalModelError("wrong key"))
        assert [type(task.exception()) for task in tasks] == [FatalModelError] * 10
        assert len(model.waiting) == 0

    run(go)


def test_the_first_answer_lets_the_others_go():
    async def go(time: Virtual) -> None:
        limiter, model = made(time), Keyed()
        tasks = start(limiter, model, 10)
        await settle()
        await model.answer(DONE)
        assert len(model.waiting) == 9
        await model.answer(*[DONE] * 9)
        assert all(task.done() for task in tasks)

    run(go)


@pytest.mark.parametrize("trouble", [None, TransientModelError("500")])
def test_two_seconds_let_the_others_go(trouble: TransientModelError | None):
    """A server that is at work on a long answer, or that fails for a moment, has not refused the key."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(backoff_base=1e6, backoff_cap=1e6)), Keyed()
        start(limiter, model, 10)
        await settle()
        if trouble is not None:
            await model.answer(trouble)
        begin = time.now
        await time.step()
        assert (time.now - begin, len(model.waiting)) == (2.0, 10 - (trouble is not None))

    run(go)


def test_without_a_key_nobody_waits_for_the_first_answer():
    async def go(time: Virtual) -> None:
        limiter, model = made(time), Gated()
        start(limiter, model, 10)
        await settle()
        assert len(model.waiting) == 10

    run(go)


def test_first_contact_is_per_model():
    """A judge that works says nothing about the subject at the same address."""

    async def go(time: Virtual) -> None:
        limiter, judge, subject = made(time), Keyed(), Keyed()
        await proven(limiter, judge)
        start(limiter, judge, 5)
        start(limiter, subject, 5)
        await settle()
        assert (len(judge.waiting), len(subject.waiting)) == (5, 1)

    run(go)


def test_after_a_fatal_error_nothing_more_is_sent():
    """Requests that wait or come later get the same error without a call. Other models go on."""

    async def go(time: Virtual) -> None:
        limiter, model, other = made(time, Limits(max_connections=2)), Gated(), Gated()
        tasks = start(limiter, model, 5)
        await settle()
        await model.answer(FatalModelError("wrong key"))
        results = await asyncio.gather(*tasks[:1], *tasks[2:], limiter.send(model, request()), return_exceptions=True)
        assert [type(result) for result in results] == [FatalModelError] * 5
        start(limiter, other, 1)
        await settle()
        assert (len(model.waiting), len(other.waiting)) == (1, 1)

    run(go)


def test_an_unreachable_server_is_fatal_at_first_contact():
    """Nobody there: stop at once, with the advice that came with it."""

    async def go(time: Virtual) -> None:
        model = failing(TransientModelError("refused", unreachable=True, advice="is it running?"))
        with pytest.raises(FatalModelError) as caught:
            await made(time).send(model, request())
        assert caught.value.advice == "is it running?"
        assert model.calls == 1

    run(go)


def test_an_unreachable_server_that_has_answered_before_is_tried_again():
    """Servers restart."""

    async def go(time: Virtual) -> None:
        gone = TransientModelError("refused", unreachable=True)
        limiter, model = made(time), failing("one", gone, gone, "two")
        await limiter.send(model, request())
        answer = await time.run(limiter.send(model, request()))
        assert answer.choices[0].text == "two"

    run(go)


REFUSED = TransientModelError("refused", unreachable=True, starting=True)


def test_a_name_that_nobody_knows_is_not_waited_for():
    """A server that starts later has a name before; only a refused connection or a 503 is a server that starts."""

    async def go(time: Virtual) -> None:
        model = failing(TransientModelError("no such host", unreachable=True), "up")
        with pytest.raises(FatalModelError, match="no such host"):
            await time.run(made(time, Limits(wait_for_server=60)).send(model, request()))
        assert model.calls == 1

    run(go)


def test_a_server_that_has_answered_is_tried_again_as_without_the_wait():
    """The wait is for its start. A crash in the middle of a run is another matter."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(wait_for_server=10_000, tries=3)), failing("one", REFUSED)
        await limiter.send(model, request())
        with pytest.raises(TransientModelError, match="refused"):
            await time.run(limiter.send(model, request()))

    run(go)


PAGE = TransientModelError("an HTML page came back", web_page=True, advice="is that the API?")


@pytest.mark.parametrize("worked", [False, True])
def test_html_from_an_address_that_has_answered_is_passing_trouble(worked: bool):
    """A gateway that is being repaired, before this run or in it."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing(*[] if worked else ["one"], PAGE, PAGE, PAGE, "two")
        if worked:
            limiter.mark_working(model)
        else:
            await limiter.send(model, request())
        assert (await time.run(limiter.send(model, request()))).choices[0].text == "two"

    run(go)


def test_a_fatal_error_is_not_retried():
    """One call, and it is over."""

    async def go(time: Virtual) -> None:
        model = failing(FatalModelError("wrong key"))
        limiter = made(time)
        with pytest.raises(FatalModelError):
            await limiter.send(model, request())
        assert (model.calls, limiter.in_flight) == (1, 0)

    run(go)


@pytest.mark.parametrize("error", [TransientModelError("500"), RequestRefusedError("400")])
def test_a_model_that_never_answers_becomes_fatal(error):
    """Some requests may fail for reasons of their own; all of them do not."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing(error)
        for _ in range(HOPELESS[type(error)] - 1):
            with pytest.raises(type(error)):
                await time.run(limiter.send(model, request()))
        with pytest.raises(FatalModelError, match="not one answer"):
            await time.run(limiter.send(model, request()))

    run(go)


@pytest.mark.parametrize("error", [TransientModelError("500"), RequestRefusedError("400")])
def test_a_model_that_has_answered_in_another_session_may_fail_as_often_as_it_does(error):
    """What is asked again after a finished run is just what failed then."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing(error)
        limiter.mark_working(model)
        for _ in range(HOPELESS[type(error)] + 5):
            with pytest.raises(type(error)):
                await time.run(limiter.send(model, request()))

    run(go)


# --- trying again ---------------------------------------------------------------------------------------------


def test_a_request_that_waits_occupies_no_connection_and_then_goes_first():
    """Others use the connection meanwhile; the place in the queue is not given away again."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=1)), Gated()
        first = start(limiter, model, 1)[0]
        await settle()
        await model.answer(TransientModelError("500"))
        assert limiter.in_flight == 0
        second, third = start(limiter, model, 2)
        await time.step()
        await model.answer(DONE)
        assert (second.done(), first.done(), third.done()) == (True, False, False)
        await model.answer(DONE)
        assert (first.done(), third.done()) == (True, False)

    run(go)


def test_an_endpoint_of_which_every_try_fails_ends_the_run():
    """After ten minutes, with the last reason and how to go on; no try is left out of it for want of news."""

    async def go(time: Virtual) -> None:
        limiter, model = (
            made(time, Limits(tries=10_000, give_up_after=600)),
            failing("one", TransientModelError("gone")),
        )
        await limiter.send(model, request())
        begin = time.now
        with pytest.raises(IncompleteError, match="has failed for 600 s, the last with: gone") as caught:
            await time.run(limiter.send(model, request()))
        assert 600 <= time.now - begin < 700
        assert "Run the same command again" in (caught.value.advice or "")

    run(go)


def test_an_answer_ends_the_stall():
    """Nine minutes without an answer, one answer, nine minutes without: nothing is given up."""

    async def go(time: Virtual) -> None:
        begin = time.now

        def reply(_: Request) -> str:
            if 0 < (time.now - begin) % 540 < 539 and time.now - begin < 1600:
                raise TransientModelError("500")
            return "x"

        limiter, model = made(time, Limits(tries=10_000, backoff_cap=0.5)), Scripted(reply)
        while time.now - begin < 1600:
            await time.run(limiter.send(model, request()))
            time.now += 0.1
        assert limiter.stalled == 0

    run(go)


def test_waits_that_the_endpoint_asked_for_are_no_stall():
    """It says when to come back: nobody gives up before."""

    async def go(time: Virtual) -> None:
        limiter = made(time, Limits(tries=8, give_up_after=60))
        model = failing("one", *[overload(retry_after=50.0)] * 5, "two")
        await limiter.send(model, request())
        assert (await time.run(limiter.send(model, request()))).choices[0].text == "two"

    run(go)


def test_waiting_for_a_server_that_is_being_started_is_no_stall():
    """A server of a sweep breaks down, another takes long to load, and its first answer fails as well."""

    async def go(time: Virtual) -> None:
        limiter = made(time, Limits(tries=8, give_up_after=60, backoff_cap=0.1))
        trouble = TransientModelError("500")
        model = failing("one", trouble, trouble, "two")
        await limiter.send(model, request())

        async def start_another() -> None:
            await time.sleep(0.01)
            model.awaits_server = True  # type: ignore[attr-defined]
            await time.sleep(600)
            assert limiter.stalled == 0
            model.awaits_server = False  # type: ignore[attr-defined]

        answer, _ = await time.run(asyncio.gather(limiter.send(model, request()), start_another()))
        assert answer.choices[0].text == "two"

    run(go)


def test_passing_trouble_is_tried_again_until_it_passes():
    """The answer is that of the last try, and the tries are counted for the progress line."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing(*[TransientModelError("500")] * 3, "at last")
        answer = await time.run(limiter.send(model, request()))
        assert answer.choices[0].text == "at last"
        assert (model.calls, limiter.retries, limiter.in_flight) == (4, 3, 0)

    run(go)


@pytest.mark.parametrize("error", [TransientModelError("500"), overload()])
def test_when_no_try_is_left_the_error_itself_comes_out(error):
    """The same exception, after exactly as many calls as allowed."""

    async def go(time: Virtual) -> None:
        model = failing(error)
        with pytest.raises(TransientModelError) as caught:
            await time.run(made(time, Limits(tries=5)).send(model, request()))
        assert caught.value is error
        assert model.calls == 5

    run(go)


def test_a_refused_request_is_not_tried_again():
    """It can never work."""

    async def go(time: Virtual) -> None:
        model = failing(RequestRefusedError("too long"))
        with pytest.raises(RequestRefusedError):
            await made(time).send(model, request())
        assert model.calls == 1

    run(go)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_waits_have_full_jitter_below_a_doubling_bound(seed):
    """Each lies between nothing and the bound, which doubles up to the cap."""

    async def go(time: Virtual) -> None:
        limits = Limits(tries=9, backoff_base=1.0, backoff_cap=20.0)
        limiter = Limiter("x", limits, rng=random.Random(seed), clock=time.clock, sleep=time.sleep)
        with pytest.raises(TransientModelError):
            await time.run(limiter.send(failing(TransientModelError("500")), request()))
        assert len(time.slept) == 8
        assert all(0 <= slept <= min(20.0, 2.0**n) for n, slept in enumerate(time.slept))

    run(go)


# --- overload -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("throttled", "connections"), [(True, 25), (False, 50)])
def test_retry_after_pauses_the_whole_endpoint(throttled: bool, connections: int):
    """Nothing is sent, by anybody, until it is over; then the refused request goes again. A 500 may name its time as
    well, and then the number of connections stays."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), Gated()
        start(limiter, model, 1)
        await settle()
        begin = time.now
        await model.answer(TransientModelError("busy", throttled=throttled, retry_after=17.0))
        start(limiter, model, 3)
        await settle()
        assert (len(model.waiting), limiter.pause, limiter.limit) == (0, 17.0, connections)
        await time.step()
        while len(model.waiting) < 4:
            assert await time.step()
        assert time.now >= begin + 17.0

    run(go)


@pytest.mark.parametrize("asked", [0.0, 0.006])
@pytest.mark.parametrize("throttled", [True, False])
def test_a_retry_after_of_next_to_nothing_does_not_use_up_all_tries_at_once(asked: float, throttled: bool):
    """Some seconds in which a server says "now" and refuses: everything in flight is answered after them."""

    async def go(time: Virtual) -> None:
        begin = time.now

        def reply(_: Request) -> str:
            if 1 <= time.now - begin < 4:
                raise TransientModelError("busy", throttled=throttled, retry_after=asked)
            return "x"

        limiter, model = made(time, Limits(max_connections=20)), Scripted(reply)
        await limiter.send(model, request())
        time.now += 1
        answers = await time.run(asyncio.gather(*(limiter.send(model, request()) for _ in range(20))))
        assert len(answers) == 20

    run(go)


def test_a_short_retry_after_is_believed_while_others_get_through():
    """Nobody waits for longer than asked because of somebody else's luck."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=2)), Gated()
        await proven(limiter, model)
        start(limiter, model, 2)
        await settle()
        await model.answer(DONE, overload(retry_after=0.006))
        begin = time.now
        await time.step()
        assert (time.now - begin, len(model.waiting)) == (pytest.approx(0.006), 1)

    run(go)


def test_two_answers_at_once_that_ask_for_different_pauses_are_both_heard():
    """The longer one holds, and its end is noticed."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), Gated()
        await proven(limiter, model)
        tasks = start(limiter, model, 3)
        await settle()
        begin = time.now
        await model.answer(DONE, overload(retry_after=0.0), overload(retry_after=5.0))
        assert len(model.waiting) == 0
        await time.step()
        assert (time.now, len(model.waiting)) == (begin + 5.0, 2)
        await model.answer(DONE, DONE)
        assert all(task.done() for task in tasks)

    run(go)


def test_an_absurd_retry_after_is_cut():
    """Nobody waits for a year."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing("one", overload(retry_after=3.0e7), "two")
        await limiter.send(model, request())
        begin = time.now
        await time.run(limiter.send(model, request()))
        assert time.now - begin <= LONGEST_PAUSE

    run(go)


def test_overload_halves_the_connections_once_a_round_trip():
    """Forty refusals of requests sent together are one piece of news."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=40)), Gated()
        await proven(limiter, model)
        start(limiter, model, 40)
        await settle()
        time.now += 1
        await model.answer(*[overload(retry_after=5.0)] * 40)
        assert (limiter.limit, limiter.throttles) == (20, 40)
        time.now += 1
        await time.step()
        assert len(model.waiting) == 20
        time.now += 1
        await model.answer(*[overload(retry_after=5.0)] * 20)
        assert limiter.limit == 10

    run(go)


def test_one_connection_always_remains():
    """Halving never ends in none."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(tries=30)), failing("one", overload())
        await limiter.send(model, request())
        with pytest.raises(TransientModelError):
            await time.run(limiter.send(model, request()))
        assert limiter.limit == 1

    run(go)


def test_connections_come_back_by_themselves():
    """After overload, answers raise the limit step by step to what the user allowed and no further."""

    async def go(time: Virtual) -> None:
        limiter = made(time, Limits(max_connections=16))
        model = failing("one", overload(), overload(), "fine")
        await limiter.send(model, request())
        await time.run(limiter.send(model, request()))
        seen = [limiter.limit]
        for _ in range(300):
            await time.run(limiter.send(model, request()))
            seen.append(limiter.limit)
        assert seen[0] < 8
        assert seen[-1] == 16
        assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(seen))

    run(go)


def test_a_busy_endpoint_does_not_use_up_the_tries_of_those_it_turns_away():
    """A server that takes ten a minute and otherwise just says 429 answers all sixty in the end."""

    async def go(time: Virtual) -> None:
        taken: list[float] = []

        def reply(_: Request) -> str:
            if sum(moment > time.now - 60 for moment in taken) >= 10:
                raise overload()
            taken.append(time.now)
            return "x"

        limiter, model = made(time, Limits(tries=8)), Scripted(reply)
        answers = await time.run(asyncio.gather(*(limiter.send(model, request()) for _ in range(60))))
        assert len(answers) == 60
        assert model.calls < 4 * 60

    run(go)


def test_being_turned_away_while_others_get_through_uses_up_no_try():
    """Refused ten times with three tries, and answered in the end, because the endpoint was never at a standstill."""

    async def go(time: Virtual) -> None:
        refusals = 0

        def reply(one: Request) -> str:
            nonlocal refusals
            if one.messages[-1].content == "unlucky" and refusals < 10:
                refusals += 1
                raise overload()
            return "x"

        limiter, model = made(time, Limits(max_connections=2, tries=3)), Scripted(reply)
        await limiter.send(model, request())
        unlucky = asyncio.ensure_future(limiter.send(model, request("unlucky")))
        for _ in range(30):
            await time.run(limiter.send(model, request()))
        assert (unlucky.result().choices[0].text, refusals) == ("x", 10)

    run(go)


def test_requests_per_minute_are_never_exceeded():
    """In no window of sixty seconds are there more, and a longer run comes close to the number."""

    async def go(time: Virtual) -> None:
        starts: list[float] = []

        def reply(_: Request) -> str:
            starts.append(time.now)
            return "x"

        limiter, model = made(time, Limits(requests_per_minute=300)), Scripted(reply)
        await time.run(asyncio.gather(*(limiter.send(model, request()) for _ in range(600))))
        assert all(sum(begin <= other < begin + 60 for other in starts) <= 300 for begin in starts[::20])
        assert starts[-1] - starts[0] < 1.1 * 120

    run(go)


@pytest.mark.parametrize("rate", [1, 7, 59, 60, 119, 120])
def test_small_rates_are_kept_too(rate):
    """Also one a minute is a rate."""

    async def go(time: Virtual) -> None:
        starts: list[float] = []
        limiter = made(time, Limits(requests_per_minute=rate))
        model = Scripted(lambda _: starts.append(time.now) or "x")
        await time.run(asyncio.gather(*(limiter.send(model, request()) for _ in range(2 * rate + 1))))
        for begin in starts:
            assert sum(begin <= other < begin + 59.999 for other in starts) <= rate

    run(go)


# --- turns and the end ----------------------------------------------------------------------------------------


def test_the_longest_chain_goes_first():
    async def go(time: Virtual) -> None:
        limiter, order = made(time, Limits(max_connections=1)), []

        def queue(depth: int) -> QueuedCall:
            return limiter.queue(model, lambda: order.append(depth) or request(), depth=depth)

        model = Gated()
        calls = [queue(depth) for depth in (5, 1, 9, 3)]
        await settle()
        for depth in (9, 5):
            await model.answer(DONE)
            assert order[-1] == depth  # the connection is kept until what follows is queued
            if depth == 9:
                calls.append(queue(7))
            calls[{9: 2, 5: 0}[depth]].release()
            await settle()
            if depth == 9:
                assert order == [9, 7]
                break
        for call in calls:
            call.cancel()

    run(go)


def test_what_may_not_be_sent_yet_waits_and_keeps_its_place():
    async def go(time: Virtual) -> None:
        limiter, model, may = made(time), Gated(), []
        call = limiter.queue(model, lambda: request() if may else None)
        task = call.result
        await settle()
        assert len(model.waiting) == 0
        may.append(1)
        limiter.admit_soon()
        await settle()
        await model.answer(DONE)
        assert task.done()

    run(go)


def test_a_cancelled_request_gives_its_connection_back():
    """On its way, waiting for a try, or waiting for its turn."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=2)), Gated()
        tasks = start(limiter, model, 5)
        await settle()
        await model.answer(TransientModelError("500"))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert limiter.in_flight == 0
        start(limiter, model, 5)
        await settle()
        assert limiter.in_flight == 2

    run(go)


async def just_let_in(
    limiter: Limiter, model: Gated, then: Callable[[asyncio.Task[Completion]], object]
) -> list[asyncio.Task[Completion]]:
    """Two requests over one connection. The loop runs these in order: the first one ends and lets the second in, to
    which something happens before it runs."""
    await proven(limiter, model)
    first, second = start(limiter, model, 2)
    await settle()
    model.waiting.pop(0).set_result(DONE)
    asyncio.get_running_loop().call_soon(then, second)
    await asyncio.gather(first, second, return_exceptions=True)
    return [first, second]


def test_a_request_cancelled_just_as_it_is_let_in_leaks_nothing():
    """Between being given a connection and noticing it."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=1)), Gated()
        await just_let_in(limiter, model, lambda second: second.cancel())
        assert limiter.in_flight == 0

    run(go)


def test_once_stopped_what_waits_is_cancelled_and_what_is_on_its_way_is_answered():
    """Between two tries, in line behind a pause, in line for a connection; one that fails later is not tried again."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=4)), Gated()
        await proven(limiter, model)
        tasks = start(limiter, model, 6)
        await settle()
        await model.answer(overload(retry_after=9.0), TransientModelError("500"))
        limiter.stop()
        await model.answer(DONE, TransientModelError("500"))
        for _ in range(10):
            await time.step()
        assert [task.cancelled() for task in tasks] == [True, True, False, True, True, True]
        assert tasks[2].result() == DONE
        assert (len(model.waiting), limiter.in_flight) == (0, 0)

    run(go)


def test_once_stopped_nothing_new_is_sent():
    async def go(time: Virtual) -> None:
        limiter, model = made(time), failing("x")
        await limiter.send(model, request())
        limiter.stop()
        with pytest.raises(asyncio.CancelledError):
            await limiter.send(model, request())
        assert model.calls == 1

    run(go)


def test_a_request_just_let_in_when_all_is_stopped_is_not_sent():
    """It has its connection, and has not noticed."""

    async def go(time: Virtual) -> None:
        limiter, model = made(time, Limits(max_connections=1)), Gated()
        first, second = await just_let_in(limiter, model, lambda _: limiter.stop())
        assert (first.result(), second.cancelled()) == (DONE, True)
        assert (len(model.waiting), limiter.in_flight) == (0, 0)

    run(go)


@given(st.lists(st.sampled_from(["ok", "500", "429", "429+", "gone"]), min_size=1, max_size=60), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_the_limit_is_kept_and_everything_ends(outcomes, connections):
    """Whatever the server does: never more at a time than allowed, every request ends, nothing stays taken."""

    async def go(time: Virtual) -> None:
        busy = 0
        most = 0
        left = ["ok", *outcomes]

        async def complete(_: Request) -> Completion:
            nonlocal busy, most
            busy += 1
            most = max(most, busy)
            await time.sleep(1.0)
            busy -= 1
            match left.pop(0) if left else "ok":
                case "500":
                    raise TransientModelError("500")
                case "429":
                    raise overload()
                case "429+":
                    raise overload(retry_after=3.0)
                case "gone":
                    raise TransientModelError("gone", unreachable=True)
            return DONE

        model = Scripted(lambda _: "")
        model.complete = complete  # type: ignore[method-assign]
        limiter = made(time, Limits(max_connections=connections, tries=4))
        sends = [limiter.send(model, request()) for _ in range(30)]
        results = await time.run(asyncio.gather(*sends, return_exceptions=True))
        assert all(isinstance(result, Completion | TransientModelError) for result in results)
        assert most <= connections
        assert limiter.in_flight == 0
        await limiter.close()

    run(go)


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
            await limiter.close()
            return len(server.sent), results

    sent, errors = asyncio.run(go())
    assert sent == 1
    assert [type(error) for error in errors] == [FatalModelError] * 50
