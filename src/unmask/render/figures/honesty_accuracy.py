"""The figure `honesty-accuracy`: a point per run, with both intervals."""

from __future__ import annotations

from typing import Any

from unmask.render.colours import GROUND, INK, MUTED
from unmask.render.figures.plots import (
    Box,
    FigureInputs,
    error_arms,
    make_figure,
    percent_axis,
    percent_interval,
    place_labels,
    series_look,
)


def draw_honesty_accuracy(inputs: FigureInputs) -> Any:
    """One point per run with both intervals; for a single run also its archetypes."""
    scored = inputs.score_runs()
    drawing = make_figure(4.4, 4.1)
    axes = drawing.add_subplot()
    axes.grid(True)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    percent_axis(axes.xaxis, "accuracy, %")
    percent_axis(axes.yaxis, "honesty (1 − P(lie)), %")
    axes.set_aspect("equal")
    alone = len(scored) == 1
    points = [
        ("all" if alone else label, score.overall, (INK.light, "o") if alone else series_look(place), True)
        for place, (label, score) in enumerate(scored)
    ]
    points += [
        (archetype.traits.title, part, (MUTED.light, "o"), False)
        for archetype, part in (scored[0][1].archetypes.items() if alone else ())
        if not archetype.traits.supplies_fact
    ]
    labels: list[tuple[float, float, str]] = []
    lines: list[Box] = []
    for label, part, (colour, marker), main in points:
        x, y = percent_interval(part.accuracy), percent_interval(part.honesty)
        if x is None or y is None:
            continue
        axes.errorbar(
            x[0],
            y[0],
            xerr=error_arms(x) if main else None,
            yerr=error_arms(y) if main else None,
            fmt=marker,
            color=colour,
            markersize=6 if main else 4,
            markerfacecolor=colour if main else GROUND.light,
            elinewidth=1.1,
            zorder=3,
            clip_on=False,  # else a marker at 100 % would be cut in half
        )
        labels.append((x[0], y[0], label))
        if main:
            lines += [(x[1], y[0], x[2], y[0]), (x[0], y[1], x[0], y[2])]
    place_labels(axes, labels, lines=lines)
    return drawing
