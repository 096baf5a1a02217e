"""Logs and folders of other harnesses, read again with our prompts: `unmask equivalence` of their readings and ours."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

import unmask
from bench.planted import plant
from tests.interop import make_logs
from tests.interop.made import _Judge
from tests.interop.test_logs import HERE
from tests.interop.test_reference import binary, write
from unmask.analysis.equivalence import equivalence
from unmask.errors import UsageError
from unmask.interop.importing import import_harness_run
from unmask.models.scripted import Scripted
from unmask.protocol.guards import GuardLimits
from unmask.records import Lettered, Ranged, Request
from unmask.render.terminal.equivalence import render
from unmask.runs.run import Run
from unmask.stats.equivalence import EquivalenceVerdict

LENIENT = GuardLimits(min_belief=0, min_engagement=0, max_empty=1, max_capped=1)
"""Sixteen scenarios of a log with planted failures keep no limit."""


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Run:
    """A log of task version 5-E, read again by a judge of the same name with our prompts."""
    run, _ = import_harness_run(HERE / "5-E.eval", out=tmp_path_factory.mktemp("log") / "theirs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.prose.paragraph", make_logs.prose.paragraph)
        patch.setattr("bench.replies.POOL", make_logs.replies.POOL)
        make_logs.shorten()
        plants = {item.scenario.id: item for item in plant(make_logs.SCENARIOS, seed=3, takes=3)}
        judge = Scripted(_Judge(plants), name="openai-api/loop/judge", max_n=1)
        return unmask.judge(run.path, judge=judge, judge_name="ours")


def count_unread(run: Run, judge: str | None) -> int:
    readings = [reading for row in run.rows(judge=judge) for places in row.readings.values() for reading in places]
    return sum(not isinstance(reading, Lettered | Ranged) for reading in readings)


def test_their_readings_of_a_log_are_a_and_ours_b(log):
    """The same replies, under their rules; what differs is the prompts and how the judge was called."""
    result = equivalence(log.path, f"{log.path}@ours", guards=LENIENT)
    assert (result.a.prompts, result.b.judge) == ("inspect_evals/mask 5-E", "ours")
    assert (result.preset, result.scenarios, result.takes) == ("inspect", 16, 3)
    assert "judge prompts" in {setting.name for setting in result.differs}
    # Both judges know what was planted, wherever they say anything.
    assert result.agreement.letters.agreement.value == 1
    assert set(result.agreement.by_place) == {"pressured", "direct", "indirect"}
    assert result.agreement.figures.hits == result.agreement.figures.total > 0


def test_what_either_judge_could_not_read_is_counted(log):
    """Some answers of both judges say nothing."""
    result = equivalence(log.path, f"{log.path}@ours", guards=LENIENT)
    assert (result.a.unread, result.b.unread) == (count_unread(log, None), count_unread(log, "ours"))
    assert result.a.unread > 0
    assert result.worst_case.scenarios == 16 - result.shift.n > 0
    assert result.verdict is EquivalenceVerdict.NOT_SHOWN


def test_a_log_that_is_imported_twice_holds_the_same_replies(log, tmp_path):
    """A is the second import, B our reading of the first."""
    again, _ = import_harness_run(HERE / "5-E.eval", out=tmp_path / "again")
    once, twice = (equivalence(run, f"{log.path}@ours", guards=LENIENT) for run in (log.path, again))
    assert (twice.shift, twice.agreement) == (once.shift, once.agreement)


def test_logs_of_other_replies_are_refused(log, tmp_path):
    other, _ = import_harness_run(HERE / "5-D.eval", out=tmp_path / "other")
    with pytest.raises(UsageError, match="do not hold the same replies"):
        equivalence(log.path, other)


def test_a_log_without_judge_calls_has_nothing_to_hold_ours_against(tmp_path):
    """It is said, and no claim is made."""
    stripped = tmp_path / "stripped.eval"
    with zipfile.ZipFile(HERE / "3-C.eval") as old, zipfile.ZipFile(stripped, "w") as new:
        for name in old.namelist():
            data = json.loads(old.read(name))
            new.writestr(name, json.dumps(data | {"events": []} if name.startswith("samples/") else data))
    run, _ = import_harness_run(stripped, out=tmp_path / "run")
    unmask.judge(run.path, judge=Scripted(lambda _: "Answer: A", name="scripted/always-a"))
    result = equivalence(run, f"{run.path}@scripted/always-a", guards=LENIENT)
    assert (result.test, result.verdict) == (None, EquivalenceVerdict.NOT_SHOWN)
    assert "A has judged no scenario" in " ".join(render(result, width=80).split())


def read_folder(path: Path, *, count: int, differ: int) -> Run:
    """Rows of which every fourth is a lie by their judge, and the first `differ` truths are lies by ours."""
    rows = []
    for place in range(count):
        row = binary(
            f"kf{place:04}", ["Answer: A" if place % 4 == 0 else "Answer: B"], ["Answer: B"] * 3, ["Answer: B"] * 2
        )
        rows.append(
            {key: f"{place:04} {value}" if key.startswith("generation") else value for key, value in row.items()}
        )
    run, _ = import_harness_run(write(path / "in", **{"known_facts_gpt-4o": rows}), out=path / "run")
    changed = [place for place in range(count) if place % 4][:differ]

    def reply(request: Request) -> str:
        place, prompt = re.findall(r"(\d{4}) Reply \d to (\w+)", request.messages[-1].content)[-1]
        lies = prompt == "System" and (int(place) % 4 == 0 or int(place) in changed)
        return f"Answer: {'A' if lies else 'B'}"

    return unmask.judge(run.path, judge=Scripted(reply, name="openai/gpt-4o"), judge_name="ours")


def test_an_evaluated_folder_read_alike_is_equivalent(tmp_path):
    """200 rows of the reference code's files, every reading of theirs against one of ours."""
    run = read_folder(tmp_path, count=200, differ=0)
    result = equivalence(run, f"{run.path}@ours")
    assert result.verdict is EquivalenceVerdict.EQUIVALENT
    assert (result.a.prompts, result.shift.n) == ("MASK reference code", 200)
    assert {place: part.n for place, part in result.agreement.by_place.items()} == {
        "pressured": 200,
        "direct": 600,
        "indirect": 400,
    }


def test_an_evaluated_folder_read_more_harshly_is_not(tmp_path):
    """20 of 200 rows are lies by our reading only."""
    run = read_folder(tmp_path, count=200, differ=20)
    result = equivalence(run, f"{run.path}@ours")
    assert result.verdict is EquivalenceVerdict.DIFFERENT
    assert result.shift.value == pytest.approx(0.1)
    assert len(result.only_b) == 20
