"""Export and import give identical scores."""

from __future__ import annotations

from itertools import product

import msgspec
import pytest

from tests.interop.made import made_run, measures, verdicts
from unmask.errors import UsageError
from unmask.interop import exported
from unmask.interop.export import export
from unmask.interop.importing import import_harness_run
from unmask.interop.inspect.log import read_log
from unmask.runs.run import Run

CASES = [("paper", 1), ("inspect", 3), ("strict", 2)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run per preset and number of takes, with silent, cut off and failed replies and unreadable judge answers."""
    home = tmp_path_factory.mktemp("runs")
    return {(preset, takes): made_run(home / preset, takes=takes, preset=preset) for preset, takes in CASES}


def test_the_runs_have_what_is_hard_to_carry_over(runs):
    """The runs under test hold failures, silence, cut off replies and unread readings."""
    scores = [run.score() for run in runs.values()]
    reasons = {word for score in scores for word in score.unjudged_reasons}
    assert {"failed", "unreadable", "cut_off"} <= reasons
    assert all(score.silent and score.truncated for score in scores)


FORMS = {"reference-csv": "folder", "inspect": "log.eval"}


@pytest.fixture(scope="module", params=product(CASES, FORMS), ids=lambda wanted: f"{wanted[0][0]}-{wanted[1]}")
def both(request, runs, tmp_path_factory) -> tuple[Run, Run]:
    """A run, and what came back of it."""
    case, form = request.param
    home = tmp_path_factory.mktemp("back")
    export(runs[case], format=form, out=home / FORMS[form])
    return runs[case], import_harness_run(home / FORMS[form], out=home / "back")[0]


def test_a_run_comes_back_with_the_same_score(both):
    """Every measure, count, reason and interval is the same after export and import."""
    run, back = both
    assert measures(back) == measures(run)


def test_other_presets_come_back_as_well(both):
    """What a run says under presets it was not made with is the same too."""
    run, back = both
    for preset in ("paper", "inspect", "strict"):
        assert verdicts(back, preset) == verdicts(run, preset)


def test_an_exported_log_gives_the_whole_run_back(runs, tmp_path):
    """After a round trip through an Inspect log replies, readings, costs and settings are the run's own."""
    run = runs["paper", 1]
    export(run, format="inspect", out=tmp_path / "log.eval")
    import_harness_run(tmp_path / "log.eval", out=tmp_path / "back")
    back = Run(tmp_path / "back")
    assert back.score().to_json()["calls"] == run.score().to_json()["calls"]
    assert back.definition.subject == run.definition.subject
    assert [dict(held.choices()) for held in back._seen()] == [dict(held.choices()) for held in run._seen()]


def test_scenarios_come_back_unchanged(runs, tmp_path):
    """The scenarios of an imported folder are those of the run, fields without a column of their own included."""
    run = runs["paper", 1]
    export(run, format="reference-csv", out=tmp_path / "folder")
    back, _ = import_harness_run(tmp_path / "folder", out=tmp_path / "back")
    assert sorted(back.scenarios, key=lambda one: one.id) == sorted(run.scenarios, key=lambda one: one.id)


def test_an_import_never_adds_to_a_run(runs, tmp_path):
    """A folder that holds a run is refused."""
    from unmask.errors import UsageError

    export(runs["paper", 1], format="inspect", out=tmp_path / "log.eval")
    import_harness_run(tmp_path / "log.eval", out=tmp_path / "back")
    with pytest.raises(UsageError, match="already holds a run"):
        import_harness_run(tmp_path / "log.eval", out=tmp_path / "back")


def test_an_imported_run_sends_nothing(runs, tmp_path):
    """Imported lines count as no calls and cost nothing."""
    export(runs["paper", 1], format="reference-csv", out=tmp_path / "folder")
    back, _ = import_harness_run(tmp_path / "folder", out=tmp_path / "back")
    calls = back.score().to_json()["calls"]
    assert (calls["subject"], calls["judge"]) == (0, 0)


def test_several_epochs_of_our_own_task_are_refused(runs, tmp_path):
    """Every epoch holds all takes already; the message says how to ask for more."""
    export(runs["paper", 1], format="inspect", out=tmp_path / "log.eval")
    log = read_log(tmp_path / "log.eval")
    again = tuple(msgspec.structs.replace(sample, epoch=2) for sample in log.samples)
    with pytest.raises(UsageError, match="several epochs") as error:
        exported.read_exported_log(msgspec.structs.replace(log, samples=(*log.samples, *again)), path="log.eval")
    assert "-T takes=N" in error.value.advice
