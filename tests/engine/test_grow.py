"""Folders that forgive: one without answers is defined anew, and a pilot grows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unmask
from bench.process import ROOT
from tests.made_runs import Subject, made, scenarios
from unmask.data.form import encode_lines
from unmask.data.load import load
from unmask.engine.plan import estimate_run
from unmask.errors import JournalError, MixedRunError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Letter, Scenario
from unmask.render.progress import Log, ProgressLine
from unmask.runs.run import Run

JUDGE = "scripted/judge"
NAMES = load("core").ids


def pilot(out: Path, model: str | Scripted = "scripted/liar", **settings: Any) -> Run:
    return unmask.run(**{"data": "core", "model": model, "judge": JUDGE, "out": out, **settings})


def liar(rows: Sequence[Scenario]) -> Scripted:
    return Scripted(Subject(rows, ["lie"] * len(rows)), name="scripted/m")


def read_definition(out: Path) -> dict[str, Any]:
    return json.loads((out / "run.json").read_text())


def asked(out: Path) -> Counter[tuple[str, str, int]]:
    """How often each take of each question was answered."""
    lines = map(json.loads, (out / "replies.jsonl").read_text().splitlines())
    return Counter((line["scenario"], line["slot"], take) for line in lines for take in line["takes"])


class TestGrowing:
    def test_more_takes_change_no_number_of_the_first_take(self, tmp_path: Path):
        """P(lie) means the same for one take and for three, and `score --takes 1` still gives that of the first."""
        rows = scenarios(30)
        plan = [("lie", "honest", "honest"), ("honest", "lie", "lie"), "evasion"] * 10
        once = made(tmp_path / "run", plan, given=rows, takes=1).score()
        often = made(tmp_path / "run", [plan[0], "lie", "lie"] * 10, given=rows, takes=3)
        assert (once.p_lie.value, once.overall.lying_at.keys()) == (1 / 3, {1})
        assert often.score().p_lie.value > once.p_lie.value
        assert often.first_takes(1).score().overall == once.overall
        with pytest.raises(UsageError, match=r"--takes 4: .* has 3 takes"):
            often.first_takes(4)

    def test_the_command_of_before_continues_a_run_that_has_more_takes(self, tmp_path: Path, capsys: Any):
        """Growing is one line; only fewer takes that are named are refused."""
        pilot(tmp_path / "run", limit=6)
        grown = pilot(tmp_path / "run", limit=6, takes=3, progress=ProgressLine(Log(sys.stderr)))
        line = f"{grown.path} grows from 1 to 3 takes; its replies stay"
        assert capsys.readouterr().err.splitlines()[0] == line
        before = asked(grown.path)
        assert pilot(tmp_path / "run", limit=6).definition.takes == 3
        assert asked(grown.path) == before
        with pytest.raises(MixedRunError, match="takes: the run has 3, the command says 1") as refused:
            pilot(tmp_path / "run", limit=6, takes=1)
        assert "`unmask score` with --takes 1" in (refused.value.advice or "")

    def test_a_larger_limit_keeps_what_was_answered_and_scores_as_one_run_at_once(self, tmp_path: Path):
        small = asked(pilot(tmp_path / "run", limit=6).path)
        grown, at_once = pilot(tmp_path / "run", limit=20), pilot(tmp_path / "once", limit=20)
        assert small < asked(grown.path) == asked(at_once.path)
        assert set(asked(grown.path).values()) == {1}
        assert grown.score().overall == at_once.score().overall
        lines = [(tmp_path / name / "scenarios.jsonl").read_text().splitlines() for name in ("run", "once")]
        assert sorted(lines[0]) == sorted(lines[1])
        assert grown.definition.data.hash == at_once.definition.data.hash

    @pytest.mark.parametrize(
        ("before", "after", "number"),
        [
            ({"data": "tiny", "limit": 6}, {"data": "tiny"}, 12),
            ({"archetype": ("statistics",), "limit": 3}, {"archetype": ("statistics", "continuations"), "limit": 6}, 6),
            ({"ids": NAMES[:1]}, {"ids": NAMES[:3]}, 3),
        ],
    )
    def test_no_limit_more_archetypes_and_more_ids(self, tmp_path: Path, before: dict, after: dict, number: int):
        small = asked(pilot(tmp_path / "run", **before).path)
        grown = pilot(tmp_path / "run", **after)
        assert len(grown.rows()) == number
        assert small < asked(grown.path)
        assert set(asked(grown.path).values()) == {1}
        assert grown.score().undecided == ()

    def test_run_json_keeps_every_size_and_new_scenarios_come_last(self, tmp_path: Path):
        """So the beginning of the file is the run as it was."""
        ids: list[list[str]] = []
        for limit in (6, 9, 12):
            run = pilot(tmp_path / "run", limit=limit)
            ids.append([scenario.id for scenario in run.scenarios])
        assert read_definition(run.path)["grown"] == [6, 9]
        assert ids[2][:9] == ids[1]
        assert ids[1][:6] == ids[0]

    def test_the_same_command_again_changes_nothing(self, tmp_path: Path):
        pilot(tmp_path / "run", limit=6)
        pilot(tmp_path / "run", limit=9)
        files = [tmp_path / "run" / name for name in ("run.json", "scenarios.jsonl", "replies.jsonl")]
        before = [file.read_bytes() for file in files]
        pilot(tmp_path / "run", limit=9)
        assert [file.read_bytes() for file in files] == before

    def test_a_smaller_selection_is_refused_with_both_numbers_and_the_way_out(self, tmp_path: Path):
        pilot(tmp_path / "run", limit=9)
        before = read_definition(tmp_path / "run")
        with pytest.raises(MixedRunError, match="scenarios: the run has 9, the command says 6, without 3") as refused:
            pilot(tmp_path / "run", limit=6)
        assert read_definition(tmp_path / "run") == before
        assert (refused.value.advice or "").endswith(f"continues with: unmask run --out {tmp_path / 'run'}")

    def test_other_data_under_the_same_ids_are_refused(self, tmp_path: Path):
        file = tmp_path / "data.jsonl"
        rows = scenarios(12)
        file.write_bytes(encode_lines(rows))
        pilot(tmp_path / "run", liar(rows), data=file, limit=6)
        file.write_bytes(encode_lines([*rows[:-1], msgspec.structs.replace(rows[-1], truth=Letter.B)]))
        with pytest.raises(MixedRunError, match="data: the run has 6 scenarios out of data with hash"):
            pilot(tmp_path / "run", liar(rows), data=file)

    def test_the_plan_counts_what_is_new(self, tmp_path: Path):
        arguments: Any = {"data": "core", "model": "scripted/liar", "judge": JUDGE}
        pilot(tmp_path / "run", limit=6)
        total, _ = estimate_run(**arguments, out=None, limit=18)
        left, _ = estimate_run(**arguments, out=tmp_path / "run", limit=18)
        first, _ = estimate_run(**arguments, out=None, limit=6)
        calls = [estimate.most["subject"].calls for estimate in (total, left, first)]
        assert calls[1] == pytest.approx(calls[0] - calls[2], abs=1)  # each is rounded

    def test_a_baseline_has_to_grow_first(self, tmp_path: Path):
        pilot(tmp_path / "base", limit=6)
        settings: dict[str, Any] = {"beliefs_from": str(tmp_path / "base"), "developer_prompt": "plain"}
        pilot(tmp_path / "run", limit=6, **settings)
        with pytest.raises(UsageError, match="3 scenarios are not in it"):
            pilot(tmp_path / "run", limit=9, **settings)
        assert len((tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()) == 6
        pilot(tmp_path / "base", limit=9)
        assert pilot(tmp_path / "run", limit=9, **settings).score().undecided == ()


class TestWithoutAnswers:
    def refuse(self, out: Path, **settings: Any) -> None:
        """A first try with the wrong model: the endpoint does not know it."""
        with pytest.raises(unmask.UnmaskError):
            pilot(out, "openai/nomodel", base_url="http://127.0.0.1:9/v1", limit=3, **settings)

    def test_a_failed_first_try_does_not_spoil_the_folder(self, tmp_path: Path):
        self.refuse(tmp_path / "run")
        assert read_definition(tmp_path / "run")["subject"]["model"] == "openai/nomodel"
        done = pilot(tmp_path / "run", limit=6)
        assert done.score().undecided == ()
        assert len(done.rows()) == 6
        assert done.definition.grown == ()

    def test_failures_alone_are_no_answers(self, tmp_path: Path):
        made(tmp_path / "run", ["refused"] * 6, direct=1)
        lines = (tmp_path / "run" / "replies.jsonl").read_text().splitlines()
        errors = [line for line in lines if '"error"' in line]
        (tmp_path / "run" / "replies.jsonl").write_text("\n".join(errors) + "\n")
        for file in (tmp_path / "run" / "readings").iterdir():
            file.unlink()
        assert errors
        other = pilot(tmp_path / "run", data="tiny")
        assert len(other.rows()) == 12
        assert other.score().undecided == ()

    @pytest.mark.parametrize("kept", ["replies.jsonl", "readings/scripted_judge.jsonl"])
    def test_whatever_was_paid_for_is_kept(self, tmp_path: Path, kept: str):
        """One such thing is enough, and nothing is touched."""
        donor, out = pilot(tmp_path / "donor", limit=3), tmp_path / "run"
        self.refuse(out)
        (out / kept).parent.mkdir(exist_ok=True)
        content = (donor.path / kept).read_bytes()
        (out / kept).write_bytes(content)
        before = (out / "run.json").read_bytes()
        with pytest.raises(MixedRunError, match="model: the run has openai/nomodel"):
            pilot(out, limit=3)
        assert (out / kept).read_bytes() == content
        assert (out / "run.json").read_bytes() == before


KILLED = """
import os, signal, sys
import unmask
from unmask.runs.folder import Folder

Folder.write_definition = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
unmask.run(data="core", model=sys.argv[2], judge="scripted/judge", out=sys.argv[1], limit=int(sys.argv[3]))
"""
"""Dies when the scenarios are replaced and run.json is not."""


class TestKilledBetweenTheTwoFiles:
    def kill(self, out: Path, model: str, limit: int) -> None:
        command = [sys.executable, "-c", KILLED, str(out), model, str(limit)]
        assert subprocess.run(command, cwd=ROOT, env=dict(os.environ), check=False).returncode == -signal.SIGKILL

    def test_the_same_command_completes_the_growth_and_no_reply_is_lost(self, tmp_path: Path):
        before = asked(pilot(tmp_path / "run", limit=6).path)
        definition = (tmp_path / "run" / "run.json").read_bytes()
        self.kill(tmp_path / "run", "scripted/liar", 20)
        assert (tmp_path / "run" / "run.json").read_bytes() == definition
        assert len((tmp_path / "run" / "scenarios.jsonl").read_text().splitlines()) == 20
        assert asked(tmp_path / "run") == before
        score = Run(tmp_path / "run").score()
        assert len(score.undecided) == 14  # what is there can be looked at meanwhile
        assert score.warnings[0].guard == "altered"
        grown, at_once = pilot(tmp_path / "run", limit=20), pilot(tmp_path / "once", limit=20)
        assert before < asked(grown.path) == asked(at_once.path)
        assert set(asked(grown.path).values()) == {1}
        assert grown.definition.grown == (6,)
        assert grown.score().overall == at_once.score().overall

    def test_the_command_before_goes_back_to_the_smaller_run(self, tmp_path: Path):
        run = pilot(tmp_path / "run", limit=6)
        before, scored = asked(run.path), run.score().overall
        self.kill(tmp_path / "run", "scripted/liar", 20)
        again = pilot(tmp_path / "run", limit=6)
        assert asked(again.path) == before
        assert again.score().overall == scored
        assert len(again.scenarios) == 6


@pytest.mark.parametrize("inside", [(), ("deeper", "still")])
def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, inside: tuple[str, ...]):
    """Its rights are not the problem."""
    (tmp_path / "run").write_text("mine")
    with pytest.raises(JournalError, match=r"run is no folder") as refused:
        pilot(tmp_path.joinpath("run", *inside), limit=3)
    assert refused.value.advice == "Choose another path, or move away what is there."
    assert (tmp_path / "run").read_text() == "mine"
