"""The files under `docs/examples`, with the variables that schedulers set, and scripted models in place of servers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import unmask
from bench.process import ROOT

yaml = pytest.importorskip("yaml")

EXAMPLES = ROOT / "docs" / "examples"
SCRIPTED = {
    "UNMASK_DATA": "tiny",
    "UNMASK_MODEL": "scripted/liar",
    "UNMASK_JUDGE": "scripted/judge",
    "UNMASK_BASE_URL": "",
    "UNMASK_JUDGE_BASE_URL": "",
}


def parse(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """An environment in which `unmask` is this one, and `vllm` waits until it is ended."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "unmask").write_text(f'#!/bin/sh\nexec {sys.executable} -m unmask "$@"\n')
    (folder / "vllm").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/served\necho $$ > {tmp_path}/pid\nexec sleep 60\n')
    for file in folder.iterdir():
        file.chmod(0o755)
    given = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    return {**os.environ, **SCRIPTED, **given}


def check_shards(folder: Path, of: int) -> None:
    """As many as there should be, which together are the whole run."""
    shards = sorted((folder / "shards" / "liar").iterdir())
    assert len(shards) == of
    merged = unmask.merge(shards, out=folder / "runs" / "liar")
    assert len(merged.rows()) == 12
    assert merged.score().undecided == ()


def test_a_slurm_array_makes_every_shard_and_ends_its_servers(tmp_path: Path, programs: dict[str, str]):
    script = EXAMPLES / "slurm.sbatch"
    for task in ("0", "1"):
        variables = {"SLURM_ARRAY_TASK_ID": task, "SHARDS": "2"}
        done = subprocess.run(
            ["bash", script], cwd=tmp_path, env=programs | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "served").read_text().split() == ["serve", "liar", "--port", f"{8000 + int(task)}"]
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)
    check_shards(tmp_path, 2)


def test_the_pods_of_a_kubernetes_job_make_every_shard(tmp_path: Path, programs: dict[str, str]):
    (job,) = parse("kubernetes.yaml")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # backoffLimitPerIndex needs it
    given = {one["name"]: SCRIPTED.get(one["name"], one.get("value", "key")) for one in container["env"]}
    for index in range(job["spec"]["completions"]):
        environment = programs | given | {"JOB_COMPLETION_INDEX": str(index)}
        subprocess.run(container["command"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    check_shards(tmp_path, job["spec"]["completions"])


STANDINS = {
    "scontrol": "echo 127.0.0.1; echo node2",
    "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "ray": 'echo "$@" > $HOME/ray; echo "$RAY_AUTH_TOKEN" > $HOME/token; while [ "$1" != -- ]; do shift; done; shift; '
    'exec "$@"',
}
"""Slurm and Ray of a cluster whose first machine is this one."""

GRID = """
[[data]]
source = "tiny"
[[subject]]
model = "scripted/liar"
[[judge]]
model = "scripted/judge"
"""


def run_slurm_ray(folder: Path, env: dict[str, str], grid: str) -> subprocess.CompletedProcess[str]:
    for name, script in STANDINS.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "grid.toml").write_text(grid)
    slurm = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": "123456", "SLURM_JOB_NUM_NODES": "2"}
    command = ["bash", str(EXAMPLES / "slurm-ray.sbatch"), "grid.toml", "out"]
    return subprocess.run(command, cwd=folder, env=env | slurm, capture_output=True, text=True, check=False)


def test_an_allocation_of_slurm_is_a_ray_cluster_that_a_sweep_runs_on(tmp_path: Path, programs: dict[str, str]):
    """With a token of its own. The same job again continues."""
    for _ in range(2):
        done = run_slurm_ray(tmp_path, programs, GRID)
        assert done.returncode == 0, done.stderr
        assert "1 of 1 units are complete" in done.stdout
    said = (tmp_path / "ray").read_text()
    assert said.startswith("symmetric-run --address 127.0.0.1:23456 --min-nodes 2 -- unmask sweep grid.toml --out out")
    assert len((tmp_path / "token").read_text().strip()) == 64
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1


def test_the_examples_of_slurm_ask_for_what_they_use():
    """An array job has a task for every shard, a sweep one task on every node."""
    array, sweep = ((EXAMPLES / name).read_text() for name in ("slurm.sbatch", "slurm-ray.sbatch"))
    assert "#SBATCH --array=0-15\n" in array
    assert '"${SHARDS:-16}"' in array
    assert "#SBATCH --ntasks-per-node=1\n" in sweep
    assert "#SBATCH --gpus-per-node=" in sweep
