"""A run, or several, as one HTML file: how much text fits into it, and how it is put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from shlex import quote
from typing import Any

from unmask.analysis.board import Board
from unmask.errors import UsageError
from unmask.records import Archetype, Preset
from unmask.render.describe import compare as compared
from unmask.render.describe.board import describe_board
from unmask.render.describe.conversation import APART, MANY, quote_judge
from unmask.render.describe.pressure import RUNGS
from unmask.render.describe.score import count_takes, describe_measures
from unmask.render.describe.sensitivity import describe_sensitivity
from unmask.render.html.conversation import (
    Conversation,
    build_conversation,
    list_other_verdicts,
    list_readers,
)
from unmask.render.html.page import render_page
from unmask.render.html.sections import PageContent, RunSection, build_content
from unmask.render.html.shorten import find_limit, measure, shorten_to, whole_text
from unmask.runs.run import Runs, open_runs
from unmask.scoring.measures import find_measure

ROOM = 2_960
"""Bytes of the page for each of at least 1,000 scenarios: a report of that many stays below 3 MB."""
SIDE_BY_SIDE = 4
"""Runs in one line; more go on below them."""


def report(
    runs: Runs,
    *,
    redact: bool = False,
    full_text: bool = False,
    preset: Preset | str | None = None,
    judge: str | None = None,
    labels: str | Sequence[str] = (),
) -> str:
    """The page. `redact` leaves out every text of a scenario, a reply or a judge, and every figure they name;
    `full_text` shortens none of them, however large the page becomes. `labels` correct P(lie) of each run."""
    opened = open_runs(runs)
    if not opened:
        raise UsageError("a report needs a run", advice="Name its folder.")
    content = build_content(opened, preset=preset, judge=judge, redact=redact, with_sensitivity=True)
    if labels:
        content = content.correct(labels, preset=preset, judge=judge)
    fixed = page_values(content) | {"redact": redact}
    fixed["talks"] = _collect_talks(content, whole=full_text, redact=redact)
    if full_text or redact:
        fixed["most_takes"] = max(run.definition.takes for run in opened)
        return render_page("report.html", **fixed | {"cut": whole_text})
    return _fit_page(fixed, sum(len(row.verdicts) for row in content.rows))


def render_board(board: Board) -> str:
    """A board as a file that needs nothing from outside."""
    return render_page("ranks.html", described=describe_board(board))


def page_values(content: PageContent) -> dict[str, Any]:
    """What the templates of a page about runs need."""
    present = {row.scenario.archetype for row in content.rows}
    return {
        "content": content,
        "parts": content.parts,
        "many": content.many,
        "archetypes": [archetype.traits.title for archetype in Archetype if archetype in present],
        "pressures": sorted({row.pressure for row in content.rows}),
        "reasons": sorted({reason for row in content.rows for reason in row.reasons}),
        "anchors": {row.anchor for row in content.rows},
        "beside": SIDE_BY_SIDE,
        "compared": compared,
        "count_takes": count_takes,
        "describe_measures": describe_measures,
        "describe_sensitivity": describe_sensitivity,
        "find_measure": find_measure,
        "judge_example": quote_first_judge,
        "presets": list(Preset),
        "rungs": RUNGS,
        "whole_text": whole_text,
        "apart": APART,
        "quote": quote,
        "most_takes": MANY,
        "talks": None,
        "shortened": 0,
        "redact": False,
    }


def quote_first_judge(part: RunSection) -> Sequence[tuple[str, str]]:
    """What the judge of a run was sent about the first reply under pressure that it has read."""
    for scenario, outcome in zip(part.run.scenarios, part.rows, strict=True):
        if quoted := list(quote_judge(part.run, scenario, outcome, part.judge_file)):
            return quoted
    return ()


def _collect_talks(content: PageContent, *, whole: bool, redact: bool) -> list[Conversation]:
    others = [_read_otherwise(part) for part in content.parts]
    talks = []
    for row in content.rows:
        parts = list(zip(row.outcomes, content.parts, others, strict=True))
        replies = [None if one is None else part.run.replies(one.id) for one, part, _ in parts]
        said = ["" if one is None else of_run[one.id] for one, _, of_run in parts]
        bare = Conversation("", tuple(said))
        talks.append(bare if redact else build_conversation(row, replies, said, whole=whole))
    return talks


def _read_otherwise(part: RunSection) -> dict[str, str]:
    """By the ids of the scenarios what other rules and judges make of them."""
    readers = list_readers(part.run, preset=Preset(part.score.preset), judge=part.judge_file)
    rows = [(name, part.run.rows(preset=rules, judge=file)) for file, rules, name in readers]
    read = [(name, {one.id: one for one in outcomes}) for name, outcomes in rows]
    return {own.id: list_other_verdicts(own, ((name, of[own.id]) for name, of in read)) for own in part.rows}


def _fit_page(fixed: dict[str, Any], scenarios: int) -> str:
    """The page with as much of each text as there is room for: first without any, to see what all the rest takes."""
    sizes = [measure(text) for talk in fixed["talks"] for text in talk.texts]

    def render(limit: int) -> str:
        shown = {"cut": partial(shorten_to, limit), "shortened": sum(size > limit for size in sizes)}
        return render_page("report.html", **fixed | shown)

    budget = ROOM * max(1000, scenarios)
    room = max(0, budget - measure(render(0)))
    while True:
        page = render(find_limit(sizes, room))
        over = measure(page) - budget
        if over <= 0 or not room:
            return page
        room = max(0, room - 2 * over)
