"""Errors: rungs of one fact that differ in more, or in less, than one edit each.

A lie that is told on one rung and not on the rung below can be put down to the edit only if nothing else changed. So
that is not taken from what the author says; it is shown by comparing the texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from unmask.data.checks.words import split_words
from unmask.data.dataset import group_by_fact
from unmask.data.form import Problem
from unmask.records import Scenario

RUNGS = ("the control that the others are compared with", "the incentive", "the user's wish", "the order")
PASSAGE = range(15, 46)
"""Words of the passage that rung 1 replaces, and of what it puts there."""
LONGER = 0.2
"""By how much the one may be longer than the other, as a share of the shorter."""
_OWN = frozenset({"id", "rung", "edit", "pressure", "conversation"})
"""Fields in which the rungs of a fact may differ; the conversation only by its edits."""
_SECOND_SENTENCE = re.compile(r"[.!?][\"'”’)]*\s+[\"'“‘(]*[A-Z]")


def rungs_add_one_edit_each(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Fact by fact, from the lowest rung to the highest."""
    for rungs in group_by_fact(scenario for scenario in scenarios if scenario.fact is not None):
        yield from _find_missing(rungs)
        for scenario in rungs[1:]:
            yield from _compare_fields(rungs[0], scenario)
        for scenario in rungs:
            yield from _measure_edit(scenario)
        for below, scenario in pairwise(rungs):
            if scenario.rung == (below.rung or 0) + 1:
                yield from _compare_talks(below, scenario)


def _find_missing(rungs: Sequence[Scenario]) -> Iterator[Problem]:
    lowest, found = rungs[0], [scenario.rung for scenario in rungs]
    for rung, what in enumerate(RUNGS):
        if rung not in found:
            yield Problem(lowest.id, "ladder", f"its fact {lowest.fact} has no rung {rung}, {what}")
        elif found.count(rung) > 1:
            yield Problem(lowest.id, "ladder", f"its fact {lowest.fact} has rung {rung} {found.count(rung)} times")


def _compare_fields(lowest: Scenario, scenario: Scenario) -> Iterator[Problem]:
    for name in Scenario.__struct_fields__:
        if name not in _OWN and getattr(scenario, name) != getattr(lowest, name):
            yield Problem(scenario.id, "ladder", f"`{name}` is not that of {lowest.id}, which is of the same fact")


def _measure_edit(scenario: Scenario) -> Iterator[Problem]:
    edit, words = scenario.edit or "", len(split_words(scenario.edit or ""))
    if scenario.rung in (0, 1):
        if words not in PASSAGE:
            limits = f"{PASSAGE[0]} to {PASSAGE[-1]}"
            yield Problem(scenario.id, "ladder", f"the passage in `edit` has {words} words, not {limits}")
    elif _SECOND_SENTENCE.search(edit):
        yield Problem(scenario.id, "ladder", f"`edit` is more than one sentence: {edit!r}")


def _compare_talks(below: Scenario, scenario: Scenario) -> Iterator[Problem]:
    """What changed from one rung to the next: the passage, the last user message, the system prompt."""
    edit, old = scenario.edit or "", below.edit or ""
    if [message.role for message in below.conversation] != [message.role for message in scenario.conversation]:
        yield Problem(scenario.id, "ladder", f"the conversation has other turns than that of {below.id}")
        return
    changed = len(scenario.conversation) - 1 if scenario.rung == 2 else 0
    for place, (before, after) in enumerate(zip(below.conversation, scenario.conversation, strict=True)):
        if place != changed:
            fine, what = before == after, f"on rung {scenario.rung} only message {changed + 1} may change"
        elif scenario.rung == 1:
            fine = _is_replaced(before.content, after.content, old=old, new=edit)
            what = "it is not the same text with one `edit` in the place of the other"
        else:
            fine = _is_added(before.content, after.content, edit=edit)
            what = "without the text in `edit` it is not the same"
        if not fine:
            yield Problem(
                scenario.id, "ladder", f"message {place + 1} ({after.role}) against that of {below.id}: {what}"
            )
    if scenario.rung == 1:
        yield from _compare_lengths(scenario.id, old, edit)


def _is_replaced(before: str, after: str, *, old: str, new: str) -> bool:
    return old != new and before.count(old) == 1 and before.replace(old, new) == after


def _is_added(before: str, after: str, *, edit: str) -> bool:
    """Whether `after` is `before` with the edit at one place, and with it nothing but white space."""
    head, found, tail = after.partition(edit)
    head, tail = head.rstrip(), tail.lstrip()
    between = before[len(head) : len(before) - len(tail)]
    return (
        bool(found) and len(head) + len(tail) <= len(before) and before == head + between + tail and not between.strip()
    )


def _compare_lengths(name: str, old: str, new: str) -> Iterator[Problem]:
    short, long = sorted(len(split_words(text)) for text in (old, new))
    if long > short * (1 + LONGER):
        message = f"the passages of rung 0 and 1 have {len(split_words(old))} and {len(split_words(new))} words"
        yield Problem(name, "ladder", f"{message}, a difference of more than {LONGER:.0%}".replace("%", " %"))
