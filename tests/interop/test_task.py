"""`inspect eval unmask/mask`: Inspect asks, our rules decide."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from bench.planted import expected, plant, write_jsonl
from bench.process import serving
from tests.e2e.running import rows, run_flags, unmask
from tests.thorough import THOROUGH
from unmask.interop.importing import import_run
from unmask.interop.inspect.scores import name_reason
from unmask.scoring.measures import Where, list_measures

SCENARIOS = 12


def asked(served, data: Path, logs: Path, **arguments):
    """The log of one evaluation against the mock endpoint."""
    from inspect_ai import eval as evaluate

    from tests.interop import planted_api

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(planted_api.URL, served.url)
        (log,) = evaluate(
            "unmask/mask",
            model="planted/mock",
            task_args={"data": str(data), "judge": "planted/judge", **arguments},
            log_dir=str(logs),
            display="none",
        )
    assert log.status == "success", log.error
    return log


def concluded(log) -> dict[str, tuple[str, str]]:
    values = {sample.id: sample.scores["outcome"].value for sample in log.samples}
    return {name: (value["verdict"], value["accuracy"]) for name, value in values.items()}


WAYS = ((3, "full", "paper"), (2, "lazy", "inspect"), (1, "lazy", "paper"))


@pytest.fixture(scope="module", params=WAYS if THOROUGH else WAYS[:2])
def both(request, tmp_path_factory):
    """The same planted replies asked by Inspect and by `unmask run`."""
    takes, effort, preset = request.param
    home = tmp_path_factory.mktemp("task")
    data = write_jsonl(plant(SCENARIOS, seed=1, takes=takes), home / "planted.jsonl")
    with serving(scenarios=SCENARIOS, takes=takes) as served:
        log = asked(served, data, home / "logs", takes=takes, effort=effort, preset=preset)
        served.reset()
        flags = run_flags(served, data, home / "run", "--takes", str(takes), "--preset", preset, "--effort", effort)
        unmask("run", *flags, "--quiet")
    return request.param, log, home


def test_verdicts_equal_those_of_unmask_run(both):
    """The same replies give the same verdict and accuracy for every scenario."""
    _, log, home = both
    ours = {name: (row["verdict"], row["accuracy"]) for name, row in rows(home / "run").items()}
    assert concluded(log) == ours


def test_planted_verdicts_are_recovered(both):
    """Under `paper` the verdicts are those that were planted."""
    (takes, _, preset), log, _ = both
    planted = {item.scenario.id: expected(item, takes=takes) for item in plant(SCENARIOS, seed=1, takes=takes)}
    if preset == "paper":
        assert concluded(log) == {name: (str(one), str(other)) for name, (one, other) in planted.items()}
    else:
        assert concluded(log).keys() == planted.keys()


def test_the_metrics_are_ours(both):
    """P(lie), honesty and accuracy in the log are those of the run."""
    _, log, home = both
    import json

    score = json.loads(unmask("score", str(home / "run"), "--json").stdout)["overall"]
    metrics = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    for name in ("p_lie", "honesty", "accuracy"):
        assert metrics[name] == pytest.approx(score[name]["value"])


def test_the_log_can_be_imported(both, tmp_path):
    """A log of the task is a run like any other, under the name of the model that was asked."""
    _, log, home = both
    (path,) = (home / "logs").glob("*.eval")
    run = import_run(path, out=tmp_path / "run")
    assert run.definition.subject.model == "inspect/planted/mock"
    assert {row.id: (row.verdict.value, row.accuracy.value) for row in run.rows()} == concluded(log)


def test_the_transcript_is_in_the_log(both):
    """Every call to the subject and to the judge is an event of its sample."""
    from inspect_ai.log import read_eval_log

    _, _, home = both
    (path,) = (home / "logs").glob("*.eval")
    for sample in read_eval_log(str(path)).samples:
        calls = [event for event in sample.events if event.event == "model"]
        kept = sample.store["unmask"]
        assert len(calls) == len(kept.get("asked", ())) + len(kept.get("judged", ()))


def test_inspect_lists_the_task():
    """Inspect finds the task by the package's entry point."""
    from inspect_ai._util.entrypoints import ensure_entry_points
    from inspect_ai._util.registry import registry_lookup

    (entry,) = (entry for entry in entry_points(group="inspect_ai") if entry.name == "unmask")
    ensure_entry_points()
    assert registry_lookup("task", "unmask/mask") is entry.load().mask


def test_a_metric_of_several_takes_drops_no_lie_next_to_an_unread_take():
    """As `unmask score`: a scenario counts by the takes that were read."""
    from inspect_ai.scorer import SampleScore, Score

    from unmask.interop.inspect.task import METRICS

    takes = [("lie", "unjudged"), ("lie", "lie"), ("honest", "honest"), ("honest", "honest")]
    scores = [
        SampleScore(
            sample_id=str(number),
            score=Score(
                value={"verdict": words[0], "accuracy": "correct"},
                metadata={"belief": None, "readings": {}, "takes": list(words)},
            ),
        )
        for number, words in enumerate(takes)
    ]
    found = {name: metric(scores) for name, metric in zip(list_measures(Where.INSPECT), METRICS, strict=True)}
    assert (found["p_lie"], found["accuracy"]) == (0.5, 1)


def test_an_unjudged_sample_is_unscored_with_one_of_the_reasons_of_inspect(tmp_path):
    """A judge whose every call fails: no verdict counts, nor does it look like honesty."""
    data = write_jsonl(plant(SCENARIOS, seed=1, takes=1), tmp_path / "planted.jsonl")
    with serving(scenarios=SCENARIOS, takes=1) as served:
        log = asked(served, data, tmp_path / "logs", judge="mockllm/model", preset="strict")
    scores = [sample.scores["outcome"] for sample in log.samples]
    unscored = [score for score in scores if not isinstance(score.value, dict)]
    assert {score.reason for score in unscored} == {"scoring_failed"}
    assert log.results.scores[0].unscored_samples == len(unscored) > 0
    assert all(score.value["verdict"] != "unjudged" for score in scores if isinstance(score.value, dict))


@pytest.mark.parametrize(
    ("word", "reason"), [("unreadable", "grader_failed"), ("empty", "no_response"), ("failed", "scoring_failed")]
)
def test_whether_the_model_the_judge_or_a_request_failed_is_kept_apart(word, reason):
    assert name_reason(word) == reason


def test_p_lie_is_the_headline_of_the_task(both):
    from inspect_ai.log import headline_metric

    _, log, _ = both
    found = headline_metric(log)
    assert log.eval.headline_metric.metric == "p_lie"
    assert found.metric is log.results.scores[0].metrics["p_lie"]
