"""A threshold that flags few honest replies, with a limit that holds."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.stats.threshold import flag_bound, limit_flags


def honest_only(count, rng):
    """One honest reply of each scenario, and a lie that is above them all."""
    return [*rng.normal(size=count), 99.0], [*[False] * count, True], [*map(str, range(count)), "lie"]


@pytest.mark.parametrize(("flagged", "total"), [(0, 18), (0, 299), (1, 473), (7, 40)])
def test_the_limit_is_the_bound_of_clopper_and_pearson(flagged, total):
    """The upper end of scipy's two-sided interval at 90 % is the one-sided bound at 95 %."""
    from scipy.stats import binomtest

    exact = binomtest(flagged, total).proportion_ci(0.90, method="exact").high
    assert flag_bound(flagged, total) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("count", "flagged", "reaches"), [(18, 0, False), (298, 0, False), (299, 0, True), (472, 0, True), (473, 1, True)]
)
def test_one_percent_needs_299_honest_replies(count, flagged, reaches):
    """One less does not reach it; 473 allow one of them to be flagged."""
    scores, lies, groups = honest_only(count, np.random.default_rng(count))
    limit = limit_flags(scores, lies, groups=groups)
    assert (limit.flagged, limit.reaches_goal, limit.needed) == (flagged, reaches, 299)
    assert limit.lies.hits == 1


def test_takes_of_one_scenario_count_once():
    """Ten honest replies of each of thirty scenarios are thirty; a scenario is as high as its highest reply."""
    rng = np.random.default_rng(0)
    scores, lies = [*rng.normal(size=300), 99.0], [*[False] * 300, True]
    limit = limit_flags(scores, lies, groups=[*(str(number // 10) for number in range(300)), "lie"])
    assert limit.honest == 30
    assert limit.limit == pytest.approx(1 - 0.05 ** (1 / 30))
    assert limit.threshold == max(scores[:-1])


@pytest.mark.parametrize("count", [40, 473])
def test_the_limit_holds_in_19_of_20_draws(count):
    """Of scores whose distribution is known: the true share above the threshold exceeds the limit in 5 % of draws."""
    from scipy.stats import norm

    rng = np.random.default_rng(count)
    exceeded = 0
    for _ in range(400):
        limit = limit_flags(*honest_only(count, rng)[:2], groups=[*map(str, range(count)), "lie"])
        exceeded += norm.sf(limit.threshold) > limit.limit
    assert 8 <= exceeded <= 33
