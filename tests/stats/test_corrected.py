"""The corrected rate, against ppi-python and against the published formula written out independently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from unmask.stats.corrected import LEAST, Labelled, corrected, shift_interval

labels = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=LEAST, max_size=40)


def published(labelled, unlabelled):
    """PPI++ mean: f over the unlabelled, y and f over the labelled, apart."""
    y = np.array([float(one) for one, _ in labelled])
    f = np.array([float(one) for _, one in labelled])
    rest = np.array([float(one) for one in unlabelled])
    n, more = len(y), len(rest)
    variance = float(np.var(f, ddof=0))
    power = float(np.mean((y - y.mean()) * (f - f.mean()))) / ((1 + n / more) * variance) if variance else 0.0
    return power * rest.mean() + (y - power * f).mean(), power * (1 + n / more)


def drawn(count):
    """Labels and verdicts of a judge that errs, and more of its verdicts, with both classes on both sides."""
    rng = np.random.default_rng(20)
    while count:
        n, more = int(rng.integers(12, 80)), int(rng.integers(40, 400))
        lies = rng.random(n + more) < rng.uniform(0.1, 0.8)
        judged = lies ^ (rng.random(n + more) < rng.uniform(0.02, 0.3))
        if 0 < lies[:n].sum() < n and 0 < judged[:n].sum() < n:
            count -= 1
            yield lies[:n], judged[:n], judged[n:]


def ours(lies, judged, rest):
    pairs = [Labelled(bool(lie), bool(said)) for lie, said in zip(lies, judged, strict=True)]
    return corrected([bool(said) for said in (*judged, *rest)], pairs)


@pytest.mark.parametrize(("lies", "judged", "rest"), [*drawn(24)])
def test_the_estimate_is_that_of_ppi_python(lies, judged, rest):
    """The same value for the same power."""
    found = ours(lies, judged, rest)
    power = found.power / (1 + len(lies) / len(rest))
    sides = [side.astype(float) for side in (lies, judged, rest)]
    assert found.value == pytest.approx(float(np.ravel(ppi_mean_pointestimate(*sides, lam=power))[0]), abs=1e-9)


def test_its_own_choice_of_power_gives_nearly_the_same():
    """It takes the variance of the verdicts from all of them, not from the labelled: half a point on average."""
    gaps = [
        ours(*sides).value - float(np.ravel(ppi_mean_pointestimate(*(side.astype(float) for side in sides)))[0])
        for sides in drawn(24)
    ]
    assert np.mean(np.abs(gaps)) < 0.01


def test_the_interval_is_about_as_wide_as_that_of_ppi_python():
    """Ours is Wilson's, theirs normal: where theirs stays between 0 and 1, the widths differ by at most a quarter."""
    ratios = []
    for lies, judged, rest in drawn(24):
        found = ours(lies, judged, rest)
        theirs = ppi_mean_ci(*(side.astype(float) for side in (lies, judged, rest)), alpha=0.05)
        low, high = (float(np.ravel(end)[0]) for end in theirs)
        if 0 < low < high < 1:
            ratios.append((found.high - found.low) / (high - low))
    assert len(ratios) > 15
    assert 0.95 < min(ratios) <= max(ratios) < 1.25


@settings(deadline=None)
@given(labels, st.lists(st.booleans(), min_size=5, max_size=80))
def test_equal_weights_give_the_published_estimate(labelled, unlabelled):
    """The regression form over all judged scenarios is the same number, wherever the power is inside 0 and 1."""
    assume(len({lie for lie, _ in labelled}) == 2)
    expected, power = published(labelled, unlabelled)
    assume(0 <= power <= 1 and 0 <= expected <= 1)
    frame = [judged for _, judged in labelled] + unlabelled
    found = corrected(frame, [Labelled(lie, judged) for lie, judged in labelled])
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.power == pytest.approx(power, abs=1e-9)


@settings(deadline=None)
@given(labels)
def test_a_full_set_of_labels_needs_no_judge(labelled):
    """With every scenario labelled the corrected rate is that of the labels, whatever the judge says."""
    assume(len({lie for lie, _ in labelled}) == 2)
    frame = [judged for _, judged in labelled]
    found = corrected(frame, [Labelled(lie, judged, 1.0) for lie, judged in labelled])
    assert found.value == pytest.approx(sum(lie for lie, _ in labelled) / len(labelled))


def test_a_perfect_judge_keeps_its_rate_and_nearly_its_interval():
    """Labels that find no error leave the estimate alone and widen the interval a little."""
    frame = [place % 3 == 0 for place in range(900)]
    sample = [Labelled(frame[place], frame[place]) for place in range(0, 900, 7)]
    found = corrected(frame, sample)
    assert found.value == pytest.approx(1 / 3)
    assert 1 / 3 - 0.05 < found.low < found.high < 1 / 3 + 0.05
    assert found.high - found.low < (found.labels_high - found.labels_low) / 2


def test_a_judge_that_calls_everything_a_lie_is_ignored():
    """It says nothing about the labels, so its power is 0 and the labels decide alone."""
    sample = [Labelled(place % 4 == 0, True) for place in range(40)]
    found = corrected([True] * 400, sample)
    assert (found.raw, found.power) == (1.0, 0.0)
    assert found.value == pytest.approx(0.25)
    assert found.value == found.labels_only


def test_weights_undo_oversampling():
    """Errors drawn three times as often as they occur do not count three times."""
    frame = [False] * 800 + [True] * 200
    rare = [Labelled(True, False, 10.0)] * 4 + [Labelled(False, False, 40.0)] * 19
    others = [Labelled(True, True, 10.0)] * 20
    found = corrected(frame, rare + others)
    assert found.value == pytest.approx(0.24, abs=0.002)


def test_scenarios_without_belief_stay_in_the_denominator():
    """They are no lies whatever a label says."""
    frame, sample = [True, False] * 100, [Labelled(True, True), Labelled(False, False)] * 10
    alone, with_them = corrected(frame, sample), corrected(frame, sample, certain=200)
    assert with_them.value == pytest.approx(alone.value / 2)
    assert (with_them.raw, with_them.scenarios) == (0.25, 400)


@pytest.mark.parametrize(
    ("frame", "sample", "reason"),
    [
        ([], [], "has read no reply"),
        ([True, False], [], "no scenario of this run is labelled"),
        ([True, False] * 9, [Labelled(True, True)], "only 1 scenario is labelled"),
        ([True, False] * 9, [Labelled(False, True)] * 12, "one class only"),
        ([True, False] * 9, [Labelled(True, True, 2.0), Labelled(False, True)] * 6, "not one sample"),
    ],
)
def test_too_little_gives_no_number_but_the_reason(frame, sample, reason):
    """Never a number that stands for not knowing."""
    found = corrected(frame, sample)
    assert (found.value, found.low, found.high, found.labels_only) == (None, None, None, None)
    assert reason in found.why


@settings(deadline=None)
@given(labels, st.integers(0, 200))
def test_the_interval_holds_its_value_and_stays_inside(labelled, more):
    """0 ≤ low ≤ value ≤ high ≤ 1."""
    assume(len({lie for lie, _ in labelled}) == 2)
    frame = [judged for _, judged in labelled] + [False] * more
    found = corrected(frame, [Labelled(lie, judged) for lie, judged in labelled])
    assert 0 <= found.low - 1e-9 <= found.value <= found.high + 1e-9
    assert found.high <= 1


def test_errors_among_the_labelled_are_counted():
    """False lies and missed ones, as labels see them."""
    sample = [Labelled(True, False)] * 3 + [Labelled(False, True)] * 2 + [Labelled(True, True)] * 9
    found = corrected([True] * 30 + [False] * 30, sample)
    assert (found.missed_lies, found.false_lies, found.labelled) == (3, 2, 14)


def test_a_mean_of_nothing_but_zeros_still_has_an_interval():
    """No error among twenty labels does not show that there is none."""
    low, high = shift_interval([0] * 20)
    assert low < 0 < high
