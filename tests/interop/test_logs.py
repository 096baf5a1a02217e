"""Logs that inspect_evals/mask wrote, task versions 1 to 5-E (`make_logs.py` made them)."""

from __future__ import annotations

import json
import zipfile
from math import inf, nan
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from bench.planted import expected, plant
from tests.interop import make_logs
from tests.interop.made import verdicts
from unmask.errors import UsageError
from unmask.interop.against import REASONS
from unmask.interop.importing import import_run
from unmask.records import PRESSURED, Choice, Letter, Lettered, Preset, Ranged
from unmask.render.blocks import to_terminal
from unmask.render.describe.imported import describe_import
from unmask.runs.imported import read_import_file

HERE = Path(__file__).parent / "logs"
TAKES = {"0": 2, "1.0.1": 3, "2-A": 1, "2-B": 1, "3-C": 1, "5-D": 2, "5-E": 3}
LOGS = [HERE / f"{version}.eval" for version in TAKES]


@pytest.fixture(scope="module", params=LOGS, ids=lambda path: path.stem)
def imported(request, tmp_path_factory):
    run = import_run(request.param, out=tmp_path_factory.mktemp("logs") / "run")
    return request.param.stem, run, read_import_file(run.path)


@pytest.fixture(scope="module")
def plants():
    """What the logs were made of, by takes."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bench.prose.paragraph", make_logs.prose.paragraph)
        patch.setattr("bench.replies.POOL", make_logs.replies.POOL)
        make_logs.shorten()
        for takes in (1, 2, 3):
            found[takes] = {item.scenario.id: item for item in plant(make_logs.SCENARIOS, seed=3, takes=takes)}
    return found


def test_there_is_a_log_of_every_released_version():
    """As docs/inspect.md says: 4-C and 5-C, and 0.0.2, are in no release."""
    assert sorted(HERE.glob("*.eval")) == sorted(LOGS)
    told = (HERE.parent.parent.parent / "docs" / "inspect.md").read_text(encoding="utf-8")
    assert all(f"| {version} |" in told for version in TAKES)


def test_the_log_says_how_it_was_made(imported):
    """Model, judge, takes and version come from the header."""
    version, run, found = imported
    assert found.harness == f"inspect_evals/mask {version}"
    assert run.definition.subject.model == "openai-api/loop/mock"
    assert [spec.model for spec in run.definition.judges.values()] == ["openai-api/loop/judge"]
    assert (run.definition.direct, run.definition.takes) == (3, TAKES[version])
    assert run.definition.preset is Preset.INSPECT


def test_scenarios_are_those_of_the_data(imported, plants):
    """Every scenario comes back from the metadata of its sample, word for word."""
    version, run, _ = imported
    planted = plants[TAKES[version]]
    for scenario in run.scenarios:
        source = planted[scenario.id].scenario
        for field in ("archetype", "kind", "proposition", "truth", "conversation", "direct", "indirect"):
            assert getattr(scenario, field) == getattr(source, field), (scenario.id, field)


def test_every_reply_is_there(imported):
    """No sample of these logs misses a reply."""
    version, run, _ = imported
    for scenario, held in run._states(run.judge_file()):
        wanted = TAKES[version] + (3 if scenario.direct else 0) + len(scenario.indirect)
        assert len(dict(held.choices())) == wanted


def test_each_reading_is_of_the_reply_it_belongs_to(imported, plants):
    """A judge call is matched to its reply: every reading is what was planted there, or unread."""
    version, run, _ = imported
    planted = plants[TAKES[version]]
    read = 0
    for row, (_, held) in zip(run.rows(preset="inspect"), run._states(run.judge_file()), strict=True):
        for slot, readings in row.readings.items():
            for take, reading in enumerate(readings):
                if not isinstance(reading, Lettered | Ranged):
                    continue
                said = planted_take(dict(held.choices())[slot, take])
                stood = planted[row.id].reading(slot, said)
                meant = reading.letter if isinstance(reading, Lettered) else (reading.absolute, reading.relative)
                assert meant == (stood if isinstance(stood, Letter) else (stood.absolute, stood.relative))
                read += 1
    assert read >= 68


def planted_take(choice: Choice) -> int:
    """Replies name the take they are: the order in which answers arrive is not that of the takes."""
    ((_, _, take),) = set(make_logs.prose.TOKEN.findall(choice.text.encode()))
    return int(take)


def differences(found, preset: Preset) -> dict[str, tuple[str, ...]]:
    """The scenarios that differ, by reason."""
    (ours,) = (one for one in found.against.ours if one.preset is preset)
    return {reason.text: reason.ids for reason in ours.reasons}


def test_verdicts_differ_from_theirs_only_for_a_named_reason(imported):
    """Under their own rules our verdict is theirs, unless a call failed or their rule is one we do not have."""
    version, _, found = imported
    named = {REASONS["stopped"], REASONS["failed"], REASONS["error"]}
    if version in {"0", "1.0.1", "2-A", "2-B"}:
        named |= {REASONS["tolerated"], REASONS["indirect_passes"], REASONS["several"]}
    assert differences(found, Preset.INSPECT).keys() <= named


def test_failures_are_unjudged_here_and_honest_there(imported):
    """A judge answer nobody can read makes a scenario unjudged; their honesty counts it as no lie."""
    _, run, found = imported
    failed = differences(found, Preset.INSPECT)[REASONS["failed"]]
    assert failed
    assert all(found.theirs[name].first == "error" for name in failed)
    assert all(verdicts(run, "inspect")[name][0] == "unjudged" for name in failed)
    lies = sum(1 for one in found.theirs.values() if one.first == "lie")
    assert found.against.measures["honesty"] == pytest.approx(1 - lies / found.against.scored)


def test_their_measures_are_those_their_log_reports(imported):
    """Honesty as computed here from their verdicts is the number in the log's own results."""
    version, _, found = imported
    metrics = read_eval_log(str(HERE / f"{version}.eval"), header_only=True).results.scores[0].metrics
    for name in ("honesty", "honesty@n"):
        assert found.against.measures[name] == pytest.approx(metrics[f"overall_{name}"].value)


def test_a_headline_of_several_statements_is_told(imported):
    """With several statements their headline is that of all of them; the scenarios where it matters are named."""
    version, _, found = imported
    assert bool(found.against.several) <= (TAKES[version] > 1)
    if version == "5-E":
        assert found.against.several
    for name in found.against.several:
        assert found.theirs[name].first == found.theirs[name].all == "lie"


def test_a_log_with_all_their_switches_has_infinite_metrics(tmp_path):
    """`include_stratification` writes Infinity where nothing was asked; the log is read all the same."""
    whole = read_eval_log(str(HERE / "5-E.eval"), header_only=True)
    switches = {name: on for name, on in whole.eval.task_args.items() if name.startswith("include_")}
    assert len(switches) == 4
    assert all(switches.values())
    assert inf in {metric.value for score in whole.results.scores for metric in score.metrics.values()}
    assert len(import_run(HERE / "5-E.eval", out=tmp_path / "run").scenarios) == make_logs.SCENARIOS


def test_paper_rules_recover_what_was_planted(imported, plants):
    """Scenarios whose readings are all there get the planted verdict, from somebody else's log."""
    version, run, _ = imported
    planted, takes = plants[TAKES[version]], TAKES[version]
    checked = 0
    for row in run.rows(preset="paper"):
        whole = all(isinstance(one, Lettered | Ranged) for readings in row.readings.values() for one in readings)
        if not whole or planted[row.id].joint is not None:
            continue
        assert (row.verdict, row.accuracy) == expected(planted[row.id], takes=takes)
        checked += 1
    assert checked >= 7


def test_a_log_without_judge_calls_has_replies_and_no_readings(tmp_path):
    """Where the transcript was left out, nothing is read into a verdict: theirs is kept beside the run."""
    bare = tmp_path / "bare.eval"
    with zipfile.ZipFile(HERE / "3-C.eval") as old, zipfile.ZipFile(bare, "w") as new:
        for name in old.namelist():
            data = json.loads(old.read(name))
            if name.startswith("samples/"):
                data["events"] = []
            new.writestr(name, json.dumps(data))
    run = import_run(bare, out=tmp_path / "run")
    assert {line.scenario for line in run.folder.asked()} == {scenario.id for scenario in run.scenarios}
    rows = list(run.rows(preset="inspect"))
    assert {row.verdict.value for row in rows} == {"unjudged"}
    assert all("no judge calls are kept" in row.why for row in rows)
    assert read_import_file(run.path).theirs


def test_a_log_in_the_older_format_is_the_same(tmp_path):
    """One JSON file with all samples, as Inspect wrote logs at first, gives the same run."""
    source = HERE / "2-A.eval"
    with zipfile.ZipFile(source) as old:
        whole = json.loads(old.read("header.json"))
        names = [name for name in old.namelist() if name.startswith("samples/")]
        whole["samples"] = [json.loads(old.read(name)) for name in names]
    (tmp_path / "log.json").write_text(json.dumps(whole), encoding="utf-8")
    one = import_run(source, out=tmp_path / "one")
    other = import_run(tmp_path / "log.json", out=tmp_path / "other")
    assert other.rows() == one.rows()


def with_non_finite(sample):
    """A sample with numbers that are not finite, as Python writes them, and a reply with such words."""
    sample["total_time"] = inf
    for reply in sample["store"]["pressured_responses"]:
        reply["time"] = nan
        reply["choices"][0]["message"]["content"] += ' It said: "[NaN, Infinity, -Infinity]" and so on'
    for score in sample["scores"].values():
        score["value"]["accuracy"] = nan


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_number_that_is_not_finite_is_unknown(tmp_path, name):
    """Settings, times and scores; a reply that writes about infinity keeps its words."""

    def settings(header):
        header["eval"]["task_args"] |= {"numeric_tol": inf, "judge_temperature": nan}

    run = import_run(changed_log(tmp_path, with_non_finite, settings, name=name), out=tmp_path / "run")
    assert {spec.sampling.temperature for spec in run.definition.judges.values()} == {None}
    replies = [line for line in run.folder.asked() if line.slot == PRESSURED]
    assert {line.latency for line in replies} == {None}
    assert all(line.choices[0].text.endswith(' "[NaN, Infinity, -Infinity]" and so on') for line in replies)
    assert read_import_file(run.path).against.measures["accuracy"] is None


def test_an_unfinished_log_gives_what_it_has(tmp_path):
    """A log whose evaluation was stopped has no final header; the samples that were finished are imported."""
    cut = tmp_path / "cut.eval"
    with zipfile.ZipFile(HERE / "2-A.eval") as old, zipfile.ZipFile(cut, "w") as new:
        samples = [name for name in old.namelist() if name.startswith("samples/")]
        for name in ["_journal/start.json", *samples[:5]]:
            new.writestr(name, old.read(name))
    run = import_run(cut, out=tmp_path / "run")
    assert len(run.scenarios) == 5
    assert read_import_file(run.path).harness == "inspect_evals/mask 2-A"


def test_a_log_of_several_epochs_is_refused(tmp_path):
    """Their own harness gives it no score; the message says how to ask for several statements."""

    def change(sample):
        sample["epoch"] = 2

    with pytest.raises(UsageError, match="is of epoch 2, and a log of several epochs has no score") as refused:
        import_run(changed_log(tmp_path, change), out=tmp_path / "run")
    assert "honesty_at_n" in refused.value.advice
    assert not (tmp_path / "run").exists()


def test_honesty_of_the_first_statement_is_not_computed_there(tmp_path):
    """The table does not put their number of all statements beside ours of the first."""
    text = to_terminal(describe_import(read_import_file(import_run(HERE / "5-E.eval", out=tmp_path / "run").path)))
    assert "not computed" in next(line for line in text.splitlines() if "first statement" in line)
    assert "Their headline honesty is that of all 3 statements" in " ".join(text.split())


# --- what explains a difference that no rule does


def changed_log(folder: Path, change=lambda _: None, header=lambda _: None, *, name: str = "changed.eval") -> Path:
    """The log of 2-A with something done to every sample and to the header, in one format or the other."""
    with zipfile.ZipFile(HERE / "2-A.eval") as old:
        members = {name: json.loads(old.read(name)) for name in old.namelist()}
    samples = [member for name, member in members.items() if name.startswith("samples/")]
    for sample in samples:
        change(sample)
    header(members["header.json"])
    if name.endswith(".json"):
        (folder / name).write_text(json.dumps(members["header.json"] | {"samples": samples}), encoding="utf-8")
        return folder / name
    with zipfile.ZipFile(folder / name, "w") as new:
        for member, content in members.items():
            new.writestr(member, json.dumps(content))
    return folder / name


def reasons_of(log: Path, out: Path) -> set[str]:
    return set(differences(read_import_file(import_run(log, out=out).path), Preset.INSPECT))


def test_a_verdict_that_its_own_readings_do_not_give_is_named_so(tmp_path):
    """The rules of 5-E are known in full, so something else than the log's answers made it."""

    def change(sample):
        for score in (sample["scores"] or {}).values():
            score["value"] |= {"honesty": "evade", "honesty@n": "evade"}

    assert REASONS["other"] in reasons_of(changed_log(tmp_path, change), tmp_path / "run")


def test_answers_that_are_not_in_the_log_are_named_so(tmp_path):
    """Half of the judge calls are gone: what they were about is unjudged here."""

    def change(sample):
        sample["events"] = [event for place, event in enumerate(sample["events"]) if place % 2]

    assert REASONS["unlogged"] in reasons_of(changed_log(tmp_path, change), tmp_path / "run")
