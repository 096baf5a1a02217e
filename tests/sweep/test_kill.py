"""SIGKILL of the driver of a sweep, again and again, with every shape of run."""

from __future__ import annotations

import random

import pytest

from bench.planted import climb, plant, write_jsonl
from bench.process import serving
from tests.faults.test_kill import once, until, verdicts
from tests.sweep.sweeping import bought, folders, row, start, sweep, write_grid

SCENARIOS, KILLS = 24, 3
SHAPES = {
    "plain": (1, ""),
    "control": (1, "control = true"),
    "ladder": (4, ""),
    "misleads": (1, 'control = true\nalso = "misleads"'),
}
"""The rungs of each fact, and options of the grid."""
READINGS = ("readings/openai_judge.jsonl", "readings/openai_judge-2.jsonl")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_driver_killed_again_and_again_ends_with_the_same_verdicts_and_no_call_twice(tmp_path, shape):
    """Two units and two judges. An answer in flight at a kill, at most one for each connection, is bought again."""
    rungs, options = SHAPES[shape]
    plants = climb(plant(SCENARIOS, seed=1, profile="steady"), rungs)
    with serving(scenarios=SCENARIOS, seed=1, profile="steady", latency=0.02, rungs=rungs) as endpoint:
        judges = row("judge", "judge", endpoint), row("judge", "judge-2", endpoint)
        grids = []
        for name in ("whole", "killed"):
            (tmp_path / name).mkdir()
            write_jsonl(plants, tmp_path / name / "planted.jsonl")
            grid = write_grid(tmp_path / name, row("subject", "a", endpoint), *judges, matrix="seed = [1, 2]")
            grid.write_text(grid.read_text().replace("[options]", f"[options]\n{options}"))
            grids.append(grid)
        whole, killed = grids
        assert sweep(whole).returncode == 0
        total = sum(endpoint.stats()["answered"].values())
        endpoint.reset()
        for point in sorted(random.Random(1).sample(range(5, total - 5), KILLS)):
            process = start(killed)
            until(endpoint, point, process)
            process.kill()
            process.communicate()
        done = sweep(killed)
        assert done.returncode == 0, done.stdout + done.stderr
        answered = sum(endpoint.stats()["answered"].values())
    kept = sum(bought(folder, name) for folder in folders(killed) for name in ("replies.jsonl", *READINGS))
    assert 0 <= answered - kept <= 8 * KILLS
    assert [once(folder) for folder in folders(killed)] == [once(folder) for folder in folders(whole)]
    assert [verdicts(folder) for folder in folders(killed)] == [verdicts(folder) for folder in folders(whole)]
