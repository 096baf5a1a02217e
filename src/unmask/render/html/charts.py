"""Small charts as SVG for the report, drawn by hand: no size of their own in words, colours from the page's variables.

Bars have no text inside the drawing and take any width; plots have a fixed grid of about a phone's width, so that their
text is never scaled far from the size of the text around them. Numbers stand beside every chart as text as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import cos, dist, inf, pi, sin
from typing import NamedTuple

from markupsafe import Markup, escape

from unmask.render.colours import VERDICTS
from unmask.render.words import NAMES
from unmask.scoring.measures import Measures
from unmask.stats.estimate import Difference
from unmask.stats.family import is_significant
from unmask.stats.rate import Rate

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
    desc = ", ".join(f"{NAMES[verdict]} {100 * measures.shares[verdict]:.1f} %" for verdict in VERDICTS)
    edges = [0.0, *accumulate(shares.values())]
    parts = _title_elements(f"Outcomes of {measures.scenarios} scenarios", desc=desc)
    for left, (verdict, share) in zip(edges, shares.items(), strict=False):
        name = f"f-{verdict.value.replace('_', '-')}"
        parts.append(tag("rect", x=_percent(left), width=_percent(share), height=height, class_=name))
    # Thin lines between neighbours, so that no two colours touch.
    parts += [tag("line", x1=_percent(at), x2=_percent(at), y2=height, class_="gapline") for at in edges[1:-1]]
    return tag("svg", parts, class_="bar", height=height, role="img")


def rate_bar(rate: Rate, *, colour: str = "lie", height: int = 18) -> Markup:
    """A bar from 0 to the value with its interval on a track of 0 to 100 %. Decorative: the number stands beside it."""
    middle = height / 2
    parts = [tag("rect", width="100%", height=height, rx=2, class_="track")]
    parts += _draw_quarters(height)
    if rate.value is not None and rate.low is not None and rate.high is not None:
        parts.append(tag("rect", width=_percent(rate.value), height=height, rx=2, class_=f"f-{colour}"))
        parts += _draw_whisker(rate.low, rate.high, middle)
    return tag("svg", parts, class_="row", height=height, aria_hidden="true")


def difference_row(difference: Difference, *, reach: float, honest: int = -1) -> Markup:
    """A difference with its interval on an axis from -reach to +reach, zero in the middle. Its colour says which side
    is more `honest`, 1 for more and -1 for less, if that can be told from chance whatever is unjudged."""
    height, low, value, high = 18, difference.low, difference.value, difference.high

    def place(share: float) -> float:
        return min(1.0, max(0.0, 0.5 + share / (2 * reach)))

    parts = [tag("line", x1="50%", x2="50%", y2=height, class_="zero")]
    if value is not None and low is not None and high is not None:
        parts += _draw_whisker(place(low), place(high), height / 2)
        moved = honest * value if is_significant(difference) else 0
        side = "f-muted" if not moved else "f-honest" if moved > 0 else "f-lie"
        parts.append(tag("circle", cx=_percent(place(value)), cy=height / 2, r=4, class_=side))
    return tag("svg", parts, class_="row", height=height, aria_hidden="true")


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
    return tag("svg", parts, class_="plot", viewBox=f"0 -12 {WIDTH} {HEIGHT + 12}", role="img")


def _draw_dots(dots: Sequence[Dot]) -> Iterator[Markup]:
    """Every dot where it is, its number next to it. Lines to the numbers come first, so that none covers a dot."""
    numbers = _place_numbers(dots)
    for dot, number in zip(dots, numbers, strict=True):
        if dot.mark:
            point, share = _point(dot), 1 - _reach(dot) / dist(_point(dot), number)
            end = [start + share * (stop - start) for start, stop in zip(point, number, strict=True)]
            yield tag("line", x1=point[0], y1=point[1], x2=end[0], y2=end[1], class_="lead")
    for dot, (x, y) in zip(dots, numbers, strict=True):
        own_x, own_y = _point(dot)
        title = tag("title", [escape(f"{dot.label}: accuracy {dot.x.percent}, honesty {dot.y.percent}")])
        size = 3.5 if dot.mark else 5
        parts = [title, tag("circle", cx=own_x, cy=own_y, r=size, class_="spot main" if dot.main else "spot")]
        if dot.mark:
            parts.append(tag("text", [escape(dot.mark)], x=x, y=y + 4, text_anchor="middle", class_="in"))
        yield tag("g", parts)


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


def _reach(dot: Dot) -> float:
    """Half the room of its number."""
    return 4.0 + 3 * len(dot.mark)


def _place_numbers(dots: Sequence[Dot]) -> list[Point]:
    """Where the number of each dot goes: as near to it as there is room, from the top down."""
    bars = [bar for dot in dots if dot.main for bar in _bars(dot)]
    places: dict[int, Point] = {}
    for index in sorted(range(len(dots)), key=lambda index: _point(dots[index])[::-1]):
        dot, best = dots[index], inf
        if not dot.mark:
            places[index] = _point(dot)
            continue
        placed = [(dots[other], place) for other, place in places.items() if dots[other].mark]
        for away in (11, 16, 22, 29, 37, 46, 56, 67):
            if away >= best:
                break
            for place in _ring(_point(dot), away + _reach(dot) - 7, margin=_reach(dot)):
                cost = away + _crowding(dot, place, dots, placed, bars)
                if cost < best:
                    places[index], best = place, cost
    return [places[index] for index in range(len(dots))]


def _ring(centre: Point, radius: float, *, margin: float) -> Iterator[Point]:
    """Places around a point, those to the left and right first; inside the frame."""
    for step in sorted(range(24), key=lambda step: abs(sin(step * pi / 12))):
        x, y = centre[0] + radius * cos(step * pi / 12), centre[1] - radius * sin(step * pi / 12)
        if _x(0) + margin <= x <= _x(1) - margin and _y(1) + margin <= y <= _y(0) - margin:
            yield x, y


def _crowding(
    dot: Dot, place: Point, dots: Sequence[Dot], placed: Sequence[tuple[Dot, Point]], bars: Sequence[Segment]
) -> float:
    """What is against a number at this place: worst is to cover a dot or another number, then a line to it that crosses
    another line or a dot, then an interval below it."""
    own, reach = _point(dot), _reach(dot)
    covered = sum(dist(place, _point(other)) < reach + 4 for other in dots)
    covered += sum(dist(place, number) < reach + _reach(other) for other, number in placed)
    if covered:
        return 1000.0 * covered
    crossed = sum(_cross((own, place), (_point(other), number)) for other, number in placed)
    crossed += sum(_distance(number, (own, place)) < _reach(other) for other, number in placed)
    crossed += sum(_distance(_point(other), (own, place)) < 4 for other in dots if dist(_point(other), own) > 4)
    return 100.0 * crossed + 30 * any(_distance(place, bar) < reach for bar in bars)


def _distance(point: Point, segment: Segment) -> float:
    """From a point to the nearest point of a segment."""
    (x1, y1), (x2, y2) = segment
    squared = (x2 - x1) ** 2 + (y2 - y1) ** 2
    along = ((point[0] - x1) * (x2 - x1) + (point[1] - y1) * (y2 - y1)) / squared if squared else 0.0
    along = min(1.0, max(0.0, along))
    return dist(point, (x1 + along * (x2 - x1), y1 + along * (y2 - y1)))


def _cross(a: Segment, b: Segment) -> bool:
    def side(line: Segment, point: Point) -> float:
        (x1, y1), (x2, y2) = line
        return (x2 - x1) * (point[1] - y1) - (y2 - y1) * (point[0] - x1)

    return side(a, b[0]) * side(a, b[1]) < 0 and side(b, a[0]) * side(b, a[1]) < 0


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


def rate_curve(
    rates: Mapping[int, Rate], *, title: str, axis: str, point: str = "", first: int | None = None
) -> Markup:
    """Rates over a number, with their intervals as a band. The axis begins at `first`, or at the least number; `point`
    stands before the number in the description."""
    height, least, most = 250, min(rates) if first is None else first, max(rates)
    highest = max(rate.high or rate.value or 0 for rate in rates.values())
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
