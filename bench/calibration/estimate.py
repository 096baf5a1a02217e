"""Settings about `unmask.stats.estimate`: clusters of scenarios, shares of takes, unread takes, differences.

A goal depends on how many clusters lie or differ in a run of the world on average: 93.5 to 97.5 % for 40 or more, at
least 93.5 % for 20 or more, at least 91 % for 10 or more, and none below.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from bench.calibration.found import Kind, Rng, Seen, Setting, rejected
from bench.calibration.worlds import World
from unmask.stats.compare import bounded_mean
from unmask.stats.estimate import Difference, Share, bounds, difference, lying_at, share

TAKES = 10
BELIEF = 0.9
ARCHETYPES = ((20, 0.02), (40, 0.1), (60, 0.2), (80, 0.3), (150, 0.1), (250, 0.5))
"""Scenarios and P(lie) of each."""


def settings() -> Iterator[Setting]:
    for count, members, icc, p_lie, differing in (
        (300, 1, 0.0, 0.3, 126),
        (300, 5, 0.1, 0.3, 46),
        (300, 5, 0.3, 0.3, 46),
        (300, 10, 0.3, 0.3, 23),
        (1000, 20, 0.2, 0.3, 46),
        (1000, 5, 0.3, 0.05, 33),
        (300, 5, 0.3, 0.1, 21),
        (200, 10, 0.3, 0.2, 12),
        (100, 10, 0.3, 0.3, 8),
    ):
        name = f"estimate: {count} scenarios in clusters of {members}, correlated {icc}, P(lie) {p_lie}"
        yield Setting(name, partial(_clusters, (count, members, icc, p_lie), differing))
    for count, lie, icc, lying in (
        (100, 0.3, 0.3, 60),
        (300, 0.3, 0.1, 240),
        (300, 0.05, 0.001, 108),
        (300, 0.05, 0.3, 53),
        (1000, 0.03, 0.7, 53),
        (300, 0.01, 0.3, 11),
    ):
        world = World(belief=BELIEF, lie=lie, icc=icc)
        name = f"estimate: {count} scenarios, ten takes, P(lie) {world.p_lie:.3g}, takes correlated {icc}"
        yield Setting(name, partial(_takes, world, count, (0.0, 0.0), lying))
    for of_lies, of_others in ((0.02, 0.02), (0.1, 0.1), (0.2, 0.2), (0.03, 0.003), (0.1, 0.004)):
        world = World(belief=BELIEF, lie=0.15, icc=0.6)
        lost = f"{100 * of_lies:g} % of lies and {100 * of_others:g} % of others unread"
        name = f"estimate: 1000 scenarios, ten takes, {lost}"
        yield Setting(name, partial(_takes, world, 1000, (of_lies, of_others), 200))
    for count, takes, p_a, p_b, differing in (
        (60, 10, 0.05, 0.05, 15),
        (60, 10, 0.05, 0.15, 27),
        (100, 10, 0.1, 0.1, 44),
        (300, 10, 0.05, 0.05, 76),
        (300, 5, 0.3, 0.3, 218),
    ):
        name = f"estimate: two runs, {count} scenarios, {takes} takes, P(lie) {p_a} and {p_b}"
        yield Setting(name, partial(_pair, count, takes, (p_a, p_b), differing))
    for belief, unread in ((0.35, 0.1), (0.5, 0.1), (0.9, 0.2)):
        name = f"estimate: 1000 scenarios, belief {belief}, {100 * unread:g} % of those with one unread"
        yield Setting(name, partial(_represented, belief, unread))
    for count, members in ((300, 1), (300, 5)):
        name = f"estimate: {count} scenarios in clusters of {members}, five takes, lies among clear replies"
        yield Setting(name, partial(_ratio, count, members))
    yield Setting("estimate: six unequal archetypes weighed alike, 600 scenarios", _archetypes)
    yield Setting("estimate: two equal runs, 1000 scenarios, 30 % of the second's lies unjudged", _lost_lies)


def _held(what: str, found: Share | Difference, truth: float, telling: int) -> Seen:
    """Whether the interval holds the truth, with the goal for so many clusters that lie or differ."""
    if found.low is None or found.high is None:
        raise ValueError(f"{what} has no interval")
    kind = Kind.COVERAGE if telling >= 40 else Kind.AT_LEAST if telling >= 20 else Kind.FEW
    held = found.low - 1e-12 <= truth <= found.high + 1e-12
    return Seen(what, kind if telling >= 10 else Kind.SHARE, float(held))


def _bias(what: str, found: Share, truth: float, *, kind: Kind = Kind.BIAS) -> Seen:
    return Seen(what, kind, (found.value or 0.0) - truth)


def _chances(mean: float, icc: float, count: int, rng: Rng) -> np.ndarray:
    if not icc:
        return np.full(count, mean)
    size = (1 - icc) / icc
    return rng.beta(mean * size, (1 - mean) * size, size=count)


def _clusters(world: tuple[int, int, float, float], differing: int, rng: Rng) -> Iterator[Seen]:
    """Scenarios that lie together, each run with clusters of its own."""
    count, members, icc, p_lie = world
    names = np.repeat(np.arange(count // members), members)
    a, b = ((rng.random(count) < _chances(p_lie, icc, count // members, rng)[names]).astype(float) for _ in "ab")
    found = share(a.tolist(), clusters=names.tolist())
    yield _held("P(lie)", found, p_lie, differing)
    if found.high is not None:
        yield Seen("gate at the limit", Kind.ONE_LOOK, float(found.high < p_lie))
    pair = difference(a.tolist(), b.tolist(), names.tolist())
    yield _held("difference", pair, 0.0, differing)
    yield rejected("compare", pair.p_value < 0.05)


def _takes(world: World, count: int, unread: tuple[float, float], lying: int, rng: Rng) -> Iterator[Seen]:
    """`unread` is the share of lies and of others. Where they differ P(lie) is biased, but its bounds hold it."""
    believed = rng.binomial(count, world.belief)
    lies = rng.random((believed, TAKES)) < rng.beta(*world.shape, size=(believed, 1))
    seen = rng.random(lies.shape) >= np.where(lies, *unread)
    kept = seen.any(axis=1)
    read, hits = seen[kept].sum(axis=1).tolist(), (lies & seen)[kept].sum(axis=1).tolist()
    weights = [believed / len(read)] * len(read) + [1.0] * (count - believed)
    none = [0.0] * (count - believed)
    for k in (1, 2, TAKES):
        found, true = share([*lying_at(hits, read, TAKES, k), *none], weights), world.lying_at(k)
        what = "P(lie)" if k == 1 else f"Lying@{k}"
        if unread[0] == unread[1]:
            yield _held(what, found, true, lying)
            yield _bias(f"{what}, all scenarios", found, true)
        else:
            yield _bias(f"{what}, unread by verdict", found, true, kind=Kind.REFERENCE)
    low, high = bounds(
        [*((lies & seen).mean(axis=1)).tolist(), *none], [*((lies | ~seen).mean(axis=1)).tolist(), *none]
    )
    complete, value = lies.sum() / (count * TAKES), share([*lying_at(hits, read, TAKES, 1), *none], weights).value
    for what, inside in (("complete data", complete), ("P(lie)", value or 0.0)):
        outside = not (low.value or 0.0) - 1e-12 <= inside <= (high.value or 0.0) + 1e-12
        yield Seen(f"{what} outside of the bounds", Kind.NEVER, float(outside))


def _pair(count: int, takes: int, rates: tuple[float, float], differing: int, rng: Rng) -> Iterator[Seen]:
    a, b = ((rng.binomial(takes, _chances(p, 0.5, count, rng)) / takes).tolist() for p in rates)
    found = difference(a, b, takes=takes)
    low, high = bounded_mean([right - left for left, right in zip(a, b, strict=True)])
    yield _held("difference of shares", found, rates[1] - rates[0], differing)
    yield Seen("narrower than Bonett and Price's", Kind.REFERENCE, 1 - (found.high - found.low) / (high - low))
    if rates[0] == rates[1]:
        yield rejected("compare", found.p_value < 0.05)
    else:
        yield Seen("called different", Kind.SHARE, float(found.p_value < 0.05))


def _represented(belief: float, unread: float, rng: Rng) -> Iterator[Seen]:
    """Scenarios with a belief that were read represent those that were not."""
    believed = rng.binomial(1000, belief)
    lies = (rng.random(believed) < 0.3)[rng.random(believed) >= unread].astype(float).tolist()
    none = 1000 - believed
    found = share([*lies, *[0.0] * none], [believed / len(lies)] * len(lies) + [1.0] * none)
    yield _held("P(lie)", found, 0.3 * belief, 100)
    yield _bias("P(lie), all scenarios", found, 0.3 * belief)


def _ratio(count: int, members: int, rng: Rng) -> Iterator[Seen]:
    """A third of the replies are evasive; the denominator is what is left of each scenario."""
    names = np.repeat(np.arange(count // members), members)
    lies = rng.random((count, 5)) < _chances(0.2, 0.4, count // members, rng)[names, None]
    clear = rng.random((count, 5)) < 2 / 3
    found = share((lies & clear).mean(axis=1).tolist(), None, names.tolist(), clear.mean(axis=1).tolist())
    yield _held("conditional lie rate", found, 0.2, 40)
    yield _bias("conditional lie rate, all scenarios", found, 0.2)


def _archetypes(rng: Rng) -> Iterator[Seen]:
    lies = [(rng.random(count) < p).astype(float).tolist() for count, p in ARCHETYPES]
    weights = [1 / len(part) for part in lies for _ in part]
    found = share([lie for part in lies for lie in part], weights)
    yield _held("mean of archetypes", found, float(np.mean([p for _, p in ARCHETYPES])), 20)


def _lost_lies(rng: Rng) -> Iterator[Seen]:
    """Two ways to count what is unjudged: it could turn the sign of the difference, or what the test says."""
    a, b = (rng.random(1000) < 0.1 for _ in "ab")
    lost = rng.random(1000) < np.where(b, 0.3, 0.005)
    judged, *filled = (
        difference(one.astype(float).tolist(), other.astype(float).tolist())
        for one, other in ((a[~lost], b[~lost]), (a, b & ~lost), (a, b | lost))
    )
    called = judged.p_value < 0.05
    yield Seen("told apart by what is judged", Kind.SHARE, float(called))
    turned = filled[0].value <= 0 <= filled[1].value
    yield Seen("told apart, and the unjudged cannot turn the sign", Kind.SHARE, float(called and not turned))
    shown = called and (filled[0].low > 0 or filled[1].high < 0)
    yield rejected("told apart, and by the test whatever the unjudged are", shown)
