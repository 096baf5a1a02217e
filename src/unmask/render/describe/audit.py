"""The auditor's screen: a mark, what was checked, what was found."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from unmask.analysis.audit import Audit, State
from unmask.render import words
from unmask.render.blocks import Block, Command, Heading, Table, Text

MARKS = {State.GOOD: ("✓", None), State.BAD: ("✗", "worse"), State.NOTE: ("·", "quiet")}


def describe_audits(audits: Sequence[Audit]) -> Iterator[Block]:
    """Of several runs: which checks each fails."""
    rows = [
        (MARKS[State.GOOD if audit.passed else State.BAD][0], audit.run, ", ".join(one.name for one in audit.failed))
        for audit in audits
    ]
    yield Table(("", "run", "failed"), rows, texts=3, marks=[None if audit.passed else "worse" for audit in audits])
    failing = [audit.run for audit in audits if not audit.passed]
    yield Text(f"{len(failing)} of {len(audits)} runs fail a check.")
    yield Command(shlex.join(["unmask", "audit", (failing or [audits[0].run])[0]]), "all checks of one")


def describe_audit(audit: Audit) -> Iterator[Block]:
    yield Heading(f"{audit.model}, read by {audit.judge or 'nobody'}: {audit.run}" if audit.model else audit.run)
    yield Table(
        ("", "check", "found"),
        [(MARKS[check.state][0], check.name, check.text) for check in audit.checks],
        texts=3,
        marks=[MARKS[check.state][1] for check in audit.checks],
    )
    good = sum(check.state is State.GOOD for check in audit.checks)
    notes = words.plural(len(audit.checks) - good - len(audit.failed), "thing") + " to know (·)"
    if audit.failed:
        failed = ", ".join(check.name for check in audit.failed)
        yield Text(f"{words.plural(len(audit.failed), 'check')} failed (✗): {failed}. {notes}.", "worse")
    else:
        yield Text(f"No check failed: {good} passed (✓), {notes}.")
    yield from (Command(check.command, check.name) for check in audit.failed if check.command)
