"""Rounds of batches: as many as `plan` says, for every effort and every question besides; the scores of a live run."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bench.batches import run_arguments
from bench.planted import plant, report_of, statements, write_jsonl
from bench.process import Served, serving
from tests.thorough import THOROUGH, draw_part
from unmask import Run, plan, run
from unmask.engine import batches as rounds
from unmask.engine.batch_control import cancel_open_batches
from unmask.errors import BatchesOpen, IncompleteError, UsageError
from unmask.records import Letter, Verdict
from unmask.runs.batches import read_batches
from unmask.scoring.guards import ASIDES

SCENARIOS = 30
PLANTS = plant(SCENARIOS, seed=6, takes=2, direct=3)
SIDES = (Verdict.HONEST, Verdict.LIE)
SPENT = ("run", "calls", "tokens", "cost_usd", "tiers", "answered_by")
"""What a score says of its run and its bill, and not of the subject."""
KINDS = [
    {"effort": effort, "also": (*["self-report"] * report, *["role-play"] * played)}
    for effort, report, played in product(("lazy", "full"), (False, True), (False, True))
]
PAIRS = [kind for kind in KINDS if (kind["effort"] == "full") ^ bool(len(kind["also"]) % 2)]
"""Half of them, in which each two of the three choices stand together in every way."""


@pytest.fixture(scope="module")
def served():
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, takes=2, seed=6) as server:
        yield server


@pytest.fixture(scope="module")
def live(served, tmp_path_factory) -> dict[str, Any]:
    """The score of a live run with every question besides, which the runs that change their way have to come to."""
    folder = tmp_path_factory.mktemp("live")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNMASK_HOME", str(folder / "home"))
        return score_of(finish(served, folder, None, also=("self-report", "role-play")))


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setenv("UNMASK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(rounds, "SHORTEST_PAUSE", 0.02)


def arguments(served: Served, path: Path, batch: str | None, **more: Any) -> dict[str, Any]:
    name = "-".join(map(str, (batch, *more.values())))
    data = write_jsonl(PLANTS, path / "data.jsonl")
    return run_arguments(served, data, path / name, batch=batch) | {"max_connections": 500} | more


def finish(served: Served, path: Path, batch: str | None, **more: Any) -> Run:
    served.configure()
    return run(**arguments(served, path, batch, **more))


def score_of(done: Run) -> dict[str, Any]:
    """The score without what the run was made with and paid, and every verdict. How many probes were sent and read
    where there is no belief depends on what came first, and is left out."""
    shown = {name: value for name, value in done.score().to_json().items() if name not in SPENT}
    for name in ("capped_judge_calls", "capped_probes", "empty"):
        shown["guards"].pop(name, None)
    for name in ("placebo", "firmness"):
        shown.pop(name, None)
    asides = [{slot: row.readings.get(slot) for slot in ASIDES} for row in done.rows()]
    return shown | {"asides": asides, "verdicts": [(row.id, row.verdicts, row.accuracy) for row in done.rows()]}


def count_rounds(done: Run) -> int:
    return max(batch.round for batch in read_batches(done.path).values())


def planted_reports() -> dict[Verdict, Counter[str]]:
    """What the reports on honest replies and on lies say, by the rules of the oracle."""
    words = {Letter.A: "true", Letter.B: "not_true", Letter.C: "unclear"}
    counts: dict[Verdict, Counter[str]] = {verdict: Counter() for verdict in SIDES}
    for item in PLANTS:
        (verdict,) = statements(item)
        if verdict in counts:
            counts[verdict][words[report_of(item)]] += 1
    return counts


@pytest.mark.parametrize("kind", KINDS if THOROUGH else PAIRS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_a_run_takes_the_rounds_that_are_planned_and_scores_as_live(served, tmp_path, kind):
    """Judge or all in batches, lazy or full, with and without self-report and role play."""
    live = score_of(finish(served, tmp_path, None, **kind))
    if "self-report" in kind["also"]:
        assert {
            Verdict(verdict): Counter({word: count for word, count in words.items() if count})
            for verdict, words in live["self_report"]["counts"].items()
        } == planted_reports()
    for batch in ("judge", "all"):
        wanted = arguments(served, tmp_path, batch, **kind)
        planned = plan(**wanted).batch[batch].rounds
        done = finish(served, tmp_path, batch, **kind)
        assert score_of(done) == live
        assert count_rounds(done) == planned
        assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}


def test_the_rounds_are_those_of_the_documentation(served, tmp_path):
    """Three and six; role play adds one, self-report one or two, both together no more. Full effort: one and two."""
    planned = {
        tuple(kind.values()): tuple(
            batches.rounds for batches in plan(**arguments(served, tmp_path, None, **kind)).batch.values()
        )
        for kind in KINDS
    }
    assert planned == {
        ("lazy", ()): (3, 6),
        ("lazy", ("role-play",)): (4, 7),
        ("lazy", ("self-report",)): (4, 8),
        ("lazy", ("self-report", "role-play")): (4, 8),
        ("full", ()): (1, 2),
        ("full", ("role-play",)): (2, 3),
        ("full", ("self-report",)): (1, 3),
        ("full", ("self-report", "role-play")): (2, 3),
    }


def test_data_that_does_not_say_which_side_yes_means_adds_no_round(served, tmp_path):
    """The judge reads tagged answers in the round in which it reads the others."""
    unknown = (replace(item, scenario=replace(item.scenario, yes_means=None)) for item in PLANTS)
    data = write_jsonl(tuple(unknown), tmp_path / "unknown.jsonl")
    for batch, known in (("judge", 3), ("all", 6)):
        wanted = arguments(served, tmp_path, batch, data=str(data), out=str(tmp_path / batch))
        assert plan(**wanted).batch[batch].rounds == known
        served.configure()
        assert count_rounds(run(**wanted)) <= known


@pytest.mark.parametrize("left", draw_part(range(1, 8), 2))
def test_a_run_begun_in_batches_goes_on_live(served, live, tmp_path, left):
    """Left after each round: a live run collects what is over, asks for the others, and scores as any live run."""
    served.configure(polls=1)
    wanted = arguments(served, tmp_path, "all", also=("self-report", "role-play"))
    for _ in range(left):
        with pytest.raises(BatchesOpen):
            run(**wanted, no_wait=True)
    done = run(**wanted | {"batch": None})
    assert score_of(done) == live
    assert count_rounds(done) == left
    assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}


def test_a_run_whose_batches_were_cancelled_goes_on_live(served, live, tmp_path):
    """Refused while they are under way; then what was answered until the end is kept, and the others are asked."""
    served.configure(polls=1000)
    wanted = arguments(served, tmp_path, "all", also=("self-report", "role-play"))
    with pytest.raises(BatchesOpen):
        run(**wanted, no_wait=True)
    with pytest.raises(UsageError, match="would be bought again"):
        run(**wanted | {"batch": None})
    cancel_open_batches(wanted["out"])
    done = run(**wanted | {"batch": None})
    (batch,) = read_batches(done.path).values()
    assert 0 < (batch.answered or 0) < len(batch.requests)
    assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}
    assert score_of(done) == live


@pytest.mark.parametrize(("spent", "batch"), draw_part(product([0.005, 0.02, 0.04, 0.1], ["judge", "all"]), 2))
def test_a_run_begun_live_goes_on_in_batches(served, live, tmp_path, spent, batch):
    """Stopped by its cost wherever it was."""
    served.configure()
    wanted = arguments(served, tmp_path, batch, also=("self-report", "role-play"))
    with pytest.raises(IncompleteError):
        run(**wanted | {"batch": None, "max_cost": spent})
    done = run(**wanted)
    assert score_of(done) == live
    assert served.stats()["duplicates"] == {"subject": 0, "judge": 0}
