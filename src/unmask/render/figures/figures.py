"""Figures for papers and slides: a table of them, and what draws one. All have the colours of the report."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

from unmask.errors import UsageError
from unmask.records import Preset

if TYPE_CHECKING:
    from unmask.runs.run import Runs

FIGURES = {
    "outcomes": "unmask.render.figures.outcomes:draw_outcomes",
    "honesty-accuracy": "unmask.render.figures.honesty_accuracy:draw_honesty_accuracy",
    "archetypes": "unmask.render.figures.archetypes:draw_archetypes",
    "lying-at-k": "unmask.render.figures.lying_at_k:draw_lying_at_k",
    "forest": "unmask.render.figures.across:draw_forest",
    "scaling": "unmask.render.figures.across:draw_scaling",
    "board": "unmask.render.figures.across:draw_board",
    "mitigations": "unmask.render.figures.treated:draw_mitigations",
}
"""Each figure with the function that draws it, imported when it is asked for: `draw_…(inputs: FigureInputs) -> Any`."""

OF_A_MEASURE = ("forest", "board")
"""Figures of P(lie), or of another measure that is asked for."""


class Drawing(NamedTuple):
    """A figure that a notebook shows."""

    name: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({self.name!r}, svg of {len(self.svg)} characters)"


@overload
def figure(
    which: str,
    sources: Runs,
    out: str | Path,
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    compute: str | Path | None = None,
    measure: str | None = None,
) -> Path: ...


@overload
def figure(
    which: str,
    sources: Runs,
    out: None = None,
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    compute: str | Path | None = None,
    measure: str | None = None,
) -> Drawing: ...


def figure(
    which: str,
    sources: Runs,
    out: str | Path | None = None,
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    compute: str | Path | None = None,
    measure: str | None = None,
) -> Path | Drawing:
    """Draw one of FIGURES. With `out` it is written, as what the ending says; without, a notebook shows it."""
    if which not in FIGURES:
        raise UsageError(f"there is no figure {which!r}", advice=f"Choose from: {', '.join(FIGURES)}")
    if not sources:
        raise UsageError("a figure needs a run", advice=f"unmask figure {which} RUN --out {which}.svg")
    if measure is not None and which not in OF_A_MEASURE:
        raise UsageError(
            f"the figure {which} shows no measure of your choice",
            advice=f"--measure is for {' and '.join(OF_A_MEASURE)}.",
        )
    from unmask.files import write_atomically
    from unmask.render.figures.plots import FigureInputs, encode_figure, figure_style, require_ending
    from unmask.runs.run import AnyRun

    ending = ".svg" if out is None else require_ending(Path(out))
    listed = (sources,) if isinstance(sources, AnyRun) else tuple(sources)
    with figure_style():
        module, _, name = FIGURES[which].partition(":")
        drawing = getattr(import_module(module), name)(FigureInputs(listed, preset, judge, compute, measure or "p_lie"))
        encoded = encode_figure(drawing, ending)
    if out is None:
        return Drawing(which, encoded.decode())
    write_atomically(Path(out), encoded)
    return Path(out)
