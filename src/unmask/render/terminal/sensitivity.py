"""What a headline owes to choices, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from unmask.analysis.sensitivity import Sensitivity, TagCounts, Variant
from unmask.render.terminal.tables import TextTable, format_bounds, make_table, percent, render_parts


def render(sensitivity: Sensitivity, *, width: int | None = None, color: bool = False) -> str:
    from shutil import get_terminal_size

    columns = width or get_terminal_size().columns
    return render_parts(_compose_parts(sensitivity, columns), width=columns, color=color)


def _compose_parts(sensitivity: Sensitivity, columns: int) -> Iterator[str | TextTable]:
    yield (
        f"P(lie) {_format_value(sensitivity.own)} % under the run's own choices: preset {sensitivity.preset},"
        f" judge {sensitivity.judge or 'none'}"
    )
    spread, left_open = sensitivity.spread, any(variant.open for variant in sensitivity.variants)
    if not spread:
        yield "Nothing can be said about choices: the run has no P(lie) of its own.\n"
    else:
        beside = ", apart from what is left open below" if left_open else ""
        yield (
            f"One choice changed at a time moves it between {percent(spread[0])} and {percent(spread[1])} %{beside}."
            " Nothing was asked again.\n"
        )
    if sensitivity.tags.tags:
        yield _describe_tags(sensitivity.tags) + "\n"
    rows = []
    for _, same in groupby(sensitivity.variants, lambda variant: variant.axis):
        for number, variant in enumerate(same):
            axis, mark = variant.axis if not number else "", " *" if variant.own else ""
            counts = str(variant.open or ""), str(variant.unjudged or "")
            rows.append((axis, variant.name + mark, _format_value(variant), *counts))
    headings = ("choice", "", "P(lie) %", "left\nopen", "un-\njudged")
    yield make_table(headings, rows, left=2)
    if left_open:
        yield ""
        yield (
            "Left open: scenarios that this choice would have to ask or read about first. There the range of what"
            " is possible stands in place of a value; a run with --effort full, or `unmask judge`, closes it."
        )
    if sensitivity.reader_command:
        yield ""
        yield f"The judge has not read every tag; this makes it: {sensitivity.reader_command}"


def _describe_tags(tags: TagCounts) -> str:
    waiting = f", {tags.unread} of them still unread" if tags.unread else ""
    return (
        f"{tags.tags} direct answers are a bare yes or no in tags. {tags.contradicted} of these contradict the"
        f" sentences before them and are left to the judge{waiting}."
    )


def _format_value(variant: Variant) -> str:
    if variant.p_lie is None:
        return f"{percent(variant.low)} to {percent(variant.high)}"
    return percent(variant.p_lie.value) + format_bounds(variant.p_lie.low, variant.p_lie.high)
