"""`unmask sweep` with servers that it starts on this machine: in turn, failing, refused, and with adapters."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.sweep.sweeping import folders, lines, start, sweep, write_grid
from tests.sweep.trees import ROOT, alive, await_true, read_pids

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")

VERBATIM = '[[judge]]\nmodel = "verbatim"'
LOCAL = "[local]\ngpus = [0]"


def served(kind: str, name: str, *flags: str, more: str = "gpus = 1") -> str:
    command = [sys.executable, str(ROOT / "tests/sweep/vllm_like.py"), "--host", "{host}", "--port", "{port}"]
    typed = json.dumps([*command, "--name", "{name}", *flags])
    return f'[[{kind}]]\nname = "{name}"\nserve = {{ command = {typed}, {more} }}'


def test_servers_take_turns_on_one_gpu_and_a_later_judge_comes_after_them(tmp_path):
    subjects = [served("subject", name, "--workers", str(tmp_path / f"pids-{name}")) for name in ("a", "b")]
    grid = write_grid(tmp_path, *subjects, VERBATIM, served("judge", "reader"), sweep=LOCAL, matrix="seed = [1, 2]")
    done = sweep(grid, "--max-unjudged", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 units are complete" in done.stdout
    assert "Task was destroyed" not in done.stderr
    assert all(lines(folder, "readings/openai_reader.jsonl") for folder in folders(grid))
    # Both units of a server were asked by one process, which is gone with its children.
    assert await_true(lambda: not alive(pid for name in "ab" for pid in read_pids(tmp_path / f"pids-{name}")))
    begun, ended = zip(*(_times(grid, name) for name in ("a", "b")), strict=True)
    assert max(begun) > min(ended)


def _times(grid: Path, name: str) -> tuple[float, float]:
    at = [line["at"] for folder in folders(grid) if folder.name.startswith(f"{name}-") for line in lines(folder)]
    return min(at), max(at)


def test_a_server_that_never_comes_up_fails_its_units_with_the_end_of_its_log_and_the_others_finish(tmp_path):
    rows = served("subject", "good"), served("subject", "bad", "--fault", "out-of-memory"), VERBATIM
    done = sweep(write_grid(tmp_path, *rows, sweep=LOCAL, matrix="seed = [1, 2]"), "--max-unjudged", "1")
    assert done.returncode == 3
    assert "2 of 4 units are complete" in done.stdout
    assert "not complete: bad, planted, seed 1; bad, planted, seed 2" in done.stdout
    assert "CUDA out of memory" in " ".join(done.stdout.split())


def test_servers_that_can_never_have_room_are_refused_before_anything_starts(tmp_path):
    """One alone, and one together with the judge, which everybody needs at the same time."""
    rows = served("subject", "good"), served("subject", "wide", more="gpus = 2"), VERBATIM
    done = sweep(write_grid(tmp_path, *rows, sweep=LOCAL))
    assert done.returncode == 2
    assert "needed at the same time: wide (2 GPUs)" in done.stderr
    rows = served("subject", "good"), served("judge", "reader")
    done = sweep(write_grid(tmp_path, *rows, sweep=LOCAL))
    assert done.returncode == 2
    assert "needed at the same time: reader (1 GPUs), good (1 GPUs)" in done.stderr
    assert not list((tmp_path / "out").glob("*/*"))


def test_ctrl_c_ends_a_server_that_is_not_up_yet(tmp_path):
    pids = tmp_path / "pids"
    rows = served("subject", "a", "--fault", "never-ready", "--workers", str(pids)), served("subject", "b"), VERBATIM
    process = start(write_grid(tmp_path, *rows, sweep=LOCAL))
    assert await_true(pids.exists)
    tree = read_pids(pids)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert await_true(lambda: not alive(tree)), alive(tree)


def test_adapters_on_one_base_are_units_of_one_server(tmp_path):
    """A server that knows vLLM's flags and refuses every name it does not serve."""
    (tmp_path / "base").mkdir()
    program = json.dumps([sys.executable, str(ROOT / "tests/sweep/vllm_like.py")])
    subject = (
        f'[[subject]]\nname = "lora-{{n}}"\nfor.n = ["a", "b"]\n'
        f'serve = {{ engine = "vllm", program = {program}, model = "base", lora = "org/adapter-{{n}}", gpus = 1 }}'
    )
    done = sweep(write_grid(tmp_path, subject, VERBATIM, sweep=LOCAL), "--max-unjudged", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 units are complete" in done.stdout
    assert len(list((tmp_path / "out" / "servers").glob("*.log"))) == 1
    for folder in folders(tmp_path / "grid.toml"):
        replies = lines(folder)
        assert replies
        assert not [reply for reply in replies if "error" in reply]
