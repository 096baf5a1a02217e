"""The options of a run, and their twin for editors and type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import get_type_hints

from unmask.runs.options import Options, RunSettings


def as_argument(kind: object) -> object:
    """What a caller may give for a field of this type: a member of a closed set also by its name, any sequence of
    names, or one name."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind | str
    return str | Sequence[str] if kind == tuple[str, ...] else kind


def test_the_settings_of_run_are_the_fields_of_the_options():
    """Same names, same order, same types: what an editor completes is what `unmask.run` takes."""
    fields = get_type_hints(Options)
    settings = get_type_hints(RunSettings)
    assert list(settings) == list(Options.__struct_fields__)
    assert settings == {name: as_argument(fields[name]) for name in Options.__struct_fields__}


def test_no_setting_has_to_be_given():
    """Every one has a default."""
    assert RunSettings.__required_keys__ == frozenset()
