"""`unmask sweep` when a model that all units share is refused: it ends, and says why."""

from __future__ import annotations

import sys

import pytest

from tests.models.loopback import Canned, Sent, chat, loopback_in_thread
from tests.patience import PATIENCE
from tests.sweep.sweeping import row, start, write_grid
from tests.sweep.test_local import LOCAL, VERBATIM, served


def refuse_locked(sent: Sent) -> Canned:
    """An endpoint that takes no key for the model `locked`, and answers for all others."""
    if sent.body["model"] == "locked":
        return Canned({"error": {"message": "Incorrect API key provided"}}, 401)
    return Canned(chat("Yes. <final_answer>yes</final_answer>"))


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
@pytest.mark.parametrize(
    ("locked", "is_served"), [("subject", False), ("judge", False), ("subject", True), ("judge", True)]
)
def test_a_sweep_whose_subject_or_judge_is_refused_ends_with_the_reason_for_every_unit(tmp_path, locked, is_served):
    """Behind an address, or by a server that answers its supervisor and nobody else; the other one answers. The units
    that had not asked before the refusal are told, too."""
    with loopback_in_thread(refuse_locked) as endpoint:
        if is_served:
            rows = [served(locked, "locked", "--fault", "locked")]
            rows += [VERBATIM if locked == "subject" else row("subject", "open", endpoint.url)]
        else:
            rows = [served("subject", "open")] if locked == "judge" else [row("subject", "locked", endpoint.url)]
            rows += [row("judge", "locked" if locked == "judge" else "open", endpoint.url)]
        process = start(write_grid(tmp_path, *rows, sweep=LOCAL, matrix="seed = [0, 1, 2, 3]"))
        said, _ = process.communicate(timeout=PATIENCE)
    said = " ".join(said.split())
    assert process.returncode == 3, said
    assert "0 of 4 units are complete" in said
    assert said.count("HTTP 401" if is_served else "HTTP 401: Incorrect API key provided") >= 4
    assert sum(sent.body["model"] == "locked" for sent in endpoint.sent) <= 8
