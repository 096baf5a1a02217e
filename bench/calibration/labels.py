"""Worlds of a judge that errs and people who read some of the replies: agreement, corrected rates."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.calibration.goals import Bounds, Kind, Rng, Seen, World, holds
from bench.calibration.planted import HONEST, LIE, UNREAD, Plant, draw, hide, list_lie_values
from unmask.analysis.agreement import measure_errors
from unmask.analysis.sampling import choose_scenarios, join_strata
from unmask.stats.agree import Pair, measure_agreement
from unmask.stats.corrected import Labelled, correct_rate, covary, difference_interval, widen_by_people
from unmask.stats.drawn import Compared
from unmask.stats.values import weigh_kinds

LETTERS = ("A", "B", "C", "D")
PEOPLE = np.array([0.4, 0.3, 0.25, 0.05])
"""How often people give each letter."""
BELIEF, SKIPPED = 0.9, 0.1
"""Scenarios with a belief; replies that two people pass over."""


def list_worlds() -> Iterator[World]:
    name = "judge right in 86 %, 150 labels"
    yield World("agree", f"{name}, three of each scenario", partial(_see_agreement, 0.86, 150, 3))
    yield World("agree", f"{name} of 1000, half of the judge's lies", partial(_see_weighted, 0.86, 150))
    name = "P(lie) 36 %, judge 12 % false, 35 % missed, 150 labels of 1000, half of the judge's lies"
    yield World("agree", name, partial(_see_errors, 0.36, 0.12, 0.35))
    for plan in (
        Reading(0.36, 0.15, 0.05, second=0.1),
        Reading(0.27, 0.02, 0.3),
        Reading(0.27, 0.12, 0.02, labels=100, scenarios=300),
        Reading(0.01, 0.03, 0.1),
        Reading(0.05, 0.03, 0.1, labels=60),
        Reading(0.05, 0.06, 0.1, split=0.5),
    ):
        yield World("corrected", str(plan), partial(_see_corrected, plan))
    name = f"{TEN_TAKES}, judge 8 % wrong, 100 labels, 2 % of takes unread (V2)"
    yield World("corrected", name, partial(_see_takes, 0.02))
    for who, shares in (("a labels a third, b the rest", (1 / 3, 0.0)), ("a labels all, b a tenth", (1.0, 0.1))):
        yield World(
            "corrected", f"two people, one strict and one lenient; {who} (V15)", partial(_see_severity, *shares)
        )
    for p_a, p_b, same in ((0.02, 0.05, False), (0.3, 0.4, True)):
        how = "the same 150 labelled" if same else "150 labelled in each"
        name = f"two runs of 1000, {how}, P(lie) {100 * p_a:g} and {100 * p_b:g} %"
        yield World("corrected", name, partial(_see_difference, p_a, p_b, same))


# --- agreement ----------------------------------------------------------------------------------------------------


def _list_cells(right: float) -> np.ndarray:
    """Chances of what people and the judge say of a reply."""
    read = np.full((4, 4), (1 - right) / 3)
    np.fill_diagonal(read, right)
    return PEOPLE[:, None] * read


def list_truths(right: float) -> dict[str, float]:
    """Agreement and the coefficients that follow from these chances."""
    cells = _list_cells(right)
    rows, columns, shared = cells.sum(1), cells.sum(0), float(np.trace(cells))
    both = (rows + columns) / 2
    chances = {
        "kappa": float(rows @ columns),
        "ac1": float((both * (1 - both)).sum() / 3),
        "alpha": float((both * both).sum()),
    }
    return {"agreement": shared} | {name: (shared - by) / (1 - by) for name, by in chances.items()}


def _hold_all(pairs: list[Pair], right: float) -> Iterator[Seen]:
    found = measure_agreement(pairs, classes=LETTERS)
    differing = len({pair.cluster for pair in pairs if pair.a != pair.b})
    for name, truth in list_truths(right).items():
        yield holds(name, getattr(found, name), truth, differing)


def _see_agreement(right: float, labels: int, takes: int, rng: Rng) -> Iterator[Seen]:
    """Takes of one scenario are often the same text: here half of them repeat the first."""
    drawn = rng.choice(16, size=labels, p=_list_cells(right).ravel())
    first = np.arange(labels) // takes * takes
    codes = np.where(rng.random(labels) < 0.5, drawn[first], drawn).tolist()
    pairs = [Pair(LETTERS[code // 4], LETTERS[code % 4], str(own)) for code, own in zip(codes, first, strict=True)]
    yield from _hold_all(pairs, right)


def _see_weighted(right: float, labels: int, rng: Rng) -> Iterator[Seen]:
    """What the judge reads as B is a lie to it."""
    codes = rng.choice(16, size=1000, p=_list_cells(right).ravel())
    pairs = []
    for own in (np.flatnonzero(codes % 4 == 1), np.flatnonzero(codes % 4 != 1)):
        for place in rng.choice(own, labels // 2, replace=False).tolist():
            code = int(codes[place])
            pairs.append(Pair(LETTERS[code // 4], LETTERS[code % 4], str(place), own.size / (labels // 2)))
    yield from _hold_all(pairs, right)


def _see_errors(p_lie: float, false: float, missed: float, rng: Rng) -> Iterator[Seen]:
    """What the judge's errors do to P(lie)."""
    lies = rng.random(1000) < p_lie
    judged = np.where(lies, rng.random(1000) >= missed, rng.random(1000) < false)
    rows = []
    for own in (np.flatnonzero(judged), np.flatnonzero(~judged)):
        for place in rng.choice(own, 75, replace=False).tolist():
            said, truth = int(judged[place]), int(lies[place])
            rows.append(Compared(1, said, truth, said * truth, own.size / 75, place))
    found = measure_errors(rows)
    both, called = p_lie * (1 - missed), p_lie * (1 - missed) + (1 - p_lie) * false
    yield holds("precision", found.precision, both / called, min(found.false_lies, 75 - found.false_lies))
    yield holds("recall", found.recall, 1 - missed, found.missed_lies)
    yield holds("shift of P(lie)", found.shift, called - p_lie, found.false_lies + found.missed_lies)


# --- corrected rates ----------------------------------------------------------------------------------------------


class Reading(NamedTuple):
    """A judge that errs, and people who read some of what it read. Nine scenarios of ten have a belief."""

    p_lie: float
    """Over all scenarios. A reply on which two people disagree counts by half."""
    false: float
    """The judge's: that what is no lie is called one."""
    missed: float
    labels: int = 150
    scenarios: int = 1000
    second: float = 0.0
    """Errors of another judge, by whose lies replies were chosen; 0 where there is none."""
    split: float = 0.0
    """Of the judge's errors, those on which two people disagree, who also skip a tenth of the replies."""

    def __str__(self) -> str:
        people = "two people, " if self.split else ""
        how = ", chosen by another judge" if self.second else ""
        return (
            f"P(lie) {100 * self.p_lie:g} %, judge {100 * self.false:g} % false, {100 * self.missed:g} % missed,"
            f" {people}{self.labels} labels of {self.scenarios}{how}"
        )

    @property
    def lie(self) -> float:
        """Given a belief: what makes P(lie) by the labels the planted one."""
        if_lie, if_none = 1 - self.missed * self.split / 2, self.false * self.split / 2
        return (self.p_lie / BELIEF - if_none) / (if_lie - if_none)


class Luck(NamedTuple):
    """What decides which scenarios have a belief, which are lies, and where the judge errs."""

    believes: np.ndarray
    lies: np.ndarray
    slips: np.ndarray


def draw_luck(count: int, rng: Rng) -> Luck:
    return Luck(rng.random(count) < BELIEF, rng.random(count), rng.random(count))


class Read(NamedTuple):
    """One run of a reading. Arrays are over the scenarios with a belief."""

    places: np.ndarray
    """In the whole run."""
    true: np.ndarray
    judged: np.ndarray
    labels: dict[int, float]
    """By place: what people say, on average, of those they read."""
    strata: dict[str, tuple[Hashable, bool]]
    """By place: what the judge says, and whether the one that chose calls it a lie."""
    scenarios: int

    def list_rows(self, labels: Mapping[int, float]) -> list[Labelled]:
        strata = join_strata(self.strata, [str(place) for place in labels])
        columns = zip(self.places.tolist(), self.judged.tolist(), strict=True)
        rows = [Labelled(float(lie), labels.get(at), strata[str(at)], cluster=at) for at, lie in columns]
        return rows + [Labelled(0.0)] * (self.scenarios - len(rows))


def draw_read(plan: Reading, luck: Luck, rng: Rng, chosen: Collection[int] | None = None) -> Read:
    """`chosen` are labelled in place of those that people are asked to read."""
    places = np.flatnonzero(luck.believes)
    true = luck.lies[places] < plan.lie
    wrong = luck.slips[places] < np.where(true, plan.missed, plan.false)
    judged = true ^ wrong
    said = dict(zip(places.tolist(), np.where(wrong & (rng.random(places.size) < plan.split), 0.5, true), strict=True))
    other = judged ^ (rng.random(places.size) < plan.second)
    if chosen is None:
        lies = {str(place): bool(lie) for place, lie in zip(places, other, strict=True)}
        chosen = [int(name) for name in choose_scenarios(lies, size=plan.labels, seed=int(rng.integers(2**31)))]
    read = [place for place in chosen if not plan.split or rng.random() >= SKIPPED]
    strata = {str(at): (bool(own), bool(by)) for at, own, by in zip(places, judged, other, strict=True)}
    return Read(places, true, judged, {place: float(said[place]) for place in read}, strata, plan.scenarios)


def _see_corrected(plan: Reading, rng: Rng) -> Iterator[Seen]:
    read = draw_read(plan, draw_luck(plan.scenarios, rng), rng)
    found = correct_rate(read.list_rows(read.labels))
    yield holds("corrected P(lie)", found, plan.p_lie, int(read.true.sum()), Kind.CAREFUL)


TEN_TAKES = Plant(300, 0.2, takes=10, icc=0.6)


def _see_takes(unread: float, rng: Rng) -> Iterator[Seen]:
    """The judge errs in single takes. People read the takes that it read."""
    run = draw(TEN_TAKES, rng)
    slips = rng.random(run.said.shape) < 0.08
    misread = run._replace(said=np.where(slips, np.where(run.said == LIE, HONEST, LIE), run.said))
    seen = hide(misread, unread, unread, rng)
    read = (seen.said != UNREAD) & run.believes[:, None]
    shares = ((run.said == LIE) & read).sum(axis=1) / np.maximum(1, read.sum(axis=1))
    values = list_lie_values(seen)
    lies = {str(place): values[place].hit > 0 for place in np.flatnonzero(read.any(axis=1)).tolist()}
    chosen = set(choose_scenarios(lies, size=100, seed=int(rng.integers(2**31))))
    rows = [
        Labelled(value.hit, shares[place] if str(place) in chosen else None, lies.get(str(place)), weight)
        for place, (value, weight) in enumerate(zip(values, weigh_kinds(values), strict=True))
        if value.hit is not None
    ]
    yield holds("corrected P(lie)", correct_rate(rows), TEN_TAKES.p_lie, run.telling, Kind.CAREFUL)


def _see_severity(share_a: float, share_b: float, rng: Rng) -> Iterator[Seen]:
    """A tenth of the replies are borderline: a calls 90 % of these lies, b 10 %. The truth is the mean of the two. They
    label these shares of the sample; where b's is 0, what a leaves."""
    plan = Reading(0.25, 0.05, 0.1)
    read = draw_read(plan, draw_luck(plan.scenarios, rng), rng)
    border = rng.random(read.true.size) < 0.1
    of_a = {place for place in read.labels if rng.random() < share_a}
    of_b = {place for place in read.labels if rng.random() < share_b} if share_b else read.labels.keys() - of_a
    people = []
    for chance, own in ((0.9, of_a), (0.1, of_b)):
        says = np.where(border, rng.random(border.size) < chance, read.true).astype(float)
        people.append(
            {place: float(one) for place, one in zip(read.places.tolist(), says, strict=True) if place in own}
        )
    pooled = {place: float(np.mean([own[place] for own in people if place in own])) for place in of_a | of_b}
    each = {who: correct_rate(read.list_rows(own)) for who, own in zip("ab", people, strict=True)}
    found = widen_by_people(correct_rate(read.list_rows(pooled)), each)
    truth = BELIEF * (0.9 * plan.lie + 0.1 * 0.5)
    yield holds("corrected P(lie)", found, truth, int(read.true.sum()), Kind.CAREFUL)


def _see_difference(p_a: float, p_b: float, same: bool, rng: Rng) -> Iterator[Seen]:
    """Half of the scenarios have the same luck in both runs. `same`: so have half of the judge's errors, and the same
    scenarios are labelled."""
    luck = draw_luck(1000, rng)
    lies, slips = (np.where(rng.random(1000) < 0.5, own, rng.random(1000)) for own in (luck.lies, luck.slips))
    again = luck._replace(lies=lies, slips=slips if same else rng.random(1000))
    chosen = rng.choice(np.flatnonzero(luck.believes), 150, replace=False).tolist() if same else None
    reads = [draw_read(Reading(p, 0.03, 0.1), own, rng, chosen) for p, own in ((p_a, luck), (p_b, again))]
    rows = [read.list_rows(read.labels) for read in reads]
    a, b = map(correct_rate, rows)
    interval = Bounds(*difference_interval(a, b, covariance=covary(*rows)), few=a.few or b.few)
    differ = int((reads[0].true != reads[1].true).sum())
    yield holds("difference of corrected P(lie)", interval, p_b - p_a, differ, Kind.CAREFUL)
