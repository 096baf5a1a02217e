"""Grown run folders: they are what they say, and are read once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import unmask
from bench.grown import Grown, Shape, grow
from bench.planted import expected, plant, write_jsonl
from bench.process import Served, serving
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


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(scenarios=24, profile="steady", takes=2) as endpoint:
        yield endpoint


def ask(served: Served, folder: Path) -> dict[str, str]:
    data = write_jsonl(plant(24, takes=2, profile="steady"), folder / "planted.jsonl")
    where = {"base_url": served.url, "judge_base_url": served.url}
    done = unmask.run(data=data, model="openai/mock", judge="openai/judge", out=folder / "run", takes=2, **where)
    return {row.id: row.verdict for row in done.rows()}


def test_a_run_continues_where_it_stopped(served, tmp_path):
    """What the journal holds is not asked again, what it lacks is; the verdicts are as planted."""
    whole = ask(served, tmp_path)
    assert whole == {one.scenario.id: expected(one, takes=2)[0] for one in plant(24, takes=2, profile="steady")}
    assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}
    file = tmp_path / "run" / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    assert ask(served, tmp_path) == whole
    assert served.stats()["answered"]["subject"] == len(lines) + len(lines) - len(lines) * 2 // 3


def test_the_bench_measures_a_resume_and_a_score(capsys):
    assert measure(600, 0, ["resume", "score"])
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["resume", "score"]
