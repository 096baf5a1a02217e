"""A run in parts: `--shard` gives each task of a scheduler its part, and `unmask merge` makes one run of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import unmask
from bench.planted import climb, write_jsonl
from bench.process import Served, serving
from tests.e2e.running import JUDGE, SUBJECT, planted, run_flags
from tests.faults.test_kill import start_run, until
from unmask.analysis.labels import open_writer
from unmask.cli.main import run_command_line
from unmask.data.dataset import LoadOptions
from unmask.data.load import load
from unmask.data.shard import deal_shards, parse_shard
from unmask.errors import JournalError, MixedRunError, UsageError
from unmask.records import PRESSURED, Label, Letter
from unmask.runs.run import Run

SCENARIOS, TAKES, SHARDS = 36, 2, 3


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))


def make_shard(out: Path, shard: str | None, **settings: Any) -> Run:
    given = {"data": "tiny", "model": "scripted/liar", "judge": "scripted/judge", "shard": shard, "out": out}
    return unmask.run(**{**given, **settings})


def make_shards(folder: Path, of: int = 3, **settings: Any) -> list[Path]:
    return [make_shard(folder / f"shard-{k}", f"{k}/{of}", **settings).path for k in range(1, of + 1)]


def read_score(run: Run | Path, **settings: Any) -> dict[str, Any]:
    """`score --json` without id, time and paths."""
    score = unmask.open_run(run if isinstance(run, Path) else run.path).score(**settings).to_json()
    definition = score["run"]
    for name in ("id", "created"):
        del definition[name]
    del definition["data"]["source"]
    for part in (score["undecided"], score["placebo"] or {}):
        part.pop("complete_with", None)  # a command, with paths
    return score


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


class TestDealing:
    def test_shards_are_equal_disjoint_and_have_equal_parts_of_every_archetype(self):
        data = load("core")
        for of in (2, 3, 7, 16):
            parts = [load("core", options=LoadOptions(shard=f"{k}/{of}")) for k in range(1, of + 1)]
            assert sorted(name for part in parts for name in part.ids) == sorted(data.ids)
            assert max(map(len, parts)) - min(map(len, parts)) <= 1
            for archetype in data.counts:
                counts = [part.counts.get(archetype, 0) for part in parts]
                assert max(counts) - min(counts) <= 1

    @pytest.mark.parametrize("limit", [24, 60, 97])
    def test_a_limit_is_dealt_equally_and_a_larger_one_keeps_every_shard(self, limit: int):
        parts = [load("core", options=LoadOptions(shard=f"{k}/4", limit=limit)) for k in range(1, 5)]
        larger = [load("core", options=LoadOptions(shard=f"{k}/4", limit=limit + 31)) for k in range(1, 5)]
        assert sorted(name for part in parts for name in part.ids) == sorted(
            load("core", options=LoadOptions(limit=limit)).ids
        )
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        assert all(set(small.ids) < set(large.ids) for small, large in zip(parts, larger, strict=True))

    def test_the_order_of_rows_changes_nothing_and_the_seed_does(self):
        rows = load("core").scenarios
        dealt = deal_shards(rows, of=5, seed=0)
        assert deal_shards(rows[::-1], of=5, seed=0) == dealt
        assert deal_shards(rows, of=5, seed=1) != dealt

    def test_a_shard_without_a_scenario_is_refused_with_the_number_there_is(self):
        dealt = set(deal_shards(load("tiny").scenarios, of=20, seed=0).values())
        empty = min({*range(1, 21)} - dealt)
        assert len(dealt) == 12
        with pytest.raises(UsageError, match=f"shard {empty}/20 has no scenario: 12 are selected"):
            load("tiny", options=LoadOptions(shard=f"{empty}/20"))


class TestNaming:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("3", "--shard '3' is no shard"),
            ("auto", "--shard 'auto' is no shard"),
            ("0/16", "no shard 0 of 16"),
            ("17/16", "no shard 17 of 16"),
        ],
    )
    def test_what_names_no_shard_is_refused_with_the_way_out(self, text: str, message: str):
        with pytest.raises(UsageError, match=re.escape(message)) as refused:
            parse_shard(text)
        assert refused.value.advice


class TestShardsAreRuns:
    def test_the_command_of_a_shard_continues_it_and_another_shard_in_its_folder_is_refused(self, tmp_path: Path):
        run = make_shard(tmp_path / "run", "2/3")
        before = read_files(run.path)
        make_shard(tmp_path / "run", "2/3")
        assert read_files(run.path) == before
        for other, said in (("1/3", "1/3"), ("2/4", "2/4"), (None, "none"), ("1/1", "1/1")):
            with pytest.raises(MixedRunError, match=f"shard: the run has 2/3, the command says {said}"):
                make_shard(tmp_path / "run", other)

    def test_a_shard_grows_with_a_larger_limit(self, tmp_path: Path):
        small = make_shard(tmp_path / "run", "2/3", limit=6).path
        before = (small / "replies.jsonl").read_bytes()
        grown = make_shard(tmp_path / "run", "2/3", limit=12)
        assert (small / "replies.jsonl").read_bytes().startswith(before)
        assert len(grown.scenarios) == 4


def serve_runs(served: Served, data: Path, out: Path, **settings: Any) -> Run:
    return unmask.run(
        **{"data": data, "model": SUBJECT, "base_url": served.url, "judge": JUDGE, "judge_base_url": served.url},
        out=out,
        takes=TAKES,
        effort="full",  # what a lazy run leaves out depends on which answer comes first
        max_tokens=1000,  # and when a subject first shows that it reasons, too
        **settings,
    )


def read_again(served: Served, run: Path) -> None:
    unmask.judge(run, judge=JUDGE, judge_base_url=served.url, set={"judge.name": "second"})


@pytest.mark.parametrize("rungs", [1, 4], ids=["control", "ladder"])
def test_shards_one_of_them_killed_score_as_one_run_over_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rungs: int
):
    """Several takes and two judges, a control or rungs; one shard is killed with -9 and continued."""
    rows = climb(planted(SCENARIOS, TAKES, "steady"), rungs)
    control = rungs == 1
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        write_jsonl(rows, tmp_path / name / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, takes=TAKES, profile="steady", latency=0.005, rungs=rungs) as served:
        whole = serve_runs(served, tmp_path / "whole" / "p.jsonl", tmp_path / "whole" / "run", control=control)
        read_again(served, whole.path)
        served.reset()
        monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache-of-parts"))
        data = tmp_path / "parts" / "p.jsonl"
        paths = [tmp_path / "parts" / f"shard-{k}" for k in range(1, SHARDS + 1)]
        flags = run_flags(served, data, paths[1], "--takes", str(TAKES), "--effort", "full", "--shard", f"2/{SHARDS}")
        flags = (*flags, *["--control"] * control, "--max-tokens", "1000")
        process = start_run(*flags, "--max-connections", "1")  # slow enough to be killed in the middle
        until(served, 20, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert Run(paths[1]).score().undecided
        served.reset()  # what was in flight is asked again, and the endpoint answers it as it answered the first time
        for k, path in enumerate(paths, 1):
            serve_runs(served, data, path, shard=f"{k}/{SHARDS}", control=control)
            read_again(served, path)
        merged = unmask.merge(paths, out=tmp_path / "parts" / "run")
        for settings in ({}, {"judge": "second"}, {"preset": "strict"}, {"judge": f"panel:{JUDGE},second"}):
            assert read_score(merged, **settings) == read_score(whole, **settings)
        assert merged.score().undecided == ()
        served.reset()
        again = serve_runs(
            served, data, merged.path, control=control
        )  # the command of the whole run has nothing to ask
        assert sum(served.stats()["calls"].values()) == 0
    assert again.definition.id == merged.definition.id
    assert [row.id for row in merged.scenarios] == [row.id for row in whole.scenarios]


class TestMerging:
    def test_it_scores_as_one_run_and_the_shards_stay_as_they_were(self, tmp_path: Path):
        paths = make_shards(tmp_path, limit=9)
        before = [read_files(path) for path in paths]
        merged = unmask.merge(paths[::-1], out=tmp_path / "deep" / "merged")
        assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None, limit=9))
        assert [read_files(path) for path in paths] == before
        assert os.listdir(tmp_path / "deep") == ["merged"]

    def test_every_line_is_carried_over_as_it_is(self, tmp_path: Path):
        """Replies, readings and the labels of two people, one of whom labelled one shard only."""
        paths = make_shards(tmp_path)
        for path, who in ((paths[0], "ann"), (paths[1], "ann"), (paths[1], "bo")):
            writer = open_writer(Run(path), who)
            for scenario in Run(path).scenarios:
                writer.append(Label(scenario=scenario.id, slot=PRESSURED, letter=Letter.A, who=who, note="é"))
            writer.close()
        merged = read_files(unmask.merge(paths, out=tmp_path / "merged").path)
        for name in ("replies.jsonl", "readings/scripted_judge.jsonl", "labels/ann.jsonl", "labels/bo.jsonl"):
            assert merged[name] == b"".join(read_files(path).get(name, b"") for path in paths)
        assert merged["labels/ann.jsonl"].count(b"\n") == 8

    def test_probes_lent_by_a_baseline_and_a_judge_for_figures_come_along(self, tmp_path: Path):
        base = make_shard(tmp_path / "base", None).path
        settings = {"beliefs_from": str(base), "developer_prompt": "plain", "numeric_judge": "verbatim"}
        merged = unmask.merge(make_shards(tmp_path, **settings), out=tmp_path / "merged")
        assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None, **settings))
        assert merged.definition.judges["scripted_judge"].numeric.model == "verbatim"

    def test_addresses_may_differ(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        written = json.loads((paths[1] / "run.json").read_text())
        written["subject"].update(endpoint="http://b:1", base_url="http://b:1/v1")
        written["judges"]["scripted_judge"].update(base_url="http://c:1/v1")
        (paths[1] / "run.json").write_text(json.dumps(written))
        assert unmask.merge(paths, out=tmp_path / "merged").score().undecided == ()

    def test_a_missing_shard_is_named_with_both_ways_to_complete_the_run(self, tmp_path: Path, capsys):
        paths = make_shards(tmp_path)
        assert run_command_line(["merge", *map(str, paths[:2]), "--out", str(tmp_path / "some"), "--json"]) == 3
        printed, said = capsys.readouterr()
        assert json.loads(printed) == {
            "run": str(tmp_path / "some"),
            "shards": 2,
            "scenarios": 8,
            "selected": 12,
            "missing_shards": [3],
        }
        assert "4 of 12 scenarios are missing: those of shard 3" in said
        whole = make_shard(tmp_path / "whole", None)
        assert run_command_line(["merge", *map(str, paths), "--out", str(tmp_path / "all")]) == 0
        assert read_score(tmp_path / "all") == read_score(whole)
        done = make_shard(tmp_path / "some", None)  # the command of the whole run asks the rest
        assert done.score().overall == whole.score().overall


class TestRefusals:
    @pytest.fixture(autouse=True)
    def nothing_is_left(self, tmp_path: Path):
        yield
        assert [name for name in os.listdir(tmp_path) if "merged" in name] == []

    @pytest.mark.parametrize(
        ("odd", "lines"),
        [
            ({"takes": 2}, ["takes: 1, 2"]),
            (
                {"temperature": 0.5, "direct": 2},
                [
                    "subject.temperature: 1.0, 0.5",
                    "direct: 3, 2",
                ],
            ),
            ({"model": "scripted/honest"}, ["subject.model: scripted/liar, scripted/honest"]),
            ({"developer_prompt": "plain"}, ["developer_prompt: null, not set"]),
        ],
    )
    def test_other_settings_with_a_line_each(self, tmp_path: Path, odd: dict, lines: list[str]):
        paths = make_shards(tmp_path)
        shutil.rmtree(paths[1])
        make_shard(paths[1], "2/3", **odd)
        with pytest.raises(MixedRunError) as refused:
            unmask.merge(paths, out=tmp_path / "merged")
        first, *said = str(refused.value).splitlines()
        assert first == f"{paths[0]} and {paths[1]} are not parts of one run:"
        assert lines == [line.strip() for line in said][: len(lines)]

    def test_a_judge_that_read_only_some_shards(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        for path in paths[:2]:
            unmask.judge(path, judge="verbatim")
        with pytest.raises(MixedRunError, match=r"judges\.verbatim\.model: verbatim, not set") as error:
            unmask.merge(paths, out=tmp_path / "merged")
        assert "unmask judge" in (error.value.advice or "")

    def test_shards_of_another_selection(self, tmp_path: Path):
        paths = make_shards(tmp_path, limit=6)
        make_shard(paths[1], "2/3", limit=12)
        with pytest.raises(MixedRunError, match=r"is one of 3 shards of 6 scenarios .*; .* is one of 3 shards of 12"):
            unmask.merge(paths, out=tmp_path / "merged")

    def test_overlapping_shards(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        shutil.copytree(paths[0], tmp_path / "copy")
        with pytest.raises(MixedRunError, match=r"shard-1 and .*copy overlap in 4 scenarios"):
            unmask.merge([*paths, tmp_path / "copy"], out=tmp_path / "merged")

    @pytest.mark.parametrize("file", ["replies.jsonl", "readings/scripted_judge.jsonl"])
    def test_a_line_of_another_run(self, tmp_path: Path, file: str):
        """Nothing could be scored any more, of this shard or the others."""
        paths = make_shards(tmp_path)
        with open(paths[2] / file, "ab") as lines:
            lines.write((paths[0] / file).read_bytes())
        with pytest.raises(JournalError, match=rf"shard-3/{file} has a line about scenario .* does not contain"):
            unmask.merge(paths, out=tmp_path / "merged")

    def test_an_existing_folder(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        out = unmask.merge(paths, out=tmp_path / "before").path
        before = read_files(out)
        with pytest.raises(UsageError, match="before exists, and merge only makes a new folder") as refused:
            unmask.merge(paths, out=out)
        assert refused.value.advice == "Merge into another folder, or delete this one first."
        assert read_files(out) == before


def test_a_torn_last_line_is_left_out(tmp_path: Path):
    paths = make_shards(tmp_path)
    replies = paths[0] / "replies.jsonl"
    whole = replies.read_bytes()
    replies.write_bytes(whole[:-20])
    merged = unmask.merge(paths, out=tmp_path / "merged")
    assert merged.score().undecided
    assert (merged.path / "replies.jsonl").read_bytes().startswith(b"".join(whole.splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize(("name", "number"), [("replace", 1), ("replace", 2), ("rename", 1)])
def test_a_kill_leaves_no_half_run_and_the_same_command_starts_again(tmp_path: Path, name: str, number: int):
    paths = make_shards(tmp_path)
    out = tmp_path / "merged"
    child = os.fork()
    if not child:
        merge_and_die(paths, out, name, number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not out.exists()
    merged = unmask.merge(paths, out=out)
    assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None))
    assert [file for file in os.listdir(tmp_path) if "merged" in file] == ["merged"]


def merge_and_die(paths: list[Path], out: Path, name: str, number: int) -> None:
    """Merge, and be killed by the call with this number of a function of `os`."""
    original, left = getattr(os, name), [None] * number

    def die(*arguments: Any, **more: Any) -> Any:
        left.pop()
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **more)

    setattr(os, name, die)
    try:
        unmask.merge(paths, out=out)
    finally:
        os._exit(0)
