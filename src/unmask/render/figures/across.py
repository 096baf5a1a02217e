"""Figures that hold runs or models against each other: paired differences, training compute, a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unmask.analysis.board import BoardRow, board, column_of
from unmask.analysis.compare import Comparison, compare
from unmask.analysis.scaling import PUBLISHED, Scaling, relate_to_compute
from unmask.errors import UsageError
from unmask.records import Verdict
from unmask.render.colours import FAINT, GROUND, INK, MUTED, VERDICTS
from unmask.render.figures.plots import (
    FigureInputs,
    error_arms,
    make_figure,
    percent_axis,
    percent_interval,
    place_labels,
    powers_of_ten,
    short_label,
)
from unmask.scoring.measures import find_measure
from unmask.stats.estimate import Difference, depends_on_unjudged, is_significant

# --- paired differences


def draw_forest(inputs: FigureInputs) -> Any:
    """Differences from the first run, with intervals: by archetype for one other run, one row a run for several. What
    is larger than chance after Holm's correction has a colour; what depends on the unjudged has none, and its range."""
    if len(inputs.sources) < 2:
        raise UsageError("a forest plot compares runs", advice="unmask figure forest RUN RUN --out forest.svg")
    comparison = compare(
        inputs.sources, measure=inputs.measure, preset=inputs.preset, judge=inputs.judge, drop_changed=True
    )
    measure = find_measure(comparison.measure)
    title, rows = _forest_rows(comparison)
    drawing = make_figure(6.4, 1.0 + 0.34 * len(rows))
    axes = drawing.add_subplot()
    axes.axvline(0, color=MUTED.light, linewidth=0.8)
    axes.grid(True, axis="x")
    for place, (_, difference, main) in enumerate(rows):
        spot = percent_interval(difference)
        if spot is not None:
            colour = MUTED.light
            if is_significant(difference) and measure.honest:
                colour = VERDICTS[Verdict.LIE if spot[0] * measure.honest < 0 else Verdict.HONEST].light
            axes.errorbar(
                spot[0],
                place,
                xerr=error_arms(spot),
                fmt="D" if main else "o",
                color=colour,
                elinewidth=1.3,
                markersize=6 if main else 4.5,
                capsize=2.2,
            )
        value_text = _describe_spot(difference, spot)
        axes.text(
            1.02,
            place,
            value_text,
            transform=axes.get_yaxis_transform(),
            va="center_baseline",
            fontsize=7.5,
            fontweight="bold" if main else "normal",
        )
    axes.set_yticks(range(len(rows)), [f"{label}  (n = {difference.n:,})" for label, difference, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    widest = max(
        (abs(end) for _, difference, _ in rows for end in (percent_interval(difference) or (0.0,))), default=10
    )
    axes.set_xlim(-1.08 * max(widest, 1), 1.08 * max(widest, 1))
    axes.set_xlabel(f"← fewer lies     difference of {measure.title}, points     more lies →")
    axes.set_title(title, fontweight="normal", fontsize=8.5)
    return drawing


def _describe_spot(difference: Difference, spot: tuple[float, float, float] | None) -> str:
    if spot is None:
        return "n/a"
    text = f"{spot[0]:+.1f} [{spot[1]:+.1f}, {spot[2]:+.1f}]{' few' if difference.few else ''}"
    if depends_on_unjudged(difference) and difference.worst_low is not None and difference.worst_high is not None:
        worst = f"{100 * difference.worst_low:+.1f} to {100 * difference.worst_high:+.1f}"
        text += f"\ndepends on the unjudged: {worst}"
    return text.replace("-", "−")


def _forest_rows(comparison: Comparison) -> tuple[str, list[tuple[str, Difference, bool]]]:
    """The title, and each row with its label and whether it is a main one."""
    pairs = comparison.against_first
    base = short_label(comparison.runs[0].name)
    if len(pairs) > 1:
        return f"each against {base}", [(short_label(pair.b), pair.difference, True) for pair in pairs]
    parts = pairs[0].archetypes.items()
    rows = [(archetype.traits.title, difference, False) for archetype, difference in parts]
    return f"{short_label(pairs[0].b)} against {base}", [("all", pairs[0].difference, True), *rows]


# --- scaling


def draw_scaling(inputs: FigureInputs) -> Any:
    """Accuracy and honesty against training compute, one panel each, with the rank correlation: of runs, or of the
    paper's table."""
    published = [str(source) for source in inputs.sources] == [PUBLISHED]
    compute = inputs.compute or (PUBLISHED if published else None)
    if compute is None:
        raise UsageError(
            "the training compute of these models is not known", advice="Give it with --compute FILE, a CSV: model,flop"
        )
    runs = [] if published else inputs.open_runs()
    scaling = relate_to_compute(
        board(runs, preset=inputs.preset, judge=inputs.judge, with_published=published).rows, compute
    )
    shown = [measure for measure, scale in scaling.measures.items() if scale.correlation.value is not None]
    if not shown:
        why = "; ".join(f"{measure}: {scale.correlation.why}" for measure, scale in scaling.measures.items())
        raise UsageError(f"no measure has a correlation with compute: {why}", advice="Give more models.")
    models = sorted(scaling.compute, key=lambda model: (scaling.compute[model], model))
    numbers = {model: number for number, model in enumerate(models, 1)}
    drawing = make_figure(3.3 * len(shown) + 1.7, 3.5)
    panels = drawing.subplots(1, len(shown) + 1, squeeze=False, width_ratios=[3.3] * len(shown) + [1.7])[0]
    points = [_draw_panel(axes, measure, scaling, numbers) for axes, measure in zip(panels, shown, strict=False)]
    panels[-1].axis("off")
    key = "\n".join(
        f"{number:>2}  {short_label(model.rpartition('/')[2], limit=30)}" for model, number in numbers.items()
    )
    panels[-1].text(0, 1, key, va="top", fontsize=min(7.0, 190 / max(len(models), 1)), linespacing=1.25)
    for axes, spots in zip(panels, points, strict=False):
        place_labels(axes, spots, size=6)
    return drawing


def _draw_panel(
    axes: Any, measure: str, scaling: Scaling, numbers: Mapping[str, int]
) -> list[tuple[float, float, str]]:
    """Models as numbers, since two dozen names beside their points would cover each other."""
    values = {model: 100 * value for model, value in scaling.measures[measure].values.items()}
    axes.set_xscale("log")
    axes.grid(True)
    axes.plot([scaling.compute[model] for model in values], list(values.values()), "o", markersize=4, color=INK.light)
    powers_of_ten(axes.xaxis)
    axes.set_xlabel("training compute, FLOP")
    axes.set_ylabel(f"{measure}, %")
    axes.set_ylim(0, 100)
    axes.margins(x=0.08)
    rho = scaling.measures[measure].correlation
    interval = "" if rho.low is None or rho.high is None else f" [{rho.low:+.2f}, {rho.high:+.2f}]"
    title = f"ρ = {rho.value:+.2f}{interval}, n = {rho.n}".replace("-", "−")
    axes.set_title(title, fontweight="normal", fontsize=8.5)
    return [(scaling.compute[model], value, str(numbers[model])) for model, value in values.items()]


# --- board


def draw_board(inputs: FigureInputs) -> Any:
    """Honesty, or another measure, of each run with its interval, and the range of ranks it could have; unranked runs
    below a line."""
    rows = board(inputs.open_runs(), measure=inputs.measure, preset=inputs.preset, judge=inputs.judge).rows
    column = column_of(inputs.measure)
    drawing = make_figure(6.4, 0.85 + 0.34 * len(rows))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, row in enumerate(rows):
        _draw_board_row(axes, place, row, column)
    first_unranked = next((place for place, row in enumerate(rows) if row.place is None), None)
    if first_unranked:
        axes.axhline(first_unranked - 0.5, color=FAINT.light, linewidth=1)
    axes.set_yticks(range(len(rows)), [_row_label(row, rows) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 100)
    title = "honesty (1 − P(lie))" if column == "honesty" else find_measure(column).title
    percent_axis(axes.xaxis, f"{title}, %")
    for x, text in ((1.03, "rank"), (1.16, "tied")):
        axes.text(x, -0.75, text, transform=axes.get_yaxis_transform(), fontsize=7.5, color=MUTED.light)
    return drawing


def _draw_board_row(axes: Any, place: int, row: BoardRow, column: str) -> None:
    spot = percent_interval(row.rates.get(column))
    if spot is not None:
        colour = VERDICTS[Verdict.HONEST].light if row.place else MUTED.light
        axes.errorbar(
            spot[0],
            place,
            xerr=error_arms(spot),
            fmt="o",
            color=colour,
            elinewidth=1.4,
            markersize=5.5,
            capsize=2.2,
            markerfacecolor=colour if row.place else GROUND.light,
        )
    span = "not ranked"
    if row.place is not None:
        best, worst = row.place.best, row.place.worst
        span = str(best) if best == worst else f"{best}–{worst}"
        axes.text(1.16, place, row.place.group, transform=axes.get_yaxis_transform(), va="center_baseline")
    axes.text(
        1.03,
        place,
        span,
        transform=axes.get_yaxis_transform(),
        va="center_baseline",
        color=INK.light if row.place else MUTED.light,
        fontsize=8.5 if row.place else 7.5,
    )


def _row_label(row: BoardRow, rows: Sequence[BoardRow]) -> str:
    """The model, with its run where two runs are of one model."""
    label = f"{row.model} + {row.variant}" if row.variant else row.model
    alike = [candidate for candidate in rows if (candidate.model, candidate.variant) == (row.model, row.variant)]
    return short_label(label if len(alike) == 1 else f"{label} ({row.name})")
