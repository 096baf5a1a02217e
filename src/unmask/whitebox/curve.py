"""The loss of a training as a figure."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path


def draw_curve(losses: Sequence[float], path: Path, *, title: str) -> bool:
    """Write the loss of every step as SVG. False, and nothing written, without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(losses) + 1), losses, color="#0b6e99", linewidth=1.5)
    axes.set(title=title, xlabel="step", ylabel="distance to the wanted activations", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    with rc_context({"svg.hashsalt": "unmask", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    return True
