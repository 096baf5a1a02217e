"""Importing ahead: while answers are on their way, and never while there is something else to do."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace

import pytest

from unmask.cli import ahead


@pytest.fixture
def imported(monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(ahead, "_import", done.set)
    return done


def test_a_process_that_waits_imports(imported):
    with ahead.importing_ahead():
        assert imported.wait(30)


def test_a_process_that_works_does_not(imported, monkeypatch):
    """Five looks at a process that is busy, one at a process that is not."""
    used = iter([0.0, *(ahead.LOOK * look for look in range(1, 6)), ahead.LOOK * 5.1])
    looks: list[float] = []

    def process_time() -> float:
        looks.append(next(used))
        assert not imported.is_set()
        return looks[-1]

    monkeypatch.setattr(ahead, "time", SimpleNamespace(process_time=process_time))
    ahead._when_idle(threading.Event())
    assert imported.is_set()
    assert next(used, None) is None


def test_a_command_that_is_over_does_not(imported):
    with ahead.importing_ahead():
        pass
    time.sleep(3 * ahead.LOOK)
    assert not imported.is_set()


def test_what_it_imports_is_what_a_run_needs_later():
    ahead._import()
    assert {
        "unmask.judges.parse",
        "rich.console",
        "rich.table",
        "unmask.cli.finish",
        "unmask.render.terminal.score",
    } <= set(sys.modules)
