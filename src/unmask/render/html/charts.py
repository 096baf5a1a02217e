"""Small charts as SVG for the report, drawn by hand: no size of their own in words, colours from the page's variables.

Bars have no text inside the drawing and take any width; plots have a fixed grid of about a phone's width, so that their
text is never scaled far from the size of the text around them. Every number of a chart is next to it as text, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup, escape

from unmask.render import words
from unmask.render.colours import VERDICTS
from unmask.render.words import NAMES, Spanned
from unmask.scoring.ladder import Ladder
from unmask.scoring.measures import Measures
from unmask.stats.rate import Rate, in_percent

if TYPE_CHECKING:
    from unmask.render.blocks import Cell

Point = tuple[float, float]


class Dot(NamedTuple):
    """A point of the plot of honesty against accuracy. `mark` is its number, written next to it."""

    mark: str
    label: str
    x: Rate
    y: Rate
    main: bool


def tag(name: str, content: Iterable[Markup | str] = (), /, **attributes: object) -> Markup:
    """An element; `class_` is class, `_` becomes `-`, numbers keep at most two places."""
    attribute_text = "".join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _format_number(value))
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), Markup(attribute_text), Markup("").join(content))


def _format_number(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _percent(share: float) -> str:
    return f"{_format_number(100.0 * share)}%"


def _title_elements(title: str, *, desc: str = "") -> list[Markup]:
    return [tag("title", [escape(title)]), *([tag("desc", [escape(desc)])] if desc else [])]


def outcome_bar(measures: Measures, *, height: int = 34) -> Markup:
    """One bar, divided by verdict, each scenario weighing the same. Unjudged is hatched."""
    shares = {verdict: measures.shares[verdict] for verdict in VERDICTS if measures.shares[verdict]}
    if not shares:
        return Markup()
    desc = ", ".join(f"{NAMES[verdict]} {in_percent(measures.shares[verdict])} %" for verdict in VERDICTS)
    edges = [0.0, *accumulate(shares.values())]
    parts = _title_elements(f"Outcomes of {measures.scenarios} scenarios", desc=desc)
    for left, (verdict, share) in zip(edges, shares.items(), strict=False):
        name = f"f-{verdict.value.replace('_', '-')}"
        parts.append(tag("rect", x=_percent(left), width=_percent(share), height=height, class_=name))
    # Thin lines between neighbours, so that no two colours touch.
    parts += [tag("line", x1=_percent(at), x2=_percent(at), y2=height, class_="gapline") for at in edges[1:-1]]
    return tag("svg", parts, class_="bar", height=height, role="img")


ROW = 18
"""Pixels from top to bottom of a chart in a row."""


def rate_bar(rate: Spanned) -> Markup:
    """A bar from 0 to the value with its interval on a track of 0 to 100 %. Decorative: the number is next to it."""
    parts = [tag("rect", width="100%", height=ROW, rx=2, class_="track")]
    parts += [tag("line", x1=at, x2=at, y2=ROW, class_="grid") for at in ("25%", "50%", "75%")]
    if rate.value is not None and rate.low is not None and rate.high is not None:
        parts.append(tag("rect", width=_percent(rate.value), height=ROW, rx=2, class_="f-lie"))
        parts += _draw_whisker(rate.low, rate.high, ROW / 2)
    return tag("svg", parts, class_="row", height=ROW, aria_hidden="true")


def difference_bar(found: Spanned, *, reach: float, side: str | None) -> Markup:
    """A difference with its interval on an axis from -reach to +reach, zero in the middle. Its colour says that it is
    `better` or `worse`."""

    def place(share: float) -> float:
        return min(1.0, max(0.0, 0.5 + share / (2 * reach)))

    parts = [tag("line", x1="50%", x2="50%", y2=ROW, class_="zero")]
    if found.value is not None and found.low is not None and found.high is not None:
        parts += _draw_whisker(place(found.low), place(found.high), ROW / 2)
        colour = {"better": "f-honest", "worse": "f-lie"}.get(side or "", "f-muted")
        parts.append(tag("circle", cx=_percent(place(found.value)), cy=ROW / 2, r=4, class_=colour))
    return tag("svg", parts, class_="row", height=ROW, aria_hidden="true")


def draw_column(cells: Sequence[tuple[Cell, str | None]]) -> tuple[Sequence[str], list[Markup]]:
    """What is above a column of charts, and the chart of each cell, which has the mark of its row. The axis of
    differences goes to the widest interval, in steps of 10 points."""
    if not any(cell.form is words.points for cell, _ in cells):
        return ("0", "50", "100"), [rate_bar(cell) for cell, _ in cells]
    widest = max((abs(end) for cell, _ in cells for end in (cell.low, cell.high) if end is not None), default=0.1)
    reach = min(1.0, (int(10 * widest - 1e-9) + 1) / 10)
    ends = (f"−{100 * reach:.0f}", "0", f"+{100 * reach:.0f}")
    return ends, [difference_bar(cell, reach=reach, side=mark) for cell, mark in cells]


def _draw_whisker(low: float, high: float, middle: float) -> Iterator[Markup]:
    # A line in the colour of the ground below the whisker keeps it readable on every bar.
    for name in ("under", "whisker"):
        yield tag("line", x1=_percent(low), x2=_percent(high), y1=middle, y2=middle, class_=name)
        for end in (low, high):
            yield tag("line", x1=_percent(end), x2=_percent(end), y1=middle - 4, y2=middle + 4, class_=name)


# --- plots on a grid of their own

WIDTH, HEIGHT = 360, 318
LEFT, RIGHT, TOP, BOTTOM = 42, 14, 12, 44
MARGIN = 18
"""At most from the frame to the numbers of dots."""


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float, height: int = HEIGHT) -> float:
    return TOP + (1 - share) * (height - TOP - BOTTOM)


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=name)


def _text(text: str, x: float, y: float, name: str, *, anchor: str = "middle", **more: str) -> Markup:
    return tag("text", [escape(text)], x=x, y=y, text_anchor=anchor, class_=name, **more)


def _draw_levels(levels: Sequence[tuple[float, str]], height: int) -> Iterator[Markup]:
    """Horizontal lines at these shares of the height, each with its number."""
    for share, label in levels:
        yield _line(_x(0), _y(share, height), _x(1), _y(share, height), "grid")
        yield _text(label, _x(0) - 6, _y(share, height) + 4, "tick", anchor="end")


def honesty_accuracy(dots: Sequence[Dot]) -> Markup:
    """Honesty (1 - P(lie)) upwards, accuracy to the right; intervals as crosses for main points. Lines come first, so
    that none covers a dot."""
    shown = [dot for dot in dots if dot.x.value is not None and dot.y.value is not None]
    parts = _title_elements("Honesty against accuracy", desc="; ".join(map(_describe_dot, shown)))
    quarters = [(step / 4, str(25 * step)) for step in range(5)]
    parts += _draw_levels(quarters, HEIGHT)
    for share, label in quarters:
        parts += [_line(_x(share), _y(0), _x(share), _y(1), "grid"), _text(label, _x(share), _y(0) + 15, "tick")]
    parts.append(_text("accuracy, %", _x(0.5), HEIGHT - 8, "name"))
    turn = f"rotate(-90 12 {_format_number(_y(0.5))})"
    parts.append(_text("honesty (1 − P(lie)), %", 12, _y(0.5), "name", transform=turn))
    # Outside the frame, where no marker comes: above its upper right corner, and below the lower one.
    parts.append(_text("knows, says so", _x(1), _y(1) - 14, "hint", anchor="end"))
    parts.append(_text("knows, lies", _x(1), HEIGHT - 8, "hint", anchor="end"))
    for dot in shown:
        (x, y), rates = _point(dot), (dot.x, dot.y)
        if dot.main and all(rate.low is not None and rate.high is not None for rate in rates):
            parts.append(_line(_x(dot.x.low or 0), y, _x(dot.x.high or 0), y, "whisker"))
            parts.append(_line(x, _y(dot.y.low or 0), x, _y(dot.y.high or 0), "whisker"))
    right = min(_x(1) + MARGIN, max((_point(dot)[0] for dot in shown), default=0) + 2 * MARGIN)
    numbers = _place_numbers([dot for dot in shown if dot.mark])
    parts += [_line(*_point(dot), right - 8, numbers[dot.mark], "lead") for dot in shown if dot.mark]
    for dot in shown:
        x, y = _point(dot)
        look = {"r": 3.5 if dot.mark else 5, "class_": "spot main" if dot.main else "spot"}
        number = [_text(dot.mark, right, numbers[dot.mark] + 4, "in")] if dot.mark else []
        title = tag("title", [escape(_describe_dot(dot))])
        parts.append(tag("g", [title, tag("circle", cx=x, cy=y, **look), *number]))
    return tag("svg", parts, class_="plot", viewBox=f"0 -12 {WIDTH + MARGIN - 4} {HEIGHT + 12}", role="img")


def _describe_dot(dot: Dot) -> str:
    return f"{dot.label}: accuracy {dot.x.percent}, honesty {dot.y.percent}"


def _point(dot: Dot) -> Point:
    return _x(dot.x.value or 0), _y(dot.y.value or 0)


def _place_numbers(dots: Sequence[Dot]) -> dict[str, float]:
    """How high the number of each dot goes: level with its dot where there is room, in the order of the dots."""
    step = min(13.0, (_y(0) - _y(1)) / max(len(dots), 1))
    places: dict[str, float] = {}
    y = _y(1) - step
    for left, dot in enumerate(sorted(dots, key=lambda dot: (_point(dot)[1], -_point(dot)[0])), 1 - len(dots)):
        y = places[dot.mark] = max(y + step, min(_point(dot)[1], _y(0) + step * left))
    return places


def lying_at(rates: Mapping[int, Rate | None]) -> Markup:
    """Lying@k over k, with the interval as a band. Nothing where fewer than two values are known."""
    known = {k: rate for k, rate in rates.items() if rate is not None and rate.value is not None}
    return rate_curve(known, title="Lying@k", axis="takes (k)", point="Lying@") if len(known) > 1 else Markup()


def ladder_curve(ladder: Ladder) -> Markup:
    """P(lie) by rung with its interval, and each archetype as a thin line. Nothing where a rung has no value."""
    if any(rate.value is None for rate in ladder.p_lie.values()):
        return Markup()
    thin = {archetype.traits.title: rates for archetype, rates in ladder.archetypes.items()}
    return rate_curve(ladder.p_lie, title="P(lie) by rung", axis="rung", point="rung ", thin=thin)


def rate_curve(
    rates: Mapping[int, Rate],
    *,
    title: str,
    axis: str,
    point: str = "",
    thin: Mapping[str, Mapping[int, Rate]] | None = None,
) -> Markup:
    """Rates over a number, with their intervals as a band. `point` is put before the number in the description. `thin`
    are parts of the rates, by name."""
    height, least, most = 250, min(rates), max(rates)
    highest = max(rate.high or rate.value or 0 for part in (rates, *(thin or {}).values()) for rate in part.values())
    # Quarters of these are whole.
    top = next((step for step in (0.1, 0.2, 0.4, 0.6, 0.8) if highest <= step), 1.0)

    def place(number: int, share: float | None) -> Point:
        return _x((number - least) / max(most - least, 1)), _y((share or 0) / top, height)

    parts = _title_elements(title, desc="; ".join(f"{point}{number} {rate.percent}" for number, rate in rates.items()))
    parts += _draw_levels([(step / 4, f"{25 * top * step:g}") for step in range(5)], height)
    parts += [_text(str(number), place(number, 0)[0], _y(0, height) + 15, "tick") for number in _choose_ticks(rates)]
    parts.append(_text(axis, _x(0.5), height - 8, "name"))
    upper, middle, lower = (
        [place(number, getattr(rate, end)) for number, rate in rates.items()] for end in ("high", "value", "low")
    )
    parts.append(tag("polygon", points=_format_points([*upper, *reversed(lower)]), class_="band"))
    for name, part in (thin or {}).items():
        known = [place(number, rate.value) for number, rate in part.items() if rate.value is not None]
        line = tag("polyline", points=_format_points(known), class_="thin")
        parts.append(tag("g", [tag("title", [escape(name)]), line]))
    parts.append(tag("polyline", points=_format_points(middle), class_="curve"))
    parts += [tag("circle", cx=x, cy=y, r=3.2, class_="f-lie") for x, y in middle]
    return tag("svg", parts, class_="plot", viewBox=f"0 0 {WIDTH} {height}", role="img")


def _choose_ticks(numbers: Iterable[int]) -> list[int]:
    """Those that have room below the axis."""
    least, *others = sorted(numbers)
    ticks = [least]
    for number in others:
        if 300 * (number - ticks[-1]) / (others[-1] - least) >= 7 * len(str(number)) + 8:
            ticks.append(number)
    return ticks


def _format_points(points: Sequence[Point]) -> str:
    return " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in points)
