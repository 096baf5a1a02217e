"""The measurements of the viewer measure what they say."""

from __future__ import annotations

from bench.view import RUNS, make_runs, measure_lists


def test_a_folder_is_measured_when_new_and_when_known(tmp_path):
    """Thirty runs, made once; the second process finds the summaries of the first."""
    runs = make_runs(tmp_path, 0.002)
    assert make_runs(tmp_path, 0.002) == runs
    figures = [*measure_lists(runs, tmp_path / "cache")]
    assert len(list((tmp_path / "cache" / "summaries").iterdir())) == RUNS
    assert all(figure.value for figure in figures)
    assert [figure.unit for figure in figures if figure.limit] == ["s", "s", "s", "MB"]
