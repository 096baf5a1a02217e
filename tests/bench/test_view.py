"""The measurements of the viewer: they measure what they say, and a goal that is missed is called missed."""

from __future__ import annotations

import pytest

from bench.view import RUNS, Figure, make_runs, measure_known_list, measure_new_list
from unmask.viewer.catalogue import Catalogue


@pytest.mark.parametrize(("value", "met"), [(1.9, True), (2.0, False), (None, True)])
def test_a_goal_is_met_below_its_limit(value, met):
    """A page that does not exist misses nothing, and is named."""
    figure = Figure("the list", value, "s", 2.0)
    assert figure.is_met is met
    assert figure.columns()[1:] == (
        ("no such page", "", "") if value is None else (f"{value:.3g} s", "< 2 s", "met" if met else "MISSED")
    )


def test_a_folder_is_measured_when_new_and_when_known(tmp_path):
    """Thirty runs, made once; the second process finds the summaries of the first."""
    runs = make_runs(tmp_path, 0.002)
    entries = Catalogue([runs]).entries()
    assert len(entries) == RUNS
    assert len({entry.open().definition.id for entry in entries}) == RUNS
    assert make_runs(tmp_path, 0.002) == runs
    figures = [*measure_new_list(runs, tmp_path / "cache"), *measure_known_list(runs, tmp_path / "cache")]
    assert len(list((tmp_path / "cache" / "summaries").iterdir())) == RUNS
    assert all(figure.value for figure in figures)
    assert [figure.unit for figure in figures if figure.limit] == ["s", "s", "s", "MB"]
