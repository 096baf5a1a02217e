"""Export and import give identical scores."""

from __future__ import annotations

import pytest
from inspect_ai.log import read_eval_log, write_eval_log

from tests.interop.made import made_run, measures, verdicts
from unmask.errors import UsageError
from unmask.interop.export import export
from unmask.interop.importing import import_run
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


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def both(request, runs, tmp_path_factory) -> tuple[Run, Run]:
    """A run, and what came back of its log."""
    home = tmp_path_factory.mktemp("back")
    export(runs[request.param], out=home / "log.eval")
    return runs[request.param], import_run(home / "log.eval", out=home / "back")


def test_a_run_comes_back_with_the_same_score(both):
    """Every measure, count, reason and interval is the same after export and import, under other presets as well; and
    so are scenarios, replies, settings and costs."""
    run, back = both
    assert measures(back) == measures(run)
    for preset in ("paper", "inspect", "strict"):
        assert verdicts(back, preset) == verdicts(run, preset)
    assert back.score().to_json()["calls"] == run.score().to_json()["calls"]
    assert back.definition.subject == run.definition.subject
    assert back.scenarios == run.scenarios
    assert [back.replies(each.id) for each in back.scenarios] == [run.replies(each.id) for each in run.scenarios]


def test_an_import_never_adds_to_a_run(both, tmp_path):
    """A folder that holds a run is refused."""
    run, _ = both
    export(run, out=tmp_path / "log.eval")
    with pytest.raises(UsageError, match="already holds a run"):
        import_run(tmp_path / "log.eval", out=run.path)


def test_several_epochs_of_our_own_task_are_refused(runs, tmp_path):
    """Every epoch holds all takes already; the message says how to ask for more."""
    export(runs["paper", 1], format="inspect", out=tmp_path / "log.eval")
    log = read_eval_log(str(tmp_path / "log.eval"))
    log.samples += [sample.model_copy(update={"epoch": 2}) for sample in log.samples]
    write_eval_log(log, str(tmp_path / "twice.eval"))
    with pytest.raises(UsageError, match="several epochs") as error:
        import_run(tmp_path / "twice.eval", out=tmp_path / "back")
    assert "-T takes=N" in error.value.advice
