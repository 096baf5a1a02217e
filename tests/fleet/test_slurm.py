"""Servers as jobs, through submitit's executor for this machine; `make test-fleet` runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.fleet.trees import alive, await_true, read_pids, vllm_like
from unmask.errors import MissingError, UsageError
from unmask.fleet.base import NoRoom, ServerFailed
from unmask.fleet.slurm import SlurmFleet, parse_walltime

pytestmark = pytest.mark.fleet


def open_fleet(folder: Path, **settings) -> SlurmFleet:
    pytest.importorskip("submitit", reason="needs the extra slurm: make test-fleet")
    return SlurmFleet(folder, cluster="local", walltime="00:10:00", **settings)


def test_a_job_serves_and_says_until_when(tmp_path):
    async def story() -> None:
        fleet = open_fleet(tmp_path, most_servers=1)
        pids = tmp_path / "pids"
        begin = time.time()
        server = await fleet.place(vllm_like("a", "--workers", pids))
        assert server.deadline is not None
        assert begin + 590 < server.deadline < time.time() + 610
        (file,) = tmp_path.glob("server-*.json")
        written = json.loads(file.read_text())
        assert written["address"] == server.base_url
        assert written["host"]
        assert str(written["port"]) in server.base_url
        assert file.stat().st_mode & 0o077 == 0
        with pytest.raises(NoRoom, match="1 jobs are there already"):
            await fleet.place(vllm_like("b"))
        await fleet.drop(server)
        assert not server.lost.is_set()
        await fleet.close()
        assert fleet.room()["servers"] == 1
        assert await_true(lambda: not alive(read_pids(pids)))

    asyncio.run(story())


def test_a_job_whose_server_is_killed_is_lost_with_its_log(tmp_path):
    async def story() -> None:
        fleet = open_fleet(tmp_path)
        pids = tmp_path / "pids"
        server = await fleet.place(vllm_like("a", "--workers", pids))
        os.kill(read_pids(pids)[0], signal.SIGKILL)
        await asyncio.wait_for(server.lost.wait(), 10)
        assert "ended by SIGKILL" in (server.reason or "")
        assert "listening soon" in (server.reason or "")
        await fleet.close()
        assert alive(read_pids(pids)) == []

    asyncio.run(story())


def test_a_job_that_slurm_ends_is_a_lost_server_and_leaves_nothing(tmp_path):
    """As at the end of the walltime: SIGKILL, without a word."""

    async def story() -> None:
        fleet = open_fleet(tmp_path)
        pids = tmp_path / "pids"
        server = await fleet.place(vllm_like("a", "--workers", pids))
        ((job, _, _),) = fleet._running.values()
        for pid in (job._process.pid, *list_job_processes(job._process.pid)):
            os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(server.lost.wait(), 10)
        assert "its job" in (server.reason or "")
        assert await_true(lambda: not alive(read_pids(pids)))
        await fleet.close()

    asyncio.run(story())


def list_job_processes(controller: int) -> list[int]:
    """The processes of a job but for the supervisor and what it started."""
    children = [int(pid) for pid in Path(f"/proc/{controller}/task/{controller}/children").read_text().split()]
    return [pid for pid in children if b"unmask.fleet.serve" not in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_a_server_that_fails_is_refused_with_its_log(tmp_path):
    async def story() -> None:
        fleet = open_fleet(tmp_path)
        with pytest.raises(ServerFailed, match="CUDA out of memory"):
            await fleet.place(vllm_like("a", "--fault", "out-of-memory"))
        await fleet.close()

    asyncio.run(story())


def start_driver(folder: Path, pids: Path, *, settings: str = "", before: str = "") -> subprocess.Popen[str]:
    """A process that has placed a server and waits."""
    pytest.importorskip("submitit", reason="needs the extra slurm: make test-fleet")
    spec = vllm_like("a", "--workers", pids)
    program = f"""
        import asyncio
        from pathlib import Path
        from unmask.fleet import slurm
        from unmask.fleet.base import ServerSpec

        {before}

        async def main():
            fleet = slurm.SlurmFleet(Path({str(folder)!r}), cluster="local", walltime=10, {settings})
            await fleet.place(ServerSpec(name="a", command={spec.command!r}))
            print("placed", flush=True)
            await asyncio.sleep(600)

        asyncio.run(main())
    """
    # A session of its own, as jobs of Slurm have: they do not end with the driver.
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == "placed\n"
    return driver


def kill_driver(driver: subprocess.Popen[str]) -> None:
    driver.kill()
    driver.wait()
    assert driver.stdout is not None
    driver.stdout.close()


def test_nothing_of_a_job_is_left_five_seconds_after_the_driver_was_killed(tmp_path):
    """The connection between them ends; the number of the driver would stand still for two minutes."""
    pids = tmp_path / "pids"
    driver = start_driver(tmp_path, pids)
    tree = read_pids(pids)
    kill_driver(driver)
    assert await_true(lambda: not alive(tree), within=5.0), alive(tree)


def test_a_job_that_its_driver_cannot_connect_to_ends_its_server_when_the_number_stands_still(tmp_path):
    pids = tmp_path / "pids"
    driver = start_driver(tmp_path, pids, settings="away=1.5", before="slurm.connect_line = lambda written: None")
    tree = read_pids(pids)
    assert not await_true(lambda: not alive(tree), within=2.5)  # as long as the driver lives, so does the server
    kill_driver(driver)
    assert await_true(lambda: not alive(tree), within=8.0), alive(tree)


def test_a_stranger_or_a_broken_connection_ends_no_server(tmp_path):
    """Only the end of a connection that has said the key counts."""

    async def story() -> None:
        fleet = open_fleet(tmp_path)
        pids = tmp_path / "pids"
        server = await fleet.place(vllm_like("a", "--workers", pids))
        (file,) = tmp_path.glob("server-*.json")
        host, port = json.loads(file.read_text())["line"]
        (line,) = fleet._lines.values()
        assert line is not None
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, and no end
        line.close()
        with socket.create_connection((host, port)) as stranger:
            stranger.sendall(b"not the key\n")
        await asyncio.sleep(1.5)
        assert alive(read_pids(pids)) == read_pids(pids)
        assert not server.lost.is_set()
        await fleet.drop(server)
        await fleet.close()
        assert await_true(lambda: not alive(read_pids(pids)))

    asyncio.run(story())


@pytest.mark.parametrize(("walltime", "minutes"), [(30, 30), ("00:30:00", 30), ("1-02:00:30", 1561)])
def test_a_walltime_is_minutes_or_as_slurm_writes_it(walltime, minutes):
    assert parse_walltime(walltime) == minutes


@pytest.mark.parametrize("walltime", [0, "soon", "00:00:00", "30:00"])
def test_a_walltime_that_is_no_time_is_refused(walltime):
    with pytest.raises(UsageError, match="is no time"):
        parse_walltime(walltime)


def test_a_machine_without_slurm_is_told_so(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="needs the extra slurm: make test-fleet")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="sbatch"):
        SlurmFleet(tmp_path)
