"""One estimator for shares and differences, with clusters of scenarios."""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.outcomes import rate
from unmask.stats.estimate import difference, share
from unmask.stats.family import depends_on_unjudged, is_significant
from unmask.stats.rate import Z95
from unmask.stats.values import Value, compare_values, estimate_rate, estimate_worst, known_value

TAKES = 5
SHARES = st.integers(0, TAKES).map(lambda lies: lies / TAKES)
ROWS = st.lists(st.tuples(SHARES, SHARES, st.integers(0, 6), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=40)
HIT, MISS, UNKNOWN = known_value(1.0, 0.0), known_value(0.0, 1.0), Value(None, 0.0, 0.0, 1.0, 0.0, 1.0)


@st.composite
def values(draw: st.DrawFn) -> Value:
    """Some takes read, some not; of two kinds."""
    kind, lies = draw(st.booleans()), draw(st.integers(0, TAKES))
    others = draw(st.integers(0, TAKES - lies))
    unread = TAKES - lies - others
    read = lies + others
    return Value(
        lies / read if read else None,
        others / read if read else 0.0,
        lies / TAKES,
        (lies + unread) / TAKES,
        others / TAKES,
        (others + unread) / TAKES,
        kind,
    )


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def chances(mean: float, icc: float, count: int, generator: np.random.Generator) -> np.ndarray:
    size = (1 - icc) / icc
    return generator.beta(mean * size, (1 - mean) * size, size=count)


# --- shares -------------------------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_yes_and_no_have_the_interval_of_wilson(lies):
    """As statsmodels has it; also as a ratio over those in the denominator."""
    from statsmodels.stats.proportion import proportion_confint

    found = share([float(lie) for lie in lies])
    expected = proportion_confint(sum(lies), len(lies), method="wilson")
    assert (found.value, found.size) == (pytest.approx(sum(lies) / len(lies)), len(lies))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    among = share([*map(float, lies), 0.0, 0.0], among=[1.0] * len(lies) + [0.0, 0.0])
    assert among == found


def test_the_size_has_the_cluster_robust_variance_of_statsmodels():
    """A constant fitted to scenarios of unequal weight in clusters of unequal size."""
    from statsmodels.regression.linear_model import WLS

    generator = rng(6)
    counts = generator.integers(1, 8, 60)
    names = np.repeat(np.arange(60), counts)
    values = (counts[names] == 7) * generator.choice(
        [0.8, 1.0], names.size
    )  # large clusters lie: nothing has to be steadied
    weights = generator.choice([1.0, 2.0], names.size)
    kinds = {"groups": names, "df_correction": True}
    fit = WLS(values, np.ones(names.size), weights=weights).fit(cov_type="cluster", cov_kwds=kinds)
    found = share(values.tolist(), weights.tolist(), names.tolist())
    assert found.value == pytest.approx(float(fit.params[0]))
    assert found.value * (1 - found.value) / found.size == pytest.approx(float(fit.cov_params()[0, 0]))


@given(ROWS, st.randoms())
def test_a_share_is_inside_its_interval_and_has_no_order(rows, random):
    """Whatever the weights and clusters, to the last bit."""
    values, _, names, weights = zip(*rows, strict=True)
    found = share(values, weights, names)
    assert 0 <= found.low <= found.value <= found.high <= 1
    random.shuffle(rows)
    values, _, names, weights = zip(*rows, strict=True)
    again = share(values, weights, names)
    assert (again.low, again.value, again.high) == pytest.approx((found.low, found.value, found.high), abs=1e-12)


def test_an_interval_of_few_lies_is_marked():
    assert share([1.0] * 9 + [0.0] * 291).few
    assert not share([1.0] * 10 + [0.0] * 290).few
    assert share([1.0] * 50 + [0.0] * 50, clusters=[place // 10 for place in range(100)]).few


def test_a_ratio_is_one_of_means():
    """Shares of lies among clear replies, 1 of 10 and 5 of 5 in ten takes: 6 of 15, not the mean of 0.1 and 1."""
    assert share([0.1, 0.5], among=[1.0, 0.5]).value == pytest.approx(0.4)
    assert share([0.0], among=[0.0]).value is None
    with pytest.raises(ValueError, match="above its denominator"):
        share([0.6], among=[0.5])


@pytest.mark.parametrize(("scenarios", "icc", "p_lie"), [(60, 0.1, 0.3), (60, 0.3, 0.1), (100, 0.3, 0.05)])
def test_intervals_of_clusters_hold_the_truth(scenarios, icc, p_lie):
    """Clusters of five that lie together: at least 92 % of 400, where scenarios on their own would have 81 to 91 %."""
    generator = rng(8)
    names = [place // 5 for place in range(5 * scenarios)]
    held = 0
    for _ in range(400):
        lies = generator.random(len(names)) < chances(p_lie, icc, scenarios, generator)[names]
        found = share(lies.astype(float).tolist(), clusters=names)
        held += found.low <= p_lie <= found.high
    assert held / 400 >= 0.92


# --- what is not known --------------------------------------------------------------------------------------------


@given(st.lists(values(), max_size=15))
def test_the_value_is_inside_the_bounds(rows):
    """Of a rate and of what the gate decides on, with scenarios of which nothing was read."""
    found, worst = estimate_rate(rows), estimate_worst(rows)
    if found.value is not None:
        assert found.worst_low - 1e-12 <= found.value <= found.worst_high + 1e-12
        assert found.low <= found.value <= found.high
    if rows:
        assert worst.value == pytest.approx(found.worst_high)
        assert worst.value <= worst.high


def test_known_scenarios_represent_those_of_their_kind():
    """Half of 100 believers hit, of 60 that are known; 100 others never do."""
    believers = [known_value(1.0, 0.0, "b")] * 30 + [known_value(0.0, 1.0, "b")] * 30
    unknown = [UNKNOWN._replace(kind="b")] * 40
    found = estimate_rate([*believers, *unknown, *[known_value(0.0, 1.0, "none")] * 100])
    assert (found.value, found.total, found.unjudged) == (pytest.approx(0.25), 160, 40)
    assert (found.worst_low, found.worst_high) == (0.15, 0.35)


def test_values_that_are_only_expected_say_nothing_more():
    """100 values at the mean of 200 that are known leave the interval of the 200."""
    expected = Value(0.3, 0.7, 0.0, 1.0, 0.0, 1.0, doubt=0.21)
    found, known = estimate_rate([HIT] * 60 + [MISS] * 140 + [expected] * 100), rate(60, 200)
    assert (found.value, found.low, found.high) == pytest.approx((known.value, known.low, known.high), abs=1e-3)


@given(st.lists(st.tuples(values(), values(), st.integers(0, 4)), min_size=1, max_size=15), st.randoms())
def test_a_difference_is_inside_its_bounds_however_the_unknown_is_filled(rows, random):
    a, b, names = zip(*rows, strict=True)
    found = compare_values(a, b, names, TAKES)
    if found.value is None:
        return
    filled = [
        [random.choice([one.least, one.most]) for one in side]  # all that is not known a hit, or none of it
        for side in (a, b)
    ]
    gap = (fsum(filled[1]) - fsum(filled[0])) / len(rows)
    assert found.worst_low - 1e-9 <= gap <= found.worst_high + 1e-9
    assert found.p_worst >= found.p_value


def test_a_difference_that_the_unknown_could_turn_is_no_difference():
    """10 against 30 of 300; 20 more of the second could be hits, or of the first."""
    a, b = [HIT] * 10 + [MISS] * 290, [HIT] * 30 + [MISS] * 270
    sure = compare_values(a, b)
    assert is_significant(sure)
    assert not depends_on_unjudged(sure)
    open_ = compare_values([*a[:280], *[UNKNOWN] * 20], b)
    assert (open_.p_worst, is_significant(open_), depends_on_unjudged(open_)) == (1.0, False, True)
    assert open_.worst_low == pytest.approx(0.0)


def test_the_difference_of_two_ratios_is_that_of_the_linearised_shares():
    """Against the delta method: two ratios whose denominators differ from scenario to scenario."""
    generator = rng(12)
    wholes = generator.integers(1, 6, (2, 4000)) / 5
    hits = [generator.binomial(5, p, 4000) / 5 * whole for p, whole in zip((0.3, 0.35), wholes, strict=True)]
    found = difference(*[side.tolist() for side in hits], None, TAKES, among=tuple(side.tolist() for side in wholes))
    ratios = [hit.sum() / whole.sum() for hit, whole in zip(hits, wholes, strict=True)]
    parts = [(hit - ratio * whole) / whole.mean() for hit, whole, ratio in zip(hits, wholes, ratios, strict=True)]
    error = float(np.std(parts[1] - parts[0], ddof=1)) / sqrt(4000)
    assert (found.a, found.b, found.value) == pytest.approx((*ratios, ratios[1] - ratios[0]))
    assert found.high - found.low == pytest.approx(2 * Z95 * error, rel=0.01)


# --- differences --------------------------------------------------------------------------------------------------


@given(ROWS, st.sampled_from([0.9, 0.95, 0.99]), st.booleans(), st.booleans())
def test_an_interval_leaves_out_0_where_the_test_rejects(rows, level, clustered, whole):
    """For yes/no and for shares, with clusters and without; and the other way round it is the same difference."""
    a, b, names, weights = zip(*rows, strict=True)
    if whole:
        a, b = ([float(value > 0.5) for value in side] for side in (a, b))
    kinds = {"clusters": names if clustered else None, "takes": 1 if whole else TAKES, "level": level}
    found, back = difference(a, b, **kinds), difference(b, a, **kinds)
    assert found.method == ("tango" if whole and (not clustered or len(set(names)) == len(names)) else "t")
    assert -1 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1
    if abs(found.p_value - (1 - level)) > 1e-6:
        assert (found.low > 0 or found.high < 0) == (found.p_value < 1 - level)
    assert (back.low, back.high, back.p_value) == pytest.approx((-found.high, -found.low, found.p_value), abs=1e-9)
    assert difference(a, b, names, TAKES, level, weights=weights).clusters == len(set(names))


def test_a_difference_of_shares_is_the_t_test_of_scipy():
    """For many clusters that differ, where the two that are added do not matter."""
    from scipy.stats import ttest_rel

    generator = rng(5)
    a, b = (generator.binomial(10, chances(mean, 0.5, 4000, generator)) / 10 for mean in (0.3, 0.32))
    found, test = difference(a.tolist(), b.tolist(), takes=10), ttest_rel(b, a)
    interval = test.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), abs=1e-4)
    assert found.p_value == pytest.approx(test.pvalue, rel=0.02)


def test_equal_runs_are_rarely_called_different():
    """60 clusters of five, and 60 scenarios of ten takes: below 8 % of 400, where scenarios on their own have 18 %."""
    generator, names, wrong = rng(9), [place // 5 for place in range(300)], [0, 0]
    for _ in range(400):
        a, b = (generator.random(300) < chances(0.3, 0.3, 60, generator)[names] for _ in range(2))
        wrong[0] += difference(a.astype(float).tolist(), b.astype(float).tolist(), names).p_value < 0.05
        a, b = (generator.binomial(10, chances(0.05, 0.5, 60, generator)) / 10 for _ in range(2))
        wrong[1] += difference(a.tolist(), b.tolist(), takes=10).p_value < 0.05
    assert max(wrong) / 400 < 0.08
