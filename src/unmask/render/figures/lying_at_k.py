"""The figure `lying-at-k`: what more takes find."""

from __future__ import annotations

from typing import Any

from unmask.errors import UsageError
from unmask.records import Verdict
from unmask.render.colours import VERDICTS
from unmask.render.figures.plots import FigureInputs, make_figure, percent_interval, series_look


def draw_lying_at_k(inputs: FigureInputs) -> Any:
    """Lying@k over k with the interval as a band, one line per run."""
    drawing = make_figure(4.8, 3.2)
    axes = drawing.add_subplot()
    axes.grid(True, axis="y")
    drawn = 0
    most = 1
    for place, (label, score) in enumerate(inputs.score_runs()):
        rates = {
            k: interval
            for k, rate in score.overall.lying_at.items()
            if (interval := percent_interval(rate)) is not None
        }
        if len(rates) < 2:
            continue
        drawn, most = drawn + 1, max(most, *rates)
        colour, marker = (VERDICTS[Verdict.LIE].light, "o") if len(inputs.sources) == 1 else series_look(place)
        axes.fill_between(
            list(rates),
            [rate[1] for rate in rates.values()],
            [rate[2] for rate in rates.values()],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )
        axes.plot(
            list(rates),
            [rate[0] for rate in rates.values()],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            label=label,
        )
    if not drawn:
        raise UsageError("no run has several takes, so there is no Lying@k to draw", advice="unmask run … --takes 10")
    axes.set_xlim(1 - 0.02 * most, most * 1.02)
    axes.set_xticks(range(1, most + 1) if most <= 12 else [1, *range(5, most + 1, 5)])
    axes.set_xlabel("takes (k)")
    axes.set_ylim(0, min(100, 10 * (axes.get_ylim()[1] // 10 + 1)))
    axes.set_ylabel("Lying@k, %")
    if drawn > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(3, drawn), borderaxespad=0.3)
    return drawing
