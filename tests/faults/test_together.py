"""Several processes at work on one run folder: judges next to a run and next to each other. The real
commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.planted import expected, write_jsonl
from tests.faults.served import JUDGE, Served, flags, ran, serving
from tests.faults.watched import finished, watched
from tests.made_runs import made
from unmask.runs.run import Run

SCENARIOS = 16


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`unmask judge` stores which side *yes* means in the cache folder, where other tests would take it over."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


def judge_flags(served: Served, out: Path, name: str) -> tuple[str, ...]:
    return (str(out), "--judge", JUDGE, "--judge-base-url", served.url, "--set", f"judge.name={name}")


def read_right(served: Served, out: Path, judge: str) -> bool:
    """Whether this judge has come to the planted verdicts."""
    rows = {row.id: row.verdict for row in Run(out).rows(judge=judge)}
    return rows == {one.scenario.id: expected(one)[0] for one in served.plants}


def asked_once(out: Path, judge: str) -> bool:
    """Whether no question to this judge has two answers."""
    lines = [json.loads(line) for line in (out / "readings" / f"{judge}.jsonl").open()]
    questions = {tuple(line.get(key) for key in ("scenario", "slot", "digest", "method", "attempt")) for line in lines}
    return len(questions) == len(lines)


def locks(out: Path) -> list[str]:
    return sorted(path.name for path in out.rglob("*.lock"))


def test_two_judges_read_one_run_at_the_same_time(tmp_path: Path):
    """Both are at work at once, both are written down, and each has read everything."""
    with serving(SCENARIOS, latency=0.05) as served:
        out = ran(served, tmp_path / "run").path
        commands = [judge_flags(served, out, name) for name in ("one", "two")]
        with (
            watched("judge", *commands[0], "--max-connections", "2", at_once=True) as first,
            watched("judge", *commands[1], "--max-connections", "2", at_once=True) as second,
        ):
            both = ["one.jsonl.lock", "two.jsonl.lock"]
            with served.slowed():
                first.when(lambda: locks(out) == both)
            assert locks(out) == both
            assert (first.end(), second.end()) == (0, 0)
        assert locks(out) == []
        assert sorted(Run(out).definition.judges) == ["one", "openai_judge", "two"]
        assert all(read_right(served, out, name) for name in ("one", "two", "openai_judge"))


def test_one_judge_twice_on_one_run_is_refused_with_who_and_what_to_do(tmp_path: Path):
    """The first goes on undisturbed, and the second has asked nothing."""
    with serving(SCENARIOS, latency=0.05) as served:
        out = ran(served, tmp_path / "run").path
        command = judge_flags(served, out, "one")
        with watched("judge", *command, "--max-connections", "2", at_once=True) as first:
            with served.slowed():
                first.when(lambda: "one.jsonl.lock" in locks(out))
                second = finished("judge", *command)
            assert second.process.returncode == 4
            assert f"one.jsonl is in use by process {first.process.pid} on " in second.errors
            assert "--set judge.name=NAME" in second.errors
            assert first.end() == 0
        assert asked_once(out, "one")
        assert read_right(served, out, "one")


def test_a_judge_reads_what_is_there_while_the_run_goes_on(tmp_path: Path):
    """Neither disturbs the other; the same command later reads the rest."""
    with serving(SCENARIOS, latency=0.05) as served:
        out = tmp_path / "run"
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), out, "--max-connections", "2")
        with watched("run", *command, at_once=True) as run:
            run.when(lambda: served.answered >= 30)
            with served.slowed(role="subject"):
                early = finished("judge", *judge_flags(served, out, "second"))
            assert run.process.poll() is None
            assert early.process.returncode == 3  # incomplete
            assert (out / "readings" / "second.jsonl").stat().st_size
            assert run.end() == 0
        assert sorted(Run(out).definition.judges) == ["openai_judge", "second"]
        assert not read_right(served, out, "second")
        assert finished("judge", *judge_flags(served, out, "second")).process.returncode == 0
        assert asked_once(out, "second")
        assert read_right(served, out, "second")
        assert read_right(served, out, "openai_judge")


def test_a_judge_does_not_take_the_line_that_a_run_is_writing_for_torn(tmp_path: Path):
    """Only the next writer of replies cuts a torn line off."""
    with serving(SCENARIOS) as served:
        out = ran(served, tmp_path / "run").path
        replies = out / "replies.jsonl"
        torn = replies.read_bytes()[:-20]
        replies.write_bytes(torn)
        finished("judge", *judge_flags(served, out, "one"))
        assert replies.read_bytes() == torn


ADD = "import unmask.engine.run; act = lambda run, name: unmask.judge(run, judge='verbatim', set={'judge.name': name})"

ALL = """
import os, sys, traceback
exec(sys.argv[1])
waiting, go = os.pipe()
children = []
for number, one in enumerate(sys.argv[3:]):
    children.append(os.fork())
    if not children[-1]:
        os.close(go)
        sys.stdout, sys.stderr = (open(f"{sys.argv[2]}/{number}.{name}", "w") for name in ("out", "err"))
        os.read(waiting, 1)
        code = 0
        try:
            act(*one.split("\\n"))
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
os.close(go)
print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def start_all(script: str, arguments: Sequence[Sequence[str]]) -> list[subprocess.CompletedProcess[str]]:
    """A process for each, which calls what `script` defines as `act` only when all have been started."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-c", ALL, script, folder, *("\n".join(one) for one in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return [
            subprocess.CompletedProcess(
                one, int(code), *(Path(folder, f"{number}.{name}").read_text() for name in ("out", "err"))
            )
            for number, (one, code) in enumerate(zip(arguments, done.stdout.split(), strict=True))
        ]


def test_ten_processes_add_a_judge_each_and_none_is_lost(tmp_path: Path):
    """Every change of run.json starts from the one before."""
    run = made(tmp_path / "run", ["lie", "honest"] * 10)
    before = set(run.definition.judges)
    names = {f"judge-{number:02d}" for number in range(10)}
    done = start_all(ADD, [[str(run.path), name] for name in names])
    assert [one.returncode for one in done] == [0] * 10, done[0].stderr
    assert set(json.loads((run.path / "run.json").read_text())["judges"]) == before | names
    assert locks(run.path) == []


# --- file systems that have no locks


def test_a_run_leaves_no_lock(tmp_path: Path):
    """A folder that is copied or archived carries nothing that says it is in use."""
    with serving(SCENARIOS) as served:
        out = ran(served, tmp_path / "run").path
        assert locks(out) == []
        assert sorted(path.name for path in out.iterdir()) == [
            *("readings", "replies.jsonl", "run.json", "scenarios.jsonl")
        ]
