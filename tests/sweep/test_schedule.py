"""Which server is placed next, as a rule and by a simulated clock."""

from __future__ import annotations

from bench.sweep_simulated import Cluster, draw_loads, simulate
from unmask.sweep.schedule import ServerJob, pick_next


def job(name: str, gpus: int, seconds: float) -> ServerJob:
    return ServerJob(name=name, gpus=gpus, seconds=seconds)


def test_the_longest_that_fits_comes_first_and_wide_ones_count_for_more():
    short, long, wide = job("short", 1, 10), job("long", 1, 100), job("wide", 4, 60)
    assert pick_next([short, long, wide], {"gpus": 8}) == wide
    assert pick_next([short, long, wide], {"gpus": 3}) == long
    assert pick_next([short], {"gpus": 0}) is None
    assert pick_next([short], {"gpus": 8, "servers": 0}) is None
    assert pick_next([], {"gpus": 8}) is None


def test_a_server_without_gpus_fits_where_none_are_free():
    assert pick_next([job("api", 0, 1)], {"gpus": 0}) == job("api", 0, 1)


def test_300_models_on_64_gpus_end_within_a_quarter_of_the_lower_bound():
    """With load times, a walltime that cuts long models into pieces, and expectations that are wrong by 30 %."""
    made = [simulate(draw_loads(300, seed=seed), Cluster(), seed=seed) for seed in range(3)]
    assert max(makespan.ratio for makespan in made) <= 1.25
    assert all(makespan.ratio >= 1 and makespan.servers > 300 for makespan in made)
