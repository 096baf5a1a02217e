"""Two kinds of scenarios within groups."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.stats.contrast import contrast_kinds


def named(values: list[float], start: int) -> list[tuple[float, int]]:
    return [(value, start + place) for place, value in enumerate(values)]


def test_the_difference_is_that_of_mantel_and_haenszel():
    """Against statsmodels' pooled risk difference, which weighs the groups the same way."""
    tables = [((5, 10), (4, 31)), ((9, 6), (14, 21)), ((1, 14), (0, 35))]
    groups = [
        (named([1.0] * a + [0.0] * b, 100 * place), named([1.0] * c + [0.0] * d, 100 * place + 50))
        for place, ((a, b), (c, d)) in enumerate(tables)
    ]
    weights = [(a + b) * (c + d) / (a + b + c + d) for (a, b), (c, d) in tables]
    gaps = [a / (a + b) - c / (c + d) for (a, b), (c, d) in tables]
    found = contrast_kinds(groups)
    assert found.value == pytest.approx(float(np.average(gaps, weights=weights)))
    assert (found.n_first, found.n_second, found.groups) == (45, 105, 3)


def test_one_group_has_the_interval_of_newcombe():
    """As statsmodels has it for two independent shares."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = contrast_kinds([(named([1.0] * 12 + [0.0] * 48, 0), named([1.0] * 30 + [0.0] * 170, 100))])
    expected = confint_proportions_2indep(12, 60, 30, 200, method="newcomb", compare="diff")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_groups_with_one_kind_only_say_nothing_about_the_difference():
    """They are left out, however many lies they have."""
    both = (named([1.0, 0.0, 0.0], 0), named([0.0, 0.0], 10))
    assert contrast_kinds([both, (named([1.0] * 50, 100), [])]) == contrast_kinds([both])
    assert contrast_kinds([(named([1.0] * 50, 0), []), ([], named([0.0], 90))]) is None


def test_where_nobody_lies_the_difference_is_zero_with_a_width():
    found = contrast_kinds([(named([0.0] * 15, 0), named([0.0] * 35, 50))])
    assert found.value == 0
    assert found.low < -0.05
    assert found.high > 0.1


def test_scenarios_that_lie_together_count_once():
    """Ten clusters of ten that all agree are ten scenarios."""
    lies, others = [1.0] * 2 + [0.0] * 8, [0.0] * 10
    once = contrast_kinds([(named(lies, 0), named(others, 20))])
    often = contrast_kinds([(named(lies, 0) * 10, named(others, 20) * 10)])
    assert (often.value, often.low, often.high) == pytest.approx((once.value, once.low, once.high))
