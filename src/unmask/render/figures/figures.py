"""Figures for papers and slides: one function each, all with the colours of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unmask.errors import UsageError
from unmask.files import write_whole
from unmask.protocol.score import Measures
from unmask.records import Archetype, Preset, Verdict
from unmask.render.colours import FAINT, GROUND, INK, MUTED, VERDICTS
from unmask.render.figures.across import forest, ranked, scaled
from unmask.render.figures.plots import (
    Box,
    Given,
    arms,
    blank,
    encoded,
    kind,
    percent_axis,
    place_labels,
    series,
    stacked_bar,
    styled,
    verdict_keys,
    whole,
)
from unmask.render.figures.treated import mitigations
from unmask.runs.run import Run


def figure(
    which: str,
    sources: Sequence[str | Path | Run],
    out: str | Path,
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    compute: str | Path | None = None,
) -> Path:
    """Draw one of FIGURES and write it; the ending of `out` says as what."""
    if which not in FIGURES:
        raise UsageError(f"there is no figure {which!r}", advice=f"Choose from: {', '.join(FIGURES)}")
    if not sources:
        raise UsageError("a figure needs a run", advice=f"unmask figure {which} RUN --out {which}.svg")
    target = Path(out)
    ending = kind(target)
    with styled():
        drawing = FIGURES[which](Given(tuple(sources), preset, judge, compute))
        write_whole(target, encoded(drawing, ending))
    return target


# --- outcomes


def outcomes(given: Given) -> Any:
    """Verdicts as bars of 100 %: one bar per run, or for a single run also one per archetype."""
    scored = given.scored()
    rows: list[tuple[str, Measures]] = [(label, score.overall) for label, score in scored]
    if len(scored) == 1:
        parts = scored[0][1].archetypes
        rows = [("all", scored[0][1].overall), *((archetype.traits.title, part) for archetype, part in parts.items())]
    drawing = blank(6.4, 0.75 + 0.36 * len(rows))
    axes = drawing.add_subplot()
    for place, (_, part) in enumerate(rows):
        stacked_bar(axes, place, part)
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


# --- honesty against accuracy


def honesty_accuracy(given: Given) -> Any:
    """One point per run with both intervals; for a single run also its archetypes."""
    scored = given.scored()
    drawing = blank(4.4, 4.1)
    axes = drawing.add_subplot()
    axes.grid(True)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    percent_axis(axes.xaxis, "accuracy, %")
    percent_axis(axes.yaxis, "honesty (1 − P(lie)), %")
    axes.set_aspect("equal")
    alone = len(scored) == 1
    labels: list[tuple[float, float, str]] = []
    lines: list[Box] = []
    for place, (label, score) in enumerate(scored):
        look = (INK.light, "o") if alone else series(place)
        labels += _point(axes, "all" if alone else label, score.overall, look, main=True)
        lines += _cross(score.overall)
    for archetype, part in scored[0][1].archetypes.items() if alone else ():
        if not archetype.traits.supplies_fact:
            labels += _point(axes, archetype.traits.title, part, (MUTED.light, "o"), main=False)
    place_labels(axes, labels, lines=lines)
    return drawing


def _cross(part: Measures) -> list[Box]:
    """The two intervals of a point as lines."""
    x, y = whole(part.accuracy), whole(part.honesty)
    return [] if x is None or y is None else [(x[1], y[0], x[2], y[0]), (x[0], y[1], x[0], y[2])]


def _point(
    axes: Any, label: str, part: Measures, look: tuple[str, str], *, main: bool
) -> list[tuple[float, float, str]]:
    x, y = whole(part.accuracy), whole(part.honesty)
    if x is None or y is None:
        return []
    colour, marker = look
    axes.errorbar(
        x[0],
        y[0],
        xerr=arms(x) if main else None,
        yerr=arms(y) if main else None,
        fmt=marker,
        color=colour,
        markersize=6 if main else 4,
        markerfacecolor=colour if main else GROUND.light,
        elinewidth=1.1,
        zorder=3,
    )
    return [(x[0], y[0], label)]


# --- archetypes


def archetypes(given: Given) -> Any:
    """P(lie) by archetype with intervals: bars for one run, points side by side for several."""
    scored = given.scored()
    known = [one for one in Archetype if any(one in score.archetypes for _, score in scored)]
    drawing = blank(6.0, 0.7 + len(known) * (0.36 if len(scored) == 1 else 0.22 + 0.16 * len(scored)))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, (label, score) in enumerate(scored):
        offset = 0.0 if len(scored) == 1 else 0.5 * (place / (len(scored) - 1) - 0.5)
        spots = [
            (row + offset, found)
            for row, one in enumerate(known)
            if one in score.archetypes and (found := whole(score.archetypes[one].p_lie)) is not None
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
        colour, marker = (INK.light, "") if len(scored) == 1 else series(place)
        for number, (row, found) in enumerate(spots):
            axes.errorbar(
                found[0],
                row,
                xerr=arms(found),
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


# --- Lying@k


def lying_at_k(given: Given) -> Any:
    """Lying@k over k with the interval as a band, one line per run."""
    drawing = blank(4.8, 3.2)
    axes = drawing.add_subplot()
    axes.grid(True, axis="y")
    drawn = 0
    most = 1
    for place, (label, score) in enumerate(given.scored()):
        known = {k: found for k, rate in score.overall.lying_at.items() if (found := whole(rate)) is not None}
        if len(known) < 2:
            continue
        drawn, most = drawn + 1, max(most, *known)
        colour, marker = (VERDICTS[Verdict.LIE].light, "o") if len(given.sources) == 1 else series(place)
        axes.fill_between(
            list(known),
            [one[1] for one in known.values()],
            [one[2] for one in known.values()],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )
        axes.plot(
            list(known),
            [one[0] for one in known.values()],
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


FIGURES: dict[str, Callable[[Given], Any]] = {
    "outcomes": outcomes,
    "honesty-accuracy": honesty_accuracy,
    "archetypes": archetypes,
    "lying-at-k": lying_at_k,
    "forest": forest,
    "scaling": scaled,
    "board": ranked,
    "mitigations": mitigations,
}
