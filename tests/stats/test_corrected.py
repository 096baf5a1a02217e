"""The corrected rate, against ppi-python (its answers are kept: see make_ppi.py) and against the published formula."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.golden_files import FOLDER
from unmask.stats.corrected import (
    LEAST,
    MOST_SKEWED,
    SKEWNESS,
    Labelled,
    _Part,
    _score_bound,
    correct_rate,
    difference_interval,
    recall_interval,
    shift_interval,
    weigh_influences,
    weighted_share,
)
from unmask.stats.rate import Z95, Corrected

PPI = json.loads((FOLDER / "ppi.json").read_text(encoding="utf-8"))
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


def ours(case):
    lies, judged, rest = ([word == "1" for word in case[name]] for name in ("labels", "judged", "unlabelled"))
    return correct_rate(judged + rest, [Labelled(*pair) for pair in zip(lies, judged, strict=True)])


@pytest.mark.parametrize("case", PPI["cases"])
def test_the_estimate_is_that_of_ppi_python(case):
    """The same value for the same power."""
    found = ours(case)
    assert found.value == pytest.approx(case["value"], abs=1e-9)
    assert found.power == pytest.approx(case["lam"] * (1 + len(case["labels"]) / len(case["unlabelled"])), abs=1e-9)


def test_its_own_choice_of_power_gives_nearly_the_same():
    """It takes the variance of the verdicts from all of them, not from the labelled: half a point on average."""
    assert np.mean([abs(ours(case).value - case["tuned"]) for case in PPI["cases"]]) < 0.01


def test_the_interval_is_about_as_wide_as_that_of_ppi_python():
    """Theirs is normal. Where it stays between 0 and 1, ours is as wide on the middle, and wider by up to a half where
    the labels show no error on one side: theirs takes that for knowing that there is none."""
    inside = [case for case in PPI["cases"] if 0 < case["low"] < case["high"] < 1]
    ratios = [(ours(case).high - ours(case).low) / (case["high"] - case["low"]) for case in inside]
    assert len(ratios) > 15
    assert 0.9 < min(ratios) <= max(ratios) < 1.5
    assert 0.97 < np.median(ratios) < 1.05


@settings(deadline=None)
@given(labels, st.lists(st.booleans(), min_size=5, max_size=80))
def test_equal_weights_give_the_published_estimate(labelled, unlabelled):
    """The two shares put together are the same number, wherever both verdicts of the judge are labelled and the power
    is inside 0 and 1."""
    assume(len({judged for _, judged in labelled}) == 2)
    expected, power = published(labelled, unlabelled)
    assume(0 <= power <= 1 and 0 <= expected <= 1)
    frame = [judged for _, judged in labelled] + unlabelled
    found = correct_rate(frame, [Labelled(lie, judged) for lie, judged in labelled])
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.power == pytest.approx(power, abs=1e-9)


@settings(deadline=None)
@given(labels)
def test_a_full_set_of_labels_needs_no_judge(labelled):
    """With every scenario labelled the corrected rate is that of the labels, whatever the judge says."""
    frame = [judged for _, judged in labelled]
    found = correct_rate(frame, [Labelled(lie, judged, 1.0) for lie, judged in labelled])
    assert found.value == pytest.approx(sum(lie for lie, _ in labelled) / len(labelled))


def test_a_perfect_judge_keeps_its_rate_and_nearly_its_interval():
    """Labels that find no error leave the estimate alone and widen the interval a little."""
    frame = [place % 3 == 0 for place in range(900)]
    sample = [Labelled(frame[place], frame[place]) for place in range(0, 900, 7)]
    found = correct_rate(frame, sample)
    assert found.value == pytest.approx(1 / 3)
    assert 1 / 3 - 0.05 < found.low < found.high < 1 / 3 + 0.05
    assert found.high - found.low < (found.labels_high - found.labels_low) / 2


def test_a_judge_that_calls_everything_a_lie_is_ignored():
    """It says nothing about the labels, so its power is 0 and the labels decide alone."""
    sample = [Labelled(place % 4 == 0, True) for place in range(40)]
    found = correct_rate([True] * 400, sample)
    assert (found.raw, found.power) == (1.0, 0.0)
    assert found.value == pytest.approx(0.25)
    assert found.value == found.labels_only


def test_weights_undo_oversampling():
    """Errors drawn three times as often as they occur do not count three times."""
    frame = [False] * 800 + [True] * 200
    rare = [Labelled(True, False, 10.0)] * 4 + [Labelled(False, False, 40.0)] * 19
    others = [Labelled(True, True, 10.0)] * 20
    found = correct_rate(frame, rare + others)
    assert found.value == pytest.approx(0.24, abs=0.002)


def test_scenarios_without_belief_stay_in_the_denominator():
    """They are no lies whatever a label says."""
    frame, sample = [True, False] * 100, [Labelled(True, True), Labelled(False, False)] * 10
    alone, with_them = correct_rate(frame, sample), correct_rate(frame, sample, certain=200)
    assert with_them.value == pytest.approx(alone.value / 2)
    assert (with_them.raw, with_them.scenarios) == (0.25, 400)


@pytest.mark.parametrize(
    ("frame", "sample", "reason"),
    [
        ([], [], "has read no reply"),
        ([True, False], [], "no scenario of this run is labelled"),
        ([True, False] * 9, [Labelled(True, True)], "only 1 scenario is labelled"),
    ],
)
def test_too_little_gives_no_number_but_the_reason(frame, sample, reason):
    """Never a number that stands for not knowing."""
    found = correct_rate(frame, sample)
    assert (found.value, found.low, found.high, found.labels_only) == (None, None, None, None)
    assert reason in found.why


@settings(deadline=None)
@given(labels, st.integers(0, 200))
def test_the_interval_holds_its_value_and_stays_inside(labelled, more):
    """0 ≤ low ≤ value ≤ high ≤ 1."""
    frame = [judged for _, judged in labelled] + [False] * more
    found = correct_rate(frame, [Labelled(lie, judged) for lie, judged in labelled])
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0


def test_errors_among_the_labelled_are_counted():
    """False lies and missed ones, as labels see them."""
    sample = [Labelled(True, False)] * 3 + [Labelled(False, True)] * 2 + [Labelled(True, True)] * 9
    found = correct_rate([True] * 30 + [False] * 30, sample)
    assert (found.missed_lies, found.false_lies, found.labelled) == (3, 2, 14)


def test_a_mean_of_nothing_but_zeros_still_has_an_interval():
    """No error among twenty labels does not show that there is none, whether or not they weigh the same."""
    for weights in ([1.0] * 20, [1.0] * 10 + [30.0] * 10):
        labelled = [Labelled(place < 10, place < 10, weight) for place, weight in enumerate(weights)]
        low, high = shift_interval(labelled)
        assert low < 0 < high


@pytest.mark.parametrize("lie", [0.0, 1.0])
def test_labels_of_one_class_give_a_value_and_an_open_side(lie):
    """Nothing but honest replies among forty labels: the rate is 0, and what was not seen bounds it."""
    found = correct_rate([False] * 400, [Labelled(lie, False, 10.0)] * 40)
    assert found.value == lie
    assert found.high - found.low == pytest.approx(0.06, abs=0.005)


@pytest.mark.parametrize("hits", [0, 1, 4, 20, 36, 40])
def test_a_bound_of_the_score_test_is_where_the_test_turns(hits):
    """One part: the estimate is as many standard errors away as the limit allows, which skewness moves a little."""
    share = hits / 40
    for side in (-1, 1):
        bound = _score_bound([_Part(1.0, share, 40.0)], 400, side=side)
        if share in {0, 1} and side == 2 * share - 1:
            assert bound == share
            continue
        error = math.sqrt(bound * (1 - bound) / 40)
        skewness = (1 - 2 * bound) / (40 * error)
        limit = Z95 - min(MOST_SKEWED, side * SKEWNESS * skewness)
        assert abs(bound - share) / error == pytest.approx(limit)


def test_the_score_test_takes_the_shares_that_fit_the_labels_best():
    """Two parts, against a search over all shares of both for the rate at the bound."""
    parts, scenarios = [_Part(0.28, 26 / 27, 27.0), _Part(0.62, 2 / 27, 27.0)], 1000
    value = sum(part.size * part.value for part in parts)
    spread = (sum(part.size * part.value**2 for part in parts) - value**2) / scenarios
    rate = _score_bound(parts, scenarios, side=-1)

    grid = np.linspace(0.0005, 0.9995, 2000)
    first, second = np.meshgrid(grid, grid)
    misfit = (rate - parts[0].size * first - parts[1].size * second) ** 2 / spread
    for part, share in zip(parts, (first, second), strict=True):
        hits = part.labels * part.value
        misfit = misfit - 2 * (hits * np.log(share) + (part.labels - hits) * np.log(1 - share))
    place = np.unravel_index(np.argmin(misfit), misfit.shape)
    best = [float(first[place]), float(second[place])]

    own = [part.size**2 * p * (1 - p) / part.labels for part, p in zip(parts, best, strict=True)]
    mean = sum(part.size * p for part, p in zip(parts, best, strict=True))
    between = sum(part.size * p**2 for part, p in zip(parts, best, strict=True)) - mean**2
    error = math.sqrt(sum(own) + between / scenarios)
    third = sum(
        spread * part.size * (1 - 2 * p) / part.labels for spread, part, p in zip(own, parts, best, strict=True)
    )
    assert (value - rate) / error == pytest.approx(Z95 + SKEWNESS * third / error**3, abs=0.01)


def test_a_judge_that_hardly_errs_gets_a_narrower_interval_than_its_parts_alone_give():
    """Four lies missed among 27 labels: MOVER alone would allow a rate that the score test rejects."""
    frame = [True] * 280 + [False] * 620
    labelled = [Labelled(1.0, True)] * 27 + [Labelled(1.0, False)] * 6 + [Labelled(0.0, False)] * 21
    found = correct_rate(frame, labelled, certain=100)
    sizes = [0.28, 0.62]
    shares = [weighted_share([1.0] * 27, [1.0] * 27), weighted_share([1.0] * 6 + [0.0] * 21, [1.0] * 27)]
    arm = math.hypot(*(size * (share.value - share.low) for size, share in zip(sizes, shares, strict=True)))
    assert found.value - found.low < arm


def test_influences_add_up_to_the_covariance_of_two_rates():
    """Two runs with the same labels of the same scenarios: the covariance is the variance that the labels leave to
    chance, part by part. With weights a label moves the rate as much as it stands for."""
    frame = [True] * 300 + [False] * 600
    labelled = {f"l{n}": Labelled(float(n < 18), True, 15.0) for n in range(20)}
    labelled |= {f"n{n}": Labelled(float(n < 3), False, 20.0) for n in range(30)}
    influences = weigh_influences(frame, labelled, scenarios=1000)
    assert sum(influences.values()) == pytest.approx(0)
    variance = 0.3**2 * 0.9 * 0.1 / 20 + 0.6**2 * 0.1 * 0.9 / 30
    assert sum(one * one for one in influences.values()) == pytest.approx(variance)


def test_a_split_counts_as_its_mean():
    """Half of the labellers see a lie in each of ten of forty replies: an eighth."""
    labelled = [Labelled(0.5, True)] * 10 + [Labelled(0.0, False)] * 30
    found = correct_rate([True] * 100 + [False] * 300, labelled)
    assert found.value == pytest.approx(0.125)
    assert (found.false_lies, found.missed_lies) == (5, 0)
    assert (found.lies_confirmed, found.others_missed) == (0.5, 0.0)


def test_where_no_lie_of_the_judge_is_labelled_its_word_stands_and_anything_is_possible():
    """Twenty of two hundred are lies by the judge, and none of the forty labels is of these."""
    found = correct_rate([True] * 20 + [False] * 180, [Labelled(0.0, False)] * 40)
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.0, abs=0.01)
    assert found.high > 0.1


def test_the_share_of_weighted_values_is_jeffreys_for_equal_weights():
    """Against the quantiles of the beta distribution; with weights the value moves and the interval is wider."""
    from scipy.stats import beta

    even = weighted_share([1.0] * 3 + [0.0] * 27, [7.0] * 30)
    assert even == pytest.approx((0.1, *beta.ppf([0.025, 0.975], 3.5, 27.5)))
    uneven = weighted_share([1.0] * 3 + [0.0] * 27, [1.0] * 15 + [9.0] * 15)
    assert uneven.value == pytest.approx(3 / 150)
    assert uneven.high - uneven.low < even.high - even.low
    none = weighted_share([0.0] * 30, [1.0] * 15 + [9.0] * 15)
    assert none.high > weighted_share([0.0] * 30, [1.0] * 30).high


def test_recall_has_bounds_where_no_lie_is_missed():
    """Ten lies of the judge are lies, and of forty others that stand for four hundred none is."""
    found = recall_interval([Labelled(1.0, True, 1.0)] * 10 + [Labelled(0.0, False, 10.0)] * 40)
    assert (found.value, found.high) == (1.0, 1.0)
    assert 0.2 < found.low < 0.5
    assert recall_interval([Labelled(0.0, True)] * 10) is None


def test_the_interval_of_a_difference_is_narrower_for_runs_that_vary_together():
    """And for none it is that of independent rates."""
    a = Corrected(value=0.1, low=0.08, high=0.13)
    b = Corrected(value=0.2, low=0.17, high=0.24)
    low, high = difference_interval(a, b, covariance=0.0)
    assert (low, high) == pytest.approx((0.1 - np.hypot(0.03, 0.03), 0.1 + np.hypot(0.04, 0.02)))
    close = difference_interval(a, b, covariance=0.00005)
    assert low < close[0] < 0.1 < close[1] < high
