"""Small charts as SVG for the report, drawn by hand: no size of their own in words, colours from the page's variables.

Bars have no text inside the drawing and take any width; plots have a fixed grid of about a phone's width, so that their
text is never scaled far from the size of the text around them. Numbers stand beside every chart as text as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

from markupsafe import Markup, escape

from unmask.render import words
from unmask.render.colours import VERDICTS
from unmask.render.words import NAMES
from unmask.scoring.ladder import Ladder
from unmask.scoring.measures import Measures
from unmask.stats.rate import Rate, in_percent

if TYPE_CHECKING:
    from unmask.render.blocks import Cell

Point = tuple[float, float]
Segment = tuple[Point, Point]


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


class Spanned(Protocol):
    """A value with its interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


ROW = 18
"""Pixels from top to bottom of a chart in a row."""


def rate_bar(rate: Spanned) -> Markup:
    """A bar from 0 to the value with its interval on a track of 0 to 100 %. Decorative: the number is next to it."""
    parts = [tag("rect", width="100%", height=ROW, rx=2, class_="track")]
    parts += _draw_quarters(ROW)
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


def _draw_quarters(height: float) -> Iterator[Markup]:
    for share in (0.25, 0.5, 0.75):
        yield tag("line", x1=_percent(share), x2=_percent(share), y2=height, class_="grid")


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


def honesty_accuracy(dots: Sequence[Dot]) -> Markup:
    """Honesty (1 - P(lie)) upwards, accuracy to the right; intervals as crosses for main points."""
    drawable_dots = [dot for dot in dots if dot.x.value is not None and dot.y.value is not None]
    description = "; ".join(f"{dot.label}: accuracy {dot.x.percent}, honesty {dot.y.percent}" for dot in drawable_dots)
    parts = [*_title_elements("Honesty against accuracy", desc=description), *_draw_frame()]
    # Outside the frame, where no marker comes: above its upper right corner, and below the lower one.
    notes = (("knows, says so", _y(1) - 14), ("knows, lies", HEIGHT - 8))
    parts += [tag("text", [text], x=_x(1), y=y, text_anchor="end", class_="hint") for text, y in notes]
    for dot in drawable_dots:
        if dot.main:
            parts += _draw_cross(dot)
    parts += _draw_dots(drawable_dots)
    return tag("svg", parts, class_="plot", viewBox=f"0 -12 {WIDTH + MARGIN - 4} {HEIGHT + 12}", role="img")


def _draw_dots(dots: Sequence[Dot]) -> Iterator[Markup]:
    """Every dot where it is, its number to the right of all dots. Lines come first, so that none covers a dot."""
    marked = [dot for dot in dots if dot.mark]
    places = _place_numbers(marked)
    x = min(_x(1) + MARGIN, max((_point(dot)[0] for dot in dots), default=0) + 2 * MARGIN)
    for dot in marked:
        yield tag("line", x1=_point(dot)[0], y1=_point(dot)[1], x2=x - 8, y2=places[dot.mark], class_="lead")
    for dot in dots:
        own_x, own_y = _point(dot)
        title = tag("title", [escape(f"{dot.label}: accuracy {dot.x.percent}, honesty {dot.y.percent}")])
        size = 3.5 if dot.mark else 5
        parts = [title, tag("circle", cx=own_x, cy=own_y, r=size, class_="spot main" if dot.main else "spot")]
        if dot.mark:
            parts.append(
                tag("text", [escape(dot.mark)], x=x, y=places[dot.mark] + 4, text_anchor="middle", class_="in")
            )
        yield tag("g", parts)


def _place_numbers(dots: Sequence[Dot]) -> dict[str, float]:
    """How high the number of each dot goes: level with its dot where there is room, in the order of the dots."""
    step = min(13.0, (_y(0) - _y(1)) / max(len(dots), 1))
    places: dict[str, float] = {}
    y = _y(1) - step
    for left, dot in enumerate(sorted(dots, key=lambda dot: (_point(dot)[1], -_point(dot)[0])), 1 - len(dots)):
        y = places[dot.mark] = max(y + step, min(_point(dot)[1], _y(0) + step * left))
    return places


def _draw_cross(dot: Dot) -> Iterator[Markup]:
    for (x1, y1), (x2, y2) in _bars(dot):
        yield tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_="whisker")


def _bars(dot: Dot) -> Iterator[Segment]:
    """The intervals of a dot."""
    x, y = _point(dot)
    if dot.x.low is not None and dot.x.high is not None:
        yield (_x(dot.x.low), y), (_x(dot.x.high), y)
    if dot.y.low is not None and dot.y.high is not None:
        yield (x, _y(dot.y.low)), (x, _y(dot.y.high))


def _point(dot: Dot) -> Point:
    return _x(dot.x.value or 0), _y(dot.y.value or 0)


def _draw_frame() -> Iterator[Markup]:
    for step in (0, 0.25, 0.5, 0.75, 1):
        label = f"{round(100 * step)}"
        yield tag("line", x1=_x(step), x2=_x(step), y1=_y(0), y2=_y(1), class_="grid")
        yield tag("line", x1=_x(0), x2=_x(1), y1=_y(step), y2=_y(step), class_="grid")
        yield tag("text", [label], x=_x(step), y=_y(0) + 15, text_anchor="middle", class_="tick")
        yield tag("text", [label], x=_x(0) - 6, y=_y(step) + 4, text_anchor="end", class_="tick")
    yield tag("text", ["accuracy, %"], x=_x(0.5), y=HEIGHT - 8, text_anchor="middle", class_="name")
    turn = f"rotate(-90 12 {_format_number(_y(0.5))})"
    name = ["honesty (1 − P(lie)), %"]
    yield tag("text", name, x=12, y=_y(0.5), text_anchor="middle", class_="name", transform=turn)


def lying_at(rates: Mapping[int, Rate | None]) -> Markup:
    """Lying@k over k, with the interval as a band. Nothing where fewer than two values are known."""
    known_rates = {k: rate for k, rate in rates.items() if rate is not None and rate.value is not None}
    if len(known_rates) < 2:
        return Markup()
    return rate_curve(known_rates, title="Lying@k", axis="takes (k)", point="Lying@", first=1)


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
    first: int | None = None,
    thin: Mapping[str, Mapping[int, Rate]] | None = None,
) -> Markup:
    """Rates over a number, with their intervals as a band. The axis begins at `first`, or at the least number; `point`
    is put before the number in the description. `thin` are parts of the rates, by name."""
    height, least, most = 250, min(rates) if first is None else first, max(rates)
    highest = max(rate.high or rate.value or 0 for part in (rates, *(thin or {}).values()) for rate in part.values())
    # Quarters of these are whole.
    top = next((step for step in (0.1, 0.2, 0.4, 0.6, 0.8) if highest <= step), 1.0)

    def x_of(number: int) -> float:
        return _x((number - least) / max(most - least, 1))

    def y_of_share(share: float) -> float:
        return _y(share / top, height)

    description = "; ".join(f"{point}{number} {rate.percent}" for number, rate in rates.items())
    parts = _title_elements(title, desc=description)
    for step in range(5):
        share = top * step / 4
        parts.append(tag("line", x1=_x(0), x2=_x(1), y1=y_of_share(share), y2=y_of_share(share), class_="grid"))
        parts.append(
            tag("text", [f"{100 * share:g}"], x=_x(0) - 6, y=y_of_share(share) + 4, text_anchor="end", class_="tick")
        )
    parts += [
        tag("text", [str(number)], x=x_of(number), y=_y(0, height) + 15, text_anchor="middle", class_="tick")
        for number in _choose_ticks(rates)
    ]
    parts.append(tag("text", [escape(axis)], x=_x(0.5), y=height - 8, text_anchor="middle", class_="name"))
    upper = [(x_of(number), y_of_share(rate.high or 0)) for number, rate in rates.items()]
    lower = [(x_of(number), y_of_share(rate.low or 0)) for number, rate in rates.items()]
    parts.append(tag("polygon", points=_format_points([*upper, *reversed(lower)]), class_="band"))
    for name, part in (thin or {}).items():
        known = [(x_of(number), y_of_share(rate.value)) for number, rate in part.items() if rate.value is not None]
        line = tag("polyline", points=_format_points(known), class_="thin")
        parts.append(tag("g", [tag("title", [escape(name)]), line]))
    middle = [(x_of(number), y_of_share(rate.value or 0)) for number, rate in rates.items()]
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


def _format_points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in points)
