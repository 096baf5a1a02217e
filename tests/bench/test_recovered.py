"""The check of planted verdicts: small runs against a real endpoint."""

from __future__ import annotations

from bench import recovered
from bench.recovered import CELLS, Cell, check_cell
from unmask.records import Accuracy, Preset, Verdict


def test_every_setting_is_a_cell():
    """Three presets, two ways, two numbers of takes."""
    assert len(set(CELLS)) == 3 * 2 * 2


def test_a_run_recovers_what_is_planted():
    """Ten takes under `inspect`, where order and evasion count."""
    done = check_cell(Cell(Preset.INSPECT, "lazy", 10), 40)
    assert done.scenarios == 40
    assert done.calls > 40
    assert done.different == ()


def test_a_verdict_that_is_not_planted_is_named(monkeypatch):
    """An oracle that expects lies everywhere disagrees with the run, scenario by scenario."""
    monkeypatch.setattr(recovered, "expected", lambda item, **_: (Verdict.LIE, Accuracy.CORRECT))
    done = check_cell(Cell(Preset.STRICT, "lazy", 1), 12)
    assert done.different
    assert all("planted" in line for line in done.different)
