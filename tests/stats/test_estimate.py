"""One estimator for shares and differences, with clusters of scenarios."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.compare import bounded_mean
from unmask.stats.estimate import bounds, difference, join_clusters, lying_at, share
from unmask.stats.rate import rate

TAKES = 5
SHARES = st.integers(0, TAKES).map(lambda lies: lies / TAKES)
ROWS = st.lists(st.tuples(SHARES, SHARES, st.integers(0, 6), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=40)
TALLIES = st.lists(
    st.integers(1, TAKES).flatmap(lambda read: st.tuples(st.integers(0, read), st.just(read))), min_size=1, max_size=20
)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def chances(mean: float, icc: float, count: int, generator: np.random.Generator) -> np.ndarray:
    size = (1 - icc) / icc
    return generator.beta(mean * size, (1 - mean) * size, size=count)


# --- shares -------------------------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_yes_and_no_have_the_interval_of_wilson(lies, level):
    """As statsmodels has it, at any level; also as a ratio over those in the denominator."""
    from statsmodels.stats.proportion import proportion_confint

    found = share([float(lie) for lie in lies], level=level)
    expected = proportion_confint(sum(lies), len(lies), alpha=1 - level, method="wilson")
    assert (found.value, found.size) == (pytest.approx(sum(lies) / len(lies)), len(lies))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)
    among = share([*map(float, lies), 0.0, 0.0], among=[1.0] * len(lies) + [0.0, 0.0], level=level)
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
    assert found.clusters == 60


def test_many_clusters_have_the_normal_interval():
    """Wilson's bends only near 0 and 1: here it is value and t times the robust error."""
    from scipy.stats import ttest_1samp

    values = rng(3).binomial(10, 0.5, 5000) / 10
    found, plain = share(values.tolist()), ttest_1samp(values, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=2e-4)


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


@given(ROWS)
def test_a_cluster_twice_as_long_says_nothing_new(rows):
    """Every scenario doubled within its cluster: only the number of scenarios grows."""
    values, _, names, _ = zip(*rows, strict=True)
    once, twice = share(values, clusters=names), share(values * 2, clusters=names * 2)
    assert (twice.value, twice.clusters, twice.telling) == (pytest.approx(once.value), once.clusters, once.telling)
    assert twice.scenarios == 2 * once.scenarios
    assert (twice.low, twice.high, twice.size) == pytest.approx((once.low, once.high, once.size), abs=1e-9)


def test_scenarios_that_always_agree_count_once():
    """60 facts at five rungs each are 60 observations where all rungs of a fact are alike, also if none is a lie."""
    names = [place // 5 for place in range(300)]
    for lies in (0, 12):
        found, plain = share([float(name < lies) for name in names], clusters=names), rate(lies, 60)
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


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


# --- bounds -------------------------------------------------------------------------------------------------------


@given(TALLIES, st.integers(0, 20))
def test_the_value_is_inside_the_bounds(tallies, unread):
    """Shares of the takes that were read, with scenarios of which nothing was read, that are left out of the value."""
    least = [lies / TAKES for lies, _ in tallies] + [0.0] * unread
    most = [(lies + TAKES - read) / TAKES for lies, read in tallies] + [1.0] * unread
    (low, high), value = bounds(least, most), share([lies / read for lies, read in tallies]).value
    assert low.value - 1e-12 <= value <= high.value + 1e-12
    assert (low.value, high.value) == pytest.approx((np.mean(least), np.mean(most)))


def test_a_lie_that_was_seen_is_counted_where_another_take_is_unread():
    """69 of 200 scenarios lie in their first take and the second is unread: 34.5 %, for one take and for two."""
    lies, read = [1] * 69 + [0] * 131, [1] * 69 + [2] * 131
    found = share([lie / seen for lie, seen in zip(lies, read, strict=True)])
    assert (found.value, found.size) == (pytest.approx(0.345), 200)
    assert share(lying_at(lies, read, 2, 1)) == found
    assert share(lying_at(lies, read, 2, 2)).value == pytest.approx(0.345)
    worst = bounds([lie / 2 for lie in lies], [(lie + 2 - seen) / 2 for lie, seen in zip(lies, read, strict=True)])
    assert [one.value for one in worst] == pytest.approx([0.1725, 0.345])


def test_bounds_that_are_none_are_refused():
    with pytest.raises(ValueError, match="above the most"):
        bounds([0.5], [0.4])


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


@given(st.lists(st.tuples(SHARES, SHARES), min_size=30, max_size=80))
def test_a_difference_of_shares_is_not_wider_than_with_whole_scenarios_added(rows):
    """Bonett and Price's two scenarios at +1 and -1, but for the t quantile, 4.36 % more with 30 scenarios."""
    a, b = zip(*rows, strict=True)
    found = difference(a, b, takes=TAKES)
    low, high = bounded_mean([right - left for left, right in rows])
    assert found.high - found.low <= (high - low) * 1.0436


def test_equal_runs_are_rarely_called_different():
    """60 clusters of five, and 60 scenarios of ten takes: below 8 % of 400, where scenarios on their own have 18 %."""
    generator, names, wrong = rng(9), [place // 5 for place in range(300)], [0, 0]
    for _ in range(400):
        a, b = (generator.random(300) < chances(0.3, 0.3, 60, generator)[names] for _ in range(2))
        wrong[0] += difference(a.astype(float).tolist(), b.astype(float).tolist(), names).p_value < 0.05
        a, b = (generator.binomial(10, chances(0.05, 0.5, 60, generator)) / 10 for _ in range(2))
        wrong[1] += difference(a.tolist(), b.tolist(), takes=10).p_value < 0.05
    assert max(wrong) / 400 < 0.08


def test_one_cluster_shows_no_difference():
    found = difference([0.0] * 9, [1.0] * 9, ["all"] * 9)
    assert (found.low, found.high, found.p_value, found.few) == (-1.0, 1.0, 1.0, True)


# --- Lying@k and clusters -----------------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_up_to_the_takes_that_were_read_it_is_the_share_of_subsets_with_a_lie(takes, data):
    k = data.draw(st.integers(1, len(takes)))
    subsets = [any(chosen) for chosen in combinations(takes, k)]
    assert lying_at([sum(takes)], [len(takes)], 10, k) == [pytest.approx(np.mean(subsets))]


@given(TALLIES)
def test_a_chance_grows_with_k_and_a_seen_lie_is_certain_for_all_takes(tallies):
    """Within what the unread takes could be, and at k = 1 the share of lies itself."""
    lies, read = zip(*tallies, strict=True)
    assert lying_at(lies, read, TAKES, 1) == pytest.approx([lie / seen for lie, seen in tallies])
    every = lying_at(lies, read, TAKES, TAKES)
    assert all(chance == pytest.approx(1) for chance, lie in zip(every, lies, strict=True) if lie)
    assert all(0 <= chance <= 1 for chance in every)
    assert all(chance == 0 for chance, (lie, seen) in zip(every, tallies, strict=True) if not lie and seen == TAKES)


@pytest.mark.parametrize("unread", [0.3, 0.5])
def test_unread_takes_do_not_move_lying_at_all_takes(unread):
    """Within half a point over 20,000 scenarios, where the share of those with a seen lie is 3 to 6 points too low."""
    generator = rng(4)
    lies = generator.random((20_000, 10)) < chances(0.15, 0.6, 20_000, generator)[:, None]
    seen = generator.random(lies.shape) >= unread
    kept = seen.any(axis=1)
    found = lying_at((lies & seen).sum(axis=1)[kept].tolist(), seen.sum(axis=1)[kept].tolist(), 10, 10)
    assert np.mean(found) == pytest.approx(lies.any(axis=1).mean(), abs=0.005)
    assert (lies & seen).any(axis=1).mean() < lies.any(axis=1).mean() - 0.02


def test_what_lying_at_cannot_know_is_refused():
    with pytest.raises(ValueError, match="Lying@3 needs k"):
        lying_at([0], [1], 2, 3)
    with pytest.raises(ValueError, match="takes that were read"):
        lying_at([0], [0], 2, 1)


@given(st.lists(st.lists(st.integers(0, 15), max_size=3), max_size=30))
def test_clusters_are_the_connected_components_of_scipy(keys):
    """Scenarios with a key in common are joined, and what is joined to the same one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    found = join_clusters(keys)
    edges = [(one, other) for one, own in enumerate(keys) for other, at in enumerate(keys) if {*own} & {*at}]
    rows, columns = zip(*edges, strict=True) if edges else ((), ())
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(max(1, len(keys)),) * 2)
    expected = connected_components(graph, directed=False)[1][: len(keys)]
    assert len({*zip(found, expected.tolist(), strict=True)}) == len({*found}) == len({*expected.tolist()})
    assert list(dict.fromkeys(found)) == list(range(len({*found})))
