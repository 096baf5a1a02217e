"""Within a margin: equal judges, judges that find more lies, few replies, unread ones; and `RUN@JUDGE`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import unmask
from tests import made_runs
from tests.analysis.labelled import also_read, dataset, made, reader
from tests.shown import show
from unmask.analysis.compare import Comparison, compare
from unmask.errors import MissingError, UsageError
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.records import Request
from unmask.runs.run import Run
from unmask.scoring.guards import GuardLimits
from unmask.stats.margin import MarginVerdict

COUNT = 560
LIES = set(range(0, COUNT, 4))
"""A quarter of the replies."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run, read by several judges."""
    path = tmp_path_factory.mktemp("margin")
    run = made(path / "run", dataset(COUNT), lies=LIES)
    truths = [place for place in range(COUNT) if place not in LIES]
    also_read(run, set(), name="scripted/twin")
    also_read(run, set(truths[:28]), name="scripted/harsh")  # 5 points more
    even = set(truths[:11]) | set(sorted(LIES)[:11])  # as many more as fewer
    also_read(run, even, name="scripted/even")
    also_read(run, set(truths[:12]), name="scripted/near")  # 2.1 points more
    unmask.judge(run.path, judge=reader(name="scripted/mute", unread=set(range(14))))
    return path


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = made(tmp_path_factory.mktemp("few") / "run", dataset(60), lies=set(range(15)))
    return also_read(run, {20, 21, 3}, name="scripted/second")


@cache
def read(folder: Path, judge: str, margin: float = 0.02) -> Comparison:
    return compare(folder / "run", f"{folder / 'run'}@scripted/{judge}", margin=margin)


def see_no_side(request: Request) -> str:
    """Reads as `scripted/judge` does, but finds no side in what is said about every tenth case."""
    text = request.messages[-1].content
    return "Answer: C" if re.search(r"case s-\d*0\b", text) else answer_as_judge(request)


def in_one_line(found: Comparison) -> str:
    return " ".join(show(found, width=80).split())


def test_equal_judges_are_equivalent(folder):
    """560 replies read alike. How often two judges agree letter by letter, another command says."""
    found = read(folder, "twin")
    pair = found.pairs[0]
    assert (pair.a, pair.b) == ("run", "run@scripted/twin")
    assert (pair.within.verdict, pair.difference.value) == (MarginVerdict.EQUIVALENT, 0)
    text = in_one_line(found)
    assert (
        "EQUIVALENT, margin 2 points: a difference of 2 points or more is ruled out; 90 % interval [-0.5, 0.5]" in text
    )
    assert f"unmask agree {folder / 'run'}" in show(found)


@pytest.mark.parametrize(
    ("judged", "verdict", "why", "points"),
    [
        (("even", 0.02), MarginVerdict.EQUIVALENT, "a difference of 2 points or more is ruled out", 0),
        (("harsh", 0.02), MarginVerdict.DIFFERENT, "a difference of more than 2 points is shown", 5),
        (("harsh", 0.08), MarginVerdict.EQUIVALENT, "a difference of 8 points or more is ruled out", 5),
        (
            ("near", 0.02),
            MarginVerdict.NOT_SHOWN,
            "the difference is too close to 2 points for these scenarios to tell",
            2.1,
        ),
    ],
)
def test_a_margin_is_kept_broken_or_neither_is_shown(folder, judged, verdict, why, points):
    """Errors of 4 % that cancel each other, 5 points more lies, within a wider margin, and 2.1 points."""
    pair = read(folder, *judged).pairs[0]
    assert (pair.within.verdict, pair.within.why) == (verdict, why)
    assert pair.difference.value == pytest.approx(points / 100, abs=0.0005)
    assert len(pair.stopped_lying) == (11 if judged[0] == "even" else 0)


def test_unread_replies_can_change_the_answer(folder):
    """14 of 560 replies that one judge did not read; four of them are lies by the first. Not within 5 points."""
    found = read(folder, "mute")
    difference, within = found.pairs[0].difference, found.pairs[0].within
    assert (found.runs[1].unjudged, difference.n) == (14, COUNT - 14)
    assert (difference.worst_low, difference.worst_high) == pytest.approx((-4 / COUNT, 10 / COUNT))
    assert (within.verdict, within.why) == (MarginVerdict.NOT_SHOWN, "it depends on what was not judged")
    assert read(folder, "mute", 0.05).pairs[0].within.verdict is MarginVerdict.EQUIVALENT


def test_one_judge_for_all_runs_leaves_those_with_their_own(folder):
    """`--judge` reads where no judge stands behind the `@`."""
    run = folder / "run"
    one = compare(run, f"{run}@scripted/even", judge="scripted/harsh").pairs[0]
    other = compare(f"{run}@scripted/harsh", f"{run}@scripted/even").pairs[0]
    assert one.difference == other.difference
    assert (other.a, other.b) == ("run@scripted/harsh", "run@scripted/even")


def test_one_reading_is_not_compared_with_itself(few):
    """The message names the other judge that there is."""
    with pytest.raises(UsageError, match="named twice, read by the same judge") as refused:
        compare(few, f"{few.path}@scripted/reads")
    assert f"{few.path}@scripted/second" in refused.value.advice


@pytest.mark.parametrize(
    ("named", "error", "said"),
    [
        ("{run}@", UsageError, "names no judge"),
        ("{run}@nobody", UsageError, "has no readings by 'nobody'"),
        ("{run}-not@nobody", MissingError, "is not a run folder"),
    ],
)
def test_a_reading_that_is_not_there_is_named(few, named, error, said):
    with pytest.raises(error, match=said):
        compare(few, named.format(run=few.path))


@pytest.mark.parametrize("margin", [0, -0.02, 1, 2, float("nan")])
def test_a_margin_that_is_no_share_is_refused(few, margin):
    """2 is not 2 points."""
    with pytest.raises(UsageError, match="--margin"):
        compare(few, f"{few.path}@scripted/second", margin=margin)


def test_a_margin_larger_than_the_lies_is_said(tmp_path):
    """With 1 % lies, a judge that finds one of six is equivalent within 2 points."""
    run = made(tmp_path / "run", dataset(600), lies=set(range(6)))
    also_read(run, set(range(5)), name="scripted/dim")
    found = compare(run, f"{run.path}@scripted/dim", margin=0.02, guards=GuardLimits(min_belief=0, min_engagement=0))
    assert found.pairs[0].within.verdict is MarginVerdict.EQUIVALENT
    assert "A run without any lie would be equivalent too" in in_one_line(found)


def test_a_judge_with_one_letter_for_everything_makes_no_claim(tmp_path):
    """Its readings are refused, as without a margin."""
    run = made(tmp_path / "run", dataset(60), lies=set())
    unmask.judge(run.path, judge=Scripted(lambda _: "Answer: A", name="scripted/blind"))
    pair = compare(run, f"{run.path}@scripted/blind", margin=0.5).pairs[0]
    assert "run: the judge gave A for every one of the 60 replies" in pair.not_called
    assert pair.within.verdict is MarginVerdict.NOT_SHOWN
    assert pair.within.why == "a guard refuses one of the runs, so nothing is claimed"


def test_what_lazy_effort_did_not_ask_is_incomplete(tmp_path):
    """The first judge found no belief, so no statement was asked for; the second one would need it."""

    def answer(letter: str) -> Scripted:
        return Scripted(lambda request: f"Answer: {letter}", name=f"scripted/always-{letter}")

    run = made_runs.made(tmp_path / "run", ["honest"] * 9, tags="judge", judge=answer("C"))
    unmask.judge(run.path, judge=answer("A"))
    found = compare(run, f"{run.path}@scripted/always-A")
    assert [side.undecided for side in found.runs] == [0, 6]
    assert f"unmask score {run.path} --judge scripted/always-A" in in_one_line(found)


def test_no_line_is_wider_than_80_columns(folder, few):
    for found in (
        read(folder, "mute"),
        read(folder, "harsh"),
        compare(few, f"{few.path}@scripted/second", margin=0.02),
    ):
        lines = re.sub(re.escape(str(folder)), "runs", show(found, width=80)).splitlines()
        assert max(len(line) for line in lines if str(few.path) not in line) <= 80
