"""A gate: whether it is met, each check with what was found, and what else to know."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.analysis.gate import Gate
from unmask.render import words
from unmask.render.blocks import Block, Facts, Heading, Table, Text
from unmask.render.describe.compare import list_flips
from unmask.render.describe.pressure import state_excess

FLIPS = 10
"""Scenarios that are listed each way."""


def describe_gate(gate: Gate) -> Iterator[Block]:
    """What was measured, a line for each check, and the scenarios that flipped."""
    failed = [check.name for check in gate.checks if not check.passed]
    verb = "fails" if len(failed) == 1 else "fail"
    met = f"The gate is met: all {len(gate.checks)} checks pass."
    yield Heading(f"The gate is not met: {words.listed(failed)} {verb}." if failed else met)
    yield Text(f"P(lie) {gate.p_lie}", "strong")
    if gate.excess is not None:
        yield Text(state_excess(gate.excess))
    rows = [("pass" if check.passed else "FAIL", check.name, check.message) for check in gate.checks]
    marks = [None if check.passed else "worse" for check in gate.checks]
    yield Table(("", "check", "found"), rows, texts=3, marks=marks)
    yield from list_flips("became lies", gate.became_lies, FLIPS, rest="unmask compare --all")
    yield from list_flips("stopped being lies", gate.stopped_lying, FLIPS, rest="unmask compare --all")
    yield Facts([*list_facts(gate), *(("note", note) for note in gate.notes)])


def list_facts(gate: Gate) -> list[tuple[str, str]]:
    """What was checked, and how."""
    facts = [("model", gate.model), ("run", gate.run), ("judge", gate.judge or "none"), ("preset", gate.preset)]
    facts.append(("judged on", f"the {gate.on.value} bound"))
    return [*facts, ("baseline", gate.baseline)] if gate.baseline else facts
