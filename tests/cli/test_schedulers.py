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
from unmask.cli.main import run_command_line

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


def test_the_slurm_array_has_a_task_for_every_shard():
    text = (EXAMPLES / "slurm.sbatch").read_text()
    assert "#SBATCH --array=0-15\n" in text
    assert '"${SHARDS:-16}"' in text


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


FAKE_RAY = """
class remote:
    def __init__(self, **options): assert options["max_retries"] > 0
    def __call__(self, function): self.function = function; return self
    def remote(self, *given): return self.function(*given)
init, get = (lambda: None), list
"""


def test_the_tasks_of_a_ray_job_make_every_shard_and_merge_them(tmp_path: Path, programs: dict[str, str]):
    config, job = parse("kuberay.yaml")
    name = job["spec"]["entrypoint"].rpartition("/")[2]
    (tmp_path / "ray.py").write_text(FAKE_RAY)
    (tmp_path / name).write_text(config["data"][name].replace("/shared-disk", str(tmp_path)))
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = programs | {"PYTHONPATH": paths, "SHARDS": "2"}
    done = subprocess.run(
        [sys.executable, name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "exit codes of the shards: [0, 0]" in done.stdout
    assert len(unmask.open_run(tmp_path / "runs" / "liar").rows()) == 12
    cluster = job["spec"]["rayClusterSpec"]
    pods = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    mounted = [pod["template"]["spec"]["containers"][0]["volumeMounts"] for pod in pods]
    assert mounted[0] == mounted[1]


def test_a_node_of_skypilot_makes_its_shard(tmp_path: Path, programs: dict[str, str]):
    (task,) = parse("skypilot.yaml")
    variables = {"SKYPILOT_NODE_RANK": "1", "SKYPILOT_NUM_NODES": str(task["num_nodes"]), "WORK": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", task["run"]], env=programs | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(unmask.open_run(tmp_path / "shards" / "liar" / "2-of-4").definition.data.shard) == "2/4"


def test_a_default_folder_is_named_by_the_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert (
        run_command_line(["run", "scripted/liar", "--judge", "scripted/judge", "--data", "tiny", "--shard", "2/12"])
        == 0
    )
    assert (tmp_path / "shards" / "liar" / "02-of-12" / "run.json").is_file()
    assert (
        run_command_line(
            ["run", "--plan", "scripted/liar", "--judge", "scripted/judge", "--data", "tiny", "--shard", "x"]
        )
        == 2
    )
    assert "--shard 'x' is no shard" in capsys.readouterr().err
