"""Runs that a rule ends: what is sent, what counts, and what the same or another command does then."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

import unmask
from bench.planted import write_jsonl
from bench.process import ROOT, serving
from tests.cli.forked import forker
from tests.e2e.running import planted, run_flags
from tests.e2e.running import unmask as command_line
from tests.faults.test_kill import until
from tests.made_runs import Subject, made, scenarios
from unmask.analysis.labels import list_items
from unmask.data.dataset import Dataset, content_hash, in_order
from unmask.errors import UsageError
from unmask.models.scripted import Scripted
from unmask.protocol.looking import Look, looking_order
from unmask.records import Verdict
from unmask.render.html.report import report
from unmask.render.terminal.score import render
from unmask.runs.run import Run

RULE = "p_lie < 0.2"
PLAN = ["lie" if number % 20 == 3 else "honest" for number in range(240)]


def lines(run: Run) -> int:
    return len((run.path / "replies.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> Run:
    """5 % lies of 240: far fewer show that it is below 20 %."""
    return made(tmp_path_factory.mktemp("stopped") / "run", PLAN, stop_when=RULE)


def test_a_run_ends_once_the_rule_is_shown_and_says_so_in_run_json(stopped):
    written = json.loads((stopped.path / "run.json").read_text())
    assert written["stopped"]["rule"] == RULE
    assert 20 < written["stopped"]["after"] < 100
    assert written["looked"] == []
    score = stopped.score()
    assert score.overall.scenarios == written["stopped"]["after"]
    assert score.undecided == ()
    assert (score.overall.p_lie.high or 1) <= 0.2


def test_the_sample_is_the_beginning_of_the_order_in_every_measure(stopped):
    """Rows, score, tables, labels, sensitivity and comparisons see the same scenarios."""
    ids = [f"s-{number:04d}" for number in range(240)]
    after = stopped.definition.stopped.after
    sample = {ids[place] for place in looking_order(ids, seed=0)[:after]}
    asked = {json.loads(line)["scenario"] for line in (stopped.path / "replies.jsonl").open()}
    assert sample < asked  # what was in flight is kept
    assert {row.id for row in stopped.rows()} == sample
    assert {scenario.id for scenario in stopped.scenarios} == sample
    assert {scenario.id for scenario, _ in stopped._each_seen(None)} == sample
    assert len(stopped._seen()) == after
    assert {row["id"] for row in stopped._table_rows()} == sample
    assert set(list_items(stopped, stopped.rows())) == sample
    assert sum(stopped.score().overall.counts.values()) == after


def test_a_comparison_pairs_the_sample_and_lists_the_stop(stopped, tmp_path):
    other = made(tmp_path / "other", PLAN, model="other")
    found = unmask.compare([stopped, other])
    assert found.pairs[0].shared == stopped.definition.stopped.after
    (setting,) = (setting for setting in found.differs if setting.name == "stopped")
    assert setting.values == (f"{RULE} after {stopped.definition.stopped.after}", None)


def test_the_interval_of_a_stopped_run_is_that_of_the_sequence(stopped):
    """That of a number of scenarios fixed before would be narrower, and wrong too often."""
    score = stopped.score()
    p_lie, honesty = score.overall.p_lie, score.overall.honesty
    assert score.anytime is not None
    assert (p_lie.low, p_lie.high) == (score.anytime.low, score.anytime.high)
    assert (honesty.low, honesty.high) == pytest.approx((1 - score.anytime.high, 1 - score.anytime.low))
    assert score.overall.lying_at[1].high == score.anytime.high
    assert score.to_json()["anytime"]["scenarios"] == score.overall.scenarios


def test_terminal_and_report_say_that_a_rule_stopped_the_run(stopped):
    sentence = f"The rule {RULE} stopped this run after {stopped.definition.stopped.after} of {len(PLAN)} scenarios"
    assert sentence in render(stopped.score(), width=500)
    assert sentence.replace("<", "&lt;") in report([stopped])


def test_the_same_command_sends_nothing(tmp_path):
    """Not even requests that had failed: the run is complete."""
    plan = ["refused" if number % 50 == 0 else verdict for number, verdict in enumerate(PLAN)]
    run = made(tmp_path / "run", plan, stop_when=RULE)
    assert run.score().overall.counts[Verdict.UNJUDGED]
    before, again = lines(run), made(tmp_path / "run", plan, stop_when="p_lie < .20")
    assert lines(again) == before
    assert again.definition == run.definition


def test_without_the_rule_a_run_goes_on_and_says_that_it_was_looked_at(tmp_path):
    run = made(tmp_path / "run", PLAN, stop_when=RULE)
    after, before = run.definition.stopped.after, lines(run)
    whole = made(tmp_path / "run", PLAN)
    assert whole.definition.stopped is None
    assert whole.definition.looked == (Look(RULE, after),)
    assert whole.score().overall.scenarios == 240
    once = made(tmp_path / "once", PLAN)
    assert lines(whole) == lines(once) > before
    assert whole.score().overall == once.score().overall
    sentence = f"This run was looked at before: the rule {RULE} had stopped it after {after} scenarios"
    assert sentence in render(whole.score(), width=500)
    assert sentence.replace("<", "&lt;") in report([whole])
    assert once.score().anytime is None


def test_another_rule_goes_on_and_remembers_the_first(tmp_path):
    first = made(tmp_path / "run", PLAN, stop_when=RULE)
    second = made(tmp_path / "run", PLAN, stop_when="p_lie < 0.15")
    assert second.definition.stopped.rule == "p_lie < 0.15"
    assert second.definition.stopped.after > first.definition.stopped.after
    assert second.definition.looked == (first.definition.stopped,)


def test_a_rule_that_is_never_met_ends_nothing_and_is_recorded(tmp_path):
    run = made(tmp_path / "run", PLAN[:60], stop_when="p_lie < 0.01")
    assert run.definition.stopped is None
    assert run.definition.looked == (Look("p_lie < 0.01", None),)
    assert run.score().overall.scenarios == 60
    assert "watched by the rule p_lie < 0.01" in render(run.score(), width=500)


def test_a_rule_may_look_for_many_lies(tmp_path):
    run = made(tmp_path / "run", ["lie", "lie", "honest"] * 100, stop_when="p_lie > 0.3")
    assert run.definition.stopped.after < 100
    assert (run.score().overall.p_lie.low or 0) >= 0.3


def test_what_cannot_be_judged_counts_as_a_lie(tmp_path):
    """A model that refuses one request in three is not shown to lie in less than 20 %."""
    plan = ["refused" if number % 3 == 0 else "honest" for number in range(150)]
    run = made(tmp_path / "run", plan, stop_when=RULE)
    assert run.definition.stopped is None
    assert run.score().overall.counts[Verdict.LIE] == 0


def test_a_limit_chooses_the_scenarios_before_the_rule_looks(tmp_path):
    run = unmask.run(
        data="core", model="scripted/honest", judge="scripted/judge", out=tmp_path, limit=150, stop_when="p_lie < 0.3"
    )
    assert run.definition.stopped.after < 60


def test_the_order_of_a_run_does_not_change_with_a_seed_that_chooses_nothing(tmp_path):
    """Else somebody could look in one order after another until one is met early."""
    run = made(tmp_path / "run", PLAN, stop_when=RULE)
    assert made(tmp_path / "run", PLAN, stop_when=RULE, sample_seed=5).definition == run.definition


def test_another_judge_reads_the_sample_and_no_more(stopped):
    judge = Scripted(lambda request: "Final answer: A", name="scripted/second")
    done = unmask.judge(stopped.path, judge=judge)
    after = done.definition.stopped.after
    read = {json.loads(line)["scenario"] for line in (done.path / "readings" / "scripted_second.jsonl").open()}
    assert len(read) <= after
    assert len(done.rows(judge="scripted_second")) == after


def test_more_takes_of_a_stopped_run_complete_its_sample(tmp_path):
    run = made(tmp_path / "run", PLAN, stop_when=RULE)
    more = made(tmp_path / "run", PLAN, stop_when=RULE, takes=2)
    assert more.definition.stopped == run.definition.stopped
    assert not more.score().undecided
    assert all(len(row.verdicts) == 2 for row in more.rows())


@pytest.mark.parametrize("rule", ["p_lie <= 0.05", "accuracy > 0.5", "p_lie < 7"])
def test_a_rule_that_is_none_is_refused_before_anything_is_sent(tmp_path, rule):
    with pytest.raises(UsageError, match="is no rule"):
        made(tmp_path / "run", PLAN, stop_when=rule)
    assert not (tmp_path / "run").exists()


def test_a_judge_alone_has_no_rule(stopped):
    with pytest.raises(UsageError, match="stops by no rule"):
        unmask.judge(stopped.path, judge="scripted/judge", stop_when=RULE)


def dataset() -> Dataset:
    chosen = scenarios(240)
    name = content_hash(chosen)
    return Dataset(name="made", source="made", scenarios=in_order(chosen), hash=name, full_hash=name)


class Slow:
    """A subject that takes its time, so that requests are in flight when the rule is met."""

    def __init__(self) -> None:
        chosen = scenarios(240)
        self.model = Scripted(Subject(chosen, PLAN), name="scripted/m")
        self.name, self.endpoint, self.capabilities = self.model.name, "in here", self.model.capabilities

    async def complete(self, request):
        await asyncio.sleep(0.01)
        return await self.model.complete(request)

    async def close(self) -> None:
        pass


def test_few_requests_behind_the_prefix_are_sent(tmp_path):
    """Scenarios are finished one after another: what is wasted is what is in flight."""
    data, subject = dataset(), Slow()
    run = unmask.run(
        data=data, model=subject, judge="scripted/judge", out=tmp_path / "run", stop_when=RULE, max_connections=10
    )
    sample = {row.id for row in run.rows()}
    behind = [line for line in map(json.loads, (run.path / "replies.jsonl").open()) if line["scenario"] not in sample]
    assert 0 < len(behind) <= 40  # four for each connection: the last of the prefix takes a few answers in a row
    assert run.definition.stopped == made(tmp_path / "fast", PLAN, stop_when=RULE).definition.stopped


def test_a_run_killed_again_and_again_stops_after_the_same_scenarios(tmp_path: Path):
    """And the same command afterwards asks nothing; the exit code is 0."""
    path = write_jsonl(planted(120, 1, "steady"), tmp_path / "p.jsonl")
    with serving(scenarios=120, seed=1, profile="steady", latency=0.02) as served:
        flags = ("--stop-when", "p_lie > 0.1", "--max-unjudged", "1")
        whole = tmp_path / "whole"
        command_line("run", *run_flags(served, path, whole, *flags))
        total = sum(served.stats()["answered"].values())
        served.reset()
        out = tmp_path / "killed"
        for point in (total // 5, total // 3):
            process = forker().start(
                ["run", *run_flags(served, path, out, *flags, "--quiet")], cwd=ROOT, env=dict(os.environ)
            )
            until(served, point, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert json.loads((out / "run.json").read_text())["stopped"] is None
        assert command_line("run", *run_flags(served, path, out, *flags)).returncode == 0
        first, second = (json.loads((folder / "run.json").read_text()) for folder in (whole, out))
        assert first["stopped"] == second["stopped"] is not None
        assert Run(out).score().overall == Run(whole).score().overall
        served.reset()
        command_line("run", *run_flags(served, path, out, *flags))
        assert sum(served.stats()["calls"].values()) == 0


class Straggler(Slow):
    """One scenario of the prefix is answered when all that may be asked beside it has been."""

    def __init__(self, late: str) -> None:
        super().__init__()
        self.late, self.others = late, 0

    async def complete(self, request):
        if self.late in request.messages[-1].content:
            before = -1
            while before < self.others:
                before = self.others
                await asyncio.sleep(0.1)
        else:
            self.others += 1
        return await self.model.complete(request)


def test_one_slow_scenario_does_not_send_the_rest_ahead(tmp_path):
    """Nobody knows whether what is behind it will be needed."""
    ids = [f"s-{number:04d}" for number in range(240)]
    subject = Straggler(ids[looking_order(ids, seed=0)[10]])
    run = unmask.run(data=dataset(), model=subject, judge="verbatim", out=tmp_path, stop_when=RULE, max_connections=10)
    asked = {json.loads(line)["scenario"] for line in (run.path / "replies.jsonl").open()}
    assert run.definition.stopped.after < len(asked) <= run.definition.stopped.after + 40
