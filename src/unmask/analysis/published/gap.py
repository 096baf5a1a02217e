"""Why a run's honesty is not the one that somebody published: how both are counted, and what that leaves."""

from __future__ import annotations

from math import sqrt

from unmask.analysis.published.values import PublishedValue, published_values
from unmask.errors import UsageError
from unmask.records import Record, Result
from unmask.runs.run import Run
from unmask.scoring.definitions import OURS, GapPart, explain_settings, recount
from unmask.stats.rate import Rate, wilson_interval
from unmask.text import suggest_names

PREFIX = "published:"
_SHARES = {"honesty": False, "normalised_honesty": False, "p_lie": True}
"""Measures that a gap can be explained in, and whether honesty is 1 less their value."""


class Remainder(Record, frozen=True, omit_defaults=False):
    """What the settings do not explain: data, judge, caps, sampling, model version and chance."""

    value: float
    low: float | None = None
    high: float | None = None
    """The 95 % interval of sampling, of both numbers; `None` where nobody published one or n."""


class PublishedGap(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask compare RUN published:NAME` says: `own`, parts and `remainder` add up to `honesty`."""

    run: str
    model: str
    preset: str
    published: PublishedValue
    honesty: float
    """The published one, also where P(lie) was printed."""
    own: Rate
    parts: tuple[GapPart, ...]
    recounted: Rate
    """The run in the publisher's definition."""
    remainder: Remainder | None
    """`None` where the run has no number in that definition."""


def explain_gap(run: Run, name: str, *, preset: str | None = None, judge: str | None = None) -> PublishedGap:
    """The run next to a published value, `published:MODEL` or `published:SOURCE/MODEL`."""
    value = find_published(name.removeprefix(PREFIX))
    rows, takes = list(run.rows(preset=preset, judge=judge)), run.definition.takes
    recounted, parts = explain_settings(rows, value.definition.convention or OURS, takes=takes)
    honesty, low, high = _read_honesty(value)
    remainder = None
    if recounted.value is not None:
        difference = honesty - recounted.value
        remainder = Remainder(difference, *_span_difference(difference, recounted, (low, honesty, high)))
    return PublishedGap(
        run=str(run.path),
        model=run.definition.subject.model,
        preset=preset or run.definition.preset.value,
        published=value,
        honesty=honesty,
        own=recount(rows, OURS, takes=takes),
        parts=parts,
        recounted=recounted,
        remainder=remainder,
    )


def find_published(name: str) -> PublishedValue:
    """The honesty that was published of this model, over all archetypes and without a variant."""
    rows = [one for one in published_values() if one.archetype is None and one.variant is None]
    named = [one for one in rows if one.measure in _SHARES and _plain(name) in (_plain(one.model), _plain(_name(one)))]
    if not named:
        names = sorted({_name(one) for one in rows if one.measure in _SHARES and one.definition.convention})
        advice = suggest_names(name, names, "unmask board --with-published lists the published models.")
        raise UsageError(f"nobody is known to have published {name!r}", advice=advice)
    stated = [one for one in named if one.definition.convention]
    if not stated:
        raise UsageError(
            f"{_name(named[0])}: its publisher does not state what honesty is a share of",
            advice="No part of the gap can be told apart. `unmask score` with --as all says what is missing.",
        )
    if len({one.source for one in stated}) > 1:
        names = [f"{PREFIX}{_name(one)}" for one in stated]
        raise UsageError(f"several have published {name!r}", advice=f"Name one of {', '.join(sorted(set(names)))}.")
    return stated[-1]


def _name(value: PublishedValue) -> str:
    return f"{value.source}/{value.model}"


def _plain(name: str) -> str:
    return "-".join("".join(sign if sign.isalnum() or sign in "./" else " " for sign in name.lower()).split())


def _read_honesty(value: PublishedValue) -> tuple[float, float | None, float | None]:
    low, high = value.low, value.high
    if low is None and value.n is not None:
        low, high = wilson_interval(value.value * value.n, value.n)
    if not _SHARES[value.measure]:
        return value.value, low, high
    return 1 - value.value, None if high is None else 1 - high, None if low is None else 1 - low


def _span_difference(
    difference: float, run: Rate, published: tuple[float | None, float, float | None]
) -> tuple[float | None, float | None]:
    """Of two independent samples, from the interval of each (Newcombe's hybrid)."""
    low, value, high = published
    if None in (low, high, run.low, run.high) or run.value is None:
        return None, None
    down = sqrt((value - (low or 0.0)) ** 2 + ((run.high or 0.0) - run.value) ** 2)
    up = sqrt(((high or 0.0) - value) ** 2 + (run.value - (run.low or 0.0)) ** 2)
    return difference - down, difference + up
