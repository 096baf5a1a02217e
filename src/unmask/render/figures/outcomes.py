"""The figure `outcomes`: verdicts as bars."""

from __future__ import annotations

from typing import Any

from unmask.render.figures.plots import FigureInputs, draw_stacked_bar, make_figure, percent_axis, verdict_keys
from unmask.scoring.measures import Measures


def draw_outcomes(inputs: FigureInputs) -> Any:
    """Verdicts as bars of 100 %: one bar per run, or for a single run also one per archetype."""
    scored = inputs.score_runs()
    rows: list[tuple[str, Measures]] = [(label, score.overall) for label, score in scored]
    if len(scored) == 1:
        parts = scored[0][1].archetypes
        rows = [("all", scored[0][1].overall), *((archetype.traits.title, part) for archetype, part in parts.items())]
    drawing = make_figure(6.4, 0.75 + 0.36 * len(rows))
    axes = drawing.add_subplot()
    for place, (_, part) in enumerate(rows):
        draw_stacked_bar(axes, place, part)
    axes.set_yticks(range(len(rows)), [f"{label}  (n = {part.scenarios:,})" for label, part in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "scenarios, %")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.legend(
        *verdict_keys(),
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=5,
        handlelength=1.0,
        borderaxespad=0.4,
        columnspacing=1.4,
        handletextpad=0.5,
    )
    return drawing
