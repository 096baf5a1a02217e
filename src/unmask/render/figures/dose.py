"""The figure of a study: lies against the coefficient of steering, and what became of the replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask.errors import UsageError
from unmask.experiments.study_arms import TakeMeasure
from unmask.experiments.study_design import ArmPart
from unmask.experiments.study_result import DoseResponse, StudyResult
from unmask.files import write_atomically
from unmask.records import Verdict
from unmask.render.colours import MUTED, VERDICTS
from unmask.render.figures.plots import (
    encode_figure,
    error_arms,
    figure_style,
    make_figure,
    percent_axis,
    percent_interval,
    require_ending,
)

LINES = {
    TakeMeasure.LIE.value: ("lies", VERDICTS[Verdict.LIE].light, "D", "-"),
    TakeMeasure.HONEST_AND_RIGHT.value: ("honest and right", VERDICTS[Verdict.HONEST].light, "o", "-"),
    TakeMeasure.EVASION.value: ("evasion", VERDICTS[Verdict.EVASION].light, "s", "-"),
    TakeMeasure.UNREAD.value: ("unread", VERDICTS[Verdict.UNJUDGED].light, "v", "--"),
}
"""Shares with the colours of their verdicts; each has a shape of its own as well."""


def write_dose_figure(result: StudyResult, path: Path) -> Path:
    """Draw `dose.svg`, or another format by the ending. Raises where no coefficient was run."""
    ending = require_ending(path)
    doses = [dose for dose in result.dose if len(dose.points) > 1]
    if not doses:
        raise UsageError("no coefficient of steering was run, so there is nothing to draw over it")
    with figure_style():
        encoded = encode_figure(_draw_doses(result, doses), ending)
    write_atomically(path, encoded)
    return path


def _draw_doses(result: StudyResult, doses: list[DoseResponse]) -> Any:
    drawing = make_figure(7.4, 0.5 + 2.6 * len(doses))
    rows = drawing.subplots(len(doses), 2, squeeze=False)
    for (left, right), dose in zip(rows, doses, strict=True):
        _draw_differences(left, result, dose)
        _draw_shares(right, dose)
    return drawing


def _draw_differences(axes: Any, result: StudyResult, dose: DoseResponse) -> None:
    colour = VERDICTS[Verdict.LIE].light
    axes.axhline(0, color=MUTED.light, linewidth=0.8)
    axes.axvline(0, color=MUTED.light, linewidth=0.5)
    axes.grid(True, axis="y")
    spots = [
        (point.coefficient, (0.0, 0.0, 0.0) if point.lies is None else percent_interval(point.lies))
        for point in dose.points
    ]
    drawn = [(coefficient, spot) for coefficient, spot in spots if spot is not None]
    axes.plot([coefficient for coefficient, _ in drawn], [spot[0] for _, spot in drawn], color=colour, linewidth=1.2)
    look = {"color": colour, "fmt": "D", "markersize": 4.5, "elinewidth": 1.2, "capsize": 2, "zorder": 3}
    for coefficient, spot in drawn:
        axes.errorbar(coefficient, spot[0], yerr=error_arms(spot), **look)
    random = [row for row in result.table if row.part is ArmPart.CONTROL and row.coefficient is not None]
    for number, row in enumerate(random, 1):
        interval = percent_interval(row.measures[TakeMeasure.LIE.value])
        if interval is not None and row.coefficient is not None and row.depth == dose.depth:
            hollow = look | {"color": MUTED.light, "fmt": "o", "markerfacecolor": "white"}
            label = "random direction" if number == 1 else None
            beside = row.coefficient * (1 + 0.05 * number)
            axes.errorbar(beside, interval[0], yerr=error_arms(interval), label=label, **hollow)
    axes.set_xlabel(f"coefficient at depth {dose.depth:g}")
    axes.set_ylabel("lies per take less base, points")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=7.5, borderaxespad=0.3)


def _draw_shares(axes: Any, dose: DoseResponse) -> None:
    axes.grid(True, axis="y")
    for measure, (label, colour, marker, style) in LINES.items():
        shares = [(point.coefficient, point.shares[measure]) for point in dose.points]
        drawn = [(coefficient, 100 * share) for coefficient, share in shares if share is not None]
        axes.plot(
            [coefficient for coefficient, _ in drawn],
            [share for _, share in drawn],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.3,
            linestyle=style,
            label=label,
        )
    axes.set_ylim(-2, 102)
    percent_axis(axes.yaxis, "of takes, %")
    axes.set_xlabel(f"coefficient at depth {dose.depth:g}")
    look = {"fontsize": 7.5, "borderaxespad": 0.3, "handlelength": 1.6, "columnspacing": 1.0}
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, **look)
