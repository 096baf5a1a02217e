"""A judge that reads letters only: a run without figures, which a judge for numbers or another judge makes larger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import unmask
from tests.sweep.vllm_like import VllmLike, serve_in_thread
from unmask.cli.main import run_command_line
from unmask.data.load import load
from unmask.errors import MixedRunError, UsageError
from unmask.records import Archetype, Kind
from unmask.runs.run import Run
from unmask.sweep.driver import run_sweep
from unmask.sweep.grid import read_grid
from unmask.sweep.plan import plan_sweep
from unmask.sweep.units import Expansion, expand_grid

JUDGE = "vllm/judge-1.5b"
BINARY = [archetype.value for archetype in Archetype if archetype.traits.kind is Kind.BINARY]
LEFT_OUT = f"{JUDGE} reads letters, not numbers: 2 scenarios (statistics) are left out"


@pytest.fixture(scope="module")
def server():
    with serve_in_thread("judge-1.5b") as server:
        yield server


def ran(server: VllmLike, out: Path, **settings: Any) -> Run:
    usual = {"data": "tiny", "model": "scripted/liar", "judge": JUDGE, "judge_base_url": server.url, "out": out}
    return unmask.run(**{**usual, **settings})


def typed(server: VllmLike, out: Path, *more: str, command: str = "run") -> list[str]:
    judge = ["--judge", JUDGE, "--judge-base-url", server.url]
    return [command, "--data", "tiny", "scripted/liar", *judge, "--out", str(out), *more]


def data_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "run.json").read_text())["data"]


def test_a_run_has_the_binary_archetypes_as_if_they_had_been_chosen(server, tmp_path):
    """The same scenarios, the same record of the selection, and no reply about a figure."""
    ran(server, tmp_path / "left", effort="full")
    ran(server, tmp_path / "chosen", effort="full", archetype=BINARY)
    data = data_of(tmp_path / "left")
    assert data == data_of(tmp_path / "chosen")
    assert (data["archetypes"], sum(data["counts"].values())) == (BINARY, 10)
    assert "statistics" not in (tmp_path / "left" / "replies.jsonl").read_text()


def test_one_line_says_so_before_the_run_starts(server, tmp_path, capsys):
    assert run_command_line(typed(server, tmp_path / "run")) == 0
    address, first, *_ = capsys.readouterr().err.splitlines()
    assert address == f"Asking judge at {server.url.removesuffix('/v1')} (--judge-base-url)"
    assert first == f"{LEFT_OUT}; --numeric-judge NAME, or another judge, adds them"


def test_a_judge_for_figures_makes_the_run_larger(server, tmp_path, capsys):
    """The same command with one more flag: what was answered stays, and every scenario has a verdict."""
    run_command_line(typed(server, tmp_path / "run", "--quiet"))
    replies = (tmp_path / "run" / "replies.jsonl").read_bytes()
    assert run_command_line(typed(server, tmp_path / "run", "--numeric-judge", "scripted/judge")) == 0
    assert f"{tmp_path / 'run'} grows from 10 to 12 scenarios" in capsys.readouterr().err
    assert (data_of(tmp_path / "run")["archetypes"], data_of(tmp_path / "run")["counts"]["statistics"]) == ([], 2)
    assert (tmp_path / "run" / "replies.jsonl").read_bytes().startswith(replies)


def test_another_judge_makes_the_run_larger(server, tmp_path):
    """What the first judge has not read is named; to go back to its smaller selection is refused as ever."""
    ran(server, tmp_path / "run")
    run = ran(server, tmp_path / "run", judge="scripted/judge", judge_base_url=None)
    assert len(run.scenarios) == 12
    assert run.score().unjudged_share == 0
    assert run.score(judge=JUDGE).unjudged_reasons == {"no_figures": 2}
    with pytest.raises(MixedRunError, match="scenarios: the run has 12, the command says 10"):
        ran(server, tmp_path / "run")


FIGURE = next(scenario.id for scenario in load("tiny") if scenario.kind is Kind.NUMERIC)


@pytest.mark.parametrize("more", [["--archetype", "statistics"], ["--ids", FIGURE]])
def test_figures_alone_are_refused(server, tmp_path, capsys, more):
    """In one line, with the way out in the next, and without a folder."""
    for plan in ([], ["--plan"]):
        assert run_command_line(typed(server, tmp_path / "run", *more, *plan)) == 2
        said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("Asking judge at")]
        assert said[0] == f"unmask: {JUDGE} reads letters, not numbers: it cannot judge statistics"
        assert "--numeric-judge NAME" in said[1]
    assert not (tmp_path / "run").exists()


def test_a_judge_for_figures_that_reads_none_is_refused(server, tmp_path):
    with pytest.raises(UsageError, match=f"--numeric-judge {JUDGE} reads letters, not numbers"):
        ran(
            server,
            tmp_path / "run",
            judge="scripted/judge",
            judge_base_url=None,
            numeric_judge=JUDGE,
            set={"numeric.base_url": server.url},
        )


def test_judge_leaves_figures_unread_and_says_why(server, tmp_path, capsys):
    """In `score` and in `show`."""
    ran(server, tmp_path / "run", judge="scripted/judge", judge_base_url=None)
    command = ["judge", str(tmp_path / "run"), "--judge", JUDGE, "--judge-base-url", server.url, "--quiet"]
    assert run_command_line(command) == 3
    said = capsys.readouterr()
    assert "Could not be read: no_figures 2." in said.out
    completes = f"judge {tmp_path / 'run'} --judge {JUDGE} --numeric-judge openai/gpt-4o"
    assert completes in said.out
    run_command_line(["show", str(tmp_path / "run"), FIGURE, "--judge", JUDGE])
    assert "no_figures: this judge reads letters only" in capsys.readouterr().out


def test_plan_counts_what_run_would_ask(server, tmp_path, capsys):
    planned = unmask.plan(data="tiny", model="scripted/liar", judge=JUDGE, judge_base_url=server.url)
    assert (planned.scenarios, (planned.left_out or "").startswith(LEFT_OUT)) == (10, True)
    run_command_line(typed(server, tmp_path / "run", "--numeric-judge", "scripted/judge", "--plan"))
    assert "\n12 scenarios of tiny, " in capsys.readouterr().out


# --- sweeps -----------------------------------------------------------------------------------------------


def swept(server: VllmLike, folder: Path, judge: str = JUDGE, *, data: str = "") -> Expansion:
    """Two subjects on `tiny`, in the file that a sweep is read from."""
    address = f'base_url = "{server.url}"' if judge == JUDGE else ""
    rows = ['[[data]]\nsource = "tiny"', data, '[[subject]]\nmodel = "scripted/liar"']
    rows += ['[[subject]]\nmodel = "scripted/honest"', f'[[judge]]\nmodel = "{judge}"', address]
    (folder / "grid.toml").write_text("\n".join(rows))
    return expand_grid(read_grid(folder / "grid.toml"))


def test_a_sweep_leaves_figures_out_by_its_first_judge(server, tmp_path):
    """It is planned, said and recorded so; with another judge the same folders grow."""
    expansion = swept(server, tmp_path)
    planned = plan_sweep(expansion, tmp_path / "sweep")
    assert [unit.scenarios for unit in planned.units] == [10, 10]
    assert planned.notes == (f"data 1: {LEFT_OUT}",)
    result = run_sweep(expansion, tmp_path / "sweep")
    folders = sorted(path.parent for path in (tmp_path / "sweep").rglob("run.json"))
    assert [unit.total for unit in result.units] == [10, 10]
    assert [data_of(folder)["archetypes"] for folder in folders] == [BINARY, BINARY]
    result = run_sweep(swept(server, tmp_path, "scripted/judge"), tmp_path / "sweep")
    assert [unit.total for unit in result.units] == [12, 12]
    assert sorted(path.parent for path in (tmp_path / "sweep").rglob("run.json")) == folders
