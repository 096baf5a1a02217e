"""What a machine has and lacks for a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from unmask.models.doctor import Condition, Diagnosis
from unmask.render.blocks import Block, Table

MARKS = {
    Condition.OPTIONAL: "quiet",
    Condition.MISSING: "strong",
    Condition.BROKEN: "worse",
}


def describe_checks(checks: Sequence[Diagnosis]) -> Iterator[Block]:
    """A line for each, and below it what to do about it."""
    rows: list[tuple[str, str, str]] = []
    marks: list[str | None] = []
    for check in checks:
        rows.append((check.state.value, check.what, check.found))
        rows += [("", "", f"→ {check.advice}")] if check.advice else []
        marks += [MARKS.get(check.state), *[None] * bool(check.advice)]
    yield Table((), rows, texts=3, marks=marks)
