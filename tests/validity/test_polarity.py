"""D2: which side *yes* means, learnt by one judge, moves no other judge's numbers, and shows where it differs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import unmask
from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.models.scripted import Scripted, answer_as_judge, open_scripted
from unmask.records import Archetype, Letter, Request

ASKED = [scenario for scenario in load("core").scenarios if scenario.archetype is Archetype.KNOWN_FACTS][:20]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


def honest_subject() -> Scripted:
    """Knows everything and states it; asked directly it says no more than yes or no, in tags."""
    honest = open_scripted("scripted/honest", scenarios=ASKED)
    indirect = {question for scenario in ASKED for question in scenario.indirect}

    def reply(request: Request) -> str:
        if request.messages[-1].content in indirect:
            return "People see this differently."
        text = honest._reply(request)
        assert isinstance(text, str)
        return text.rpartition("\n")[2] if "<final_answer>" in text else text

    return Scripted(reply, name="scripted/subject")


def judge(name: str, *, wrong: bool, stubborn: bool = False) -> Scripted:
    """Reads words rightly. What *yes* means it gets right in both orders of the statements, or wrong in both; one that
    is stubborn says A whatever stands there."""

    def reply(request: Request) -> str:
        system, shown = (message.content for message in request.messages)
        if not system.startswith("You are shown a yes/no question"):
            return answer_as_judge(request)
        scenario = next(scenario for scenario in ASKED if str(scenario.direct) in shown)
        a, b = scenario.statements
        exchanged = f"A: {b}\nB: {a}" in shown
        first = stubborn or ((scenario.yes_means is Letter.A) != wrong) != exchanged
        return f"So.\nAnswer: {'A' if first else 'B'}"

    return Scripted(reply, name=name)


def run(data: Path, out: Path, name: str, *, wrong: bool) -> unmask.Run:
    return unmask.run(data=data, model=honest_subject(), judge=judge(name, wrong=wrong), out=out)


def write_data(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    write_jsonl([msgspec.structs.replace(scenario, yes_means=None) for scenario in ASKED], path=path)
    return path


def test_d02_a_judge_with_polarity_backwards_moves_no_later_run_of_another_judge(tmp_path: Path):
    """P(lie) of the second judge on the same data is what it is on data nobody has judged: 0 %, not 100 %."""
    clean, used = write_data(tmp_path / "clean.jsonl"), write_data(tmp_path / "used.jsonl")
    alone = run(clean, tmp_path / "alone", "scripted/strong", wrong=False).score().overall
    weak = run(used, tmp_path / "weak", "scripted/weak", wrong=True).score().overall
    after = run(used, tmp_path / "after", "scripted/strong", wrong=False)
    assert weak.p_lie.value == 1.0
    assert after.score().overall.p_lie == alone.p_lie
    assert after.score().overall.accuracy == alone.accuracy
    assert alone.p_lie.value == 0.0
    assert {scenario.yes_means for scenario in after.scenarios} == {None}


def test_d02_a_judge_that_likes_one_letter_makes_no_lies(tmp_path: Path):
    """Asked once it would take *yes* for statement A throughout, and turn the beliefs of half the questions round. In
    both orders it names no statement twice, so nothing is read by rule."""
    data, reader = write_data(tmp_path / "d.jsonl"), judge("scripted/likes-a", wrong=False, stubborn=True)
    done = unmask.run(data=data, model=honest_subject(), judge=reader, out=tmp_path / "run")
    assert {scenario.yes_means for scenario in ASKED} == {Letter.A, Letter.B}
    assert done.score().overall.p_lie.value == 0.0


def test_d02_compare_names_the_polarity_where_two_runs_took_different_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The same model, judge and data: all that differs is what *yes* means, and it is listed under how replies are
    read. Where two runs took the same sides it is not."""
    data, runs = write_data(tmp_path / "d.jsonl"), []
    for name, wrong in (("one", False), ("two", True), ("three", False)):
        monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / name))  # three machines
        runs.append(run(data, tmp_path / name / "run", "scripted/judge-x", wrong=wrong))
    apart = {setting.name: setting for setting in unmask.compare([runs[0], runs[1]]).differs}
    assert set(apart) == {"polarity"}
    assert apart["polarity"].reading
    assert len(set(apart["polarity"].values)) == 2
    assert unmask.compare([runs[0], runs[2]]).differs == ()
