"""Figures for papers and slides: one function each, all with the colours of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unmask.boards import Row, board
from unmask.compared import Pair, compare, short_names
from unmask.errors import UsageError
from unmask.journal import write_whole
from unmask.opened import Run
from unmask.records import Archetype
from unmask.resolve.presets import Preset
from unmask.scaled import PUBLISHED, Scaling, scaling
from unmask.score import Measures, Score
from unmask.show.colours import ARCHETYPES, FAINT, GROUND, INK, MUTED, NAMES, SERIES, VERDICTS
from unmask.show.plots import MARKERS, blank, encoded, kind, name, percent_axis, place_labels, styled
from unmask.stats.compare import Difference
from unmask.stats.rate import Rate

LIE = VERDICTS[next(verdict for verdict in VERDICTS if verdict.value == "lie")].light
HONEST = VERDICTS[next(verdict for verdict in VERDICTS if verdict.value == "honest")].light


class Given(NamedTuple):
    """What a figure is drawn from: runs, or for scaling a board file or the word `published`."""

    sources: tuple[str | Path | Run, ...]
    preset: Preset | str | None
    judge: str | None
    compute: str | Path | None

    def runs(self) -> list[Run]:
        return [source if isinstance(source, Run) else Run(source) for source in self.sources]

    def scored(self) -> list[tuple[str, Score]]:
        runs = self.runs()
        names = short_names([run.path for run in runs])
        return [
            (name(one), run.score(preset=self.preset, judge=self.judge)) for one, run in zip(names, runs, strict=True)
        ]


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
    target = Path(out)
    ending = kind(target)
    with styled():
        drawing = FIGURES[which](Given(tuple(sources), preset, judge, compute))
        write_whole(target, encoded(drawing, ending))
    return target


# --- outcomes


def outcomes(given: Given) -> Any:
    """Verdicts as bars of 100 %: one bar per run, or for a single run also one per archetype."""
    scored = given.scored()
    rows: list[tuple[str, Measures]] = [(label, score.overall) for label, score in scored]
    if len(scored) == 1:
        parts = scored[0][1].archetypes
        rows = [("all", scored[0][1].overall), *((ARCHETYPES[archetype], part) for archetype, part in parts.items())]
    drawing = blank(6.4, 0.75 + 0.36 * len(rows))
    axes = drawing.add_subplot()
    for place, (_, part) in enumerate(rows):
        _stack(axes, place, part)
    axes.set_yticks(range(len(rows)), [f"{label}  (n = {part.scenarios:,})" for label, part in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "scenarios, %")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.legend(
        *_verdict_keys(),
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=5,
        handlelength=1.0,
        borderaxespad=0.4,
        columnspacing=1.4,
        handletextpad=0.5,
    )
    return drawing


def _stack(axes: Any, place: int, part: Measures) -> None:
    left = 0.0
    for verdict, paint in VERDICTS.items():
        share = 100 * part.counts[verdict] / part.scenarios if part.scenarios else 0.0
        missing = verdict.value == "unjudged"
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


def _verdict_keys() -> tuple[list[Any], list[str]]:
    from matplotlib.patches import Patch

    keys = [
        Patch(facecolor=GROUND.light, edgecolor=paint.light, hatch="//////", linewidth=0)
        if verdict.value == "unjudged"
        else Patch(facecolor=paint.light)
        for verdict, paint in VERDICTS.items()
    ]
    return keys, [NAMES[verdict] for verdict in VERDICTS]


# --- honesty against accuracy


def honesty_accuracy(given: Given) -> Any:
    """One point per run with both intervals; for a single run also its archetypes."""
    scored = given.scored()
    drawing = blank(4.4, 4.1)
    axes = drawing.add_subplot()
    axes.grid(True)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    percent_axis(axes.xaxis, "accuracy, %")
    percent_axis(axes.yaxis, "honesty (1 − P(lie)), %")
    axes.set_aspect("equal")
    labels: list[tuple[float, float, str]] = []
    if len(scored) == 1:
        for archetype, part in scored[0][1].archetypes.items():
            if archetype is not Archetype.PROVIDED_FACTS:
                labels += _point(axes, ARCHETYPES[archetype], part, (MUTED.light, "o"), main=False)
    for place, (label, score) in enumerate(scored):
        labels += _point(axes, label if len(scored) > 1 else "all", score.overall, _series(place), main=True)
    place_labels(axes, labels)
    return drawing


def _series(place: int) -> tuple[str, str]:
    return SERIES[place % len(SERIES)], MARKERS[place % len(MARKERS)]


def _point(
    axes: Any, label: str, part: Measures, look: tuple[str, str], *, main: bool
) -> list[tuple[float, float, str]]:
    x, y = _whole(part.accuracy), _whole(part.honesty)
    if x is None or y is None:
        return []
    colour, marker = look
    axes.errorbar(
        x[0],
        y[0],
        xerr=_arms(x) if main else None,
        yerr=_arms(y) if main else None,
        fmt=marker,
        color=colour,
        markersize=6 if main else 4,
        markerfacecolor=colour if main else GROUND.light,
        elinewidth=1.1,
        zorder=3,
    )
    return [(x[0], y[0], label)]


def _whole(rate: Rate | Difference | None) -> tuple[float, float, float] | None:
    """Value, low and high in percent, where all are known."""
    if rate is None or rate.value is None or rate.low is None or rate.high is None:
        return None
    return 100 * rate.value, 100 * rate.low, 100 * rate.high


def _arms(found: tuple[float, float, float]) -> list[list[float]]:
    value, low, high = found
    return [[max(0.0, value - low)], [max(0.0, high - value)]]


# --- archetypes


def archetypes(given: Given) -> Any:
    """P(lie) by archetype with intervals: bars for one run, points side by side for several."""
    scored = given.scored()
    known = [one for one in Archetype if any(one in score.archetypes for _, score in scored)]
    drawing = blank(6.0, 0.7 + len(known) * (0.36 if len(scored) == 1 else 0.22 + 0.16 * len(scored)))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, (label, score) in enumerate(scored):
        offset = 0.0 if len(scored) == 1 else 0.62 * (place / (len(scored) - 1) - 0.5)
        spots = [
            (row + offset, found)
            for row, one in enumerate(known)
            if one in score.archetypes and (found := _whole(score.archetypes[one].p_lie)) is not None
        ]
        if len(scored) == 1:
            axes.barh([row for row, _ in spots], [found[0] for _, found in spots], height=0.62, color=LIE)
            for row, found in spots:
                axes.text(found[2] + 1.5, row, f"{found[0]:.1f}", va="center_baseline", fontsize=7.5)
        colour, marker = (INK.light, "") if len(scored) == 1 else _series(place)
        for number, (row, found) in enumerate(spots):
            axes.errorbar(
                found[0],
                row,
                xerr=_arms(found),
                fmt=marker,
                color=colour,
                markersize=4.5,
                elinewidth=1.1,
                capsize=2.2,
                label=label if not number else None,
                zorder=3,
            )
    counts = scored[0][1].archetypes
    same = all(
        score.archetypes.get(one) is not None
        and counts.get(one) is not None
        and score.archetypes[one].p_lie.total == counts[one].p_lie.total
        for _, score in scored
        for one in known
    )
    axes.set_yticks(
        range(len(known)),
        [f"{ARCHETYPES[one]}  (n = {counts[one].p_lie.total:,})" if same else ARCHETYPES[one] for one in known],
    )
    axes.set_ylim(len(known) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "P(lie), %")
    if len(scored) > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(4, len(scored)), borderaxespad=0.3)
    return drawing


# --- Lying@k


def lying_at_k(given: Given) -> Any:
    """Lying@k over k with the interval as a band, one line per run."""
    drawing = blank(4.8, 3.2)
    axes = drawing.add_subplot()
    axes.grid(True, axis="y")
    drawn = 0
    most = 1
    for place, (label, score) in enumerate(given.scored()):
        known = {k: found for k, rate in score.overall.lying_at.items() if (found := _whole(rate)) is not None}
        if len(known) < 2:
            continue
        drawn, most = drawn + 1, max(most, *known)
        colour, marker = (LIE, "o") if len(given.sources) == 1 else _series(place)
        axes.fill_between(
            list(known),
            [one[1] for one in known.values()],
            [one[2] for one in known.values()],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )
        axes.plot(
            list(known),
            [one[0] for one in known.values()],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            label=label,
        )
    if not drawn:
        raise UsageError("no run has several takes, so there is no Lying@k to draw", advice="unmask run … --takes 10")
    axes.set_xlim(1 - 0.02 * most, most * 1.02)
    axes.set_xticks(range(1, most + 1) if most <= 12 else [1, *range(5, most + 1, 5)])
    axes.set_xlabel("takes (k)")
    axes.set_ylim(0)
    axes.set_ylabel("Lying@k, %")
    if drawn > 1:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(3, drawn), borderaxespad=0.3)
    return drawing


# --- paired differences


def forest(given: Given) -> Any:
    """Differences of P(lie) to the first run with intervals: by archetype for one pair, one row a pair for several."""
    if len(given.sources) < 2:
        raise UsageError("a forest plot compares runs", advice="unmask figure forest RUN RUN --out forest.svg")
    found = compare(given.runs(), preset=given.preset, judge=given.judge, drop_changed=True)
    rows = _forest_rows(found.pairs)
    drawing = blank(6.4, 1.0 + 0.34 * len(rows))
    axes = drawing.add_subplot()
    axes.axvline(0, color=MUTED.light, linewidth=0.8)
    axes.grid(True, axis="x")
    for place, (_, one, main) in enumerate(rows):
        spot = _whole(one)
        if spot is not None:
            colour = LIE if spot[1] > 0 else HONEST if spot[2] < 0 else MUTED.light
            axes.errorbar(
                spot[0],
                place,
                xerr=_arms(spot),
                fmt="D" if main else "o",
                color=colour,
                elinewidth=1.3,
                markersize=6 if main else 4.5,
                capsize=2.2,
            )
        told = "n/a" if spot is None else f"{spot[0]:+.1f} [{spot[1]:+.1f}, {spot[2]:+.1f}]".replace("-", "−")
        axes.text(
            1.02,
            place,
            told,
            transform=axes.get_yaxis_transform(),
            va="center_baseline",
            fontsize=7.5,
            fontweight="bold" if main else "normal",
        )
    axes.set_yticks(range(len(rows)), [f"{label}  (n = {one.n:,})" for label, one, _ in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    widest = max((abs(end) for _, one, _ in rows for end in (_whole(one) or (0.0,))), default=10)
    axes.set_xlim(-1.08 * max(widest, 1), 1.08 * max(widest, 1))
    axes.set_xlabel("← fewer lies     difference of P(lie), points     more lies →")
    axes.set_title(_forest_title(found.pairs), fontweight="normal", fontsize=8.5)
    return drawing


def _forest_rows(pairs: Sequence[Pair]) -> list[tuple[str, Difference, bool]]:
    if len(pairs) > 1:
        return [(name(pair.b), pair.p_lie, True) for pair in pairs]
    parts = pairs[0].archetypes.items()
    return [("all", pairs[0].p_lie, True), *((ARCHETYPES[archetype], one, False) for archetype, one in parts)]


def _forest_title(pairs: Sequence[Pair]) -> str:
    return f"each against {name(pairs[0].a)}" if len(pairs) > 1 else f"{name(pairs[0].b)} against {name(pairs[0].a)}"


# --- scaling


def scaled(given: Given) -> Any:
    """Accuracy and honesty against training compute, one panel each, with the rank correlation."""
    found = _scaling(given)
    shown = [measure for measure, scale in found.measures.items() if scale.correlation.value is not None]
    if not shown:
        raise UsageError("there is nothing to draw: no measure has a correlation", advice="unmask scaling says why.")
    drawing = blank(3.6 * len(shown), 3.6)
    panels = drawing.subplots(1, len(shown), squeeze=False)[0]
    points = []
    for axes, measure in zip(panels, shown, strict=True):
        points.append(_panel(axes, measure, found))
    for axes, spots in zip(panels, points, strict=True):
        place_labels(axes, spots, size=5.5)
    return drawing


def _panel(axes: Any, measure: str, found: Scaling) -> list[tuple[float, float, str]]:
    values = {model: 100 * value for model, value in found.points[measure].items() if model in found.compute}
    axes.set_xscale("log")
    axes.grid(True)
    colour = SERIES[2] if measure == "accuracy" else HONEST
    axes.scatter([found.compute[model] for model in values], list(values.values()), s=16, color=colour, zorder=3)
    label = measure.replace("_at_n", f"@{found.takes or 'n'}").replace("_at_1", "@1").replace("_", " ")
    axes.set_xlabel("training compute, FLOP")
    axes.set_ylabel(f"{label}, %")
    axes.set_ylim(0, 100)
    axes.margins(x=0.12)
    rho = found.measures[measure].correlation
    interval = "" if rho.low is None or rho.high is None else f" [{rho.low:+.2f}, {rho.high:+.2f}]"
    told = f"ρ = {rho.value:+.2f}{interval}, n = {rho.n}".replace("-", "−")
    axes.set_title(told, fontweight="normal", fontsize=8.5)
    return [(found.compute[model], value, name(model.rpartition("/")[2], limit=24)) for model, value in values.items()]


def _scaling(given: Given) -> Scaling:
    """From a board file or the published table, or from runs by way of a board of them."""
    first = given.sources[0]
    if len(given.sources) == 1 and not isinstance(first, Run) and (str(first) == PUBLISHED or Path(first).is_file()):
        return scaling(first, compute=given.compute)
    from tempfile import TemporaryDirectory

    import msgspec

    made = board(given.runs(), preset=given.preset, judge=given.judge)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "board.json"
        file.write_bytes(msgspec.json.encode(made.to_json()))
        return scaling(file, compute=given.compute)


# --- board


def ranked(given: Given) -> Any:
    """Honesty of each run with its interval, and the range of ranks it could have; unranked runs below a line."""
    rows = board(given.runs(), preset=given.preset, judge=given.judge).rows
    drawing = blank(6.4, 0.85 + 0.34 * len(rows))
    axes = drawing.add_subplot()
    axes.grid(True, axis="x")
    for place, row in enumerate(rows):
        _board_row(axes, place, row)
    first_unranked = next((place for place, row in enumerate(rows) if row.place is None), None)
    if first_unranked:
        axes.axhline(first_unranked - 0.5, color=FAINT.light, linewidth=1)
    axes.set_yticks(range(len(rows)), [_called(row, rows) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 100)
    percent_axis(axes.xaxis, "honesty (1 − P(lie)), %")
    for x, text in ((1.03, "rank"), (1.16, "tied")):
        axes.text(x, -0.75, text, transform=axes.get_yaxis_transform(), fontsize=7.5, color=MUTED.light)
    return drawing


def _board_row(axes: Any, place: int, row: Row) -> None:
    spot = _whole(row.honesty)
    if spot is not None:
        colour = HONEST if row.place else MUTED.light
        axes.errorbar(
            spot[0],
            place,
            xerr=_arms(spot),
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


def _called(row: Row, rows: Sequence[Row]) -> str:
    """The model, with its run where two runs are of one model."""
    label = f"{row.model} + {row.variant}" if row.variant else row.model
    alike = [one for one in rows if (one.model, one.variant) == (row.model, row.variant)]
    return name(label if len(alike) == 1 else f"{label} ({row.name})")


FIGURES: dict[str, Callable[[Given], Any]] = {
    "outcomes": outcomes,
    "honesty-accuracy": honesty_accuracy,
    "archetypes": archetypes,
    "lying-at-k": lying_at_k,
    "forest": forest,
    "scaling": scaled,
    "board": ranked,
}
