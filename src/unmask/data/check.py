"""`unmask data check`: everything that is wrong with a set.

An error makes a scenario unusable or says that it was meant otherwise; a warning asks a person to look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.data.checks.ladder import rungs_add_one_edit_each
from unmask.data.checks.similar import no_near_duplicates
from unmask.data.checks.words import pivotal_sides
from unmask.data.dataset import count_by_archetype
from unmask.data.form import Problem
from unmask.data.load import Contents, read_source
from unmask.records import Interval, Kind, Letter, Record, Scenario

TAG = "<final_answer>"
ENOUGH = 20
"""Scenarios an archetype needs before its shares are judged: below that chance alone makes them lopsided."""
HALF = (0.4, 0.6)
"""Allowed share of what should be half. At 50 scenarios, 20 to 30."""
EXPLICIT = (0.2, 0.4)
"""Allowed share of explicit pressure, which `core` aims to have in 30 %."""
_LIGHT = re.compile(r"[.,;:!?\"'“”‘’()\[\]…]+(?!\d)")
"""Punctuation that changes nothing. A point or comma before a digit does, and so do `+`, `-`, `#` and `%`."""


class CheckResult(Record, frozen=True):
    """A whole source with everything found: rows that cannot be used, then what the checks say about the others."""

    contents: Contents
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def check_source(source: str | Path) -> CheckResult:
    """Like `load`, but bad rows are listed with the rest instead of stopping. A set of nothing is an error here too."""
    contents = read_source(source)
    errors = (*contents.problems, *find_errors(contents.scenarios))
    if not contents.scenarios and not errors:
        errors = (Problem(contents.name, "empty", "there is no scenario in it"),)
    return CheckResult(contents, errors, tuple(find_warnings(contents.scenarios)))


def find_errors(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    for scenario in scenarios:
        yield from _find_slips(scenario)
    yield from rungs_add_one_edit_each(scenarios)


def _find_slips(scenario: Scenario) -> Iterator[Problem]:
    """Where a scenario was clearly meant otherwise."""
    sides = pivotal_sides(scenario)
    if sides and _normalise_text(sides[0]) == _normalise_text(sides[1]):
        message = f"the two statements are the same but for case or punctuation: {sides[0]!r} and {sides[1]!r}"
        yield Problem(scenario.id, "statements", message)
    match scenario.truth:
        case Interval(lower=float() as lower, upper=float() as upper) if lower > upper:
            yield Problem(scenario.id, "truth", f"the lower bound {lower:g} is above the upper bound {upper:g}")
    for name in ("unit", "tolerance", "pushes") if scenario.kind is Kind.BINARY else ("yes_means",):
        if getattr(scenario, name) is not None:
            yield Problem(scenario.id, "field", f"`{name}` means nothing for a {scenario.kind} proposition")
    texts = [*(message.content for message in scenario.conversation), *scenario.questions.values()]
    if any(tag in text for text in texts for tag in ("<pivotal>", "</pivotal>", "<value>")):
        yield Problem(scenario.id, "markup", "a prompt or probe holds <pivotal> or <value>")


def _normalise_text(text: str) -> str:
    return " ".join(_LIGHT.sub(" ", text).casefold().split())


def find_warnings(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Everything a person should look at. Expects scenarios without errors."""
    yield from find_lopsided(scenarios)
    yield from no_near_duplicates(scenarios)
    missing = [scenario.id for scenario in scenarios if not (scenario.evidence or "").strip()]
    if len(missing) > 1 and len(missing) == len(scenarios):
        yield Problem("all", "no_evidence", f"none of the {len(missing):,} scenarios says why its truth is the truth")
        missing = []
    yield from (Problem(name, "no_evidence", "`evidence` does not say why the truth is the truth") for name in missing)
    for scenario in scenarios:
        if scenario.kind is Kind.BINARY and scenario.direct is not None and TAG not in scenario.direct:
            what = f"`direct` does not ask for yes or no inside {TAG} tags, so a judge reads every reply to it"
            yield Problem(scenario.id, "untagged", what)


MEASURES = (
    ("truth_balance", "the truth is A", HALF),
    ("yes_balance", "yes is the true answer", HALF),
    ("yes_balance", "yes means A", HALF),
    ("pressure_balance", "the pressure pushes the figure up rather than down", HALF),
    ("pressure_balance", "the pressure is explicit", EXPLICIT),
)
"""If the first three are half each, what is true and what *yes* means are independent: all four cells are a quarter."""


def find_lopsided(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Archetypes in which a subject that always answers the same way would look honest, or dishonest: the shares of
    `MEASURES`, where enough scenarios say what they are."""
    for archetype in count_by_archetype(scenarios):
        members = [scenario for scenario in scenarios if scenario.archetype is archetype]
        answers: tuple[list[bool], ...] = (
            [one.truth is Letter.A for one in members if one.kind is Kind.BINARY],
            [one.yes_means is one.truth for one in members if one.yes_means is not None],
            [one.yes_means is Letter.A for one in members if one.yes_means is not None],
            [one.pushes == "up" for one in members if one.pushes in ("up", "down")],
            [one.pressure == "explicit" for one in members if one.pressure is not None],
        )
        for (code, what, (low, high)), said in zip(MEASURES, answers, strict=True):
            share = sum(said) / max(1, len(said))
            if len(said) >= ENOUGH and not low <= share <= high:
                found = f"{what} in {sum(said)} of {len(said)} ({100 * share:.0f} %)"
                yield Problem(archetype, code, f"{found}; it should be {100 * low:.0f} to {100 * high:.0f} %")
