"""Runs in batches against the loopback servers: the planted verdicts, each fault, each kill, nothing bought twice."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import msgspec
import pytest

from bench.batch_endpoint import FAULTS
from bench.batches import KILL_STATES, Looked, client_flags, kill_when, look, reached, run_arguments
from bench.planted import climb, plant, statements, write_jsonl
from bench.process import ROOT, Served, serving
from tests.cli.forked import ForkedProcess, forker
from tests.thorough import THOROUGH, draw_part
from unmask import run
from unmask.cli.main import run_command_line
from unmask.engine import batches as rounds
from unmask.engine import session
from unmask.engine.batch_control import cancel_open_batches, look_at_batches
from unmask.errors import (
    BatchesOpen,
    FatalModelError,
    IncompleteError,
    Interrupted,
    UsageError,
)
from unmask.models import batch_client, providers
from unmask.models.tiers import OPENAI_BATCHES
from unmask.records import Asked
from unmask.runs.batches import read_batches
from unmask.runs.folder import Folder
from unmask.runs.journal import read_lines
from unmask.runs.options import merge_arguments
from unmask.runs.run import Run

SCENARIOS, TAKES = 16, 2
PLANTS = plant(SCENARIOS, seed=1, takes=TAKES, direct=3)


@pytest.fixture(scope="module")
def served():
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, takes=TAKES, seed=1) as server:
        yield server


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setenv("UNMASK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(rounds, "LISTING_DELAY", 0.05)
    monkeypatch.setattr(rounds, "SHORTEST_PAUSE", 0.05)


LADDER = climb(PLANTS, 4)


def arguments(
    served: Served,
    path: Path,
    *,
    flavour: str = "openai",
    batch: str | None = "judge",
    name: str = "run",
    plants=PLANTS,
):
    data = write_jsonl(plants, path / f"{name}.jsonl")
    return run_arguments(served, data, path / name, flavour=flavour, takes=TAKES, batch=batch)


def run_to_the_end(served: Served, path: Path, **choice) -> Looked:
    run(**arguments(served, path, **choice))
    return look(PLANTS, path / choice.get("name", "run"), served, takes=TAKES)


def assert_as_planted(looked: Looked) -> None:
    assert (looked.right, looked.wrong, looked.bought_twice) == (SCENARIOS, (), 0)


# --- verdicts, prices, rounds -----------------------------------------------------------------------------------


def test_verdicts_are_those_of_a_live_run(served, tmp_path):
    """Live, the judge in batches, all in batches: the planted verdicts; the bill is halved for what came in batches."""
    costs = {}
    for batch in (None, "judge", "all"):
        served.configure()
        looked = run_to_the_end(served, tmp_path, batch=batch, name=f"run-{batch}")
        assert_as_planted(looked)
        costs[batch] = looked.cost
    assert costs["all"] == pytest.approx(costs[None] / 2)
    assert costs["all"] < costs["judge"] < costs[None]


@pytest.mark.parametrize("flavour", ["groq", "together", "anthropic"])
def test_every_provider_gives_the_planted_verdicts(served, tmp_path, flavour):
    served.configure(flavour=flavour)
    assert_as_planted(run_to_the_end(served, tmp_path, flavour=flavour, batch="all"))


def test_a_subject_that_reasons_gets_more_room_in_the_next_round(served, tmp_path):
    """Cut off at 1,000 tokens, refused with 16,000, answered with what the provider names: the planted verdicts."""
    served.configure(batch_fault="reasons")
    assert_as_planted(run_to_the_end(served, tmp_path, batch="all"))
    rooms = {line.max_tokens for line in read_lines(tmp_path / "run" / "replies.jsonl", Asked)}
    assert rooms == {1000, 8192}
    room = Run(tmp_path / "run").definition.subject.room
    assert room is not None
    assert room.tokens == 8192


def test_azure_is_known_by_its_host(served, tmp_path, monkeypatch):
    """`openai/DEPLOYMENT` with a base URL of Azure: lines and batches name the endpoint as Azure does."""
    monkeypatch.setattr(batch_client, "AZURE_HOSTS", ("127.0.0.1",))
    served.configure(flavour="azure")
    assert_as_planted(run_to_the_end(served, tmp_path, flavour="azure"))


def test_a_judge_for_figures_has_batches_of_its_own(served, tmp_path):
    """The same verdicts; each batch is of one model, and both models' answers are in one file."""
    served.configure()
    wanted = arguments(served, tmp_path) | {"numeric_judge": "openai/judge-figures"}
    run(**merge_arguments(wanted, {"set": {"numeric.base_url": served.url, "numeric.price": "1/1"}}))
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))
    batches = read_batches(tmp_path / "run").values()
    assert {(batch.role, batch.model) for batch in batches} == {
        ("judge", "openai/judge"),
        ("numeric_judge", "openai/judge-figures"),
    }


@pytest.mark.parametrize("batch", ["judge", "all"])
def test_a_control_is_asked_and_read_in_batches(served, tmp_path, batch):
    """Of every scenario with a belief."""
    served.configure()
    wanted = arguments(served, tmp_path, batch=batch) | {"control": True}
    control = run(**wanted).score().control
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))
    assert_control_as_planted(tmp_path / "run")
    assert control is not None
    assert control.arms["control"].replies > 0


@pytest.mark.parametrize("batch", ["judge", "all"])
def test_a_rung_waits_for_the_probes_that_it_shares(served, tmp_path, batch):
    """It has nothing to ask before the first rung of its fact has a belief, and is not over for that."""
    served.configure(rungs=4)
    run(**arguments(served, tmp_path, batch=batch, plants=LADDER))
    assert_as_planted(look(LADDER, tmp_path / "run", served, takes=TAKES))


# --- faults ----------------------------------------------------------------------------------------------------


COSTLESS = (
    "expired",
    "cancelled",
    "reordered",
    "duplicated",
    "queue_full:9",
    "no_temperature",
)
FAULTS_OF = [
    (fault, flavour)
    for place, fault in enumerate(COSTLESS)
    for row, flavour in enumerate(("openai", "anthropic"))
    if THOROUGH or (place + row) % 2
]
"""Each fault at one of the two; in a thorough run at both."""


@pytest.mark.parametrize(("fault", "flavour"), FAULTS_OF)
def test_faults_that_cost_nothing_but_time(served, tmp_path, fault, flavour):
    """The planted verdicts, and no answer twice."""
    served.configure(flavour=flavour, batch_fault=fault)
    assert_as_planted(run_to_the_end(served, tmp_path, flavour=flavour))


@pytest.mark.parametrize("flavour", ["openai", "together"])
def test_a_batch_whose_creation_was_not_answered_is_adopted(served, tmp_path, flavour):
    """The server made it and the connection broke: it is found by its file."""
    served.configure(flavour=flavour, batch_fault="lost_answer", polls=1)
    assert_as_planted(run_to_the_end(served, tmp_path, flavour=flavour))
    assert set(served.stats()["batches"]["states"]) == {"completed"}


def test_where_nothing_tells_batches_apart_nobody_buys_again_unasked(served, tmp_path):
    """Anthropic's: the run stops and says so; `unmask batch cancel` gives it up, and the same command goes on."""
    served.configure(flavour="anthropic", batch_fault="lost_answer")
    for _ in range(2):
        with pytest.raises(IncompleteError, match="may have been made"):
            run_to_the_end(served, tmp_path, flavour="anthropic")
    assert len(served.stats()["batches"]["sizes"]) == 1
    ((batch, _),) = cancel_open_batches(tmp_path / "run")
    assert batch.remote is None
    assert_as_planted(run_to_the_end(served, tmp_path, flavour="anthropic"))


@pytest.mark.parametrize(
    ("fault", "flavour"),
    [("half_failed", "openai"), ("half_failed", "anthropic"), ("no_output", "openai"), ("failing", "openai")],
)
def test_a_request_that_fails_in_a_batch_has_failed_as_live(served, tmp_path, fault, flavour):
    """Its scenario is unjudged and says why; the same command asks it again, and rounds come to an end."""
    served.configure(flavour=flavour, batch_fault=fault)
    looked = run_to_the_end(served, tmp_path, flavour=flavour)
    assert (looked.wrong, looked.bought_twice) == ((), 0)
    assert looked.unjudged == SCENARIOS - looked.right > 0
    assert all("The server had an error" in text for text in looked.reasons)
    if fault != "failing":
        assert_as_planted(run_to_the_end(served, tmp_path, flavour=flavour))


def test_a_refused_line_is_unjudged_and_the_others_are_asked_again(served, tmp_path):
    served.configure(batch_fault="invalid_line")
    looked = run_to_the_end(served, tmp_path)
    assert (looked.right, looked.unjudged, looked.bought_twice) == (SCENARIOS - 1, 1, 0)
    assert "line 2 is no request" in looked.reasons[0]


@pytest.mark.parametrize(
    ("fault", "flavour", "stop"),
    [
        ("no_credit", "openai", (FatalModelError, "no credit")),
        ("no_credit", "anthropic", (FatalModelError, "no credit")),
        ("no_top_k", "openai", (FatalModelError, "top_k=5")),
        ("refused", "openai", (FatalModelError, "no batches of this model")),
        ("queue_full:0", "openai", (IncompleteError, "not one request more")),
        ("deleted", "openai", (IncompleteError, "deleted its results")),
        ("unknown_id", "anthropic", (IncompleteError, "ids that were not sent")),
    ],
)
def test_what_stops_a_run_fails_nothing_and_the_same_command_goes_on(served, tmp_path, fault, flavour, stop):
    """Credit, a parameter of the user, a provider that takes none, a full queue, results that are gone or have ids that
    nobody sent: what was answered is kept, and when all is well the others are asked."""
    served.configure(flavour=flavour, batch_fault=fault)
    wanted = arguments(served, tmp_path, flavour=flavour)
    with pytest.raises(stop[0]) as stopped:
        run(**wanted | {"judge_params": {"top_k": 5}} if fault == "no_top_k" else wanted)
    assert stop[1] in f"{stopped.value} {stopped.value.advice}"
    assert not [line for line in Folder(tmp_path / "run").judged(f"{flavour}_judge") if line.error]
    if fault == "no_top_k":  # which makes another run
        return
    if fault in ("refused", "queue_full:0"):
        served.configure(flavour=flavour)
    looked = run_to_the_end(served, tmp_path, flavour=flavour)
    assert (looked.right, looked.wrong) == (SCENARIOS, ())
    assert fault in ("deleted", "unknown_id") or looked.bought_twice == 0


@pytest.mark.parametrize("flavour", ["openai", "anthropic"])
@pytest.mark.parametrize("fault", ["expired", "cancelled"])
def test_a_batch_that_ends_early_says_why(served, tmp_path, capsys, fault, flavour):
    """Anthropic calls every batch that is over `ended`: the results say what became of the others."""
    served.configure(flavour=flavour, batch_fault=fault)
    assert run_command_line(client_flags(arguments(served, tmp_path, flavour=flavour))[:-1]) == 0
    assert re.search(rf"is over \({fault[:6]}\w*\) without an answer to \d+ of \d+ requests", capsys.readouterr().err)
    reasons = [batch.reason or "" for batch in read_batches(tmp_path / "run").values()]
    assert any(reason.startswith(fault[:6]) for reason in reasons)


def test_a_batch_is_no_larger_than_its_provider_takes(served, tmp_path, monkeypatch):
    """By requests and by bytes."""
    for name, limit in (("most_requests", 7), ("most_bytes", 20_000)):
        small = msgspec.structs.replace(OPENAI_BATCHES, **{name: limit})
        monkeypatch.setattr(batch_client, "find_service", lambda *_, small=small: small)
        served.configure()
        assert_as_planted(run_to_the_end(served, tmp_path, name=name))
        sizes = served.stats()["batches"]["sizes"]
        assert max(sizes) < SCENARIOS
        assert name != "most_requests" or max(sizes) == limit


def test_the_faults_above_are_all_there_are():
    text = Path(__file__).read_text()
    assert not [fault for fault in FAULTS if f'"{fault}' not in text]


# --- coming back -----------------------------------------------------------------------------------------------


def test_no_wait_hands_over_and_the_same_command_collects(served, tmp_path):
    """Each command leaves as soon as a batch is under way; some of them later the run is done."""
    served.configure(polls=2)
    wanted = arguments(served, tmp_path, batch="all") | {"no_wait": True}
    left = []
    for _ in range(40):
        try:
            run(**wanted)
            break
        except BatchesOpen as stop:
            left.append(stop)
    assert len(left) >= 6
    assert {(stop.exit_code, "The same command" in str(stop.advice)) for stop in left} == {(0, True)}
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))


def test_what_is_waited_for_is_shown(served, tmp_path, monkeypatch):
    """Calls of the batch API as well as batches under way."""
    monkeypatch.setattr(session, "PROGRESS_INTERVAL", 0.01)
    served.configure(create_delay=0.1, polls=2)
    seen: set[str] = set()
    run(**arguments(served, tmp_path), progress=lambda workload, _: seen.add(workload.waits.partition(" ")[0]))
    assert {"handing", "waiting"} <= seen


def test_a_live_run_does_not_buy_what_is_under_way(served, tmp_path):
    served.configure(polls=1000)
    with pytest.raises(BatchesOpen):
        run(**arguments(served, tmp_path) | {"no_wait": True})
    with pytest.raises(UsageError, match="would be bought again") as refused:
        run(**arguments(served, tmp_path) | {"batch": None})
    assert "unmask batch cancel" in str(refused.value.advice)


def test_a_cancelled_batch_is_collected_and_the_others_asked_again(served, tmp_path):
    """`unmask batch cancel`: what was answered until then is kept, not bought again."""
    served.configure(polls=1000)
    with pytest.raises(BatchesOpen):
        run(**arguments(served, tmp_path) | {"no_wait": True})
    assert [said for _, said in look_at_batches(tmp_path / "run")] == ["in_progress"]
    ((_, said),) = cancel_open_batches(tmp_path / "run")
    assert said in ("cancelling", "cancelled")
    with pytest.raises(BatchesOpen):
        run(**arguments(served, tmp_path) | {"no_wait": True})
    first = next(iter(read_batches(tmp_path / "run").values()))
    assert first.reason == "cancelled"
    assert 0 < (first.answered or 0) < len(first.requests)


def test_commands_list_and_cancel(served, tmp_path, capsys, monkeypatch):
    """As typed in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    served.configure(polls=1000)
    with pytest.raises(BatchesOpen):
        run(**arguments(served, tmp_path) | {"no_wait": True})
    folder = str(tmp_path / "run")
    assert run_command_line(["batch", "list", folder]) == 0
    text = capsys.readouterr().out
    assert "in_progress" in text
    assert max(map(len, text.splitlines())) <= 80
    assert run_command_line(["batch", "list", folder, "--json"]) == 0
    (row,) = msgspec.json.decode(capsys.readouterr().out)["batches"]
    assert (row["state"], row["said"], row["answered"]) == ("submitted", "in_progress", None)
    assert run_command_line(["batch", "cancel", folder]) == 0
    assert "is paid for. The same `unmask run` command collects it" in capsys.readouterr().out


def test_no_key_is_sent_to_an_address_that_only_a_folder_names(served, tmp_path, monkeypatch, capsys):
    """A folder of a stranger may name any address: `batch list` and `batch cancel` want a variable to name it."""
    served.configure(polls=1000)
    with pytest.raises(BatchesOpen):
        run(**arguments(served, tmp_path) | {"no_wait": True})
    asked = served.stats()["batches"]["listed"], sum(served.stats()["calls"].values())
    monkeypatch.setattr(providers, "is_this_machine", lambda _: False)
    folder = str(tmp_path / "run")
    for verb in ("list", "cancel"):
        assert run_command_line(["batch", verb, folder]) == UsageError.exit_code
        assert f"export UNMASK_JUDGE_BASE_URL={served.url}" in " ".join(capsys.readouterr().err.split())
    assert (served.stats()["batches"]["listed"], sum(served.stats()["calls"].values())) == asked
    assert served.stats()["batches"]["states"] == ["in_progress"]
    monkeypatch.setenv("UNMASK_JUDGE_BASE_URL", served.url)
    assert run_command_line(["batch", "cancel", folder]) == 0
    assert served.stats()["batches"]["states"] == ["cancelled"]


def start_forked(arguments: dict[str, object]) -> ForkedProcess:
    return forker().start(client_flags(arguments), cwd=ROOT, env=dict(os.environ), merged=True)


SHAPES = ("plain", "control", "ladder")
KILLS = draw_part([(state, shape) for state in KILL_STATES for shape in SHAPES], 5)


@pytest.mark.parametrize(("state", "shape"), KILLS)
def test_a_kill_in_any_state_costs_nothing(served, tmp_path, state, shape):
    """SIGKILL between each pair of states of batches.jsonl, in a process of its own; the same command goes on."""
    ladder = shape == "ladder"
    served.configure(polls=1, upload_delay=0.2, create_delay=0.2, rungs=4 if ladder else 1)
    plants = LADDER if ladder else PLANTS
    wanted = arguments(served, tmp_path, batch="all", plants=plants) | {"control": shape == "control"}
    killed = kill_when(wanted, reached(tmp_path / "run", state), start=start_forked)
    assert killed or state == "collecting"  # that one is over in a moment
    run(**wanted)
    assert_as_planted(look(plants, tmp_path / "run", served, takes=TAKES))
    assert_control_as_planted(tmp_path / "run")


def assert_control_as_planted(folder: Path) -> None:
    """Where it was asked."""
    rows = {row.id: row.control for row in Run(folder).rows()}
    asked = [one for one in PLANTS if rows.get(one.scenario.id)]
    assert all(rows[one.scenario.id] == statements(one, takes=TAKES, slot="control") for one in asked)


def test_ctrl_c_says_what_is_still_being_spent(served, tmp_path):
    served.configure(polls=1000)
    client = start_forked(arguments(served, tmp_path))
    due = reached(tmp_path / "run", "submitted")
    while not due() and client.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    client.send_signal(signal.SIGINT)
    text = client.communicate(timeout=60)[0]
    assert client.returncode == Interrupted.exit_code
    assert re.search(r"1 batch with \d+ requests .*goes on and will be paid for, at most \$\d", text)
    assert f"unmask batch cancel {tmp_path / 'run'}" in " ".join(text.split())


def test_ctrl_c_is_heard_while_a_batch_is_made_and_the_same_command_adopts_it(served, tmp_path):
    """A provider that does not answer: the call is left after a moment, and the batch is found by its file."""
    served.configure(batch_fault="unanswered")
    wanted = arguments(served, tmp_path)
    client = start_forked(wanted)
    due = reached(tmp_path / "run", "intended")
    while not due() and client.poll() is None:
        time.sleep(0.01)
    time.sleep(0.3)
    client.send_signal(signal.SIGINT)
    text = client.communicate(timeout=60)[0]
    assert client.returncode == Interrupted.exit_code, text
    run(**wanted)
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))
    assert len(served.stats()["batches"]["sizes"]) <= 4


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_wrong_by_hours_buys_nothing_twice_and_waits_for_nobody(served, tmp_path, monkeypatch, hours):
    """The answer to create is lost under a wrong clock, which is set right before the same command."""
    served.configure(batch_fault="lost_answer", polls=3)
    wanted = arguments(served, tmp_path, batch="all")
    now = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + 3600 * hours)
        with pytest.raises(BatchesOpen):
            run(**wanted | {"no_wait": True})
    run(**wanted)
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))


# --- limits ----------------------------------------------------------------------------------------------------


def test_a_batch_that_may_cost_too_much_is_not_handed_over(served, tmp_path):
    """The bound of the whole batch counts, before anything of it is sent."""
    served.configure()
    with pytest.raises(IncompleteError, match=r"the next batch of .* may cost"):
        run(**arguments(served, tmp_path, batch="all") | {"max_cost": 0.001})
    assert served.stats()["batches"]["files"] == 0
    run(**arguments(served, tmp_path, batch="all") | {"max_cost": 100.0})
    assert_as_planted(look(PLANTS, tmp_path / "run", served, takes=TAKES))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"set": {"judge.tier": "flex"}}, "--set judge.tier="),
        ({"judge_headers": {"X-A": "b"}}, "--judge-header"),
        ({"judge": "verbatim"}, "no model"),
        ({"judge": "ollama/judge"}, "no batch API"),
        ({"batch": None, "no_wait": True}, "--no-wait"),
        ({"batch": "subject"}, "'subject' is unknown"),
    ],
)
def test_what_does_not_go_with_batches_is_refused_before_anything_is_sent(served, tmp_path, settings, word):
    served.configure()
    with pytest.raises(UsageError, match=word):
        run(**arguments(served, tmp_path) | settings)
    assert sum(served.stats()["calls"].values()) == 0
