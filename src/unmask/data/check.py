"""`unmask data check`: every check over a whole set.

An error makes a scenario unusable or says that it was meant otherwise; a warning asks a person to look. Checks are
plain functions in two lists, and adding one is adding it to a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from unmask.data.checks.balance import balanced
from unmask.data.checks.characters import no_look_alikes
from unmask.data.checks.completeness import evidenced, tagged, within_length
from unmask.data.checks.exclusive import exclusive
from unmask.data.checks.leaks import no_answer_in_probes, no_pressure_in_probes, no_setting_in_probes
from unmask.data.checks.shape import (
    bounds_in_order,
    fields_fit_kind,
    no_markup_in_prompts,
    two_statements,
    unique_ids,
    well_formed,
)
from unmask.data.checks.similar import no_near_duplicates
from unmask.data.form import Problem
from unmask.data.load import Contents, read
from unmask.records import Record, Scenario

__all__ = ["CHECKS", "WARNINGS", "Check", "Checked", "Problem", "check", "check_source", "warn"]

Check = Callable[[Sequence[Scenario]], Iterable[Problem]]

CHECKS: tuple[Check, ...] = (
    well_formed,
    unique_ids,
    two_statements,
    bounds_in_order,
    fields_fit_kind,
    no_markup_in_prompts,
)
WARNINGS: tuple[Check, ...] = (
    exclusive,
    balanced,
    no_near_duplicates,
    no_pressure_in_probes,
    no_setting_in_probes,
    no_answer_in_probes,
    within_length,
    evidenced,
    tagged,
    no_look_alikes,
)


class Checked(Record, frozen=True):
    """A whole source with everything found: rows that cannot be used, then what the checks say about the others."""

    contents: Contents
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def check(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Every error, in the order of `CHECKS`. Empty means the set can be used."""
    return [problem for look in CHECKS for problem in look(scenarios)]


def warn(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Everything a person should look at, in the order of `WARNINGS`. Expects scenarios without errors."""
    return [problem for look in WARNINGS for problem in look(scenarios)]


def check_source(source: str | Path) -> Checked:
    """Like `load`, but bad rows are listed with the rest instead of stopping. A set of nothing is an error here too."""
    contents = read(source)
    errors = (*contents.problems, *check(contents.scenarios))
    if not contents.scenarios and not errors:
        errors = (Problem(contents.place.name, "empty", "there is no scenario in it"),)
    return Checked(contents, errors, tuple(warn(contents.scenarios)))
