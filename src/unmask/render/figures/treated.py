"""The figure of mitigations: what became of the verdicts, and what was gained and lost, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from unmask.errors import UsageError
from unmask.experiments.mitigation import MitigationReport, TreatedRun, report_mitigations
from unmask.records import Verdict
from unmask.render.colours import FAINT, INK, MUTED, VERDICTS
from unmask.render.figures.plots import (
    FigureInputs,
    draw_stacked_bar,
    error_arms,
    make_figure,
    percent_axis,
    percent_interval,
    short_label,
    verdict_keys,
)
from unmask.render.terminal.mitigate import EFFECTS, name_treatment
from unmask.scoring.measures import MEASURES
from unmask.stats.estimate import is_significant

DRAWN = {
    "p_honest": (VERDICTS[Verdict.HONEST].light, "o"),
    "p_lie": (VERDICTS[Verdict.LIE].light, "D"),
    "p_evasion": (VERDICTS[Verdict.EVASION].light, "s"),
    "belief": (MUTED.light, "^"),
    "accuracy": (INK.light, "v"),
}
"""Measures with the colours of the verdicts they are made of, in their order; each has a shape of its own as well."""


def draw_mitigations(inputs: FigureInputs) -> Any:
    """Verdicts of the base and of each treated run, and the paired differences with their intervals."""
    if len(inputs.sources) < 2:
        raise UsageError(
            "mitigations are compared with a base run",
            advice="unmask figure mitigations BASE TREATED --out mitigations.svg",
        )
    runs = inputs.open_runs()
    report = report_mitigations(runs, preset=inputs.preset, judge=inputs.judge, drop_changed=True)
    drawing = make_figure(8.6, 1.25 + 0.78 * len(runs))
    left, right = drawing.subplots(1, 2, sharey=True, width_ratios=[1, 1.05])
    for place, (_, score) in enumerate(inputs.score_runs()):
        draw_stacked_bar(left, place, score.overall)
    _draw_verdicts(left, report)
    _draw_differences(right, report.treated)
    return drawing


def _draw_verdicts(axes: Any, report: MitigationReport) -> None:
    labels = [
        ("base", report.base.name),
        *((name_treatment(treated_run), treated_run.name) for treated_run in report.treated),
    ]
    look = {"textcoords": "offset points", "xycoords": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    for row, (treatment, run) in enumerate(labels):
        # What was done, and the run it was done in below, smaller and paler; together in the middle of the bar.
        title = fill(short_label(treatment, limit=52), 28)
        below = short_label(run, limit=26) if run != treatment else ""
        axes.annotate(title, (0, row), (-6, 5 if below else 0), **look, fontsize=8.5, linespacing=1.15)
        if below:
            down = -5.5 * (title.count("\n") + 1)
            axes.annotate(below, (0, row), (-6, down), **look, fontsize=7, color=MUTED.light)
    axes.set_yticks([])
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, f"of {report.base.scenarios} scenarios, %")
    axes.spines["left"].set_visible(False)
    _draw_legend(axes, *verdict_keys())


def _draw_differences(axes: Any, treated: Sequence[TreatedRun]) -> None:
    from matplotlib.lines import Line2D

    axes.axvline(0, color=MUTED.light, linewidth=0.8)
    axes.grid(True, axis="x")
    widest = 5.0
    for row, treated_run in enumerate(treated, 1):
        axes.axhline(row - 0.5, color=FAINT.light, linewidth=0.7)
        for number, (measure, (colour, marker)) in enumerate(DRAWN.items()):
            difference = treated_run.measures[measure].overall
            spot = percent_interval(difference)
            if spot is None:
                continue
            widest = max(widest, abs(spot[1]), abs(spot[2]))
            inside = colour if is_significant(difference) else "white"  # empty where it did not surely move
            look = {"color": colour, "markerfacecolor": inside, "markersize": 4.5, "elinewidth": 1.2, "capsize": 2}
            axes.errorbar(spot[0], row + 0.15 * (number - 2), xerr=error_arms(spot), fmt=marker, zorder=3, **look)
        axes.text(
            1.03, row, _describe_run(treated_run), transform=axes.get_yaxis_transform(), va="center", fontsize=7.5
        )
    axes.set_xlim(-1.06 * widest, 1.06 * widest)
    axes.set_xlabel("treated less base, points, corrected intervals; filled: moved")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    keys = [Line2D([], [], color=colour, marker=marker, markersize=4.5) for colour, marker in DRAWN.values()]
    _draw_legend(axes, keys, [MEASURES[measure].title for measure in DRAWN])


def _describe_run(treated_run: TreatedRun) -> str:
    """What it is called, on how many scenarios where that is not all, and what became of its fluency."""
    judged = treated_run.measures["p_lie"].overall.n
    lines = [fill(EFFECTS[treated_run.effect], 24)]
    if judged < treated_run.shared:
        lines.append(f"judged in both: {judged} of {treated_run.shared}")
    if treated_run.writing.ratio:
        lines.append(f"perplexity ×{treated_run.writing.ratio.value:.2f}")
    return "\n".join(lines)


def _draw_legend(axes: Any, keys: Sequence[Any], labels: Sequence[str]) -> None:
    look = {"handlelength": 1.0, "columnspacing": 1.0, "handletextpad": 0.4, "borderaxespad": 0.4, "fontsize": 7.5}
    axes.legend(keys, labels, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, **look)
