"""`unmask sweep` when servers hang, run out of memory and die, a disk is full, and two drivers start at once. Every
server is a relay to one planted endpoint, which counts what was bought over all of them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.process import Served
from tests.cli.forked import forker
from tests.faults.test_disk import Mounted, filled, mounting  # noqa: F401  a fixture
from tests.patience import PATIENCE
from tests.sweep.sweeping import bought, folders, row, start, sweep, write_grid
from tests.sweep.test_driver import PLANTED, verdicts
from tests.sweep.trees import ROOT, alive, await_true

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")

IN_FLIGHT = 8
"""Connections to each server (`write_grid`): what may be bought twice when it is lost."""
LOCAL = "[local]\ngpus = [0, 1]"


def relayed(kind: str, name: str, endpoint: Served, folder: Path, *flags: str, more: str = "gpus = 1") -> str:
    """A row with a server to be placed. Its process ids, one for each life, go into `NAME.pids`."""
    command = [sys.executable, str(ROOT / "tests/sweep/relay.py"), "--host", "{host}", "--port", "{port}"]
    command += ["--to", endpoint.root.removeprefix("http://"), "--pids", str(folder / f"{name}.pids"), *flags]
    return f'[[{kind}]]\nname = "{name}"\nserve = {{ command = {json.dumps(command)}, {more} }}'


def lives(folder: Path, name: str) -> list[int]:
    file = folder / f"{name}.pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def disturb(grid: Path, endpoint: Served, fault: Callable[[], None], *, after: int = 40) -> str:
    """Run the sweep, do this once so many answers have left, and see that nothing runs when it is over."""
    process = start(grid)
    try:
        assert await_true(lambda: sum(endpoint.stats()["answered"].values()) >= after)
        fault()
        said, _ = process.communicate(timeout=2 * PATIENCE)
    finally:
        process.kill()
    assert_nothing_is_left(grid.parent)
    return said


def assert_nothing_is_left(folder: Path) -> None:
    """No server of any life goes on running, nor the two processes above it."""
    pids = [int(pid) for file in folder.glob("*.tree") for pid in file.read_text().split()]
    assert pids
    assert await_true(lambda: not alive(pids)), alive(pids)


def count_excess(grid: Path, endpoint: Served, judge: str = "openai_judge") -> int:
    """Answers that left the endpoint and stand in no journal."""
    kept = sum(bought(folder) + bought(folder, f"readings/{judge}.jsonl") for folder in folders(grid))
    return int(sum(endpoint.stats()["answered"].values())) - kept


FAULTS = {
    "hung": (signal.SIGUSR1, "it did not answer within 2 s", ", answers_within = 2"),
    "out of memory": (signal.SIGUSR2, "CUDA out of memory", ""),
    "killed": (signal.SIGKILL, "ended by SIGKILL", ""),
}


@pytest.mark.parametrize(("fault", "lost"), [*((fault, "subject") for fault in FAULTS), ("killed", "judge")])
def test_a_server_that_is_lost_once_comes_back_and_nothing_is_judged_differently(tmp_path, slow_endpoint, fault, lost):
    number, reason, more = FAULTS[fault]
    other = "judge" if lost == "subject" else "subject"
    rows = relayed(lost, lost, slow_endpoint, tmp_path, more=f"gpus = 1{more}"), row(other, other, slow_endpoint)
    grid = write_grid(tmp_path, *rows, sweep=LOCAL, matrix="seed = [1, 2]")
    said = disturb(grid, slow_endpoint, lambda: os.kill(lives(tmp_path, lost)[0], number))
    assert "2 of 2 units are complete" in said, said
    assert f"{lost} was lost and is started again" in said
    assert reason in said
    assert len(lives(tmp_path, lost)) == 2
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    assert count_excess(grid, slow_endpoint) <= IN_FLIGHT


def test_a_server_that_is_lost_again_and_again_fails_its_unit_with_its_log_and_the_other_finishes(tmp_path, endpoint):
    """What it answered is kept: the same command with a sound server buys only what is missing."""
    rows = relayed("subject", "good", endpoint, tmp_path), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, relayed("subject", "bad", endpoint, tmp_path, "--most", "6"), *rows, sweep=LOCAL)
    done = sweep(grid)
    assert done.returncode == 3
    assert "1 of 2 units are complete" in done.stdout
    assert "not complete: bad, planted" in done.stdout
    assert "bad was lost 4 times" in " ".join(done.stdout.split())
    assert "CUDA out of memory" in done.stdout
    assert [verdicts(folder) for folder in folders(grid) if folder.name.startswith("good")] == [PLANTED]
    write_grid(tmp_path, relayed("subject", "bad", endpoint, tmp_path), *rows, sweep=LOCAL)
    assert sweep(grid).returncode == 0
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    assert count_excess(grid, endpoint) <= 4 * IN_FLIGHT
    assert_nothing_is_left(tmp_path)


def test_of_two_drivers_that_start_at_once_one_is_refused_and_nothing_is_bought_twice(tmp_path, endpoint):
    rows = relayed("subject", "a", endpoint, tmp_path), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows, sweep=LOCAL)
    processes = [start(grid), start(grid)]
    said = [process.communicate(timeout=2 * PATIENCE)[0] for process in processes]
    assert sorted(process.returncode for process in processes) == [0, 4], said
    assert "is in use by process" in said[processes[0].returncode == 0]
    assert count_excess(grid, endpoint) == 0
    assert verdicts(folders(grid)[0]) == PLANTED
    assert len(lives(tmp_path, "a")) == 1
    assert_nothing_is_left(tmp_path)


def test_a_killed_driver_leaves_no_server_and_buys_nothing_twice_but_what_was_in_flight(tmp_path, slow_endpoint):
    """Connections to the subject's server, and to the judge's."""
    rows = (relayed(kind, name, slow_endpoint, tmp_path) for kind, name in (("subject", "a"), ("judge", "judge")))
    grid = write_grid(tmp_path, *rows, sweep=LOCAL, matrix="seed = [1, 2]")
    process = start(grid)
    try:
        assert await_true(lambda: sum(slow_endpoint.stats()["answered"].values()) >= 40)
    finally:
        process.kill()
        process.communicate()
    assert_nothing_is_left(tmp_path)
    done = sweep(grid)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED, PLANTED]
    assert 0 <= count_excess(grid, slow_endpoint) <= 2 * IN_FLIGHT


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("room", ["0", "60k"])
def test_a_full_disk_is_named_and_the_same_command_continues(tmp_path, endpoint, room):
    """Whether nothing fits, not even the log of a server, or only part of what is answered."""
    rows = relayed("subject", "a", endpoint, tmp_path), row("judge", "judge", endpoint)
    grid = write_grid(tmp_path, *rows, sweep=LOCAL)
    with Mounted(tmp_path, size="4m", prepare=filled(room), repair='rm "$DISK/filler"') as mounted:
        command = ["sweep", str(grid), "--out", str(mounted.disk / "run")]
        first = forker().run(command, cwd=ROOT, env=mounted.env)
        mounted.repair()
        second = forker().run(command, cwd=ROOT, env=mounted.env)
    said = first.stdout + first.stderr
    assert first.returncode in (3, 4), said
    assert second.returncode == 0, second.stdout + second.stderr
    assert "No space left on device" in " ".join(said.split())
    assert "Traceback" not in said
    mounted.kept.rename(tmp_path / "out")
    assert [verdicts(folder) for folder in folders(grid)] == [PLANTED]
    assert count_excess(grid, endpoint) <= 2 * IN_FLIGHT
    assert_nothing_is_left(tmp_path)
