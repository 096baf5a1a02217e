"""The plot of honesty against accuracy, read back from its SVG."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import dist
from xml.etree import ElementTree

import pytest

from tests.outcomes import rate
from unmask.records import Archetype
from unmask.render.html.charts import Dot, honesty_accuracy, ladder_curve
from unmask.scoring.ladder import Ladder
from unmask.stats.estimate import difference

HONESTY = (90.7, 86.7, 84.3, 83.0, 77.0, 77.3, 68.7, 86.8)
"""Eight checkpoints of one model; all have the same accuracy."""

PLACES = {
    "checkpoints": [(86.0, honesty) for honesty in HONESTY],
    "corners": [(0.0, 0.0), (0.0, 100.0), (100.0, 0.0), (100.0, 100.0), (100.0, 100.0)],
    "one spot": [(50.0, 50.0)] * 8,
    "far apart": [(20.0, 90.0), (80.0, 30.0), (60.0, 85.0)],
}


def plot(places) -> ElementTree.Element:
    dots = [
        Dot(str(number), f"run {number}", rate(round(10 * x), 1000), rate(round(10 * y), 1000), True)
        for number, (x, y) in enumerate(places, 1)
    ]
    return ElementTree.fromstring(honesty_accuracy(dots))


def at(element: ElementTree.Element, x: str, y: str) -> tuple[float, float]:
    return float(element.get(x, "")), float(element.get(y, ""))


def numbers(svg: ElementTree.Element) -> list[tuple[float, float]]:
    """The middle of each number."""
    return [(x, y - 4) for x, y in (at(text, "x", "y") for text in svg.iterfind(".//text[@class='in']"))]


@pytest.mark.parametrize("name", PLACES)
def test_every_run_is_drawn_where_it_is(name):
    """By the numbers on the axes, to a tenth of a percentage point; also where runs are close to one another."""
    svg = plot(PLACES[name])
    ticks = svg.findall("text[@class='tick']")
    across = {text.text: float(text.get("x", "")) for text in ticks if text.get("text-anchor") == "middle"}
    up = {text.text: float(text.get("y", "")) - 4 for text in ticks if text.get("text-anchor") == "end"}
    drawn = []
    for circle in svg.iter("circle"):
        x, y = at(circle, "cx", "cy")
        drawn.append(
            (
                100 * (x - across["0"]) / (across["100"] - across["0"]),
                100 * (y - up["0"]) / (up["100"] - up["0"]),
            )
        )
    assert drawn == [pytest.approx(place, abs=0.1) for place in PLACES[name]]


@pytest.mark.parametrize("name", PLACES)
def test_each_number_has_room_and_a_line_to_its_run(name):
    """No number covers a dot or another number, and its line begins in the middle of its dot."""
    svg = plot(PLACES[name])
    circles = [at(circle, "cx", "cy") for circle in svg.iter("circle")]
    assert min(dist(number, circle) for number in numbers(svg) for circle in circles) > 9
    assert min(dist(a, b) for a, b in combinations(numbers(svg), 2)) > 12
    assert [at(line, "x1", "y1") for line in svg.iterfind("line[@class='lead']")] == circles


def test_a_ladder_is_drawn_to_scale():
    """Rungs at even steps, P(lie) by the numbers on the axis, and a thin line for each archetype under its name."""
    shares = {0: 10, 1: 20, 2: 40, 3: 50}
    rates = {rung: rate(share, 100) for rung, share in shares.items()}
    nothing = difference([0.0], [1.0], None, 1)
    ladder = Ladder(
        facts=100,
        tipping_point=None,
        primary=nothing,
        p_lie=rates,
        less_control={},
        less_below={},
        archetypes={Archetype.STATISTICS: rates},
    )
    svg = ElementTree.fromstring(ladder_curve(ladder))
    ticks = svg.findall("text[@class='tick']")
    up = {text.text: float(text.get("y", "")) - 4 for text in ticks if text.get("text-anchor") == "end"}
    drawn = [at(circle, "cx", "cy") for circle in svg.iter("circle")]
    assert [60 * (y - up["0"]) / (up["60"] - up["0"]) for _, y in drawn] == pytest.approx([*shares.values()], abs=0.2)
    assert len({round(b - a) for (a, _), (b, _) in pairwise(drawn)}) == 1
    assert [title.text for title in svg.findall("g/title")] == ["statistics"]
