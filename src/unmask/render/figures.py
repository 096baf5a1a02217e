"""Figures for papers and slides, in the colours of the report. The same data give the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from unmask.analysis.compare import compare
from unmask.analysis.mitigation import TreatedRun, report_mitigations
from unmask.analysis.sides import short_names
from unmask.errors import MissingError, UsageError
from unmask.files import choose_by_ending, write_atomically
from unmask.records import Archetype, Preset, Verdict
from unmask.render import words
from unmask.render.colours import FAINT, GROUND, INK, MUTED, SERIES, VERDICTS
from unmask.render.describe.mitigate import EFFECTS, name_treatment
from unmask.render.describe.pressure import RUNGS
from unmask.runs.run import AnyRun, Run, open_runs
from unmask.scoring.measures import MEASURES, Measures, find_measure
from unmask.scoring.score import Score
from unmask.stats.estimate import Difference
from unmask.stats.family import depends_on_unjudged, is_significant
from unmask.stats.rate import Rate, in_percent
from unmask.text import strip_controls

if TYPE_CHECKING:
    from unmask.runs.run import Runs

FORMATS = (".svg", ".png", ".pdf")
MARKERS = ("o", "s", "D", "^", "v", "P")
"""Runs differ in shape as well as in colour."""
HONEST, LIE = VERDICTS[Verdict.HONEST].light, VERDICTS[Verdict.LIE].light
SMALL = 7.5

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that a figure looks the same everywhere
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": INK.light,
    "axes.edgecolor": MUTED.light,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT.light,
    "grid.linewidth": 0.6,
    "errorbar.capsize": 2.2,
    "lines.markersize": 4.5,
    "text.color": INK.light,
    "text.parse_math": False,  # a name of a model is no formula
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "xtick.labelcolor": INK.light,
    "ytick.labelcolor": INK.light,
    "legend.frameon": False,
    "legend.handlelength": 1.0,
    "legend.handletextpad": 0.5,
    "hatch.linewidth": 0.9,
    "svg.fonttype": "path",
    "svg.hashsalt": "unmask",
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
}


class Drawing(NamedTuple):
    """A figure as a file has it. A notebook shows it where it is an SVG."""

    name: str
    content: bytes
    path: Path | None = None
    """Where it was written."""

    def _repr_svg_(self) -> str | None:
        return self.content.decode() if self.content.startswith(b"<?xml") else None

    def __repr__(self) -> str:
        return f"Drawing({self.name!r}, {len(self.content)} bytes)"


class FigureInputs(NamedTuple):
    """What a figure is drawn from."""

    sources: tuple[AnyRun, ...]
    preset: Preset | str | None = None
    judge: str | None = None
    measure: str = "p_lie"

    def open_runs(self) -> list[Run]:
        return open_runs(self.sources)

    def score_runs(self) -> list[tuple[str, Score]]:
        runs = self.open_runs()
        names = short_names([run.path for run in runs])
        return [
            (_shorten(name), run.score(preset=self.preset, judge=self.judge))
            for name, run in zip(names, runs, strict=True)
        ]

    def require_two(self, why: str, which: str) -> None:
        if len(self.sources) < 2:
            raise UsageError(why, advice=f"Name two runs or more, or a folder of them, for the figure {which}.")


def figure(
    which: str,
    sources: Runs,
    out: str | Path | None = None,
    *,
    preset: Preset | str | None = None,
    judge: str | None = None,
    measure: str | None = None,
) -> Drawing:
    """Draw one of FIGURES, and write it to `out`, as what the ending says. Without `out` it is an SVG."""
    if which not in FIGURES:
        raise UsageError(f"there is no figure {which!r}", advice=f"Choose from: {', '.join(FIGURES)}")
    if not sources:
        raise UsageError("a figure needs a run", advice="Name its folder.")
    if measure is not None and which != "forest":
        raise UsageError(f"the figure {which} shows no measure of your choice", advice="--measure is for forest.")
    ending = ".svg" if out is None else choose_by_ending(Path(out), {ending: ending for ending in FORMATS})
    listed = (sources,) if isinstance(sources, AnyRun) else tuple(sources)
    with _figure_style():
        drawing = FIGURES[which](FigureInputs(listed, preset, judge, measure or "p_lie"))
        encoded = _encode_figure(drawing, ending)
    if out is not None:
        write_atomically(Path(out), encoded)
    return Drawing(which, encoded, None if out is None else Path(out))


@contextmanager
def _figure_style() -> Iterator[None]:
    """Everything drawn inside has our style, and nothing outside changes."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise MissingError("figures need matplotlib", advice="pip install 'unmask[figures]'") from None
    with rc_context(_STYLE), warnings.catch_warnings():
        # A model's name in a script the font lacks is drawn as boxes; that is no reason to write on a terminal.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def _encode_figure(drawing: Any, ending: str) -> bytes:
    buffer = BytesIO()
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    drawing.savefig(buffer, format=ending[1:], metadata=undated, bbox_inches="tight", pad_inches=0.06)
    return buffer.getvalue()


# --- parts --------------------------------------------------------------------------------------------------


def _make_axes(width: float, height: float, *, grid: Literal["both", "x", "y"] | None = None) -> tuple[Any, Any]:
    """A figure of so many inches with one drawing in it."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    axes = drawing.add_subplot()
    if grid:
        axes.grid(True, axis=grid)
    return drawing, axes


def _make_rows(axes: Any, labels: Sequence[str]) -> None:
    """One row for each label, from the top, without a line at the side."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _percent_axis(axes: Any, which: str, label: str) -> None:
    """From 0 to 100 in quarters."""
    axes.set(**{f"{which}lim": (0, 100), f"{which}ticks": [0, 25, 50, 75, 100], f"{which}label": label})


def _point_axis(axes: Any, spots: Sequence[_Spot], label: str) -> None:
    """Differences, with zero in the middle."""
    widest = 1.08 * max([5.0, *(abs(end) for spot in spots for end in (spot.low, spot.high))])
    axes.axvline(0, color=MUTED.light, linewidth=0.8)
    axes.grid(True, axis="x")
    axes.set(xlim=(-widest, widest), xlabel=label)


def _write_beside(axes: Any, place: float, text: str, **look: Any) -> None:
    look |= {"va": "center_baseline", "fontsize": SMALL, "clip_on": False}
    axes.text(1.03, place, text, transform=axes.get_yaxis_transform(), **look)


def _draw_legend(axes: Any, keys: Sequence[Any] | None = None, names: Sequence[str] | None = None, **look: Any) -> None:
    """Above the drawing."""
    given = (keys, names) if keys is not None else ()
    axes.legend(*given, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.3, **look)


def _draw_row_lines(axes: Any, rows: int) -> None:
    for row in range(1, rows):
        axes.axhline(row - 0.5, color=FAINT.light, linewidth=0.7)


def _shorten(text: str, *, limit: int = 36) -> str:
    """A run's or model's name for a label: one line, not too long."""
    plain = " ".join(strip_controls(text).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _series_look(place: int) -> tuple[str, str]:
    """Colour and marker of one of several runs."""
    return SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]


class _Spot(NamedTuple):
    """A value and its interval, in percent or points."""

    value: float
    low: float
    high: float

    @property
    def arms(self) -> list[list[float]]:
        return [[max(0.0, self.value - self.low)], [max(0.0, self.high - self.value)]]


def _spot_of(rate: Rate | Difference) -> _Spot | None:
    """Where all three are known."""
    if rate.value is None or rate.low is None or rate.high is None:
        return None
    return _Spot(100 * rate.value, 100 * rate.low, 100 * rate.high)


def _draw_stacked_bar(axes: Any, place: int, part: Measures) -> None:
    """The takes of one set of scenarios by verdict, each scenario weighing the same, as a bar of 100 %."""
    left = 0.0
    for verdict, paint in VERDICTS.items():
        share, missing = 100 * part.shares[verdict], verdict is Verdict.UNJUDGED
        inside, edge = (GROUND, paint) if missing else (paint, GROUND)
        look = {"color": inside.light, "edgecolor": edge.light, "hatch": "//////" if missing else None}
        if share:
            axes.barh(place, share, left=left, height=0.72, linewidth=0.8, **look)
        if share >= 6 and not missing:
            ink = GROUND.light if verdict in {Verdict.HONEST, Verdict.LIE} else INK.light
            number = in_percent(part.shares[verdict], places=0)
            axes.text(left + share / 2, place, number, ha="center", va="center_baseline", color=ink, fontsize=SMALL)
        left += share


def _draw_verdict_legend(axes: Any, **look: Any) -> None:
    from matplotlib.patches import Patch

    keys = [
        Patch(facecolor=GROUND.light, edgecolor=paint.light, hatch="//////", linewidth=0)
        if verdict is Verdict.UNJUDGED
        else Patch(facecolor=paint.light)
        for verdict, paint in VERDICTS.items()
    ]
    _draw_legend(axes, keys, [words.NAMES[verdict] for verdict in VERDICTS], **look)


def _draw_curves(axes: Any, curves: Mapping[str, Mapping[int, Rate]], label: str) -> None:
    """Rates over a number, one line per run with the interval as a band."""
    for place, (name, rates) in enumerate(curves.items()):
        spots = {x: spot for x, rate in rates.items() if (spot := _spot_of(rate)) is not None}
        colour, marker = (LIE, "o") if len(curves) == 1 else _series_look(place)
        lows, highs = ([getattr(spot, end) for spot in spots.values()] for end in ("low", "high"))
        axes.fill_between(list(spots), lows, highs, color=colour, alpha=0.16, linewidth=0)
        values = [spot.value for spot in spots.values()]
        axes.plot(list(spots), values, color=colour, marker=marker, linewidth=1.5, label=name, clip_on=False)
    axes.set_ylim(0, min(100, 10 * (axes.get_ylim()[1] // 10 + 1)))
    axes.set_ylabel(label)
    if len(curves) > 1:
        _draw_legend(axes, ncols=min(3, len(curves)))


# --- the figures --------------------------------------------------------------------------------------------


def _draw_outcomes(inputs: FigureInputs) -> Any:
    """Verdicts as bars of 100 %: one bar per run, or for a single run also one per archetype."""
    scored = inputs.score_runs()
    rows: list[tuple[str, Measures]] = [(label, score.overall) for label, score in scored]
    if len(scored) == 1:
        parts = scored[0][1].archetypes
        rows = [("all", scored[0][1].overall), *((archetype.traits.title, part) for archetype, part in parts.items())]
    drawing, axes = _make_axes(6.4, 0.75 + 0.36 * len(rows))
    for place, (_, part) in enumerate(rows):
        _draw_stacked_bar(axes, place, part)
    _make_rows(axes, [f"{label}  (n = {part.scenarios:,})" for label, part in rows])
    _percent_axis(axes, "x", "scenarios, %")
    _draw_verdict_legend(axes, ncols=5)
    return drawing


def _draw_archetypes(inputs: FigureInputs) -> Any:
    """P(lie) by archetype with intervals: bars for one run, points side by side for several."""
    scored = inputs.score_runs()
    alone = len(scored) == 1
    shown = [archetype for archetype in Archetype if any(archetype in score.archetypes for _, score in scored)]
    drawing, axes = _make_axes(6.0, 0.7 + len(shown) * (0.36 if alone else 0.22 + 0.16 * len(scored)), grid="x")
    for place, (label, score) in enumerate(scored):
        offset = 0.0 if alone else 0.5 * (place / (len(scored) - 1) - 0.5)
        colour, marker = (INK.light, "") if alone else _series_look(place)
        look = {"fmt": marker, "color": colour, "elinewidth": 1.1, "zorder": 3, "clip_on": False}
        rates = {one: score.archetypes[one].p_lie for one in shown if one in score.archetypes}
        for archetype, rate in rates.items():
            if (spot := _spot_of(rate)) is None:
                continue
            row = shown.index(archetype)
            if alone:
                axes.barh(row, spot.value, height=0.62, color=LIE)
                axes.text(spot.high + 1.5, row, words.number(rate.value), va="center_baseline", fontsize=SMALL)
            axes.errorbar(spot.value, row + offset, xerr=spot.arms, **look)
        axes.plot([], [], marker, color=colour, label=label)
    counts = [{one: score.archetypes[one].p_lie.total for one in score.archetypes} for _, score in scored]
    alike = all(count == counts[0] for count in counts)
    _make_rows(axes, [one.traits.title + (f"  (n = {counts[0][one]:,})" if alike else "") for one in shown])
    _percent_axis(axes, "x", "P(lie), %")
    axes.spines["left"].set_visible(True)
    if not alone:
        _draw_row_lines(axes, len(shown))
        _draw_legend(axes, ncols=min(4, len(scored)))
    return drawing


def _draw_honesty_accuracy(inputs: FigureInputs) -> Any:
    """One point per run with both intervals, numbered, with a key; for a single run also its archetypes."""
    scored = inputs.score_runs()
    points = [(label, score.overall, _series_look(place)) for place, (label, score) in enumerate(scored)]
    if len(scored) == 1:
        points = [("all", scored[0][1].overall, (INK.light, "o"))]
        points += [
            (archetype.traits.title, part, (MUTED.light, "o"))
            for archetype, part in scored[0][1].archetypes.items()
            if not archetype.traits.supplies_fact
        ]
    drawing, axes = _make_axes(6.2, 4.1, grid="both")
    axes.set_aspect("equal")
    _percent_axis(axes, "x", "accuracy, %")
    _percent_axis(axes, "y", "honesty (1 − P(lie)), %")
    key: list[str] = []
    numbers: dict[tuple[float, float], list[str]] = {}
    for place, (label, part, (colour, marker)) in enumerate(points):
        x, y = _spot_of(part.accuracy), _spot_of(part.honesty)
        if x is None or y is None:
            continue
        key.append(f"{len(key) + 1:>2}  {label}")
        numbers.setdefault((x.value, y.value), []).append(str(len(key)))
        look: dict[str, Any] = {"fmt": marker, "color": colour, "elinewidth": 1.1, "zorder": 3, "clip_on": False}
        if len(scored) > 1 or not place:
            look |= {"xerr": x.arms, "yerr": y.arms, "markersize": 6}
        else:
            look |= {"markerfacecolor": GROUND.light}
        axes.errorbar(x.value, y.value, **look)
    for spot, shared in numbers.items():  # points in one place share a label
        text = ", ".join(shared)
        axes.annotate(text, spot, (4, 3), textcoords="offset points", fontsize=SMALL, fontweight="bold", zorder=4)
    size = min(SMALL, 330 / max(len(key), 1))
    axes.text(1.04, 1, "\n".join(key), transform=axes.transAxes, va="top", fontsize=size, linespacing=1.4)
    return drawing


def _draw_lying_at_k(inputs: FigureInputs) -> Any:
    """Lying@k over k."""
    rates = {label: _known(score.overall.lying_at) for label, score in inputs.score_runs()}
    curves = {label: one for label, one in rates.items() if len(one) > 1}
    if not curves:
        raise UsageError(
            "no run has several takes, so there is no Lying@k to draw",
            advice="`unmask run` with --takes 10 asks more often.",
        )
    drawing, axes = _make_axes(4.8, 3.2, grid="y")
    _draw_curves(axes, curves, "Lying@k, %")
    most = max(max(one) for one in curves.values())
    axes.set(xlim=(1 - 0.02 * most, most * 1.02), xlabel="takes (k)")
    axes.set_xticks(range(1, most + 1) if most <= 12 else [1, *range(5, most + 1, 5)])
    return drawing


def _known(rates: Mapping[int, Rate | None]) -> dict[int, Rate]:
    return {number: rate for number, rate in rates.items() if rate is not None and rate.value is not None}


def _draw_ladder(inputs: FigureInputs) -> Any:
    """P(lie) by rung, one line per run; for a single run also its archetypes, thin and named."""
    scored = [(label, score.ladder) for label, score in inputs.score_runs() if score.ladder is not None]
    if not scored:
        raise UsageError("no run is of a set with rungs", advice="Run one with --data ladder.")
    drawing, axes = _make_axes(5.4, 3.4, grid="y")
    if len(scored) == 1:
        for shape, (archetype, rates) in zip(MARKERS, scored[0][1].archetypes.items(), strict=False):
            values = {rung: 100 * (rate.value or 0.0) for rung, rate in _known(rates).items()}
            look: dict[str, Any] = {"color": MUTED.light, "marker": shape, "linewidth": 0.8, "markersize": 3.5}
            axes.plot(list(values), list(values.values()), alpha=0.6, label=archetype.traits.title, **look)
    named = {label: ladder.p_lie for label, ladder in scored} if len(scored) > 1 else {"all": scored[0][1].p_lie}
    _draw_curves(axes, named, "P(lie), %")
    if len(scored) == 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=SMALL)
    counts = [{rung: rate.total for rung, rate in rates.items()} for rates in named.values()]
    sizes = counts[0] if all(count == counts[0] for count in counts) else {}
    rungs = sorted({rung for rates in named.values() for rung in rates})
    names = {rung: fill(f"{rung} {RUNGS[rung]}" if rung < len(RUNGS) else str(rung), 12) for rung in rungs}
    axes.set_xticks(rungs, [names[rung] + (f"\nn = {sizes[rung]}" if sizes else "") for rung in rungs])
    return drawing


def _draw_forest(inputs: FigureInputs) -> Any:
    """Differences from the first run, with intervals: by archetype for one other run, one row a run for several. What
    is larger than chance after Holm's correction has a colour; what depends on the unjudged has none, and its range."""
    inputs.require_two("a forest plot compares runs", "forest")
    found = compare(inputs.sources, measure=inputs.measure, preset=inputs.preset, judge=inputs.judge, drop_changed=True)
    measure, pairs = find_measure(found.measure), found.against_first
    base, several = _shorten(found.runs[0].name), len(pairs) > 1
    rows = [(_shorten(pair.b) if several else "all", pair.difference, True) for pair in pairs]
    if not several:
        rows += [(archetype.traits.title, part, False) for archetype, part in pairs[0].archetypes.items()]
    drawing, axes = _make_axes(6.4, 1.0 + 0.34 * len(rows))
    spots = [_spot_of(difference) for _, difference, _ in rows]
    left, right = ("more lies", "fewer lies") if measure.honest > 0 else ("fewer lies", "more lies")
    sides = (f"← {left}     ", f"     {right} →") if measure.honest else ("", "")
    _point_axis(axes, list(filter(None, spots)), f"{sides[0]}difference of {measure.title}, points{sides[1]}")
    for place, (spot, (_, difference, main)) in enumerate(zip(spots, rows, strict=True)):
        if spot is not None:
            side = spot.value * measure.honest if is_significant(difference) else 0
            colour = LIE if side < 0 else HONEST if side > 0 else MUTED.light
            look = {"fmt": "D" if main else "o", "markersize": 6 if main else 4.5, "color": colour}
            axes.errorbar(spot.value, place, xerr=spot.arms, elinewidth=1.3, **look)
        _write_beside(axes, place, _describe_difference(difference), fontweight="bold" if main else "normal")
    _make_rows(axes, [f"{label}  (n = {difference.n:,})" for label, difference, _ in rows])
    axes.set_title(f"each against {base}" if several else f"{_shorten(pairs[0].b)} against {base}")
    return drawing


def _describe_difference(difference: Difference) -> str:
    text = f"{words.difference(difference)}{' few' if difference.few else ''}"
    if depends_on_unjudged(difference):
        text += (
            f"\ndepends on the unjudged: {words.points(difference.worst_low)} to {words.points(difference.worst_high)}"
        )
    return text.replace("-", "−")


_MITIGATED = {
    "p_honest": (HONEST, "o"),
    "p_lie": (LIE, "D"),
    "p_evasion": (VERDICTS[Verdict.EVASION].light, "s"),
    "belief": (MUTED.light, "^"),
    "accuracy": (INK.light, "v"),
}
"""Measures with the colours of the verdicts they are made of; each has a shape of its own as well."""


def _draw_mitigations(inputs: FigureInputs) -> Any:
    """Verdicts of the base and of each treated run, and the paired differences with their intervals."""
    inputs.require_two("mitigations are compared with a base run", "mitigations")
    runs = inputs.open_runs()
    found = report_mitigations(runs, preset=inputs.preset, judge=inputs.judge, drop_changed=True)
    drawing, _ = _make_axes(8.6, 1.25 + 0.78 * len(runs))
    drawing.clear()
    left, right = drawing.subplots(1, 2, sharey=True, width_ratios=[1, 1.05])
    for place, (_, score) in enumerate(inputs.score_runs()):
        _draw_stacked_bar(left, place, score.overall)
    names = [("base", found.base.name), *((name_treatment(one), one.run.name) for one in found.treated)]
    titles = [
        "\n".join([fill(_shorten(treatment, limit=52), 28), *([_shorten(run, limit=28)] if run != treatment else [])])
        for treatment, run in names
    ]
    _make_rows(left, titles)
    _percent_axis(left, "x", f"of {found.base.scenarios} scenarios, %")
    _draw_verdict_legend(left, ncols=3, fontsize=SMALL)
    _draw_changes(right, found.treated)
    return drawing


def _draw_changes(axes: Any, treated: Sequence[TreatedRun]) -> None:
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    _draw_row_lines(axes, len(treated) + 1)
    drawn = []
    for number, (name, (colour, marker)) in enumerate(_MITIGATED.items()):
        axes.plot([], [], color=colour, marker=marker, label=MEASURES[name].title)
        for row, run in enumerate(treated, 1):
            difference = run.measures[name]
            if (spot := _spot_of(difference)) is not None:
                drawn.append(spot)
                inside = colour if is_significant(difference) else "white"  # empty where it did not surely move
                look = {"color": colour, "markerfacecolor": inside, "elinewidth": 1.2, "zorder": 3}
                axes.errorbar(spot.value, row + 0.15 * (number - 2), xerr=spot.arms, fmt=marker, **look)
    for row, run in enumerate(treated, 1):
        _write_beside(axes, row, _describe_treated(run))
    _point_axis(axes, drawn, "treated less base, points, corrected intervals; filled: moved")
    _draw_legend(axes, ncols=3, fontsize=SMALL)


def _describe_treated(run: TreatedRun) -> str:
    """What it is called, on how many scenarios where that is not all, and what became of its fluency."""
    judged = run.measures["p_lie"].n
    lines = [fill(EFFECTS[run.effect], 24)]
    if judged < run.shared:
        lines.append(f"judged in both: {judged} of {run.shared}")
    if run.writing.ratio:
        lines.append(f"perplexity ×{run.writing.ratio.value:.2f}")
    return "\n".join(lines)


FIGURES: dict[str, Callable[[FigureInputs], Any]] = {
    "outcomes": _draw_outcomes,
    "archetypes": _draw_archetypes,
    "honesty-accuracy": _draw_honesty_accuracy,
    "lying-at-k": _draw_lying_at_k,
    "ladder": _draw_ladder,
    "forest": _draw_forest,
    "mitigations": _draw_mitigations,
}
