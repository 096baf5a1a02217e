"""One model behind several servers: who is asked, and what happens when servers go and come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.patience import PATIENCE
from unmask.errors import FatalModelError, TransientModelError
from unmask.fleet.base import Server, ServerSpec
from unmask.fleet.spread import SpreadModel
from unmask.models.limiter import Limiter, Limits
from unmask.models.providers import open_model
from unmask.records import Completion, Message, Request, Role

ASK = Request((Message(Role.USER, "hello"),))
LIMITS = Limits(max_connections=4, backoff_base=0.01, backoff_cap=0.05)


class Station:
    """A server of this process. `hold` makes it wait before it answers, `status` is what it answers with."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = self.answered = self.under_way = self.most = 0
        self.status = 200
        self.hold: asyncio.Event | None = None
        self.keys: set[str | None] = set()
        self.port = 0
        self.server = Server(ServerSpec(name="m", command=()), base_url="", key=f"key-{name}")
        self._runner: web.AppRunner | None = None

    async def open(self) -> Station:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        self.server.base_url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def lose(self, reason: str = "ended by SIGKILL") -> None:
        """Gone, and the fleet says so."""
        await self.close()
        self.server.reason = reason
        self.server.lost.set()

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.keys.add(request.headers.get("Authorization"))
        try:
            await asyncio.sleep(0.01)
            if self.hold is not None:
                await self.hold.wait()
        finally:
            self.under_way -= 1
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        self.answered += 1
        return web.json_response({"choices": [{"message": {"content": self.name}, "finish_reason": "stop"}]})


class Spread(SpreadModel):
    """With the limiter that a sweep puts in front of it."""

    def __init__(self, expected: int) -> None:
        super().__init__("vllm/m", expected=expected, limits=LIMITS)
        self.limiter = Limiter(self.endpoint, self.limits)
        self.limiter.mark_working(self)

    def send(self) -> asyncio.Task[Completion]:
        return asyncio.create_task(self.limiter.send(self, ASK))


@asynccontextmanager
async def spread_over(*names: str, expected: int | None = None) -> AsyncIterator[tuple[Spread, list[Station]]]:
    stations = [await Station(name).open() for name in names]
    model = Spread(len(names) if expected is None else expected)
    for station in stations:
        model.add(station.server)
    try:
        yield model, stations
    finally:
        await model.limiter.close()
        await model.close()
        for station in stations:
            await station.close()


async def ask(model: Spread, times: int) -> list[str]:
    answers = await asyncio.gather(*(model.send() for _ in range(times)))
    return [answer.choices[0].text for answer in answers]


async def until(claim: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not claim():  # noqa: ASYNC110  what is waited for happens in a server
            await asyncio.sleep(0.01)


def run(story: Callable[[], object]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_the_server_with_the_fewest_requests_under_way_is_asked():
    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, _)):
            await ask(model, 2)  # the first request to a server goes alone
            a.hold = asyncio.Event()
            slow = [model.send() for _ in range(2)]
            await until(lambda: a.under_way == 1 and slow[1].done())
            assert await ask(model, 1) + await ask(model, 1) + await ask(model, 1) == ["b", "b", "b"]
            a.hold.set()
            await asyncio.gather(*slow)

    run(story)


def test_each_server_has_its_own_limit_and_its_own_key():
    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, b)):
            answers = await ask(model, 60)
            assert {answers.count("a"), answers.count("b")} <= set(range(20, 41))
            assert (a.most, b.most) == (4, 4)
            assert (a.keys, b.keys) == ({"Bearer key-a"}, {"Bearer key-b"})

    run(story)


def test_requests_of_a_lost_server_go_to_the_others():
    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, _)):
            await ask(model, 2)
            a.hold = asyncio.Event()  # hangs: without the word of the fleet nobody would know
            pending = [model.send() for _ in range(8)]
            await until(lambda: a.under_way == 4)
            await a.lose()
            answers = await asyncio.gather(*pending)
            assert [answer.choices[0].text for answer in answers] == ["b"] * 8
            assert "SIGKILL" in (model.last_error or "")

    run(story)


def test_requests_wait_while_a_server_is_expected_and_no_try_is_counted():
    """More time passes than all tries together have."""

    async def story() -> None:
        async with spread_over("a") as (model, (a,)):
            await ask(model, 1)
            a.hold = asyncio.Event()
            pending = [model.send() for _ in range(3)]
            await until(lambda: a.under_way == 3)
            await a.lose()
            await until(lambda: model.awaits_server)
            await asyncio.sleep(8 * 0.05 + 0.2)
            assert not any(task.done() for task in pending)
            back = await Station("back").open()
            model.add(back.server)
            answers = await asyncio.gather(*pending)
            assert [answer.choices[0].text for answer in answers] == ["back"] * 3
            assert model.limiter.retries == 0
            await back.close()

    run(story)


def test_it_ends_with_the_log_when_no_server_is_left_and_none_is_expected():
    async def story() -> None:
        async with spread_over("a") as (model, (a,)):
            await ask(model, 1)
            a.hold = asyncio.Event()
            pending = model.send()
            await until(lambda: a.under_way == 1)
            await a.lose()
            await asyncio.sleep(0.05)
            assert not pending.done()
            model.give_up("server m: the third start failed; the end of its log: CUDA out of memory")
            with pytest.raises(FatalModelError, match=r"no server of vllm/m is left.*CUDA out of memory"):
                await pending
            with pytest.raises(FatalModelError, match="no server of vllm/m is left"):
                await model.send()

    run(story)


def test_a_server_of_ours_that_refuses_connections_is_no_wrong_address():
    """It has died and the fleet has not noticed yet: the request waits for the others or for the word of the fleet."""

    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, _)):
            await a.close()
            pending = [model.send() for _ in range(4)]
            await asyncio.sleep(0.03)
            await a.lose()
            answers = await asyncio.gather(*pending)
            assert [answer.choices[0].text for answer in answers] == ["b"] * 4

    run(story)


def test_an_address_that_a_person_typed_wrong_stays_fatal_at_once():
    async def story() -> None:
        model = open_model("vllm/m", base_url="http://127.0.0.1:9/v1")
        gate = Limiter(model.endpoint, LIMITS)
        with pytest.raises(FatalModelError, match="cannot connect"):
            await gate.send(model, ASK)
        assert gate.retries == 0
        await gate.close()
        await model.close()

    run(story)


def test_a_request_that_a_living_server_refuses_goes_to_nobody_else():
    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, b)):
            a.status = b.status = 500
            with pytest.raises(TransientModelError, match="HTTP 500"):
                await model.send()
            assert {a.asked, b.asked} == {0, LIMITS.tries}

    run(story)


def test_servers_that_refuse_the_key_are_asked_once_and_everybody_is_told():
    """All servers run the same command."""

    async def story() -> None:
        async with spread_over("a") as (model, (a,)):
            a.status = 401
            with pytest.raises(FatalModelError):
                await model.send()
            results = await asyncio.gather(*(model.send() for _ in range(5)), return_exceptions=True)
            assert [type(result) for result in results] == [FatalModelError] * 5
            assert a.asked == 1

    run(story)


@pytest.mark.parametrize("lost", [False, True])
def test_stopping_one_user_ends_its_requests_that_wait_for_a_server(lost: bool):
    """Before the first server is there, and after one was lost."""

    async def story() -> None:
        async with spread_over(*["a"] * lost, expected=1) as (model, stations):
            for station in stations:
                station.hold = asyncio.Event()
            mine, theirs = object(), object()
            calls = [model.limiter.queue(model, ASK, user=user) for user in (mine, theirs)]
            stopped, waits = (call.result for call in calls)
            for station in stations:
                await until(lambda: stations[0].under_way == 2)
                await station.lose()
                await until(lambda: model.awaits_server)
            await asyncio.sleep(0.02)
            model.limiter.stop(mine)
            with pytest.raises(asyncio.CancelledError):
                await stopped
            station = await Station("a").open()
            model.add(station.server)
            assert isinstance(await waits, Completion)
            await station.close()

    run(story)


def test_a_request_that_its_run_gives_up_ends_although_its_server_is_lost_too():
    async def story() -> None:
        async with spread_over("a", expected=2) as (model, (a,)):
            await ask(model, 1)
            a.hold = asyncio.Event()
            pending = model.send()
            await until(lambda: a.under_way == 1)
            a.server.lost.set()
            await asyncio.sleep(0)
            pending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pending

    run(story)


def test_a_server_that_is_removed_is_asked_no_more():
    async def story() -> None:
        async with spread_over("a", "b") as (model, (a, _)):
            await ask(model, 2)
            model.remove(a.server)
            assert await ask(model, 6) == ["b"] * 6

    run(story)


def test_it_has_a_stable_address_and_the_abilities_of_its_provider():
    async def story() -> None:
        async with spread_over("a") as (model, _):
            named = open_model("vllm/m")
            assert model.endpoint == "fleet:vllm/m"
            assert model.capabilities == named.capabilities

    run(story)
