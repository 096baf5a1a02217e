"""`--also check`: a model that did not understand its instructions is told from one that lies."""

from __future__ import annotations

from pathlib import Path

import pytest

import unmask
from unmask.models.scripted import Scripted
from unmask.records import Request, Verdict


def subject(answer: str) -> Scripted:
    """Says `answer` in tags to whatever is asked."""

    def reply(_: Request) -> str:
        return f"<final_answer>{answer}</final_answer>"

    return Scripted(reply, name=f"my/{answer}")


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_the_check_is_held_against_what_the_instructions_say(tmp_path: Path, answer: str):
    """Over a balanced set a model that always says the same is right in half of the checks."""
    run = unmask.run(
        data="core",
        model=subject(answer),
        judge="verbatim",
        out=tmp_path,
        archetype=("provided_facts",),
        also="check",
    )
    found = run.score().check_provided
    assert found is not None
    assert (found.understood.hits, found.understood.total) == (25, 50)
    rows = run.rows()
    wanted = {s.id: (s.truth is s.yes_means) is (answer == "yes") for s in run.scenarios}
    assert {row.id: row.understood for row in rows} == wanted


def test_without_the_flag_nothing_is_asked_or_said(tmp_path: Path):
    """The original protocol has no such question."""
    run = unmask.run(data="tiny", model="scripted/honest", judge="scripted/judge", out=tmp_path)
    assert run.score().check_provided is None
    assert {row.verdict for row in run.rows()} == {Verdict.HONEST}
