"""The results as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from bench.calibration.goals import Finding, Kind

PAGE = Path(__file__).resolve().parent.parent / "results" / "calibration.md"
BEGIN, END = "<!-- written by python -m bench.calibration: begin -->", "<!-- end -->"

Results = Mapping[str, Sequence[Finding]]
"""By world, as `about: name`."""


def write_page(results: Results, path: Path = PAGE) -> None:
    """The table, between its two marks."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(before + "\n".join([BEGIN, "", *list_lines(results), "", END]) + after, encoding="utf-8")


def list_lines(results: Results) -> Iterator[str]:
    yield f"{summarise(results)} Widths are in points."
    yield ""
    yield "| planted | measured | clusters | found | goal | met | width |"
    yield "|---|---|--:|---|---|---|---|"
    for name, findings in results.items():
        for place, one in enumerate(findings):
            yield "| " + " | ".join([name if not place else "", *_list_cells(one)]) + " |"


def _list_cells(one: Finding) -> list[str]:
    last = one.again or one
    met = {True: "yes", False: "**no**", None: ""}[one.met]
    clusters = f"{one.telling:.0f}" if one.telling else ""
    return [
        one.what,
        clusters,
        _describe_value(last),
        describe_goal(one),
        met,
        f"{100 * one.width:.2f}" if one.width else "",
    ]


def _describe_value(one: Finding) -> str:
    if one.low == one.high:
        return f"{100 * one.value:.1f} %, exact"
    return f"{100 * one.value:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}], {one.runs:,}"


def describe_goal(one: Finding) -> str:
    if one.limits is None:
        return "marked *few*" if one.marked else ""
    least, most = (f"{100 * limit:g}" for limit in one.limits)
    if one.kind is Kind.NEVER:
        return "never"
    if one.limits[0] == -inf:
        return f"at most {most} %"
    return f"at least {least} %" if one.limits[1] == inf else f"{least} to {most} %"


def summarise(results: Results) -> str:
    goals = [one for own in results.values() for one in own if one.met is not None]
    met, sure = sum(bool(one.met) for one in goals), sum(one.sure for one in goals)
    return f"{met} of {len(goals)} goals are met, {sure} of them by the whole Monte Carlo interval."
