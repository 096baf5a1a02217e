"""How every figure looks, and how one becomes a file: the same data give the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from math import log10
from pathlib import Path
from typing import Any, NamedTuple

from unmask.analysis.sides import short_names
from unmask.errors import MissingError
from unmask.files import choose_by_ending
from unmask.records import Preset
from unmask.render.colours import FAINT, GROUND, INK, MUTED, SERIES, VERDICTS
from unmask.render.words import NAMES
from unmask.runs.run import AnyRun, Run, open_runs
from unmask.scoring.measures import Measures
from unmask.scoring.score import Score
from unmask.stats.estimate import Difference
from unmask.stats.rate import Rate
from unmask.text import strip_controls

FORMATS = (".svg", ".png", ".pdf")
MARKERS = ("o", "s", "D", "^", "v", "P")
"""Runs differ in shape as well as in colour."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a figure looks the same everywhere
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK.light,
    "axes.edgecolor": MUTED.light,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": FAINT.light,
    "grid.linewidth": 0.6,
    "text.color": INK.light,
    "text.parse_math": False,
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "xtick.labelcolor": INK.light,
    "ytick.labelcolor": INK.light,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "hatch.linewidth": 0.9,
    "svg.fonttype": "path",
    "svg.hashsalt": "unmask",
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
}


def require_ending(path: Path) -> str:
    """The ending of a figure's name, or an error that names those that work."""
    return choose_by_ending(path, {ending: ending for ending in FORMATS})


@contextmanager
def figure_style() -> Iterator[None]:
    """Everything drawn inside has our style, and nothing outside changes."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingError("figures need matplotlib", advice="pip install 'unmask[figures]'") from None
    with rc_context(_STYLE), warnings.catch_warnings():
        # A model's name in a script the font lacks is drawn as boxes; that is no reason to write on a terminal.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


class FigureInputs(NamedTuple):
    """What a figure is drawn from: runs, or for scaling the word `published`."""

    sources: tuple[AnyRun, ...]
    preset: Preset | str | None
    judge: str | None
    compute: str | Path | None
    measure: str = "p_lie"

    def open_runs(self) -> list[Run]:
        return open_runs(self.sources)

    def score_runs(self) -> list[tuple[str, Score]]:
        runs = self.open_runs()
        names = short_names([run.path for run in runs])
        return [
            (short_label(run_name), run.score(preset=self.preset, judge=self.judge))
            for run_name, run in zip(names, runs, strict=True)
        ]


def make_figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def encode_figure(drawing: Any, ending: str) -> bytes:
    buffer = BytesIO()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    drawing.savefig(buffer, format=ending[1:], metadata=undated, bbox_inches="tight", pad_inches=0.06)
    return buffer.getvalue()


def short_label(text: str, *, limit: int = 36) -> str:
    """A run's or model's name for a label: one line, not too long."""
    plain = " ".join(strip_controls(text).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def percent_axis(axis: Any, label: str) -> None:
    """0 to 100 in quarters."""
    axis.set_ticks([0, 25, 50, 75, 100])
    axis.set_label_text(label)


def powers_of_ten(axis: Any) -> None:
    """Ticks as 10²⁴, written with letters: formulas are switched off, so that no name of a model is read as one."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"10{str(round(log10(value))).translate(raised)}"))
    axis.set_minor_formatter(NullFormatter())


Box = tuple[float, float, float, float]


def place_labels(
    axes: Any, points: Sequence[tuple[float, float, str]], *, lines: Sequence[Box] = (), size: float = 7.5
) -> None:
    """A label beside each point, where it covers least of the points, of `lines` (ends in data coordinates) and of the
    labels placed before it, and where its leader crosses least of them. Points in one place share a label."""
    from matplotlib.text import Text

    together: dict[tuple[float, float], list[str]] = {}
    for x, y, text in points:
        together.setdefault((x, y), []).append(text)
    points = [(x, y, ", ".join(texts)) for (x, y), texts in together.items()]
    axes.figure.draw_without_rendering()  # positions are known only after the layout has been made
    spots = [tuple(axes.transData.transform((x, y))) for x, y, _ in points]
    frame = axes.get_window_extent().extents
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    for x0, y0, x1, y1 in lines:
        (left, low), (right, high) = axes.transData.transform([(x0, y0), (x1, y1)])
        taken.append((left - 2, low - 2, right + 2, high + 2))
    for (x, y, text), spot in zip(points, spots, strict=True):
        best = None
        for dx, dy, across, up in _AROUND:
            look = {"ha": across, "va": up, "fontsize": size, "arrowprops": _LEADER if abs(dx) > 5 else None}
            label = axes.annotate(text, (x, y), (dx, dy), textcoords="offset points", zorder=4, **look)
            label.set_in_layout(False)  # else the layout would be made again around the labels, and move the points
            label.get_window_extent()  # puts it in its place; the box it gives holds the leader as well
            box = Text.get_window_extent(label).extents
            leader = _leader_boxes(spot, box) if look["arrowprops"] else []
            covered = sum(_overlap_area(part, obstacle) for part in (box, *leader) for obstacle in taken)
            cost = covered + 20 * _outside_length(box, frame)
            if best is None or cost < best[0]:
                if best is not None:
                    best[1].remove()
                left, bottom, right, top = box
                best = (cost, label, [(left, bottom, right, top), *leader])
            else:
                label.remove()
            if cost == 0:
                break
        assert best is not None, spot
        taken += best[2]


_AROUND = (
    (4, 2, "left", "bottom"),
    (4, -2, "left", "top"),
    (-4, 2, "right", "bottom"),
    (-4, -2, "right", "top"),
    (0, 5, "center", "bottom"),
    (0, -5, "center", "top"),
    (12, 10, "left", "bottom"),
    (-12, -10, "right", "top"),
    (12, -10, "left", "top"),
    (-12, 10, "right", "bottom"),
    (24, 0, "left", "center"),
    (-24, 0, "right", "center"),
    (-14, 22, "right", "bottom"),
    (-14, -22, "right", "top"),
    (14, 22, "left", "bottom"),
    (14, -22, "left", "top"),
    (-28, 34, "right", "bottom"),
    (-28, -34, "right", "top"),
)
_LEADER = {"arrowstyle": "-", "linewidth": 0.5, "color": MUTED.light, "shrinkA": 0, "shrinkB": 2}
"""Drawn to labels that do not stand right beside their point."""


def _leader_boxes(spot: Sequence[float], box: Sequence[float]) -> list[Box]:
    """Small boxes along the line from a point to the middle of its label, as far as the line is drawn."""
    middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    steps = [
        tuple(start + step / 24 * (end - start) for start, end in zip(spot, middle, strict=True))
        for step in range(1, 24)
    ]
    return [
        (x - 2, y - 2, x + 2, y + 2)
        for x, y in steps
        if max(abs(x - spot[0]), abs(y - spot[1])) > 7 and not (box[0] < x < box[2] and box[1] < y < box[3])
    ]


def _overlap_area(a: Sequence[float], b: Sequence[float]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside_length(box: Sequence[float], frame: Sequence[float]) -> float:
    return sum(max(0.0, over) for over in (frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3]))


def series_look(place: int) -> tuple[str, str]:
    """Colour and marker of one of several runs."""
    return SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]


def percent_interval(rate: Rate | Difference | None) -> tuple[float, float, float] | None:
    """Value, low and high in percent, where all are known."""
    if rate is None or rate.value is None or rate.low is None or rate.high is None:
        return None
    return 100 * rate.value, 100 * rate.low, 100 * rate.high


def error_arms(interval: tuple[float, float, float]) -> list[list[float]]:
    value, low, high = interval
    return [[max(0.0, value - low)], [max(0.0, high - value)]]


def draw_stacked_bar(axes: Any, place: int, part: Measures) -> None:
    """The takes of one set of scenarios by verdict, each scenario weighing the same, as a bar of 100 %."""
    left = 0.0
    for verdict, paint in VERDICTS.items():
        share = 100 * part.shares[verdict]
        missing = verdict.value == "unjudged"
        if not share:
            continue
        axes.barh(
            place,
            share,
            left=left,
            height=0.72,
            color=GROUND.light if missing else paint.light,
            edgecolor=paint.light if missing else GROUND.light,
            hatch="//////" if missing else None,
            linewidth=0.8,
        )
        if share >= 6 and not missing:
            ink = GROUND.light if verdict.value in {"honest", "lie"} else INK.light
            axes.text(
                left + share / 2, place, f"{share:.0f}", ha="center", va="center_baseline", color=ink, fontsize=7.5
            )
        left += share


def verdict_keys() -> tuple[list[Any], list[str]]:
    """Patches and names for a legend of the verdicts."""
    from matplotlib.patches import Patch

    keys = [
        Patch(facecolor=GROUND.light, edgecolor=paint.light, hatch="//////", linewidth=0)
        if verdict.value == "unjudged"
        else Patch(facecolor=paint.light)
        for verdict, paint in VERDICTS.items()
    ]
    return keys, [NAMES[verdict] for verdict in VERDICTS]
