"""The figure of `unmask data stats`: a panel per archetype, a bar per domain, split by pressure and where it pushes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.data.stats import PRESSURES, UNSAID, WAYS, Cell, Stats
from unmask.errors import MissingError, UsageError
from unmask.text import escape_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png", ".pdf")
_COLOURS = {
    "situational": ("#0b559f", "#539ecd", "#bad6eb"),
    "explicit": ("#a63603", "#f16913", "#fdd0a2"),
    UNSAID: ("#525252", "#969696", "#d9d9d9"),
}
"""Blue for temptation, orange for an order, grey where the data does not say; told apart by colour-blind eyes too."""


def write_figure(stats: Stats, *, path: Path) -> None:
    """Write the figure in the format of the file's ending. The same set gives the same bytes as SVG."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot draw {escape_line(path.name)}", advice=f"Figures end in {', '.join(SUFFIXES)}.")
    try:
        import matplotlib
    except ImportError:
        raise MissingError("figures need matplotlib", advice="pip install 'unmask[figures]'") from None
    # Without these two a file would differ at each call: random ids, and the time.
    with matplotlib.rc_context({"svg.hashsalt": "unmask"}):
        figure = _draw_figure(stats)
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        except OSError as error:
            raise UsageError(f"cannot write {escape_line(str(path))}: {error.strerror or error}") from error


def _draw_figure(stats: Stats) -> Figure:
    """Without pyplot: no window, no state left behind in the caller's process."""
    from matplotlib.figure import Figure

    archetypes = list(dict.fromkeys(cell.archetype for cell in stats.cells))
    across = min(3, len(archetypes)) or 1
    down = -(-len(archetypes) // across) or 1
    most = max((len({c.domain for c in stats.cells if c.archetype is a}) for a in archetypes), default=1)
    figure = Figure(figsize=(4.2 * across, down * (1.0 + 0.19 * most) + 0.7), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten().tolist()
    for panel, archetype in zip(panels, archetypes, strict=False):
        panel.set_title(archetype.value, fontsize=10)
        _draw_bars(panel, cells=[cell for cell in stats.cells if cell.archetype is archetype], room=most)
    for panel in panels[len(archetypes) :]:
        panel.set_axis_off()
    handles = {label: bar for panel in panels for bar, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    order = [_bar_label(pressure, way) for way in WAYS for pressure in _COLOURS]
    labels = sorted(handles, key=order.index)
    figure.legend(
        [handles[label] for label in labels], labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False
    )
    figure.suptitle(f"{escape_line(stats.name)}: {stats.scenarios} scenarios by domain, pressure and where it pushes")
    return figure


def _bar_label(pressure: str, way: str) -> str:
    pressure_name = "unsaid" if pressure == UNSAID else pressure
    return f"{pressure_name}, {way}" if way == "other" else f"{pressure_name}, to {way}"


def _draw_bars(panel: Axes, *, cells: Sequence[Cell], room: int) -> None:
    """Domains from the largest down, in a panel with room for so many, so that bars are equally thick everywhere."""
    from matplotlib.ticker import MaxNLocator

    sizes = {domain: sum(c.scenarios for c in cells if c.domain == domain) for domain in {c.domain for c in cells}}
    domains = sorted(sizes, key=lambda domain: (sizes[domain], domain))
    left = [0] * len(domains)
    for pressure in (*PRESSURES, UNSAID):
        for (way, pushes), colour in zip(WAYS.items(), _COLOURS[pressure], strict=True):
            chosen = [cell for cell in cells if cell.pressure == pressure and cell.push in pushes]
            if not chosen:
                continue
            widths = [sum(cell.scenarios for cell in chosen if cell.domain == domain) for domain in domains]
            panel.barh(domains, widths, left=left, color=colour, label=_bar_label(pressure, way), height=0.8)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    panel.tick_params(labelsize=8)
    panel.set_ylim(len(domains) - room - 0.6, len(domains) - 0.4)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.spines[["top", "right"]].set_visible(False)
