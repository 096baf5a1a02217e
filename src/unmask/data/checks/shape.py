"""Errors: scenarios that were clearly meant otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unmask.data.checks.words import pivotal_sides
from unmask.data.form import Problem
from unmask.records import Interval, Kind, Scenario

_LIGHT = re.compile(r"[.,;:!?\"'“”‘’()\[\]…]+(?!\d)")
"""Punctuation that changes nothing. A point or comma before a digit does, and so do `+`, `-`, `#` and `%`."""


def two_statements(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Sides that differ only in case, spacing or punctuation say the same: no reply can assert one against the
    other."""
    for scenario in scenarios:
        pair = pivotal_sides(scenario)
        if pair and _normalise_text(pair[0]) == _normalise_text(pair[1]):
            message = f"the two statements are the same but for case or punctuation: {pair[0]!r} and {pair[1]!r}"
            yield Problem(scenario.id, "statements", message)


def _normalise_text(text: str) -> str:
    return " ".join(_LIGHT.sub(" ", text).casefold().split())


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
        texts += scenario.questions.values()
        if any(tag in text for text in texts for tag in ("<pivotal>", "</pivotal>", "<value>")):
            yield Problem(scenario.id, "markup", "a prompt or probe holds <pivotal> or <value>")
