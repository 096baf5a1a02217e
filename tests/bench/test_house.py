"""The measures of the house: what counts as a function, a local and a class used twice."""

from __future__ import annotations

import ast

from bench import house
from bench.process import ROOT

SOURCE = """
class Run:
    class _Inner: ...
    @property
    def found(self): ...
    def rows(self): ...
    def _kept(self):
        for one, (other, value) in self.found: ...
        match value:
            case [*rest]: ...

class _Inner:
    def __repr__(self): ...
    def read_twice(self, told): ...

@click.command()
def make(): ...
def board(): ...
"""
TREES = {"some.py": ast.parse(SOURCE)}


def test_functions_that_others_name_do_not_count():
    """Properties, methods of public classes, dunders, click commands and public functions are left out."""
    assert [item.name for item in house.all_functions(TREES) if not item.exempt] == ["_kept", "read_twice"]


def test_a_leading_underscore_is_no_word():
    """`_kept` is one word, `read_twice` two."""
    words = {item.name: item.is_one_word for item in house.all_functions(TREES) if not item.exempt}
    assert words == {"_kept": True, "read_twice": False}


def test_class_names_count_nested_and_private():
    """A class inside another has the same name as one outside."""
    assert house.repeated_classes(TREES) == {"_Inner": 2}


def test_avoided_names_are_found_as_functions_targets_captures_and_parameters():
    """Loop targets, star captures and parameters are locals as well."""
    functions, local = house.avoided_names(TREES)
    assert functions == {"found": 1, "kept": 1}
    assert local == {"one": 1, "other": 1, "rest": 1, "told": 1}


def test_a_run_loads_modules():
    """A whole small run is counted, and counts more than what importing the command loads."""
    assert 20 < house.modules_of_a_run() < 256


def test_flags_are_counted_by_command_and_groups_are_none():
    """`unmask data` has commands and does nothing itself; every flag of docs/cli.md is counted."""
    flags = house.count_flags()
    assert "unmask data" not in flags
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert sum(flags.values()) == sum(line.startswith("| `-") for line in page.splitlines())


def test_a_scenario_passes_through_fewer_modules_than_there_are():
    """The calls of one scripted scenario are counted, in the threads of the run too."""
    modules, functions = house.modules_and_functions_of_a_scenario()
    assert 20 < modules < len(house.source_files())
    assert functions > modules
