"""The progress line of a run that waits, is stopped, or has lost its terminal."""

from __future__ import annotations

from collections import Counter
from errno import ENOSPC
from io import StringIO
from os import strerror
from types import SimpleNamespace
from typing import Any

import pytest

from tests.outcomes import rate
from unmask.errors import IncompleteError, Interrupted
from unmask.judges.base import Style
from unmask.protocol.settings import Settings
from unmask.records import Preset
from unmask.render.terminal import progress
from unmask.runs.cost import Bill


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Time as the test says it is."""
    now = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now.now))
    return now


def workload(calls: int, done: int = 0) -> Any:
    """Four of its nine scenarios were finished before; nobody knows beforehand how many calls one takes."""
    return SimpleNamespace(
        **{"done": done, "calls": Counter(subject=calls), "failed": Counter(), "bill": Bill()},
        **{"worked": max(0, done - 4), "worked_calls": calls if done > 4 else 0},
        **{"scenarios": (), "models": {}, "takes_per_call": None, "news": "", "waits": ""},
        settings=Settings(style=Style.LETTERS, preset=Preset.PAPER),
        numeric_settings=None,
        estimate_p_lie=lambda: rate(0, 0),
    )


def executor(
    *,
    in_flight: int = 3,
    pause: float = 0.0,
    stopping: Exception | None = None,
    last_error: str | None = None,
    awaits_server: bool = False,
    stalled: float = 0.0,
) -> Any:
    limits = SimpleNamespace(max_connections=50)
    endpoint = SimpleNamespace(
        stalled=stalled,
        **{"name": "http://there", "retries": 0, "throttles": 0, "limit": 50, "limits": limits, "in_flight": in_flight},
        **{"pause": pause, "last_error": last_error, "awaits_server": awaits_server},
    )
    interrupted = isinstance(stopping, Interrupted)
    return SimpleNamespace(
        total=9, already=4, limiters=[endpoint], in_flight=5, stopping=stopping, interrupted=interrupted
    )


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (executor(), "waiting for 3 answers, nothing for 16 s"),
        (executor(in_flight=0), "waiting to try 5 requests again"),
        (executor(in_flight=0, pause=480.0), "paused for 8 min by http://there"),
        (
            executor(in_flight=0, last_error="openai/m at http://there/v1: HTTP 500: out\nof\x1b[2J memory"),
            "waiting to try 5 requests again (HTTP 500: out of memory), nothing for 16 s",
        ),
        (
            executor(in_flight=0, pause=9.0, last_error="openai/m at http://there/v1: HTTP 429"),
            "paused for 9 s by http://there (HTTP 429), nothing for 16 s",
        ),
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
    """Scenarios that need few calls are finished first, so the share is not that of the run."""
    judged = workload(7, done=2)
    judged.estimate_p_lie = lambda: rate(1, 4)
    line = progress.ProgressLine(StringIO()).list_parts(judged, executor(), 1.0)["lies"]
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
    parts = progress.ProgressLine(StringIO()).list_parts(workload(7, done), executor(), 10.0)
    assert parts.get("time", "") == said


def test_while_batches_are_waited_for_nobody_knows_the_time_left(clock):
    """The pace of the answers that were collected says nothing about the next batch."""
    waiting = workload(7, done=5)
    waiting.waits = "waiting for 1 batch with 4 requests at http://there"
    assert "time" not in progress.ProgressLine(StringIO()).list_parts(waiting, executor(), 10.0)


def test_the_time_left_does_not_grow_while_a_slow_model_answers_nothing(clock):
    """It is as of the last answer; how long nothing has come is said beside it."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    clock.now += 20
    line(workload(7, done=5), executor())
    for _ in range(3):
        clock.now += 20
        line(workload(7, done=5), executor())
    assert stream.getvalue().count("about 80 s left") == 4
    assert "nothing for 60 s" in stream.getvalue()


@pytest.mark.parametrize(("calls", "elapsed", "said"), [(90, 2, "45/s"), (10, 40, "15/min"), (1, 40, "1.5/min")])
def test_a_slow_model_is_counted_in_calls_a_minute(clock, calls: int, elapsed: float, said: str):
    assert progress.ProgressLine(StringIO()).list_parts(workload(calls), executor(), elapsed)["pace"] == said


def test_nothing_is_said_of_the_pace_before_the_first_answer(clock):
    assert not progress.ProgressLine(StringIO()).list_parts(workload(0), executor(), 10.0)["pace"]


PARTS = {
    "done": "63/300 scenarios",
    "calls": "220 calls",
    "pace": "60/s",
    "lies": "lies so far 32.3 % [22.0, 44.6] of 62; 3 unjudged",
    "cost": "$0.13",
    "failed": "2 failed",
    "slowdown": "4 retries · slowed to 12 connections",
    "time": "about 14 s left",
    "wait": "waiting to try 12 requests again (HTTP 500: out of memory), nothing for 16 s",
}


@pytest.mark.parametrize("width", [40, 60, 79, 100, 119])
@pytest.mark.parametrize("without", [(), ("wait",), ("wait", "slowdown", "failed"), ("cost", "lies")])
def test_however_narrow_the_terminal_the_time_left_stays(width: int, without: tuple[str, ...]):
    """Other parts give way first. The line never breaks."""
    line = progress.fit_parts({name: part for name, part in PARTS.items() if name not in without}, width)
    assert len(line) <= width
    assert line.startswith("63/300 scenarios · ")
    assert "about 14 s left" in line


def test_a_line_that_fits_is_left_whole():
    whole = " · ".join(PARTS.values())
    assert progress.fit_parts(PARTS, None) == progress.fit_parts(PARTS, len(whole)) == whole


@pytest.mark.parametrize("done", [5, 9])
def test_what_is_printed_after_a_live_line_begins_a_line_of_its_own(clock, done: int):
    """Whether the run came to its end or an error ended it; and without an empty line between."""
    stream = StringIO()
    with progress.ProgressLine(stream, live=True) as line:
        clock.now += 16
        line(workload(7, done), executor())
    assert stream.getvalue().endswith("\n")
    assert not stream.getvalue().endswith("\n\n")


def test_news_replaces_the_live_line(clock):
    """It begins at the left, and nothing of the longer line is left behind it."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=True)
    clock.now += 16
    line(workload(7), executor())
    shown = stream.getvalue().removeprefix("\r")
    told = workload(7)
    told.news = "the model reasons"
    line(told, executor())
    assert stream.getvalue().removeprefix(f"\r{shown}") == "\r" + "the model reasons".ljust(len(shown)) + "\n"


def test_a_log_gets_no_empty_line_at_the_end(clock):
    stream = StringIO()
    with progress.ProgressLine(stream, live=False):
        pass
    assert stream.getvalue() == ""


def test_a_server_that_is_waited_for_is_said_at_once_in_a_log_too(clock):
    """Not only with the next line, a quarter of a minute later."""
    stream = StringIO()
    line = progress.ProgressLine(stream, live=False)
    refused = "openai/m at http://there/v1: cannot connect: Connection refused"
    for _ in range(3):
        clock.now += 1
        line(workload(0), executor(in_flight=0, pause=2.0, last_error=refused, awaits_server=True))
    assert stream.getvalue().splitlines() == [
        "0/9 scenarios · 0 calls · waiting for http://there to come up (cannot connect: Connection refused),"
        " nothing for 1 s"
    ]


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


def test_an_endpoint_that_only_fails_is_stalled_and_has_no_time_left(clock):
    """Nobody knows how long it takes to come back."""
    parts = progress.ProgressLine(StringIO()).list_parts(workload(7, done=5), executor(stalled=180.0), 60.0)
    assert parts["time"] == "stalled 3 min"
