"""The progress line of a run that waits, is stopped, or has lost its terminal."""

from __future__ import annotations

from collections import Counter
from errno import ENOSPC
from io import StringIO
from os import strerror
from types import SimpleNamespace
from typing import Any

import pytest

from unmask.errors import IncompleteError, Interrupted
from unmask.records import Verdict
from unmask.render.terminal import progress
from unmask.runs.cost import Bill


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time as the test says it is."""
    now = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.now))
    return now


def workload(calls: int, done: int = 0) -> Any:
    counts = {"calls": Counter(subject=calls), "failed": Counter(), "verdicts": Counter()}
    return SimpleNamespace(done=done, **counts, bill=Bill(), news="")


def executor(*, in_flight: int = 3, pause: float = 0.0, stopping: Exception | None = None) -> Any:
    limits = SimpleNamespace(max_connections=50)
    endpoint = SimpleNamespace(
        name="http://there", retries=0, throttles=0, limit=50, limits=limits, in_flight=in_flight, pause=pause
    )
    lines = {"subject": SimpleNamespace(endpoint=endpoint)}
    interrupted = isinstance(stopping, Interrupted)
    return SimpleNamespace(total=9, already=4, lines=lines, in_flight=5, stopping=stopping, interrupted=interrupted)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (executor(), "waiting for 3 answers, nothing for 16 s"),
        (executor(in_flight=0), "waiting to try 5 requests again"),
        (executor(in_flight=0, pause=480.0), "paused for 8 min by http://there"),
    ],
)
def test_a_run_without_news_says_what_it_waits_for(clock, held, said):
    """Within the time of one line in a log, and whatever the reason is."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    line(workload(7), held)
    clock.now += 16
    line(workload(7), held)
    assert said in stream.getvalue()


def test_the_share_of_verdicts_is_not_called_p_lie():
    """The summary's P(lie) leaves out what has unread takes; the line counts what has a verdict so far."""
    judged = workload(7, done=2)
    judged.verdicts = Counter({Verdict.LIE: 1, Verdict.HONEST: 3})
    line = progress.ProgressLine(StringIO()).format_line(judged, executor(), 1.0)
    assert "lies so far 25.0 %" in line
    assert "P(lie)" not in line


def test_a_run_with_news_does_not_say_that_it_waits(clock):
    """Answers came meanwhile."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    clock.now += 16
    line(workload(7), executor())
    assert "7 calls" in stream.getvalue()
    assert "waiting" not in stream.getvalue()


@pytest.mark.parametrize(
    ("why", "again"), [(Interrupted("interrupted"), " again"), (IncompleteError("the run has cost $1"), "")]
)
def test_a_run_that_is_stopped_says_at_once_what_it_still_waits_for(clock, why, again):
    """One line, not one a second."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    for _ in range(3):
        line(workload(7), executor(stopping=why))
    assert stream.getvalue() == f"stopping: 5 answers in flight; Ctrl-C{again} leaves them\n"


def test_a_run_that_stopped_by_itself_goes_on_saying_what_it_waits_for(clock):
    """Answers may take as long as their time-out: no silence meanwhile."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    line(workload(7), executor(stopping=IncompleteError("the run has cost $1")))
    for _ in range(2):
        clock.now += 16
        line(workload(7), executor(stopping=IncompleteError("the run has cost $1")))
    assert stream.getvalue().count("waiting for 3 answers") == 2


@pytest.mark.parametrize(("done", "said"), [(4, ""), (5, "about 40 s left"), (6, "about 15 s left")])
def test_what_an_earlier_session_finished_says_nothing_about_the_time_left(clock, done, said):
    """Four of nine were done before: after ten seconds only the others count."""
    assert progress.ProgressLine(StringIO()).format_line(workload(7, done), executor(), 10.0).endswith(said or "1/s")


class Full(StringIO):
    """A log on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(ENOSPC, strerror(ENOSPC))


@pytest.mark.parametrize("live", [False, True])
def test_a_log_that_cannot_be_written_stops_no_run(clock, live: bool):
    """What is lost is the line, not what was paid for."""
    line = progress.ProgressLine(Full(), live=live)
    clock.now += 16
    line(workload(7), executor())
