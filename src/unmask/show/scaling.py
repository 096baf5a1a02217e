"""Training compute against accuracy and honesty: as text, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unmask.errors import MissingError, UsageError
from unmask.journal import write_whole
from unmask.scaled import Scale, Scaling
from unmask.show.tables import grid, printed

if TYPE_CHECKING:
    from rich.table import Table

FORMATS = (".svg", ".png", ".pdf")


def render(found: Scaling, *, width: int | None = None, color: bool = False) -> str:
    return printed(_parts(found), width=width, color=color)


def _parts(found: Scaling) -> Iterator[str | Table]:
    yield f"Spearman's rank correlation with log training compute, {found.board}"
    yield ""
    headings = ("measure", "models", "rho", "without one", "larger half", "published")
    yield grid(headings, [_row(_label(name, found.takes), scale) for name, scale in found.measures.items()])
    families = {family for scale in found.measures.values() for family in scale.correlation.without_group}
    if families:
        yield ""
        names = ("without a family", *(_label(name, found.takes) for name in found.measures))
        yield grid(names, [_family_row(family, found) for family in sorted(families)])
    if found.fragile:
        yield "\nWhere this is fragile:"
        yield from (f"  {line}" for line in found.fragile)
    if found.left_out:
        yield f"\nLeft out: {len(found.left_out)} models"
        yield from (f"  {model}: {why}" for model, why in sorted(found.left_out.items()))


def _label(name: str, takes: int | None) -> str:
    return name.replace("_at_n", f"@{takes or 'n'}").replace("_at_1", "@1").replace("_", " ")


def _row(name: str, scale: Scale) -> tuple[str, ...]:
    found = scale.correlation
    span = f" [{_rho(found.low)}, {_rho(found.high)}]" if found.low is not None else ""
    alone = "n/a" if found.without_one is None else f"{_rho(found.without_one[0])} to {_rho(found.without_one[1])}"
    return name, str(found.n), _rho(found.value) + span, alone, _rho(scale.larger_half), _rho(scale.published)


def _family_row(family: str, found: Scaling) -> tuple[str, ...]:
    return family, *(_rho(scale.correlation.without_group.get(family)) for scale in found.measures.values())


def _rho(value: float | None) -> str:
    return "n/a" if value is None else f"{value:+.2f}"


def figure(found: Scaling, path: str | Path) -> None:
    """Write the models as points, one panel per measure that has a correlation."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise UsageError(f"{target} is no kind of figure known here", advice=f"End the name in {', '.join(FORMATS)}.")
    shown = [name for name, scale in found.measures.items() if scale.correlation.value is not None]
    if not shown:
        raise UsageError("there is nothing to draw: no measure has a correlation", advice="unmask scaling says why.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingError("figures need matplotlib", advice="pip install 'unmask[figures]'") from None
    drawing: Any = Figure(figsize=(4.2 * len(shown), 3.8), layout="constrained")
    for axes, name in zip(drawing.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        _panel(axes, name, found)
    held = BytesIO()
    drawing.savefig(held, format=target.suffix[1:].lower(), metadata=_UNDATED.get(target.suffix.lower()))
    write_whole(target, held.getvalue())


_UNDATED = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""The same data give the same file."""


def _panel(axes: Any, name: str, found: Scaling) -> None:
    values = {model: value for model, value in found.points[name].items() if model in found.compute}
    scale = found.measures[name]
    axes.scatter([found.compute[model] for model in values], [100 * value for value in values.values()], s=18)
    for model, value in values.items():
        axes.annotate(model, (found.compute[model], 100 * value), fontsize=5, alpha=0.7, parse_math=False)
    axes.set_xscale("log")
    axes.set_xlabel("training compute (FLOP)")
    axes.set_ylabel(f"{_label(name, found.takes)} (%)")
    rho = scale.correlation
    axes.set_title(f"rho = {_rho(rho.value)} [{_rho(rho.low)}, {_rho(rho.high)}], n = {rho.n}", fontsize=9)
