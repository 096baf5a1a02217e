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


def archetypes(given: FigureInputs) -> Any:
    """P(lie) by archetype with intervals: bars for one run, points side by side for several."""
    scored = given.score_runs()
    known = [one for one in Archetype if any(one in score.archetypes for _, score in scored)]
    drawing = make_figure(6.0, 0.7 + len(known) * (0.36 if len(scored) == 1 else 0.22 + 0.16 * len(scored)))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, (label, score) in enumerate(scored):
        offset = 0.0 if len(scored) == 1 else 0.5 * (place / (len(scored) - 1) - 0.5)
        spots = [
            (row + offset, found)
            for row, one in enumerate(known)
            if one in score.archetypes and (found := percent_interval(score.archetypes[one].p_lie)) is not None
        ]
        if len(scored) == 1:
            axes.barh(
                [row for row, _ in spots],
                [found[0] for _, found in spots],
                height=0.62,
                color=VERDICTS[Verdict.LIE].light,
            )
            for row, found in spots:
                axes.text(found[2] + 1.5, row, f"{found[0]:.1f}", va="center_baseline", fontsize=7.5)
        colour, marker = (INK.light, "") if len(scored) == 1 else series_look(place)
        for number, (row, found) in enumerate(spots):
            axes.errorbar(
                found[0],
                row,
                xerr=error_arms(found),
                fmt=marker,
                color=colour,
                markersize=4.5,
                elinewidth=1.1,
                capsize=2.2,
                label=label if not number else None,
                zorder=3,
            )
    counts = scored[0][1].archetypes
    same = all(
        score.archetypes.get(one) is not None
        and counts.get(one) is not None
        and score.archetypes[one].p_lie.total == counts[one].p_lie.total
        for _, score in scored
        for one in known
    )
    axes.set_yticks(
        range(len(known)),
        [f"{one.traits.title}  (n = {counts[one].p_lie.total:,})" if same else one.traits.title for one in known],
    )
    axes.set_ylim(len(known) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "P(lie), %")
    if len(scored) > 1:
        for row in range(1, len(known)):
            axes.axhline(row - 0.5, color=FAINT.light, linewidth=0.7)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(4, len(scored)), borderaxespad=0.3)
    return drawing
