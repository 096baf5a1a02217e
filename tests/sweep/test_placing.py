"""Which server is placed when: with a fleet that only counts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from unmask.fleet.base import NoRoom, Server, ServerFailed, ServerSpec
from unmask.models.limiter import Limits
from unmask.sweep.grid import ModelRow, ServeRow
from unmask.sweep.placing import PlacedServers, Placement


class CountingFleet:
    """GPUs that are numbers. `begun` has every server in the order in which it was asked for."""

    def __init__(self, gpus: int, *, broken: str = "") -> None:
        self.free, self.broken = gpus, broken
        self.begun: list[str] = []
        self.running: list[Server] = []

    async def place(self, spec: ServerSpec) -> Server:
        if spec.gpus > self.free:
            raise NoRoom(f"server {spec.name} needs {spec.gpus} GPUs, and {self.free} are free")
        self.free -= spec.gpus
        self.begun.append(spec.name)
        try:
            await asyncio.sleep(0.01)
            if spec.name == self.broken:
                await asyncio.sleep(0.01 * self.begun.count(spec.name))  # the replica is ready before the first
                raise ServerFailed(f"server {spec.name} is broken")
        except BaseException:
            self.free += spec.gpus
            raise
        self.running.append(Server(spec, base_url="http://127.0.0.1:9/v1", key=""))
        return self.running[-1]

    async def drop(self, server: Server) -> None:
        self.running.remove(server)
        self.free += server.spec.gpus

    def room(self) -> Mapping[str, float]:
        return {"gpus": float(self.free)}

    async def close(self) -> None:
        for server in list(self.running):
            await self.drop(server)


def make_row(name: str, *, gpus: int = 1, replicas: int = 1) -> ModelRow:
    serve = ServeRow(command=("x",), gpus=gpus, replicas=replicas)
    return ModelRow(name=name, model=f"openai/{name}", serve=serve)


def plan_rows(placement: Placement, *rows: ModelRow) -> dict[str, PlacedServers]:
    """Servers of subjects, the first one with the most work."""
    seconds = {row.name: 100.0 - 90.0 * place for place, row in enumerate(rows)}
    users = {row.name: 1 for row in rows}
    return placement.plan_subjects(rows, limits=lambda row: Limits(), timeout=1.0, seconds=seconds, users=users)


def test_replicas_are_placed_together_before_the_next_subject_gets_their_gpus():
    async def story() -> None:
        fleet = CountingFleet(2)
        placement = Placement(fleet, tell=lambda line: None)
        servers = plan_rows(placement, make_row("a", replicas=2), make_row("b"))
        await servers["a"].get_model("a")
        await asyncio.sleep(0.05)
        assert fleet.begun == ["a", "a"]
        servers["a"].release()
        await servers["b"].get_model("b")
        assert fleet.begun == ["a", "a", "b"]
        await placement.close()
        assert fleet.free == 2

    asyncio.run(story())


def test_a_first_server_that_fails_takes_its_replicas_back():
    async def story() -> None:
        fleet = CountingFleet(2, broken="a")
        placement = Placement(fleet, tell=lambda line: None)
        servers = plan_rows(placement, make_row("a", replicas=2))
        with pytest.raises(ServerFailed, match="is broken"):
            await servers["a"].get_model("a")
        await asyncio.sleep(0.05)
        assert fleet.free == 2
        await placement.close()

    asyncio.run(story())


def test_a_judge_without_room_says_so_once_and_comes_when_there_is_some():
    async def story() -> None:
        fleet, lines = CountingFleet(1), []
        placement = Placement(fleet, tell=lines.append)
        first, second = (
            placement.plan_judge(make_row(name), limits=Limits(), timeout=1.0, users=1, at_once=True) for name in "ab"
        )
        await first.get_model("a")
        await asyncio.sleep(0.05)
        assert lines == ["b waits for room: server b needs 1 GPUs, and 0 are free"]
        first.release()
        await asyncio.wait_for(second.get_model("b"), 10)
        await placement.close()

    asyncio.run(story())


def test_a_subject_that_never_gets_room_is_told_what_the_fleet_said():
    class FullFleet(CountingFleet):
        async def place(self, spec: ServerSpec) -> Server:
            raise NoRoom("no machine has pool=large")

    async def story() -> None:
        placement = Placement(FullFleet(1), tell=lambda line: None)
        servers = plan_rows(placement, make_row("a"))
        reason = await asyncio.gather(servers["a"].get_model("a"), return_exceptions=True)
        assert "needs 1 GPUs, and no more become free: no machine has pool=large" in str(reason[0])
        await placement.close()

    asyncio.run(story())
