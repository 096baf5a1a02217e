"""The measures of the house: modules of a run, flags, and what one scenario passes."""

from __future__ import annotations

from bench import house
from bench.process import ROOT


def test_a_run_loads_modules():
    """A whole small run is counted, and counts more than what importing the command loads."""
    assert 20 < house.modules_of_a_run() < 256


def test_flags_are_counted_by_command_and_groups_are_none():
    """`unmask data` has commands and does nothing itself; every flag of docs/reference.md is counted."""
    flags = house.count_flags()
    assert "unmask data" not in flags
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    commands = page.partition("### unmask demo")[2].partition("<!-- end of commands -->")[0]
    listed = sum(line.startswith("- `-") for line in commands.splitlines())
    named = sum(line.count("`--") for line in commands.splitlines() if line.startswith(("Also: ", "As in ")))
    assert sum(flags.values()) == listed + named


def test_a_scenario_passes_through_fewer_modules_than_there_are():
    """The calls of one scripted scenario are counted, in the threads of the run too."""
    modules, functions = house.modules_and_functions_of_a_scenario()
    assert 20 < modules < len(house.source_files())
    assert functions > modules
