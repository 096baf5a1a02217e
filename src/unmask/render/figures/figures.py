"""Figures for papers and slides: a table of them, and what draws one. All have the colours of the report."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.errors import UsageError
from unmask.records import Preset

if TYPE_CHECKING:
    from unmask.runs.run import Run

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
    from unmask.files import write_atomically
    from unmask.render.figures.plots import FigureInputs, encode_figure, figure_style, require_ending

    target = Path(out)
    ending = require_ending(target)
    with figure_style():
        module, _, name = FIGURES[which].partition(":")
        drawing = getattr(import_module(module), name)(FigureInputs(tuple(sources), preset, judge, compute))
        write_atomically(target, encode_figure(drawing, ending))
    return target
