"""A local Ray: its token, and a driver that is killed. `make test-fleet` runs it: it needs the extra ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.test_schedulers import STANDINS
from tests.sweep.trees import ROOT, alive, await_true, read_pids, vllm_like

pytestmark = pytest.mark.fleet

PROGRAM = """
    import asyncio, os
    from unmask.sweep.servers.base import ServerSpec
    from unmask.sweep.servers.ray import RayPool

    async def main():
        pool = RayPool(None, gpus=2)
        room = await pool.reserve([ServerSpec(name="a", command={command!r}, gpus=2)])
        address = await room.start(0)
        print(os.environ["RAY_AUTH_MODE"], pool.machines()[0].gpus, address.base_url[:7], flush=True)
        {then}

    asyncio.run(main())
"""


def start_local(folder, then: str) -> subprocess.Popen[str]:
    """A local Ray with one server. In a process of its own: Ray reads its variables once, when it is imported."""
    command = vllm_like("a", "--workers", folder / "pids").command
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM.format(command=command, then=then))],
        env={**environment, "HOME": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_without_an_address_a_local_ray_with_a_token_is_started(tmp_path):
    driver = start_local(tmp_path, "await room.close(); await pool.close()")
    said, _ = driver.communicate()
    assert said.splitlines()[-1] == "token 2.0 http://"
    assert await_true(lambda: not alive(read_pids(tmp_path / "pids")))
    assert (tmp_path / ".ray/auth_token").exists()


def test_nothing_is_left_of_a_local_ray_when_the_driver_is_killed(tmp_path):
    driver = start_local(tmp_path, "await asyncio.sleep(600)")
    assert driver.stdout is not None
    assert await_true((tmp_path / "pids").exists)
    pids = read_pids(tmp_path / "pids")
    assert alive(pids) == pids
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert await_true(lambda: not alive(pids)), alive(pids)


SERVED = """
[ray]
address = "auto"
[[data]]
source = "tiny"
[[subject]]
name = "a"
serve = {{ command = {command} }}
[[judge]]
model = "verbatim"
"""


def test_the_example_for_slurm_runs_a_sweep_on_the_ray_that_it_starts(tmp_path):
    """Real Ray, started by `ray symmetric-run` as the example calls it, on one machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    standins = {
        "scontrol": "echo 127.0.0.1",
        "srun": STANDINS["srun"],
        "unmask": f'exec {sys.executable} -m unmask "$@"',
    }
    for name, script in standins.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    command = json.dumps(vllm_like("a", "--workers", tmp_path / "pids").command)
    (tmp_path / "grid.toml").write_text(SERVED.format(command=command))
    done = subprocess.run(
        ["bash", str(ROOT / "docs/examples/slurm-ray.sbatch"), "grid.toml", "out"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            **{"SLURM_JOB_NODELIST": "node1", "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1"},
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 of 1 units are complete" in done.stdout, done.stdout + done.stderr
    assert await_true(lambda: not alive(read_pids(tmp_path / "pids")))
