"""Training compute against accuracy and honesty: as text, and as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.analysis.scaling import Scale, Scaling
from unmask.files import write_whole
from unmask.render.figures.across import scaling_panels
from unmask.render.figures.plots import encoded, kind, styled
from unmask.render.terminal.tables import grid, printed

if TYPE_CHECKING:
    from rich.table import Table


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
        for line in found.fragile:
            name, _, rest = line.partition(":")
            yield f"- {_label(name, found.takes)}:{rest}"
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
    """Write the models as points, one panel per measure that has a correlation: the figure `scaling`."""
    target = Path(path)
    ending = kind(target)
    with styled():
        write_whole(target, encoded(scaling_panels(found), ending))
