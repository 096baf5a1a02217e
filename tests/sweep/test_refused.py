"""`unmask sweep` when a model that all units share is refused: it ends, and says why."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.models.loopback import Canned, Sent, chat, loopback_in_thread
from tests.patience import PATIENCE
from tests.sweep.sweeping import row, start, write_grid
from tests.sweep.test_local import VERBATIM, served

LOCAL = "[local]\ngpus = [0, 1]"
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")


def refuse_locked(sent: Sent) -> Canned:
    """An endpoint that takes no key for the model `locked`, and answers for all others."""
    if sent.body["model"] == "locked":
        return Canned({"error": {"message": "Incorrect API key provided"}}, 401)
    return Canned(chat("Yes. <final_answer>yes</final_answer>"))


def sweep_to_its_end(grid: Path) -> str:
    """What a sweep says that ends with exit code 3. One that hangs is killed."""
    process = start(grid)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, said
    return " ".join(said.split())


@pytest.mark.parametrize("seeds", [1, 4])
@pytest.mark.parametrize("refused", ["subject", "judge"])
def test_a_sweep_whose_subject_or_judge_is_refused_ends_with_the_reason_for_every_unit(tmp_path, refused, seeds):
    """The units that had not asked before the refusal are told, too."""
    with loopback_in_thread(refuse_locked) as endpoint:
        rows = (row(kind, "locked" if kind == refused else "open", endpoint.url) for kind in ("subject", "judge"))
        said = sweep_to_its_end(write_grid(tmp_path, *rows, matrix=f"seed = {list(range(seeds))}"))
    assert f"0 of {seeds} units are complete" in said
    assert said.count("HTTP 401: Incorrect API key provided") >= seeds
    assert sum(sent.body["model"] == "locked" for sent in endpoint.sent) <= 8


@needs_linux
@pytest.mark.parametrize("seeds", [1, 4])
@pytest.mark.parametrize("refused", ["subject", "judge"])
def test_a_sweep_whose_own_servers_refuse_it_ends_with_the_reason_for_every_unit(tmp_path, refused, seeds):
    """They answer their supervisors and nobody else."""
    locked = served(refused, "locked", "--fault", "locked", more="gpus = 1")
    with loopback_in_thread(refuse_locked) as endpoint:
        other = VERBATIM if refused == "subject" else row("subject", "open", endpoint.url)
        grid = write_grid(tmp_path, locked, other, sweep=LOCAL, matrix=f"seed = {list(range(seeds))}")
        said = sweep_to_its_end(grid)
    assert f"0 of {seeds} units are complete" in said
    assert said.count("HTTP 401") >= seeds


@needs_linux
@pytest.mark.parametrize("seeds", [1, 4])
def test_a_sweep_with_a_server_whose_judge_is_refused_by_its_endpoint_ends_with_the_reason(tmp_path, seeds):
    """The subject answers everything."""
    with loopback_in_thread(refuse_locked) as endpoint:
        rows = served("subject", "open"), row("judge", "locked", endpoint.url)
        said = sweep_to_its_end(write_grid(tmp_path, *rows, sweep=LOCAL, matrix=f"seed = {list(range(seeds))}"))
    assert f"0 of {seeds} units are complete" in said
    assert said.count("HTTP 401: Incorrect API key provided") >= seeds
