"""`unmask view` on the folder of a sweep."""

from __future__ import annotations

from tests.sweep.sweeping import folders, result, row, write_grid
from tests.viewer.server import running_viewer
from unmask.analysis.sides import short_names


def test_view_lists_the_units_of_a_sweep(tmp_path, endpoint):
    grid = write_grid(tmp_path, row("subject", "a", endpoint), row("judge", "judge", endpoint), matrix="seed = [1, 2]")
    result(grid)
    with running_viewer(tmp_path / "out", cache=tmp_path / "cache") as viewer:
        page = viewer.ask("/").text
    assert all(f">{name}<" in page for name in short_names(folders(grid)))
