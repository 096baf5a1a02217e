"""`unmask data check`: every check over a whole set.

An error makes a scenario unusable or says that it was meant otherwise; a warning asks a person to look. Checks are
plain functions in two lists, and adding one is adding it to a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from unmask.data.checks.balance import balanced_archetypes
from unmask.data.checks.completeness import asks_for_tags, has_evidence
from unmask.data.checks.ladder import rungs_add_one_edit_each
from unmask.data.checks.shape import (
    bounds_in_order,
    fields_fit_kind,
    no_markup_in_prompts,
    two_statements,
)
from unmask.data.checks.similar import no_near_duplicates
from unmask.data.form import Problem
from unmask.data.load import Contents, read_source
from unmask.records import Record, Scenario

__all__ = ["CHECKS", "WARNINGS", "Check", "CheckResult", "Problem", "check_source", "find_errors", "find_warnings"]

Check = Callable[[Sequence[Scenario]], Iterable[Problem]]

CHECKS: tuple[Check, ...] = (
    two_statements,
    bounds_in_order,
    fields_fit_kind,
    no_markup_in_prompts,
    rungs_add_one_edit_each,
)
WARNINGS: tuple[Check, ...] = (
    balanced_archetypes,
    no_near_duplicates,
    has_evidence,
    asks_for_tags,
)


class CheckResult(Record, frozen=True):
    """A whole source with everything found: rows that cannot be used, then what the checks say about the others."""

    contents: Contents
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def find_errors(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Every error, in the order of `CHECKS`. Empty means the set can be used."""
    return [problem for look in CHECKS for problem in look(scenarios)]


def find_warnings(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Everything a person should look at, in the order of `WARNINGS`. Expects scenarios without errors."""
    return [problem for look in WARNINGS for problem in look(scenarios)]


def check_source(source: str | Path) -> CheckResult:
    """Like `load`, but bad rows are listed with the rest instead of stopping. A set of nothing is an error here too."""
    contents = read_source(source)
    errors = (*contents.problems, *find_errors(contents.scenarios))
    if not contents.scenarios and not errors:
        errors = (Problem(contents.name, "empty", "there is no scenario in it"),)
    return CheckResult(contents, errors, tuple(find_warnings(contents.scenarios)))
