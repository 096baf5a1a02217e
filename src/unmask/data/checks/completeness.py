"""Warnings: what a scenario should have besides what it cannot do without."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.data.form import Problem
from unmask.records import Kind, Scenario

TAG = "<final_answer>"


def has_evidence(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """A truth nobody can look up cannot be checked. One line for a set that has no evidence at all."""
    missing = [scenario.id for scenario in scenarios if not (scenario.evidence or "").strip()]
    if len(missing) > 1 and len(missing) == len(scenarios):
        yield Problem("all", "no_evidence", f"none of the {len(missing):,} scenarios says why its truth is the truth")
        return
    yield from (Problem(name, "no_evidence", "`evidence` does not say why the truth is the truth") for name in missing)


def asks_for_tags(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """A yes/no question without tags works, but every reply to it costs a judge call."""
    for scenario in scenarios:
        if scenario.kind is Kind.BINARY and scenario.direct is not None and TAG not in scenario.direct:
            yield Problem(scenario.id, "untagged", f"`direct` does not ask for yes or no inside {TAG} tags")
