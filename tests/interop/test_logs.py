"""Logs that inspect_evals/mask wrote, task versions 1 to 5-E (`make_logs.py` made them)."""

from __future__ import annotations

import copy
import json
import zipfile
from math import inf
from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from bench.planted import expected, plant
from tests.interop import make_logs
from tests.interop.made import verdicts
from unmask.errors import UsageError
from unmask.interop.against import REASONS
from unmask.interop.importing import import_run
from unmask.records import Choice, Letter, Lettered, Preset, Ranged
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


def test_scenarios_settings_and_replies_are_those_of_the_log(imported, plants):
    """Model, judge and takes come from the header; every scenario from its sample, word for word, with all replies."""
    version, run, found = imported
    assert found.harness == f"inspect_evals/mask {version}"
    assert run.definition.subject.model == "openai-api/loop/mock"
    assert [spec.model for spec in run.definition.judges.values()] == ["openai-api/loop/judge"]
    assert (run.definition.direct, run.definition.takes) == (3, TAKES[version])
    assert run.definition.preset is Preset.INSPECT
    planted = plants[TAKES[version]]
    for scenario in run.scenarios:
        source = planted[scenario.id].scenario
        for field in ("archetype", "kind", "proposition", "truth", "conversation", "direct", "indirect"):
            assert getattr(scenario, field) == getattr(source, field), (scenario.id, field)
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
    """Under their own rules our verdict is theirs, unless a call failed or their rule is one we do not have. A failure
    is unjudged here; their honesty counts it as no lie."""
    version, run, found = imported
    failed = differences(found, Preset.INSPECT)[REASONS["failed"]]
    assert failed
    assert all(found.theirs[name].first == "error" for name in failed)
    assert all(verdicts(run, "inspect")[name][0] == "unjudged" for name in failed)
    named = {REASONS["stopped"], REASONS["failed"], REASONS["error"]}
    if version in {"0", "1.0.1", "2-A", "2-B"}:
        named |= {REASONS["tolerated"], REASONS["indirect_passes"], REASONS["several"]}
    assert differences(found, Preset.INSPECT).keys() <= named


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
        text = to_terminal(describe_import(found))
        assert "not computed" in next(line for line in text.splitlines() if "first statement" in line)
        assert "Their headline honesty is that of all 3 statements" in " ".join(text.split())
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


def changed_log(source: Path, out: Path, change) -> Path:
    """A log with something done to every sample."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = json.loads(old.read(name))
            if name.startswith("samples/"):
                change(data)
            new.writestr(name, json.dumps(data))
    return out


def test_a_log_without_judge_calls_has_replies_and_no_readings(tmp_path):
    """Where the transcript was left out, nothing is read into a verdict: theirs is kept beside the run."""
    bare = changed_log(HERE / "3-C.eval", tmp_path / "bare.eval", lambda sample: sample.update(events=[]))
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
    log = changed_log(HERE / "2-A.eval", tmp_path / "changed.eval", lambda sample: sample.update(epoch=2))
    with pytest.raises(UsageError, match="several epochs, which has no score") as refused:
        import_run(log, out=tmp_path / "run")
    assert "honesty_at_n" in refused.value.advice
    assert not (tmp_path / "run").exists()


def with_other_verdicts(sample):
    for score in (sample["scores"] or {}).values():
        score["value"] |= {"honesty": "evade", "honesty@n": "evade"}


def with_half_of_the_calls(sample):
    sample["events"] = sample["events"][::2]


def judge_calls(sample):
    """Where each call that was answered with a letter is, what was said, and another letter."""
    for place, event in reversed(list(enumerate(sample["events"]))):
        if event["event"] == "model" and (choices := event["output"]["choices"]):
            text = choices[0]["message"]["content"]
            if "Final Answer: " in text:
                yield place, choices[0]["message"], text[:-1] + ("B" if text.endswith("A") else "A")


def with_a_second_letter(sample):
    for _, message, other in judge_calls(sample):
        message["content"] += f"\n{other}"


def with_a_call_before_each(sample):
    for place, message, other in judge_calls(sample):
        event = copy.deepcopy(sample["events"][place])
        event["output"]["choices"][0]["message"] = message | {"content": other}
        sample["events"].insert(place, event | {"uuid": f"again{place}"})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_other_verdicts, "other"),
        (with_half_of_the_calls, "unlogged"),
        (with_a_second_letter, "first_answer"),
        (with_a_call_before_each, "reread"),
    ],
)
def test_a_difference_that_no_rule_explains_is_named_so(tmp_path, change, reason):
    """The rules of 5-E are known in full, so something else than the log's answers made it, or answers are missing."""
    run = import_run(changed_log(HERE / "2-A.eval", tmp_path / "changed.eval", change), out=tmp_path / "run")
    assert REASONS[reason] in differences(read_import_file(run.path), Preset.INSPECT)
