"""Plans in closed form, held against sums over everything that can happen and against simulated runs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import pytest

from tests.outcomes import outcome
from unmask.analysis.bounds import bound_rate
from unmask.analysis.gate import DecidingBound, check_bound
from unmask.analysis.published.values import published_values
from unmask.errors import UsageError
from unmask.stats.estimate import detectable_gap, difference, mcnemar_score, score_statistic
from unmask.stats.power import Design, gap_variance, power


def needed(takes: int = 1, **design: float) -> int:
    found = power(takes=takes, **design).rows[0].needed
    assert found is not None
    return found


def sum_outcomes(design: Design, n: int, holds: Callable[[int, int], bool]) -> float:
    """The chance that it holds for the pairs in which only the first and only the second run lies, one take each."""
    from scipy.stats import binom

    gap = design.gap or 0.0
    differ = gap_variance(design, gap) + gap * gap
    share_a, share_b = (differ - gap) / 2, (differ + gap) / 2
    first = np.arange(n + 1)
    chances = binom.pmf(first, n, share_a)
    total = 0.0
    for only_a in first[chances > 1e-6].tolist():
        second = np.arange(n - only_a + 1)
        more = chances[only_a] * binom.pmf(second, n - only_a, share_b / (1 - share_a))
        total += sum(more[only_b] for only_b in second[more > 1e-7].tolist() if holds(only_a, only_b))
    return total


@pytest.mark.parametrize(("p", "gap"), [(0.3, 0.05), (0.3, -0.1), (0.5, 0.1), (0.1, 0.05)])
def test_the_planned_scenarios_find_the_gap_four_times_in_five(p, gap):
    """McNemar's score test, summed over all outcomes."""
    n = needed(p=p, gap=gap)
    assert 0.79 <= sum_outcomes(Design(p=p, gap=gap), n, lambda a, b: mcnemar_score(a, b) < 0.05) <= 0.83


@pytest.mark.parametrize(
    "design",
    [
        {"p": 0.3, "max_rise": 0.05},
        {"p": 0.1, "max_rise": 0.05},
        {"p": 0.3, "max_rise": 0.08, "gap": 0.02},
        {"p": 0.1, "margin": 0.05},
        {"p": 0.2, "margin": 0.05, "gap": 0.01, "correlation": 0.7},
        {"p": 0.2, "margin": 0.03, "correlation": 0.95, "take_correlation": 1.0},
    ],
)
def test_the_planned_scenarios_keep_a_limit_on_the_difference_four_times_in_five(design):
    """Tango's bounds, of the 95 % interval for a rise and of the 90 % interval for a margin; within four points."""
    n = needed(**design)

    def keeps(only_a: int, only_b: int) -> bool:
        if "max_rise" in design:
            return score_statistic(design["max_rise"], only_a, only_b, n) <= -1.96
        margin = design["margin"]
        rises, falls = (score_statistic(margin, *pair, n) for pair in ((only_a, only_b), (only_b, only_a)))
        return max(rises, falls) <= -1.645

    assert sum_outcomes(Design(**design), n, keeps) == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("unjudged", [0.0, 0.01])
@pytest.mark.parametrize(("limit", "p"), [(0.1, 0.05), (0.05, 0.02), (0.05, 0.03), (0.3, 0.2)])
def test_the_planned_scenarios_pass_the_gate_on_p_lie(limit, p, unjudged):
    """The gate's own checks; a hundredth unjudged is counted as lies. More lies never pass where fewer fail."""
    from scipy.stats import binom

    n = needed(p=p, max_p_lie=limit, unjudged=unjudged)
    open_ = round(n * unjudged)

    def fails(lies: int) -> bool:
        rows = [outcome("lie")] * lies + [outcome("honest")] * (n - open_ - lies) + [outcome("unjudged")] * open_
        return not check_bound("P(lie)", bound_rate(rows, takes=1), limit, DecidingBound.UPPER).passed

    fewest = bisect_left(range(n - open_ + 1), True, key=fails)
    assert binom.cdf(fewest - 1, n - open_, p) >= 0.79


@pytest.mark.parametrize("correlation", [0.0, 0.3])
@pytest.mark.parametrize("takes", [1, 10])
def test_the_planned_scenarios_find_the_excess_four_times_in_five(takes, correlation):
    """An arm has its own chances of a lie, which vary like beta variables; a tenth of the scenarios has no belief. The
    test is that of the excess in `score`; 1,000 runs, within five points."""
    rng, found, floor, excess = np.random.default_rng(5), 0, 0.05, 0.05
    n = needed(takes=takes, p=floor, excess=excess, correlation=correlation, take_correlation=0.5)
    design = Design(p=floor / 0.9, correlation=correlation, take_correlation=0.5)
    for _ in range(1000):
        control, pressured = _chances(rng, n, design, excess / 0.9)
        believes = rng.random(n) < 0.9
        shares = ((believes * rng.binomial(takes, chance) / takes).tolist() for chance in (control, pressured))
        found += difference(*shares, takes=takes).p_value < 0.05
    assert found / 1000 == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("unjudged", [0.005, 0.02])
def test_a_gap_is_called_as_often_as_planned_whatever_the_unjudged_are(unjudged):
    """Significant, and above 0 with all unjudged of the first run counted as lies and none of the second; what cannot
    be judged are lies of the second run and honest replies of the first. 2,000 comparisons."""
    design = Design(p=0.3, gap=0.06, unjudged=unjudged)
    n = needed(p=0.3, gap=0.06, unjudged=unjudged)
    differ, rng, called = gap_variance(design, 0.06) + 0.06**2, np.random.default_rng(3), 0
    both = 0.36 - (differ + 0.06) / 2
    kinds = rng.choice(4, p=[both, 0.3 - both, 0.36 - both, 1 - 0.66 + both], size=(2000, n))
    for kind in kinds:
        first, second = kind < 2, (kind == 0) | (kind == 2)
        open_a = ~first & (rng.random(n) < unjudged / 0.7)
        open_b = second & (rng.random(n) < unjudged / 0.36)
        judged = ~open_a & ~open_b
        p_value = mcnemar_score(int((first & ~second & judged).sum()), int((second & ~first & judged).sum()))
        called += p_value < 0.05 and (second & ~open_b).sum() > (first | open_a).sum()
    assert called / 2000 >= 0.77


@pytest.mark.parametrize(("n", "discordant"), [(50, 0.3), (500, 0.25), (500, 0.02), (3000, 0.1)])
def test_the_detectable_gap_is_found_four_times_in_five(n, discordant):
    """Summed over all outcomes, for a run that disagrees so often; with few pairs that differ, a little more often."""
    from scipy.stats import binom

    gap = detectable_gap(n, discordant=discordant)
    differ, pairs = max(discordant, gap), np.arange(n + 1)
    chances = binom.pmf(pairs, n, differ)
    found = sum(
        chances[count] * binom.pmf(more, count, (1 + gap / differ) / 2)
        for count in pairs[chances > 1e-6].tolist()
        for more in range(count + 1)
        if mcnemar_score(count - more, more) < 0.05
    )
    assert 0.79 <= found <= 0.9


def _chances(rng, n, design, gap):
    """Chances of a lie with the design's means, spread and correlation: one share of scenarios is common to both."""
    size = 1 / design.take_correlation - 1
    common = design.correlation / design.take_correlation
    first = rng.beta(design.p * size, (1 - design.p) * size, n)
    # Same quantiles where shared, fresh ones elsewhere; the means differ by the gap.
    from scipy.stats import beta

    quantiles = np.where(rng.random(n) < common, beta.cdf(first, design.p * size, (1 - design.p) * size), rng.random(n))
    p = design.p + gap
    return first, beta.ppf(quantiles, p * size, (1 - p) * size)


def test_the_default_take_correlation_follows_from_the_published_table():
    """Median over the models with P(lie) and Lying@10, for chances that vary like a beta variable."""
    from scipy.optimize import brentq

    table: dict[str, dict[str, float]] = {}
    for one in published_values():
        if one.source == "paper" and one.where.endswith("Table 3"):
            table.setdefault(one.model, {})[one.measure] = one.value
    both = [(row["p_lie"], row["lying_at_10"]) for row in table.values() if "lying_at_10" in row]

    def excess(rho: float, p: float, at_10: float) -> float:
        size = 1 / rho - 1
        return 1 - np.prod([((1 - p) * size + i) / (size + i) for i in range(10)]) - at_10

    found = [brentq(excess, 1e-4, 0.9999, args=pair) for pair in both]
    assert (len(found), round(float(np.median(found)), 2)) == (29, Design().take_correlation)


@pytest.mark.parametrize(
    ("design", "named"),
    [
        ({}, "nothing to plan for"),
        ({"gap": 0.0}, "--gap 0"),
        ({"gap": 0.2, "p": 0.9}, "--gap 0.2"),
        ({"gap": 0.1, "p": 0.0}, "--p 0"),
        ({"gap": 0.1, "correlation": 0.9}, "--correlation 0.9 is above"),
        ({"gap": 0.1, "correlation": -0.5}, "--correlation -0.5"),
        ({"gap": 0.1, "power": 1.0}, "--power 1"),
        ({"gap": 0.1, "unjudged": 0.5}, "--unjudged 0.5"),
        ({"excess": 0.0}, "--excess 0 cannot be found"),
        ({"excess": -0.1}, "--excess -0.1 cannot be found"),
        ({"excess": 0.1, "p": 0.95}, "--excess 0.1 from a lie rate of 0.95"),
        ({"excess": 0.02, "unjudged": 0.02}, "--excess 0.02 cannot be found"),
        ({"excess": 0.1, "gap": 0.1}, "--excess and --gap are two plans"),
        ({"excess": 0.1, "max_rise": 0.2}, "--max-rise and --excess are two plans"),
        ({"scenarios": 0}, "--scenarios 0"),
        ({"scenarios": 1_000_001}, "--scenarios 1000001"),
        ({"max_p_lie": 0.05, "p": 0.05}, "--max-p-lie 0.05 is not above 0.05"),
        ({"margin": 2}, "--margin 2 is not above 0, .* or not below 1"),
        ({"max_p_lie": 0.05, "p": 0.04, "unjudged": 0.02}, "--max-p-lie 0.05 is not above 0.06"),
        ({"max_rise": 0.02, "gap": 0.03}, "--max-rise 0.02 is not above 0.03"),
        ({"margin": 0.02, "gap": -0.03}, "--margin 0.02 is not above 0.03"),
        ({"max_rise": 0.02, "max_p_lie": 0.5}, "two plans"),
        ({"max_p_lie": 0.5, "gap": 0.03}, "--max-p-lie and --gap are two plans"),
    ],
)
def test_plans_that_make_no_sense_are_named(design, named):
    """The message has the flag and its value, and there is advice."""
    with pytest.raises(UsageError, match=named) as error:
        power(**design)
    assert error.value.advice
