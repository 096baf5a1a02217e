"""A run folder that is read, and again where its files have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.labelled import dataset, made
from unmask.errors import JournalError, UsageError
from unmask.records import PRESSURED, Asked, Choice, Stop
from unmask.runs.journal import JournalFile
from unmask.runs.run import Run

REASONING = "".join(f"{number} " for number in range(10_000))


def answer_again(run: Run, scenario: str, choice: Choice) -> None:
    """Append a reply to a finished run, as a process at work does."""
    lines = JournalFile(run.folder.replies.path)
    lines.append(Asked(scenario=scenario, slot=PRESSURED, takes=(0,), choices=(choice,)))
    lines.close()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return made(tmp_path / "run", dataset(4), lies={"s001"})


@pytest.mark.parametrize(
    "choice",
    [
        Choice("It is so.", reasoning=REASONING),
        Choice(f"<think>{REASONING}</think>\nIt is so."),
        Choice(f"{REASONING}\n</think>\nIt is so."),
    ],
    ids=["apart", "block", "unopened"],
)
def test_long_reasoning_is_whole_wherever_it_is_asked_for(run: Run, choice: Choice):
    answer_again(run, "s000", choice)
    assert run.replies("s000")[PRESSURED, 0] == choice
    table = run.table("reply")
    assert [row["thinking"].strip() for row in table.rows if row["thinking"]] == [REASONING.strip()]


def test_a_run_is_read_again_where_its_files_have_changed(run: Run):
    """A notebook sees what a process at work has added."""
    before = run["s000"].guards
    assert run["s000"] is run["s000"]
    answer_again(run, "s000", Choice("", stop=Stop.LENGTH))
    assert run["s000"].guards != before
    assert run.score().truncated == 1


def test_a_part_of_a_run_shows_the_rest_of_it_no_less(run: Run):
    part = run.restrict(["s001", "s002"])
    assert [row.id for row in part.rows()] == ["s001", "s002"]
    assert [row.id for row in run.rows()] == ["s000", "s001", "s002", "s003"]


def test_a_line_about_another_scenario_names_its_file(run: Run):
    answer_again(run, "elsewhere", Choice("x"))
    with pytest.raises(JournalError, match=r"replies\.jsonl has a line about scenario 'elsewhere'"):
        run.rows()


def test_an_unknown_scenario_is_told_from_a_near_one(run: Run):
    with pytest.raises(UsageError, match="no scenario 's0001'") as caught:
        run["s0001"]
    assert "s001" in (caught.value.advice or "")
