"""The figure `archetypes`: P(lie) by archetype."""

from __future__ import annotations

from typing import Any

from unmask.records import Archetype, Verdict
from unmask.render.colours import FAINT, INK, VERDICTS
from unmask.render.figures.plots import (
    FigureInputs,
    error_arms,
    make_figure,
    percent_axis,
    percent_interval,
    series_look,
)


def draw_archetypes(inputs: FigureInputs) -> Any:
    """P(lie) by archetype with intervals: bars for one run, points side by side for several."""
    scored = inputs.score_runs()
    shown = [archetype for archetype in Archetype if any(archetype in score.archetypes for _, score in scored)]
    drawing = make_figure(6.0, 0.7 + len(shown) * (0.36 if len(scored) == 1 else 0.22 + 0.16 * len(scored)))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, (label, score) in enumerate(scored):
        offset = 0.0 if len(scored) == 1 else 0.5 * (place / (len(scored) - 1) - 0.5)
        spots = [
            (row + offset, rate)
            for row, archetype in enumerate(shown)
            if archetype in score.archetypes
            and (rate := percent_interval(score.archetypes[archetype].p_lie)) is not None
        ]
        if len(scored) == 1:
            axes.barh(
                [row for row, _ in spots],
                [rate[0] for _, rate in spots],
                height=0.62,
                color=VERDICTS[Verdict.LIE].light,
            )
            for row, rate in spots:
                axes.text(rate[2] + 1.5, row, f"{rate[0]:.1f}", va="center_baseline", fontsize=7.5)
        colour, marker = (INK.light, "") if len(scored) == 1 else series_look(place)
        for number, (row, rate) in enumerate(spots):
            axes.errorbar(
                rate[0],
                row,
                xerr=error_arms(rate),
                fmt=marker,
                color=colour,
                markersize=4.5,
                elinewidth=1.1,
                capsize=2.2,
                label=label if not number else None,
                zorder=3,
            )
    totals = [
        {archetype: score.archetypes[archetype].p_lie.total for archetype in shown if archetype in score.archetypes}
        for _, score in scored
    ]
    same = all(len(part) == len(shown) and part == totals[0] for part in totals)
    titles = [archetype.traits.title + (f"  (n = {totals[0][archetype]:,})" if same else "") for archetype in shown]
    axes.set_yticks(range(len(shown)), titles)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "P(lie), %")
    if len(scored) > 1:
        for row in range(1, len(shown)):
            axes.axhline(row - 0.5, color=FAINT.light, linewidth=0.7)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(4, len(scored)), borderaxespad=0.3)
    return drawing
