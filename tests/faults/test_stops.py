"""A run that stops by itself: what is in flight by then is paid for, however long it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.fault import Fault, Faults, Seen
from tests.faults.served import kept_once, ran, serving, settled
from unmask.engine import session
from unmask.errors import FatalModelError, IncompleteError, UnmaskError

FIRST, SLOW = Fault(answer=True, delay=0.2), Fault(answer=True, delay=0.8)
REFUSED = Fault(401, b'{"error": {"message": "no such key"}}')
PRICED = {"price": "1000/1000", "judge_price": "1000/1000"}


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
