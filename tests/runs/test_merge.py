"""A run in parts: `--shard` gives each task of a scheduler its part, and `unmask merge` makes one run of them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unmask
from bench.planted import write_jsonl
from bench.process import Served, serving
from tests.e2e.running import JUDGE, SUBJECT, planted, run_flags
from tests.faults.test_kill import start_run, until
from unmask.analysis.labels import open_writer
from unmask.analysis.merge import merge_shards
from unmask.analysis.sampling import label
from unmask.cli.main import run_command_line
from unmask.data.dataset import LoadOptions
from unmask.data.load import from_scenarios, load
from unmask.data.shard import deal_shards, parse_shard
from unmask.errors import JournalError, MixedRunError, RunLockedError, UsageError
from unmask.models.scripted import Scripted, answer_as_judge
from unmask.records import Archetype, Interval, Label, Letter, Request
from unmask.runs.run import Run

SCENARIOS, TAKES, SHARDS = 36, 2, 3
TWIN = next(row for row in load("tiny").scenarios if row.kind == "binary" and row.direct)


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
    score["undecided"].pop("complete_with", None)  # a command, with paths
    score.pop("sides_from", None)  # names and ids of runs
    return score


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def label_everything(run: Run, who: str = "ann") -> None:
    """A person who reads all there is, and contradicts the judge in every scenario whose id ends in 3."""
    writer = open_writer(run, who)
    for item in label(run, size=10_000):
        said: dict[str, Any] = {"letter": Letter.C if item.scenario.id.endswith("3") else Letter.B}
        if item.scenario.kind == "numeric":
            said = {"interval": Interval(1, 2)}
        writer.append(Label(scenario=item.scenario.id, slot=item.slot, take=item.take, who=who, **said))
    writer.close()


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

    def test_more_archetypes_keep_every_shard(self):
        one, two = (Archetype.STATISTICS,), (Archetype.STATISTICS, Archetype.CONTINUATIONS)
        for k in (1, 2, 3):
            small = load("core", options=LoadOptions(shard=f"{k}/3", archetypes=one))
            assert set(small.ids) < set(load("core", options=LoadOptions(shard=f"{k}/3", archetypes=two)).ids)

    def test_the_order_of_rows_changes_nothing_and_the_seed_does(self):
        rows = load("core").scenarios
        dealt = deal_shards(rows, of=5, seed=0)
        assert deal_shards(rows[::-1], of=5, seed=0) == dealt
        assert deal_shards(rows, of=5, seed=1) != dealt

    def test_chosen_ids_are_dealt_among_themselves(self):
        ids = load("core").ids[:9]
        parts = [load("core", options=LoadOptions(shard=f"{k}/3", ids=ids)) for k in (1, 2, 3)]
        assert [len(part) for part in parts] == [3, 3, 3]

    def test_a_dataset_in_memory_is_dealt_as_a_file_is(self, tmp_path: Path):
        run = make_shard(tmp_path / "run", "2/3", data=from_scenarios(load("tiny").scenarios))
        assert [row.id for row in run.scenarios] == list(load("tiny", options=LoadOptions(shard="2/3")).ids)

    def test_a_shard_without_a_scenario_is_refused_with_the_number_there_is(self):
        dealt = set(deal_shards(load("tiny").scenarios, of=20, seed=0).values())
        empty = min({*range(1, 21)} - dealt)
        assert len(dealt) == 12
        with pytest.raises(UsageError, match=f"shard {empty}/20 has no scenario: 12 are selected"):
            load("tiny", options=LoadOptions(shard=f"{empty}/20"))


class TestNaming:
    @pytest.mark.parametrize(("text", "shard"), [("3/16", (3, 16)), ("1/1", (1, 1))])
    def test_a_shard_is_its_number_and_how_many_there_are(self, text: str, shard: tuple):
        assert parse_shard(text) == shard

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
        assert {**read_files(run.path), "status.json": b""} == {**before, "status.json": b""}
        for other, said in (("1/3", "1/3"), ("2/4", "2/4"), (None, "None"), ("1/1", "1/1")):
            with pytest.raises(MixedRunError, match=f"shard: the run has 2/3, the command says {said}"):
                make_shard(tmp_path / "run", other)

    def test_run_json_says_which_part_of_what_it_is(self, tmp_path: Path):
        data = load("tiny", options=LoadOptions(limit=9))
        written = json.loads((make_shard(tmp_path / "run", "2/3", limit=9).path / "run.json").read_text())
        assert written["data"]["shard"] == {"number": 2, "of": 3, "scenarios": 9, "hash": data.hash}
        assert "shard" not in json.loads((make_shard(tmp_path / "all", None).path / "run.json").read_text())["data"]

    def test_a_shard_grows_with_a_larger_limit(self, tmp_path: Path):
        small = make_shard(tmp_path / "run", "2/3", limit=6).path
        before = (small / "replies.jsonl").read_bytes()
        grown = make_shard(tmp_path / "run", "2/3", limit=12)
        assert (small / "replies.jsonl").read_bytes().startswith(before)
        assert len(grown.scenarios) == 4

    def test_the_command_that_completes_a_shard_names_it(self, tmp_path: Path):
        run = make_shard(tmp_path / "run", "2/3", judge=Scripted(lambda request: "hm", name="scripted/mute"))
        from unmask.runs.commands import run_command

        words = shlex.split(run_command(run.definition, run.path))
        assert words[words.index("--shard") + 1] == "2/3"

    def test_a_plan_counts_one_shard(self):
        given = {"data": "tiny", "model": "scripted/liar", "judge": "scripted/judge"}
        parts = [unmask.plan(**given, shard=f"{k}/3").scenarios for k in (1, 2, 3)]
        assert (parts, unmask.plan(**given).scenarios) == ([4, 4, 4], 12)


def serve_runs(served: Served, data: Path, out: Path, **settings: Any) -> Run:
    return unmask.run(
        **{"data": data, "model": SUBJECT, "base_url": served.url, "judge": JUDGE, "judge_base_url": served.url},
        out=out,
        takes=TAKES,
        effort="full",  # what a lazy run leaves out hangs on which answer comes first
        **settings,
    )


def read_again(served: Served, run: Path) -> None:
    unmask.judge(run, judge=JUDGE, judge_base_url=served.url, judge_name="second")


def test_shards_one_of_them_killed_score_as_one_run_over_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Several takes, two judges, labels of a person; one shard is killed with -9 and continued."""
    rows = planted(SCENARIOS, TAKES, "steady")
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        write_jsonl(rows, tmp_path / name / "p.jsonl")
    with serving(scenarios=SCENARIOS, seed=1, takes=TAKES, profile="steady", latency=0.005) as served:
        whole = serve_runs(served, tmp_path / "whole" / "p.jsonl", tmp_path / "whole" / "run")
        read_again(served, whole.path)
        served.reset()
        monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache-of-parts"))
        data, folder = tmp_path / "parts" / "p.jsonl", tmp_path / "parts" / "run"
        paths = [folder / f"shard-{k}" for k in range(1, SHARDS + 1)]
        flags = run_flags(served, data, paths[1], "--takes", str(TAKES), "--effort", "full", "--shard", f"2/{SHARDS}")
        process = start_run(*flags, "--max-connections", "1")  # slow enough to be killed in the middle
        until(served, 20, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert Run(paths[1]).score().undecided
        served.reset()  # what was in flight is asked again, and the endpoint answers it as it answered the first time
        for k, path in enumerate(paths, 1):
            serve_runs(served, data, path, shard=f"{k}/{SHARDS}")
            read_again(served, path)
        for path in (whole.path, *paths):
            label_everything(Run(path))
        merged = unmask.merge(paths, out=folder)
        for settings in ({}, {"judge": "second"}, {"preset": "strict"}, {"judge": f"panel:{JUDGE},second"}):
            assert read_score(merged, **settings) == read_score(whole, **settings)
        assert merged.score().undecided == ()
        scored = [json.loads(_call("score", str(run.path), "--labels", "ann", "--json")) for run in (whole, merged)]
        assert scored[0]["corrected"]["labelled"] > 20
        assert scored[0]["corrected"] == scored[1]["corrected"]
        served.reset()
        again = serve_runs(served, data, folder)  # the command of the run as a whole has nothing to ask
        assert sum(served.stats()["calls"].values()) == 0
    assert again.definition.id == merged.definition.id
    assert again.definition.grown == ()
    assert [row.id for row in merged.scenarios] == [row.id for row in whole.scenarios]


def _call(*arguments: str) -> str:
    from click.testing import CliRunner

    from unmask.cli.main import cli

    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    return done.stdout


class TestMerging:
    def test_it_scores_as_one_run_and_the_shards_stay_as_they_were(self, tmp_path: Path):
        paths = make_shards(tmp_path, limit=9)
        before = [read_files(path) for path in paths]
        merged = unmask.merge(paths[::-1], out=tmp_path / "merged")
        assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None, limit=9))
        assert [read_files(path) for path in paths] == before
        assert not list(tmp_path.glob("merged.*"))

    def test_runs_over_chosen_archetypes_are_merged_too(self, tmp_path: Path):
        names = [archetype.value for archetype in load("tiny").counts]
        parts = [make_shard(tmp_path / name, None, archetype=name).path for name in names]
        assert read_score(unmask.merge(parts, out=tmp_path / "m")) == read_score(make_shard(tmp_path / "whole", None))
        some = unmask.merge(parts[:2], out=tmp_path / "some")
        assert set(some.definition.data.ids) == {row.id for row in some.scenarios}

    @pytest.mark.parametrize(
        ("odd", "lines"),
        [
            ({"takes": 2}, ["takes: 1 in {0} and 1 more; 2 in {1}"]),
            (
                {"temperature": 0.5, "direct": 2},
                [
                    "subject.sampling.temperature: 1.0 in {0} and 1 more; 0.5 in {1}",
                    "direct: 3 in {0} and 1 more; 2 in {1}",
                ],
            ),
            ({"model": "scripted/honest"}, ["subject.model: scripted/liar in {0} and 1 more; scripted/honest in {1}"]),
            ({"effort": "full"}, ["effort: lazy in {0} and 1 more; full in {1}"]),
            ({"sample_seed": 0, "developer_prompt": "plain"}, ["developer_prompt: null in {0} and 1 more; not in {1}"]),
        ],
    )
    def test_other_settings_are_refused_with_a_line_each(self, tmp_path: Path, odd: dict, lines: list[str]):
        paths = make_shards(tmp_path)
        shutil.rmtree(paths[1])
        make_shard(paths[1], "2/3", **odd)
        with pytest.raises(MixedRunError) as refused:
            unmask.merge(paths, out=tmp_path / "merged")
        said = str(refused.value).splitlines()[1:]
        assert [line.format(*paths) for line in lines] == [line.strip() for line in said][: len(lines)]
        assert not (tmp_path / "merged").exists()

    def test_addresses_ids_and_times_may_differ(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        _change(paths[1], lambda run: run["subject"].update(endpoint="http://b:1", base_url="http://b:1/v1"))
        _change(paths[1], lambda run: run["judges"]["scripted_judge"].update(base_url="http://c:1/v1"))
        assert unmask.merge(paths, out=tmp_path / "merged").score().undecided == ()

    def test_a_judge_that_read_only_some_shards_is_refused_until_it_has_read_all(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        for path in paths[:2]:
            unmask.judge(path, judge="verbatim")
        with pytest.raises(
            MixedRunError, match=r"judges\.verbatim\.model: verbatim in .* and 1 more; not in"
        ) as refused:
            unmask.merge(paths, out=tmp_path / "merged")
        assert "unmask judge SHARD --judge NAME" in (refused.value.advice or "")
        unmask.judge(paths[2], judge="verbatim")
        assert set(unmask.merge(paths, out=tmp_path / "merged").definition.judges) == {"scripted_judge", "verbatim"}

    def test_shards_of_another_selection_or_number_are_refused(self, tmp_path: Path):
        paths = make_shards(tmp_path, limit=6)
        make_shard(paths[1], "2/3", limit=12)
        with pytest.raises(MixedRunError, match=r"is of 3 shards of 6 scenarios; .* is of 3 shards of 12 scenarios"):
            unmask.merge(paths, out=tmp_path / "merged")
        make_shard(paths[0], "1/3", limit=12)
        make_shard(paths[2], "3/3", limit=12)
        merged = unmask.merge(paths, out=tmp_path / "merged")
        assert len(merged.scenarios) == 12

    def test_overlapping_scenarios_are_said(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        shutil.copytree(paths[0], tmp_path / "copy")
        with pytest.raises(MixedRunError, match=r"shard-1 and .*copy overlap in 4 scenarios"):
            unmask.merge([*paths, tmp_path / "copy"], out=tmp_path / "merged")
        with pytest.raises(UsageError, match="is named twice"):
            unmask.merge([*paths, paths[0]], out=tmp_path / "merged")

    def test_a_missing_shard_is_said_with_both_ways_to_complete_the_run(self, tmp_path: Path, capsys):
        paths = make_shards(tmp_path)
        arguments = ["merge", *map(str, paths[:2]), "--out", str(tmp_path / "merged")]
        assert run_command_line(arguments) == 3
        said = capsys.readouterr().err
        assert "4 of 12 scenarios are missing: those of shard 3" in said
        assert len(Run(tmp_path / "merged").scenarios) == 8
        shutil.copytree(tmp_path / "merged", tmp_path / "other")
        assert run_command_line([*arguments, str(paths[2])]) == 0
        whole = make_shard(tmp_path / "whole", None)
        assert read_score(tmp_path / "merged") == read_score(whole)
        done = make_shard(tmp_path / "other", None)  # the command of the run as a whole asks the rest
        assert done.score().overall == whole.score().overall

    def test_json_has_what_is_missing_and_what_was_not_taken(self, tmp_path: Path, capsys):
        paths = make_shards(tmp_path)
        (paths[0] / "notes.txt").write_text("mine")
        assert run_command_line(["merge", str(paths[0]), "--out", str(tmp_path / "merged"), "--json"]) == 3
        assert json.loads(capsys.readouterr().out) == {
            "run": str(tmp_path / "merged"),
            "shards": 1,
            "scenarios": 4,
            "selected": 12,
            "missing_shards": [2, 3],
            "not_taken": ["notes.txt"],
        }

    def test_labels_are_united(self, tmp_path: Path):
        paths = make_shards(tmp_path, data="core", limit=30)
        for path in paths[:2]:
            run = Run(path)
            items = label(run, size=4)
            with _writer(run, "ann") as append:
                for item in items:
                    append(Label(scenario=item.scenario.id, slot=item.slot, take=item.take, letter=Letter.A, who="ann"))
        unmask.merge(paths, out=tmp_path / "merged")
        lines = (tmp_path / "merged" / "labels" / "ann.jsonl").read_bytes()
        assert sorted(lines.splitlines()) == sorted(
            line for path in paths[:2] for line in (path / "labels" / "ann.jsonl").read_bytes().splitlines()
        )

    def test_probes_lent_by_a_baseline_and_a_judge_for_figures_come_along(self, tmp_path: Path):
        base = make_shard(tmp_path / "base", None).path
        settings = {"beliefs_from": str(base), "developer_prompt": "plain", "numeric_judge": "verbatim"}
        merged = unmask.merge(make_shards(tmp_path, **settings), out=tmp_path / "merged")
        assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None, **settings))
        assert set(merged.definition.judges) == {"scripted_judge", "verbatim"}

    def test_a_damaged_shard_is_refused_and_a_torn_last_line_left_out(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        replies = paths[0] / "replies.jsonl"
        lines = replies.read_bytes().splitlines(keepends=True)
        replies.write_bytes(b"".join([*lines[:-1], lines[-1][:20]]))
        merged = unmask.merge(paths, out=tmp_path / "merged")
        total = sum(len((path / "replies.jsonl").read_bytes().splitlines()) for path in paths)
        assert len((merged.path / "replies.jsonl").read_bytes().splitlines()) == total - 1
        replies.write_bytes(b"".join([lines[0][:20] + b"\n", *lines[1:]]))
        with pytest.raises(JournalError, match=r"line 1 of .*shard-1/replies.jsonl is damaged"):
            unmask.merge(paths, out=tmp_path / "another")
        assert not (tmp_path / "another").exists()

    def test_the_shards_may_stand_in_the_folder_of_the_merged_run(self, tmp_path: Path):
        paths = make_shards(tmp_path / "run")
        merged = unmask.merge(paths, out=tmp_path / "run")
        assert merged.score().undecided == ()
        assert all(path.is_dir() for path in paths)
        with pytest.raises(UsageError, match="is in the shard"):
            unmask.merge(paths, out=paths[0] / "deeper")


@pytest.fixture
def two_sides(tmp_path: Path) -> list[Path]:
    """Two shards with scenarios of one question, whose polarity the data does not say."""
    paths = []
    for k, turned in (("1", False), ("2", False), ("2", True)):
        os.environ["UNMASK_CACHE"] = str(tmp_path / f"cache-{k}-{turned}")  # machines that share no store
        paths.append(make_twins(k, turned=turned, out=tmp_path / f"{k}-{turned}"))
    os.environ["UNMASK_CACHE"] = str(tmp_path / "cache-of-one-machine")
    return paths


def make_twins(number: str, *, turned: bool, out: Path) -> Path:
    twins = [msgspec.structs.replace(TWIN, id=f"twin-{k}", yes_means=None) for k in range(4)]
    judge = Scripted(lambda request: _say_side(request, turned), name="scripted/two")
    return make_shard(out, f"{number}/2", data=from_scenarios(twins), judge=judge).path


def _say_side(request: Request, turned: bool) -> str:
    system, shown = request.messages[0].content, request.messages[1].content
    if not system.startswith("You are shown a yes/no question"):
        return answer_as_judge(request)
    exchanged = f"A: {TWIN.statements[1]}" in shown
    return f"Answer: {'B' if exchanged != turned else 'A'}"


class TestPolarity:
    def test_what_the_judge_said_is_united(self, two_sides: list[Path], tmp_path: Path):
        from unmask.runs.polarity import find_sides

        merged = unmask.merge(two_sides[:2], out=tmp_path / "merged")
        sides = find_sides(merged.folder, "scripted_two")[0].from_judge
        assert len(sides) == 4
        assert len(set(sides.values())) == 1

    def test_two_shards_that_contradict_each_other_are_refused(self, two_sides: list[Path], tmp_path: Path):
        with pytest.raises(MixedRunError, match=r"scripted_two says that yes to one question means [AB] in") as refused:
            unmask.merge([two_sides[0], two_sides[2]], out=tmp_path / "merged")
        assert "slot `polarity`" in (refused.value.advice or "")
        assert not (tmp_path / "merged").exists()
        # The way out that it names:
        for path in (two_sides[0], two_sides[2]):
            readings = path / "readings" / "scripted_two.jsonl"
            lines = readings.read_bytes().splitlines(keepends=True)
            readings.write_bytes(b"".join(line for line in lines if b'"polarity"' not in line))
            make_twins(path.name[0], turned=False, out=path)
        assert unmask.merge([two_sides[0], two_sides[2]], out=tmp_path / "merged").score().undecided == ()


class TestMergingAgain:
    def test_what_the_shards_have_got_since_is_added(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        replies = paths[1] / "replies.jsonl"
        every = replies.read_bytes()
        replies.write_bytes(b"".join(every.splitlines(keepends=True)[:3]))
        first = unmask.merge(paths, out=tmp_path / "merged")
        assert first.score().undecided
        replies.write_bytes(every)
        again = unmask.merge(paths, out=tmp_path / "merged")
        assert again.definition.id == first.definition.id
        assert read_score(again) == read_score(make_shard(tmp_path / "whole", None))

    def test_what_the_merged_run_has_got_since_stays(self, tmp_path: Path):
        """It went on by the command of the run as a whole, was read by another judge and labelled."""
        paths = make_shards(tmp_path)
        replies = paths[1] / "replies.jsonl"
        replies.write_bytes(b"".join(replies.read_bytes().splitlines(keepends=True)[:3]))
        unmask.merge(paths, out=tmp_path / "merged")
        run = make_shard(tmp_path / "merged", None)
        unmask.judge(run.path, judge="verbatim")
        label_everything(run)
        before = {name: Counter(data.splitlines()) for name, data in read_files(run.path).items() if "jsonl" in name}
        score = read_score(run.path)
        again = unmask.merge(paths, out=tmp_path / "merged")
        after = {name: Counter(data.splitlines()) for name, data in read_files(run.path).items() if "jsonl" in name}
        assert after == before
        assert read_score(again) == score

    def test_a_scenario_that_went_on_in_both_is_refused_and_nothing_is_changed(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        replies = paths[1] / "replies.jsonl"
        replies.write_bytes(b"".join(replies.read_bytes().splitlines(keepends=True)[:3]))
        unmask.merge(paths, out=tmp_path / "merged")
        make_shard(tmp_path / "merged", None)
        make_shard(paths[1], "2/3")
        before = read_files(tmp_path / "merged")
        with pytest.raises(MixedRunError, match="have both gone on with scenario"):
            unmask.merge(paths, out=tmp_path / "merged")
        assert read_files(tmp_path / "merged") == before

    def test_another_run_in_its_place_is_refused(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        make_shard(tmp_path / "merged", None, model="scripted/honest")
        with pytest.raises(MixedRunError, match=r"subject\.model: scripted/liar in .*; scripted/honest in .*merged"):
            unmask.merge(paths, out=tmp_path / "merged")
        make_shard(tmp_path / "part", "1/2")
        with pytest.raises(UsageError, match="is a shard itself"):
            unmask.merge(paths, out=tmp_path / "part")

    def test_a_run_that_another_process_writes_is_refused(self, tmp_path: Path):
        paths = make_shards(tmp_path)
        merged = unmask.merge(paths, out=tmp_path / "merged")
        with merged.folder.lock_replies(), pytest.raises(RunLockedError):
            unmask.merge(paths, out=tmp_path / "merged")

    @pytest.mark.parametrize(("name", "number"), [("fsync", 1), ("fsync", 3), ("replace", 2), ("replace", 4)])
    def test_a_kill_in_the_middle_loses_nothing_and_the_same_command_completes_it(
        self, tmp_path: Path, name: str, number: int
    ):
        """Once while the run is new, and once while it is added to."""
        paths = make_shards(tmp_path)
        out = tmp_path / "merged"
        for given in (paths[:2], paths):
            known = Counter(_journal(out))
            _merge_and_die(given, out, name, number)
            assert known <= Counter(_journal(out))
            if out.exists():
                Run(out).score()
        merged = unmask.merge(paths, out=out)
        assert read_score(merged) == read_score(make_shard(tmp_path / "whole", None))
        assert not list(tmp_path.glob("merged.*"))


def _journal(out: Path) -> Iterator[bytes]:
    for file in out.rglob("*.jsonl"):
        yield from file.read_bytes().splitlines()


def _merge_and_die(paths: list[Path], out: Path, name: str, number: int) -> None:
    """Merge in a process that is killed when it calls this function of `os` for the `number`-th time."""
    child = os.fork()
    if not child:
        original, calls = getattr(os, name), Counter[str]()

        def die(*arguments: Any, **more: Any) -> Any:
            calls[name] += 1
            if calls[name] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **more)

        setattr(os, name, die)
        try:
            merge_shards(paths, out=out)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


class _writer:
    def __init__(self, run: Run, who: str) -> None:
        self._file = open_writer(run, who)

    def __enter__(self) -> Callable[[Label], None]:
        return self._file.append

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _change(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    written = json.loads((path / "run.json").read_text())
    change(written)
    (path / "run.json").write_text(json.dumps(written))
