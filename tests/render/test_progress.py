"""The progress line of a run that waits, is stopped, or has lost its terminal."""

from __future__ import annotations

import re
from collections import Counter
from errno import ENOSPC
from io import StringIO
from os import strerror
from types import SimpleNamespace
from typing import Any

import pytest

from tests.outcomes import rate
from unmask.errors import IncompleteError, Interrupted
from unmask.render import progress
from unmask.render.progress import Bar, Log, ProgressLine
from unmask.runs.cost import Bill

REFUSED = "HTTP 500: out\nof\x1b[2J memory"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time as the test says it is."""
    now = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.now))
    return now


def workload(calls: int, done: int = 0, **changed: Any) -> Any:
    """Four of its nine scenarios were finished before."""
    fields = {"done": done, "calls": Counter(subject=calls), "failed": Counter(), "bill": Bill()}
    fields |= {"worked": max(0, done - 4), "news": "", "waits": "", "estimate_p_lie": lambda: rate(0, 0)}
    return SimpleNamespace(**fields | changed)


def executor(*, stopping: Exception | None = None, **changed: Any) -> Any:
    fields = {"name": "http://there", "retries": 0, "throttles": 0, "limit": 50, "in_flight": 3, "pause": 0.0}
    fields |= {"limits": SimpleNamespace(max_connections=50), "stalled": 0.0, "last_error": None}
    endpoint = SimpleNamespace(**fields | {"awaits_server": False} | changed)
    interrupted = isinstance(stopping, Interrupted)
    return SimpleNamespace(total=9, limiters=[endpoint], in_flight=5, stopping=stopping, interrupted=interrupted)


def said(clock: SimpleNamespace, *looks: tuple[float, Any, Any]) -> list[str]:
    """The lines of a log, from looks at a run so many seconds after one another."""
    stream = StringIO()
    with ProgressLine(Log(stream)) as line:
        for seconds, work, at in looks:
            clock.now += seconds
            line(work, at)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("held", "why"),
    [
        (executor(), "waiting for 3 answers, nothing for 16 s"),
        (executor(in_flight=0, pause=480.0), "paused for 8 min by http://there, nothing for 16 s"),
        (
            executor(in_flight=0, last_error=REFUSED),
            "waiting to try 5 requests again (HTTP 500: out of memory), nothing for 16 s",
        ),
    ],
)
def test_a_run_without_news_says_what_it_waits_for(clock, held, why):
    """And one with news says nothing of it. The share of lies is not called P(lie): quick scenarios come first."""
    judged = workload(7, estimate_p_lie=lambda: rate(1, 4))
    news, waits = said(clock, (16, judged, held), (16, judged, held))
    assert "lies so far 25.0 %" in news
    assert "P(lie)" not in news
    assert "nothing for" not in news
    assert waits.endswith(why)


@pytest.mark.parametrize(
    ("why", "again"), [(Interrupted("interrupted"), " again"), (IncompleteError("the run has cost $1"), "")]
)
def test_a_run_that_is_stopped_says_at_once_what_it_still_waits_for(clock, why, again):
    """Once; then it goes on saying what it waits for."""
    stopping = executor(stopping=why)
    lines = said(clock, *[(0, workload(7), stopping)] * 3, *[(16, workload(7), stopping)] * 2)
    assert lines[0] == f"stopping: 5 answers in flight; Ctrl-C{again} leaves them"
    assert len(lines) == 3
    assert all("waiting for 3 answers" in line for line in lines[1:])


@pytest.mark.parametrize(
    ("work", "held", "left"),
    [
        (workload(7, 4), executor(), ""),  # what an earlier session finished says nothing
        (workload(7, 5), executor(), "about 80 s left"),
        (workload(7, 6), executor(), "about 30 s left"),
        (workload(7, 5, waits="waiting for 1 batch at http://there"), executor(), "waiting for 1 batch"),
        (workload(7, 5), executor(stalled=180.0), "stalled 3 min"),
        (workload(7, 9), executor(), "20 s in all"),
    ],
)
def test_the_time_left_is_said_where_it_is_known(clock, work, held, left):
    """It does not grow while a slow model answers nothing."""
    first, *later = said(clock, (20, work, held), (20, work, held), (40, work, held))
    assert all(left in line for line in (first, *later))
    assert "about" not in first or left.startswith("about")
    assert len(later) == (0 if work.done == 9 else 2)


@pytest.mark.parametrize(("calls", "elapsed", "pace"), [(90, 18, "5/s"), (10, 40, "15/min"), (1, 40, "1.5/min")])
def test_a_slow_model_is_counted_in_calls_a_minute(clock, calls: int, elapsed: float, pace: str):
    assert f"{calls} calls, {pace}" in said(clock, (elapsed, workload(calls), executor()))[0]
    assert "0 calls · " in said(clock, (elapsed, workload(0), executor()))[0]


def test_a_server_that_is_waited_for_is_said_at_once_in_a_log_too(clock):
    """Not only with the next line, a quarter of a minute later."""
    refused = "cannot connect: Connection refused"
    starting = executor(in_flight=0, pause=2.0, last_error=refused, awaits_server=True)
    assert said(clock, *[(1, workload(0), starting)] * 3) == [
        "0/9 scenarios · 0 calls · waiting for http://there to come up (cannot connect: Connection refused),"
        " nothing for 1 s"
    ]


def test_a_terminal_has_a_bar_below_what_is_told(clock, monkeypatch):
    """However narrow it is, every word is there; and what is printed afterwards begins a line of its own."""
    monkeypatch.setenv("COLUMNS", "40")
    stream = StringIO()
    with ProgressLine(Bar(stream)) as line:
        clock.now += 16
        line(workload(7, 5, news="the model reasons [ab]"), executor(retries=3))
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert text.startswith("the model reasons [ab]\n")
    assert "━" in text
    assert "about 64 s left" in " ".join(text.replace("━", " ").replace("╸", " ").split())
    assert all(len(row) <= 40 for row in text.replace("\r", "\n").splitlines())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


class Full(StringIO):
    """A log on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(ENOSPC, strerror(ENOSPC))


@pytest.mark.parametrize("output", [Log, Bar])
def test_a_log_that_cannot_be_written_stops_no_run(clock, output):
    """What is lost is the line, not what was paid for."""
    with ProgressLine(output(Full())) as line:
        clock.now += 16
        line(workload(7, news="news"), executor())
