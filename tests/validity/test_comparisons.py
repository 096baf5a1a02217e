"""Defects of comparisons and plans: names of treatments (D7), power of several takes (D9), few models (D13)."""

from __future__ import annotations

import numpy as np
import pytest

from bench.calibration.decisions import SHARES, names_of_report
from tests.made_runs import made
from tests.thorough import THOROUGH
from unmask.analysis.compare import compare
from unmask.analysis.gate import gate
from unmask.experiments.mitigation import report_mitigations
from unmask.render.html import charts
from unmask.render.terminal.compare import render
from unmask.stats.compare import Difference, paired_difference, paired_z
from unmask.stats.correlate import correlate
from unmask.stats.effect import Effect, Move
from unmask.stats.power import power


def test_d07_treatments_that_do_nothing_seldom_get_a_name():
    """Eight of them in a report: chance names one in at most one report of twenty; no interval contradicts a name."""
    rng = np.random.default_rng(4)
    reports = []
    for _ in range(count := 40 if THOROUGH else 20):
        base = rng.choice(4, size=300, p=SHARES)
        arms = [np.where(rng.random(300) < 0.2, rng.choice(4, size=300, p=SHARES), base) for _ in range(8)]
        reports.append(names_of_report(base, arms))
    assert sum(any(name is not Effect.NO_EFFECT for name, _ in report) for report in reports) <= 0.05 * count
    assert not any(contradicts for report in reports for _, contradicts in report)


@pytest.mark.parametrize(("only_a", "only_b"), [(4, 0), (10, 22), (5, 0), (7, 1), (1, 8)])
def test_d07_interval_and_p_value_are_one_test(only_a, only_b):
    """Where few of 300 scenarios differ as well: the exact test said p = 0.125 of an interval without 0."""
    a = [1.0] * only_a + [0.0] * (300 - only_a)
    b = [0.0] * only_a + [1.0] * only_b + [0.0] * (300 - only_a - only_b)
    found = paired_difference(a, b, rng=np.random.default_rng(0), resamples=2)
    assert (found.low > 0 or found.high < 0) == (found.p_value < 0.05)


def test_d07_a_report_names_by_the_corrected_p_value_and_shows_its_interval(tmp_path):
    """Four lost beliefs of 28 are no cost once six measures were tested, and the interval says so too."""
    base = made(tmp_path / "base", ["honest"] * 42)
    asked = [place for place in range(42) if place % 3 != 1]  # the scenarios that ask for a belief
    treated = made(tmp_path / "t", ["no_belief" if place in asked[:4] else "honest" for place in range(42)])
    found = report_mitigations([base, treated]).treated[0]
    belief = found.measures["belief"].overall
    assert (belief.only_a, belief.only_b) == (4, 0)
    assert belief.p_value < 0.05 < belief.p_adjusted
    assert (found.effect, found.moves.belief) == (Effect.NO_EFFECT, Move.FLAT)
    assert belief.low < 0 < belief.high


def test_d07_colours_follow_the_corrected_p_value(tmp_path):
    """A difference that only looks large before the correction has no colour, on the page or in the terminal."""
    plain = Difference(n=50, value=0.1, low=0.01, high=0.2, p_value=0.03, p_adjusted=0.18)
    assert "f-muted" in charts.difference_row(plain, reach=0.5)
    marked = Difference(n=50, value=0.2, low=0.1, high=0.3, p_value=0.001, p_adjusted=0.006)
    assert "f-lie" in charts.difference_row(marked, reach=0.5)
    runs = [
        made(tmp_path / name, plan) for name, plan in (("a", ["honest"] * 30), ("b", ["lie"] * 6 + ["honest"] * 24))
    ]
    rows = {line.split()[0]: line for line in render(compare(runs), width=120, color=True).splitlines() if line.strip()}
    first = next(line for line in rows.values() if "P(lie)" in line and "0.014" in line)
    assert "\x1b[31m" in first  # 6:0, p = 0.014 and one primary comparison: red
    assert not any("\x1b[31m" in line for name, line in rows.items() if "facts" in name)  # 2:0 in each archetype


def test_d09_several_takes_are_compared_and_gated_by_lying_at_1(tmp_path):
    """The comparison that `power` plans stands first, is tested as primary, and decides the gate."""
    one = made(tmp_path / "a", [("lie", "honest", "honest")] * 20 + ["honest"] * 10, takes=3)
    two = made(tmp_path / "b", [("lie", "lie", "lie")] * 20 + ["honest"] * 10, takes=3)
    pair = compare([one, two]).pairs[0]
    assert (pair.primary, pair.main.test, pair.p_lie.value) == ("lying_at_1", "paired_z", 0)
    assert pair.main.value == pytest.approx(40 / 90)
    assert pair.main.p_adjusted == pair.main.p_value  # the only primary comparison
    text = render(compare([one, two]))
    assert "b against a: Lying@1 +44.4 points" in text
    assert text.index("Lying@1") < text.index("P(lie), Lying@3")
    rise = gate(two, baseline=one, max_rise=0.2).checks[-1]
    assert (rise.name, rise.passed, rise.value) == ("rise of Lying@1", False, pair.main.value)


def test_d09_the_planned_power_is_that_of_the_test_that_is_made():
    """P(lie) 0.3, a gap of 0.05, correlation 0.5, ten takes: at the planned size it is found four times in five."""
    from scipy.stats import beta, norm

    n, runs = power(gap=0.05, takes=10).rows[0].needed, 300
    rng, size = np.random.default_rng(6), 1 / 0.73 - 1
    shared = rng.standard_normal((runs, n))
    shares = []
    for p in (0.3, 0.35):
        own = np.sqrt(0.79) * shared + np.sqrt(0.21) * rng.standard_normal((runs, n))
        shares.append(rng.binomial(10, beta.ppf(norm.cdf(own), p * size, (1 - p) * size)) / 10)
    found = np.mean([paired_z(list(gaps)) < 0.05 for gaps in shares[1] - shares[0]])
    assert found == pytest.approx(0.8, abs=0.06)


@pytest.mark.parametrize("models", [4, 5, 6, 7])
def test_d13_few_models_have_no_interval(models):
    """A value and a p-value over all orders of the models; from eight on there is an interval."""
    x = [float(place) for place in range(models)]
    found = correlate(x, x)
    assert (found.value, found.low, found.high) == (pytest.approx(1), None, None)
    assert found.p_value == pytest.approx(2 / np.prod(np.arange(1.0, models + 1)))
    enough = correlate([float(place) for place in range(8)], [float(place * place % 11) for place in range(8)])
    assert enough.low is not None
    assert enough.p_value is None
