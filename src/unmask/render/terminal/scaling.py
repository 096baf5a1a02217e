"""Training compute against accuracy and honesty: as text, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.analysis.scaling import MeasureScaling, Scaling
from unmask.files import write_atomically
from unmask.render.figures.across import draw_scaling_panels, measure_label
from unmask.render.figures.plots import encode_figure, figure_style, require_ending
from unmask.render.terminal.tables import TextTable, format_p_value, make_table, render_parts


def render(scaling: Scaling, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(scaling), width=width, color=color)


def _compose_parts(scaling: Scaling) -> Iterator[str | TextTable]:
    yield f"Spearman's rank correlation with log training compute, {scaling.board}"
    yield ""
    headings = ("measure", "models", "rho", "without one", "larger half", "published")
    yield make_table(
        headings, [_measure_row(measure_label(name, scaling.takes), scale) for name, scale in scaling.measures.items()]
    )
    families = {family for scale in scaling.measures.values() for family in scale.correlation.without_group}
    if families:
        yield ""
        names = ("without a family", *(measure_label(name, scaling.takes) for name in scaling.measures))
        correlations = [scale.correlation for scale in scaling.measures.values()]
        rows = [
            (family, *(_format_rho(correlation.without_group.get(family)) for correlation in correlations))
            for family in sorted(families)
        ]
        yield make_table(names, rows)
    if scaling.fragile:
        yield "\nWhere this is fragile:"
        for line in scaling.fragile:
            name, _, remark = line.partition(":")
            yield f"- {measure_label(name, scaling.takes)}:{remark}"
    if scaling.left_out:
        yield f"\nLeft out: {len(scaling.left_out)} models"
        yield from (f"  {model}: {why}" for model, why in sorted(scaling.left_out.items()))


def _measure_row(name: str, scale: MeasureScaling) -> tuple[str, ...]:
    correlation = scale.correlation
    span = f" [{_format_rho(correlation.low)}, {_format_rho(correlation.high)}]" if correlation.low is not None else ""
    if correlation.p_value is not None:
        span = f" (p {format_p_value(correlation.p_value)})"
    alone = (
        "n/a"
        if correlation.without_one is None
        else f"{_format_rho(correlation.without_one[0])} to {_format_rho(correlation.without_one[1])}"
    )
    return (
        name,
        str(correlation.n),
        _format_rho(correlation.value) + span,
        alone,
        _format_rho(scale.larger_half),
        _format_rho(scale.published),
    )


def _format_rho(value: float | None) -> str:
    return "n/a" if value is None else f"{value:+.2f}"


def write_figure(scaling: Scaling, path: str | Path) -> None:
    """Write the models as points, one panel per measure that has a correlation: the figure `scaling`."""
    target = Path(path)
    ending = require_ending(target)
    with figure_style():
        write_atomically(target, encode_figure(draw_scaling_panels(scaling), ending))
