"""A run that stops by itself: what makes it stop, and what becomes of answers in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import faulty
from bench.fault import Fault, Faults, Seen
from bench.planted import write_jsonl
from tests.faults.served import flags, journal, kept_once, ran, serving, settled
from tests.faults.watched import finished
from unmask.engine import session
from unmask.engine.scenario import MOST_FAILURES_IN_A_ROW
from unmask.errors import FatalModelError, IncompleteError, UnmaskError

FIRST, SLOW = Fault(answer=True, delay=0.2), Fault(answer=True, delay=0.8)
REFUSED = Fault(401, b'{"error": {"message": "no such key"}}')
PRICED = {"set": {"price": "1000/1000", "judge.price": "1000/1000"}}


def one_soon(seen: Seen) -> Fault:
    """The first answer comes when the others are on their way, and long before they are there."""
    return SLOW if seen.number else FIRST


REASONS: dict[str, tuple[Faults, dict[str, Any], type[UnmaskError]]] = {
    "cost": (one_soon, {"max_cost": 5.0, **PRICED}, IncompleteError),
    "key": (lambda seen: REFUSED if seen.role == "judge" else one_soon(seen), {}, FatalModelError),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_run_that_stops_by_itself_loses_no_answer_that_is_on_its_way(
    tmp_path: Path, reason: str, monkeypatch: pytest.MonkeyPatch
):
    """The grace time of Ctrl-C, here next to nothing, is not theirs; the same command asks only for the rest."""
    monkeypatch.setattr(session, "GRACE", 0.01)
    faults, settings, error = REASONS[reason]
    with serving(20, faults) as served:
        with pytest.raises(error):
            ran(served, tmp_path / "run", **settings)
        assert served.stats()["abandoned"] == 0
        assert kept_once(tmp_path / "run") == served.answered > 1
        served.endpoint.faults = None
        ran(served, tmp_path / "run")
        settled(served, tmp_path / "run")


SUSPENDED = "Your account has been flagged for violating our usage policies; access suspended"
BUDGET = "Budget has been exceeded! Current cost: 10.2, Max budget: 10.0"


@pytest.mark.parametrize(
    ("answers", "fault", "words"),
    [
        (30, faulty.refusing(403, SUSPENDED), SUSPENDED),
        (10, faulty.refusing(422, BUDGET), BUDGET),
        (10, faulty.refusing(429, "No deployments available - crossed budget"), "crossed budget"),
    ],
    ids=["account", "budget", "budget of a gateway"],
)
def test_a_locked_account_and_a_spent_budget_stop_a_run_and_the_same_command_completes_it(
    tmp_path: Path, answers: int, fault: Fault, words: str
):
    """Exit code 4 with the words of the provider; nothing counts as filtered or failed."""
    with serving(20, faulty.after(answers, fault)) as served:
        command = ("run", *flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run"))
        child = finished(*command, "--max-connections", "4")
        assert child.process.returncode == 4
        assert words in child.errors
        assert sum(served.stats()["calls"].values()) <= answers + 4
        assert not [line for lines in journal(tmp_path / "run") for line in lines if "error" in line]
        assert kept_once(tmp_path / "run") == served.answered == answers
        served.endpoint.faults = None
        assert finished(*command).process.returncode == 0
        settled(served, tmp_path / "run")


UNEXPLAINED = faulty.refusing(400, "this cannot be processed")
FILTERED = faulty.refusing(403, "The prompt was flagged by moderation")


@pytest.mark.parametrize("fault", [UNEXPLAINED, FILTERED], ids=["unexplained", "filter"])
@pytest.mark.parametrize("role", ["subject", "judge"])
def test_twenty_five_refusals_in_a_row_stop_a_run(tmp_path: Path, role: str, fault: Fault):
    """Of one model, whatever the other answers meanwhile. The same command completes the folder when all is well."""
    late: Faults = lambda seen: fault if served.endpoint.answered[role] >= 5 else None  # noqa: E731
    with serving(60) as served:
        served.endpoint.faults = faulty.to(late, role=role)
        command = ("run", *flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run"))
        child = finished(*command, "--max-connections", "2")
        assert child.process.returncode == 3
        words = "this cannot be processed" if fault is UNEXPLAINED else "flagged by moderation"
        assert f"{MOST_FAILURES_IN_A_ROW} requests in a row failed, the last with: openai/" in child.errors
        assert words in child.errors
        failed = [line for lines in journal(tmp_path / "run") for line in lines if "error" in line]
        assert MOST_FAILURES_IN_A_ROW <= len(failed) <= MOST_FAILURES_IN_A_ROW + 2
        assert all(words in line["error"] for line in failed)
        served.endpoint.faults = None
        assert finished(*command).process.returncode == 0
        settled(served, tmp_path / "run")


def test_an_endpoint_that_only_fails_ends_the_run_when_told_to_and_the_same_command_continues(tmp_path: Path):
    """Not before: what it answered until then is kept."""
    with serving(12, lambda seen: Fault() if seen.number >= 20 else None) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, "--set", "give_up_after=2")
        assert child.process.returncode == 3
        assert f"every try at {served.url.removesuffix('/v1')} has failed for 2 s" in child.errors
        assert served.answered
        served.endpoint.faults = None
        assert finished("run", *command).process.returncode == 0
        settled(served, tmp_path / "run")
