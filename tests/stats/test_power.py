"""Power of the paired design: exact for one take, and against simulation for several."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmask.analysis.published.values import published_values
from unmask.errors import UsageError
from unmask.stats.compare import mcnemar_score, paired_z, tango_interval
from unmask.stats.power import (
    Design,
    detectable_gap,
    discordance,
    gap_variance,
    gate_rate_chance,
    gate_rise_chance,
    mcnemar_power,
    power,
    power_of,
    scenarios_needed,
    smallest_gap,
)
from unmask.stats.rate import wilson_interval


def every_split(n: int, discordant: float, gap: float) -> float:
    """The chance of a significant test, summed over everything that can happen."""
    from scipy.stats import binom

    lean = (1 + gap / discordant) / 2
    return sum(
        binom.pmf(pairs, n, discordant) * binom.pmf(more, pairs, lean)
        for pairs in range(n + 1)
        for more in range(pairs + 1)
        if mcnemar_score(pairs - more, more) <= 0.05
    )


@pytest.mark.parametrize(("n", "discordant", "gap"), [(20, 0.4, 0.2), (40, 0.2, 0.2), (7, 1.0, 0.5), (50, 0.5, 0.0)])
def test_power_is_the_sum_over_all_outcomes(n, discordant, gap):
    """Exactly, also where every discordant pair goes one way and where there is no gap."""
    assert mcnemar_power(n, discordant=discordant, gap=gap) == pytest.approx(every_split(n, discordant, gap), abs=1e-9)


@settings(deadline=None)
@given(st.integers(1, 400), st.floats(0.01, 1), st.floats(0, 1))
def test_power_is_a_chance_and_grows_with_the_gap(n, discordant, share):
    """From 0 to 1, never falling."""
    small, large = sorted((share * discordant, discordant))
    low, high = (mcnemar_power(n, discordant=discordant, gap=gap) for gap in (small, large))
    assert 0 <= low <= high + 1e-9 <= 1 + 2e-9


def test_a_gap_larger_than_what_differs_is_refused():
    """It cannot happen, so it has no power."""
    with pytest.raises(ValueError, match="cannot come from"):
        mcnemar_power(100, discordant=0.1, gap=0.2)


def test_the_detectable_difference_is_where_power_crosses():
    """Four times in five at it, less often a hundredth below."""
    found = detectable_gap(500, discordant=0.25)
    assert mcnemar_power(500, discordant=0.25, gap=found) >= 0.8
    assert mcnemar_power(500, discordant=0.25, gap=found - 0.01) < 0.8


def test_three_pairs_can_show_nothing():
    """The test needs four that differ one way."""
    assert detectable_gap(3, discordant=0.5) is None
    assert detectable_gap(4, discordant=0.5, power=0.5) is not None


def test_the_chance_to_keep_a_rise_is_the_sum_over_all_outcomes():
    """Every split of thirty pairs, each with the bound that the gate would look at."""
    from scipy.stats import multinomial

    n, discordant, gap, limit = 30, 0.3, 0.02, 0.2
    share_a, share_b = (discordant - gap) / 2, (discordant + gap) / 2
    expected = sum(
        multinomial.pmf((only_a, only_b, n - only_a - only_b), n, (share_a, share_b, 1 - discordant))
        for only_a in range(n + 1)
        for only_b in range(n + 1 - only_a)
        if tango_interval(only_a, only_b, n=n)[1] <= limit
    )
    assert gate_rise_chance(n, discordant=discordant, gap=gap, limit=limit) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "p", "limit"), [(300, 0.025, 0.05), (100, 0.0, 0.05), (60, 0.0, 0.05), (1000, 0.2, 0.25)]
)
def test_the_chance_to_keep_a_rate_is_the_sum_over_all_outcomes(n, p, limit):
    """Every number of lies, with Wilson's upper bound; where even no lie would not do, none."""
    from scipy.stats import binom

    expected = sum(binom.pmf(lies, n, p) for lies in range(n + 1) if wilson_interval(lies, n)[1] <= limit)
    assert gate_rate_chance(n, p=p, limit=limit) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("limits", [{"max_rise": 0.05}, {"max_p_lie": 0.35}])
def test_a_gate_is_planned_for_its_own_bound(limits):
    """With the scenarios needed it passes four times in five, with a fifth fewer it does not."""
    n = power(p=0.3, **limits).rows[0].needed
    assert power_of(Design(p=0.3), 0.0, n, **limits) >= 0.8
    assert power_of(Design(p=0.3), 0.0, int(0.8 * n), **limits) < 0.8


def test_a_plan_for_several_takes_stands_for_every_take_correlation():
    """From 0.5 to 0.9, the needed scenarios growing with it; correlations below that of the runs cannot be."""
    plan = power(gap=0.05, takes=[1, 10])
    assert list(plan.by_take_correlation) == ["0.5", "0.6", "0.7", "0.8", "0.9"]
    needed = [rows[0].needed for rows in plan.by_take_correlation.values()]
    assert needed == sorted(needed)
    assert needed[0] < plan.rows[1].needed < needed[-1]
    assert list(power(gap=0.05, correlation=0.65).by_take_correlation) == ["0.7", "0.8", "0.9"]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_p_lie": 0.05, "p": 0.05}, "not above --p 0.05"),
        ({"max_rise": 0.02, "gap": 0.03}, "not above the true rise"),
        ({"max_rise": 0.02, "max_p_lie": 0.5}, "two plans"),
        ({"max_p_lie": 0.5, "gap": 0.03}, "--gap belongs to two runs"),
    ],
)
def test_a_gate_that_no_size_passes_is_named(settings, named):
    """With what to give instead."""
    with pytest.raises(UsageError, match=named):
        power(**settings)


@pytest.mark.parametrize("takes", [1, 2, 10])
def test_the_needed_scenarios_are_where_power_crosses(takes):
    """With them the gap is found, with a tenth fewer it is not."""
    design = Design(p=0.4, correlation=0.6)
    n = scenarios_needed(design, 0.06, takes=takes)
    assert power_of(design, 0.06, n, takes=takes) >= 0.8
    assert power_of(design, 0.06, int(0.9 * n), takes=takes) < 0.8


def test_more_takes_and_more_agreement_need_fewer_scenarios():
    """Both take noise out of the difference."""
    rows = power(gap=0.05).rows
    assert [row.needed for row in rows] == sorted((row.needed for row in rows), reverse=True)
    assert scenarios_needed(Design(correlation=0.7), 0.05) < scenarios_needed(Design(correlation=0.2), 0.05)


def test_the_smallest_gap_is_the_inverse_of_the_needed_scenarios():
    """As many scenarios as a gap needs show that gap, and hardly less."""
    n = scenarios_needed(Design(), 0.05)
    assert smallest_gap(Design(), n) == pytest.approx(0.05, abs=0.001)


def test_discordance_and_variance_agree_for_one_take():
    """E[gap^2] - gap^2, as for any difference of two yes/no values."""
    design = Design(p=0.3, correlation=0.4)
    assert gap_variance(design, 0.1, takes=1) == pytest.approx(discordance(design, 0.1) - 0.1**2)


def test_the_power_with_takes_is_what_a_simulation_finds():
    """Beta-distributed chances of a lie, independent takes, 600 comparisons: within five points."""
    design = Design(p=0.3, correlation=0.5, take_correlation=0.7)
    rng, n, takes, gap = np.random.default_rng(8), 250, 4, 0.05
    size = 1 / design.take_correlation - 1
    found = 0
    for _ in range(600):
        first, second = _chances(rng, n, design, gap, size)
        a, b = rng.binomial(takes, first) / takes, rng.binomial(takes, second) / takes
        found += paired_z(list(b - a)) < 0.05
    assert found / 600 == pytest.approx(power_of(design, gap, n, takes=takes), abs=0.05)


def _chances(rng, n, design, gap, size):
    """Chances of a lie with the design's means, spread and correlation: one share of scenarios is common to both."""
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
    ("design", "gap", "scenarios", "named"),
    [
        ({}, None, None, "nothing to plan for"),
        ({}, 0.0, None, "--gap 0"),
        ({"p": 0.9}, 0.2, None, "--gap 0.2"),
        ({"p": 0.0}, 0.1, None, "--p 0"),
        ({"correlation": 0.9}, 0.1, None, "--correlation 0.9 is above"),
        ({"correlation": -0.5}, 0.1, None, "--correlation -0.5"),
        ({"power": 1.0}, 0.1, None, "--power 1"),
        ({}, None, 0, "--scenarios 0"),
        ({}, None, 1_000_001, "--scenarios 1000001 is too many"),
        ({}, 0.1, 100_000_000_000, "--scenarios 100000000000 is too many"),
    ],
)
def test_plans_that_make_no_sense_are_named(design, gap, scenarios, named):
    """The flag and its value stand in the message, and advice beside it."""
    with pytest.raises(UsageError, match=named) as error:
        power(gap=gap, scenarios=scenarios, **design)
    assert error.value.advice


def test_a_tiny_gap_is_beyond_planning():
    """No number above a million scenarios."""
    assert power(gap=0.0005).rows[0].needed is None
