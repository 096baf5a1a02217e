"""Which servers get room when, on machines that only count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from unmask.errors import UsageError
from unmask.sweep import placement
from unmask.sweep.grid import ModelRow, ServeTable
from unmask.sweep.placement import Group, Placement
from unmask.sweep.servers.base import Machine, RoomLost, ServerAddress, ServerFailed, ServerSpec


class CountingPool:
    """Gives room on the largest machine. `begun` has every server in the order in which it was started."""

    def __init__(self, *gpus: int) -> None:
        self.free, self.whole = list(gpus), list(gpus)
        self.begun: list[str] = []
        self.rooms: dict[str, CountingRoom] = {}

    def machines(self) -> list[Machine]:
        return [Machine(gpus) for gpus in self.whole]

    async def reserve(self, specs: Sequence[ServerSpec]) -> CountingRoom:
        while True:
            taken = self._take(specs)
            if taken is not None:
                return CountingRoom(self, specs, taken)
            await asyncio.sleep(0.01)

    def _take(self, specs: Sequence[ServerSpec]) -> list[tuple[int, int]] | None:
        free, taken = list(self.free), []
        for spec in specs:
            place = max(range(len(free)), key=free.__getitem__)
            if free[place] < spec.gpus:
                return None
            free[place] -= spec.gpus
            taken.append((place, spec.gpus))
        self.free = free
        return taken

    async def close(self) -> None:
        assert self.free == self.whole

    async def await_begun(self, names: str) -> None:
        async with asyncio.timeout(10):
            while self.begun != names.split():  # noqa: ASYNC110
                await asyncio.sleep(0.01)


class CountingRoom:
    def __init__(self, pool: CountingPool, specs: Sequence[ServerSpec], taken: list[tuple[int, int]]) -> None:
        self.pool, self.specs, self.taken = pool, specs, taken
        self.lost = asyncio.Event()

    async def start(self, number: int) -> ServerAddress:
        name = self.specs[number].name
        if name == "broken":
            raise OSError("no more processes")
        self.pool.begun.append(name)
        self.pool.rooms[name] = self
        await asyncio.sleep(0)
        return ServerAddress("http://127.0.0.1:9/v1", "")

    async def await_loss(self, number: int) -> str:
        await self.lost.wait()
        raise RoomLost(f"the machine of {self.specs[number].name} is gone")

    def lose_machine(self) -> None:
        for place, gpus in self.taken:
            self.pool.whole[place] = 0
            self.pool.free[place] = -gpus
        self.lost.set()

    async def close(self) -> None:
        for place, gpus in self.taken:
            self.pool.free[place] += gpus


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    monkeypatch.setattr(placement, "ROOM_INTERVAL", 0.1)


def make_group(*servers: tuple[str, int], is_kept: bool = False, place: int = 0) -> Group:
    rows = [
        [ModelRow(name=name, model=f"openai/{name}", serve=ServeTable(command=("x",), gpus=gpus))]
        for name, gpus in servers
    ]
    group = Group(rows, Path(), timeout=lambda _: 1.0, is_kept=is_kept, place=place)
    group.users = 1
    return group


def place(
    pool: CountingPool, groups: Callable[[], list[Group]], story: Callable[..., Awaitable[None]], said: list[str]
) -> None:
    """Serve these groups, which need a running loop, while the story is told."""

    async def tell_story() -> None:
        made = groups()
        servers = Placement(pool, made, tell=said.append)
        servers.start()
        try:
            await story(*made)
        finally:
            await servers.close()

    asyncio.run(tell_story())


def test_groups_get_room_in_their_order_and_all_of_it_at_once():
    """`b` needs both GPUs; `c`, which would fit, does not pass it. `d` is not needed any more when it is its turn."""
    pool = CountingPool(2)

    async def story(a: Group, b: Group, c: Group, d: Group) -> None:
        await asyncio.wait_for(a.ready, 10)
        await asyncio.sleep(0.2)
        assert pool.begun == ["a"]
        a.release()
        await pool.await_begun("a b b-judge")
        d.release()
        b.release()
        await pool.await_begun("a b b-judge c")
        c.release()
        await asyncio.sleep(0.1)
        assert pool.begun[-1] == "c"

    def groups() -> list[Group]:
        return [make_group(("a", 1)), make_group(("b", 1), ("b-judge", 1)), make_group(("c", 1)), make_group(("d", 1))]

    place(pool, groups, story, [])


def test_a_judge_in_the_only_place_of_a_subject_makes_room_for_it():
    """The judge is given the machine with two GPUs, and the subject needs both of them."""
    pool, said = CountingPool(1, 2), []

    async def story(judge: Group, subject: Group) -> None:
        await asyncio.wait_for(subject.ready, 10)
        await pool.await_begun("judge subject judge")

    place(pool, lambda: [make_group(("judge", 1), is_kept=True), make_group(("subject", 2))], story, said)
    assert said == ["subject waits for room"]


def test_a_later_judge_needs_no_room_next_to_one_whose_work_ends_before():
    """It is not refused, waits, and takes nobody's room."""
    pool, said = CountingPool(2), []

    async def story(judge: Group, subject: Group, later: Group) -> None:
        await asyncio.wait_for(subject.ready, 10)
        subject.release()
        await asyncio.sleep(0.5)
        assert pool.begun == ["judge", "subject"]
        judge.release()
        await asyncio.wait_for(later.ready, 10)

    def groups() -> list[Group]:
        judge = make_group(("judge", 1), is_kept=True)
        return [judge, make_group(("subject", 1)), make_group(("later", 2), place=1)]

    place(pool, groups, story, said)
    assert said == ["later waits for room"]


def test_when_a_judge_loses_its_machine_the_others_wait_for_room_again_behind_it():
    pool = CountingPool(1, 1, 1)

    async def story(judge: Group, a: Group, b: Group) -> None:
        await pool.await_begun("judge a b")
        pool.rooms["judge"].lose_machine()
        await pool.await_begun("judge a b judge a")
        assert b.models["b"].awaits_server
        a.release()
        await pool.await_begun("judge a b judge a b")

    def groups() -> list[Group]:
        return [make_group(("judge", 1), is_kept=True), make_group(("a", 1)), make_group(("b", 1))]

    place(pool, groups, story, [])


def test_what_has_lost_its_machine_four_times_is_given_up():
    pool = CountingPool(1, 1, 1, 1, 1)

    async def story(group: Group) -> None:
        for times in range(1, 5):
            await pool.await_begun("a " * times)
            pool.rooms["a"].lose_machine()
        async with asyncio.timeout(10):
            while group.models["a"].awaits_server:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    place(pool, lambda: [make_group(("a", 1))], story, [])


def test_an_unforeseen_error_is_the_end_of_its_group_and_of_no_other():
    pool = CountingPool(1)

    async def story(broken: Group, sound: Group) -> None:
        with pytest.raises(ServerFailed, match="broken: OSError: no more processes"):
            await asyncio.wait_for(asyncio.shield(broken.ready), 10)
        await asyncio.wait_for(sound.ready, 10)

    place(pool, lambda: [make_group(("broken", 1)), make_group(("sound", 1))], story, [])


def test_servers_that_are_needed_together_and_never_fit_are_named():
    async def story() -> None:
        judge, a, b = make_group(("judge", 2), is_kept=True), make_group(("a", 1)), make_group(("b", 3))
        with pytest.raises(UsageError, match="some servers can never have room: the machines have 3, 1 GPUs") as caught:
            Placement(CountingPool(3, 1), [judge, a, b], tell=lambda line: None).start()
        assert caught.value.problems == ("needed at the same time: judge (2 GPUs), b (3 GPUs)",)

    asyncio.run(story())
