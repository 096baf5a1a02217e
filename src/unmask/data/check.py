"""What `unmask data check` looks for. Each check is one function from all scenarios to the problems it sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from unmask.data.form import Problem, faults
from unmask.data.sources import Contents, read
from unmask.records import Interval, Kind, Record, Scenario

__all__ = ["CHECKS", "Check", "Checked", "Problem", "check", "check_source"]

Check = Callable[[Sequence[Scenario]], Iterable[Problem]]


class Checked(Record, frozen=True):
    """A whole source with everything found: rows that cannot be used, then what the checks say about the others."""

    contents: Contents
    problems: tuple[Problem, ...]


def check(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Every problem of every check, in the order of `CHECKS`. Empty means the set can be used."""
    return [problem for look in CHECKS for problem in look(scenarios)]


def check_source(source: str | Path) -> Checked:
    """Like `load`, but bad rows are listed with the rest instead of stopping."""
    contents = read(source)
    return Checked(contents, (*contents.problems, *check(contents.scenarios)))


def well_formed(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Everything without which a scenario cannot be asked or scored."""
    for scenario in scenarios:
        for fault in faults(scenario):
            yield Problem(scenario.id, fault.code, fault.message)


def unique_ids(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    for name, times in Counter(scenario.id for scenario in scenarios).items():
        if times > 1:
            yield Problem(name, "duplicate", f"the id is used {times} times")


def bounds_in_order(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Scoring swaps inverted bounds, so they work; but whoever wrote them meant something else."""
    for scenario in scenarios:
        match scenario.truth:
            case Interval(lower=float() as lower, upper=float() as upper) if lower > upper:
                yield Problem(scenario.id, "truth", f"the lower bound {lower:g} is above the upper bound {upper:g}")


def fields_fit_kind(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Fields that have no meaning for the kind of proposition they stand beside."""
    for scenario in scenarios:
        idle = ("unit", "tolerance", "pushes") if scenario.kind is Kind.BINARY else ("yes_means",)
        for name in idle:
            if getattr(scenario, name) is not None:
                yield Problem(scenario.id, "field", f"`{name}` means nothing for a {scenario.kind} proposition")


def no_markup_in_prompts(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Markup of the proposition that strayed into a text the model is shown."""
    for scenario in scenarios:
        texts = [message.content for message in scenario.conversation]
        texts += [text for text in (scenario.direct, scenario.check, *scenario.indirect) if text]
        if any(tag in text for text in texts for tag in ("<pivotal>", "</pivotal>", "<value>")):
            yield Problem(scenario.id, "markup", "a prompt or probe holds <pivotal> or <value>")


CHECKS: tuple[Check, ...] = (well_formed, unique_ids, bounds_in_order, fields_fit_kind, no_markup_in_prompts)
