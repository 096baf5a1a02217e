"""Grown run folders: they are what they say, and are read once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import unmask
from bench.planted import expected, plant, write_jsonl
from bench.process import Served, serving
from bench.scale import __main__ as command
from bench.scale.grown import Grown, Shape, grow
from bench.scale.page import Row, exponent, page
from unmask.runs.run import open_run


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Grown:
    return grow(tmp_path_factory.mktemp("grown") / "run", Shape(3_000))


def test_a_grown_run_scores_as_planted(grown):
    """Every verdict of the score is the one that the oracle of the planted scenarios expects."""
    assert open_run(grown.run).score().overall.counts == grown.counts


def test_a_grown_run_has_nothing_left_to_ask(grown):
    """No scenario is undecided."""
    assert open_run(grown.run).score().complete_with is None


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


def test_a_run_is_asked_and_judged_as_planted(served, tmp_path):
    """Read scenario by scenario and let go when finished, with the planted verdicts and nothing sent twice."""
    served.reset()
    found = ask(served, tmp_path)
    assert found == {one.scenario.id: expected(one, takes=2)[0] for one in plant(24, takes=2, profile="steady")}
    assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}


def test_a_run_continues_where_it_stopped(served, tmp_path):
    """What the journal holds is not asked again, what it lacks is."""
    served.reset()
    whole = ask(served, tmp_path)
    file = tmp_path / "run" / "replies.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))
    assert ask(served, tmp_path) == whole
    assert served.stats()["answered"]["subject"] == len(lines) + len(lines) - len(lines) * 2 // 3


def row(what: str, replies: int, seconds: float | None, *, peak: float = 50.0) -> Row:
    return Row(
        what=what, replies=replies, scenarios=replies // 13, megabytes=1.0, seconds=seconds, wall=1.0, peak_mb=peak
    )


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_that_of_the_growth(power):
    """Fitted over long journals; the constant part of short ones does not count."""
    rows = [row("score", size, 5.0 + size**power / 1e4) for size in (1_000, 3_000)]
    rows += [row("score", size, size**power / 1e4) for size in (15_000, 50_000, 150_000)]
    assert exponent(rows) == pytest.approx(power)


def test_the_page_names_goals_that_were_missed():
    """Memory above the limit, and growth that is not linear."""
    rows = [row("score", 15_000, 1.0, peak=3000.0), row("score", 150_000, 30.0)]
    shown = page(rows, limit=60, machine="m")
    assert shown.count("**missed**") == 3  # no score of these was checked either


def test_the_command_measures_and_leaves_nothing_behind(tmp_path):
    """Run folders are removed; the figures and the page stay."""
    work, kept, results = tmp_path / "work", tmp_path / "kept.json", tmp_path / "R.md"
    work.mkdir()
    flags = ["--replies", "600", "--what", "resume", "score", "--work", str(work)]
    assert command.main([*flags, "--kept", str(kept), "--results", str(results)]) == 0
    assert list(work.iterdir()) == []
    found = msgspec.json.decode(kept.read_bytes(), type=list[Row])
    assert [(one.what, one.right) for one in found] == [("resume", None), ("score", True)]
    assert "## Scale" in results.read_text()
