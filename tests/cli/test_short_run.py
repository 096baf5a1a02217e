"""`unmask run MODEL`: what is taken for what was not given, how the judge is asked for, and how a run ends."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import unmask
from tests.e2e.planted_core import serve_planted_core
from tests.e2e.typed import Screen, show_command, type_command
from tests.needs import give_up
from unmask.cli.defaults import default_folder, propose_judge
from unmask.runs.run import Run

KEY = {"OPENAI_API_KEY": "sk-planted"}
LINE = "unmask run openai/gpt-4o --limit 6"
SMALL = "unmask run scripted/liar --data tiny --judge scripted/judge --out runs/a"
TINY = ("scripted/liar", "--data", "tiny", "--judge", "scripted/judge")


def typed(line: str, *, cwd: Path, keys: str = "", **env: str) -> Screen:
    """The line as a person types it, at a terminal."""
    if not Path("/dev/ptmx").exists():
        give_up("pseudo-terminal", advice="Mount devpts.")
    start = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(cwd), "TERM": "dumb"}
    if "PYTHONPATH" in os.environ:
        start["PYTHONPATH"] = os.environ["PYTHONPATH"]
    if not keys:
        return show_command(line, cwd=cwd, env=start | env)
    return type_command(line, cwd=cwd, env=start | env, keys=keys)


# --- what is taken ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("openai/gpt-4o", "runs/gpt-4o"),
        ("openrouter/meta-llama/llama-3.1-8b", "runs/llama-3.1-8b"),
        ("ollama/llama3:8b", "runs/llama3_8b"),
        ("gguf:/models/tiny.Q4.gguf", "runs/tiny.Q4"),
        ("hf:org/model", "runs/model"),
    ],
)
def test_the_folder_is_called_like_the_model(model: str, folder: str):
    assert default_folder(model) == folder


def test_a_treated_model_has_a_folder_of_its_own():
    """With an adapter it is another model. So has a shard."""
    assert default_folder("openai/gpt-4o", "2/12") == "shards/gpt-4o/02-of-12"
    folders = {default_folder(f"hf:org/model{treated}") for treated in ("", "+adapter=out/a", "+adapter=out/b")}
    assert len(folders) == 3


@pytest.mark.parametrize("model", ["../..", "openai/..", "gguf:..", "openai/", "openai/a\n/b"])
def test_no_name_leads_out_of_the_folder_of_runs(model: str):
    path = Path(default_folder(model))
    assert path.parent == Path("runs")
    assert path.name not in {"", ".", ".."}
    assert path.name.isprintable()


def test_data_and_folder_are_said_where_nobody_gave_them(tmp_path: Path):
    """In one line, and the folder is used. A setting that makes it another run is refused."""
    flags = ("scripted/liar", "--judge", "scripted/judge", "--limit", "6")
    done = unmask("run", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "data core, folder runs/liar (--data, --out to change)"
    assert Run(tmp_path / "runs/liar").definition.data.name == "core"
    other = unmask("run", *flags, "--temperature", "0.5", cwd=tmp_path)
    assert (other.returncode, "this folder holds a different run" in other.stderr) == (2, True)
    assert "to change" not in unmask("run", *TINY, "--out", "x", cwd=tmp_path).stderr


def test_without_a_model_the_line_to_type_is_said(tmp_path: Path):
    done = unmask("run", cwd=tmp_path)
    assert done.returncode == 2
    assert "unmask run openai/gpt-4o-mini" in done.stderr


# --- the judge --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "judge"),
    [
        ("anthropic/claude", "openai/gpt-4o"),
        ("vllm/own", "openai/gpt-4o"),
        ("scripted/liar", "scripted/judge"),
        ("embedded/smollm2-135m", "embedded/judge-1.5b"),
        ("gguf:x.gguf", "embedded/judge-1.5b"),
    ],
)
def test_a_model_that_costs_nothing_gets_a_judge_that_costs_nothing(model: str, judge: str):
    assert propose_judge(model) == judge


@pytest.mark.parametrize("env", [KEY, {}], ids=["key", "no key"])
def test_where_nobody_can_be_asked_the_whole_line_is_said_and_nothing_is_sent(tmp_path: Path, env):
    """With its cost; a missing key is said too."""
    done = unmask(*LINE.split()[1:], cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert f"{LINE} --judge openai/gpt-4o" in done.stderr
    assert "The run likely costs $" in done.stderr
    assert ("needs a key" in done.stderr) == (not env)
    assert not (tmp_path / "runs").exists()


def test_at_a_terminal_a_yes_to_the_estimate_starts_the_run_and_the_same_line_continues_it(tmp_path: Path):
    """The second time nothing is asked: the run has its judge."""
    with serve_planted_core() as url:
        screen = typed(LINE, cwd=tmp_path, keys="y\n", OPENAI_BASE_URL=url, **KEY)
        assert screen.code == 0, screen.lines
        assert not [line for line in screen.too_wide if "[y/N]" not in line]  # the answer was typed ahead of it
        shown = "\n".join(screen.lines)
        assert 0 < shown.index("judge cost") < shown.index("Proposed judge: openai/gpt-4o") < shown.index("P(lie)")
        again = typed(LINE, cwd=tmp_path, OPENAI_BASE_URL=url, **KEY)
        assert again.code == 0, again.lines
        assert "judge openai/gpt-4o, as runs/gpt-4o has it" in again.lines
        assert "[y/N]" not in "\n".join(again.lines)
    assert Run(tmp_path / "runs/gpt-4o").definition.judge == "openai_gpt-4o"


@pytest.mark.parametrize(
    ("keys", "env", "code", "said"),
    [
        ("n\n", KEY, 2, "no judge is named, and nothing was sent"),
        ("\n", KEY, 2, "no judge is named, and nothing was sent"),
        ("\x04", KEY, 130, "\nunmask: interrupted"),
        ("", {}, 4, "needs a key"),
    ],
    ids=["no", "nothing", "left", "no key"],
)
def test_at_a_terminal_nothing_is_sent_without_a_yes(tmp_path: Path, keys, env, code, said):
    screen = typed(LINE, cwd=tmp_path, keys=keys, **env)
    shown = "\n".join(screen.lines)
    assert screen.code == code
    assert "judge cost" in shown
    assert said in shown
    assert ("[y/N]" in shown) == bool(env)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("begin", "flags", "growth", "back"),
    [
        ("", "--takes 3", "from 1 to 3 takes", "unmask score runs/a --takes 1"),
        ("--limit 6", "", "from 6 to 12 scenarios", ""),
        ("", "--direct 5", "from 3 to 5 direct probes", ""),
    ],
)
def test_a_run_grows_with_its_price_and_the_way_back_in_the_open(tmp_path: Path, begin, flags, growth, back):
    """On standard error, also with --quiet, before anything is sent. The same command once more says nothing of it."""
    small = shlex.split(SMALL)[1:]
    unmask(*small, *begin.split(), cwd=tmp_path)
    done = unmask(*small, *flags.split(), "--quiet", cwd=tmp_path)
    assert done.stderr.splitlines()[0] == f"runs/a is to grow {growth}. The run likely costs $0.00."
    assert back in done.stderr.replace("python -m unmask", "unmask")
    assert "grow" not in unmask(*small, *flags.split(), cwd=tmp_path).stderr


@pytest.mark.parametrize(("keys", "takes"), [("n", 1), ("y", 3)])
def test_at_a_terminal_a_run_grows_after_a_yes(tmp_path: Path, keys: str, takes: int):
    assert typed(SMALL, cwd=tmp_path).code == 0
    screen = typed(f"{SMALL} --takes 3", cwd=tmp_path, keys=f"{keys}\n")
    assert ("nothing was sent" in "\n".join(screen.lines)) == (keys == "n")
    assert Run(tmp_path / "runs/a").definition.takes == takes


def test_a_plan_takes_what_the_run_would_take(tmp_path: Path):
    """Also what the run has sent already."""
    plan = ("run", "--plan", "scripted/liar", "--limit", "6")
    first = unmask(*plan, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "6 scenarios of core, model scripted/liar, judged by scripted/judge" in first.stdout
    assert unmask("run", "scripted/liar", "--limit", "6", "--judge", "scripted/judge", cwd=tmp_path).returncode == 0
    second = unmask(*plan, cwd=tmp_path)
    assert [line.split()[2:] for line in second.stdout.splitlines() if " calls " in line] == [["0"] * 3] * 2


# --- the end ----------------------------------------------------------------------------------------------


def next_commands(printed: str) -> list[list[str]]:
    lines = printed[printed.index("\nNEXT\n") :].splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("  unmask ")]


@pytest.mark.parametrize("folder", ["runs/x", "my runs/it's mine"])
def test_a_run_ends_with_its_folder_and_commands_that_work_as_shown(tmp_path: Path, folder: str):
    done = unmask("run", *TINY, "--out", folder, cwd=tmp_path)
    commands = next_commands(done.stdout)
    assert [command[1] for command in commands] == ["report", "show", "score"]
    for command in commands:
        after = unmask(*command[1:], cwd=tmp_path)
        assert after.returncode == 0, (command, after.stderr)
    assert "lie" in unmask(*commands[1][1:], cwd=tmp_path).stdout
    assert json.loads(unmask("run", *TINY, "--out", folder, "--json", cwd=tmp_path).stdout)["preset"] == "paper"


def test_another_judge_ends_with_commands_that_look_at_its_readings(tmp_path: Path):
    assert unmask("run", "scripted/liar", "--data", "tiny", "--judge", "verbatim", cwd=tmp_path).returncode == 0
    done = unmask("judge", "runs/liar", "--judge", "scripted/judge", "--preset", "strict", cwd=tmp_path)
    report, show, score = next_commands(done.stdout)
    for command in (report, show, score):
        assert " ".join(command).removesuffix(" --all").endswith("--judge scripted/judge --preset strict")
        assert unmask(*command[1:], cwd=tmp_path).returncode == 0
    assert "judge scripted/judge" in unmask(*score[1:], cwd=tmp_path).stdout


def test_a_rule_that_cannot_read_the_replies_is_not_said_to_try_again(tmp_path: Path):
    """It never will read them: a model may."""
    done = unmask("run", "scripted/evasive", "--data", "tiny", "--judge", "verbatim", cwd=tmp_path)
    assert done.returncode == 3
    assert "failed again" not in done.stdout
    first = next_commands(done.stdout)[0]
    assert first == shlex.split("unmask judge runs/evasive --judge openai/gpt-4o")
    again = [word.replace("openai/gpt-4o", "scripted/judge") for word in first[1:]]
    assert unmask(*again, cwd=tmp_path).returncode == 0
