"""Grown run folders: they are what they say, and are read once."""

from __future__ import annotations

import time

import pytest

from bench.grown import Grown, Shape, grow
from bench.scale import measure
from unmask.runs.run import open_run


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Grown:
    return grow(tmp_path_factory.mktemp("grown") / "run", Shape(3_000))


def test_a_grown_run_scores_as_planted_and_has_nothing_left_to_ask(grown):
    """Every verdict is the one that the oracle of the planted scenarios expects."""
    score = open_run(grown.run).score()
    assert (score.overall.counts, score.complete_with) == (grown.counts, None)


def test_looking_up_every_scenario_reads_the_files_once(grown):
    """A loop over `run[id]` takes what `rows()` does, and gives the same."""
    run = open_run(grown.run)
    begin = time.process_time()
    rows = run.rows()
    of_rows = time.process_time() - begin
    again = open_run(grown.run)
    begin = time.process_time()
    assert [again[scenario.id] for scenario in again.scenarios] == rows
    assert time.process_time() - begin < 3 * of_rows + 0.5


def test_the_bench_measures_a_resume_and_a_score(capsys):
    assert measure(600, 0, ["resume", "score"])
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["resume", "score"]
