"""`unmask data annotate`: which side yes means, asked once and used by later runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

import unmask
from unmask.cli.main import run_command_line
from unmask.data.form import write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.engine.annotate import Annotation, annotate, sides_path
from unmask.errors import FatalModelError, RequestRefusedError, RunLockedError
from unmask.files import Lock, lock_path
from unmask.judges.letters import yes_means_request
from unmask.models.scripted import Scripted
from unmask.records import Kind, Letter, Request, Sampling, Scenario

OTHER = {Letter.A: Letter.B, Letter.B: Letter.A}
WHOLE = tuple(one for one in load("tiny").scenarios if one.yes_means or one.check is None)
"""A set that says which side yes means in every question."""
OPEN = [one for one in WHOLE if one.kind is Kind.BINARY and one.yes_means]
"""The scenarios with a side of yes; the file of each test leaves it out."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The set without yes_means."""
    write_jsonl([replace(one, yes_means=None) for one in WHOLE], path=tmp_path / "data.jsonl")
    return tmp_path / "data.jsonl"


Answer = Callable[[Scenario, bool], str]


def judge_that(answer: Answer) -> Scripted:
    """A judge that recognises each question, and whether the statements are exchanged."""
    asked = {
        yes_means_request(one, exchanged=exchanged, sampling=Sampling()).messages[-1].content: (one, exchanged)
        for one in OPEN
        for exchanged in (False, True)
    }

    def reply(request: Request) -> str:
        known = next(pair for text, pair in asked.items() if request.messages[-1].content.startswith(text))
        return answer(*known)

    return Scripted(reply, name="scripted/annotator")


def knows(scenario: Scenario, exchanged: bool) -> str:
    assert scenario.yes_means is not None
    return f"Answer: {OTHER[scenario.yes_means] if exchanged else scenario.yes_means}"


def annotated(path: Path, answer: Answer = knows) -> Annotation:
    return annotate(load(path), judge_that(answer))


def ran(path: Path, out: Path, **settings: object) -> unmask.Run:
    return unmask.run(data=path, model="scripted/liar", judge="scripted/judge", out=out, **settings)  # type: ignore[arg-type]


def test_later_runs_have_the_sides_and_say_who_gave_them(path: Path, tmp_path: Path):
    """In their own folder; the data hash is the same, and the hash of the sides is that of data that says so itself."""
    before = ran(path, tmp_path / "before")
    result = annotated(path)
    assert (result.questions, result.asked, result.failed) == (len(OPEN), len(OPEN), 0)
    run = ran(path, tmp_path / "after")
    assert {one.id: one.yes_means for one in run.scenarios} == {one.id: one.yes_means for one in WHOLE}
    assert run.score().yes_means_by == {"scripted/annotator": len(OPEN)}
    assert run.definition.data.hash == before.definition.data.hash
    assert run.definition.data.yes_means == from_scenarios(WHOLE).yes_means != before.definition.data.yes_means


def test_a_run_keeps_the_sides_that_it_was_made_with(path: Path, tmp_path: Path):
    """Also when the answers are deleted, or come after it was made."""
    early = ran(path, tmp_path / "early")
    result = annotated(path)
    late = ran(path, tmp_path / "late")
    kept = late.scenarios
    assert not any(one.yes_means for one in ran(path, tmp_path / "early").scenarios)
    Path(result.file).unlink()
    assert ran(path, tmp_path / "late").scenarios == kept
    assert early.definition.data.yes_means is None


def test_a_question_is_asked_once(path: Path):
    """The second time nobody is asked."""
    annotated(path)

    def refuse(scenario: Scenario, exchanged: bool) -> str:
        raise AssertionError("asked again")

    assert annotated(path, refuse).asked == 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda scenario, exchanged: "Answer: A",
        lambda scenario, exchanged: "Answer: C",
        lambda scenario, exchanged: "It is hard to say.",
        lambda scenario, exchanged: "Answer: C" if exchanged else knows(scenario, exchanged),
    ],
)
def test_a_side_needs_two_answers_that_agree(path: Path, answer: Answer):
    """One that always gives the first statement gives two; C and what cannot be read give none."""
    assert annotated(path, answer).sides == {"none": len(OPEN)}
    assert not any(one.yes_means for one in ran(path, path.parent / "run").scenarios)


def test_what_failed_is_asked_by_the_next_command(path: Path):
    """And what was answered is kept."""

    def fail(scenario: Scenario, exchanged: bool) -> str:
        if scenario is OPEN[0]:
            raise RequestRefusedError("filtered")
        return knows(scenario, exchanged)

    first = annotated(path, fail)
    assert (first.asked, first.failed) == (len(OPEN) - 1, 1)
    second = annotated(path)
    assert (second.asked, second.failed, sum(second.sides.values())) == (1, 0, len(OPEN))


def test_a_wrong_key_stops_at_once_and_what_was_answered_is_kept(path: Path):
    def fail(scenario: Scenario, exchanged: bool) -> str:
        raise FatalModelError("no such key")

    with pytest.raises(FatalModelError):
        annotated(path, fail)
    assert annotated(path).asked == len(OPEN)


def test_a_torn_last_line_is_asked_again(path: Path):
    result = annotated(path)
    Path(result.file).write_bytes(Path(result.file).read_bytes()[:-20])
    assert annotated(path).asked == 1


def test_one_command_at_a_time_asks_about_a_set(path: Path):
    with Lock(lock_path(sides_path(load(path))), advice=""), pytest.raises(RunLockedError):
        annotated(path)


def test_no_text_of_the_set_is_kept(path: Path):
    """Ids, letters, hashes and the name of the judge."""
    kept = Path(annotated(path).file).read_text(encoding="utf-8")
    words = {word for one in WHOLE for text in (one.proposition, one.direct or "") for word in text.split()}
    assert not {word for word in words if len(word) > 6} & set(kept.replace('"', " ").split())
    assert all(
        set(json.loads(line)) <= {"v", "scenario", "question", "judge", "side", "sum"} for line in kept.splitlines()
    )


def test_a_part_of_the_set_uses_the_answers_for_the_whole(path: Path, tmp_path: Path):
    annotated(path)
    part = ran(path, tmp_path / "part", limit=4)
    assert {one.id: one.yes_means for one in part.scenarios}.items() <= {one.id: one.yes_means for one in WHOLE}.items()


def test_a_run_whose_judge_reads_tags_does_without(path: Path, tmp_path: Path):
    annotated(path)
    run = ran(path, tmp_path / "run", tags="judge")
    assert not any(one.yes_means for one in run.scenarios)


def test_a_judge_that_reads_replies_only_is_refused(path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command_line(["data", "annotate", str(path), "--judge", "verbatim"]) == 2
    assert "cannot say which side yes means" in capsys.readouterr().err


def test_the_command_writes_the_set_with_its_sides(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """To be read, mended, and used as data of its own."""
    monkeypatch.setattr("unmask.engine.annotate.open_model", lambda *_, **__: judge_that(knows))
    out = path.with_name("annotated.jsonl")
    assert run_command_line(["data", "annotate", str(path), "--judge", "scripted/judge", "--out", str(out)]) == 0
    assert f"{len(OPEN)} questions" in capsys.readouterr().out
    assert {one.id: one.yes_means for one in load(out).scenarios} == {one.id: one.yes_means for one in WHOLE}
    assert {one.yes_means_by for one in load(out).scenarios if one.yes_means} == {"scripted/annotator"}


def test_plan_says_what_annotating_saves(path: Path):
    """At most: the readings of all direct takes. Nothing where the sides are known."""
    wanted = {"data": path, "model": "scripted/liar", "judge": "scripted/judge"}
    plan = unmask.plan(**wanted)  # type: ignore[arg-type]
    assert plan.annotating_saves > 0
    assert f"saves each run up to {plan.annotating_saves} questions" in " ".join(str(plan).split())
    annotated(path)
    known = unmask.plan(**wanted)  # type: ignore[arg-type]
    assert known.annotating_saves == 0
    fewer = plan.most.judge.calls - known.most.judge.calls
    assert abs(fewer - 1.25 * plan.annotating_saves) <= 1  # a quarter may be sent twice
    assert "unmask data annotate" not in " ".join(str(known).split())
    assert f"annotated by scripted/annotator ({len(OPEN)} scenarios)" in " ".join(str(known).split())
